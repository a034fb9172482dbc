"""Removing a tree of folders that resists: closed folders, thousands of levels, a process that still writes.

`shutil.rmtree` and `rm -rf` both fail on folders of mode 0555 (Go's module cache) and 000, as an ordinary user.
"""

from __future__ import annotations

import os

from git_orch import system
from git_orch.cursor import Cursor
from git_orch.system import at

_ROUNDS = 3  # a folder that fills up again behind us is emptied that often, then given up


def remove(name: str, dir_fd: int) -> bool:
    """Nothing of that name is in the folder any more; False where something of it could not be removed.

    Links are removed, never followed; what lies on another file system is left alone.
    """
    if _unlink(name, dir_fd):
        return True
    with Cursor(dir_fd) as cursor:
        try:
            cursor.enter(name, by_force=True)
            _empty(cursor)
            return _rmdir(cursor.leave(), cursor.fd)
        except OSError:
            return not _there(name, dir_fd)


def remove_path(path: str) -> bool:
    """The same for a path whose folder nobody else can write to."""
    folder, name = os.path.split(path)
    try:
        fd = at.open(folder, os.O_RDONLY | system.CLOEXEC | system.DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return True
    try:
        return remove(name, fd)
    finally:
        os.close(fd)


def _empty(cursor: Cursor) -> None:
    """All that can be removed below the cursor is removed, depth first, without recursion."""
    pending = [_clear(cursor.fd)]
    rounds = [1]
    while True:
        if pending[-1]:
            if _enter(cursor, pending[-1].pop()):
                pending.append(_clear(cursor.fd))
                rounds.append(1)
        elif len(pending) == 1:
            return
        else:
            pending.pop()
            used, name = rounds.pop(), cursor.path[-1]
            if not _leave_and_rmdir(cursor) and used < _ROUNDS and _enter(cursor, name):
                pending.append(_clear(cursor.fd))
                rounds.append(used + 1)


def _clear(fd: int) -> list[str]:
    """Everything but folders is removed from the folder; gives the names of its folders that are not empty."""
    folders = []
    with at.scandir(fd) as entries:
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if not _rmdir(entry.name, fd):
                        folders.append(entry.name)
                else:
                    at.unlink(entry.name, dir_fd=fd)
            except OSError:  # told by the folder above, which is then not empty
                continue
    return folders


def _enter(cursor: Cursor, name: str) -> bool:
    try:
        cursor.enter(name, by_force=True)
    except OSError:  # gone, another user's, or another file system: the folder above is then not empty
        return False
    return True


def _leave_and_rmdir(cursor: Cursor) -> bool:
    return _rmdir(cursor.leave(), cursor.fd)


def _rmdir(name: str, dir_fd: int) -> bool:
    try:
        at.rmdir(name, dir_fd=dir_fd)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _unlink(name: str, dir_fd: int) -> bool:
    """Whether there is nothing of that name, or was only something that is no folder."""
    try:
        at.unlink(name, dir_fd=dir_fd)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _there(name: str, dir_fd: int) -> bool:
    try:
        at.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
