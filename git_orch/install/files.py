"""The files of a person's that are changed: read, and replaced only if they are still what was read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from stat import S_IMODE, S_ISREG

from git_orch import atomic, system
from git_orch.errors import EnvironmentProblem

_PRIVATE = 0o600


def read(path: str) -> bytes | None:
    """What the file holds, links followed; None where there is none.

    Raises:
        EnvironmentProblem: it is no plain file, or cannot be read.
    """
    try:
        with open(path, "rb", opener=system.without_waiting) as file:
            if not S_ISREG(os.fstat(file.fileno()).st_mode):
                raise EnvironmentProblem(f"{path} is no plain file", "git-orch leaves it alone")
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise EnvironmentProblem(f"cannot read {path}: {error.strerror}", "nothing was changed") from error


def check_writable(path: str) -> None:
    """The file, or else a folder for it, can be written: asked before anything is, so that nothing is half-done.

    Raises:
        EnvironmentProblem: it cannot.
    """
    if os.path.lexists(path) and not os.access(path, os.W_OK):
        raise EnvironmentProblem(
            f"{path} is read-only", f"chmod u+w {path}, or choose another scope; nothing was changed"
        )
    folder = os.path.dirname(path)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise EnvironmentProblem(f"{folder} is no folder", "nothing was changed")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise EnvironmentProblem(
            f"the folder {folder} is read-only", f"chmod u+w {folder}, or choose another scope; nothing was changed"
        )


def missing_folders(path: str) -> tuple[str, ...]:
    """The folders that have to be made for the file, outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(path)
    while not os.path.lexists(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return tuple(missing)


def replace(path: str, before: bytes | None, after: bytes | None, *, mode: int = _PRIVATE) -> None:
    """The file holds `after` (None: is not there), if it held `before`; mode and owner stay, a new one gets `mode`.

    Raises:
        EnvironmentProblem: it was changed meanwhile, or cannot be written; it is as it was.
    """
    _changing(path, lambda: _swap(path, before, after, mode))


def replace_git_config(path: str, before: bytes | None, after: bytes | None) -> None:
    """The same for a configuration of git's, under the lock that git itself takes."""

    def swap() -> None:
        lock = path + ".lock"
        try:
            os.close(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.CLOEXEC, _PRIVATE))
        except FileExistsError as error:
            raise EnvironmentProblem(
                f"{path} is locked by another git", f"run it again; if none is running, remove {lock}"
            ) from error
        try:
            _swap(path, before, after, 0o644)
        finally:
            os.unlink(lock)

    _changing(path, swap)


def remove_folders(folders: tuple[str, ...]) -> None:
    """Those of the folders that are empty are gone, innermost first."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _changing(path: str, change: Callable[[], None]) -> None:
    try:
        change()
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {path}: {error.strerror}", "it is as it was") from error


def _swap(path: str, before: bytes | None, after: bytes | None, mode: int) -> None:
    if read(path) != before:
        raise EnvironmentProblem(f"{path} was changed meanwhile", "run it again")
    if after is None:
        if before is not None:
            os.unlink(path)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    status = os.stat(path) if before is not None else None
    atomic.write(path, after, mode=mode if status is None else S_IMODE(status.st_mode), durable=True)
    if status is not None:
        os.chmod(path, S_IMODE(status.st_mode))
        if os.name != "nt" and system.uid() == 0:
            os.chown(path, status.st_uid, status.st_gid)
