"""Conflict markers that a merge left behind.

A line of `=======` alone underlines a heading in Markdown and reStructuredText, so it counts only between a beginning
and an end. A marker that was there before the difference is not told.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from git_orch.model import Record
from git_orch.reviewers.static import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from git_orch.model import Finding
    from git_orch.reviewers.static.source import Source

RULE = "conflict-marker"
_HINTS = (b"<<<<<<< ", b">>>>>>> ")
_MARKER = re.compile(rb"(<{7}|>{7}|\|{7}|={7})(?: (.*?))?\s*$")
_FENCE = (b"```", b"~~~")


class _Conflict(Record):
    """The markers that belong together, by line number, with the name of each side that is told."""

    lines: tuple[int, ...]
    sides: tuple[str, ...]
    is_whole: bool = False


def check(source: Source, *, parses: bool = False) -> Iterator[Finding]:
    """A finding for each conflict of which the difference adds a marker.

    `parses`: a parser accepted the file, so that in a test a whole conflict is a string of it.
    """
    if not any(hint in source.content for hint in _HINTS):
        return
    fences = _fences(source)
    in_test = parses and kinds.is_test(source)
    for conflict in _conflicts(source):
        if any(source.change.adds(line) for line in conflict.lines):
            sides = " and ".join(f"`{side}`" for side in conflict.sides if side)
            yield source.finding(
                RULE,
                "merge conflict left in the file" + (f", between {sides}" if sides and conflict.is_whole else ""),
                "advisory" if _is_example(conflict, fences) or (in_test and conflict.is_whole) else "blocking",
                line=conflict.lines[0],
                end_line=conflict.lines[-1],
                suggestion="choose a side, or write what both want, and delete the markers",
            )


def _conflicts(source: Source) -> Iterator[_Conflict]:
    """All conflicts, whole or not; a beginning inside of another one ends that one."""
    begun: list[tuple[int, str]] = []
    for number, line in enumerate(source.lines, 1):
        # Most lines are told by their first byte; the expression costs ten times as much.
        match = _MARKER.match(line) if line[:1] in b"<>|=" else None
        if match is None:
            continue
        kind, side = match[1][:1], (match[2] or b"").decode("utf-8", "replace")[:40]
        if kind == b"<" and side:
            yield from _unfinished(begun)
            begun = [(number, side)]
        elif kind in b"|=" and begun:
            begun.append((number, ""))
        elif kind == b">" and side and (begun or not _is_quoted_mail(source, number)):
            marks = [*begun, (number, side)]
            yield _Conflict(
                lines=tuple(line for line, _ in marks),
                sides=tuple(side for _, side in marks if side),
                is_whole=len(begun) > 1,
            )
            begun = []
    yield from _unfinished(begun)


def _unfinished(begun: list[tuple[int, str]]) -> Iterator[_Conflict]:
    """The beginning alone: what looked like its middle may be a heading's underline."""
    if begun:
        yield _Conflict(lines=(begun[0][0],), sides=(begun[0][1],))


def _is_quoted_mail(source: Source, number: int) -> bool:
    """True for `>>>>>>> text` among lines that begin with `>` as well: a mail quoted seven times."""
    around = source.lines[max(number - 2, 0) : number - 1] + source.lines[number : number + 1]
    return any(line.startswith(b">") for line in around)


def _fences(source: Source) -> list[int]:
    """The lines that begin or end a block of code in Markdown."""
    if source.suffix not in kinds.MARKDOWN:
        return []
    return [number for number, line in enumerate(source.lines, 1) if line.lstrip().startswith(_FENCE)]


def _is_example(conflict: _Conflict, fences: list[int]) -> bool:
    """True for a whole conflict inside one fenced block: the document is about conflicts."""
    before, within = bisect_left(fences, conflict.lines[0]), bisect_left(fences, conflict.lines[-1])
    return conflict.is_whole and before % 2 == 1 and before == within
