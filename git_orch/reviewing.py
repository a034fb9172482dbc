"""The work of a review: `static` first, then the others side by side, each on a tree of its own, until all have ended."""

from __future__ import annotations

import os
import select
import time

from git_orch import atomic, disposal, findings, runs, snapshot, verdict
from git_orch.attempt import Attempt, Subject, settled
from git_orch.config import BUILT_IN
from git_orch.containment import Containment
from git_orch.containment.probe import probe
from git_orch.errors import OrchError
from git_orch.git import Git
from git_orch.model import Change, Coverage, Record, Skipped
from git_orch.patch import added_lines
from git_orch.place import check_space

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from git_orch.model import Cancelled, Finding, Json, Review, Status
    from git_orch.registry import Intent
    from git_orch.store import Changed, Store

    class Run(Protocol):
        """What the work may ask of the run that it belongs to."""

        @property
        def lock_fd(self) -> int: ...
        def enter(self, status: Status, jobs: tuple[Json, ...] = ()) -> None: ...
        def note(self, event: str, **facts: object) -> None: ...
        def asked(self) -> Cancelled | None: ...


TICK_S = 1.0
_GITLINK = "160000"


class Reviewed(Record):
    """What all reviewers of a run came to."""

    reviews: tuple[Review, ...] = ()
    findings: tuple[Finding, ...] = ()
    coverage: Coverage = Coverage()
    change: Change = Change()
    materialized: str = ""
    timings_ms: dict[str, int] = {}
    cancelled: Cancelled | None = None
    jobs: tuple[Json, ...] = ()


class Work:
    """One review under way, on behalf of a run."""

    def __init__(self, intent: Intent, store: Store, key: bytes, env: Mapping[str, str], run: Run) -> None:
        self._intent = intent
        self._store = store
        self._key = key
        self._env = dict(env)
        self._run = run
        self._attempts: list[Attempt] = []
        self._cancelled: Cancelled | None = None
        self._size = Change()

    def run(self) -> Reviewed:
        """Every reviewer has ended and nothing of any of them is left; their trees are still there."""
        try:
            return self._review()
        except BaseException:
            self._end_all()
            raise

    def _review(self) -> Reviewed:
        changed = self._store.changed(self._intent.base_tree_id, self._intent.tree_id, self._intent.pathspec)
        subject = self._subject(changed)
        begun = time.monotonic()
        first = [settings for settings in self._intent.reviewers if settings.name == BUILT_IN]
        rest = [settings for settings in self._intent.reviewers if settings.name != BUILT_IN]
        self._stage([Attempt(settings, subject, self._run.lock_fd) for settings in first])
        if rest and self._cancelled is None:
            self._stage(self._guarded_by_static([Attempt(settings, subject, self._run.lock_fd) for settings in rest]))
        return self._reviewed(subject, changed, int((time.monotonic() - begun) * 1000))

    def _subject(self, changed: list[Changed]) -> Subject:
        paths = tuple(change.path for change in changed) if self._intent.pathspec else None
        patch = self._store.patch(self._intent.base_tree_id, self._intent.tree_id, paths)
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
        )

    def _containment(self) -> Containment:
        if not self._intent.sandbox:
            return Containment(tier=2, degraded_reason="orch.review.sandbox is false")
        root = self._intent.temp_root
        return probe(root, os.path.join(root, "containment.json"))

    # -- the loop

    def _stage(self, attempts: list[Attempt]) -> None:
        """All of them have run to their ends, side by side."""
        for attempt in attempts:
            self._attempts.append(attempt)
            if self._cancelled is None and not attempt.ended:
                self._run.note("reviewer.materializing", reviewer=attempt.settings.name)
                attempt.start()
                self._run.note("reviewer.started", reviewer=attempt.settings.name, job=attempt.job)
            self._run.enter("running", tuple(each.job for each in self._attempts))
        self._watch(attempts)

    def _end_all(self) -> None:
        """Nothing of any reviewer is left: whatever went wrong here, their trees are about to go."""
        for attempt in self._attempts:
            attempt.kill()
        while live := [attempt for attempt in self._attempts if attempt.guard is not None and not attempt.guard.gone]:
            self._wait(live)

    def _watch(self, attempts: list[Attempt]) -> None:
        told: set[str] = set()
        while True:
            for attempt in attempts:
                if attempt.ended and attempt.settings.name not in told:
                    told.add(attempt.settings.name)
                    self._tell(attempt)
            live = [attempt for attempt in attempts if not attempt.ended and attempt.guard is not None]
            if not live:
                return
            self._wait(live)
            for attempt in live:
                attempt.tick()
            self._heed(live)

    def _wait(self, live: list[Attempt]) -> None:
        """Until a guardian says something, a deadline comes, or a second has gone."""
        poll = select.poll()
        by_fd = {}
        for attempt in live:
            if attempt.guard is None:
                continue
            if attempt.guard.fileno() < 0:  # it fell silent, and what it held is still being killed
                attempt.listen()
                continue
            by_fd[attempt.guard.fileno()] = attempt
            poll.register(attempt.guard.fileno(), select.POLLIN)
        longest = min(TICK_S, *(attempt.due_s() + 0.01 for attempt in live))
        for fd, _ in poll.poll(longest * 1000):
            by_fd[fd].listen()

    def _heed(self, live: list[Attempt]) -> None:
        asked = self._run.asked()
        if asked is None or self._cancelled is not None:
            return
        self._cancelled = asked
        self._run.enter("stopping")
        for attempt in live:
            attempt.cancel(asked)

    def _tell(self, attempt: Attempt) -> None:
        review = attempt.review()
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

    def _guarded_by_static(self, attempts: list[Attempt]) -> list[Attempt]:
        """A secret in the difference keeps it from every reviewer that uses the network."""
        if any(attempt.settings.network for attempt in attempts) and self._holds_secret():
            for attempt in attempts:
                if attempt.settings.network:
                    attempt.refuse("held back: static found a secret in the difference")
        return attempts

    def _holds_secret(self) -> bool:
        reviews = [attempt.review() for attempt in self._attempts if attempt.settings.name == BUILT_IN]
        return any(
            finding.severity == "blocking" and finding.rule.startswith("secret")
            for review in reviews
            for finding in review.findings
        )

    # -- what came out

    def _reviewed(self, subject: Subject, changed: list[Changed], review_ms: int) -> Reviewed:
        reviews = tuple(attempt.review() for attempt in self._attempts)
        lines = added_lines(subject.patch)
        found = [finding for review in reviews for finding in settled(review, subject, lines)]
        identified = findings.identify(tuple(found), self._line_of(changed))
        by_reviewer = {
            review.name: tuple(finding for finding in identified if finding.reviewer == review.name)
            for review in reviews
        }
        reviews = tuple(review.replace(findings=by_reviewer[review.name]) for review in reviews)
        self._leave(reviews)
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
            jobs=tuple(attempt.job for attempt in self._attempts),
        )

    def _coverage(self, reviews: tuple[Review, ...], subject: Subject, changed: list[Changed]) -> Coverage:
        untouched = [a.answer for a, review in zip(self._attempts, reviews, strict=True) if _did_review(review)]
        covered = verdict.covered(subject.offered, self._skipped(changed), untouched)
        removed = tuple(change.path for change in changed if change.status == "D")
        # A path that is gone has nothing to read: whoever read the difference has seen that it went.
        return covered.replace(
            offered=covered.offered + removed, reviewed=covered.reviewed + (removed if untouched else ())
        )

    def _skipped(self, changed: list[Changed]) -> tuple[Skipped, ...]:
        taken = runs.read(self._intent.run_dir, "snapshot.json") or {}
        left_out = [Skipped(**skip) for skip in taken.get("skipped", ())]
        links = [Skipped(path=change.path, reason="submodule") for change in changed if change.new_mode == _GITLINK]
        return tuple(left_out + links) + self._hidden()

    def _hidden(self) -> tuple[Skipped, ...]:
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
                blob = self._store.blob(oids[path]) if path in oids else b""
                texts[path] = blob.decode("utf-8", "replace").split("\n")
            return texts[path][number - 1] if 0 < number <= len(texts[path]) else None

        return line_of

    def _leave(self, reviews: tuple[Review, ...]) -> None:
        """One clean tree is parked for the next run; the others are disposed of with the run's folder."""
        if self._intent.disposition != "discard":
            return
        for attempt, review in zip(self._attempts, reviews, strict=True):
            if _did_review(review) and not review.littered:
                attempt.leave(park=True)
                return


def dispose(intent: Intent, key: bytes) -> str:
    """Nothing of the run's trees is left in $TEMP, or the answer says why; `preserve` has moved them beside the records."""
    if intent.disposition == "preserve":
        _preserve(intent)
    return disposal.dispose(intent.temp_root, intent.run_id, key)


def _preserve(intent: Intent) -> None:
    import shutil  # only for a person who asked for it

    root = os.path.join(intent.temp_root, intent.run_id)
    for name in sorted(os.listdir(root)) if os.path.isdir(root) else ():
        source = os.path.join(root, name, "tree")
        if os.path.isdir(source):
            kept = os.path.join(intent.durable, "kept", intent.run_id, name)
            os.makedirs(os.path.dirname(kept), mode=0o700, exist_ok=True)
            shutil.move(source, kept)


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


def _materialized(attempts: list[Attempt]) -> str:
    ways = [attempt.materialized for attempt in attempts if attempt.materialized]
    return "warm" if "warm" in ways else (ways[0] if ways else "")
