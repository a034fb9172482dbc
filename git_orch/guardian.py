"""The guardian: a process between supervisor and job that sees to it that nothing of the job survives.

    supervisor S --lifeline--> guardian G --> job and whatever it starts
               <---status-----

S forks G before it has a thread. G is PID 1 of a PID namespace (tier 1) or a child subreaper (tier 2), so everything
that the job leaves behind becomes G's child. When the job ends, when S asks, or when the lifeline shows that S is dead,
G ends all of it and says so only after ECHILD. If G is killed, the kernel (tier 1) or S, a subreaper too (tier 2), does
the killing. When S is dead G writes nothing and removes nothing: that is the reaper's, which then finds the lock free.

`Guard` is S's end of it; everything below `_Guardian` runs in G. On Windows there is no G: `JobGuard`.
"""

from __future__ import annotations

import os
import select
import sys
import time

from git_orch import jsontext, locks, proc, system
from git_orch.containment import TIER_NAMESPACE, Denied, Job, linux, namespaces
from git_orch.containment import windows as job_objects
from git_orch.containment.descendants import (
    SIGKILL,
    cpu_seconds,
    kill_orphans,
    kill_to_echild,
    own_pid,
    reap,
    signal_descendants,
    subreaper,
)
from git_orch.containment.entry import become, close_all_but, reason_of
from git_orch.model import Exited, NotStarted, Signalled, Unkillable, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal  # the type checker knows no stub of the module that does the work
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

    from git_orch.containment import darwin
    from git_orch.model import Outcome
else:
    import _signal

__all__ = ["Guard", "Job"]

START_TIMEOUT_S = 30.0
UNKILLABLE_AFTER_S = 5.0
RETRY_UNKILLABLE_S = 1.0
MOST_GUARDIANS = 64  # of one run at once
LONGEST_REASON, MOST_NAMED = 1000, 300  # a word must fit into one atomic write (PIPE_BUF)

TERMINATE, KILL = b"T", b"K"
SIGHUP, SIGINT, SIGQUIT, SIGTERM = 1, 2, 3, 15
SIGCONT, SIGCHLD = getattr(_signal, "SIGCONT", 0), getattr(_signal, "SIGCHLD", 0)  # Windows has neither

EMPTY_LOOKS, EMPTY_NAP_S = 10, 0.01
ORPHAN_NAP_S, QUIET_ROUNDS = 0.01, 2
NONCE = "ORCH_NONCE"  # in a job's environment, and in no other's: the cookie is the whole run's

READABLE: int = getattr(select, "POLLIN", 1)

_live: set[int] = set()  # the guardians of this process that are not known to be gone


def poll() -> select.poll | job_objects.Poll:
    """What waits for guards, by their `fileno`."""
    return select.poll() if hasattr(select, "poll") else job_objects.Poll()


class Guard:
    """The supervisor's end of one guardian.

    Poll `fileno()` and call `read()` when it is readable, until `gone`. Where `lost` is true after a read, the guardian
    was killed: `rescue()`. The process needs one thread, must not wait for any child but by its number, and must hand
    the lifeline to no child that does not exec.

    Attributes:
        outcome: None while the job runs. Not a last one before `gone`: an Unkillable becomes another when at last all
            has ended. What follows a `terminate` comes as Exited or Signalled; the supervisor knows why it asked.
        gone: nothing of job and guardian is left: proved by ECHILD, and in tier 1 by the end of the namespace as well.
        denied: the job did not start because its containment could not be made; where it is false, a weaker one would
            change nothing.
        lost: the guardian ended without a last word.
        fault: what went wrong inside the guardian, for the log.
        usage: complete when `gone`.
    """

    def __init__(self) -> None:
        self.outcome: Outcome | None = None
        self.usage = Usage()
        self.gone = False
        self.denied = False
        self.lost = False
        self.fault = ""
        self.job_pid = 0
        self.guardian_pid = 0
        self._lifeline = -1
        self._status = -1
        self._heard = b""
        self._last_word: Outcome | None = None
        self._cpu_s = 0.0

    @classmethod
    def start(cls, job: Job, *, lock_fd: int | None) -> Guard:
        """The job runs under a guardian, or `outcome` says why it did not start, and then nothing of it is left.

        The guardian keeps `lock_fd` open, and with it the flock that came over by fork, and takes a record lock on the
        first free byte from 1 on, so that F_GETLK names it. The job does not inherit it.
        """
        if not hasattr(os, "fork"):
            return JobGuard.hold(job)
        guard = cls()
        if _signal.getsignal(SIGCHLD) == _signal.SIG_IGN:  # inherited: the kernel would throw exit statuses away
            _signal.signal(SIGCHLD, _signal.SIG_DFL)
        try:
            subreaper()
            guard._launch(job, lock_fd)
        except OSError as error:
            guard._end(NotStarted(reason=reason_of(error, "guardian")))
            return guard
        guard._await_start()
        return guard

    def fileno(self) -> int:
        """The descriptor to poll; -1 once the guardian has fallen silent."""
        return self._status

    def read(self) -> None:
        """What the guardian has said by now is taken in; waits for nothing but a guardian that is just ending."""
        while self._status >= 0:
            try:
                said = os.read(self._status, 1 << 16)
            except BlockingIOError:
                return
            if not said:
                self._fall_silent()
                return
            *words, self._heard = (self._heard + said).split(b"\n")
            for word in words:
                self._hear(jsontext.loads(word))

    def terminate(self) -> None:
        """The guardian was asked for the kill ladder: SIGTERM, the job's grace, SIGKILL until ECHILD."""
        self._order(TERMINATE)

    def kill(self) -> None:
        """The guardian was asked to kill at once."""
        self._order(KILL)

    def rescue(self, spare: Iterable[int] = ()) -> None:
        """The guardian and all that it held is gone; Unkillable where that took too long: then call again.

        For one that is lost, or that does not answer. Other guardians are spared, and the children named in `spare`;
        every other child of this process counts as an orphan of the guardian's.
        """
        left = kill_orphans(UNKILLABLE_AFTER_S, _live - {self.guardian_pid} | set(spare), self._take_orphan)
        if left:
            self.outcome = Unkillable(pids=left)
        elif not self.gone:
            why = self.fault or ("it was killed" if self.lost else "it did not answer")
            killed = Signalled(signal=SIGKILL) if self.job_pid else NotStarted(reason=f"no guardian: {why}")
            self._end(self._last_word or killed)

    def cpu_s(self) -> float:
        """CPU seconds used so far by the job and all it started; never falls. Costs a look into /proc a process."""
        if not self.gone and self.guardian_pid:
            self._cpu_s = max(self._cpu_s, cpu_seconds(self.guardian_pid))
        return max(self._cpu_s, self.usage.cpu_s)

    def _launch(self, job: Job, lock_fd: int | None) -> None:
        life_r, self._lifeline = _pipe()
        self._status, status_w = _pipe()
        os.set_blocking(self._status, False)
        os.set_blocking(self._lifeline, False)
        blocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        try:
            child = os.fork()
            if not child:
                _be_guardian(job, life_r, status_w, lock_fd)
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)
            os.close(life_r)
            os.close(status_w)
        if job.containment.tier == TIER_NAMESPACE:
            os.waitpid(child, 0)  # it only made the guardian, which is ours from here on
        else:
            self._know(child)

    def _await_start(self) -> None:
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not (self.job_pid or self._status < 0) and poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            self.read()
        if not self.gone and (self.lost or not self.job_pid):
            self.rescue()

    def _hear(self, word: Any) -> None:
        match word:
            case ["up", int(guardian), int(job)]:
                self.job_pid = job
                self._know(guardian)
            case ["not-started", int(guardian), bool(denied), str(reason)]:
                self.denied = denied
                self._know(guardian)
                self._last_word = NotStarted(reason=reason)
            case ["unkillable", [*pids]]:
                self.outcome = Unkillable(pids=tuple(pids))
            case ["ended", int(status), cpu_s, int(peak)]:
                self._last_word = _outcome_of(status)
                self.usage = Usage(cpu_s=float(cpu_s), peak_rss_bytes=peak)
            case ["fault", str(text)]:
                self.fault = text

    def _know(self, guardian: int) -> None:
        if guardian:
            self.guardian_pid = guardian
            _live.add(guardian)

    def _fall_silent(self) -> None:
        """The status pipe has ended: with a last word the guardian is going and is waited for, else it is lost."""
        self._close()
        if self._last_word is None:
            self.lost = True
            return
        if self.guardian_pid:
            try:
                os.waitpid(self.guardian_pid, 0)
            except ChildProcessError:
                pass
        self._end(self._last_word)

    def _take_orphan(self, pid: int, status: int, cpu_s: float, peak: int) -> None:
        """Of a killed guardian, the use includes that of all it had reaped."""
        if pid == self.job_pid:
            self._last_word = _outcome_of(status)
        used = self.usage
        self.usage = Usage(cpu_s=used.cpu_s + cpu_s, peak_rss_bytes=max(used.peak_rss_bytes, peak))

    def _order(self, order: bytes) -> None:
        if self._lifeline < 0:
            return
        try:
            os.write(self._lifeline, order)
            os.kill(self.guardian_pid, SIGCONT)  # somebody may have stopped it; it is our child and not reaped yet
        except OSError:
            pass  # it is ending, or was killed: its status pipe tells

    def _end(self, outcome: Outcome) -> None:
        self._close()
        _live.discard(self.guardian_pid)
        self.outcome = outcome
        self.gone = True
        self.lost = False

    def _close(self) -> None:
        for fd in (self._lifeline, self._status):
            if fd >= 0:
                os.close(fd)
        self._lifeline = self._status = -1


class JobGuard(Guard):
    """The same where there is no guardian, because a job object holds the job (Windows). Written, not run.

    `fileno` is the handle of the job's program, for `poll`. There is no SIGTERM: whoever is asked to end is killed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._running: job_objects.Running | None = None
        self._code: int | None = None
        self._is_ordered = False
        self._ended_at = 0.0

    @classmethod
    def hold(cls, job: Job) -> JobGuard:
        """The job runs in a job object, or `outcome` says why it did not start."""
        guard = cls()
        try:
            guard._running = job_objects.Running.start(job)
        except OSError as error:
            guard._end(NotStarted(reason=reason_of(error, job.argv[0])))
            return guard
        guard.job_pid = guard._running.pid
        return guard

    def fileno(self) -> int:
        """The handle to poll; -1 when all is over."""
        return -1 if self._running is None else self._running.handle

    def read(self) -> None:
        """Where the job's program has ended or must end, so has all that it started: proved by the job's own count."""
        running = self._running
        if running is None:
            return
        if self._code is None and not self._is_ordered:
            self._code = running.exit_code()
        if self._code is None and not self._is_ordered:
            return
        self._ended_at = self._ended_at or time.monotonic()
        running.kill()
        if self._is_empty(running):
            self._settle(running)
        elif time.monotonic() - self._ended_at > UNKILLABLE_AFTER_S:
            self.outcome = Unkillable(pids=running.pids())

    def rescue(self, spare: Iterable[int] = ()) -> None:
        """As `kill`: a job object is not lost as long as this process lives."""
        del spare
        self._order(KILL)

    def cpu_s(self) -> float:
        """CPU seconds used so far by the job and all it started; never falls."""
        if self._running is not None:
            self._cpu_s = max(self._cpu_s, self._running.cpu_s())
        return max(self._cpu_s, self.usage.cpu_s)

    def _is_empty(self, running: job_objects.Running) -> bool:
        """Whether nothing lives in the job object, at the latest after a moment: what was ended is not gone at once."""
        for _ in range(EMPTY_LOOKS):
            if not running.active():
                return True
            time.sleep(EMPTY_NAP_S)
        return not running.active()

    def _settle(self, running: job_objects.Running) -> None:
        self.usage = Usage(cpu_s=running.cpu_s(), peak_rss_bytes=running.peak_bytes())
        code = self._code
        running.close()
        self._running = None
        # Ended by us before it had ended by itself: its code is only what we gave it.
        self._end(Signalled(signal=SIGKILL) if code is None else Exited(code=code))

    def _order(self, order: bytes) -> None:
        self.read()  # what has ended by itself has its own code
        self._is_ordered = order in (TERMINATE, KILL)
        self.read()


class _Guardian:
    """The process G, from its fork to its end."""

    def __init__(self, job: Job, lifeline: int, status: int, lock_fd: int | None) -> None:
        self._job = job
        self._in_namespace = job.containment.tier == TIER_NAMESPACE
        self._lifeline = lifeline
        self._status = status
        self._lock_fd = lock_fd
        self._order = b""
        self._job_pid = 0
        self._job_status: int | None = None
        self._reaped = 0
        self._childless = False
        self._cpu_s = 0.0
        self._peak = 0
        self._report = b""
        self._lineage: darwin.Lineage | None = None
        self._poll = select.poll()
        self._readers: dict[int, Callable[[int], None]] = {}

    def run(self) -> None:
        """The job has run, or could not start; nothing of it is left, and the supervisor, if it lives, was told."""
        self._settle_in()
        started = self._start_job()
        if not started:
            return
        self._until(lambda: self._job_status is not None or bool(self._order))
        self._give_grace()
        self._kill()
        if self._lineage is not None:
            self._kill_orphans(self._lineage)
        status = SIGKILL if self._job_status is None else self._job_status
        self._say("ended", status, self._cpu_s, self._peak)

    def _settle_in(self) -> None:
        """Of the supervisor's streams, signals and session nothing is left in this process."""
        os.setsid()  # a terminal, or a SIGKILL of the supervisor's process group, does not reach it
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.close(null)
        if self._lock_fd is not None:
            _take_record_lock(self._lock_fd)
        if not self._in_namespace:
            subreaper()
        if sys.platform == "linux":
            linux.set_name("orch-guardian")  # by which `killall python3` passes it over
        wake_r, wake_w = _pipe()
        for fd in (wake_r, wake_w):
            os.set_blocking(fd, False)
        for number in (SIGTERM, SIGINT, SIGHUP, SIGQUIT):
            _signal.signal(number, _signal.SIG_IGN)
        _signal.signal(SIGCHLD, lambda *_: None)
        _signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        if sys.platform == "darwin":
            from git_orch.containment import darwin

            self._follow(darwin.Lineage(os.getpid()))
        self._listen(wake_r, self._on_child)
        self._listen(self._lifeline, self._on_lifeline)

    def _start_job(self) -> bool:
        """The job was executed, and the supervisor was told; False where it could not be, and all is over."""
        try:
            given = _open_input(self._job.stdin_path) if self._job.stdin_path else 0
            streams = (given, _open_output(self._job.stdout_path), _open_output(self._job.stderr_path))
            report_r, report_w = _pipe()
            self._job_pid = os.fork()
        except OSError as error:
            self._say("not-started", own_pid(), False, reason_of(error, "fork")[:LONGEST_REASON])
            return False
        if not self._job_pid:
            become(self._job, streams, report_w)
        for fd in (report_w, *filter(None, streams)):
            os.close(fd)
        self._listen(report_r, self._on_report)
        self._until(lambda: report_r not in self._readers or self._order == KILL)
        number, kind, reason = (*self._report.split(b"\n", 2), b"", b"")[:3]
        if kind:
            self._until(lambda: self._childless)
            self._say("not-started", own_pid(), kind == b"denied", reason.decode(errors="replace")[:LONGEST_REASON])
            return False
        self._say("up", own_pid(), int(number or 0))
        return True

    def _until(self, condition: Callable[[], bool], timeout_s: float | None = None) -> None:
        """The condition is true or the time is up; until then it only sleeps, reaps and hears orders."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not condition():
            left_ms = None if deadline is None else (deadline - time.monotonic()) * 1000
            if left_ms is not None and left_ms <= 0:
                return
            for fd, _ in self._poll.poll(left_ms):
                self._readers[fd](fd)

    def _listen(self, fd: int, reader: Callable[[int], None]) -> None:
        self._readers[fd] = reader
        self._poll.register(fd, select.POLLIN)

    def _ignore(self, fd: int) -> None:
        self._poll.unregister(fd)
        del self._readers[fd]
        os.close(fd)

    def _on_child(self, fd: int) -> None:
        os.read(fd, 1 << 12)
        self._childless = reap(self._take)

    def _on_lifeline(self, fd: int) -> None:
        """Orders only grow: a SIGKILL asked for is not taken back. The end of the lifeline is the supervisor's."""
        orders = os.read(fd, 64)
        if not orders:
            self._ignore(fd)
        self._order = KILL if not orders or KILL in orders or self._order == KILL else TERMINATE

    def _on_report(self, fd: int) -> None:
        part = os.read(fd, 1 << 12)
        self._report += part
        if not part:
            self._ignore(fd)

    def _take(self, pid: int, status: int, cpu_s: float, peak: int) -> None:
        self._reaped += 1
        if pid == self._job_pid:
            self._job_status = status
        self._cpu_s += cpu_s
        self._peak = max(self._peak, peak)

    def _give_grace(self) -> None:
        """Everything was asked to end, once, and has ended or had its time for that, unless a SIGKILL is ordered.

        Who ends may leave others behind that were born since one looked: each end is a reason to look again.
        """
        deadline = time.monotonic() + self._job.grace_s
        asked: set[int] = set()
        while not self._childless and self._order != KILL and (left_s := deadline - time.monotonic()) > 0:
            signal_descendants(SIGTERM, SIGCONT, asked=asked)  # what is stopped would not hear the first
            before = self._reaped
            self._until(lambda: self._reaped != before or self._childless or self._order == KILL, left_s)  # noqa: B023

    def _kill(self) -> None:
        """ECHILD: nothing is left. What resists is told of, and tried again until it goes."""
        left = kill_to_echild(UNKILLABLE_AFTER_S, strike=self._strike, reaped=self._take)
        if not left:
            return
        self._say("unkillable", left[:MOST_NAMED])
        self._childless = False
        while not self._childless:
            self._until(lambda: self._childless, RETRY_UNKILLABLE_S)
            self._strike()

    def _strike(self) -> None:
        if not self._in_namespace:
            signal_descendants(SIGKILL)
            if sys.platform == "darwin":
                self._kill_group()
            return
        if os.getpid() != 1:
            raise RuntimeError("not PID 1 of a namespace: -1 would be everybody")
        try:
            os.kill(-1, SIGKILL)  # all but PID 1, in one step that no fork can slip through
        except OSError:
            pass  # there is nobody

    def _kill_group(self) -> None:
        """Of a job that still runs, also what was orphaned to launchd was killed, if it stayed in the job's group.

        Only then: once the job is reaped, the number of its group may be another's. macOS; written, not run.
        """
        if self._job_pid and self._job_status is None:
            try:
                os.killpg(self._job_pid, SIGKILL)
            except OSError:  # it has not come as far as setsid, or there is nobody left
                pass

    def _follow(self, lineage: darwin.Lineage) -> None:
        """Each fork below this process is a reason to see who is there (macOS). Written, not run."""
        self._lineage = lineage
        if lineage.fileno() >= 0:
            self._listen(lineage.fileno(), lambda _: lineage.heard())

    def _kill_orphans(self, lineage: darwin.Lineage) -> None:
        """Nothing of the lineage, and nothing that carries the job's nonce, is left: two looks in a row found none.

        What resists is told of, and tried again until it goes. For macOS, where ECHILD does not tell of orphans;
        written, not run.
        """
        nonce = self._job.env.get(NONCE, "")
        deadline, quiet, is_told = time.monotonic() + UNKILLABLE_AFTER_S, 0, False
        while quiet < QUIET_ROUNDS:
            left = lineage.kill(f"{NONCE}={nonce}".encode() if nonce else b"")
            quiet = 0 if left else quiet + 1
            self._childless = reap(self._take)
            if left and not is_told and time.monotonic() > deadline:
                is_told = True
                self._say("unkillable", tuple(lineage.look())[:MOST_NAMED])
            time.sleep(RETRY_UNKILLABLE_S if is_told else ORPHAN_NAP_S)

    def _say(self, *word: object) -> None:
        _say(self._status, *word)


def _be_guardian(job: Job, lifeline: int, status: int, lock_fd: int | None) -> NoReturn:
    """This process, just forked, is the guardian; in tier 1 it forks once more to be PID 1, and ends."""
    try:
        # First of all: the lifelines of other guardians must not stay open here for a moment longer than they have to.
        close_all_but((lifeline, status, -1 if lock_fd is None else lock_fd))
        if job.containment.tier == TIER_NAMESPACE:
            namespaces.separate()
            if os.fork():
                os._exit(0)
        _Guardian(job, lifeline, status, lock_fd).run()
    except Denied as denied:
        _say(status, "not-started", 0, True, denied.message[:LONGEST_REASON])
    except BaseException as error:
        _say(status, "fault", repr(error)[:LONGEST_REASON])
        raise
    finally:
        os._exit(0)  # never back into the supervisor's code


def _say(status: int, *word: object) -> None:
    try:
        os.write(status, jsontext.dumps(word).encode() + b"\n")
    except BrokenPipeError:
        pass  # the supervisor is dead, and the lifeline has ended or is about to


def _take_record_lock(lock_fd: int) -> None:
    """This process holds one byte of the lock file, and F_GETLK names it. Lost if any descriptor of it is closed here.

    Raises:
        OSError: the file system knows no locks.
    """
    for byte in range(1, MOST_GUARDIANS + 1):
        if locks.name_holder(lock_fd, byte):  # else another guardian of the same run has that byte
            return


def _open_input(path: str) -> int:
    return os.open(path, os.O_RDONLY | system.NOFOLLOW | system.CLOEXEC)


def _open_output(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | system.NOFOLLOW | system.CLOEXEC, 0o600)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are none of the standard streams, which may be closed."""
    read_end, write_end = os.pipe()
    return proc.above_streams(read_end), proc.above_streams(write_end)


def _outcome_of(status: int) -> Outcome:
    code = os.waitstatus_to_exitcode(status)
    return Exited(code=code) if code >= 0 else Signalled(signal=-code)
