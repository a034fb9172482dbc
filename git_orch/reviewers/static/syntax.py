"""Whether a file is what its name says: each language is read by a parser of its own, and nothing is run."""

from __future__ import annotations

from git_orch.reviewers.static import kinds
from git_orch.reviewers.static.outcomes import GaveUp, Parsed, Template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from git_orch.reviewers.static.source import Source

    Language = Literal["json", "python", "toml", "yaml"]
    Parse = Callable[[Source], Parsed | GaveUp | Template]

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
