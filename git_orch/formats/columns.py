"""Tables that fit: columns give way in turn, then go; nothing is wrapped within a cell."""

from __future__ import annotations

from git_orch.formats.terminal import Terminal, cells, pad
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from git_orch.formats.terminal import Style

GAP = 2


class Column(Record):
    """How a column gives way: down to `least` cells by cutting its text at `cut`; gone if its rank is the highest left.

    Rank 0 is never left out.
    """

    title: str = ""
    rank: int = 0
    least: int = 0
    cut: Literal["end", "middle"] = "end"


class Cell(Record):
    """A text, the first `painted` characters of it in a colour. It has passed `Terminal.shown`."""

    text: str
    style: Style = ""
    painted: int = 0


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], terminal: Terminal, indent: str = "  "
) -> list[str]:
    """A line for the titles (if there are any) and one a row, none wider than the terminal while rank 0 allows it."""
    titles = [Cell(text=column.title) for column in columns]
    lines = [titles, *rows] if any(column.title for column in columns) else list(rows)
    if not rows:
        return []
    natural = [max(cells(row[n].text) for row in lines) for n in range(len(columns))]
    widths = _fitted(columns, natural, terminal.width - len(indent))
    kept = [n for n in range(len(columns)) if widths[n] > 0]
    return [
        _line([row[n] for n in kept], [widths[n] for n in kept], [columns[n] for n in kept], terminal, indent)
        for row in lines
    ]


def _fitted(columns: Sequence[Column], natural: Sequence[int], room: int) -> list[int]:
    """The width of each column; 0 for one that is left out."""
    widths = list(natural)
    for rank in (*sorted({column.rank for column in columns}, reverse=True), 0):
        _narrow(columns, widths, room)
        if _taken(widths) <= room or rank == 0:
            break
        widths = [0 if column.rank == rank else natural[n] * (widths[n] > 0) for n, column in enumerate(columns)]
    return widths


def _narrow(columns: Sequence[Column], widths: list[int], room: int) -> None:
    """Columns that may are narrower, as much as is needed: the widest gives way first, so that none starves."""
    while _taken(widths) > room:
        yielding = [n for n, column in enumerate(columns) if column.least and widths[n] > column.least]
        if not yielding:
            break
        widths[max(yielding, key=lambda n: widths[n])] -= 1


def _taken(widths: Sequence[int]) -> int:
    kept = [width for width in widths if width]
    return sum(kept) + GAP * (len(kept) - 1)


def _line(
    row: Sequence[Cell], widths: Sequence[int], columns: Sequence[Column], terminal: Terminal, indent: str
) -> str:
    texts = [
        terminal.clip_middle(cell.text, width) if column.cut == "middle" else terminal.clip(cell.text, width)
        for cell, width, column in zip(row, widths, columns, strict=True)
    ]
    padded = [pad(text, width) for text, width in zip(texts[:-1], widths[:-1], strict=True)] + texts[-1:]
    painted = [
        terminal.paint_at(text, 0, cell.painted, cell.style) if cell.painted else text
        for text, cell in zip(padded, row, strict=True)
    ]
    return (indent + (" " * GAP).join(painted)).rstrip()
