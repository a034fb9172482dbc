"""Locks between open files of one process, and what a system says that keeps none. Two processes: integration."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from git_orch import locks

Opened = Callable[[], int]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """A function that gives one more descriptor of the same lock file."""
    with ExitStack() as stack:

        def one_more() -> int:
            fd = locks.open_lockable(str(tmp_path / "lock"), os.O_CREAT)
            stack.callback(os.close, fd)
            return fd

        yield one_more


def test_an_exclusive_lock_keeps_all_others_out(opened: Opened) -> None:
    ours, theirs = opened(), opened()
    assert locks.exclusive(ours)
    assert not locks.exclusive(theirs)
    assert not locks.shared(theirs)


def test_shared_locks_keep_out_exclusive_ones_only(opened: Opened) -> None:
    ours, theirs = opened(), opened()
    assert locks.shared(ours)
    assert locks.shared(theirs)
    assert not locks.exclusive(theirs)


def test_a_shared_lock_becomes_exclusive_once_it_is_alone(opened: Opened) -> None:
    ours, theirs = opened(), opened()
    assert locks.shared(ours)
    assert locks.exclusive(ours)
    assert not locks.shared(theirs)


def test_a_lock_falls_with_its_last_descriptor(tmp_path: Path, opened: Opened) -> None:
    ours = locks.open_lockable(str(tmp_path / "lock"), os.O_CREAT)
    heir = os.dup(ours)
    assert locks.exclusive(ours)
    os.close(ours)
    other = opened()
    assert not locks.exclusive(other)
    os.close(heir)
    assert locks.exclusive(other, wait=True)


def test_the_lock_and_the_name_are_independent(opened: Opened) -> None:
    ours, theirs = opened(), opened()
    assert locks.exclusive(theirs)
    assert locks.name_holder(ours, 0)


def test_nobody_is_named_to_the_holder_itself(opened: Opened) -> None:
    fd = opened()
    assert locks.name_holder(fd, 3)
    assert locks.holder(fd, 3, 1) == 0


@pytest.mark.parametrize("how", [locks.exclusive, locks.shared])
def test_a_file_system_without_locks_is_not_one_that_is_locked(
    how: Callable[[int], bool], opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match="No locks available"):
        how(opened())


def test_a_new_file_is_new_private_and_no_link(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    os.close(locks.open_lockable(str(path), os.O_CREAT | os.O_EXCL))
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        locks.open_lockable(str(path), os.O_CREAT | os.O_EXCL)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="symbolic link"):
        locks.open_lockable(str(tmp_path / "link"), 0)
    with pytest.raises(FileNotFoundError):
        locks.open_lockable(str(tmp_path / "missing"), 0)


@pytest.mark.parametrize("form", [locks._LINUX, locks._DARWIN])
def test_the_question_is_as_long_as_the_system_has_it(form: str) -> None:
    """`struct flock`: 32 bytes on 64-bit Linux, 24 on macOS."""
    assert struct.calcsize(form) == {locks._LINUX: 32, locks._DARWIN: 24}[form]
