"""What dead supervisors left behind is taken away: processes, trees, entries; what they found out is kept.

It acts on a run only while it holds the run's lock, has seen that the lock is still the one at its path, and has read
the entry, authenticated, under that lock. A missing lock is no proof of death. A held lock is never reaped, only told.

The order makes a crash of the reaper's own harmless: processes, results, evidence, record, tree, entry. Whoever comes
next finds a final record, and only has to take away what is left.
"""

from __future__ import annotations

import os
import time

from git_orch import atomic, dedup, disposal, journal, keeping, orchdir, registry, report, request, runs, sessions, twin
from git_orch.containment import strays
from git_orch.containment.descendants import own_pid
from git_orch.errors import OrchError
from git_orch.launch import boot_id, machine_id, pid_namespace
from git_orch.model import Coverage, Record
from git_orch.place import temp_root
from git_orch.registry import Gone, Held, Refused
from git_orch.system import FOLDER, at

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable

    from git_orch.registry import Intent, Lock
    from git_orch.workspace import Workspace
else:
    import _signal

SIGKILL = 9
HUNT_S = 5.0
FORCE_S = 15.0
FORCE_NAP_S = 0.05
ABANDONED_S = 24 * 3600.0  # long enough for another repository's own reaper to harvest what its supervisor left


class Swept(Record):
    """What a sweep did: runs reaped, runs that live and were left alone, entries that are not acted upon.

    `trees` are runs of repositories that are gone, whose trees were taken away; `unfinished`: the budget was used up.
    """

    reaped: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    trees: tuple[str, ...] = ()
    unfinished: bool = False


class Reaped(Record):
    """The run is taken away, and that was our doing."""


class Absent(Record):
    """The run was gone already: it ended, or somebody else has reaped it."""


class Unfinished(Record):
    """The budget was used up; the run's entry is still there."""


_REAPED = Reaped()

if TYPE_CHECKING:
    Fate = Reaped | Absent | Held | Refused | Unfinished


def sweep(workspace: Workspace, *, budget_s: float | None = None) -> Swept:
    """Every dead run of the repository is recorded and taken away, as far as the budget goes (None: all)."""
    deadline = None if budget_s is None else time.monotonic() + budget_s
    here = Here(workspace, deadline)
    fates: dict[str, Fate] = {}
    _put_back(workspace)
    for run_id in workspace.book.run_ids():
        fates[run_id] = here.sweep(run_id) if not here.is_late() else Unfinished()
    unfinished = any(isinstance(fate, Unfinished) for fate in fates.values())
    refused = [fate for fate in fates.values() if isinstance(fate, Refused)]
    return Swept(
        reaped=tuple(run_id for run_id, fate in fates.items() if isinstance(fate, Reaped)),
        left=tuple(run_id for run_id, fate in fates.items() if isinstance(fate, Held)),
        refused=tuple(refused + workspace.book.strangers()),
        trees=() if unfinished else _clear_away(workspace),
        unfinished=unfinished,
    )


def sweep_one(workspace: Workspace, run_id: str) -> Fate:
    """The run is taken away if it is dead."""
    return Here(workspace, None).sweep(run_id)


def force(workspace: Workspace, run_id: str) -> Fate:
    """The run's supervisor and guardians were killed, by the kernel's word on who they are, and the run is taken away.

    Still `Held` where the kernel names nobody whom we may kill.
    """
    book = workspace.book
    intent = book.sealed(run_id)
    if isinstance(intent, Refused):
        return intent
    here = Here(workspace, None)
    deadline = time.monotonic() + FORCE_S
    fate = here.sweep(run_id)
    while isinstance(fate, Held) and time.monotonic() < deadline:
        _kill_holder(book.supervisor_pid, run_id)
        if os.name == "nt":  # the kernel names no holder there, but has the run's job object by its name
            from git_orch.containment import windows as job_objects

            job_objects.end(request.cookie_of(run_id, workspace.key))
        # A guardian that has lost its supervisor kills to ECHILD and goes by itself; one that does not is stuck.
        if time.monotonic() > deadline - FORCE_S / 2:
            _kill_holder(book.guardian_pid, run_id)
        time.sleep(FORCE_NAP_S)
        fate = here.sweep(run_id)
    return fate


class Here:
    """One sweep: the repository, this machine as it is now, and when there is no time left."""

    def __init__(self, workspace: Workspace, deadline: float | None) -> None:
        self._workspace = workspace
        self._book = workspace.book
        self._runs = workspace.layout.runs
        self._deadline = deadline
        self._machine_id = machine_id()
        self._processes = (boot_id(), pid_namespace())

    def is_late(self) -> bool:
        """Whether the budget is used up."""
        return self._deadline is not None and time.monotonic() > self._deadline

    def sweep(self, run_id: str) -> Fate:
        """The run is taken away if it is dead."""
        lock = self._book.try_lock(run_id)
        match lock:
            case Held():
                return lock
            case Gone():
                there = os.path.lexists(self._book.path(run_id, "json"))
                return Refused(run_id=run_id, reason="its lock is missing or no plain file") if there else Absent()
        try:
            entry = self._book.sealed(run_id)  # read under the lock
            if isinstance(entry, Refused):
                return entry if os.path.lexists(self._book.path(run_id, "json")) else Absent()
            if registry.text_of(entry, "machine_id") != self._machine_id:
                return Refused(run_id=run_id, reason="of another machine")
            return self._end(lock, registry.text_of(entry, "temp_root"))
        except OSError as error:  # a full disk, say: what is left waits, and the other runs do not
            why = ": ".join(filter(None, (error.strerror, error.filename)))
            return Refused(run_id=run_id, reason=f"cannot be reaped now: {why}")
        finally:
            os.close(lock.fd)

    def _end(self, lock: Lock, temp_root: str) -> Fate:
        """The run is recorded, and nothing of it is left. The caller holds its lock."""
        # Not the folder that the entry names: the repository may have been moved since.
        run_dir, tree = f"{self._runs}/{lock.run_id}", f"{temp_root}/{lock.run_id}"
        if not runs.has_ended(run_dir) or os.path.lexists(tree):
            fate = self._reap(lock.run_id, run_dir)
            if isinstance(fate, Reaped):
                fate = self._dispose(lock.run_id, temp_root)
            if not isinstance(fate, Reaped):
                return fate
            if not self._book.still_there(lock):  # `.orch` was taken away meanwhile
                return Absent()
        twin.remove(run_dir)
        self._book.remove(lock.run_id)
        return _REAPED

    def _reap(self, run_id: str, run_dir: str) -> Fate:
        """Nothing of the run is left running, and it has a record, which may say that its supervisor died."""
        if runs.has_ended(run_dir):  # a final record wins: all was ended before it was written
            sessions.announce(self._workspace.layout.durable)
            return _REAPED
        if runs.is_held(run_dir):  # its supervisor lives; the entry was wiped under it, and put back by a stash
            return Held()
        intent = self._book.intent(run_id)
        if isinstance(intent, Refused):
            return intent
        alive = self._hunt(intent)
        if alive and self.is_late():
            return Unfinished()
        if alive:
            pids = ", ".join(map(str, alive))
            return Refused(run_id=run_id, reason=f"processes of it cannot be killed: {pids}")
        _record_orphan(self._workspace, intent.replace(run_dir=run_dir))
        return _REAPED

    def _dispose(self, run_id: str, temp_root: str) -> Fate:
        """Nothing of the run's trees is left in $TEMP."""
        intent = self._book.intent(run_id)
        if isinstance(intent, Refused):
            why = keeping.why_not(disposal.dispose(temp_root, run_id, self._workspace.key), temp_root, run_id)
        else:
            durable = self._workspace.layout.durable
            why = keeping.dispose(intent, self._workspace.key, durable=durable, temp_root=temp_root)
        return Refused(run_id=run_id, reason=why) if why else _REAPED

    def _hunt(self, intent: Intent) -> tuple[int, ...]:
        """Pids of the run's processes that could not be killed.

        None are looked for where none can be: after a reboot, or from another PID namespace.
        """
        if not intent.boot_id or (intent.boot_id, intent.pid_ns) != self._processes:
            return ()
        left_s = HUNT_S if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        cookie = request.cookie_of(intent.run_id, self._workspace.key)
        return strays.clear(strays.COOKIE_PREFIX + cookie.encode(), budget_s=min(HUNT_S, left_s))


def _put_back(workspace: Workspace) -> None:
    """Every dead run whose entry was wiped, before its supervisor could put it back, has an entry again."""
    listed = workspace.book.run_ids()
    for run_id in runs.run_ids(workspace.layout.runs):
        run_dir = f"{workspace.layout.runs}/{run_id}"
        if not twin.exists(run_dir) or run_id in listed or runs.is_held(run_dir):
            continue
        intent = twin.read(run_dir, workspace.key)
        try:
            if intent is not None:
                os.close(workspace.book.publish(intent).fd)
        except OrchError:  # another sweep is at it, or there is no room: the next one looks again
            continue


def _kill_holder(holder: Callable[[str], int], run_id: str) -> None:
    """The process that the kernel names was killed: named, pinned by a descriptor, and named again."""
    pid = holder(run_id)
    if pid <= 1 or pid == own_pid():
        return
    if not hasattr(os, "pidfd_open"):  # macOS: nothing pins it, but the kernel names it once more, at this instant
        if holder(run_id) == pid:
            os.kill(pid, SIGKILL)
        return
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if holder(run_id) == pid:
            _signal.pidfd_send_signal(pidfd, SIGKILL)
    except OSError:
        return
    finally:
        os.close(pidfd)


def _record_orphan(workspace: Workspace, intent: Intent) -> None:
    """The record says that the supervisor died; what its reviewers had written lies beside it."""
    run_dir = intent.run_dir
    runs.make_folder(run_dir)
    _unlink(os.path.join(run_dir, runs.ROOM))
    _harvest(intent)
    if runs.read(run_dir, "findings.json") is None:
        runs.write(run_dir, "findings.json", {"schema_version": "1", "findings": []})
    if runs.read(run_dir, "coverage.json") is None:
        runs.write(run_dir, "coverage.json", report.coverage_json(Coverage(), ()))
    _keep_evidence(workspace, intent)
    state = workspace.book.state(intent.run_id)
    ended = report.Ended(
        status="orphaned",
        terminal_reason="reaped",
        verdict="unreviewed",
        reason="its supervisor died before the review ended",
        supervisor_pid=state.supervisor_pid if state else 0,
        jobs=state.jobs if state else (),
    )
    runs.write(run_dir, runs.RECORD, report.record_json(intent, ended))
    journal.Journal(run_dir).write("run.ended", status=ended.status, verdict=ended.verdict)
    sessions.announce(workspace.layout.durable)
    dedup.unclaim(workspace.layout.durable, intent.dedup_key, intent.run_id)


def _harvest(intent: Intent) -> None:
    """What the reviewers wrote to their result files is in the run's folder, before the trees go."""
    for reviewer in intent.reviewers:
        content = _read_below(intent.temp_root, intent.run_id, reviewer.name, "request", request.RESULT)
        if content:
            folder = os.path.join(intent.run_dir, reviewer.name)
            runs.make_folder(folder)
            atomic.write(os.path.join(folder, request.RESULT), content)


def _read_below(top: str, *names: str) -> bytes:
    """The content of a plain file below the folder, b"" where there is none; no part of the way may be a link."""
    fds = []
    try:
        fds.append(at.open(top, FOLDER))
        for name in names[:-1]:
            fds.append(at.open(name, FOLDER, dir_fd=fds[-1]))
        return atomic.read(names[-1], limit=request.RESULT_LIMIT, dir_fd=fds[-1]) or b""
    except OSError:
        return b""
    finally:
        for fd in fds:
            os.close(fd)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def _keep_evidence(workspace: Workspace, intent: Intent) -> None:
    try:
        workspace.store.keep_evidence(intent.run_id, intent.base_tree_id, intent.tree_id)
    except OrchError:  # objects are missing: the run is over all the same
        return


def _clear_away(workspace: Workspace) -> tuple[str, ...]:
    """What no entry speaks of is gone: files of launchers that were killed, and trees of repositories that are gone."""
    workspace.book.clear_litter()
    orchdir.sweep_scratch(workspace.layout.live)
    try:
        root = temp_root(workspace.env)
    except OrchError:
        return ()
    return disposal.sweep_abandoned(root, workspace.key, older_than_s=ABANDONED_S)
