"""Locks between two processes: who is kept out, who is named, and what the kernel does when one is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from git_orch import locks
from tests.project import PROJECT

HOLD = (
    "import os, sys; sys.path.append(sys.argv[1]); from git_orch import locks; "
    "fd = locks.open_lockable(sys.argv[2], os.O_CREAT); "
    "print(eval(sys.argv[3]), flush=True); sys.stdin.read()"
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The path of a lock file that there is not yet."""
    return str(tmp_path / "lock")


@contextmanager
def another(path: str, call: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has done the call with its descriptor `fd` of the lock file, was told True, and lives."""
    argv = [sys.executable, "-I", "-S", "-c", HOLD, str(PROJECT), path, call]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def opened(path: str) -> Iterator[int]:
    """A descriptor of the lock file."""
    fd = locks.open_lockable(path, os.O_CREAT)
    try:
        yield fd
    finally:
        os.close(fd)


def test_a_lock_falls_when_its_holder_is_killed(path: str) -> None:
    with another(path, "locks.exclusive(fd)") as holder, opened(path) as fd:
        assert not locks.exclusive(fd)
        assert not locks.shared(fd)
        holder.kill()
        assert locks.exclusive(fd, wait=True)


def test_who_has_a_name_is_told_by_the_kernel(path: str) -> None:
    with another(path, "locks.name_holder(fd, 5)") as holder, opened(path) as fd:
        assert locks.holder(fd, 5, 1) == holder.pid
        assert locks.holder(fd, 1, 0) == holder.pid
        assert locks.holder(fd, 0, 5) == 0
        assert not locks.name_holder(fd, 5)
        assert locks.name_holder(fd, 6)


def test_a_name_is_gone_with_its_process(path: str) -> None:
    with another(path, "locks.name_holder(fd, 0)") as holder, opened(path) as fd:
        holder.kill()
        holder.wait(timeout=10)
        assert locks.holder(fd, 0, 0) == 0
        assert locks.name_holder(fd, 0)
