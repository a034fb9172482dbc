"""The parked tree: what a finished run left as it had been made, kept for the next run of the same repository.

`$TEMP/git-orch-<uid>/warm/<repository>/0/{tree,index,parked}`. It is moved in and out by a rename, which one process
alone can win. `parked` holds our MAC over the tree's inode and the index: with an index made by somebody else,
`read-tree` would leave on the disk what that one wants.
"""

from __future__ import annotations

import os
import time
from _blake2 import blake2b

from git_orch import atomic, dircache
from git_orch import key as keys
from git_orch.inspection import INDEX_LIMIT, recorded
from git_orch.removal import remove_path
from git_orch.system import HAS_MODES, at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.inspection import Inspection
    from git_orch.place import Place
    from git_orch.store import Store

WARM = "warm"
LONGEST_S = 24 * 3600.0
_SLOT = "0"
_SEAL = "parked"
_SHARE_OF_FREE = 10
_BLOCK = 4096
_SECOND_NS = 1_000_000_000


def park(place: Place, store: Store, inspection: Inspection) -> bool:
    """The place's tree waits for the next run of its repository; False where it stays for its disposal.

    It must be clean, take at most a tenth of what is free, and no other may wait already.
    """
    raw = recorded(place) if HAS_MODES else b""  # of links and exec bits git would make something else on Windows
    if not raw or not inspection.clean or not _is_affordable(place, inspection.size_bytes, dircache.count(raw)):
        return False
    slot = _slot(place, store)
    scratch = os.path.join(place.root, f".park-{os.urandom(4).hex()}")
    try:
        if not _is_free(slot):
            return False
        os.makedirs(os.path.dirname(slot), mode=0o700, exist_ok=True)
        os.mkdir(scratch, 0o700)
        atomic.write(os.path.join(scratch, _SEAL), _seal(place.tree, raw, place, store))
        _age_files(place.index)
        os.rename(place.tree, os.path.join(scratch, "tree"))
        os.rename(place.index, os.path.join(scratch, "index"))
        os.rename(scratch, slot)
    except OSError:  # somebody was faster, or the disk is full: what is left lies in the place, and goes with it
        return False
    place.made = None
    return True


def take(place: Place, store: Store) -> bool:
    """Whether a parked tree of this repository, with its index, has become the place's; it is nobody else's then."""
    mine = os.path.join(place.root, ".taken")
    tree, index = os.path.join(mine, "tree"), os.path.join(mine, "index")
    try:
        os.rename(_slot(place, store), mine)
    except OSError:
        return False
    try:
        raw = atomic.read(index, limit=INDEX_LIMIT) or b""
        given = atomic.read(os.path.join(mine, _SEAL), limit=64) or b""
        if _age_s(mine) > LONGEST_S or not keys.same(given.decode("latin-1"), _seal(tree, raw, place, store).decode()):
            return False
        os.rename(index, place.index)
        os.rename(tree, place.tree)
    except OSError:
        return False
    finally:
        remove_path(mine)
    return True


def expire(root: str, *, longest_s: float = LONGEST_S) -> None:
    """Trees of any repository that have been parked for that long are gone."""
    warm = os.path.join(root, WARM)
    for name in _names(warm):
        folder = os.path.join(warm, name)
        if _age_s(os.path.join(folder, _SLOT)) > longest_s:
            _withdraw(os.path.join(folder, _SLOT))
        for rest in _names(folder):
            if rest != _SLOT:
                remove_path(os.path.join(folder, rest))
        try:
            os.rmdir(folder)
        except OSError:  # a tree is parked there
            continue


def _is_free(slot: str) -> bool:
    """Whether no tree waits there, or only one that has had its time, which is gone then."""
    if os.path.lexists(slot) and _age_s(slot) > LONGEST_S:
        _withdraw(slot)
    return not os.path.lexists(slot)


def _withdraw(slot: str) -> None:
    """The parked tree is gone; renamed first, so that nobody takes what is being removed."""
    aside = f"{slot}.{os.urandom(4).hex()}"
    try:
        os.rename(slot, aside)
    except OSError:  # taken, or withdrawn by another
        return
    remove_path(aside)


def _is_affordable(place: Place, size_bytes: int, files: int) -> bool:
    """$TEMP is memory on many machines."""
    status = at.statvfs(place.root)
    return (size_bytes + files * _BLOCK) * _SHARE_OF_FREE <= status.f_bavail * status.f_frsize


def _age_files(index: str) -> None:
    """The index is newer than all files in it, by the second.

    git reads again what is not older: it might have been edited in the very second in which it was recorded. Nothing
    was, as the inspection has just shown.
    """
    written_ns = os.stat(index).st_mtime_ns
    os.utime(index, ns=(written_ns, written_ns + _SECOND_NS))


def _slot(place: Place, store: Store) -> str:
    return os.path.join(place.temp_root, WARM, keys.digest(os.path.realpath(store.path))[:16], _SLOT)


def _seal(tree: str, raw: bytes, place: Place, store: Store) -> bytes:
    inode = str(os.lstat(tree).st_ino)
    return keys.mac(place.key, "parked", os.path.realpath(store.path), inode, blake2b(raw).digest()).encode("ascii")


def _age_s(slot: str) -> float:
    """Seconds since the tree was parked; endless where nothing says when."""
    try:
        return max(0.0, time.time() - os.lstat(os.path.join(slot, _SEAL)).st_mtime)
    except OSError:
        return float("inf")


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
