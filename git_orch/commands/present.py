"""Findings against what is there now: still there, moved, gone, and which of them are open in this worktree."""

from __future__ import annotations

from itertools import islice

from git_orch import anchors, decisions, lineage, opened, runs, snapshot, store
from git_orch.commands import history
from git_orch.errors import OrchError
from git_orch.findings import Gone, Moved, Still
from git_orch.formats.found import FoundRow
from git_orch.formats.words import plural
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.commands.looking import Look
    from git_orch.decisions import Decisions
    from git_orch.findings import Anchor
    from git_orch.lineage import Step
    from git_orch.model import Finding, Report
    from git_orch.store import Store

_MOST_RUNS = 30


class Openings(Record):
    """What is open in a worktree: the findings that are no nits, at their present lines, and how many there are beside.

    `run_id` is the newest run that reported one of them.
    """

    rows: tuple[FoundRow, ...] = ()
    nits: int = 0
    gone: int = 0
    dismissed: int = 0
    run_id: str = ""

    @property
    def more(self) -> str:
        """`1 nit, 2 gone since, 1 dismissed (git orch show 9f3a)`; "" where there is no more."""
        counts = (
            plural(self.nits, "nit") if self.nits else "",
            f"{self.gone} gone since" if self.gone else "",
            f"{self.dismissed} dismissed" if self.dismissed else "",
        )
        told = ", ".join(filter(None, counts))
        return f"{told} (git orch show {runs.short(self.run_id)})" if told else ""


def tree_now(seen: Look) -> str:
    """The tree-id of the worktree now; "" where nothing was ever reviewed here, or it cannot be read in time."""
    kept = store.open_existing(seen.layout, seen.env)
    if kept is None or not seen.layout.worktree:
        return ""
    try:
        return snapshot.in_time(seen.layout, kept, seen.settings, seen.env).tree_id
    except OrchError:
        return ""


def rows(seen: Look, found: Report, tree: str) -> tuple[FoundRow, ...]:
    """A run's findings, each with what became of it in the tree; as they were reported where that is not known."""
    kept = store.open_existing(seen.layout, seen.env)
    if kept is None or not tree or not found.findings:
        return tuple(FoundRow(finding=finding) for finding in found.findings)
    reviewed, is_whole = opened.reviewed_tree(kept, found.run_id, found.tree_id)
    if not reviewed:
        return tuple(FoundRow(finding=finding) for finding in found.findings)
    stand = anchors.stand(kept, reviewed, tree, found.findings, renames=is_whole)
    return tuple(_row(finding, anchor) for finding, anchor in zip(found.findings, stand, strict=True))


def openings(seen: Look, tree: str) -> Openings:
    """What the last runs of this worktree found, each finding once, that nobody has closed and that is still there."""
    kept = store.open_existing(seen.layout, seen.env)
    if kept is None:
        return Openings()
    here = {str(facts["run_id"]) for facts in islice(history.here(seen.layout, seen.book), _MOST_RUNS)}
    steps = lineage.read(seen.layout.runs, kept, only=here)
    return _counted(kept, steps, decisions.read(seen.layout.durable), tree)


def _counted(kept: Store, steps: Sequence[Step], decided: Decisions, tree: str) -> Openings:
    reported = {finding.fingerprint for step in steps for finding in step.findings}
    found = [row for step, left in opened.unclosed(steps, decided) for row in _rows_of(kept, step, left, tree)]
    there = [row for row in found if row.state != "gone"]
    open_ones = [row.replace(state="") for row in there if row.finding.severity != "nit"]
    return Openings(
        rows=tuple(sorted(open_ones, key=lambda row: (row.finding.severity != "blocking", row.finding.path))),
        nits=len(there) - len(open_ones),
        gone=len(found) - len(there),
        dismissed=sum(decided.dismissed(fingerprint) is not None for fingerprint in reported),
        run_id=next((step.run_id for step in reversed(steps) if step.findings), ""),
    )


def _rows_of(kept: Store, step: Step, found: Sequence[Finding], tree: str) -> list[FoundRow]:
    if not tree:
        return [FoundRow(finding=finding) for finding in found]
    stand = opened.stand(kept, step, found, tree)
    return [_row(finding, anchor) for finding, anchor in zip(found, stand, strict=True)]


def _row(finding: Finding, anchor: Anchor) -> FoundRow:
    match anchor:
        case Gone():
            return FoundRow(finding=finding, state="gone")
        case Still():
            return FoundRow(finding=finding, state="still there")
        case Moved(line=line, path=path):
            shift = line - finding.start_line
            end = finding.end_line + shift if finding.end_line else 0
            present = finding.replace(path=path, start_line=line, end_line=end)
            return FoundRow(finding=present, state="moved", was_line=finding.start_line if shift else 0)
