"""Taking trees away: only `<root>/<run-id>` with our marker, only when nobody holds its lock, and then all of it.

The run's folder is renamed before anything in it is removed, so that a run is there whole or not at all. The name that
it gets proves that it was ours, for the marker may be the first thing to go.
"""

from __future__ import annotations

import os
import time

from git_orch import atomic, locks, parking, place, system
from git_orch import key as keys
from git_orch.cursor import open_by_force
from git_orch.registry import is_run_id
from git_orch.removal import remove, remove_path
from git_orch.system import at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    Disposal = Literal["disposed", "absent", "in-use", "foreign", "left"]

TRASH = ".trash-"
_ABANDONED_S = 3600.0


def dispose(root: str, run_id: str, key: bytes, before: Callable[[], None] = lambda: None) -> Disposal:
    """Nothing of the run is left below the root, and this process holds its lock no more.

    `before` is called when the folder has proved to be ours and nobody else's; where it raises, nothing is removed.

    Gives "disposed", or "absent" where there was nothing. Otherwise it is untouched and the answer says why: "in-use",
    another process holds the lock or something is mounted there; "foreign", it is not ours. "left": it is renamed and
    what could be removed is, the rest waits for `sweep_trash`.
    """
    run_folder = os.path.join(root, run_id)
    ours = place.held(run_folder)
    try:
        root_fd = at.open(root, system.FOLDER)
    except OSError:
        return "absent"
    try:
        disposed = _dispose(root, root_fd, run_id, key, ours, before)
        if disposed not in ("in-use", "foreign"):
            _remove_unfinished(root, run_id)
        return disposed
    finally:
        os.close(root_fd)
        place.let_go(run_folder)


def leftovers(root: str) -> list[str]:
    """The runs that have a folder below the root, oldest first."""
    return sorted(name for name in _names(root) if is_run_id(name))


def sweep_trash(root: str, key: bytes) -> list[str]:
    """What earlier disposals could not remove, or died over, is gone; gives the names of what still is not."""
    left = []
    for name in _names(root):
        if name.startswith(TRASH) and not _remove_trash(root, name, key):
            left.append(name)
        elif name.startswith(place.NEW) and _age_s(os.path.join(root, name)) > _ABANDONED_S:
            remove_path(os.path.join(root, name))
    return left


def sweep_abandoned(root: str, key: bytes, *, older_than_s: float) -> tuple[str, ...]:
    """Trees of that age that nobody holds are gone, and so are trash and trees parked for too long; gives the runs."""
    sweep_trash(root, key)
    parking.expire(root)
    old = [run_id for run_id in leftovers(root) if _age_s(os.path.join(root, run_id)) > older_than_s]
    return tuple(run_id for run_id in old if dispose(root, run_id, key) == "disposed")


def _dispose(root: str, root_fd: int, run_id: str, key: bytes, ours: int, before: Callable[[], None]) -> Disposal:
    if not is_run_id(run_id):
        return "foreign"
    try:
        run_fd = open_by_force(run_id, root_fd)
    except FileNotFoundError:
        return "absent"
    except OSError:
        return "foreign"
    try:
        if not _is_same(run_fd, ours) and not place.is_marked(run_fd, root, run_id, key):
            return "foreign"
        if not system.HAS_MODES:  # Windows: what is held cannot be renamed, by its holder either
            place.let_go(os.path.join(root, run_id))
            ours = -1
        if not _lock(ours if _is_same(run_fd, ours) else run_fd) or _is_mounted_upon(os.path.join(root, run_id)):
            return "in-use"
        before()
        trash = _trash_name(root, run_id, os.urandom(4).hex(), os.fstat(run_fd).st_ino, key)
        at.rename(run_id, trash, src_dir_fd=root_fd, dst_dir_fd=root_fd)
        return "disposed" if remove(trash, root_fd) else "left"
    finally:
        os.close(run_fd)


def _remove_unfinished(root: str, run_id: str) -> None:
    """What a process had made of the run's folder when it died, before it bore our mark and the run's name, is gone."""
    for name in _names(root):
        if name.startswith(f"{place.NEW}{run_id}-"):
            remove_path(os.path.join(root, name))


def _remove_trash(root: str, name: str, key: bytes) -> bool:
    """Whether nothing of the name is left. What does not prove by its name that it was ours is not touched."""
    root_fd = at.open(root, system.FOLDER)
    try:
        run_fd = open_by_force(name, root_fd)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    else:
        try:
            run_id, _, rest = name.removeprefix(TRASH).partition("_")
            salt = rest.partition("_")[0]
            expected = _trash_name(root, run_id, salt, os.fstat(run_fd).st_ino, key)
            if not keys.same(name, expected) or _is_mounted_upon(os.path.join(root, name)):
                return False
            return _lock(run_fd) and remove(name, root_fd)  # not under the hands of the process that is at it
        finally:
            os.close(run_fd)
    finally:
        os.close(root_fd)


def _trash_name(root: str, run_id: str, salt: str, inode: int, key: bytes) -> str:
    return f"{TRASH}{run_id}_{salt}_{keys.mac(key, 'trash', os.path.realpath(root), run_id, salt, str(inode))}"


def _lock(fd: int) -> bool:
    """Whether the folder is locked by us alone."""
    try:
        return locks.exclusive(fd)
    except OSError:
        return False


def _is_same(fd: int, other: int) -> bool:
    return other >= 0 and os.path.samestat(os.fstat(fd), os.fstat(other))


def _is_mounted_upon(path: str) -> bool:
    """Whether anything is mounted below the path: a bind mount has the device number of what it shows."""
    below = os.fsencode(os.path.realpath(path)) + b"/"
    for line in (atomic.read("/proc/self/mountinfo") or b"").split(b"\n"):
        words = line.split(b" ", 5)
        if len(words) == 6 and (_unescaped(words[4]) + b"/").startswith(below):
            return True
    return False


def _unescaped(word: bytes) -> bytes:
    """A mount point as it is: the kernel writes space, tab, newline and backslash as three octal digits."""
    for sign in (b" ", b"\t", b"\n", b"\\"):
        word = word.replace(b"\\%03o" % sign[0], sign)
    return word


def _age_s(path: str) -> float:
    try:
        return time.time() - os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _names(root: str) -> list[str]:
    try:
        return os.listdir(root)
    except OSError:
        return []
