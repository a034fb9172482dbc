"""How many agents review at once on the machine, whatever the repository: each holds the lock of a numbered seat.

`~/.local/state/git-orch/seats/<number>`: the kernel gives a seat back when its holder is gone, however it went.
"""

from __future__ import annotations

import os

from git_orch import key, locks
from git_orch.errors import EnvironmentProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NO_SEAT, UNCOUNTED = -1, -2
"""All are taken; seats cannot be counted here, and nobody waits for one."""


def take(env: Mapping[str, str], most: int) -> int:
    """The descriptor of a seat, held until it is closed; or `NO_SEAT`, or `UNCOUNTED`."""
    try:
        folder = os.path.join(key.state_dir(env), "seats")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return next((fd for number in range(most) if (fd := _take(folder, number)) >= 0), NO_SEAT)
    except (OSError, EnvironmentProblem):
        return UNCOUNTED


def give_back(seat: int) -> None:
    """Somebody else may have it."""
    if seat >= 0:
        os.close(seat)


def taken(env: Mapping[str, str], most: int) -> int:
    """How many of the first `most` seats are taken at this moment."""
    try:
        folder = os.path.join(key.state_dir(env), "seats")
    except EnvironmentProblem:
        return 0
    return sum(_is_taken(os.path.join(folder, str(number))) for number in range(most))


def _take(folder: str, number: int) -> int:
    fd = locks.open_lockable(os.path.join(folder, str(number)), os.O_CREAT)
    try:
        if locks.exclusive(fd):
            return fd
    except OSError:
        os.close(fd)
        raise
    os.close(fd)
    return NO_SEAT


def _is_taken(path: str) -> bool:
    try:
        fd = locks.open_lockable(path, 0)
    except OSError:
        return False
    try:
        return not locks.shared(fd)
    except OSError:
        return False
    finally:
        os.close(fd)
