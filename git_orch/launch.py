"""Fire and return: the entry is written, a detached supervisor holds its lock, and the caller goes on."""

from __future__ import annotations

import os
import sys
import time

from git_orch import atomic, proc, registry, runs, windows
from git_orch import key as keys
from git_orch.errors import EnvironmentProblem
from git_orch.git import encode
from git_orch.model import Record, utc_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from git_orch.config import Settings
    from git_orch.layout import Layout
    from git_orch.model import Disposition, ReviewerSettings, Threshold
    from git_orch.registry import Intent, Lock, Registry
    from git_orch.target import Target

HANDSHAKE_S = 10.0
SIGKILL = 9
_NO_LOCK = "-1"  # in place of a descriptor, to a supervisor that has to take the lock itself
BY_HAND = registry.BY_HAND
BY_GIT = "git"
"""The client of a run that git's own hook has fired."""
_PACKAGE_PARENT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The supervisor is a bare interpreter: no site-packages of a big caller's, nothing imported that it does not need.
_FIND_US = "import os, sys; sys.path.append(sys.argv.pop())"
_BOOTSTRAP = "import sys; sys.path.append(sys.argv[1]); from git_orch import supervisor; supervisor.main(sys.argv[2:])"


class Order(Record):
    """What to run, and for whom; `rubric` is the text by which agents judge."""

    reviewers: tuple[ReviewerSettings, ...]
    fail_on: Threshold = "blocking"
    disposition: Disposition = "discard"
    pathspec: tuple[str, ...] = ()
    kind: str = "code"
    rubric: str = ""
    client: str = "unknown"
    session_id: str = "unknown"
    settle_s: float = 0.0
    bound: bool = True
    fresh: bool = False


def dedup_key(target: Target, order: Order) -> str:
    """What a verdict belongs to: both trees, what of the tracked files is not in them, what it was judged by."""
    reviewers = [repr(sorted(reviewer.fields().items())) for reviewer in order.reviewers]
    left_out = [f"{skip.path}\0{skip.reason}" for skip in target.skipped if skip.tracked]
    judged_by = (order.kind, order.fail_on, keys.digest(order.rubric), *order.pathspec)
    verdict_of = (target.tree_id, target.base.tree_id, *judged_by)
    return keys.digest(*verdict_of, "left out", *sorted(left_out), "reviewers", *sorted(reviewers))


def prepare(layout: Layout, settings: Settings, target: Target, order: Order, temp_root: str, instance: str) -> Intent:
    """The run's intent, with all that its supervisor needs to know; its lasting folder is there."""
    now = time.time()
    run_id = registry.make_run_id(now)
    run_dir = layout.run_dir(run_id)
    runs.make_folder(run_dir)
    runs.write(run_dir, "snapshot.json", {"skipped": [skipped.fields() for skipped in target.skipped]})
    if order.rubric:
        atomic.write(os.path.join(run_dir, runs.RUBRIC), encode(order.rubric))
    longest = max((reviewer.timeout_s for reviewer in order.reviewers), default=0.0)
    return registry.Intent(
        run_id=run_id,
        tree_id=target.tree_id,
        base_tree_id=target.base.tree_id,
        subject=target.subject,
        base_name=target.base.name,
        base_commit=target.base.commit,
        commit_oid=target.commit,
        head=target.head,
        temp_root=temp_root,
        run_dir=run_dir,
        status_path=os.path.join(layout.pending, f"{run_id}.state"),
        result_path=os.path.join(run_dir, "findings.json"),
        durable=layout.durable,
        common_dir=layout.common_dir,
        git_dir=layout.git_dir,
        objects=layout.objects,
        object_format=layout.object_format,
        worktree_path=layout.worktree,
        started_at=utc_stamp(now),
        deadline=utc_stamp(now + longest),
        reviewers=order.reviewers,
        kind=order.kind,
        rubric=keys.digest(order.rubric) if order.rubric else "",
        disposition=order.disposition,
        fail_on=order.fail_on,
        sandbox=settings.sandbox,
        provide=settings.provide,
        pathspec=order.pathspec,
        client=order.client,
        session_id=order.session_id,
        settle_s=order.settle_s,
        max_reviews=settings.max_reviews,
        budget=settings.budget,
        bound=order.bound,
        fresh=order.fresh,
        snapshot_ms=target.snapshot_ms,
        machine_id=machine_id(),
        boot_id=boot_id(),
        pid_ns=pid_namespace(),
        instance=instance,
        dedup_key=dedup_key(target, order),
        notes=settings.notes,
        keep_runs=settings.keep_runs,
        keep_days=settings.keep_days,
        keep_bytes=settings.keep_bytes,
    )


def supersede_queued(book: Registry, intent: Intent) -> None:
    """Runs of the same worktree that wait for their turn give way to this one; a running one ends first.

    What a commit has fired gives way to a later commit's alone: a session's review need not look at all of it. And a
    session's to the same session's: another one's begins where that one began, and so leaves out what this one did.
    """
    for run_id in book.run_ids():
        if run_id >= intent.run_id:
            continue
        other, state = book.intent(run_id), book.state(run_id)
        if isinstance(other, registry.Refused) or state is None or state.status != "queued":
            continue
        if other.git_dir == intent.git_dir and other.client != BY_HAND and _is_alike(other, intent):
            book.ask(run_id, f"superseded-by {intent.run_id}")


def _is_alike(one: Intent, other: Intent) -> bool:
    """Whether the same session has fired both, or git's hooks have."""
    same_session = one.session_id == other.session_id or one.client == BY_GIT
    return one.client == other.client and same_session


def by_exec(book: Registry, intent: Intent, lock: Lock, env: Mapping[str, str]) -> int:
    """A supervisor in a fresh, bare interpreter has the run; gives its pid. For callers that have much loaded.

    Raises:
        EnvironmentProblem: it did not come up; the entry is taken back.
    """
    if os.name == "nt":
        return _by_exec_windows(book, intent, lock, env)
    ready_r, ready_w = os.pipe()
    words = [book.live, intent.run_id, str(lock.fd), str(ready_w)]
    argv = [proc.interpreter(), "-I", "-S", "-c", _BOOTSTRAP, _PACKAGE_PARENT, *words]
    try:
        try:
            pid = proc.spawn_detached(argv, env=env, inherit=(lock.fd, ready_w))
        finally:
            os.close(ready_w)
        if _came_up(pid, ready_r):
            return pid
        raise EnvironmentProblem("the supervisor did not come up", f"see {intent.run_dir}/supervisor.log")
    except BaseException:
        book.remove(intent.run_id)
        raise
    finally:
        os.close(ready_r)
        os.close(lock.fd)


def _by_exec_windows(book: Registry, intent: Intent, lock: Lock, env: Mapping[str, str]) -> int:
    """The same, but for the lock: nobody can be handed one, so the supervisor takes it itself, before it greets.

    We keep our part of it until then, so that no sweep takes the run for dead (`windows.let_take`). Written, not run.
    """
    ready_r, ready_w = os.pipe()
    words = [book.live, intent.run_id, _NO_LOCK, str(windows.handle_number(ready_w))]
    argv = [windows.interpreter(), "-I", "-S", "-c", _BOOTSTRAP, _PACKAGE_PARENT, *words]
    try:
        windows.let_take(lock.fd)
        try:
            process = windows.spawn_detached(argv, env=windows.with_system(env), inherit=(ready_w,))
        finally:
            os.close(ready_w)
        if _greeted(ready_r):
            return int(process.pid)
        process.kill()
        process.wait()
        raise EnvironmentProblem("the supervisor did not come up", f"see {intent.run_dir}/supervisor.log")
    except BaseException:
        book.remove(intent.run_id)
        raise
    finally:
        os.close(ready_r)
        os.close(lock.fd)


def by_fork(book: Registry, intent: Intent, lock: Lock, supervise: Callable[[Registry, Intent, Lock], None]) -> bool:
    """A supervisor that is this very process, forked, has the run; says whether it came up. For the bare hook.

    Where it did not, the entry stays for the reaper to tell of: the caller is about to end. Windows knows no fork, and
    has a fresh interpreter in its place (`by_exec`).

    The byte comes after setsid: a client may kill the hook's process group the moment that the hook returns, and a
    child that has not left it by then is lost.
    """
    if not hasattr(os, "fork"):
        by_exec(book, intent, lock, os.environ)
        return True
    ready_r, ready_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            detach(keep=(lock.fd, ready_w))
            proc.greet(ready_w)
            supervise(book, intent, lock)
        finally:
            os._exit(70)
    os.close(ready_w)
    try:
        return _came_up(pid, ready_r)
    finally:
        os.close(ready_r)
        os.close(lock.fd)


def in_background(work: Callable[[], object], afresh: str, *words: str, env: Mapping[str, str]) -> None:
    """A forked, detached copy of this process does the work and ends; nobody waits for it. For the bare hook.

    Args:
        afresh: the same work as a program, for a fresh interpreter where there is no fork (Windows; written, not run).
        words: its `sys.argv[1:]`.
        env: its environment.
    """
    if not hasattr(os, "fork"):
        argv = [windows.interpreter(), "-I", "-S", "-c", f"{_FIND_US}; {afresh}", *words, _PACKAGE_PARENT]
        windows.spawn_detached(argv, env=windows.with_system(env), inherit=())
        return
    if os.fork() == 0:
        try:
            detach(keep=())
            work()
        finally:
            os._exit(0)


def detach(keep: tuple[int, ...]) -> None:
    """This process leads a session of its own and holds no descriptor of its caller's but those to keep.

    A descriptor of the hook's that stayed open would make five clients wait for as long as the supervisor lives.
    """
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    first = 3
    for fd in sorted(keep):
        os.closerange(first, fd)
        first = fd + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else 4096)
    os.chdir("/")


def boot_id() -> str:
    """The id of this boot of the machine, "" where it has none."""
    if sys.platform == "win32":
        return windows.boot_id()
    if sys.platform == "darwin":
        from git_orch.containment import darwin

        return darwin.text_of("kern.bootsessionuuid")
    return _line("/proc/sys/kernel/random/boot_id")


def machine_id() -> str:
    """The id of this machine, "" where it has none."""
    if sys.platform == "win32":
        return windows.machine_id()
    if sys.platform == "darwin":
        from git_orch.containment import darwin

        return darwin.text_of("kern.uuid")
    return _line("/etc/machine-id")


def pid_namespace() -> str:
    """The PID namespace that this process is in, "" where there is no such thing."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _came_up(pid: int, ready_fd: int) -> bool:
    """Whether the supervisor, a child of ours, is up; else it is gone, for a late one would have no entry."""
    if _greeted(ready_fd):
        return True
    os.kill(pid, SIGKILL)  # not reaped yet: the pid is still this child's
    os.waitpid(pid, 0)
    return False


def _greeted(fd: int) -> bool:
    return proc.readable(fd, HANDSHAKE_S) and os.read(fd, 1) == b"x"


def _line(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.readline().strip()
    except (OSError, ValueError):
        return ""
