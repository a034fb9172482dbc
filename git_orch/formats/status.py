"""Where one is: `git orch status`.

The records hold what the command has found out; a part that is empty has no line.
"""

from __future__ import annotations

from git_orch.formats.advice import Advice, next_steps
from git_orch.formats.columns import Cell, Column, table
from git_orch.formats.found import FoundRow, found_lines
from git_orch.formats.paragraphs import joined, plain, sentences
from git_orch.formats.terminal import Terminal, mark_style
from git_orch.formats.words import age, short_id
from git_orch.model import Record
from git_orch.runs import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.formats.terminal import Mark

_RUN_COLUMNS = (
    Column(title="RUN"),
    Column(title="AGE"),
    Column(title="FROM", rank=2, least=6),
    Column(title="WHAT", rank=1, least=20, cut="middle"),
    Column(title="BY", rank=3, least=8),
    Column(title="STATE", least=14),
)


class RunRow(Record):
    """A run in the list: `from_` is who began it ("claude Stop", "you"), `by` its reviewers, `state` a few words."""

    run_id: str
    age_s: float
    from_: str
    what: str
    by: str
    state: str
    mark: Mark = ""


class StatusView(Record):
    """What `status` shows. `lines` are sentences below the first; `hooks`, `today` and `more` come as they are printed.

    `branch` is empty where HEAD is detached, `commit` where there is no commit yet, `tree` where none was taken.
    """

    branch: str = ""
    commit: str = ""
    tree: str = ""
    lines: tuple[str, ...] = ()
    found: tuple[FoundRow, ...] = ()
    more: str = ""
    rows: tuple[RunRow, ...] = ()
    hooks: str = ""
    today: str = ""
    advice: tuple[Advice, ...] = ()


def status_text(view: StatusView, terminal: Terminal) -> str:
    """Branch and tree, what holds of them, open findings, runs, hooks, what the day has cost, what to type."""
    where = [*_where(view, terminal), *sentences(view.lines, terminal)]
    more = sentences([view.more] if view.more else [], terminal)
    found = ["Open findings", *found_lines(view.found, terminal), *more] if view.found or more else []
    runs = ["Runs", *_run_table(view.rows, terminal)] if view.rows else []
    tail = [line for text in (view.hooks, view.today) if text for line in plain(text, terminal)]
    return joined([where, found, runs, tail, next_steps(view.advice, terminal)])


def _where(view: StatusView, terminal: Terminal) -> list[str]:
    place = f"On branch {view.branch}" if view.branch else f"On no branch, at {short_id(view.commit)}"
    unborn = "" if view.commit or not view.branch else " (no commit yet)"
    tree = f", working tree {short_id(view.tree)}" if view.tree else ""
    return plain(f"{place}{unborn}{tree}", terminal)


def _run_table(rows: Sequence[RunRow], terminal: Terminal) -> list[str]:
    return table(_RUN_COLUMNS, [_run_cells(row, terminal) for row in rows], terminal)


def _run_cells(row: RunRow, terminal: Terminal) -> list[Cell]:
    texts = (short(row.run_id), age(row.age_s), row.from_, row.what, row.by)
    state = f"{terminal.mark(row.mark)} {terminal.sentence(row.state)}"
    return [
        *(Cell(text=terminal.sentence(text)) for text in texts),
        Cell(text=state, style=mark_style(row.mark), painted=1),
    ]
