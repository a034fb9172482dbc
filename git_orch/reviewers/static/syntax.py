"""Whether a file is what its name says: each language is read by a parser of its own, and nothing is run."""

from __future__ import annotations

from git_orch.model import Record
from git_orch.reviewers.static import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from git_orch.model import Finding
    from git_orch.reviewers.static.source import Source

    Language = Literal["json", "python", "toml", "yaml"]
    Parse = Callable[[Source], "Parsed | GaveUp | Template"]

_BY_SUFFIX: dict[str, Language] = {
    ".py": "python",
    ".pyi": "python",
    ".pyw": "python",
    ".json": "json",
    ".jsonc": "json",
    ".code-workspace": "json",
    ".geojson": "json",
    ".ipynb": "json",
    ".webmanifest": "json",
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
}
_BY_NAME: dict[str, Language] = {
    "Cargo.lock": "toml",
    "Pipfile": "toml",
    "composer.lock": "json",
    "deno.lock": "json",
    "flake.lock": "json",
    "Pipfile.lock": "json",
    "pdm.lock": "toml",
    "poetry.lock": "toml",
    "uv.lock": "toml",
}


class Parsed(Record):
    """The parser came to an answer. `broken` is the one fault that ended it; `remarks` are about what it did accept."""

    broken: Finding | None = None
    remarks: tuple[Finding, ...] = ()


class GaveUp(Record):
    """The file is beyond the parser, which says nothing about the file."""

    reason: str


class Template(Record):
    """The file becomes the language only when a template engine has filled it in, so no parser can judge it."""


def language_of(source: Source) -> Language | None:
    """The language that a parser of ours knows, by the name of the file, else by its first line."""
    if source.filename in _BY_NAME:
        return _BY_NAME[source.filename]
    if "." in source.filename:
        return _BY_SUFFIX.get(source.suffix)
    first = source.content[:100].partition(b"\n")[0]
    return "python" if first.startswith(b"#!") and b"python" in first and b"python2" not in first else None


def parse(source: Source) -> Parsed | GaveUp | Template | None:
    """What the parser of its language makes of the file; None where we have no parser.

    What a test keeps broken on purpose never blocks.
    """
    language = language_of(source)
    if language is None:
        return None
    try:
        outcome = _parser(language)(source)
    except (RecursionError, MemoryError):
        return GaveUp(reason=f"nested too deeply for the {language} parser")
    if isinstance(outcome, Parsed) and outcome.broken and kinds.is_meant_to_break(source):
        return outcome.replace(broken=outcome.broken.replace(severity="advisory"))
    return outcome


def _parser(language: Language) -> Parse:
    """Imported when the first such file turns up: yaml alone costs as much as the interpreter's start."""
    match language:
        case "json":
            from git_orch.reviewers.static import json_text

            return json_text.parse
        case "python":
            from git_orch.reviewers.static import python_text

            return python_text.parse
        case "toml":
            from git_orch.reviewers.static import toml_text

            return toml_text.parse
        case "yaml":
            from git_orch.reviewers.static import yaml_text

            return yaml_text.parse


def not_utf8(source: Source, rule: str, what: str, offset: int) -> Parsed:
    """The outcome for bytes that are not text where the language demands UTF-8."""
    line = source.content.count(b"\n", 0, offset) + 1
    column = offset - (source.content.rfind(b"\n", 0, offset) + 1) + 1
    message = f"{what} has to be UTF-8, and this byte is not"
    return Parsed(broken=source.finding(rule, message, "blocking", line=line, start_column=column))
