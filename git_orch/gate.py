"""The gate: whether a commit may go out, decided from what was reviewed, content by content. Pure: it looks nowhere.

A run covers a path where it compared the base's content of that path with the commit's; several runs do so together
where one begins with the content that another ended with. So it is of no account how the commits were cut, squashed or
rebased, and a change that nobody read is seen in any of them.
"""

from __future__ import annotations

from git_orch.config import BUILT_IN
from git_orch.findings import Gone
from git_orch.lineage import ABSENT, digest_of, reachable, ways
from git_orch.model import SEVERITIES, Base, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Literal

    from git_orch.decisions import Decisions
    from git_orch.findings import Anchor
    from git_orch.lineage import Step
    from git_orch.model import Finding, ReviewerSettings, Threshold

    State = Literal["allow", "block", "pending", "stale", "unreviewed"]
    Where = Callable[[Step, Sequence[Finding]], Sequence[Anchor]]

STATES: tuple[State, ...] = ("allow", "block", "pending", "stale", "unreviewed")


class Tip(Record):
    """A commit at the gate. `changes` are its paths that differ from the base: path, content there, content here."""

    name: str
    commit: str
    tree_id: str
    base: Base
    changes: tuple[tuple[str, str, str], ...] = ()


class Policy(Record):
    """What the gate asks for. `exact`: only reviews of the commit's very tree count."""

    reviewers: tuple[ReviewerSettings, ...]
    fail_on: Threshold = "blocking"
    exact: bool = False


class Open(Record):
    """A finding that stands in the commit, with its lines there; `disputed` is an agent's reason against it."""

    finding: Finding
    run_id: str
    disputed: str = ""


class Gap(Record):
    """A changed path, and the reviewers that have not read it as it is."""

    path: str
    reviewers: tuple[str, ...]


class Judgement(Record):
    """What the gate says of a commit, and why.

    `run_ids` are the runs that it rests on, or waits for. `very_tree`: one of them had the commit's tree itself.
    """

    state: State
    tip: Tip
    reason: str = ""
    run_ids: tuple[str, ...] = ()
    open: tuple[Open, ...] = ()
    gaps: tuple[Gap, ...] = ()
    very_tree: bool = False


def judge(tip: Tip, policy: Policy, steps: Sequence[Step], decisions: Decisions, where: Where) -> Judgement:
    """The judgement of a commit by the runs that have to do with its paths, ended and live, oldest first.

    `where` tells at which lines of the commit findings of a step stand now.
    """
    if not tip.changes:
        return Judgement(state="allow", tip=tip, reason=f"nothing in it is new to {tip.base.name}", very_tree=True)
    allowed = decisions.allowed(tip.commit)
    if allowed is not None:
        return Judgement(state="allow", tip=tip, reason=f"a person allowed it: {allowed.why}", very_tree=True)
    return _Case(tip, policy, steps, decisions, where).judge()


class _Case:
    """One commit, while it is judged."""

    def __init__(self, tip: Tip, policy: Policy, steps: Sequence[Step], decisions: Decisions, where: Where) -> None:
        self.tip = tip
        self.decisions = decisions
        self.where = where
        never = policy.fail_on == "never"
        self.grave = () if never else SEVERITIES[: SEVERITIES.index(policy.fail_on) + 1]
        self.exact = policy.exact
        self.reviewers = {each.name: digest_of(each) for each in policy.reviewers if each.required}
        usable = [step for step in steps if not policy.exact or step.tree_id == tip.tree_id]
        self.ended = [step for step in usable if not step.live]
        self.live = [step for step in usable if step.live]
        self.on_record = [step for step in steps if not step.live]
        self.counting = {step.run_id for step in self.ended}
        self.known: dict[str, list[Step]] = {}

    def judge(self) -> Judgement:
        gaps, opened = self._gaps(self.ended), self._open()
        live = self._worth_waiting(gaps, opened)
        if live:
            return self._says("pending", "its review is running", live, opened, gaps)
        if opened:
            return self._says("block", _counted(opened), [], opened, gaps)
        if gaps:
            return self._says(self._short_of(gaps), self._why_short(gaps), [], (), gaps)
        steps = self._resting_on()
        very = [step for step in steps if step.tree_id == self.tip.tree_id]
        return self._says("allow", _why_allowed(self.tip, very), very[-1:] or steps, (), ()).replace(
            very_tree=bool(very)
        )

    def _says(
        self, state: State, reason: str, steps: Iterable[Step], opened: tuple[Open, ...], gaps: tuple[Gap, ...]
    ) -> Judgement:
        run_ids = tuple(step.run_id for step in steps)
        return Judgement(state=state, tip=self.tip, reason=reason, run_ids=run_ids, open=opened, gaps=gaps)

    # -- coverage

    def _gaps(self, steps: Sequence[Step]) -> tuple[Gap, ...]:
        found = []
        for path, old, new in self.tip.changes:
            on_path = ways(steps, path)
            missing = tuple(
                name for name, asked in self.reviewers.items() if not _leads(on_path, path, name, asked, old, new)
            )
            if missing:
                found.append(Gap(path=path, reviewers=missing))
        return tuple(found)

    def _worth_waiting(self, gaps: tuple[Gap, ...], opened: tuple[Open, ...]) -> list[Step]:
        """The live runs after which the answer may be another one."""
        if not self.live or not (gaps or opened):
            return []
        news = {path: new for path, _, new in self.tip.changes}
        useful = [step for step in self.live if any(news.get(p) == new for p, (_, new) in step.contents.items())]
        if opened and not all(self._may_close(each, useful, news) for each in opened):
            return []
        return useful if not self._gaps([*self.ended, *useful]) else []

    def _may_close(self, opened: Open, live: Sequence[Step], news: Mapping[str, str]) -> bool:
        """Whether a live run looks at that file after it has changed, or at what an agent disputes."""
        path = opened.finding.path
        found_in = next(step for step in self.on_record if step.run_id == opened.run_id)
        changed = found_in.contents[path][1] != news[path]
        return (changed or bool(opened.disputed)) and any(path in step.contents for step in live)

    def _short_of(self, gaps: tuple[Gap, ...]) -> State:
        """`stale` where each reviewer that is missing has read some of it, as it is or was; else `unreviewed`."""
        missing = {name for gap in gaps for name in gap.reviewers}
        return "stale" if all(self._has_begun(name) for name in missing) else "unreviewed"

    def _has_begun(self, name: str) -> bool:
        return any(step.reads(path, name, self.reviewers[name]) for step, path in self._relevant_reads())

    def _relevant_reads(self) -> list[tuple[Step, str]]:
        return [(step, path) for path, old, new in self.tip.changes for step in self._relevant(path, old, new)]

    def _why_short(self, gaps: tuple[Gap, ...]) -> str:
        total, count = len(self.tip.changes), len(gaps)
        files = f"{count} of {total} changed file{'' if total == 1 else 's'} {'is' if count == 1 else 'are'}"
        missing = {name for gap in gaps for name in gap.reviewers}
        if self.exact and self._short_of(gaps) == "stale":
            return "this very tree was not reviewed, and orch.gate.match is exact"
        if self._short_of(gaps) == "stale":
            return f"{files} not as reviewed"
        begun = [name for name in self.reviewers if name not in missing]
        absent = [name for name in missing if not self._has_begun(name)]
        return f"{' and '.join(sorted(absent))} did not review it" if begun else "no run covers it"

    def _resting_on(self) -> list[Step]:
        """The runs by which every path is covered, oldest first."""
        found = {step.run_id: step for step, path in self._relevant_reads() if self._is_read(step, path)}
        return [found[run_id] for run_id in sorted(found)]

    def _is_read(self, step: Step, path: str) -> bool:
        reviewers = self.reviewers.items()
        return step.run_id in self.counting and any(step.reads(path, name, asked) for name, asked in reviewers)

    # -- findings

    def _relevant(self, path: str, old: str, new: str) -> list[Step]:
        """The runs on the path that go on from the base's content, or that end with what leads to the commit's."""
        if path not in self.known:
            on_path = ways(self.on_record, path)
            edges = [(a, b) for a, b, _ in on_path]
            onward = reachable(edges, old)
            back = reachable([(b, a) for a, b in edges], new)
            self.known[path] = [step for a, b, step in on_path if a in onward or b in back]
        return self.known[path]

    def _open(self) -> tuple[Open, ...]:
        found: dict[str, Open] = {}
        for path, old, new in self.tip.changes:
            if new == ABSENT:
                continue  # what is gone is no fault any more, and that it went is reviewed as a change
            steps = self._relevant(path, old, new)
            edges = [(a, b) for a, b, _ in ways(steps, path)]
            leading = reachable([(b, a) for a, b in edges], new)
            for step in reversed(steps):
                for each in self._of_step(step, path):
                    if each.fingerprint not in found and not self._closed(each, step, steps, leading, (old, new)):
                        found.update(self._standing(each, step, new))
        return tuple(sorted(found.values(), key=lambda each: (each.finding.path, each.finding.start_line)))

    def _of_step(self, step: Step, path: str) -> list[Finding]:
        return [f for f in step.findings if f.path == path and f.severity in self.grave]

    def _closed(
        self, finding: Finding, step: Step, steps: Sequence[Step], leading: set[str], change: tuple[str, str]
    ) -> bool:
        """Whether somebody who may has closed it: a person, or a later review that was told of it and lets it go."""
        if self.decisions.dismissed(finding.fingerprint):
            return True
        later = [each for each in steps if each.run_id > step.run_id and each.reads(finding.path, finding.reviewer)]
        return any(
            not each.says(finding.fingerprint)
            and (_lets_go(finding, step, each, leading) or _checks_again(finding, each, change))
            for each in later
        )

    def _standing(self, finding: Finding, step: Step, new: str) -> dict[str, Open]:
        """The finding at its present lines; nothing where they are gone, which the next review has seen then."""
        there = step.contents[finding.path][1]
        if not finding.start_line and there != new:
            return {}
        (anchor,) = self.where(step, [finding])
        if isinstance(anchor, Gone):
            return {}
        moved = anchor.line - finding.start_line
        dispute = self.decisions.disputed(finding.fingerprint)
        present = finding.replace(start_line=anchor.line, end_line=finding.end_line + moved if finding.end_line else 0)
        disputed = dispute.why if dispute else ""
        return {finding.fingerprint: Open(finding=present, run_id=step.run_id, disputed=disputed)}


def _leads(on_path: Sequence[tuple[str, str, Step]], path: str, name: str, asked: str, old: str, new: str) -> bool:
    """Whether one gets from the base's content to the commit's by steps that this reviewer has read."""
    return new in reachable([(a, b) for a, b, step in on_path if step.reads(path, name, asked)], old)


def _lets_go(finding: Finding, step: Step, later: Step, leading: set[str]) -> bool:
    """Whether a later review, told of the finding, looked at the file as it became, or at a dispute of it."""
    content = later.contents[finding.path][1]
    changed = content != step.contents[finding.path][1]
    return (
        finding.fingerprint in later.handed
        and content in leading
        and (changed or finding.fingerprint in later.contested)
    )


def _checks_again(finding: Finding, later: Step, change: tuple[str, str]) -> bool:
    """Whether the built-in checks looked at this very change: of the same they say the same."""
    return finding.reviewer == BUILT_IN and later.contents[finding.path] == change


def _counted(opened: Sequence[Open]) -> str:
    severities = [each.finding.severity for each in opened]
    worst = "blocking" if "blocking" in severities else severities[0]
    first = opened[0].finding
    place = f"{first.path}:{first.start_line}" if first.start_line else first.path
    more = f", and {len(opened) - 1} more" if len(opened) > 1 else ""
    return f"{len(opened)} {worst} finding{'s' if len(opened) > 1 else ''}: {first.id} {place}{more}"


def _why_allowed(tip: Tip, very: Sequence[Step]) -> str:
    if very:
        return "this very tree was reviewed"
    count = len(tip.changes)
    return f"its {count} changed file{' was' if count == 1 else 's were'} reviewed as {'it is' if count == 1 else 'is'}"
