"""Old runs go: by number, by age, by size; and with them what is kept on their account.

That is their evidence in the store, their verdicts' keys, trees that a person asked to keep. Sessions that have been
silent for as long go too, and what was kept for worktrees that are gone.
"""

from __future__ import annotations

import os
import time

from git_orch import atomic, dedup, locks, runs, session_name
from git_orch.key import digest
from git_orch.removal import remove_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from git_orch.store import Store

_DAY_S = 86400.0
_DIGEST_DIGITS = 16


def retire(
    durable: str, store: Store, *, entries: Collection[str], keep_runs: int, keep_days: int, keep_bytes: int
) -> tuple[str, ...]:
    """Runs beyond what is kept are gone, with all that is kept on their account; gives their ids, oldest first.

    A run that lives, or that waits for the reaper, is never taken.

    Args:
        entries: the run-ids that the registry has, looked up before this call.
    """
    folder = os.path.join(durable, "runs")
    oldest = time.time() - keep_days * _DAY_S
    ended = [run_id for run_id in runs.run_ids(folder) if run_id not in entries and _has_ended(folder, run_id)]
    expired = _expired(folder, ended, keep_runs, oldest, keep_bytes)
    if expired:
        store.release(*expired)
    for run_id in expired:
        remove_path(os.path.join(durable, "kept", run_id))
        runs.remove(os.path.join(folder, run_id))
    runs.sweep_trash(folder)
    dedup.release(durable)
    _drop_old(os.path.join(durable, "sessions"), oldest)
    _drop_old_folders(os.path.join(durable, "told"), oldest)
    _drop_vanished(os.path.join(durable, "worktrees"), os.path.dirname(durable))
    return tuple(expired)


def _has_ended(folder: str, run_id: str) -> bool:
    """Whether nobody will ever write to the run's folder again.

    One without a record, an entry and a supervisor was left by a launcher that died before it published the run.
    """
    run_dir = os.path.join(folder, run_id)
    if runs.is_held(run_dir):
        return False
    return os.path.exists(os.path.join(run_dir, runs.RECORD)) or _mtime(run_dir) < time.time() - _DAY_S


def _expired(folder: str, run_ids: list[str], keep_runs: int, oldest: float, keep_bytes: int) -> list[str]:
    """Those of the runs (oldest first) that are too many, too old, or too large together; the newest one stays."""
    oldest_kept = time.strftime("%Y%m%dT%H%M%S", time.gmtime(max(oldest, 0)))
    first = max(len(run_ids) - keep_runs, 0)
    expired = run_ids[:first]
    total = 0
    for run_id in reversed(run_ids[first:]):
        total += _size(os.path.join(folder, run_id))
        if run_id < oldest_kept or (total > keep_bytes and run_id != run_ids[-1]):
            expired.append(run_id)
    return sorted(expired)


def _size(folder: str) -> int:
    """What the files below the folder take on the disk."""
    total = 0
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        total += _taken(entry.stat(follow_symlinks=False))
        except OSError:  # somebody else retires it at this moment
            continue
    return total


def _taken(status: os.stat_result) -> int:
    return status.st_blocks * 512 if hasattr(status, "st_blocks") else status.st_size  # Windows tells no blocks


def _drop_old(folder: str, oldest: float) -> None:
    """The sessions that were last heard of before that time are gone, each with all its files.

    A mark of what was seen has the time of the news, which says nothing of the session.
    """
    files: dict[str, list[str]] = {}
    for path in _paths(folder):
        files.setdefault(os.path.splitext(path)[0], []).append(path)
    for paths in files.values():
        heard = [_mtime(path) for path in paths if not path.endswith(session_name.SEEN)]
        if not heard or max(heard) < oldest:
            for path in paths:
                atomic.discard(path)


def _drop_old_folders(folder: str, oldest: float) -> None:
    """What sessions were told is gone, where they were last told something before that time."""
    for path in _paths(folder):
        if _mtime(path) < oldest:
            remove_path(path)


def _drop_vanished(folder: str, common_dir: str) -> None:
    """What was kept for worktrees that git knows no more is gone, and what a snapshot that was killed left behind."""
    found = _paths(folder)
    # After the folders: one that is made for a new worktree from now on is not in the list.
    linked = os.path.join(common_dir, "worktrees")
    known = {digest(path)[:_DIGEST_DIGITS] for path in (common_dir, *_paths(linked))}
    for path in found:
        name = os.path.basename(path)
        if len(name) == _DIGEST_DIGITS and name not in known and not _is_in_use(path):
            remove_path(path)
        elif name.startswith("staged-") and _mtime(path) < time.time() - _DAY_S:
            atomic.discard(path)


def _is_in_use(folder: str) -> bool:
    """Whether a run has its turn there, or a snapshot is being taken."""
    for name in ("turn", "lock"):
        try:
            fd = locks.open_lockable(os.path.join(folder, name), 0)
        except OSError:
            continue
        try:
            if not locks.shared(fd):
                return True
        except OSError:  # a file system without locks
            return True
        finally:
            os.close(fd)
    return False


def _paths(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def _mtime(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return time.time()
