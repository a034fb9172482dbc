"""The work of a review: `static` first, then the others side by side, each on a tree of its own, to their ends."""

from __future__ import annotations

import os
import time

from git_orch import atomic, earlier, findings, guardian, lineage, runs, snapshot, verdict
from git_orch.admission import Admission, Admitted, Refused
from git_orch.attempt import Attempt, Subject, settled
from git_orch.config import BUILT_IN, STATIC_TIMEOUT_S, is_agent
from git_orch.containment import TIER_NAMESPACE, Containment
from git_orch.containment.probe import probe, without_namespaces
from git_orch.errors import OrchError
from git_orch.git import Git, encode
from git_orch.model import Cancelled, Change, Coverage, Record, ReviewerSettings, Skipped
from git_orch.parents import foreign_configuration
from git_orch.patch import changed_lines
from git_orch.place import check_space
from git_orch.reviewers.answers import Unusable
from git_orch.series import Series

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from git_orch.earlier import Earlier
    from git_orch.model import Finding, Json, Review, Status
    from git_orch.registry import Intent
    from git_orch.store import Changed, Store

    class Run(Protocol):
        """What the work may ask of the run that it belongs to."""

        @property
        def lock_fd(self) -> int:
            """The run's lock of this moment, for a guardian to share."""

        def enter(self, status: Status, jobs: tuple[Json, ...] = ()) -> None:
            """The run's state is that one, with these jobs."""

        def note(self, event: str, **facts: object) -> None:
            """The journal has the event."""

        def asked(self) -> Cancelled | None:
            """Whether somebody asked the run to end."""

        def keep_evidence(self, changed: list[Changed] | None = None) -> None:
            """Both sides of the difference are in the store."""


TICK_S = 1.0
WAITING_TICK_S = 0.5  # while an agent waits for the session's quiet or for a seat
OVERTAKEN = "superseded-by a prompt"
_GITLINK = "160000"
_SECRETS = "secret"  # how the rules of the built-in checks begin that find one


class Reviewed(Record):
    """What all reviewers of a run came to. `fault` is the code of the error for which none of them started."""

    reviews: tuple[Review, ...] = ()
    findings: tuple[Finding, ...] = ()
    coverage: Coverage = Coverage()
    change: Change = Change()
    materialized: str = ""
    timings_ms: Mapping[str, int] = {}
    cancelled: Cancelled | None = None
    fault: str = ""
    jobs: tuple[Json, ...] = ()


class Work:
    """One review under way, on behalf of a run."""

    def __init__(self, intent: Intent, store: Store, key: bytes, env: Mapping[str, str], run: Run) -> None:
        self._intent = intent
        self._store = store
        self._key = key
        self._env = dict(env)
        self._run = run
        self._attempts: list[Attempt | Series] = []
        self._scouts: list[Attempt | Series] = []
        self._waiting: list[Series] = []
        self._admission = Admission(intent, env)
        self._is_told_to_wait = False
        self._cancelled: Cancelled | None = None
        self._size = Change()
        self._hidden: tuple[Skipped, ...] = ()

    def run(self) -> Reviewed:
        """Every reviewer has ended, and nothing of any of them is left.

        Their trees are still there, but for one that is parked.
        """
        intent = self._intent
        changed, patch = self._store.difference(intent.base_tree_id, intent.tree_id, intent.pathspec)
        subject = self._subject(changed, patch)
        begun = time.monotonic()
        try:
            if changed:
                self._review(subject, changed)
            return self._reviewed(subject, changed, int((time.monotonic() - begun) * 1000))
        except BaseException:
            self._end_all()
            raise

    def _review(self, subject: Subject, changed: list[Changed]) -> None:
        first = [settings for settings in self._intent.reviewers if settings.name == BUILT_IN]
        rest = [
            Series(settings, subject, changed) if is_agent(settings) else Attempt(settings, subject)
            for settings in self._intent.reviewers
            if settings.name != BUILT_IN
        ]
        self._attempts = [Attempt(settings, subject) for settings in first]
        if not first and any(attempt.settings.network for attempt in rest):
            # Nobody has asked for its opinion, but nothing goes out before it has looked.
            self._scouts = [Attempt(ReviewerSettings(name=BUILT_IN, timeout_s=STATIC_TIMEOUT_S), subject)]
        begun = self._scouts + self._attempts
        self._attempts += rest
        self._start(begun)
        if begun:
            self._meanwhile(changed)
            self._watch(begun)
        if self._cancelled is None:
            self._hold_back(rest)
            self._start([attempt for attempt in rest if not isinstance(attempt, Series)])
            self._line_up([attempt for attempt in rest if isinstance(attempt, Series)])
        if not begun:
            self._meanwhile(changed)
        self._watch(rest)

    def _subject(self, changed: list[Changed], patch: bytes) -> Subject:
        atomic.write(os.path.join(self._intent.run_dir, "changes.patch"), patch)
        self._size = _size(patch, len(changed))
        self._run.note("review.change", **self._size.fields())
        check_space(self._intent.temp_root, 3 * len(patch))
        return Subject(
            intent=self._intent,
            store=self._store,
            key=self._key,
            env=self._env,
            patch=patch,
            offered=tuple(change.path for change in changed if _is_offered(change)),
            containment=self._containment(),
            earlier=self._earlier(changed),
            foreign=foreign_configuration(self._intent.temp_root, home=self._env.get("HOME", "")) or "",
        )

    def _earlier(self, changed: list[Changed]) -> tuple[Earlier, ...]:
        """What is told of earlier reviews; nothing where that cannot be read, which is no reason not to review."""
        contents = {change.path: lineage.of_change(change) for change in changed}
        intent = self._intent
        try:
            return earlier.of_run(intent.durable, self._store, intent.run_id, intent.tree_id, contents)
        except OrchError as error:
            self._run.note("review.earlier-unknown", reason=error.message)
            return ()

    def _containment(self) -> Containment:
        if not self._intent.sandbox:
            return without_namespaces("checkout-writable: orch.review.sandbox is false")
        root = self._intent.temp_root
        found = probe(root, os.path.join(root, "containment.json"))
        if found.tier == TIER_NAMESPACE:
            return found
        return found.replace(degraded_reason=f"checkout-writable: {found.degraded_reason}")

    # -- the loop

    def _start(self, attempts: list[Attempt | Series]) -> None:
        """They run side by side, but for those that could not be started."""
        for attempt in attempts:
            if self._is_cancelled() or attempt.ended:
                continue
            self._run.note("reviewer.materializing", reviewer=attempt.settings.name)
            attempt.materialize()
            if self._is_cancelled():  # a large tree takes its time, and a reviewer may cost money
                continue
            attempt.launch(self._run.lock_fd)
            self._run.note("reviewer.started", reviewer=attempt.settings.name, job=attempt.job)
            self._enter()

    def _end_all(self) -> None:
        """Nothing of any reviewer is left: whatever went wrong here, nothing is recorded before, and no tree goes."""
        attempts = self._scouts + self._attempts
        for attempt in attempts:
            attempt.kill()
        while live := [attempt for attempt in attempts if attempt.guard is not None and not attempt.guard.gone]:
            self._wait(live, TICK_S)

    def _watch(self, attempts: list[Attempt | Series]) -> None:
        """Every one of them has ended."""
        told: set[str] = set()
        while True:
            self._call_next()
            for attempt in attempts:
                if attempt.ended and attempt.settings.name not in told and not self._retries(attempt):
                    told.add(attempt.settings.name)
                    self._tell(attempt)
            live = [attempt for attempt in attempts if not attempt.ended and attempt.guard is not None]
            if not live and not self._waiting:
                return
            self._wait(live, min(WAITING_TICK_S, self._admission.quiet_in_s() or TICK_S) if self._waiting else TICK_S)
            for attempt in live:
                attempt.tick()
            if any(attempt.unkillable for attempt in live):
                self._enter()
            self._is_cancelled()

    def _wait(self, live: list[Attempt | Series], tick_s: float) -> None:
        """Until a guardian says something, a deadline comes, or the tick has gone."""
        poll = guardian.poll()
        by_fd = {}
        for attempt in live:
            if attempt.guard is None:
                continue
            if attempt.guard.fileno() < 0:  # it fell silent, and what it held is still being killed
                attempt.listen()
                continue
            by_fd[attempt.guard.fileno()] = attempt
            poll.register(attempt.guard.fileno(), guardian.READABLE)
        longest = min([tick_s, *(attempt.due_s() + 0.01 for attempt in live)])
        for fd, _ in poll.poll(longest * 1000):
            by_fd[fd].listen()

    def _retries(self, attempt: Attempt | Series) -> bool:
        """Whether the reviewer, having said nothing at all, was given another try."""
        if self._cancelled is not None or attempt.guard is None or not attempt.retry(self._run.lock_fd):
            return False
        self._run.note("reviewer.retried", reviewer=attempt.settings.name, job=attempt.job)
        return True

    def _is_cancelled(self) -> bool:
        """Whether somebody has asked the run to end; its reviewers are then being ended."""
        if self._cancelled is None:
            self._cancelled = self._run.asked()
            if self._cancelled is not None:
                for attempt in self._scouts + self._attempts:
                    if not attempt.ended:
                        attempt.cancel(self._cancelled)
                self._enter()
        return self._cancelled is not None

    def _enter(self) -> None:
        attempts = self._scouts + self._attempts
        if self._waiting and self._cancelled is None and all(attempt.ended for attempt in self._others()):
            self._run.enter("queued", tuple(attempt.job for attempt in attempts))
            return
        status: Status = "running" if self._cancelled is None else "stopping"
        if any(attempt.unkillable for attempt in attempts):
            status = "unkillable"
        self._run.enter(status, tuple(attempt.job for attempt in attempts))

    def _tell(self, attempt: Attempt | Series) -> None:
        review = attempt.review()
        if isinstance(attempt, Series):
            self._admission.leave(review.name, review, was_called=attempt.was_called)
        self._enter()
        if attempt.moved:
            self._run.note("checkout.changed", reviewer=review.name, paths=attempt.moved[:20], author="unknown")
        self._run.note(
            "reviewer.ended",
            reviewer=review.name,
            outcome=review.outcome,
            verdict=review.verdict,
            reason=review.reason,
            note=review.note,
            duration_ms=review.duration_ms,
            findings=len(review.findings),
        )

    def _meanwhile(self, changed: list[Changed]) -> None:
        """What does not depend on the reviewers is done while they work."""
        if self._is_cancelled():
            return
        self._run.keep_evidence(None if self._intent.pathspec else changed)
        self._hidden = self._hidden_edits()

    # -- agents cost, and wait

    def _line_up(self, agents: list[Series]) -> None:
        """Each agent that is to be called waits until it may; of the others it is known why they are not."""
        for agent in agents:
            if self._is_cancelled() or agent.ended:
                continue
            agent.prepare()
            refused = self._admission.refusal(agent.settings.name)
            if refused is not None and agent.is_to_be_called:
                _refuse(agent, refused)
        if self._cancelled is None:
            self._waiting = [agent for agent in agents if not agent.ended]

    def _call_next(self) -> None:
        """Every agent that may be called now is at work."""
        self._waiting = [agent for agent in self._waiting if not agent.ended]
        if not self._waiting or self._is_cancelled():
            return
        if self._admission.is_overtaken():
            self._give_way()
        elif self._admission.quiet_in_s() <= 0:
            for agent in tuple(self._waiting):
                self._call(agent)
        if self._waiting and not self._is_told_to_wait:
            self._is_told_to_wait = True
            names = [agent.settings.name for agent in self._waiting]
            self._run.note("reviewer.waiting", reviewers=names, reason=self._admission.why_wait())
            self._enter()

    def _call(self, agent: Series) -> None:
        entered = self._admission.enter(agent.settings.name, agent.settings.budget_usd)
        if isinstance(entered, Refused):
            _refuse(agent, entered)
        elif isinstance(entered, Admitted):
            agent.may_cost(entered.usd)
            self._waiting.remove(agent)
            self._start([agent])

    def _give_way(self) -> None:
        """The session went on before an agent was called: what it leaves next is reviewed in place of this."""
        self._cancelled = Cancelled(reason=OVERTAKEN)
        for attempt in self._attempts:
            if not attempt.ended:
                attempt.cancel(self._cancelled)
        self._waiting = []
        self._enter()

    def _others(self) -> list[Attempt | Series]:
        return [attempt for attempt in self._scouts + self._attempts if attempt not in self._waiting]

    # -- a secret is not sent

    def _hold_back(self, attempts: list[Attempt | Series]) -> None:
        """A secret in the difference keeps it from every reviewer that uses the network."""
        reason = self._secret() if any(attempt.settings.network for attempt in attempts) else ""
        for attempt in attempts:
            if reason and attempt.settings.network:
                attempt.refuse(f"held back: {reason}", "held-back")

    def _secret(self) -> str:
        """Why the difference must not leave the machine; "" where nothing speaks against it."""
        for attempt in self._scouts + self._attempts:
            if attempt.settings.name != BUILT_IN:
                continue
            if isinstance(attempt.answer, Unusable):
                return "static could not look for secrets"
            for finding in attempt.review().findings:
                if finding.severity == "blocking" and finding.rule.startswith(_SECRETS):
                    return f"static found a secret in {finding.path}"
        return ""

    # -- what came out

    def _reviewed(self, subject: Subject, changed: list[Changed], review_ms: int) -> Reviewed:
        reviews = tuple(attempt.review() for attempt in self._attempts)
        lines = changed_lines(subject.patch)
        found = [finding for review in reviews for finding in settled(review, subject, lines)]
        identified = findings.identify(tuple(found), self._line_of(changed))
        by_reviewer = {
            review.name: tuple(finding for finding in identified if finding.reviewer == review.name)
            for review in reviews
        }
        reviews = tuple(review.replace(findings=by_reviewer[review.name]) for review in reviews)
        self._park(reviews)
        return Reviewed(
            reviews=reviews,
            findings=identified,
            coverage=self._coverage(reviews, subject, changed),
            change=self._size,
            materialized=_materialized(self._attempts),
            timings_ms={
                "materialize": sum(attempt.materialize_ms for attempt in self._attempts),
                "review": review_ms - sum(attempt.materialize_ms for attempt in self._attempts),
            },
            cancelled=self._cancelled,
            fault=next((attempt.fault for attempt in self._attempts if attempt.fault), ""),
            jobs=tuple(attempt.job for attempt in self._attempts),
        )

    def _coverage(self, reviews: tuple[Review, ...], subject: Subject, changed: list[Changed]) -> Coverage:
        untouched = [a.answer for a, review in zip(self._attempts, reviews, strict=True) if _did_review(review)]
        covered = verdict.covered(subject.offered, self._skipped(changed), untouched)
        removed = tuple(change.path for change in changed if change.status == "D")
        agents = [each for each in self._attempts if isinstance(each, Series)]
        # A path that is gone has nothing to read: whoever read the difference has seen that it went.
        whole = covered.replace(
            offered=covered.offered + removed,
            reviewed=covered.reviewed + (removed if untouched else ()),
            withheld=tuple(dict.fromkeys(path for each in agents for path in each.withheld)),
        )
        return verdict.narrowed(whole, (each.answer for each in agents))

    def _skipped(self, changed: list[Changed]) -> tuple[Skipped, ...]:
        taken = runs.read(self._intent.run_dir, "snapshot.json") or {}
        left_out = [Skipped(**skip) for skip in taken.get("skipped", ())]
        links = [Skipped(path=change.path, reason="submodule") for change in changed if change.new_mode == _GITLINK]
        return (*left_out, *links, *self._hidden)

    def _hidden_edits(self) -> tuple[Skipped, ...]:
        if self._intent.subject != "working tree":
            return ()
        git = Git(
            env=self._env,
            cwd=self._intent.worktree_path,
            git_dir=self._intent.git_dir,
            work_tree=self._intent.worktree_path,
        )
        try:
            return snapshot.hidden_edits(git, self._intent.worktree_path)
        except OrchError:  # the worktree is gone meanwhile; what was in the snapshot is reviewed all the same
            return ()

    def _line_of(self, changed: list[Changed]) -> Callable[[str, int], str | None]:
        oids = {change.path: change.new_oid for change in changed if _is_offered(change)}
        texts: dict[str, list[str]] = {}

        def line_of(path: str, number: int) -> str | None:
            if path not in texts:
                texts[path] = self._blob(oids.get(path, ""), path).decode("utf-8", "replace").split("\n")
            return texts[path][number - 1] if 0 < number <= len(texts[path]) else None

        return line_of

    def _blob(self, oid: str, path: str) -> bytes:
        """The file in the reviewed tree; also one outside the difference: the same finding has the same id there."""
        if oid:
            return self._store.blob(oid)
        return self._store.git().attempt("cat-file", "blob", encode(f"{self._intent.tree_id}:{path}")).stdout

    def _park(self, reviews: tuple[Review, ...]) -> None:
        """One clean tree waits for the next run; the others are disposed of with the run's folder."""
        if self._intent.disposition != "discard":
            return
        for attempt, review in zip(self._attempts, reviews, strict=True):
            if _did_review(review) and not review.littered:
                attempt.park()
                return


def _refuse(agent: Series, refused: Refused) -> None:
    if refused.fault:
        agent.rest(refused.reason, refused.fault, refused.until)
    else:
        agent.refuse(refused.reason, refused.code)


def _did_review(review: Review) -> bool:
    return review.verdict in ("pass", "findings", "nothing-to-review")


def _is_offered(change: Changed) -> bool:
    return change.status != "D" and change.new_mode != _GITLINK


def _size(patch: bytes, files: int) -> Change:
    added = removed = 0
    in_hunk = False
    for line in patch.split(b"\n"):
        if line.startswith(b"@@ "):
            in_hunk = True
        elif line.startswith(b"diff --git "):
            in_hunk = False
        elif in_hunk:
            added += line.startswith(b"+")
            removed += line.startswith(b"-")
    return Change(files=files, added=added, removed=removed)


def _materialized(attempts: list[Attempt | Series]) -> str:
    ways = [attempt.materialized for attempt in attempts if attempt.materialized]
    return "warm" if "warm" in ways else (ways[0] if ways else "")
