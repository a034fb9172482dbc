"""The lines of source that a finding is about, with a caret under the place."""

from __future__ import annotations

from git_orch.formats.terminal import Terminal, cells, pad, tail
from git_orch.formats.words import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from git_orch.formats.terminal import Style
    from git_orch.model import Finding

    Source = Callable[[str, int, int], list[str] | None]

CONTEXT = 2  # lines above a blocking finding: the one that must be understood
MOST_LINES = 6
TAB = "    "
_BEFORE, _AFTER = 400, 1200  # how much of a minified line is looked at on each side of the place


def gutter(finding: Finding) -> int:
    """How wide the column of line numbers is."""
    return max(2, len(str(max(finding.start_line, finding.end_line))))


def excerpt(finding: Finding, source: Source, terminal: Terminal, style: Style) -> list[str]:
    """The finding's lines, numbered, carets under a place within one line; nothing where there is no such source."""
    first, last = finding.start_line, max(finding.start_line, finding.end_line)
    if first < 1:
        return []
    if last > first:
        return _several(finding, last, source, terminal)
    if finding.severity == "blocking":
        first = max(1, last - CONTEXT)
    lines = source(finding.path, first, last)
    if not lines or len(lines) != last - first + 1:
        return []
    above = [_numbered(finding, number, line, terminal) for number, line in enumerate(lines[:-1], first)]
    text, column, length = cut_line(lines[-1], *_span(lines[-1], finding), _room(finding, terminal), terminal)
    caret = f"{_bar(finding)} {' ' * column}{terminal.paint('^' * length, style)}"
    return [_bar(finding), *above, f"{_number(finding, last)} {text}".rstrip(), caret]


def _several(finding: Finding, last: int, source: Source, terminal: Terminal) -> list[str]:
    """These lines and no others, no more than the first few of many; what is marked needs no caret."""
    lines = source(finding.path, finding.start_line, min(last, finding.start_line + MOST_LINES - 1))
    if not lines:
        return []
    numbered = [_numbered(finding, number, line, terminal) for number, line in enumerate(lines, finding.start_line)]
    left = last - finding.start_line + 1 - len(lines)
    more = [f"{_bar(finding)} {terminal.ellipsis} {plural(left, 'more line')}"] if left > 0 else []
    return [_bar(finding), *numbered, *more]


def _bar(finding: Finding) -> str:
    return " " * gutter(finding) + " |"


def _number(finding: Finding, number: int) -> str:
    return f"{pad(str(number), gutter(finding), right=True)} |"


def _room(finding: Finding, terminal: Terminal) -> int:
    return max(8, terminal.width - gutter(finding) - 3)


def _numbered(finding: Finding, number: int, line: str, terminal: Terminal) -> str:
    text, _, _ = cut_line(line, 0, 0, _room(finding, terminal), terminal)
    return f"{_number(finding, number)} {text}".rstrip()


def _span(line: str, finding: Finding) -> tuple[int, int]:
    """The marked characters, from 0, end exclusive: the finding's columns, or the whole line but its indentation."""
    text = line.rstrip()
    if finding.start_column < 1:
        return len(text) - len(text.lstrip()), len(text)
    start = min(finding.start_column - 1, len(text))
    return start, max(start + 1, min(finding.end_column - 1, len(text)))


def cut_line(line: str, start: int, end: int, room: int, terminal: Terminal) -> tuple[str, int, int]:
    """The line within `room` cells, what is marked in sight; the cell where the mark begins, and its length."""
    line = line.rstrip("\r\n")
    low, high = max(0, start - _BEFORE), start + _AFTER
    parts = (line[low:start], line[start : min(end, high)], line[end:high])
    before, marked, after = (terminal.shown(part.replace("\t", TAB)) for part in parts)
    whole = low == 0 and high >= len(line) and cells(before + marked + after) <= room
    if low or (not whole and cells(before) + min(cells(marked), room // 2) > room):
        before = terminal.ellipsis + tail(before, room // 3)
    text = before + marked + after
    column = cells(before)
    if high < len(line):
        text += " " * room  # there is more: let it be seen that the line was cut
    return terminal.clip(text, room), column, max(1, min(cells(marked), room - column))
