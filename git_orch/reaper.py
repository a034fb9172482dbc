"""What dead supervisors left behind is taken away: processes, trees, entries; what they found out is kept.

It acts on a run only while it holds the run's lock, has seen that the lock is still the one at its path, and has read the
entry, authenticated, under that lock. A missing lock is no proof of death. A held lock is never reaped, only told.
"""

from __future__ import annotations

import os
import time

from git_orch import atomic, dedup, disposal, registry, report, runs
from git_orch import key as keys
from git_orch.containment import strays
from git_orch.errors import OrchError
from git_orch.launch import boot_id, machine_id, pid_namespace
from git_orch.model import Coverage, Record, utc_stamp
from git_orch.place import temp_root
from git_orch.registry import Gone, Held, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal

    from git_orch.model import Json
    from git_orch.registry import Intent, Lock, Registry
    from git_orch.workspace import Workspace
else:
    import _signal

SIGKILL = 9
HUNT_S = 5.0
FORCE_S = 15.0
ABANDONED_S = 600.0


class Swept(Record):
    """What a sweep did: runs reaped, runs that live and were left alone, entries that are not acted upon."""

    reaped: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    trees: tuple[str, ...] = ()
    unfinished: bool = False


def sweep(workspace: Workspace, *, budget_s: float | None = None) -> Swept:
    """Every dead run of the repository is recorded and taken away, as far as the budget goes (None: all)."""
    deadline = None if budget_s is None else time.monotonic() + budget_s
    reaped: list[str] = []
    left: list[str] = []
    refused: list[Refused] = []
    unfinished = False
    for run_id in workspace.book.run_ids():
        if deadline is not None and time.monotonic() > deadline:
            unfinished = True
            break
        match sweep_one(workspace, run_id):
            case Refused() as refusal:
                refused.append(refusal)
            case Held():
                left.append(run_id)
            case True:
                reaped.append(run_id)
    return Swept(
        reaped=tuple(reaped),
        left=tuple(left),
        refused=tuple(refused),
        trees=() if unfinished else _abandoned_trees(workspace),
        unfinished=unfinished,
    )


def sweep_one(workspace: Workspace, run_id: str) -> bool | Held | Refused:
    """The run is taken away if it is dead; True if that was our doing, False if somebody else's."""
    book = workspace.book
    lock = book.try_lock(run_id)
    match lock:
        case Held():
            return lock
        case Gone():
            there = os.path.lexists(book.path(run_id, "json"))
            return Refused(run_id=run_id, reason="its lock is missing: gone, or never ours") if there else False
    try:
        intent = book.intent(run_id)
        if isinstance(intent, Refused):
            return intent
        if intent.machine_id != machine_id():
            return Refused(run_id=run_id, reason="of another machine")
        return _reap(workspace, intent)
    finally:
        os.close(lock.fd)


def force(workspace: Workspace, run_id: str) -> bool | Held | Refused:
    """The run's supervisor and guardian were killed, by the kernel's word on who they are, and the run is taken away."""
    intent = workspace.book.intent(run_id)
    if isinstance(intent, Refused):
        return intent
    deadline = time.monotonic() + FORCE_S
    result = sweep_one(workspace, run_id)
    while isinstance(result, Held) and time.monotonic() < deadline:
        _kill_holder(workspace.book.supervisor_pid, run_id)
        time.sleep(0.2)  # a guardian that lost its supervisor kills to ECHILD and goes by itself
        result = sweep_one(workspace, run_id)
        if isinstance(result, Held) and time.monotonic() > deadline - FORCE_S / 2:
            _kill_holder(workspace.book.guardian_pid, run_id)
    return result


def _kill_holder(holder: object, run_id: str) -> None:
    """The process that the kernel names was killed: named, pinned by a descriptor, and named again."""
    pid = holder(run_id)  # type: ignore[operator]
    if pid <= 1 or pid == os.getpid():
        return
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if holder(run_id) == pid:  # type: ignore[operator]
            _signal.pidfd_send_signal(pidfd, SIGKILL)
    except OSError:
        return
    finally:
        os.close(pidfd)


def _reap(workspace: Workspace, intent: Intent) -> bool | Refused:
    """The dead run is recorded, what it left is gone, and then its entry. The caller holds its lock."""
    alive = _hunt(workspace, intent)
    if alive:
        return Refused(run_id=intent.run_id, reason=f"processes of it cannot be killed: {alive}")
    if runs.final_record(intent.run_dir) is None:
        _record_orphan(workspace, intent)
    if disposal.dispose(intent.temp_root, intent.run_id, workspace.key) == "in-use":
        return Refused(run_id=intent.run_id, reason="its tree is still in use")
    workspace.book.remove(intent.run_id)
    return True


def _hunt(workspace: Workspace, intent: Intent) -> tuple[int, ...]:
    """Pids of the run's processes that could not be killed. None are looked for where none can be: after a reboot, from
    another PID namespace, or where the run ended and only its folder was left."""
    if intent.boot_id != boot_id() or intent.pid_ns != pid_namespace():
        return ()
    if runs.final_record(intent.run_dir) is not None:
        return ()
    cookie = f"{intent.run_id}.{keys.mac(workspace.key, 'task', intent.run_id)}"
    return strays.clear(strays.COOKIE_PREFIX + cookie.encode(), budget_s=HUNT_S)


def _record_orphan(workspace: Workspace, intent: Intent) -> None:
    """The record says that the supervisor died; what its reviewers had written lies beside it."""
    runs.make_folder(intent.run_dir)
    _harvest(intent)
    if runs.read(intent.run_dir, "findings.json") is None:
        runs.write(intent.run_dir, "findings.json", {"schema_version": "1", "findings": []})
    if runs.read(intent.run_dir, "coverage.json") is None:
        runs.write(intent.run_dir, "coverage.json", report.coverage_json(Coverage(), ()))
    state = workspace.book.state(intent.run_id)
    runs.write(
        intent.run_dir,
        runs.RECORD,
        {
            **intent.to_json(),
            "reviewers": [],
            "base": {"tree_id": intent.base_tree_id, "name": intent.base_name, "commit": intent.base_commit},
            "status": "orphaned",
            "terminal_reason": "reaped",
            "verdict": "unreviewed",
            "reason": "its supervisor died before the review ended",
            "finished_at": utc_stamp(time.time()),
            "worktree_gone": not os.path.isdir(intent.worktree_path or intent.git_dir),
            "supervisor_pid": state.supervisor_pid if state else 0,
            "jobs": list(state.jobs) if state else [],
        },
    )
    dedup.unclaim(intent.durable, intent.dedup_key, intent.run_id)
    _keep_evidence(workspace, intent)


def _harvest(intent: Intent) -> None:
    """What the reviewers wrote to their result files is in the run's folder, before the trees go."""
    for reviewer in intent.reviewers:
        written = os.path.join(intent.temp_root, intent.run_id, reviewer.name, "request", "result")
        content = atomic.read(written)
        if content:
            folder = os.path.join(intent.run_dir, reviewer.name)
            runs.make_folder(folder)
            atomic.write(os.path.join(folder, "result"), content)


def _keep_evidence(workspace: Workspace, intent: Intent) -> None:
    try:
        workspace.store.keep_evidence(intent.run_id, intent.base_tree_id, intent.tree_id)
    except OrchError:  # objects are missing: the run is over all the same
        return


def _abandoned_trees(workspace: Workspace) -> tuple[str, ...]:
    """Trees in $TEMP whose run is in no registry any more, because its repository is gone: taken away after a while."""
    try:
        root = temp_root(workspace.env)
    except OrchError:
        return ()
    return disposal.sweep_abandoned(root, workspace.key, older_than_s=ABANDONED_S)
