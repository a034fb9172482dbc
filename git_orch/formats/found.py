"""Findings as a list: what became of each since it was reported, where it is now, and what it says."""

from __future__ import annotations

from git_orch.formats.blocks import SEVERITY_STYLES, place, tag
from git_orch.formats.columns import Cell, Column, table
from git_orch.formats.terminal import Terminal
from git_orch.model import Finding, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

_NARROW = 60  # below, a finding takes three lines instead of a row
_FOUND_COLUMNS = (
    Column(),
    Column(),
    Column(rank=1, least=20, cut="middle"),
    Column(rank=2, least=12),
    Column(),
)


class FoundRow(Record):
    """A finding against what is there now: its present lines, and `was_line`, the reviewed one, where that differs."""

    finding: Finding
    state: Literal["", "still there", "moved", "gone"] = ""
    was_line: int = 0


def found_lines(rows: Sequence[FoundRow], terminal: Terminal) -> list[str]:
    """A row a finding: tag, what became of it, where, what, where it was."""
    if terminal.width < _NARROW:
        return [line for row in rows for line in _found_narrow(row, terminal)]
    return table(_FOUND_COLUMNS, [_found_cells(row, terminal) for row in rows], terminal)


def _found_cells(row: FoundRow, terminal: Terminal) -> list[Cell]:
    finding = row.finding
    was = f"(was {row.was_line})" if row.was_line and not row.state else ""
    return [
        _tag_cell(finding),
        Cell(text=_became(row, terminal)),
        Cell(text=_file_and_line(finding, terminal)),
        Cell(text=terminal.clip(terminal.sentence(finding.message), terminal.width)),
        Cell(text=was),
    ]


def _tag_cell(finding: Finding) -> Cell:
    return Cell(text=tag(finding), style=SEVERITY_STYLES[finding.severity], painted=len(finding.severity))


def _became(row: FoundRow, terminal: Terminal) -> str:
    moved = row.state == "moved" and row.was_line
    return f"moved {row.was_line}{terminal.arrow}{row.finding.start_line}" if moved else row.state


def _file_and_line(finding: Finding, terminal: Terminal) -> str:
    return place(finding.replace(start_column=0), terminal)


def _found_narrow(row: FoundRow, terminal: Terminal) -> list[str]:
    finding = row.finding
    became = _became(row, terminal) or (f"(was {row.was_line})" if row.was_line else "")
    first = terminal.clip(f"  {tag(finding)}  {became}".rstrip(), terminal.width)
    room = terminal.width - 4
    return [
        terminal.paint_at(first, 2, len(finding.severity), SEVERITY_STYLES[finding.severity]),
        f"    {terminal.clip_middle(_file_and_line(finding, terminal), room)}",
        f"    {terminal.clip(terminal.sentence(finding.message), room)}",
    ]
