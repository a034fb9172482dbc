"""What earlier reviews said of the files at hand and nobody has closed: told to the next review, so that it can answer.

`$ORCH_DIR/earlier.json`: `{"schema_version": "1", "findings": [{id, path, start_line, end_line, severity, rule,
message, reviewer, state, why}]}`, `state` being `open`, `gone` (its lines are no more) or `disputed` (`why` says why).
Which ones a run was told of stands in its `handed.json`: a review that was told of a finding and is silent lets go of
it.
"""

from __future__ import annotations

import os

from git_orch import anchors, atomic, decisions, jsontext, lineage, runs
from git_orch.findings import Gone, Moved
from git_orch.model import SCHEMA_VERSION, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from git_orch.decisions import Decisions
    from git_orch.lineage import Step
    from git_orch.model import Finding, Json
    from git_orch.store import Store

FILE = "earlier.json"
_MOST = 200


class Earlier(Record):
    """A finding of an earlier run, at its lines in the tree at hand, which are none where it is gone."""

    finding: Finding
    gone: bool = False
    disputed: str = ""

    def to_json(self) -> Json:
        """The finding as a reviewer is told it."""
        names = ("id", "path", "start_line", "end_line", "severity", "rule", "message", "reviewer")
        state = "disputed" if self.disputed else "gone" if self.gone else "open"
        return {**{name: getattr(self.finding, name) for name in names}, "state": state, "why": self.disputed}


def of_run(
    durable: str, store: Store, run_id: str, tree: str, contents: Mapping[str, tuple[str, str]]
) -> tuple[Earlier, ...]:
    """What runs before this one said of its paths, whose contents before and after are given; the newest 200."""
    steps = lineage.read(os.path.join(durable, "runs"), store, set(contents), before=run_id)
    decided = decisions.read(durable)
    found: dict[str, Earlier] = {}
    for step in reversed(steps):
        unsaid = [each for each in _of_lineage(step, steps, contents) if each.fingerprint not in found]
        unsaid = [each for each in unsaid if not decided.dismissed(each.fingerprint)]
        unsaid = [each for each in unsaid if not lineage.let_go(each, step, steps)]
        found.update(_here(store, step, tree, unsaid, decided))
    return tuple(found.values())[:_MOST]


def hand_over(run_dir: str, folder: str, found: Sequence[Earlier]) -> None:
    """The request in the folder tells of them, and the run's records that it did; where they cannot, of none."""
    try:
        runs.write(run_dir, lineage.HANDED, _handed(found))
    except OSError:  # a full disk: no reason not to review, but silence must not count as an answer then
        found = ()
    told = {"schema_version": SCHEMA_VERSION, "findings": [each.to_json() for each in found]}
    atomic.write(os.path.join(folder, FILE), jsontext.dumps(told).encode("ascii"))


def _handed(found: Sequence[Earlier]) -> Json:
    fingerprints = [each.finding.fingerprint for each in found]
    contested = [each.finding.fingerprint for each in found if each.disputed]
    return {"schema_version": SCHEMA_VERSION, "fingerprints": fingerprints, "contested": contested}


def _of_lineage(step: Step, steps: Sequence[Step], contents: Mapping[str, tuple[str, str]]) -> list[Finding]:
    """The step's findings on paths whose content leads to the one at hand, or which begins where that does."""
    found = []
    for finding in step.findings:
        if finding.path not in step.contents or finding.path not in contents:
            continue
        before, after = step.contents[finding.path]
        old, new = contents[finding.path]
        edges = [(b, a) for a, b, _ in lineage.ways(steps, finding.path)]
        if before == old or after == new or after in lineage.reachable(edges, old):
            found.append(finding)
    return found


def _here(store: Store, step: Step, tree: str, found: Sequence[Finding], decided: Decisions) -> dict[str, Earlier]:
    placed = {}
    for finding, anchor in zip(found, anchors.stand(store, step.evidence, tree, found), strict=True):
        dispute = decided.disputed(finding.fingerprint)
        why = dispute.why if dispute else ""
        if isinstance(anchor, Gone):
            placed[finding.fingerprint] = Earlier(finding=finding, gone=True, disputed=why)
            continue
        shift = anchor.line - finding.start_line
        path = anchor.path if isinstance(anchor, Moved) else finding.path
        end = finding.end_line + shift if finding.end_line else 0
        present = finding.replace(path=path, start_line=anchor.line, end_line=end)
        placed[finding.fingerprint] = Earlier(finding=present, disputed=why)
    return placed
