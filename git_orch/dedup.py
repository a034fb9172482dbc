"""Which trees have been reviewed already: one small file a verdict's key, claimed by whoever comes first.

`<git common dir>/orch/index/<key>` holds the run-id of its owner. Who changes one holds the folder's lock: else two
that both find the owner dead would take the key from each other.
"""

from __future__ import annotations

import os
import time

from git_orch import atomic, locks, registry, runs, system
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.layout import Layout

_LOCK_S = 0.2
_NAP_S = 0.002


class Duplicate(Record):
    """The same trees were reviewed in the same way already, or are being reviewed: by this run."""

    run_id: str


def standing(layout: Layout, key: str) -> Duplicate | None:
    """The run that has claimed the key, while it is alive or its verdict can be reused."""
    owner = _owner(os.path.join(layout.durable, "index", key))
    return Duplicate(run_id=owner) if owner and _stands(layout, owner) else None


def claim(layout: Layout, key: str, run_id: str) -> Duplicate | None:
    """The key is this run's, whose entry is there already; or the run that was first is given."""
    folder = os.path.join(layout.durable, "index")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    lock = _lock(folder)
    try:
        first = standing(layout, key)
        if first is None:
            atomic.write(os.path.join(folder, key), run_id.encode("ascii"))
        return first
    finally:
        _unlock(lock)


def unclaim(durable: str, key: str, run_id: str) -> None:
    """The key is free again, where this run had it: its verdict is not one to be reused."""
    folder = os.path.join(durable, "index")
    if not key or not os.path.isdir(folder):
        return
    lock = _lock(folder)
    try:
        _free(os.path.join(folder, key), {run_id})
    finally:
        _unlock(lock)


def release(durable: str) -> None:
    """No key is held by a run that has no lasting folder any more."""
    folder = os.path.join(durable, "index")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    owners = {name: _owner(os.path.join(folder, name)) for name in names}
    # After the keys: the folder of a run is made before it claims one.
    there = {*runs.run_ids(os.path.join(durable, "runs"))}
    stale = {name: owner for name, owner in owners.items() if owner not in there}
    if not stale:
        return
    lock = _lock(folder)
    try:
        for name, owner in stale.items():
            _free(os.path.join(folder, name), {owner})
    finally:
        _unlock(lock)


def _free(path: str, owners: set[str]) -> None:
    if _owner(path) in owners:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return


def _owner(path: str) -> str:
    return (atomic.read(path, limit=64) or b"").decode("ascii", "replace").strip()


def _stands(layout: Layout, run_id: str) -> bool:
    """Whether a run that has claimed a key is alive, or ended with a verdict that can be reused."""
    if not registry.is_run_id(run_id):
        return False
    run_dir = layout.run_dir(run_id)
    record = runs.final_record(run_dir)
    if record is not None:
        return record.get("verdict") in ("pass", "findings", "nothing-to-review")
    # The launcher holds the entry before there is a supervisor; the supervisor its folder, also while `.orch` is wiped.
    return registry.is_held(os.path.join(layout.pending, f"{run_id}.lock")) or runs.is_held(run_dir)


def _lock(folder: str) -> int:
    """A descriptor that holds the folder's lock, or -1 where it was not to be had in time.

    Then one goes on without: at worst the same trees are reviewed twice.
    """
    try:
        fd = system.at.open(folder, os.O_RDONLY | system.DIRECTORY | system.CLOEXEC)
    except OSError:
        return -1
    deadline = time.monotonic() + _LOCK_S
    while time.monotonic() < deadline:
        try:
            if locks.exclusive(fd):
                return locks.pinned(fd)
        except OSError:  # a file system that locks no folders
            break
        time.sleep(_NAP_S)
    os.close(fd)
    return -1


def _unlock(fd: int) -> None:
    if fd >= 0:
        os.close(fd)
