"""A report in every form in which it is asked for, and errors; none of them prints."""

from __future__ import annotations

from git_orch.errors import UsageError
from git_orch.formats.terminal import DEFAULT_WIDTH, Terminal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.errors import OrchError
    from git_orch.formats.advice import Advice
    from git_orch.formats.excerpt import Source
    from git_orch.model import Report

NAMES = ("text", "concise", "json", "jsonl", "sarif", "rdjson", "github")
SCHEMAS = ("review", "finding", "status", "gate", "doctor", "plan", "answer", "error")
_PREFIX = "git-orch: "


def render(
    report: Report, name: str, *, terminal: Terminal, source: Source, advice: Sequence[Advice] | None = None
) -> str:
    """The report in the format of that name, its last line ended.

    `source` gives lines of the reviewed tree without their ends, by path, first and last number, or None. `advice`
    takes the place of the commands that `text` ends with.

    Raises:
        UsageError: there is no such format.
    """
    # Each is loaded when it is asked for: orjson alone costs as much as printing the text does.
    match name:
        case "text":
            from git_orch.formats import text

            return text.render(report, terminal, source, advice)
        case "concise":
            from git_orch.formats import concise

            return concise.render(report, terminal)
        case _:
            return _for_programs(report, name, source)


def _for_programs(report: Report, name: str, source: Source) -> str:
    match name:
        case "json" | "jsonl":
            from git_orch.formats import json_

            return json_.render(report) if name == "json" else json_.render_lines(report)
        case "sarif":
            from git_orch.formats import sarif

            return sarif.render(report)
        case "rdjson":
            from git_orch.formats import rdjson

            return rdjson.render(report, source)
        case "github":
            from git_orch.formats import github

            return github.render(report)
    raise UsageError(f"no format `{shown(name)}`", f"one of: {' '.join(NAMES)}")


def known(name: str, names: Sequence[str] = NAMES) -> str:
    """The name itself, where it is one of a format: of a review's, or of those that are given.

    Raises:
        UsageError: it is none.
    """
    if name in names:
        return name
    from git_orch.formats.words import closest

    close = closest(name, names)
    perhaps = f"; perhaps you meant {close}" if close else ""
    raise UsageError(f"no format `{shown(name)}`{perhaps}", f"one of: {' '.join(names)}")


def error(problem: OrchError, as_json: bool) -> str:
    """The problem in words, with the way out below, or as the object of formats/schema/error.json."""
    if as_json:
        from git_orch.formats import json_

        return json_.document(json_.failure(problem))
    message, hint = problem.message.splitlines(), problem.hint.splitlines()
    if len(message) == len(hint) == 1 and _reads_on(message[0], hint[0]):
        message, hint = [f"{message[0]}: {hint[0]}"], []
    lines = [*message, *hint] or [problem.code]
    indents = [_PREFIX, *[" " * len(_PREFIX)] * (len(lines) - 1)]
    return "".join(f"{indent}{shown(line)}\n" for indent, line in zip(indents, lines, strict=True))


def _reads_on(message: str, hint: str) -> bool:
    """Whether both are one line: they fit into one, and the hint is no command, which stands alone to be pasted."""
    fits = len(_PREFIX) + len(message) + len(": ") + len(hint) <= DEFAULT_WIDTH
    return fits and ": " not in message and message[-1:] not in ".?" and not hint.startswith("git ")


def schema(name: str) -> str:
    """The JSON Schema of that name, as text.

    Raises:
        UsageError: there is none.
    """
    from importlib import resources

    if name not in SCHEMAS:
        raise UsageError(f"no schema `{shown(name)}`" if name else "which schema?", f"one of: {' '.join(SCHEMAS)}")
    return resources.files(__name__).joinpath("schema", f"{name}.json").read_text(encoding="utf-8")
