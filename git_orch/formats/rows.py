"""What is printed while a review goes on: the header, a row a reviewer, the moving rows, and the lines for a log.

Pure functions: whoever follows the run has the clock and the cursor.
"""

from __future__ import annotations

from git_orch.formats import words
from git_orch.formats.terminal import Terminal, cells, mark_style, pad, shown, wrap
from git_orch.formats.words import (
    STATIC,
    did_review,
    duration,
    elapsed,
    file_count,
    plural,
    short_id,
)
from git_orch.model import Record, Report, Review
from git_orch.runs import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.formats.terminal import Mark

CTRL_C = "Ctrl-C: leave it running; twice: cancel it"
_CTRL_C_SHORT = "Ctrl-C: leave it; twice: cancel it"
_NAME_MOST = 20
_TIME, _RESULT = 6, 12  # cells: "31.4 s", "not reviewed"
_DOING = 38
_READ, _TOKENS = 16, 13  # cells: "11 files read", "18k tokens"
_IN_COLUMNS = 72
_DETAIL_LEAST = 24
_REASON_LINES = 3
_RAGGED = 8  # cells that a line may lose where it is broken at a space


class Progress(Record):
    """A reviewer as it is now: `review` once it has ended, else what it is `doing`, and at the right its `cost`."""

    name: str
    elapsed_s: float = 0.0
    doing: str = ""
    cost: str = ""
    review: Review | None = None


def header(report: Report, terminal: Terminal) -> str:
    """What is reviewed against what: one line, or two where the terminal is narrow."""
    subject = f"{terminal.sentence(report.subject)} (tree {short_id(report.tree_id)})"
    extent = f"{_extent(report)}: " if _files(report) else ""
    text = f"Reviewing {extent}{subject} against {_against(report, terminal)}"
    return "\n".join(wrap(text, terminal.width, rest="  "))


def _files(report: Report) -> int:
    return report.change.files or file_count(report.coverage)


def _extent(report: Report) -> str:
    """`14 files, +211 -48`."""
    change = report.change
    files = plural(_files(report), "file")
    return f"{files}, +{change.added} -{change.removed}" if change.added or change.removed else files


def _against(report: Report, terminal: Terminal) -> str:
    base = report.base
    oid = short_id(base.commit) if base.commit else f"tree {short_id(base.tree_id)}"
    name = terminal.sentence(base.name)
    return f"{name} ({oid})" if name and not base.commit.startswith(name) else oid


def name_width(names: Sequence[str]) -> int:
    """How wide the column of these reviewers is."""
    return min(_NAME_MOST, max(map(len, names), default=0))


def reviewer_row(review: Review, terminal: Terminal, names: int = 0) -> str:
    """What one reviewer made of the tree, its name in a column of `names` cells; in several lines where it must."""
    mark = outcome_mark(review)
    time = duration(review.duration_ms)
    left = _left(terminal.mark(mark), review.name, time, names or name_width([review.name]), terminal)
    most = _REASON_LINES if mark == "unreviewed" else 2 if review.name == STATIC else 1
    columns, detail = _columns(review, terminal), _detail(review, terminal)
    lines = _beside(f"{left}{pad(_result(review), _RESULT)}  {columns}", detail, terminal, most)
    lines[0] = terminal.paint_at(lines[0], 2, 1, mark_style(mark))
    return "\n".join(lines)


def _left(mark: str, name: str, time: str, names: int, terminal: Terminal) -> str:
    """Mark, name and time, as wide in each row; the name gives way where the terminal is narrow."""
    room = max(4, min(names, terminal.width - len("  ? ") - 2 - _TIME - 3 - _RESULT))
    return f"  {mark} {pad(terminal.clip(name, room), room)}  {pad(time, _TIME, right=True)}   "


def outcome_mark(review: Review) -> Mark:
    """Whether it reviewed, not what it found."""
    return "pass" if did_review(review) else "unreviewed" if review.verdict == "unreviewed" else "skipped"


def _result(review: Review) -> str:
    if did_review(review):
        return plural(len(review.findings), "finding") if review.findings else "no findings"
    return "not reviewed" if review.verdict == "unreviewed" else "no files"


def _detail(review: Review, terminal: Terminal) -> str:
    """Why it did not review, else how much it read; an agent may add a word, the built-in checks say it themselves."""
    if review.verdict == "unreviewed":
        return terminal.sentence(review.reason or review.outcome)
    read = f"{plural(len(review.reviewed), 'file')} {'checked' if review.name == STATIC else 'read'}"
    note = terminal.sentence(review.note)
    if review.name == STATIC:
        return note or read
    said = f'it says "{note}"' if note else ""
    if _columns(review, terminal):
        return said
    return "; ".join(filter(None, (", ".join([read, *words.price(review.usage)]), said)))


def _columns(review: Review, terminal: Terminal) -> str:
    """How much an agent read and what that cost, in columns; "" where nothing is known, or there is no room."""
    price = words.price(review.usage)
    if review.verdict == "unreviewed" or not price or terminal.width < _IN_COLUMNS:
        return ""
    read = f"{plural(len(review.reviewed), 'file')} read"
    return "   ".join([f"{read:<{_READ}}{price[0]:>{_TOKENS}}", *price[1:], ""])


def _beside(left: str, detail: str, terminal: Terminal, most: int) -> list[str]:
    """The detail in the last column, or below where that would be too narrow; no more than `most` lines of it."""
    if not detail:
        return [left.rstrip()]
    column = cells(left)
    below = column + min(_DETAIL_LEAST, cells(detail)) > terminal.width
    indent = "    " if below else " " * column
    room = terminal.width - len(indent)
    detail = terminal.clip(detail, room if most == 1 else most * (room - _RAGGED))
    lines = wrap(detail, terminal.width, first=indent if below else left, rest=indent)
    return [left.rstrip(), *lines] if below else lines


def live_rows(states: Sequence[Progress], terminal: Terminal, frame: int = 0) -> list[str]:
    """A line for each reviewer and one for Ctrl-C; none wider than the terminal, so that they can be redrawn."""
    names = name_width([state.name for state in states])
    rows = [_live_row(state, terminal, names, frame) for state in states]
    hint = CTRL_C if len(CTRL_C) <= terminal.width else _CTRL_C_SHORT
    return [*rows, terminal.clip(hint, terminal.width)]


def _live_row(state: Progress, terminal: Terminal, names: int, frame: int) -> str:
    if state.review is not None:
        return _ended_row(state.review, terminal, names)
    left = _left(terminal.mark("running", frame), state.name, elapsed(state.elapsed_s), names, terminal)
    right = f"   {state.cost}" if state.cost else ""
    room = terminal.width - cells(left) - cells(right)
    if room < _RESULT:
        right, room = "", terminal.width - cells(left)
    doing = terminal.clip(terminal.sentence(state.doing), room)
    return terminal.clip(left + (pad(doing, min(room, _DOING)) + right if right else doing), terminal.width).rstrip()


def _ended_row(review: Review, terminal: Terminal, names: int) -> str:
    """The row of a reviewer that has ended before the others, without its last column: that comes with the report."""
    mark = outcome_mark(review)
    left = _left(terminal.mark(mark), review.name, duration(review.duration_ms), names, terminal)
    return terminal.paint_at(terminal.clip(left + _result(review), terminal.width), 2, 1, mark_style(mark))


def log_start(report: Report) -> str:
    """The first line for a log: what is reviewed, and the run's name."""
    against = short_id(report.base.commit or report.base.tree_id)
    return f"git-orch: reviewing {_extent(report)}, against {against}; run {short(report.run_id)}"


def log_still(name: str, elapsed_s: float) -> str:
    """The line that shows a log's reader that the reviewer lives."""
    return f"git-orch: {name}: still reviewing, {elapsed(elapsed_s)}"


def log_waits(name: str, reason: str) -> str:
    """The line for a log when a reviewer cannot begin yet."""
    return f"git-orch: {name}: {shown(reason)}"


def log_row(review: Review) -> str:
    """The line for a log when a reviewer has ended."""
    if review.verdict == "unreviewed":
        return f"git-orch: {review.name}: not reviewed: {shown(' '.join((review.reason or review.outcome).split()))}"
    return f"git-orch: {review.name}: {_result(review)}, {duration(review.duration_ms)}"
