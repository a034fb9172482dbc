"""Locks on open files: who holds one, and by whom it is held. The one module that knows how a system does it.

Two kinds, on POSIX independent of each other. The *lock* (flock) is the open file's: it outlives a fork, is shared by
all that inherited the descriptor, and falls when the last of them is closed. The *name* (a record lock on one byte) is
the process's: it does not outlive a fork, is lost when any descriptor of that file is closed, and tells who holds it.

On Windows both are LockFileEx, on bytes far behind the end of the file, since it keeps others from reading what it
locks. There a lock is the process's as well and is inherited by nobody; a supervisor takes it over from its launcher
(`windows.take_over`). A folder is locked by a handle that lets nobody remove it. Written, not run.
"""

from __future__ import annotations

import os
import sys

from git_orch import system, windows

if sys.platform != "win32":
    import fcntl

# struct flock. Linux: type, whence, start, length, pid; macOS: start, length, pid, type, whence.
_LINUX, _DARWIN = "hhqqi4x", "qqihh"


def exclusive(fd: int, *, wait: bool = False) -> bool:
    """The file's lock is ours alone; False where another open file has it. One that was shared becomes exclusive.

    Where it was shared and is refused, it may be lost altogether: flock(2), and no system promises more.

    Raises:
        OSError: the file system keeps no locks.
    """
    if sys.platform == "win32":
        return windows.lock(fd, exclusive=True, wait=wait)
    return _flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def shared(fd: int, *, wait: bool = False) -> bool:
    """The file's lock is ours and perhaps others'; False where another open file has it alone.

    Raises:
        OSError: the file system keeps no locks.
    """
    if sys.platform == "win32":
        return windows.lock(fd, exclusive=False, wait=wait)
    return _flock(fd, fcntl.LOCK_SH if wait else fcntl.LOCK_SH | fcntl.LOCK_NB)


def take_over(fd: int) -> bool:
    """The lock is ours, whether or not a launcher that lets it be taken still holds its part; False: it is another's.

    Raises:
        OSError: the file system keeps no locks.
    """
    return windows.take_over(fd) if sys.platform == "win32" else exclusive(fd)


def pinned(fd: int) -> int:
    """The descriptor that goes on holding the lock of a folder: on POSIX the same, on Windows another in its place.

    There a folder that is held can be neither renamed nor removed, by its holder either.
    """
    return windows.pinned(fd) if sys.platform == "win32" else fd


def name_holder(fd: int, byte: int) -> bool:
    """This process has the name that this byte stands for; False where another process has it.

    Raises:
        OSError: the file system keeps no record locks.
    """
    if sys.platform == "win32":
        return windows.lock_name(fd, byte)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True


def holder(fd: int, first: int, length: int) -> int:
    """The pid of a process that has one of these names, by the kernel's word; 0 where nobody has, or none is told.

    `length` 0: all from the first on. Windows tells none. Never names the process that asks.
    """
    if sys.platform == "win32":
        return 0
    import struct

    if struct.calcsize("P") != 8:  # the structure has another form there
        return 0
    wanted = fcntl.F_WRLCK
    on_darwin = sys.platform == "darwin"
    form = _DARWIN if on_darwin else _LINUX
    if not on_darwin and sys.platform != "linux":
        return 0
    question = (first, length, 0, wanted, os.SEEK_SET) if on_darwin else (wanted, os.SEEK_SET, first, length, 0)
    try:
        answer = struct.unpack(form, fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack(form, *question)))
    except OSError:
        return 0
    kind, pid = (answer[3], answer[2]) if on_darwin else (answer[0], answer[4])
    return int(pid) if kind != fcntl.F_UNLCK else 0


def open_lockable(path: str, how: int) -> int:
    """A descriptor of a lock file, which others may rename and remove as long as it is open; never through a link.

    Args:
        how: 0 to open one that is there, or `os.O_CREAT`, with or without `os.O_EXCL` (mode 0600).

    Raises:
        OSError: it cannot be opened, is not there, or (O_EXCL) is.
    """
    if sys.platform == "win32":
        return windows.open_shared(path, how)
    return os.open(path, os.O_RDWR | how | system.PLAIN, 0o600)


if sys.platform != "win32":

    def _flock(fd: int, how: int) -> bool:
        try:
            fcntl.flock(fd, how)
        except BlockingIOError:
            return False
        return True
