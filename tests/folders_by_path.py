"""Linux as Windows would have it: folders have no descriptors but ours, and are reached by their paths."""

from __future__ import annotations

import os

import pytest

from git_orch import (
    atomic,
    attempt,
    by_path,
    cursor,
    disposal,
    inspection,
    listing,
    parking,
    place,
    reaper,
    removal,
    system,
    windows,
)
from git_orch.system import FOLDER, PLAIN

USERS = (atomic, attempt, cursor, disposal, inspection, listing, parking, place, reaper, removal, system)


def path_of(fd: int) -> str:
    return os.readlink(f"/proc/self/fd/{fd}")


def reach_by_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every module that walks trees does it by path, as on Windows; what Windows itself would answer /proc does."""
    monkeypatch.setattr(windows, "path_of", path_of)
    monkeypatch.setattr(windows, "open_folder", lambda path: os.open(path, FOLDER))
    monkeypatch.setattr(windows, "open_file", lambda path: os.open(path, os.O_RDONLY | PLAIN))
    monkeypatch.setattr(windows, "free_bytes", lambda path: os.statvfs(path).f_bavail * os.statvfs(path).f_frsize)
    monkeypatch.delattr(os, "O_PATH", raising=False)
    for module in USERS:
        monkeypatch.setattr(module, "at", by_path)
