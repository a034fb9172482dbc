"""One finding as a person reads it: the message, the place with its lines, why it matters, who says so."""

from __future__ import annotations

from git_orch.formats.excerpt import excerpt, gutter
from git_orch.formats.masking import masked
from git_orch.formats.terminal import Terminal, cells, wrap
from git_orch.formats.words import plural, source_of
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.formats.excerpt import Source
    from git_orch.formats.terminal import Style
    from git_orch.model import Finding, Severity

SEVERITY_STYLES: dict[Severity, Style] = {"blocking": "red", "advisory": "yellow", "nit": "cyan"}


class Most(Record):
    """How much of what a reviewer says is printed: cells of its message and of a note, lines of a suggestion."""

    message: int
    note: int
    suggestion: int


GLANCE = Most(message=600, note=300, suggestion=6)
_EVERYTHING = Most(message=20_000, note=20_000, suggestion=1000)


def whole(finding: Finding, terminal: Terminal, source: Source) -> str:
    """The finding with its lines, with nothing of what was said left out."""
    return "".join(f"{line}\n" for line in block(finding, terminal, masked([finding], source), _EVERYTHING))


def block(finding: Finding, terminal: Terminal, source: Source, most: Most) -> list[str]:
    """The finding in lines: title, place, source, notes."""
    style = SEVERITY_STYLES[finding.severity]
    message = terminal.clip(terminal.sentence(finding.message), most.message)
    title = wrap(message, terminal.width, first=f"{tag(finding)}: ", rest="  ")
    title[0] = terminal.paint_at(title[0], 0, len(finding.severity), style)
    space = " " * gutter(finding)
    return [
        *title,
        f"{space}--> {place(finding, terminal)}",
        *excerpt(finding, source, terminal, style),
        *_note("fails when", finding.fails_when, space, terminal, most.note),
        *_suggestion(finding.suggestion, space, terminal, most),
        *_note("", source_of(finding), space, terminal, most.note),
    ]


def tag(finding: Finding) -> str:
    """`blocking[kmzv]`."""
    return f"{finding.severity}[{finding.id}]" if finding.id else finding.severity


def place(finding: Finding, terminal: Terminal) -> str:
    """`path:line:column`, whole, so that a terminal or an editor can open it."""
    numbers = [str(number) for number in (finding.start_line, finding.start_column) if number > 0]
    return ":".join([terminal.shown(finding.path), *numbers[: 2 if finding.start_line > 0 else 0]])


def _note(label: str, text: str, space: str, terminal: Terminal, most: int) -> list[str]:
    note = terminal.clip(terminal.sentence(text), most)
    first = f"{space} = {label}: " if label else f"{space} = "
    return wrap(note, terminal.width, first=first, rest=f"{space}   ") if note else []


def _suggestion(text: str, space: str, terminal: Terminal, most: Most) -> list[str]:
    """A sentence as a note; what has several lines is code, and stays in lines."""
    lines = text.strip("\r\n").splitlines()
    if len(lines) < 2:
        return _note("help", text, space, terminal, most.note)
    room = terminal.width - len(space) - 5
    code = [terminal.clip(terminal.shown(line.expandtabs(4)), room) for line in lines[: most.suggestion]]
    if len(lines) > most.suggestion:
        code.append(f"{terminal.ellipsis} {plural(len(lines) - most.suggestion, 'more line')}")
    return [f"{space} = help:", *(f"{space}     {line}".rstrip() for line in code)]


def nit(finding: Finding, terminal: Terminal) -> list[str]:
    """The finding in one line, or as few as its width allows."""
    message = terminal.clip(terminal.sentence(finding.message), GLANCE.note)
    said_by = f" ({terminal.sentence(source_of(finding))})" if source_of(finding) else ""
    first = f"{tag(finding)}: "
    where = place(finding, terminal)
    if cells(first) + cells(where) > terminal.width:
        lines = [f"{first}{where}", *wrap(message + said_by, terminal.width, first="  ", rest="  ")]
    else:
        lines = wrap(f"{where} {message}{said_by}", terminal.width, first=first, rest="  ")
    return [terminal.paint_at(lines[0], 0, len(finding.severity), SEVERITY_STYLES[finding.severity]), *lines[1:]]
