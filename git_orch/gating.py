"""A gate at work: reads what is on record, waits for runs that live, has the built-in checks look at the commit."""

from __future__ import annotations

import os
import sys
import time

from git_orch import anchors, decisions, gate, lineage, notes, registry, runs, shared, target
from git_orch.config import BUILT_IN
from git_orch.errors import OrchError
from git_orch.formats import gate as printed
from git_orch.formats.gate import Answer
from git_orch.gate import Judgement, Policy, Tip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from git_orch.config import Settings
    from git_orch.findings import Anchor
    from git_orch.lineage import Step
    from git_orch.model import Finding
    from git_orch.workspace import Workspace

    Tell = Callable[[Judgement, float], None]

WAIT_S = 300.0
WAIT_IN_CI_S = 600.0
CHECK_S = 90.0  # the built-in checks have a minute of their own
POLL_S = 0.05
LOOK_S = 1.0
STILL_S = 30.0
UP = "\x1b[1A\x1b[J"  # to the beginning of the line before, which is empty then


def policy(settings: Settings) -> Policy:
    """What the settings ask of a commit.

    Raises:
        UsageError: they name a reviewer that there is none of, or a shared file with others in it is not trusted.
    """
    if settings.untrusted:
        raise shared.refusal(settings.untrusted)
    reviewers = tuple(settings.reviewer(name) for name in settings.reviewers)
    return Policy(reviewers=reviewers, fail_on=settings.fail_on, exact=settings.gate_match == "exact")


def judge(workspace: Workspace, tip: Tip, asked: Policy) -> Judgement:
    """The judgement of this moment."""
    paths = {path for path, _, _ in tip.changes}
    live = _live_steps(workspace, asked) if paths else []  # first: what ends meanwhile is on record then
    ended = lineage.read(workspace.layout.runs, workspace.store, paths) if paths else []
    known = {step.run_id for step in ended}
    steps = [*ended, *(step for step in live if step.run_id not in known)]
    where = _Standing(workspace, tip)
    return gate.judge(tip, asked, steps, decisions.read(workspace.layout.durable), where)


def settle(workspace: Workspace, tip: Tip, asked: Policy, wait_s: float, tell: Tell) -> Judgement:
    """The judgement once the runs that it waits for have ended, or their time was up: then it is `pending`.

    Where the tree that was reviewed is not the commit's very own, the built-in checks look at that one first.
    """
    deadline = time.monotonic() + wait_s
    checked = False
    while True:
        judgement = judge(workspace, tip, asked)
        if judgement.state == "pending":
            if time.monotonic() >= deadline:
                return judgement
            _wait(workspace, judgement, deadline, tell)
        elif judgement.state != "allow" or judgement.very_tree or not _wants_static(asked):
            return judgement
        elif checked:
            why = f"{BUILT_IN} could not check the commit itself"
            return judgement.replace(state="unreviewed", reason=why)
        else:
            checked = True
            run_id = _check(workspace, tip, asked)
            checking = judgement.replace(state="pending", reason=f"{BUILT_IN} checks it", run_ids=(run_id,))
            _wait(workspace, checking, time.monotonic() + CHECK_S, tell)


def review_command(workspace: Workspace, tip: Tip) -> str:
    """What to type to have the commit reviewed as the gate asks it."""
    git = workspace.git
    name = tip.name if target.commit_of(git, tip.name) == tip.commit else tip.commit[:12]
    if not tip.base.commit:
        return f"git orch review --all-files {name}"
    try:
        usual = target.base_of_commit(workspace, name, tip.commit)
    except OrchError:
        usual = None
    if usual is not None and usual.tree_id == tip.base.tree_id:
        return f"git orch review {name}"
    return f"git orch review {tip.base.commit[:12]}..{name}"


def answers(
    workspace: Workspace, chosen: Sequence[Tip], asked: Policy, wait_s: float, *, allow: str, at_push: bool
) -> list[Answer]:
    """The answer to each commit, after the runs that it waits for."""
    tell = Waiting(at_push=at_push)
    return [_answer(workspace, settle(workspace, tip, asked, wait_s, tell), allow) for tip in chosen]


def usual_wait_s(env: Mapping[str, str]) -> float:
    """How long a gate waits for a run that lives, if nobody says otherwise."""
    return WAIT_IN_CI_S if env.get("CI") else WAIT_S


def _answer(workspace: Workspace, judgement: Judgement, allow: str) -> Answer:
    lacks = judgement.state in ("stale", "unreviewed")
    return Answer(
        judgement=judgement,
        review=review_command(workspace, judgement.tip) if lacks else "",
        passes=judgement.state == "allow" or (judgement.state != "block" and allow == "unreviewed"),
        notes=_notes(workspace, judgement.tip.commit) if workspace.settings.notes else (),
    )


def _notes(workspace: Workspace, commit: str) -> tuple[str, ...]:
    """What is noted of the commit, and of others with the same patch: for whoever reads the answer."""
    own = notes.of(workspace.git, commit)
    found = notes.carried(workspace.git, workspace.store, commit)
    carried = [f"of {other[:7]}, the same patch: {said}" for other, said in found]
    return (*own, *carried)


class Waiting:
    """Tells on standard error what is waited for: one line that counts on a terminal, one now and then elsewhere."""

    def __init__(self, *, at_push: bool) -> None:
        self._at_push = at_push
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._told = -STILL_S

    def __call__(self, judgement: Judgement, age_s: float) -> None:
        """The line stands there, if it is time for it."""
        line = printed.waiting(judgement, age_s, at_push=self._at_push)
        is_first = self._told < 0
        if self._live:
            _tell(f"{'' if is_first else UP}{line}\n")
        elif is_first or age_s - self._told >= STILL_S:
            _tell(line + "\n")
        else:
            return
        self._told = age_s


class _Standing:
    """Where findings of a step stand in the commit: asked of git once a step, whatever their number."""

    def __init__(self, workspace: Workspace, tip: Tip) -> None:
        self._workspace = workspace
        self._tip = tip
        self._known: dict[tuple[str, str], Anchor] = {}

    def __call__(self, step: Step, found: Sequence[Finding]) -> Sequence[Anchor]:
        if any((step.run_id, finding.fingerprint) not in self._known for finding in found):
            self._ask(step)
        return [self._known[step.run_id, finding.fingerprint] for finding in found]

    def _ask(self, step: Step) -> None:
        there = [finding for finding in step.findings if finding.path in step.contents]
        stand = anchors.stand(self._workspace.store, step.evidence, self._tip.tree_id, there)
        for finding, anchor in zip(there, stand, strict=True):
            self._known[step.run_id, finding.fingerprint] = anchor


def _live_steps(workspace: Workspace, asked: Policy) -> list[Step]:
    """The runs that live and ask as the gate does, each as if it had read everything."""
    found = []
    for run_id in workspace.book.run_ids():
        intent = workspace.book.intent(run_id)
        if isinstance(intent, registry.Refused) or intent.pathspec or runs.has_ended(intent.run_dir):
            continue
        found.append((run_id, intent.base_tree_id, intent.tree_id, intent.reviewers))
    wanted = {each.name for each in asked.reviewers}
    useful = [each for each in found if wanted & {reviewer.name for reviewer in each[3]}]
    return lineage.of_live(workspace.store, useful)


def _wants_static(asked: Policy) -> bool:
    return any(each.name == BUILT_IN for each in asked.reviewers)


def _check(workspace: Workspace, tip: Tip, asked: Policy) -> str:
    """The run by which the built-in checks look at the commit's own tree: a new one, or one that stands."""
    # Most gates get by without, and these are a third of what a gate would load.
    from git_orch import dedup, launch
    from git_orch.place import temp_root

    static = tuple(each for each in asked.reviewers if each.name == BUILT_IN)
    order = launch.Order(reviewers=static, fail_on=asked.fail_on, client=launch.BY_HAND)
    wanted = target.Target(tree_id=tip.tree_id, base=tip.base, subject=tip.name, commit=tip.commit)
    key = launch.dedup_key(wanted, order)
    standing = dedup.standing(workspace.layout, key)
    if standing is not None:
        return standing.run_id
    root = temp_root(workspace.env)
    intent = launch.prepare(workspace.layout, workspace.settings, wanted, order, root, workspace.book.instance)
    try:
        lock = workspace.book.publish(intent)
    except BaseException:
        runs.remove(intent.run_dir)
        raise
    dedup.claim(workspace.layout, key, intent.run_id)
    launch.by_exec(workspace.book, intent, lock, workspace.env)
    return intent.run_id


def _wait(workspace: Workspace, judgement: Judgement, deadline: float, tell: Tell) -> None:
    """One of the runs has ended, or the time is up."""
    began = time.monotonic()
    looked = told = 0.0
    while time.monotonic() < deadline and all(_lives(workspace, run_id) for run_id in judgement.run_ids):
        now = time.monotonic()
        if now - looked > LOOK_S:
            looked = now
            if now - began > LOOK_S:
                _bury_dead(workspace, judgement.run_ids)
        if now - told > LOOK_S:
            told = now
            tell(judgement, _age_s(workspace, judgement.run_ids))
        time.sleep(POLL_S)


def _lives(workspace: Workspace, run_id: str) -> bool:
    return os.path.exists(workspace.book.path(run_id, "json"))


def _bury_dead(workspace: Workspace, run_ids: Sequence[str]) -> None:
    from git_orch import reaper  # only where one waits

    for run_id in run_ids:
        reaper.sweep_one(workspace, run_id)  # does nothing to a run that lives


def _age_s(workspace: Workspace, run_ids: Sequence[str]) -> float:
    """For how long the oldest of the runs has gone on."""
    ages = [0.0]
    for run_id in run_ids:
        try:
            ages.append(time.time() - os.stat(workspace.book.path(run_id, "json")).st_mtime)
        except OSError:
            continue
    return max(ages)


def _tell(text: str) -> None:
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.buffer.write(text.encode(encoding, "backslashreplace"))
    sys.stderr.buffer.flush()
