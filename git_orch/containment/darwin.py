"""Tier 3, macOS: what the kernel tells of processes (libproc.h, sys/proc_info.h, sysctl(3)). Written, not run.

There is no subreaper: what is orphaned goes to launchd, and ECHILD proves only that the guardian's own children are
gone. In its place stand three searches. *Lineage*: each process has a number that is never used again, and keeps that
of the process that forked it, whoever its parent is now; so whoever was forked by one that we know is known. We know
one that lived when we looked, and we look at each fork of those we know (NOTE_FORK). *Group*: what has stayed in the
job's. *Cookie*: what still has it in its environment. A double fork whose middle process ends before one looks, and
that has left the group and emptied its environment, is not found; nor is one whose environment the system hides, as it
does of its own programs.
"""

from __future__ import annotations

import errno
import os
import select
from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

FIRST_ROOM = 64
SIGKILL = 9
ZOMBIE = 5  # SZOMB, sys/proc.h

LIST_FDS, SHORT_INFO, UNIQUE_INFO = 1, 13, 17  # PROC_PIDLISTFDS, PROC_PIDT_SHORTBSDINFO, PROC_PIDUNIQIDENTIFIERINFO
FD_VNODE_INFO, FD_IS_VNODE = 1, 1  # PROC_PIDFDVNODEINFO, PROX_FDTYPE_VNODE
RUSAGE_INFO_V1 = 1
CTL_KERN, KERN_ARGMAX, KERN_PROCARGS2 = 1, 8, 49

# struct proc_uniqidentifierinfo: UUID, own number, number of who forked it, and four that we do not read.
UNIQUE = Struct("16xQQ24x")
# struct proc_bsdshortinfo: pid, parent, group, status, name, flags, effective uid, and six that we do not read.
SHORT = Struct("IIII16sII24x")
# struct proc_fdinfo: descriptor, type.
FD = Struct("iI")
# struct vnode_fdinfo: the open file (24 bytes), then of the vnode device, mode, links, inode; the rest is not read.
VNODE = Struct("24xI4xQ136x")
# struct rusage_info_v1: UUID, user and system time, eight others, then the same two of reaped children and four others.
RUSAGE = Struct("16xQQ64xQQ32x")
_INT = Struct("i")

_loaded: Any = None
_tick_s = 0.0


class Short:
    """A process as everybody may see it."""

    def __init__(self, parent: int, group: int, uid: int, name: str, *, is_zombie: bool) -> None:
        self.parent = parent
        self.group = group
        self.uid = uid
        self.name = name
        self.is_zombie = is_zombie


def children(pid: int) -> list[int]:
    """The children of a process, by `proc_listchildpids`, which gives their number, not bytes."""
    import ctypes

    room = FIRST_ROOM
    while True:
        pids = (ctypes.c_int * room)()
        count = _libproc().proc_listchildpids(pid, pids, ctypes.sizeof(pids))
        if count < room:  # -1: there is no such process
            return list(pids[: max(count, 0)])
        room *= 2


def all_pids() -> list[int]:
    """Every process that this one may see."""
    import ctypes

    room = FIRST_ROOM * 16
    while True:
        pids = (ctypes.c_int * room)()
        count = _libproc().proc_listallpids(pids, ctypes.sizeof(pids))
        if count < room:
            return [pid for pid in pids[: max(count, 0)] if pid > 0]
        room *= 2


def identity(pid: int) -> tuple[int, int] | None:
    """The number of a process that is never used again, and that of the one that forked it; None where it is gone."""
    raw = _info(pid, UNIQUE_INFO, UNIQUE.size)
    if raw is None:
        return None
    own, forked_by = UNIQUE.unpack(raw)
    return int(own), int(forked_by)


def short(pid: int) -> Short | None:
    """What everybody may know of a process; None where it is gone."""
    raw = _info(pid, SHORT_INFO, SHORT.size)
    if raw is None:
        return None
    _, parent, group, status, name, _, uid = SHORT.unpack(raw)
    text = os.fsdecode(name.partition(b"\0")[0])
    return Short(int(parent), int(group), int(uid), text, is_zombie=status == ZOMBIE)


def environment(pid: int) -> list[bytes]:
    """The entries with which a process of this user was started; none where they cannot be read."""
    import ctypes

    room = ctypes.create_string_buffer(_longest_arguments())
    size = ctypes.c_size_t(len(room))
    names = (ctypes.c_int * 3)(CTL_KERN, KERN_PROCARGS2, pid)
    if _libproc().sysctl(names, 3, room, ctypes.byref(size), None, 0) != 0:
        return []
    return environment_of(room.raw[: size.value])


def environment_of(raw: bytes) -> list[bytes]:
    """The environment in what KERN_PROCARGS2 gives.

    The number of arguments (an int), the program's path, NULs up to a word, the arguments, the environment, an empty
    string, and what the kernel tells the loader. An argument may be empty, and so only their number separates them.
    An empty first one is taken for padding, and then the first entry for an argument: never the other way round, for
    who has a cookie as an argument is no stray.
    """
    path_at = raw.find(b"\0", _INT.size)
    if path_at < 0:
        return []
    entries = raw[path_at:].lstrip(b"\0").split(b"\0")[max(_INT.unpack_from(raw)[0], 0) :]
    return entries[: entries.index(b"")] if b"" in entries else []


def has_open(pid: int, device: int, inode: int) -> bool:
    """Whether a process of this user has that file open."""
    import ctypes

    room = FIRST_ROOM
    while True:
        raw = ctypes.create_string_buffer(room * FD.size)
        size = _libproc().proc_pidinfo(pid, LIST_FDS, ctypes.c_uint64(0), raw, len(raw))
        if size < len(raw):
            break
        room *= 2
    fds = [fd for fd, kind in FD.iter_unpack(raw.raw[: max(size, 0) // FD.size * FD.size]) if kind == FD_IS_VNODE]
    return any(_vnode(pid, fd) == (device & 0xFFFFFFFF, inode) for fd in fds)


def cpu_seconds(pid: int) -> float:
    """CPU time of everything below a process: of the living, of what they reaped, and of what it reaped itself."""
    total = sum(_times(pid)[1:])
    pending, seen = children(pid), {pid}
    while pending:
        each = pending.pop()
        if each not in seen:
            seen.add(each)
            total += sum(_times(each))
            pending += children(each)
    return total


def text_of(name: str) -> str:
    """A text that the kernel has under that name of sysctl, "" where it has none: `kern.bootsessionuuid`."""
    import ctypes

    room = ctypes.create_string_buffer(256)
    size = ctypes.c_size_t(len(room))
    if _libproc().sysctlbyname(name.encode(), room, ctypes.byref(size), None, 0) != 0:
        return ""
    return room.raw[: size.value].partition(b"\0")[0].decode("ascii", "replace")


def carriers(cookie: bytes, spared: Collection[int]) -> Iterator[tuple[int, int]]:
    """Each living process of this user whose environment holds the cookie as one whole entry, with its own number."""
    for pid in all_pids():
        if pid in spared:
            continue
        before, seen = identity(pid), short(pid)
        if before is None or seen is None or seen.is_zombie or seen.uid != os.geteuid():
            continue
        if cookie in environment(pid) and identity(pid) == before:  # all that was read is of one process
            yield pid, before[0]


def kill(pid: int, number: int) -> bool:
    """The process was sent SIGKILL, if it is still the one of that number.

    There is nothing that pins a process while one signals it: between the look and the signal it may end and another
    take its pid, within microseconds and after 99,998 others.
    """
    now = identity(pid)
    if now is None or now[0] != number:
        return False
    try:
        os.kill(pid, SIGKILL)
    except OSError:
        return False
    return True


def watch_end(pid: int) -> Any:
    """A `kqueue` that becomes readable when the process ends; None where it has ended, or the system has none."""
    kqueue: Any = getattr(select, "kqueue", None)
    if kqueue is None:
        return None
    queue = kqueue()
    try:
        queue.control([_event(pid, fork=False)], 0)
    except OSError:
        queue.close()
        return None
    return queue


class Lineage:
    """All that was forked below a process, as far as it lived at one of the looks, wherever it was orphaned to."""

    def __init__(self, pid: int) -> None:
        me = identity(pid)
        self._known: set[int] = set() if me is None else {me[0]}
        self._own = frozenset(self._known)
        self._watched: set[int] = set()
        kqueue: Any = getattr(select, "kqueue", None)
        self._queue: Any = kqueue() if kqueue else None
        for own in self._known:
            self._watch(pid, own)

    def fileno(self) -> int:
        """A descriptor that is readable when one of the lineage has forked or ended, and there is reason to look."""
        return -1 if self._queue is None else int(self._queue.fileno())

    def heard(self) -> None:
        """What `fileno` had to say is taken in, and looked after."""
        if self._queue is not None:
            self._queue.control(None, 256, 0)
        self.look()

    def look(self) -> dict[int, int]:
        """The living of the lineage but for its root: their pids, each with its own number.

        A child may be listed before its parent, so one goes over the list until nobody new is found.
        """
        there = {pid: told for pid in all_pids() if (told := identity(pid)) is not None}
        before = -1
        while len(self._known) != before:
            before = len(self._known)
            self._known.update(own for own, forked_by in there.values() if forked_by in self._known)
        found = {pid: own for pid, (own, _) in there.items() if own in self._known - self._own}
        for pid, own in found.items():
            self._watch(pid, own)
        return found

    def kill(self, entry: bytes) -> int:
        """Everything that one look finds was sent SIGKILL, of the lineage or with that entry in its environment.

        Gives how many there were. Zombies do not count: of ours `waitpid` tells, and launchd reaps its own.
        """
        alive = [(pid, own) for pid, own in self.look().items() if (seen := short(pid)) and not seen.is_zombie]
        alive += carriers(entry, {os.getpid(), *(pid for pid, _ in alive)}) if entry else ()
        for pid, own in alive:
            kill(pid, own)
        return len(alive)

    def close(self) -> None:
        """Nothing is watched any more."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def _watch(self, pid: int, own: int) -> None:
        if self._queue is None or own in self._watched:
            return
        self._watched.add(own)
        try:
            self._queue.control([_event(pid, fork=True)], 0)
        except OSError as error:  # it has just ended
            if error.errno not in (errno.ESRCH, errno.ENOENT, errno.EACCES, errno.EPERM):
                raise


def _event(pid: int, *, fork: bool) -> Any:
    words: Any = select
    notes = words.KQ_NOTE_EXIT | (words.KQ_NOTE_FORK if fork else 0)
    once = 0 if fork else words.KQ_EV_ONESHOT
    clear = words.KQ_EV_CLEAR if fork else 0
    flags = words.KQ_EV_ADD | once | clear
    return words.kevent(pid, filter=words.KQ_FILTER_PROC, flags=flags, fflags=notes)


def _info(pid: int, flavour: int, size: int) -> bytes | None:
    import ctypes

    room = ctypes.create_string_buffer(size)
    told = _libproc().proc_pidinfo(pid, flavour, ctypes.c_uint64(0), room, size)
    return room.raw if told == size else None


def _vnode(pid: int, fd: int) -> tuple[int, int] | None:
    import ctypes

    room = ctypes.create_string_buffer(VNODE.size)
    if _libproc().proc_pidfdinfo(pid, fd, FD_VNODE_INFO, room, VNODE.size) != VNODE.size:
        return None
    device, inode = VNODE.unpack(room.raw)
    return int(device), int(inode)


def _times(pid: int) -> tuple[float, float]:
    """CPU seconds of a process, and of what it has reaped."""
    import ctypes

    room = ctypes.create_string_buffer(RUSAGE.size)
    if _libproc().proc_pid_rusage(pid, RUSAGE_INFO_V1, room) != 0:
        return 0.0, 0.0
    user, system, reaped_user, reaped_system = RUSAGE.unpack(room.raw)
    return (user + system) * _seconds_a_tick(), (reaped_user + reaped_system) * _seconds_a_tick()


def _seconds_a_tick() -> float:
    """The unit of those times: a nanosecond on Intel, 125/3 of them on Apple's own processors (mach_timebase_info)."""
    global _tick_s  # noqa: PLW0603 - it never changes
    if not _tick_s:
        import ctypes

        base = (ctypes.c_uint32 * 2)()
        told = _libproc().mach_timebase_info(base) == 0 and base[1]
        _tick_s = (base[0] / base[1] if told else 1.0) / 1e9
    return _tick_s


def _longest_arguments() -> int:
    """KERN_ARGMAX: the most that arguments and environment of a process may take."""
    import ctypes

    most = ctypes.c_int(0)
    size = ctypes.c_size_t(ctypes.sizeof(most))
    names = (ctypes.c_int * 2)(CTL_KERN, KERN_ARGMAX)
    asked = _libproc().sysctl(names, 2, ctypes.byref(most), ctypes.byref(size), None, 0)
    return most.value if asked == 0 and most.value > 0 else 1 << 20


def _libproc() -> Any:
    """The whole of libSystem: libproc.h, sysctl and mach are all parts of it."""
    global _loaded  # noqa: PLW0603 - as in linux.py
    if _loaded is None:
        import ctypes

        _loaded = ctypes.CDLL("/usr/lib/libSystem.B.dylib", use_errno=True)
    return _loaded
