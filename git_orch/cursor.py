"""Walking folders by descriptor: no path is ever resolved twice, so no link and no rename can lead elsewhere.

One descriptor is open at a time, however deep the folders lie: the way back up is `..`, checked against the folder
that was come from. (`shutil.rmtree` ends in RecursionError at 3,000 levels, a stack of descriptors at 1,024.)
"""

from __future__ import annotations

import errno
import os
from _stat import S_ISDIR

from git_orch.system import FOLDER, at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_RWX = 0o700


class Elsewhere(OSError):
    """The way leads off the device, or the folder above is no longer the one that was come from."""


class Cursor:
    """A position in a tree of folders, below a folder that it never leaves.

    `fd` is the present folder, `path` its names from the top.
    """

    def __init__(self, top_fd: int) -> None:
        self.fd = at.open(".", FOLDER, dir_fd=top_fd)
        self._top_fd = os.dup(self.fd)
        self.path: list[str] = []
        self._above: list[tuple[int, int]] = []
        self._here = _identity(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
        os.close(self._top_fd)

    def enter(self, name: str, *, by_force: bool = False) -> None:
        """The cursor is in that folder of the present one.

        Args:
            by_force: a folder of ours that is closed to ourselves (mode 0555 or 000) is opened first.

        Raises:
            Elsewhere: another file system is mounted there.
            OSError: it is no folder, or cannot be read.
        """
        fd = open_by_force(name, self.fd) if by_force else at.open(name, FOLDER, dir_fd=self.fd)
        there = _identity(fd)
        if there[0] != self._here[0]:
            os.close(fd)
            raise Elsewhere(errno.EXDEV, "another file system", name)
        os.close(self.fd)
        self._above.append(self._here)
        self.path.append(name)
        self.fd, self._here = fd, there

    def leave(self) -> str:
        """The cursor is in the folder above; gives the name of the one that was left.

        Raises:
            Elsewhere: the folder that was left has been moved meanwhile.
        """
        try:
            fd = at.open("..", FOLDER, dir_fd=self.fd)
        except PermissionError:  # a folder that may be read and not searched shows no way back
            fd = self._from_top(self.path[:-1])
        if _identity(fd) != self._above[-1]:
            os.close(fd)
            raise Elsewhere(errno.ESTALE, "moved meanwhile", self.path[-1])
        os.close(self.fd)
        self.fd, self._here = fd, self._above.pop()
        return self.path.pop()

    def _from_top(self, names: list[str]) -> int:
        fd = os.dup(self._top_fd)
        for name in names:
            try:
                below = at.open(name, FOLDER, dir_fd=fd)
            finally:
                os.close(fd)
            fd = below
        return fd

    def below(self, name: str) -> str:
        """The path from the top of something in the present folder."""
        return "/".join((*self.path, name))


def open_by_force(name: str, dir_fd: int) -> int:
    """A descriptor of a folder of ours, whose owner may now read, write and search it.

    Raises:
        OSError: it is a link or no folder, or another user's.
    """
    if not hasattr(os, "O_PATH"):
        return _open_after_chmod(name, dir_fd)
    handle = os.open(name, os.O_PATH | FOLDER, dir_fd=dir_fd)  # needs no permission on the folder itself
    try:
        if os.fstat(handle).st_mode & _RWX != _RWX:
            os.chmod(f"/proc/self/fd/{handle}", _RWX)  # fchmod refuses such a descriptor; this is the very same folder
        return os.open(".", FOLDER, dir_fd=handle)
    finally:
        os.close(handle)


def _open_after_chmod(name: str, dir_fd: int) -> int:
    """The same where there is no O_PATH (macOS, Windows). Written, not run."""
    status = at.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if S_ISDIR(status.st_mode) and status.st_mode & _RWX != _RWX:
        at.chmod(name, _RWX, dir_fd=dir_fd)
    return at.open(name, FOLDER, dir_fd=dir_fd)


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
