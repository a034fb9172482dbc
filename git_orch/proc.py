"""The one module that starts processes (jobs of reviewers excepted: the guardian forks those).

argv lists only, an explicit environment, /dev/null as standard input unless bytes are given, a deadline always. Built
on posix_spawn, since `import subprocess` costs more than a git call; on Windows it goes through subprocess.
"""

from __future__ import annotations

import errno
import os
import select
import sys
import time

from git_orch import system, windows
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal  # the type checker knows no stub of the module that does the work
    from collections.abc import Iterable, Mapping, Sequence
    from subprocess import Popen
    from typing import Any
else:
    import _signal

SIGKILL = 9
SIGPIPE = 13
SIGTERM = 15
GRACE_S = 1.0  # after TERM: git takes its lock files away and ends its filters
KILLED_S = 5.0  # after KILL: a process that the kernel will not let go is left to it
_PAUSE_S = 0.02
_PIPE_BYTES = 1 << 20  # the most that a pipe holds


class Command(Record):
    """A program to run, its whole environment, and what it reads.

    `stdout_fd`: a descriptor that takes standard output instead of `Finished.stdout`. `to_the_end`: it counts as ended
    only when nothing that it left behind holds its streams any more, as a client waits for a hook.
    """

    argv: Sequence[str | bytes]
    env: Mapping[str, str]
    stdin: bytes = b""
    stdout_fd: int | None = None
    to_the_end: bool = False


class Finished(Record):
    """A process that ended: exit code (negative: the signal that ended it) and what it wrote."""

    code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False


def run(
    argv: Sequence[str | bytes],
    *,
    env: Mapping[str, str],
    stdin: bytes = b"",
    stdout_fd: int | None = None,
    timeout_s: float = 60.0,
) -> Finished:
    """The program has run to its end, or was ended when its time was up.

    Raises:
        FileNotFoundError: there is no such program.
    """
    return run_together([Command(argv=argv, env=env, stdin=stdin, stdout_fd=stdout_fd)], timeout_s=timeout_s)[0]


def run_together(commands: Sequence[Command], *, timeout_s: float = 60.0) -> list[Finished]:
    """The programs have run side by side, each to its end; those that were not done in time were ended.

    The end is the program's own: what it left behind may hold its standard output open for as long as it likes.

    Raises:
        FileNotFoundError: there is no such program; none of them is left running.
    """
    if os.name == "nt":
        return [_run_windows(command, timeout_s) for command in commands]
    children: list[_Child] = []
    try:
        for command in commands:
            children.append(_Child(command))
        _wait(children, timeout_s)
        late = [child for child in children if not child.ended]
        _signal_all(late, SIGTERM)
        _let_end(late)
    finally:
        _signal_all(children, SIGKILL)
        _wait(children, KILLED_S)
        for child in children:
            child.close()
    return [child.finished(timed_out=child in late) for child in children]


def spawn_detached(argv: Sequence[str], *, env: Mapping[str, str], inherit: Sequence[int]) -> int:
    """A program runs in a session of its own with /dev/null as its streams; gives its pid, a child of ours.

    `inherit`: descriptors that it keeps under the same numbers.
    """
    null = above_streams(os.open(os.devnull, os.O_RDWR | system.CLOEXEC))
    try:
        for fd in inherit:
            os.set_inheritable(fd, True)
        return _spawn(argv, env, (null, null, null), setsid=True)
    finally:
        for fd in inherit:
            os.set_inheritable(fd, False)
        os.close(null)


def readable(fd: int, timeout_s: float) -> bool:
    """Whether there is something to read, or an end, within that time."""
    if os.name == "nt":
        return timeout_s > 0 and windows.readable(fd, timeout_s)
    return timeout_s > 0 and bool(select.select([fd], [], [], timeout_s)[0])


def greet(ready_fd: int) -> None:
    """Whoever waits for this process to be up knows that it is, and the descriptor is closed.

    A launcher that was killed meanwhile waits no more; what it has begun goes on all the same.
    """
    try:
        os.write(ready_fd, b"x")
    except BrokenPipeError:
        pass
    os.close(ready_fd)


def find_program(name: str, path: str) -> str | None:
    """The absolute path of an executable file of that name on a PATH; a name with a slash is taken as it is."""
    if os.name == "nt":
        return windows.find_program(name, path)
    if "/" in name:
        return os.path.abspath(name) if os.access(name, os.X_OK) and os.path.isfile(name) else None
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or ".", name)
        if os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return os.path.abspath(candidate)
    return None


def interpreter() -> str:
    """The interpreter that runs us, as an absolute path that stays the same inside a virtual environment."""
    return windows.interpreter() if os.name == "nt" else os.path.abspath(sys.executable)


class _Child:
    """A child process and our ends of its streams. Bytes go both ways without a deadlock, whichever fills first."""

    def __init__(self, command: Command) -> None:
        self._rest = memoryview(command.stdin)
        self._taken: dict[int, list[bytes]] = {}
        self._ours: set[int] = set()
        theirs: list[int] = []
        try:
            streams = self._streams(command, theirs)
            self.pid = _spawn(command.argv, command.env, streams)
        except BaseException:
            self.close()
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        self._to_the_end = command.to_the_end
        self._exit: int | None = None  # once it is waited for, its pid may be another's
        self._status: int | None = None
        self._pidfd = _pidfd_open(self.pid)
        self._queue = _end_of(self.pid)

    def _streams(self, command: Command, theirs: list[int]) -> tuple[int, int, int]:
        """The descriptors that become 0, 1 and 2 of the child; those to be closed here afterwards are in `theirs`."""
        if command.stdin:
            in_r, self._in_w = map(above_streams, os.pipe())
            self._ours.add(self._in_w)
        else:
            in_r, self._in_w = above_streams(os.open(os.devnull, os.O_RDONLY | system.CLOEXEC)), -1
        theirs.append(in_r)
        self._out_r, out_w = (-1, command.stdout_fd) if command.stdout_fd is not None else self._output(theirs)
        self._err_r, err_w = self._output(theirs)
        for fd in self._ours:
            os.set_blocking(fd, False)
        return in_r, out_w, err_w

    def _output(self, theirs: list[int]) -> tuple[int, int]:
        read_end, write_end = map(above_streams, os.pipe())
        self._ours.add(read_end)
        self._taken[read_end] = []
        theirs.append(write_end)
        return read_end, write_end

    @property
    def ended(self) -> bool:
        """Whether the process has ended, as far as we have looked."""
        return self._status is not None

    @property
    def pause_s(self) -> float:
        """How long one may wait for a descriptor to become ready before one looks again."""
        if self._pidfd >= 0 or self._queue is not None:
            return KILLED_S
        return _PAUSE_S if self._ours else 0.001

    def events(self) -> Iterable[tuple[int, int]]:
        """The descriptors to poll, each with what to poll for."""
        if self._pidfd >= 0:
            yield self._pidfd, select.POLLIN
        elif self._queue is not None:
            yield self._queue.fileno(), select.POLLIN
        for fd in self._ours:
            yield fd, select.POLLOUT if fd == self._in_w else select.POLLIN

    def serve(self, fd: int) -> None:
        """What the descriptor is ready for is done."""
        if fd == self._in_w:
            self._write()
        elif fd in self._ours:
            self._read(fd, 1 << 16)

    def look(self) -> None:
        """If the process has ended, its status and all that it wrote are known."""
        if self._exit is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if not pid:
                return
            self._exit = status
            self._forget_pid()
            for fd in tuple(self._ours & self._taken.keys()):
                self._read(fd, _PIPE_BYTES)
        if not self.ended and not (self._to_the_end and self._ours & self._taken.keys()):
            self._status = self._exit
            self.close()

    def signal(self, number: int) -> None:
        """The process and what it started (a filter, a transport) were sent the signal.

        Not once it has been waited for: then the number may be another's.
        """
        if self._exit is None:
            os.killpg(self.pid, number)

    def has_ended(self) -> bool:
        """Whether the process has ended; it is not waited for. False where the system does not tell."""
        if self._exit is not None or not hasattr(os, "waitid"):
            return self._exit is not None
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def finished(self, *, timed_out: bool) -> Finished:
        """How it ended."""
        status = SIGKILL if self._exit is None else self._exit
        return Finished(
            code=os.waitstatus_to_exitcode(status),
            stdout=b"".join(self._taken.get(self._out_r, ())),
            stderr=b"".join(self._taken[self._err_r]),
            timed_out=timed_out,
        )

    def close(self) -> None:
        """None of our descriptors is open."""
        for fd in tuple(self._ours):
            self._close(fd)
        self._forget_pid()

    def _forget_pid(self) -> None:
        if getattr(self, "_pidfd", -1) >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        if getattr(self, "_queue", None) is not None:
            self._queue.close()
            self._queue = None

    def _read(self, fd: int, most: int) -> None:
        """At most that many bytes more are taken: a daemon that it left behind may go on writing."""
        while most > 0:
            try:
                part = os.read(fd, min(most, 1 << 16))
            except BlockingIOError:
                return
            if not part:
                self._close(fd)
                return
            self._taken[fd].append(part)
            most -= len(part)

    def _write(self) -> None:
        try:
            self._rest = self._rest[os.write(self._in_w, self._rest[: 1 << 16]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it did not want the rest; its exit code tells whether that was well
            self._rest = self._rest[:0]
        if not self._rest:
            self._close(self._in_w)

    def _close(self, fd: int) -> None:
        self._ours.discard(fd)
        os.close(fd)


def _wait(children: Sequence[_Child], timeout_s: float) -> bool:
    """All of them have ended; False where the time was up first."""
    deadline = time.monotonic() + timeout_s
    while True:
        live = [child for child in children if not child.ended]
        if not live:
            return True
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        by_fd = {fd: child for child in live for fd, _ in child.events()}
        poll = select.poll()
        for child in live:
            for fd, event in child.events():
                poll.register(fd, event)
        for fd, _ in poll.poll(min(left, _longest_pause(live)) * 1000):
            by_fd[fd].serve(fd)
        for child in live:
            child.look()


def _longest_pause(live: Sequence[_Child]) -> float:
    """Without pidfds (macOS, old kernels) the end of a process shows only when one looks."""
    return min(child.pause_s for child in live)


def _let_end(children: Sequence[_Child]) -> None:
    """They have had a moment to end by themselves. None is waited for: for as long, its group's number is its own."""
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline and not all(child.has_ended() for child in children):
        select.poll().poll(_PAUSE_S * 1000)


def _signal_all(children: Sequence[_Child], number: int) -> None:
    for child in children:
        child.signal(number)


def _pidfd_open(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def _end_of(pid: int) -> Any:
    """What macOS has in place of a pidfd: a `kqueue` to poll; None elsewhere."""
    if sys.platform != "darwin":
        return None
    from git_orch.containment import darwin

    return darwin.watch_end(pid)


def above_streams(fd: int) -> int:
    """The same file at 3 or above: one who starts us with a closed stream makes the kernel give out 0 to 2."""
    low = []
    while fd <= 2:
        low.append(fd)
        fd = os.dup(fd)
    for taken in low:
        os.close(taken)
    return fd


def _spawn(
    argv: Sequence[str | bytes], env: Mapping[str, str], streams: tuple[int, int, int], *, setsid: bool = False
) -> int:
    name = os.fsdecode(argv[0])
    program = find_program(name, env.get("PATH", os.defpath))
    if program is None:
        raise FileNotFoundError(errno.ENOENT, "not found on PATH", name)
    if _signal.getsignal(_signal.SIGCHLD) == _signal.SIG_IGN:  # inherited: the kernel would keep no status for us
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    actions = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(streams)]
    group: dict[str, Any] = {"setsid": True} if setsid else {"setpgroup": 0}
    # Python ignores SIGPIPE, and what is ignored or blocked stays so across exec: `git` would then write on into a
    # closed pipe, or never hear of our TERM.
    return os.posix_spawn(
        program,
        tuple(argv),
        env,
        file_actions=actions,
        setsigmask=(),
        setsigdef=(SIGPIPE, SIGTERM, _signal.SIGCHLD),
        **group,
    )


def _run_windows(command: Command, timeout_s: float) -> Finished:
    """The same by subprocess, without a window; at the deadline with all that it has started. Written, not run."""
    import subprocess

    from git_orch.containment import windows as job_objects

    name, *words = map(os.fsdecode, command.argv)
    program = windows.find_program(name, command.env.get("PATH", ""))  # CreateProcess would take one of the tree first
    if program is None:
        raise FileNotFoundError(errno.ENOENT, "not found on PATH", name)
    process = subprocess.Popen(
        [program, *words],
        env=windows.with_system(command.env),
        stdin=subprocess.PIPE if command.stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE if command.stdout_fd is None else command.stdout_fd,
        stderr=subprocess.PIPE,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    group = job_objects.Group(int(getattr(process, "_handle", 0)))
    try:
        stdout, stderr = process.communicate(command.stdin or None, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        group.kill()  # what it started holds its pipes open, and would be waited for
        stdout, stderr = _rest(process)
        return Finished(code=-SIGKILL, stdout=stdout, stderr=stderr, timed_out=True)
    finally:
        group.close()
    return Finished(code=process.returncode, stdout=stdout or b"", stderr=stderr)


def _rest(process: Popen[bytes]) -> tuple[bytes, bytes]:
    """What a process that was ended had written, if it ends."""
    import subprocess

    try:
        stdout, stderr = process.communicate(timeout=KILLED_S)
    except subprocess.TimeoutExpired:
        return b"", b""
    return stdout or b"", stderr
