"""The life of one run: materialize, review, record, dispose. The only writer of the run's state and record.

Order (a crash in between loses nothing and leaves something that the reaper understands): the work; the kill, to
ECHILD; the result; the record; the tree; the entry. The lock is never given back: it falls when this process is gone.
"""

from __future__ import annotations

import errno
import os
import sys
import time

from git_orch import (
    budget,
    dedup,
    journal,
    keeping,
    locks,
    proc,
    registry,
    report,
    request,
    retention,
    reviewing,
    runs,
    sessions,
    store,
    system,
    twin,
    verdict,
    windows,
)
from git_orch import key as keys
from git_orch.containment import windows as job_objects
from git_orch.containment.descendants import subreaper
from git_orch.containment.entry import close_all_but
from git_orch.errors import OrchError
from git_orch.git import Git
from git_orch.model import Cancelled, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal  # the type checker knows no stub of the module that does the work
    from collections.abc import Mapping
    from types import FrameType, TracebackType

    from git_orch.model import Json, Review, Status, Verdict
    from git_orch.registry import Intent, Lock, Registry
    from git_orch.reviewing import Reviewed
    from git_orch.store import Changed
else:
    import _signal

TURN_S = 0.2
ROOM_BYTES = 256 << 10
SIGHUP, SIGINT, SIGTERM = 1, 2, 15
_OVERDUE = {"hard-timeout", "stalled"}
_BROKEN = {"child-exit-nonzero", "child-signalled"}


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
    if os.name == "nt":
        ready_fd = windows.descriptor_of(ready_fd)
    else:
        close_all_but((lock_fd, ready_fd))  # whoever waits for the end of a pipe of the launcher's must not wait for us
        for fd in (lock_fd, ready_fd):
            os.set_inheritable(fd, False)
    os.chdir("/")
    key = keys.load(os.environ)
    book = registry.Registry(live, key, registry.instance_of(live))
    intent = book.intent(run_id)
    if isinstance(intent, registry.Refused):
        os._exit(70)
    lock = registry.Lock(run_id=run_id, fd=lock_fd) if lock_fd >= 0 else _lock_of_ours(book, run_id)
    if lock is None:
        os._exit(70)
    _take_name(lock)
    proc.greet(ready_fd)
    supervise(book, intent, lock)


def _lock_of_ours(book: Registry, run_id: str) -> Lock | None:
    """The run's lock, taken over from the launcher, which has its part of it until we greet; None where it is gone.

    For Windows, where no lock is handed down. Written, not run.
    """
    try:
        fd = locks.open_lockable(book.path(run_id, "lock"), 0)
    except OSError:
        return None
    lock = registry.Lock(run_id=run_id, fd=fd)
    if locks.take_over(fd) and book.still_there(lock):
        return lock
    os.close(fd)
    return None


def supervise(book: Registry, intent: Intent, lock: Lock) -> None:
    """The run has ended, is recorded, and nothing of it is left; then this process ends. Never returns."""
    log = os.open(os.path.join(intent.run_dir, "supervisor.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.close(log)
    run(book, intent, lock, dict(os.environ))
    os._exit(0)


def run(book: Registry, intent: Intent, lock: Lock, env: Mapping[str, str]) -> None:
    """The run has ended and is recorded; its tree and its entry are gone. Used as it is by `--foreground`."""
    _take_name(lock)
    alive = runs.hold(intent.run_dir)
    try:
        with Signals() as signals:
            life = Life(book, intent, lock, env, signals)
            life.finish(_reviewed(life))
    finally:
        if alive >= 0:
            os.close(alive)


def _reviewed(life: Life) -> Ending:
    """What came of the run, whatever went wrong in it."""
    try:
        subreaper()
        life.confine()
        return life.review()
    except OrchError as error:
        return life.failure(error.code, error.message)
    except OSError as error:
        return life.failure("environment", ": ".join(filter(None, (error.strerror, error.filename))) or repr(error))
    except Exception as error:  # noqa: BLE001 - the one place: whatever went wrong becomes the run's outcome, and its tree goes
        sys.excepthook(type(error), error, error.__traceback__)
        return life.failure("supervisor-error", f"a bug in git-orch: {type(error).__name__}; see supervisor.log")


class Signals:
    """A request by SIGTERM, SIGINT or SIGHUP to end, noted instead of obeyed: a log-out, Ctrl-C with `--foreground`.

    A signal that was ignored before (nohup) stays so.
    """

    def __init__(self) -> None:
        self.came = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Signals:
        for number in (SIGTERM, SIGINT) if os.name == "nt" else (SIGTERM, SIGINT, SIGHUP):
            if _signal.getsignal(number) != _signal.SIG_IGN:
                self._before[number] = _signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for number, handler in self._before.items():
            _signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True


class Life:
    """One run under way; everything that changes while it lives."""

    def __init__(self, book: Registry, intent: Intent, lock: Lock, env: Mapping[str, str], signals: Signals) -> None:
        self._book = book
        self._intent = intent
        self._lock = lock
        self._env = dict(env)
        self._signals = signals
        self._start = time.monotonic()
        self._journal = journal.Journal(intent.run_dir)
        self._state = registry.State(status="queued", supervisor_pid=os.getpid())
        self._key = keys.load(env)
        self._has_evidence = False
        # With the cookie: a git or tar that this process leaves behind by being killed is found by the reaper.
        cookie = {request.COOKIE: request.cookie_of(intent.run_id, self._key)}
        self._store = store.Store(
            path=os.path.join(intent.durable, "store.git"),
            object_format=intent.object_format,
            env={**self._env, **cookie},
        )

    def review(self) -> Ending:
        """What the reviewers found. Everything that they started is gone; their trees are still there."""
        self._reserve()
        asked = self._wait_for_turn()
        if asked is not None:
            return self._ending(reviewing.Reviewed(cancelled=asked))
        self.enter("starting")
        self._store.hold(self._intent.run_id, self._intent.tree_id)
        return self._ending(reviewing.Work(self._intent, self._store, self._key, self._env, self).run())

    def confine(self) -> None:
        """On Windows this process and all that it starts end together, by the kernel; elsewhere guardians see to it.

        Raises:
            OSError: no job object was to be had.
        """
        if os.name == "nt":
            if job_objects.is_in_one():  # ours was to break away; whoever made that one may end us with it
                self._journal.write("run.bound", reason="the run ends with the terminal or service that started it")
            job_objects.confine(request.cookie_of(self._intent.run_id, self._key))

    def failure(self, code: str, reason: str) -> Ending:
        """The ending of a run that broke off; where it was asked to end, that is why."""
        if self._signals.came:  # Ctrl-C on a terminal reaches the git that we were waiting for as well
            return self._ending(reviewing.Reviewed(cancelled=Cancelled()))
        return Ending(status="failed", terminal_reason=code, verdict="unreviewed", reason=reason)

    def _reserve(self) -> None:
        """What may be missing later is there: the intent, should the entry be wiped; room, should the disk be full."""
        twin.write(self._intent, self._key)
        fd = os.open(os.path.join(self._intent.run_dir, runs.ROOM), os.O_WRONLY | os.O_CREAT | system.CLOEXEC, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(fd, 0, ROOM_BYTES)
        finally:
            os.close(fd)

    def _wait_for_turn(self) -> Cancelled | None:
        """This run is the only one of its worktree that a hook fired and that is past its queue.

        Or it was asked to end while it waited. Runs by hand do not wait.
        """
        if self._intent.client == registry.BY_HAND:
            return None
        path = os.path.join(self._intent.durable, "worktrees", keys.digest(self._intent.git_dir)[:16], "turn")
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        turn = locks.open_lockable(path, os.O_CREAT)  # held until this process is gone
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
        """The run's state is that one, with these jobs (none: as before); the journal has a new status."""
        is_new = status != self._state.status
        self._state = self._state.replace(status=status, jobs=jobs or self._state.jobs)
        try:
            self._book.write_state(self._intent.run_id, self._state)
        except OSError:  # wiped under us: put back within a second, with the state of then
            pass
        if is_new:
            self._journal.write("run." + status)

    def note(self, event: str, **facts: object) -> None:
        """The journal has the event."""
        self._journal.write(event, **facts)

    def asked(self) -> Cancelled | None:
        """Whether somebody asked the run to end; also puts back what was wiped under it. Called once a second."""
        self._look_after_entry()
        word = self._book.asked(self._intent.run_id)
        if word == "cancel" or self._signals.came:
            return Cancelled()
        if not word and not os.path.isdir(self._intent.common_dir):
            word = "the repository is gone"
        return Cancelled(reason=word) if word else None

    def keep_evidence(self, changed: list[Changed] | None = None) -> None:
        """Both sides of the difference are in the store; done once, while the reviewers work."""
        if self._has_evidence:
            return
        self._has_evidence = True
        intent = self._intent
        try:
            self._store.pack_evidence(intent.run_id, intent.base_tree_id, intent.tree_id, changed)
        except OrchError as error:
            self._journal.write("run.evidence-lost", reason=error.message)

    def _look_after_entry(self) -> None:
        # A `git clean` under way may take the entry again that was put back with its lock.
        if self._book.still_there(self._lock) and os.path.lexists(self._book.path(self._intent.run_id, "json")):
            return
        # `git clean -fdx` or `git stash -a` took `.orch` away. The old lock stays open: the guardian shares it.
        try:
            restored = self._book.restore(self._intent, self._state)
        except (OrchError, OSError):  # a full disk, or something else lies there now: tried again in a second
            return
        if restored is None:
            return
        self._lock = restored
        _take_name(restored)
        self._journal.write("run.restored")

    # -- the end

    def _ending(self, reviewed: Reviewed) -> Ending:
        word, reason = verdict.of_run(reviewed.reviews, reviewed.coverage, self._intent.fail_on)
        status, terminal_reason = _how(reviewed.reviews, reviewed.fault)
        if reviewed.cancelled is not None:
            asked = terminal_reason = reviewed.cancelled.reason
            newer = asked.removeprefix("superseded-by ")
            status = "superseded" if newer != asked else "cancelled"
            by = runs.short(newer) if registry.is_run_id(newer) else newer
            word, reason = "unreviewed", f"superseded by {by}" if newer != asked else asked
        return Ending(status=status, terminal_reason=terminal_reason, verdict=word, reason=reason, reviewed=reviewed)

    def finish(self, ending: Ending) -> None:
        """The result, then the record, then the tree, then the entry.

        Where the disk is full all the same, everything but the processes stays for a later sweep.
        """
        try:
            is_gone = self._record(ending)
        except FileNotFoundError:  # the repository is gone, and its records with it; the tree is not
            is_gone = self._dispose()
        except OSError as error:
            self.enter("failed")
            self._journal.write("run.not-recorded", reason=f"{error.strerror}: {error.filename}")
            return
        self._journal.write("run.ended", status=ending.status, verdict=ending.verdict)
        if self._intent.notes:
            self._note(ending)
        if is_gone:
            twin.remove(self._intent.run_dir)
            if self._book.still_there(self._lock):
                self._book.remove(self._intent.run_id)
        self._tidy()

    def _record(self, ending: Ending) -> bool:
        """The run is recorded; says whether its tree is gone."""
        disposing = time.monotonic()
        reviewed = ending.reviewed or reviewing.Reviewed()
        timings = {**reviewed.timings_ms, "snapshot": self._intent.snapshot_ms}
        if reviewed.reviews and reviewed.cancelled is None:
            self.keep_evidence()
        _unlink(os.path.join(self._intent.run_dir, runs.ROOM))
        self._write_results(reviewed)
        # Not synced yet: after a power cut before the second time, the entry is still there for the reaper.
        paid = budget.paid(budget.read(self._intent.durable).day())
        self._write_record(ending, reviewed, timings, paid, durable=False)
        sessions.announce(self._intent.durable)
        if ending.verdict == "unreviewed":
            dedup.unclaim(self._intent.durable, self._intent.dedup_key, self._intent.run_id)
        is_gone = self._dispose()
        timings["dispose"] = _ms(disposing)
        timings["total"] = _ms(self._start) + self._intent.snapshot_ms
        self._write_record(ending, reviewed, timings, paid)
        return is_gone

    def _note(self, ending: Ending) -> None:
        """The verdict on a commit as a whole is a note of it."""
        from git_orch import notes  # by choice only

        kept = self._intent
        if not kept.commit_oid or kept.pathspec or ending.verdict not in ("pass", "findings"):
            return
        git = Git(env=self._env, cwd=kept.git_dir, git_dir=kept.git_dir)
        try:
            said = notes.line(
                ending.verdict,
                [reviewer.name for reviewer in kept.reviewers],
                tree=kept.tree_id,
                base=kept.base_tree_id,
                patch=notes.patch_id(self._store, kept.commit_oid),
                run_id=kept.run_id,
            )
            notes.add(git, self._store, kept.durable, kept.commit_oid, said)
        except (OrchError, OSError) as error:
            self._journal.write("run.not-noted", reason=str(error))

    def _dispose(self) -> bool:
        """Whether nothing of the trees is left that a sweep would need the run's entry for."""
        try:
            self._store.let_go(self._intent.run_id)
        except OrchError as error:
            self._journal.write("run.tree-held", reason=error.message)
        kept = self._intent
        left = keeping.dispose(kept, self._key, durable=kept.durable, temp_root=kept.temp_root)
        if left:
            self._journal.write("run.tree-left", reason=left)
        return not left

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

    def _write_record(
        self, ending: Ending, reviewed: Reviewed, timings: dict[str, int], usd_today: float, *, durable: bool = True
    ) -> None:
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
            usd_today=usd_today,
        )
        runs.write(self._intent.run_dir, runs.RECORD, report.record_json(self._intent, ended), durable=durable)


def _how(reviews: tuple[Review, ...], fault: str) -> tuple[Status, str]:
    """Status and terminal reason of a run that nobody asked to end."""
    outcomes = {review.outcome for review in reviews}
    if outcomes and outcomes <= _OVERDUE:
        return "timed-out", "hard-timeout" if "hard-timeout" in outcomes else "stalled"
    if outcomes == {"not-started"}:
        return "failed", fault or "not-started"
    if outcomes and outcomes <= _BROKEN and all(review.verdict == "unreviewed" for review in reviews):
        return "done", min(outcomes)
    return "done", "completed"


def _taken(fd: int) -> bool:
    try:
        return locks.exclusive(fd)
    except OSError:
        return False


def _take_name(lock: Lock) -> None:
    """The kernel names this process as the run's supervisor.

    Raises:
        BlockingIOError: it names another one.
    """
    if not locks.name_holder(lock.fd, registry.SUPERVISOR_BYTE):
        raise BlockingIOError(errno.EAGAIN, "the run has another supervisor", str(lock.fd))


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _ms(start: float) -> int:
    return int((time.monotonic() - start) * 1000)
