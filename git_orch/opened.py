"""Which findings of a worktree's runs are open: reported, closed by nobody, and where they stand in another tree."""

from __future__ import annotations

from git_orch import anchors, lineage
from git_orch.model import SEVERITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.decisions import Decisions
    from git_orch.findings import Anchor
    from git_orch.lineage import Step
    from git_orch.model import Finding, Severity
    from git_orch.store import Store


def unclosed(steps: Sequence[Step], decided: Decisions) -> list[tuple[Step, list[Finding]]]:
    """Each finding once, at the newest run that reported it, that no person has dismissed and no later review let go.

    Newest run first. It is as grave as it ever was: outside a later run's difference it counts less, and is no less
    true.
    """
    known: set[str] = set()
    grave = _gravest(steps)
    found = []
    for step in reversed(steps):
        fresh = [finding for finding in step.findings if finding.fingerprint not in known]
        known.update(finding.fingerprint for finding in fresh)
        left = [each for each in fresh if not decided.dismissed(each.fingerprint)]
        left = [each for each in left if not lineage.let_go(each, step, steps)]
        if left:
            found.append((step, [each.replace(severity=grave[each.fingerprint]) for each in left]))
    return found


def stand(store: Store, step: Step, found: Sequence[Finding], tree: str) -> list[Anchor]:
    """For each of the step's findings where it stands in the tree."""
    reviewed, is_whole = reviewed_tree(store, step.run_id, step.tree_id)
    return anchors.stand(store, reviewed or step.evidence, tree, found, renames=is_whole)


def reviewed_tree(store: Store, run_id: str, tree_id: str) -> tuple[str, bool]:
    """The tree that the run reviewed, and True; once it is let go, what was kept of it as evidence."""
    if store.git().attempt("cat-file", "-e", tree_id).code == 0:
        return tree_id, True
    evidence = store.evidence(run_id)
    return (evidence.tree if evidence else ""), False


def _gravest(steps: Sequence[Step]) -> dict[str, Severity]:
    found: dict[str, Severity] = {}
    for finding in (finding for step in steps for finding in step.findings):
        known = (finding.severity, found.get(finding.fingerprint, finding.severity))
        found[finding.fingerprint] = min(known, key=SEVERITIES.index)
    return found
