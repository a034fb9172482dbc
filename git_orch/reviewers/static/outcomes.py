"""What a parser can say of a file."""

from __future__ import annotations

from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Finding
    from git_orch.reviewers.static.source import Source


class Parsed(Record):
    """The parser came to an answer. `broken` is the one fault that ended it; `remarks` are about what it did accept."""

    broken: Finding | None = None
    remarks: tuple[Finding, ...] = ()


class GaveUp(Record):
    """The file is beyond the parser, which says nothing about the file."""

    reason: str


class Template(Record):
    """The file becomes the language only when a template engine has filled it in, so no parser can judge it."""


def not_utf8(source: Source, rule: str, what: str, offset: int) -> Parsed:
    """The outcome for bytes that are not text where the language demands UTF-8."""
    line = source.content.count(b"\n", 0, offset) + 1
    column = offset - (source.content.rfind(b"\n", 0, offset) + 1) + 1
    message = f"{what} has to be UTF-8, and this byte is not"
    return Parsed(broken=source.finding(rule, message, "blocking", line=line, start_column=column))
