"""What a process has started, directly or not: to list, to signal, and to end with proof.

Proof is ECHILD: a subreaper, or PID 1 of a namespace, that has no child has no descendant at all. No look through /proc
gives that, since a process that forks and exits faster than one reads is never seen (actions/runner#4601).
"""

from __future__ import annotations

import errno
import os
import sys
import time

from git_orch.system import CLOEXEC

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal  # the type checker knows no stub of the module that does the work
    from collections.abc import Callable, Collection, Iterator
    from resource import struct_rusage

    Reaped = Callable[[int, int, float, int], None]  # pid, wait status, CPU seconds, peak resident bytes
else:
    import _signal

SIGKILL = 9
PROC = "/proc"
FIRST_NAP_S, LONGEST_NAP_S = 0.0001, 0.02


def subreaper() -> None:
    """What is orphaned below this process becomes its child, where the system has a word for that."""
    if sys.platform == "linux":
        from git_orch.containment import linux

        linux.subreaper()


def own_pid() -> int:
    """The number of this process in the /proc that it sees: inside a PID namespace not what getpid says."""
    try:
        return int(os.readlink(PROC + "/self"))
    except OSError:
        return os.getpid()


def children(pid: int) -> list[int]:
    """The children of all threads of a process, in the order in which they came to it; zombies too."""
    if sys.platform == "darwin":
        from git_orch.containment import darwin

        return darwin.children(pid)
    try:
        threads = os.listdir(f"{PROC}/{pid}/task")
    except OSError:
        return []
    found: list[int] = []
    for thread in threads:
        try:
            found += map(int, read_whole(f"{PROC}/{pid}/task/{thread}/children").split())
        except FileNotFoundError:
            if not os.path.exists(f"{PROC}/self/task/{own_pid()}/children"):
                return _children_by_search(pid)  # a kernel without CONFIG_PROC_CHILDREN
        except OSError:
            pass
    return found


def descendants(pid: int) -> list[int]:
    """Everything below a process, nearest first, as far as one look can tell."""
    return [child for child, _ in _pairs(pid, ())]


def signal_descendants(*numbers: int, spare: Collection[int] = (), asked: set[int] | None = None) -> None:
    """Everything below this process was sent the signals, but for the spared children and what is below them.

    Nothing in `asked` is sent them again; who was sent them is added to it.
    """
    me = own_pid()
    is_outside = me == os.getpid()  # else /proc is that of another namespace, and shows other numbers than kill takes
    for pid, parent in list(_pairs(me, spare)):
        if asked is not None:
            if pid in asked:
                continue
            asked.add(pid)
        try:
            own_number = pid if is_outside else _number_inside(pid, me)
            if parent == me:
                for number in numbers:
                    os.kill(own_number, number)  # only we can reap a child of ours, so the number is still its own
            else:
                _signal_grandchild(pid, own_number, (parent, me), numbers)
        except OSError:
            pass  # gone, or another user's: what is left shows in the count


def reap(reaped: Reaped) -> bool:
    """Every child of this process that has ended is reaped and told of; True when there are no children at all."""
    try:
        while True:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if not pid:
                return False
            reaped(pid, status, *usage_of(usage))
    except ChildProcessError:
        return True


def usage_of(usage: struct_rusage) -> tuple[float, int]:
    """CPU seconds, and the largest resident set in bytes, of a reaped process and all that it reaped itself.

    What ignores SIGCHLD has its children's use lost (getrusage(2)). No set is smaller than the interpreter's, some
    10 MB, which a forked process had before its exec.
    """
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def kill_to_echild(
    budget_s: float, *, strike: Callable[[], None] | None = None, reaped: Reaped = lambda *_: None
) -> tuple[int, ...]:
    """No descendant of this process is left: proved by ECHILD, and then the answer is empty.

    When the budget is used up: those left, for people to read. `strike` sends the SIGKILLs of one round; without it
    all descendants are walked. Nothing is stopped first: that made it a hundred times slower.
    """
    deadline = time.monotonic() + budget_s
    nap_s = FIRST_NAP_S
    while True:
        (strike or _strike)()
        if reap(reaped):
            return ()
        if time.monotonic() > deadline and (left := descendants(own_pid())):
            return tuple(left)
        time.sleep(nap_s)
        nap_s = min(nap_s * 1.5, LONGEST_NAP_S)


def kill_orphans(budget_s: float, spare: Collection[int], reaped: Reaped) -> tuple[int, ...]:
    """No child of this process is left but the spared ones, nor anything below those that went; else who is left.

    ECHILD never comes while spared children live, so the list of children is the proof. That takes a process with one
    thread that ignores no SIGCHLD: only its own waiting takes a child off that list, newcomers are put at its end, and
    so one reading that shows spared ones alone has missed nobody.
    """
    deadline = time.monotonic() + budget_s
    nap_s = FIRST_NAP_S
    while mine := [child for child in children(own_pid()) if child not in spare]:
        signal_descendants(SIGKILL, spare=spare)
        for child in mine:
            _reap_one(child, reaped)
        if time.monotonic() > deadline:
            return tuple(mine)
        time.sleep(nap_s)
        nap_s = min(nap_s * 1.5, LONGEST_NAP_S)
    return ()


def cpu_seconds(pid: int) -> float:
    """CPU time of everything below a process: of the living, of what they reaped, and of what it reaped itself."""
    if sys.platform == "darwin":
        from git_orch.containment import darwin

        return darwin.cpu_seconds(pid)
    ticks = sum(_ticks(pid)[2:])
    ticks += sum(sum(_ticks(child)) for child in descendants(pid))
    return ticks / os.sysconf("SC_CLK_TCK")


def _strike() -> None:
    signal_descendants(SIGKILL)


def _reap_one(child: int, reaped: Reaped) -> None:
    try:
        pid, status, usage = os.wait4(child, os.WNOHANG)
    except ChildProcessError:
        return
    if pid:
        reaped(pid, status, *usage_of(usage))


def _pairs(root: int, spare: Collection[int]) -> Iterator[tuple[int, int]]:
    """Each descendant with its parent, breadth first; children are read before their parent is given away."""
    level = [(child, root) for child in children(root) if child not in spare]
    seen = {root}
    while level:
        level = [(pid, parent) for pid, parent in level if pid not in seen]
        seen.update(pid for pid, _ in level)
        below = [(child, pid) for pid, _ in level for child in children(pid)]
        yield from level
        level = below


def _signal_grandchild(pid: int, own_number: int, parents: tuple[int, int], numbers: tuple[int, ...]) -> None:
    """Sent, if the number still names a child of the parent it had or was orphaned to; else it is somebody else's."""
    if not hasattr(os, "pidfd_open"):
        for number in numbers:
            os.kill(own_number, number)
        return
    pidfd = os.pidfd_open(own_number)
    try:
        if int(stat_fields(pid)[1]) in parents:
            for number in numbers:
                _signal.pidfd_send_signal(pidfd, number)
    finally:
        os.close(pidfd)


def _number_inside(pid: int, me: int) -> int:
    """The number, in this process's PID namespace, of a process that /proc shows under another (NSpid of proc(5)).

    Raises:
        OSError: it is gone.
    """
    mine, its = (_namespace_numbers(number) for number in (me, pid))
    if len(its) < len(mine):
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    return int(its[len(mine) - 1])


def _namespace_numbers(pid: int) -> list[bytes]:
    status = read_whole(f"{PROC}/{pid}/status")
    return status.partition(b"\nNSpid:")[2].partition(b"\n")[0].split()


def _children_by_search(pid: int) -> list[int]:
    found = []
    for name in os.listdir(PROC):
        try:
            if name.isdecimal() and int(stat_fields(int(name))[1]) == pid:
                found.append(int(name))
        except (OSError, IndexError):
            pass
    return found


def _ticks(pid: int) -> tuple[int, int, int, int]:
    """User and system time of a process, and of what it reaped, in clock ticks."""
    try:
        user, system, reaped_user, reaped_system = map(int, stat_fields(pid)[11:15])
    except (OSError, ValueError):
        return 0, 0, 0, 0
    return user, system, reaped_user, reaped_system


def stat_fields(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on; a process may have put parentheses into its name (proc(5))."""
    return read_whole(f"{PROC}/{pid}/stat").rpartition(b")")[2].split()


def read_whole(path: str) -> bytes:
    """The content of a file of /proc, which tells no size beforehand."""
    fd = os.open(path, os.O_RDONLY | CLOEXEC)
    try:
        parts = []
        while part := os.read(fd, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)
