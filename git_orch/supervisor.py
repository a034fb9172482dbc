"""The life of one run: materialize, review, record, dispose. The only writer of the run's state and record.

Order (a crash in between loses nothing and leaves something that the reaper understands): the work; the kill, to ECHILD;
the result; the record; the tree; the entry. The lock is never given back: it falls when this process is gone.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time

from git_orch import dedup, journal, registry, report, retention, reviewing, runs, store, verdict
from git_orch import key as keys
from git_orch.containment.descendants import subreaper
from git_orch.containment.entry import close_all_but
from git_orch.errors import OrchError
from git_orch.model import Cancelled, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.model import Json, Status, Verdict
    from git_orch.registry import Intent, Lock, Registry
    from git_orch.reviewing import Reviewed

TURN_S = 0.2


class Ending(Record):
    """How a run ended, as its record has it."""

    status: Status
    terminal_reason: str
    verdict: Verdict
    reason: str = ""
    reviewed: Reviewed | None = None


def main(words: list[str]) -> None:
    """Supervise the run that a launcher handed over: LIVE RUN_ID LOCK_FD READY_FD. Never returns."""
    live, run_id, lock_fd, ready_fd = words[0], words[1], int(words[2]), int(words[3])
    close_all_but((lock_fd, ready_fd))  # whoever waits for the end of a pipe of the launcher's must not wait for us
    for fd in (lock_fd, ready_fd):
        os.set_inheritable(fd, False)
    os.chdir("/")
    key = keys.load(os.environ)
    book = registry.Registry(live, key, registry.instance_of(live))
    intent = book.intent(run_id)
    if isinstance(intent, registry.Refused):
        os._exit(70)
    lock = registry.Lock(run_id=run_id, fd=lock_fd)
    fcntl.lockf(lock.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, registry.SUPERVISOR_BYTE)
    os.write(ready_fd, b"x")
    os.close(ready_fd)
    supervise(book, intent, lock)


def supervise(book: Registry, intent: Intent, lock: Lock) -> None:
    """The run has ended, is recorded, and nothing of it is left; then this process ends. Never returns."""
    log = os.open(os.path.join(intent.run_dir, "supervisor.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.close(log)
    run(book, intent, lock, dict(os.environ))
    os._exit(0)


def run(book: Registry, intent: Intent, lock: Lock, env: Mapping[str, str]) -> None:
    """The run has ended and is recorded; its tree and its entry are gone. Used as it is by `--foreground`."""
    fcntl.lockf(lock.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, registry.SUPERVISOR_BYTE)
    alive = runs.hold(intent.run_dir)
    try:
        _live(Life(book, intent, lock, env))
    finally:
        if alive >= 0:
            os.close(alive)


def _live(life: Life) -> None:
    subreaper()
    try:
        ending = life.review()
    except OrchError as error:
        ending = Ending(status="failed", terminal_reason=error.code, verdict="unreviewed", reason=error.message)
    except Exception as error:  # the one place: whatever went wrong becomes the run's outcome, and its tree goes
        sys.excepthook(type(error), error, error.__traceback__)
        ending = Ending(
            status="failed",
            terminal_reason="supervisor-error",
            verdict="unreviewed",
            reason=f"a bug in git-orch: {type(error).__name__}; see supervisor.log",
        )
    life.finish(ending)


class Life:
    """One run under way; everything that changes while it lives."""

    def __init__(self, book: Registry, intent: Intent, lock: Lock, env: Mapping[str, str]) -> None:
        self._book = book
        self._intent = intent
        self._lock = lock
        self._env = env
        self._start = time.monotonic()
        self._journal = journal.Journal(intent.run_dir)
        self._state = registry.State(status="starting", supervisor_pid=os.getpid())
        self._key = keys.load(env)
        self._store = store.Store(
            path=os.path.join(intent.durable, "store.git"), object_format=intent.object_format, env=dict(env)
        )

    def review(self) -> Ending:
        """What the reviewers found. Everything that they started is gone; their trees are still there."""
        asked = self._wait_for_turn()
        if asked is not None:
            return self._ending(reviewing.Reviewed(cancelled=asked))
        self.enter("starting")
        self._store.hold(self._intent.run_id, self._intent.tree_id)
        work = reviewing.Work(self._intent, self._store, self._key, self._env, self)
        reviewed = work.run()
        return self._ending(reviewed)

    def _wait_for_turn(self) -> Cancelled | None:
        """This run is the only one of its worktree that a hook fired and that is past its queue; or it was asked to
        end while it waited. Runs by hand do not wait."""
        if self._intent.client == registry.BY_HAND:
            return None
        path = os.path.join(self._intent.durable, "worktrees", keys.digest(self._intent.git_dir)[:16], "turn")
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        turn = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)  # held until this process is gone
        while not _taken(turn):
            asked = self.asked()
            if asked is not None:
                return asked
            time.sleep(TURN_S)
        return self.asked()

    # -- what the work may ask of the run

    @property
    def lock_fd(self) -> int:
        """The run's lock of this moment, for a guardian to share."""
        return self._lock.fd

    def enter(self, status: Status, jobs: tuple[Json, ...] = ()) -> None:
        """The run's state is that one, and the journal says so."""
        self._state = self._state.replace(status=status, jobs=jobs or self._state.jobs)
        self._book.write_state(self._intent.run_id, self._state)
        self._journal.write("run." + status)

    def note(self, event: str, **facts: object) -> None:
        """The journal has the event."""
        self._journal.write(event, **facts)

    def asked(self) -> Cancelled | None:
        """Whether somebody asked the run to end; also puts back what was wiped under it. Called once a second."""
        self._look_after_entry()
        word = self._book.asked(self._intent.run_id)
        return Cancelled(reason=word) if word else None

    def _look_after_entry(self) -> None:
        if self._book.still_there(self._lock):
            return
        # `git clean -fdx` or `git stash -a` took `.orch` away. The old lock stays open: the guardian shares it.
        try:
            restored = self._book.restore(self._intent, self._state)
        except OrchError:  # a full disk, or something else lies there now: tried again in a second
            return
        if restored is None:
            return
        self._lock = restored
        fcntl.lockf(self._lock.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, registry.SUPERVISOR_BYTE)
        self._journal.write("run.restored")

    # -- the end

    def _ending(self, reviewed: Reviewed) -> Ending:
        word, reason = verdict.of_run(reviewed.reviews, reviewed.coverage, self._intent.fail_on)
        ended = Ending(status="done", terminal_reason="completed", verdict=word, reason=reason, reviewed=reviewed)
        if reviewed.cancelled is not None:
            asked = reviewed.cancelled.reason
            status: Status = "superseded" if asked.startswith("superseded-by") else "cancelled"
            return ended.replace(status=status, terminal_reason=asked, verdict="unreviewed", reason=asked)
        if reviewed.reviews and all(review.outcome.startswith("timed out") for review in reviewed.reviews):
            return ended.replace(status="timed-out", terminal_reason="hard-timeout")
        return ended

    def finish(self, ending: Ending) -> None:
        """The result, then the record, then the tree, then the entry."""
        disposing = time.monotonic()
        reviewed = ending.reviewed or reviewing.Reviewed()
        timings = {**reviewed.timings_ms, "snapshot": self._intent.snapshot_ms}
        try:
            self._write_results(reviewed)
            self._keep_evidence()
            self._write_record(ending, reviewed, timings)
            if ending.verdict == "unreviewed":
                dedup.unclaim(self._intent.durable, self._intent.dedup_key, self._intent.run_id)
            self._dispose()
            timings["dispose"] = _ms(disposing)
            timings["total"] = _ms(self._start) + self._intent.snapshot_ms
            self._write_record(ending, reviewed, timings)
        except FileNotFoundError:  # the repository is gone, and its records with it; the tree is not
            self._dispose()
        self._journal.write("run.ended", status=ending.status, verdict=ending.verdict)
        if self._book.still_there(self._lock):
            self._book.remove(self._intent.run_id)
        self._tidy()

    def _dispose(self) -> None:
        disposed = reviewing.dispose(self._intent, self._key)
        if disposed not in ("disposed", "absent"):
            self._journal.write("run.tree-left", reason=disposed)

    def _tidy(self) -> None:
        """Old runs are gone, and now and then the store is packed. Nothing of this is worth the run."""
        kept = self._intent
        try:
            retention.retire(
                kept.durable,
                self._store,
                entries=self._book.run_ids(),
                keep_runs=kept.keep_runs,
                keep_days=kept.keep_days,
                keep_bytes=kept.keep_bytes,
            )
            if self._store.is_loose():
                self._store.gc()
        except (OrchError, OSError) as error:
            self._journal.write("run.not-tidied", reason=str(error))

    def _write_results(self, reviewed: Reviewed) -> None:
        runs.write(
            self._intent.run_dir,
            "findings.json",
            {"schema_version": "1", "findings": [finding.fields() for finding in reviewed.findings]},
        )
        covered = report.coverage_json(reviewed.coverage, reviewed.reviews)
        runs.write(self._intent.run_dir, "coverage.json", covered)

    def _keep_evidence(self) -> None:
        try:
            self._store.keep_evidence(self._intent.run_id, self._intent.base_tree_id, self._intent.tree_id)
        except OrchError as error:
            self._journal.write("run.evidence-lost", reason=error.message)

    def _write_record(self, ending: Ending, reviewed: Reviewed, timings: dict[str, int]) -> None:
        ended = report.Ended(
            status=ending.status,
            terminal_reason=ending.terminal_reason,
            verdict=ending.verdict,
            reason=ending.reason,
            supervisor_pid=os.getpid(),
            jobs=reviewed.jobs or self._state.jobs,
            reviews=reviewed.reviews,
            change=reviewed.change,
            materialized=reviewed.materialized,
            timings_ms=timings,
        )
        runs.write(self._intent.run_dir, runs.RECORD, report.record_json(self._intent, ended))


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _ms(start: float) -> int:
    return int((time.monotonic() - start) * 1000)
