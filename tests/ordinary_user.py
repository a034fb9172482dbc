"""Code that must work for somebody who is not root, run by such a one."""

from __future__ import annotations

import os
import stat
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from git_orch.removal import remove_path

NOBODY = 65534


@contextmanager
def open_folder(near: Path) -> Iterator[Path]:
    """A folder of the ordinary user's own, which that user can reach; gone afterwards, whatever lies in it.

    `near` is a folder of the test; as root the new one lies beside its nearest ancestor that is open to all.
    """
    if os.geteuid() != 0:
        yield near
        return
    folder = Path(tempfile.mkdtemp(prefix="ordinary-", dir=_reachable(near)))
    try:
        os.chown(folder, NOBODY, NOBODY)
        yield folder
    finally:
        assert remove_path(str(folder))


def as_ordinary_user(action: Callable[[], None]) -> None:
    """The action has run in a child process that is not root's.

    Raises:
        AssertionError: it raised; the message is its traceback.
    """
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        os._exit(_run(action, writable))
    os.close(writable)
    with os.fdopen(readable, "rb") as said:
        told = said.read().decode()
    _, status = os.waitpid(pid, 0)
    assert status == 0, told


def _run(action: Callable[[], None], writable: int) -> int:
    try:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        action()
    except BaseException:  # noqa: BLE001 - told to the parent
        os.write(writable, traceback.format_exc().encode())
        return 1
    return 0


def _reachable(near: Path) -> Path:
    for folder in near.parents:
        if all(each.stat().st_mode & stat.S_IXOTH for each in (folder, *folder.parents)):
            return folder
    raise AssertionError(f"no ancestor of {near} is open to all")
