"""Which trees have been reviewed already: one small file a verdict's key, claimed by whoever comes first.

`<git common dir>/orch/index/<key>` holds the run-id of its owner.
"""

from __future__ import annotations

import os

from git_orch import atomic, registry, runs
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.layout import Layout


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
    for _ in range(3):
        if atomic.create(os.path.join(folder, key), run_id.encode("ascii")):
            return None
        first = standing(layout, key)
        if first is not None:
            return first
        unclaim(layout.durable, key, _owner(os.path.join(folder, key)))
    return None


def unclaim(durable: str, key: str, run_id: str) -> None:
    """The key is free again, where this run had it: its verdict is not one to be reused."""
    path = os.path.join(durable, "index", key)
    if key and _owner(path) == run_id:
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
    record = runs.final_record(layout.run_dir(run_id))
    if record is not None:
        return record.get("verdict") in ("pass", "findings", "nothing-to-review")
    return os.path.exists(os.path.join(layout.pending, f"{run_id}.json"))
