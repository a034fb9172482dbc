"""From the launcher to the supervisor: the lock is never without a holder, and the kernel names the right one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from git_orch import events, jsontext, launch, proc, reaper, registry, runs, windows
from git_orch.errors import EnvironmentProblem
from git_orch.reaper import Reaped, Swept
from git_orch.registry import State
from git_orch.workspace import Workspace
from tests.adversaries.stage import is_alive
from tests.entries import dead_run, intent_of
from tests.integration.scene import END_S, PROJECT, READY_S, Rehearsal, has_exited, open_scene
from tests.repo import Repo
from tests.waiting import wait_until


@pytest.fixture
def scene(repo: Repo) -> Workspace:
    return open_scene(repo)


@pytest.fixture
def run(scene: Workspace, repo: Repo, tmp_path: Path) -> Iterator[Rehearsal]:
    rehearsal = Rehearsal(scene, repo, tmp_path)
    yield rehearsal
    rehearsal.release()


def flock_holder(path: str) -> int:
    """Whom /proc/locks names for the flock on the file."""
    inode = os.stat(path).st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(inode):
            return int(words[4])
    return 0


def finish(run: Rehearsal, pid: int) -> None:
    """The run has come to its proper end, and nothing of it is left."""
    run.release()
    wait_until(lambda: has_exited(pid), END_S)
    assert run.record is not None
    assert (run.record["status"], run.record["verdict"]) == ("done", "pass")
    assert os.listdir(run.scene.book.pending) == []


# -- who holds the lock (case 62)


def test_the_lock_is_held_from_its_first_moment_to_its_last(run: Rehearsal) -> None:
    """Looked at as fast as one can: whenever nobody held it, the entry was gone already (or not there yet)."""
    book, unheld, looks = run.scene.book, 0, 0
    entry = book.path(run.run_id, "json")
    pid = run.fire()
    run.release()
    while not has_exited(pid):
        looks += 1
        if not book.is_held(run.run_id):
            unheld += os.path.lexists(entry)
    assert looks > 10
    assert unheld == 0
    assert run.record is not None


def test_the_kernel_names_supervisor_and_guardian(run: Rehearsal) -> None:
    pid = run.fire()
    run.await_reviewer()
    book = run.scene.book
    assert book.supervisor_pid(run.run_id) == pid
    guardian = book.guardian_pid(run.run_id)
    state = book.state(run.run_id)
    assert state is not None
    assert state.status == "running"
    assert state.jobs[0]["guardian_pid"] == guardian != pid
    assert is_alive(guardian)
    finish(run, pid)
    assert book.supervisor_pid(run.run_id) == book.guardian_pid(run.run_id) == 0


def launcher(run: Rehearsal, how: str, then: str, inherited: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
    """A process that fires the run, prints a line, and does something then."""
    code = f"""
    import os, sys
    sys.path.insert(0, sys.argv[1])
    from git_orch import jsontext, launch, supervisor, workspace
    from git_orch.registry import Intent
    scene = workspace.open_at(sys.argv[2], dict(os.environ))
    intent = Intent.from_json(jsontext.loads(sys.argv[3]))
    lock = scene.book.publish(intent)
    if {how!r} == "exec":
        launch.by_exec(scene.book, intent, lock, scene.env)
    else:
        launch.by_fork(scene.book, intent, lock, supervisor.supervise)
    print("fired", flush=True)
    {then}
    """
    words = [str(PROJECT), run.scene.layout.worktree, jsontext.dumps(run.intent.to_json())]
    command = [sys.executable, "-I", "-S", "-c", textwrap.dedent(code), *words]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ),
        start_new_session=True,
        pass_fds=inherited,
    )


def fired(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout
    assert process.stdout.readline() == b"fired\n"


def close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
    process.wait(END_S)


@pytest.mark.parametrize("how", ["exec", "fork"])
def test_the_flock_goes_on_naming_the_launcher_who_is_innocent_by_then(run: Rehearsal, how: str) -> None:
    process = launcher(run, how, "sys.stdin.read()")
    fired(process)
    run.await_reviewer()
    book = run.scene.book
    assert flock_holder(book.path(run.run_id, "lock")) == process.pid
    supervisor = book.supervisor_pid(run.run_id)
    assert supervisor not in (0, process.pid)
    assert reaper.force(run.scene, run.run_id) == Reaped()
    assert process.poll() is None  # whom every reader of /proc/locks would have killed
    wait_until(lambda: not is_alive(supervisor), END_S)
    assert run.record is not None
    assert run.record["status"] == "orphaned"
    assert os.listdir(book.pending) == []
    close(process)


@pytest.mark.parametrize("how", ["exec", "fork"])
def test_a_supervisor_outlives_the_process_group_of_its_launcher(run: Rehearsal, how: str) -> None:
    """Case 11: a client may kill the hook's group the moment that the hook has answered."""
    process = launcher(run, how, "os.killpg(0, 9)")
    fired(process)
    process.wait(END_S)
    close(process)
    supervisor = wait_until(lambda: run.scene.book.supervisor_pid(run.run_id), READY_S)
    run.release()
    wait_until(lambda: not is_alive(supervisor), END_S)
    assert run.record is not None
    assert run.record["status"] == "done"


@pytest.mark.parametrize("how", ["exec", "fork"])
def test_nothing_of_the_launchers_stays_open_in_the_supervisor(run: Rehearsal, how: str) -> None:
    """Case 12: whoever waits for the end of a pipe that the launcher had inherited waits for the launcher alone."""
    reader, writer = os.pipe()
    process = launcher(run, how, "pass", inherited=(writer,))
    os.close(writer)
    fired(process)
    run.await_reviewer()
    supervisor = run.scene.book.supervisor_pid(run.run_id)
    process.wait(END_S)
    close(process)
    os.set_blocking(reader, False)
    assert os.read(reader, 1) == b""  # its end; BlockingIOError would mean that somebody has it open
    os.close(reader)
    assert is_alive(supervisor)
    for fd in ("0", "1"):
        assert os.readlink(f"/proc/{supervisor}/fd/{fd}") == "/dev/null"
    run.release()
    wait_until(lambda: not is_alive(supervisor), END_S)


# -- a supervisor that does not come up


@pytest.mark.parametrize(
    "body",
    ["import sys; sys.exit(3)", "import time; time.sleep(60)", "import os; os.close(int(os.sys.argv[-1])); input()"],
)
def test_one_that_does_not_come_up_is_told_and_leaves_nothing(
    run: Rehearsal, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setattr(launch, "_BOOTSTRAP", body)
    monkeypatch.setattr(launch, "HANDSHAKE_S", 1.0)
    with pytest.raises(EnvironmentProblem, match="the supervisor did not come up"):
        run.fire()
    assert os.listdir(run.scene.book.pending) == []
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_one_that_cannot_be_started_leaves_nothing(run: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "interpreter", lambda: "/nonesuch/python3")
    before = os.listdir("/proc/self/fd")
    with pytest.raises(FileNotFoundError):
        run.fire()
    assert os.listdir(run.scene.book.pending) == []
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_one_that_was_forked_and_hangs_is_killed_and_its_entry_is_told_of(
    run: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "HANDSHAKE_S", 0.3)
    monkeypatch.setattr(launch, "detach", lambda keep: signal.pause())  # noqa: ARG005
    lock = run.scene.book.publish(run.intent)
    assert not launch.by_fork(run.scene.book, run.intent, lock, lambda *_: None)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert reaper.sweep(run.scene) == Swept(reaped=(run.run_id,))
    assert run.record is not None
    assert run.record["status"] == "orphaned"


# -- killed for good


def test_a_supervisor_that_is_killed_takes_its_job_with_it(run: Rehearsal) -> None:
    pid = run.fire()
    run.await_reviewer()
    book = run.scene.book
    state = book.state(run.run_id)
    assert state is not None
    job, guardian = state.jobs[0]["child_pid"], state.jobs[0]["guardian_pid"]
    assert state.jobs[0]["child_starttime"] > 0
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_until(lambda: not book.is_held(run.run_id), END_S)  # the guardian's part of the lock falls last
    assert not is_alive(guardian)
    assert not is_alive(job)
    assert reaper.sweep(run.scene) == Swept(reaped=(run.run_id,))
    assert not os.path.lexists(os.path.join(run.intent.temp_root, run.run_id))
    evidence = run.scene.store.evidence(run.run_id)
    assert evidence is not None


def test_a_bug_in_the_supervisor_ends_its_jobs_before_their_trees_go(
    run: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = """
import os, sys
sys.path.append(sys.argv[1])
from git_orch import attempt, supervisor
started = sys.argv.pop()
def boom(self):
    if os.path.exists(started):
        os.rename(started, started + "-seen")
        raise ZeroDivisionError
attempt.Attempt.tick = boom
supervisor.main(sys.argv[2:])
"""
    real = proc.spawn_detached
    monkeypatch.setattr(launch, "_BOOTSTRAP", broken)
    monkeypatch.setattr(proc, "spawn_detached", lambda argv, **options: real([*argv, str(run.started)], **options))
    pid = run.fire()
    wait_until(lambda: has_exited(pid), END_S)
    record = run.record
    assert record is not None
    assert (record["status"], record["terminal_reason"]) == ("failed", "supervisor-error")
    assert record["verdict"] == "unreviewed"
    assert "ZeroDivisionError" in Path(run.intent.run_dir, "supervisor.log").read_text()
    assert not os.path.lexists(os.path.join(run.intent.temp_root, run.run_id))
    assert os.listdir(run.scene.book.pending) == []


# -- `.orch` taken away under a live run (case 50)


def test_what_git_clean_takes_comes_back_within_a_second_or_so(run: Rehearsal, repo: Repo) -> None:
    pid = run.fire()
    run.await_reviewer()
    book = run.scene.book
    state = book.state(run.run_id)
    repo.git("clean", "-fdx")
    assert not os.path.lexists(book.live)
    wait_until(lambda: os.path.lexists(book.path(run.run_id, "json")), 10)
    assert book.intent(run.run_id) == run.intent
    wait_until(lambda: book.state(run.run_id) == state, 5)
    wait_until(lambda: book.supervisor_pid(run.run_id) == pid, 5)
    assert reaper.sweep(run.scene) == Swept(left=(run.run_id,))
    assert run.scene.book.ask(run.run_id, "cancel")
    wait_until(lambda: has_exited(pid), END_S)
    assert run.record is not None
    assert run.record["status"] == "cancelled"


def test_a_stash_that_takes_it_and_brings_it_back_harms_no_run(run: Rehearsal, repo: Repo) -> None:
    pid = run.fire()
    run.await_reviewer()
    repo.write("b.py", "dirty\n")
    repo.git("stash", "--all")
    repo.git("stash", "pop")
    swept = reaper.sweep(run.scene)
    assert swept.reaped == ()
    assert is_alive(pid)
    wait_until(lambda: run.scene.book.supervisor_pid(run.run_id) == pid, 10)
    finish(run, pid)


def test_a_new_registry_that_was_made_meanwhile_is_the_one_that_is_used(run: Rehearsal, repo: Repo) -> None:
    pid = run.fire()
    run.await_reviewer()
    repo.git("clean", "-fdx")
    book = registry.ensure(run.scene.layout, run.scene.key, run.scene.env)
    wait_until(lambda: not isinstance(book.intent(run.run_id), registry.Refused), 10)
    finish(run, pid)


def test_a_repository_that_is_gone_is_not_made_again(run: Rehearsal, repo: Repo) -> None:
    pid = run.fire()
    run.await_reviewer()
    shutil.rmtree(repo.path)
    run.release()
    wait_until(lambda: has_exited(pid), END_S)
    assert not repo.path.exists()
    assert not os.path.lexists(os.path.join(run.intent.temp_root, run.run_id))


def test_what_another_tool_put_there_meanwhile_is_left_alone(run: Rehearsal, repo: Repo) -> None:
    pid = run.fire()
    run.await_reviewer()
    shutil.rmtree(run.scene.book.live)
    repo.write(".orch/cli.js", "theirs")
    run.release()
    wait_until(lambda: has_exited(pid), END_S)
    assert os.listdir(run.scene.book.live) == ["cli.js"]
    assert run.record is not None
    assert run.record["verdict"] == "pass"


# -- the queue


@pytest.mark.leaves_entries("entries without supervisors")
def test_only_queued_runs_of_a_hook_in_the_same_worktree_are_superseded(scene: Workspace) -> None:
    book = scene.book

    def entry(status: str, **changes: object) -> str:
        intent = intent_of(scene.layout, book, registry.make_run_id(1e9 + len(asked)), **changes)
        os.close(book.publish(intent).fd)
        book.write_state(intent.run_id, State(status=status))  # type: ignore[arg-type]
        asked.append(intent.run_id)
        return intent.run_id

    asked: list[str] = []
    queued = entry("queued", client="claude")
    others = [
        entry("running", client="claude"),
        entry("starting", client="claude"),
        entry("queued", client="you"),
        entry("queued", client="claude", git_dir="/elsewhere"),
    ]
    newest = intent_of(scene.layout, book, client="claude")
    os.close(book.publish(newest).fd)
    newer = intent_of(scene.layout, book, registry.make_run_id(4e9), client="claude")
    os.close(book.publish(newer).fd)
    launch.supersede_queued(book, newest)
    assert book.asked(queued) == f"superseded-by {newest.run_id}"
    assert [book.asked(run_id) for run_id in (*others, newest.run_id, newer.run_id)] == [""] * 6


def test_a_prepared_run_names_where_its_state_and_result_are(run: Rehearsal) -> None:
    intent = run.intent
    assert intent.status_path == run.scene.book.path(run.run_id, "state")
    assert intent.result_path == os.path.join(intent.run_dir, "findings.json")
    assert intent.deadline > intent.started_at
    assert (intent.machine_id, intent.boot_id, intent.pid_ns) == (
        launch.machine_id(),
        launch.boot_id(),
        launch.pid_namespace(),
    )
    assert runs.read(intent.run_dir, "snapshot.json") == {"skipped": []}


# -- where there is no fork (Windows)


def test_the_rest_of_a_sweep_is_a_fresh_interpreter_s(scene: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = dead_run(scene.layout, scene.book).run_id
    ended: list[int] = []

    def spawn(argv: list[str], *, env: dict[str, str], inherit: tuple[int, ...]) -> None:
        assert inherit == ()
        ended.append(subprocess.run(argv, env=env, cwd="/", timeout=60, check=False).returncode)

    monkeypatch.setattr(windows, "spawn_detached", spawn)
    monkeypatch.delattr(os, "fork")
    launch.in_background(lambda: ended.append(99), events._SWEEP, scene.layout.worktree, env=scene.env)
    assert ended == [0]
    record = runs.final_record(scene.layout.run_dir(run_id))
    assert record is not None
    assert record["status"] == "orphaned"
