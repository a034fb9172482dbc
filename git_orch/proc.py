"""The one module that starts processes (jobs of reviewers excepted: the guardian forks those).

argv lists only, an explicit environment, /dev/null as standard input unless bytes are given, a deadline always. Built on
posix_spawn, since `import subprocess` costs more than a git call; on Windows it goes through subprocess.
"""

from __future__ import annotations

import errno
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SIGKILL = 9
SIGPIPE = 13


class Finished:
    """A process that ended: exit code (negative: the signal that ended it) and what it wrote.

    No `Record`: a hook that has nothing to do needs this module and no other, and feels each import.
    """

    __slots__ = ("code", "stderr", "stdout", "timed_out")

    def __init__(self, *, code: int, stdout: bytes, stderr: bytes, timed_out: bool = False) -> None:
        self.code = code
        self.stdout = stdout
        self.stderr = stderr
        self.timed_out = timed_out


def run(
    argv: Sequence[str | bytes],
    *,
    env: Mapping[str, str],
    stdin: bytes = b"",
    stdout_fd: int | None = None,
    timeout_s: float = 60.0,
) -> Finished:
    """The program has run to its end, or was killed when its time was up.

    Args:
        stdout_fd: a descriptor that takes standard output instead of `Finished.stdout`.

    Raises:
        FileNotFoundError: there is no such program.
    """
    if os.name == "nt":
        return _run_windows(argv, env, stdin, stdout_fd, timeout_s)
    out_r, out_w = os.pipe() if stdout_fd is None else (-1, stdout_fd)
    err_r, err_w = os.pipe()
    in_r, in_w = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1)
    try:
        pid = _spawn(argv, env, (in_r, out_w, err_w))
    except BaseException:
        for fd in (in_w, out_r, err_r):
            _close(fd)
        raise
    finally:
        for fd in (in_r, err_w, out_w if stdout_fd is None else -1):
            _close(fd)
    exchange = _Exchange(stdin, in_w, out_r, err_r)
    timed_out = not exchange.until(time.monotonic() + timeout_s)
    if timed_out:
        os.kill(pid, SIGKILL)  # not reaped yet: the pid is still this child's
    exchange.close()
    _, status = os.waitpid(pid, 0)
    return Finished(
        code=os.waitstatus_to_exitcode(status),
        stdout=b"".join(exchange.taken[out_r]) if out_r >= 0 else b"",
        stderr=b"".join(exchange.taken[err_r]),
        timed_out=timed_out,
    )


def spawn_detached(argv: Sequence[str], *, env: Mapping[str, str], inherit: Sequence[int]) -> int:
    """A program runs in a session of its own with /dev/null as its streams; gives its pid, a child of ours.

    `inherit`: descriptors that it keeps under the same numbers.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
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
    return timeout_s > 0 and bool(select.select([fd], [], [], timeout_s)[0])


def find_program(name: str, path: str) -> str | None:
    """The absolute path of an executable file of that name on a PATH; a name with a slash is taken as it is."""
    if "/" in name:
        return os.path.abspath(name) if os.access(name, os.X_OK) and os.path.isfile(name) else None
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or ".", name)
        if os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return os.path.abspath(candidate)
    return None


def _spawn(
    argv: Sequence[str | bytes], env: Mapping[str, str], streams: tuple[int, int, int], *, setsid: bool = False
) -> int:
    name = os.fsdecode(argv[0])
    program = find_program(name, env.get("PATH", os.defpath))
    if program is None:
        raise FileNotFoundError(errno.ENOENT, "not found on PATH", name)
    actions = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(streams)]
    # Python ignores SIGPIPE, and what is ignored stays so across exec: `git` would then write on into a closed pipe.
    return os.posix_spawn(program, tuple(argv), env, file_actions=actions, setsid=setsid, setsigdef=[SIGPIPE])


class _Exchange:
    """Bytes to a child and from it, without a deadlock whichever side fills first."""

    def __init__(self, stdin: bytes, in_w: int, *outputs: int) -> None:
        self._rest = memoryview(stdin)
        self._in_w = in_w
        self.taken: dict[int, list[bytes]] = {fd: [] for fd in outputs}
        self._poll = select.poll()
        self._open = {fd for fd in outputs if fd >= 0}
        for fd in self._open:
            self._poll.register(fd, select.POLLIN)
        if in_w >= 0:
            os.set_blocking(in_w, False)
            self._open.add(in_w)
            self._poll.register(in_w, select.POLLOUT)

    def until(self, deadline: float) -> bool:
        """Every stream has come to its end; False where the deadline came first."""
        while self._open:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            for fd, _ in self._poll.poll(left * 1000):
                self._write() if fd == self._in_w else self._read(fd)
        return True

    def close(self) -> None:
        """No descriptor of the exchange is open."""
        for fd in tuple(self._open):
            self._end(fd)

    def _read(self, fd: int) -> None:
        part = os.read(fd, 1 << 16)
        if part:
            self.taken[fd].append(part)
        else:
            self._end(fd)

    def _write(self) -> None:
        try:
            self._rest = self._rest[os.write(self._in_w, self._rest[: 1 << 16]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it did not want the rest; its exit code tells whether that was well
            self._rest = self._rest[:0]
        if not self._rest:
            self._end(self._in_w)

    def _end(self, fd: int) -> None:
        self._poll.unregister(fd)
        self._open.discard(fd)
        os.close(fd)


def _close(fd: int) -> None:
    if fd >= 0:
        os.close(fd)


def _run_windows(
    argv: Sequence[str | bytes], env: Mapping[str, str], stdin: bytes, stdout_fd: int | None, timeout_s: float
) -> Finished:
    """The same by subprocess. Written, not run."""
    import subprocess

    try:
        done = subprocess.run(
            [os.fsdecode(word) for word in argv],
            env=dict(env),
            input=stdin,
            stdout=subprocess.PIPE if stdout_fd is None else stdout_fd,
            stderr=subprocess.PIPE,
            timeout=timeout_s,
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except subprocess.TimeoutExpired as late:
        return Finished(code=-SIGKILL, stdout=late.stdout or b"", stderr=late.stderr or b"", timed_out=True)
    return Finished(code=done.returncode, stdout=done.stdout or b"", stderr=done.stderr)


def interpreter() -> str:
    """The interpreter that runs us, as an absolute path that stays the same inside a virtual environment."""
    return os.path.abspath(sys.executable)
