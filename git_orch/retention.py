"""Old runs go: by number, by age, by size. Their evidence goes from the store with them."""

from __future__ import annotations

import os
import time

from git_orch import runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.store import Store

_DAY_S = 86400.0


def retire(durable: str, store: Store, *, keep_runs: int, keep_days: int, keep_bytes: int) -> tuple[str, ...]:
    """Runs beyond what is kept are gone; gives their ids, oldest first. A run that has not ended is never taken."""
    folder = os.path.join(durable, "runs")
    expired = _expired(folder, runs.run_ids(folder), keep_runs, keep_days, keep_bytes)
    for run_id in expired:
        store.release(run_id)
        _remove_kept(os.path.join(durable, "kept", run_id))
        runs.remove(os.path.join(folder, run_id))
    return tuple(expired)


def _expired(folder: str, run_ids: list[str], keep_runs: int, keep_days: int, keep_bytes: int) -> list[str]:
    newest_kept = _stamp(time.time() - keep_days * _DAY_S)
    expired, kept, total = [], 0, 0
    for run_id in reversed(run_ids):
        if not os.path.exists(os.path.join(folder, run_id, runs.RECORD)):
            continue
        total += _size(os.path.join(folder, run_id)) if kept < keep_runs else 0
        kept += 1
        if kept > keep_runs or run_id < newest_kept or (total > keep_bytes and kept > 1):
            expired.append(run_id)
    return expired[::-1]


def _stamp(seconds: float) -> str:
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(max(seconds, 0)))


def _size(folder: str) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        total += sum(os.lstat(os.path.join(parent, name)).st_blocks * 512 for name in files)
    return total


def _remove_kept(folder: str) -> None:
    if os.path.isdir(folder):
        import shutil  # a tree that a person asked to keep, and that has had its time

        shutil.rmtree(folder, ignore_errors=True)
