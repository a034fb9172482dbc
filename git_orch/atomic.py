"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os

from git_orch import system
from git_orch.system import at


def write(path: str, data: bytes, *, mode: int = 0o600, durable: bool = False) -> None:
    """`path` holds `data`; a reader sees the old content or the new one, never a part.

    `durable` also asks the disk to keep it (1 ms). Where it fails (a full disk) the old content stays and nothing is
    left behind.
    """
    scratch = _scratch(path)
    try:
        _write_new(scratch, data, mode, durable)
        os.replace(scratch, path)
    except BaseException:
        discard(scratch)
        raise
    if durable:
        _sync_folder(os.path.dirname(path))


def create(path: str, data: bytes, *, mode: int = 0o600, durable: bool = False) -> bool:
    """`path` holds `data` if nothing was there; says whether it was us who made it. Never overwrites."""
    scratch = _scratch(path)
    try:
        _write_new(scratch, data, mode, durable)
        os.link(scratch, path)
    except FileExistsError:
        return False
    finally:
        discard(scratch)
    if durable:
        _sync_folder(os.path.dirname(path))
    return True


def append(path: str, data: bytes) -> None:
    """`data` stands at the end of `path`, in one write, so that lines of several writers never mix.

    Raises:
        OSError: the disk took none of it, or (ENOSPC) a part.
    """
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | system.CLOEXEC | system.NOFOLLOW, 0o600)
    try:
        if os.write(fd, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    finally:
        os.close(fd)


def is_torn(path: str) -> bool:
    """Whether the file ends within a line, as a full disk or a power cut leaves it."""
    try:
        fd = os.open(path, os.O_RDONLY | system.NOFOLLOW | system.CLOEXEC)
    except OSError:
        return False
    try:
        end = os.fstat(fd).st_size
        return end > 0 and at.pread(fd, 1, end - 1) != b"\n"
    finally:
        os.close(fd)


def read(path: str, *, limit: int = 1 << 26, dir_fd: int | None = None) -> bytes | None:
    """The content of a plain file, or None where there is none; a link, a FIFO or a larger file counts as none."""
    try:
        fd = at.open(path, os.O_RDONLY | system.PLAIN, dir_fd=dir_fd)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        if (status.st_mode & 0o170000) != 0o100000 or status.st_size > limit:
            return None
        data = _read(fd, limit + 1)
    finally:
        os.close(fd)
    return data if len(data) <= limit else None  # somebody writes to it at this moment


def write_all(fd: int, data: bytes) -> None:
    """All of `data` is written, however small the pieces that the kernel takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _read(fd: int, most: int) -> bytes:
    parts = []
    while most > 0 and (part := os.read(fd, min(most, 1 << 20))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _scratch(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")


def _write_new(path: str, data: bytes, mode: int, durable: bool) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.CLOEXEC | system.NOFOLLOW, mode)
    try:
        write_all(fd, data)
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def _sync_folder(folder: str) -> None:
    fd = at.open(folder or ".", os.O_RDONLY | system.DIRECTORY | system.CLOEXEC)
    try:
        os.fsync(fd)
    except OSError:  # some file systems cannot: the rename is atomic all the same
        pass
    finally:
        os.close(fd)


def discard(path: str) -> None:
    """The file is gone, or could not be taken away."""
    try:
        os.unlink(path)
    except OSError:
        pass
