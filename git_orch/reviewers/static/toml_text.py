"""TOML, by the standard library's parser."""

from __future__ import annotations

import re
import tomllib

from git_orch.reviewers.static.outcomes import Parsed, Template, not_utf8
from git_orch.reviewers.static.templates import is_data_template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.reviewers.static.source import Source

RULE = "toml-syntax"
# The position is a field of the error from Python 3.14 on; before, only its message tells.
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def parse(source: Source) -> Parsed | Template:
    """What `tomllib` (TOML 1.0) makes of the file."""
    try:
        text = source.content.decode("utf-8")
    except UnicodeDecodeError as error:
        return not_utf8(source, RULE, "TOML", error.start)
    try:
        tomllib.loads(text, parse_float=str)
    except tomllib.TOMLDecodeError as error:
        return Template() if is_data_template(source.content) else _broken(source, str(error))
    return Parsed()


def _broken(source: Source, told: str) -> Parsed:
    position = _POSITION.search(told)
    line, column = (int(number or 0) for number in position.groups()) if position else (0, 0)
    message = f"it is no TOML: {_POSITION.sub('', told)}"
    line = line or len(source.lines)
    return Parsed(
        broken=source.finding(RULE, message, "blocking", line=line, start_column=column, fails_when="it is read")
    )
