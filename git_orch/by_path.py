"""What of `os` Windows lacks, above all what takes `dir_fd`: done by the path of the folder's open handle.

A handle follows its folder through every rename, and so does the path that is asked of it. Nothing is opened through a
reparse point (a link, a junction): it is opened itself, and refused. What may still happen, and on POSIX may not, is
that a folder is replaced between the question for its path and the use of that path; `cursor` compares the identities
afterwards, as it does everywhere. Written, not run; a test runs it on Linux, with the two questions for Windows
(`windows.open_folder`, `windows.path_of`) answered by /proc.
"""

from __future__ import annotations

import errno
import os
from _stat import S_ISREG, S_IWRITE

from git_orch import windows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    class Listing(Protocol):
        """What `scandir` gives: entries, and a context that closes it."""

        def __enter__(self) -> Iterator[os.DirEntry[str]]:
            """The entries."""

        def __exit__(self, *_: object) -> None:
            """Closed."""


_DIRECTORY = 1 << 28  # system.DIRECTORY, of a row that imports this one
_VERBATIM = "\\\\?\\"


class Room:
    """Of what `statvfs` tells: what this user may still write."""

    def __init__(self, free_bytes: int) -> None:
        self.f_bavail = free_bytes
        self.f_frsize = 1


def open(path: str | bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:  # noqa: A001
    """A descriptor of a folder (`system.FOLDER`), or of a file; never of what a link leads to.

    Raises:
        OSError: it is a link or a junction, no folder where one was asked for, or cannot be opened.
    """
    whole = _whole(path, dir_fd)
    if flags & (_DIRECTORY | getattr(os, "O_DIRECTORY", 0)):
        return windows.open_folder(whole)
    if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
        return os.open(whole, flags, mode)
    return windows.open_file(whole)


def stat(path: str | bytes | int, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
    """As `os.stat`."""
    whole = path if isinstance(path, int) else _whole(path, dir_fd)
    return os.stat(whole, follow_symlinks=follow_symlinks)


def lstat(path: str | bytes, *, dir_fd: int | None = None) -> os.stat_result:
    """As `os.lstat`."""
    return os.lstat(_whole(path, dir_fd))


def scandir(folder: str | int) -> Listing:
    """As `os.scandir`."""
    return os.scandir(windows.path_of(folder) if isinstance(folder, int) else folder)


def unlink(path: str | bytes, *, dir_fd: int | None = None) -> None:
    """As `os.unlink`; what may not be written (git's objects) goes all the same."""
    whole = _whole(path, dir_fd)
    try:
        os.unlink(whole)
    except PermissionError:
        if not S_ISREG(os.lstat(whole).st_mode):
            raise
        os.chmod(whole, S_IWRITE)
        os.unlink(whole)


def rmdir(path: str | bytes, *, dir_fd: int | None = None) -> None:
    """As `os.rmdir`; a junction goes, and not what it leads to."""
    os.rmdir(_whole(path, dir_fd))


def rename(
    source: str | bytes, target: str | bytes, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
) -> None:
    """As `os.rename`. A folder that somebody holds, or in which anything is open, stays: PermissionError."""
    os.rename(_whole(source, src_dir_fd), _whole(target, dst_dir_fd))


def readlink(path: str | bytes, *, dir_fd: int | None = None) -> str:
    """Where a link leads, with the slashes that git has."""
    return os.readlink(_whole(path, dir_fd)).removeprefix(_VERBATIM).replace(os.sep, "/")


def chmod(path: str | bytes, mode: int, *, dir_fd: int | None = None) -> None:
    """As `os.chmod`, which changes there only whether a file may be written."""
    os.chmod(_whole(path, dir_fd), mode)


def pread(fd: int, size: int, offset: int) -> bytes:
    """As `os.pread`, for a descriptor that one thread alone uses: where it stands has moved."""
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, size)


def pwrite(fd: int, data: bytes, offset: int) -> int:
    """As `os.pwrite`, for a descriptor that one thread alone uses: where it stands has moved."""
    os.lseek(fd, offset, os.SEEK_SET)
    return os.write(fd, data)


def statvfs(path: str) -> Room:
    """What is free where the folder lies."""
    return Room(windows.free_bytes(path))


def _whole(name: str | bytes, dir_fd: int | None) -> str:
    r"""The path of a name in an open folder. `.` and `..` are resolved here: a path that begins `\\?\` has none."""
    plain = os.fsdecode(name)
    if dir_fd is None:
        return plain
    if "\0" in plain:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), name)
    folder = windows.path_of(dir_fd)
    if plain == ".":
        return folder
    return os.path.dirname(folder) if plain == ".." else os.path.join(folder, plain.replace("/", os.sep))


def __getattr__(name: str) -> Any:
    """Everything else is as `os` has it."""
    return getattr(os, name)
