"""How many agents review at once on the machine, whatever the repository: each holds the lock of a numbered seat.

`~/.local/state/git-orch/seats/<number>`: the kernel gives a seat back when its holder is gone, however it went. Who
finds none stands in line, `seats/line/<time>-<random>`, a lock as well, which it touches whenever it asks: a free seat
is for who came first, and one who is dead, or has not asked for a while, keeps nobody waiting.
"""

from __future__ import annotations

import os
import time

from git_orch import atomic, key, locks
from git_orch.errors import EnvironmentProblem
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NO_SEAT, UNCOUNTED = -1, -2
"""All are taken; seats cannot be counted here, and nobody waits for one."""


_ASKS_S = 15.0  # a supervisor that waits asks once a second


class Place(Record):
    """A place in the line, held until it is left."""

    fd: int
    path: str


def take(env: Mapping[str, str], most: int, place: Place | None = None) -> int:
    """The descriptor of a seat, held until it is closed; or `NO_SEAT`, or `UNCOUNTED`.

    With fewer free ones than others that stand in line before `place` (before a newcomer: all of them) there is none.
    """
    try:
        folder = os.path.join(key.state_dir(env), "seats")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if place is not None:
            _touch(place.path)
        ahead = _ahead(os.path.join(folder, "line"), os.path.basename(place.path) if place is not None else "")
        if ahead and most - taken(env, most) <= ahead:
            return NO_SEAT
        return next((fd for number in range(most) if (fd := _take(folder, number)) >= 0), NO_SEAT)
    except (OSError, EnvironmentProblem):
        return UNCOUNTED


def stand_in_line(env: Mapping[str, str]) -> Place | None:
    """A place behind all others; None where there can be no line."""
    try:
        line = os.path.join(key.state_dir(env), "seats", "line")
        os.makedirs(line, mode=0o700, exist_ok=True)
        name = f"{time.time_ns():020}-{os.urandom(4).hex()}"
        fresh = os.path.join(line, f".{name}")  # until it is locked, it would be taken for a dead one's
        fd = locks.open_lockable(fresh, os.O_CREAT | os.O_EXCL)
    except (OSError, EnvironmentProblem):
        return None
    try:
        locks.exclusive(fd)
        os.rename(fresh, os.path.join(line, name))
    except OSError:
        atomic.discard(fresh)
        os.close(fd)
        return None
    return Place(fd=fd, path=os.path.join(line, name))


def leave_line(place: Place | None) -> None:
    """Who stands behind it moves up."""
    if place is not None:
        atomic.discard(place.path)
        os.close(place.fd)


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


def _ahead(line: str, place: str) -> int:
    """How many stand in line before that place, or at all; the places of the dead are gone."""
    try:
        names = sorted(os.listdir(line))
    except FileNotFoundError:
        return 0
    return sum(_still_asks(line, name) for name in names if not place or name < place)


def _still_asks(line: str, name: str) -> bool:
    path = os.path.join(line, name)
    try:
        is_fresh = time.time() - os.stat(path).st_mtime < _ASKS_S
    except OSError:
        return False
    is_made = not name.startswith(".")
    if (is_made or not is_fresh) and not _is_taken(path):
        atomic.discard(path)
        return False
    return is_made and is_fresh


def _touch(path: str) -> None:
    try:
        os.utime(path)
    except FileNotFoundError:  # somebody has emptied the folder: the place is lost, the seats are not
        pass


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
