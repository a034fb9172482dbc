"""Mounts that only a child process of a test sees. Needs root."""

from __future__ import annotations

import ctypes
import os
import traceback
from collections.abc import Callable
from pathlib import Path

CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18


def in_child(action: Callable[[], None]) -> None:
    """The action has run in a child process that keeps its rights and has mounts of its own.

    Raises:
        AssertionError: it raised; its traceback is on standard error.
    """
    pid = os.fork()
    if pid == 0:
        try:
            _call("unshare", CLONE_NEWNS)
            _call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
            action()
        except BaseException:  # noqa: BLE001 - told to the parent
            os.write(2, traceback.format_exc().encode())
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def mount_tmpfs(where: Path, size: str = "1m") -> None:
    """A file system in memory lies there, as large as given."""
    _call("mount", b"none", bytes(where), b"tmpfs", 0, f"size={size}".encode())


def bind(what: Path, where: Path) -> None:
    """What lies at the one path is seen at the other as well."""
    _call("mount", bytes(what), bytes(where), None, MS_BIND, None)


def _call(name: str, *arguments: int | bytes | None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
