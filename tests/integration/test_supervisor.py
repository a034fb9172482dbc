"""The supervisor where it fails itself: every way out leaves a record, or all that the next sweep needs for one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from git_orch import launch, place, reaper, registry, runs, supervisor, workspace
from git_orch.launch import Order
from git_orch.model import Base, ReviewerSettings
from git_orch.place import temp_root
from git_orch.reaper import Reaped
from git_orch.registry import Intent, State
from git_orch.target import Target
from git_orch.workspace import Workspace
from tests.fakes import fake_reviewer
from tests.integration.scene import END_S, PROJECT, open_scene, trees
from tests.repo import Repo
from tests.waiting import wait_until

BLOCKING = '[{"path": "a.py", "start_line": 1}]'


@pytest.fixture
def scene(repo: Repo) -> Workspace:
    return open_scene(repo)


def order(scene: Workspace, repo: Repo, *commands: str, client: str = "you", **changes: Any) -> Intent:
    """The intent of a run with these reviewers, of which nothing has been started."""
    names = [f"fake{number}" for number in range(len(commands))]
    reviewers = tuple(
        ReviewerSettings(name=name, command=command) for name, command in zip(names, commands, strict=True)
    )
    target = Target(**trees_of(repo), subject="main~..main")
    root = temp_root(scene.env)
    given = Order(reviewers=reviewers, client=client)
    intent = launch.prepare(scene.layout, scene.settings, target, given, root, scene.book.instance)
    return intent.replace(**changes)


def trees_of(repo: Repo) -> dict[str, Any]:
    found = trees(repo)
    return {"tree_id": found["tree_id"], "base": Base(tree_id=found["base_tree_id"], name="HEAD~")}


def supervise(scene: Workspace, intent: Intent, patch: str = "") -> int:
    """The exit status of a supervisor of the run, in which that code was executed before it began."""
    return start(scene, intent, patch).wait(END_S)


def start(scene: Workspace, intent: Intent, patch: str = "") -> subprocess.Popen[bytes]:
    lock = scene.book.publish(intent)
    ready_r, ready_w = os.pipe()
    code = "import errno, os, sys; sys.path.append(sys.argv[1]); from git_orch import supervisor"
    main = "supervisor.main(sys.argv[2:])"
    words = [scene.book.live, intent.run_id, str(lock.fd), str(ready_w)]
    script = "\n".join([code, textwrap.dedent(patch), main])
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", script, str(PROJECT), *words], pass_fds=(lock.fd, ready_w), cwd="/"
    )
    for fd in (ready_r, ready_w, lock.fd):  # nobody waits for its greeting, as where the launcher is killed
        os.close(fd)
    return process


def entries(scene: Workspace) -> list[str]:
    return sorted(os.listdir(scene.book.pending))


def test_a_record_that_cannot_be_written_is_left_to_the_sweep(scene: Workspace, repo: Repo) -> None:
    """A full disk: what was found, the tree and the entry stay until there is room."""
    intent = order(scene, repo, fake_reviewer("--to-result", "--findings", BLOCKING))
    patch = """
    from git_orch import runs
    def write(run_dir, name, value, **_):
        raise OSError(errno.ENOSPC, "No space left on device", name)
    runs.write = write
    """
    assert supervise(scene, intent, patch) == 0
    assert runs.final_record(intent.run_dir) is None
    state = scene.book.state(intent.run_id)
    assert state is not None
    assert state.status == "failed"
    assert os.path.isdir(os.path.join(intent.temp_root, intent.run_id))
    assert reaper.sweep_one(scene, intent.run_id) == Reaped()
    record = runs.final_record(intent.run_dir)
    assert record is not None
    assert record["status"] == "orphaned"
    assert Path(intent.run_dir, "fake0/result").read_bytes().startswith(b"{")
    assert not os.path.exists(os.path.join(intent.temp_root, intent.run_id))


def test_a_bug_becomes_the_outcome_once_every_reviewer_has_ended(scene: Workspace, repo: Repo, tmp_path: Path) -> None:
    mark = tmp_path / "up"
    intent = order(scene, repo, fake_reviewer("--touch", mark, "--hang"))
    patch = f"""
    from git_orch.attempt import Attempt
    def tick(self):
        if os.path.exists({str(mark)!r}):
            raise ZeroDivisionError("planted")
    Attempt.tick = tick
    from git_orch import runs
    real = runs.write
    def write(run_dir, name, value, **how):
        cookie = b"ORCH_TASK={intent.run_id}."
        for pid in os.listdir("/proc"):
            try:
                assert not pid.isdecimal() or cookie not in open(f"/proc/{{pid}}/environ", "rb").read(), pid
            except OSError:
                pass
        real(run_dir, name, value, **how)
    runs.write = write
    """
    assert supervise(scene, intent, patch) == 0
    record = runs.final_record(intent.run_dir)
    assert record is not None
    assert (record["status"], record["terminal_reason"]) == ("failed", "supervisor-error")
    assert record["reason"] == "a bug in git-orch: ZeroDivisionError; see supervisor.log"
    assert "planted" in Path(intent.run_dir, "supervisor.log").read_text()
    assert entries(scene) == []


@pytest.mark.parametrize("stage", ["materialize", "store.pack_evidence", "inspect"])
def test_what_fails_on_the_way_is_told(scene: Workspace, repo: Repo, stage: str) -> None:
    intent = order(scene, repo, fake_reviewer("--pass"))
    patch = f"""
    from git_orch import attempt, store, tree
    from git_orch.errors import GitError
    def fail(*_, **__):
        raise GitError(("planted",), 128, "fatal: planted")
    if {stage!r} == "materialize":
        tree.materialize = fail
    elif {stage!r} == "inspect":
        attempt.inspect = fail
    else:
        store.Store.pack_evidence = fail
    """
    assert supervise(scene, intent, patch) == 0
    record = runs.final_record(intent.run_dir)
    assert record is not None
    if stage == "store.pack_evidence":
        assert (record["status"], record["verdict"]) == ("done", "pass")
        assert "run.evidence-lost" in Path(intent.run_dir, "events.jsonl").read_text()
    else:
        assert record["verdict"] == "unreviewed"
        assert "planted" in record["reason"]
    assert entries(scene) == []
    assert not os.path.exists(os.path.join(intent.temp_root, intent.run_id))


def test_evidence_is_there_while_the_reviewer_still_works(scene: Workspace, repo: Repo, tmp_path: Path) -> None:
    intent = order(scene, repo, fake_reviewer("--wait-for", tmp_path / "go", "--pass"))
    process = start(scene, intent)
    wait_until(lambda: scene.store.evidence(intent.run_id), END_S)
    assert scene.store.git().attempt("rev-parse", "--verify", "-q", f"refs/live/{intent.run_id}").code == 0
    (tmp_path / "go").touch()
    assert process.wait(END_S) == 0
    assert scene.store.git().attempt("rev-parse", "--verify", "-q", f"refs/live/{intent.run_id}").code == 1
    assert scene.store.evidence(intent.run_id) is not None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_in_order_also_while_it_waits_for_its_turn(
    scene: Workspace, repo: Repo, tmp_path: Path, number: int
) -> None:
    first = order(
        scene, repo, fake_reviewer("--touch", tmp_path / "up", "--wait-for", tmp_path / "go"), client="claude"
    )
    second = order(scene, repo, fake_reviewer("--pass"), client="claude")
    running = start(scene, first)
    wait_until((tmp_path / "up").exists, END_S)
    waiting = start(scene, second)
    wait_until(lambda: scene.book.supervisor_pid(second.run_id), END_S)
    log = Path(second.run_dir, "supervisor.log")
    wait_until(log.exists, END_S)
    wait_until(lambda: _handles(waiting.pid, number), END_S)
    waiting.send_signal(number)
    assert waiting.wait(END_S) == 0
    record = runs.final_record(second.run_dir)
    assert record is not None
    assert (record["status"], record["reviewers"]) == ("cancelled", [])
    running.send_signal(number)
    assert running.wait(END_S) == 0
    assert entries(scene) == []


def _handles(pid: int, number: int) -> bool:
    """Whether the process has a handler for the signal."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def test_an_entry_that_a_clean_takes_again_comes_back_again(scene: Workspace, repo: Repo, tmp_path: Path) -> None:
    """The lock was put back, and the clean that was still under way took the entry beside it."""
    intent = order(scene, repo, fake_reviewer("--touch", tmp_path / "up", "--wait-for", tmp_path / "go", "--pass"))
    process = start(scene, intent)
    wait_until((tmp_path / "up").exists, END_S)
    for kind in ("json", "state"):
        os.unlink(scene.book.path(intent.run_id, kind))
    wait_until(lambda: isinstance(scene.book.intent(intent.run_id), Intent), END_S)
    state = scene.book.state(intent.run_id)
    assert isinstance(state, State)
    assert state.status == "running"
    assert isinstance(scene.book.try_lock(intent.run_id), registry.Held)
    (tmp_path / "go").touch()
    assert process.wait(END_S) == 0
    assert entries(scene) == []


DIES_BEFORE_DISPOSING = """
from git_orch import keeping
def die(*_, **__):
    os._exit(9)
keeping.dispose = die
"""


def test_a_kept_tree_that_a_crash_left_behind_is_kept_by_the_sweep(scene: Workspace, repo: Repo) -> None:
    intent = order(scene, repo, fake_reviewer("--pass"), disposition="preserve")
    assert supervise(scene, intent, DIES_BEFORE_DISPOSING) == 9
    assert reaper.sweep_one(scene, intent.run_id) == Reaped()
    kept = Path(scene.layout.durable, "kept", intent.run_id, "fake0")
    assert (kept / "a.py").read_text() == "reviewed\n"
    assert entries(scene) == []
    assert not os.path.exists(os.path.join(intent.temp_root, intent.run_id))


def test_a_kept_tree_without_our_mark_is_neither_moved_nor_removed(scene: Workspace, repo: Repo) -> None:
    intent = order(scene, repo, fake_reviewer("--pass"), disposition="preserve")
    assert supervise(scene, intent, DIES_BEFORE_DISPOSING) == 9
    run_folder = Path(intent.temp_root, intent.run_id)
    mark = (run_folder / place.MARKER).read_text()
    (run_folder / place.MARKER).write_text("somebody else's\n")
    swept = reaper.sweep_one(scene, intent.run_id)
    assert isinstance(swept, registry.Refused)
    assert "bears no mark of ours" in swept.reason
    assert (run_folder / "fake0/tree/a.py").read_text() == "reviewed\n"
    assert not Path(scene.layout.durable, "kept").exists()
    (run_folder / place.MARKER).write_text(mark)
    assert reaper.sweep_one(scene, intent.run_id) == Reaped()
    assert Path(scene.layout.durable, "kept", intent.run_id, "fake0/a.py").read_text() == "reviewed\n"


def git_that(tmp_path: Path, word: str, does: str) -> str:
    """Code for a supervisor whose git does something of its own when it is called with that word."""
    wrapper = tmp_path / "bin/git"
    wrapper.parent.mkdir()
    real = shutil.which("git")
    wrapper.write_text(f'#!/bin/sh\ncase " $* " in *" {word} "*) {does};; esac\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    return f"os.environ['PATH'] = {str(wrapper.parent)!r} + ':' + os.environ['PATH']"


def test_git_that_a_killed_supervisor_leaves_behind_is_found(scene: Workspace, repo: Repo, tmp_path: Path) -> None:
    """A fetch of a partial clone may hang for long; it must not write into a tree that is being removed."""
    mark = tmp_path / "hangs"
    intent = order(scene, repo, fake_reviewer("--pass"))
    process = start(scene, intent, git_that(tmp_path, "archive", f"touch {mark}; exec sleep 30"))
    wait_until(mark.exists, END_S)
    process.kill()
    process.wait(END_S)
    assert reaper.sweep_one(scene, intent.run_id) == Reaped()
    cookie = f"ORCH_TASK={intent.run_id}.".encode()
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            assert cookie not in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
    assert not os.path.exists(os.path.join(intent.temp_root, intent.run_id))


def test_a_daemon_that_git_starts_delays_nothing(scene: Workspace, repo: Repo, tmp_path: Path) -> None:
    """Case 75: a credential cache, say, which keeps the output of the git that started it."""
    pid = tmp_path / "pid"
    intent = order(scene, repo, fake_reviewer("--pass"))
    process = start(scene, intent, git_that(tmp_path, "archive", f"setsid sleep 60 & echo $! > {pid}"))
    try:
        assert process.wait(END_S) == 0
        record = runs.final_record(intent.run_dir)
        assert record is not None
        assert record["verdict"] == "pass"
        assert entries(scene) == []
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


def test_a_run_that_lost_entry_and_supervisor_at_once_is_reaped_all_the_same(
    scene: Workspace, repo: Repo, tmp_path: Path
) -> None:
    intent = order(scene, repo, fake_reviewer("--touch", tmp_path / "up", "--hang"))
    process = start(scene, intent)
    wait_until((tmp_path / "up").exists, END_S)
    process.send_signal(signal.SIGSTOP)  # it cannot put anything back
    for kind in ("json", "state", "lock"):
        os.unlink(scene.book.path(intent.run_id, kind))
    assert reaper.sweep(scene).reaped == ()  # it lives
    process.kill()
    process.wait(END_S)
    assert reaper.sweep(scene).reaped == (intent.run_id,)
    record = runs.final_record(intent.run_dir)
    assert record is not None
    assert record["status"] == "orphaned"
    assert entries(scene) == []
    assert not os.path.exists(os.path.join(intent.temp_root, intent.run_id))
    assert reaper.sweep(scene).reaped == ()


def test_a_copy_of_the_repository_has_no_say_in_it(scene: Workspace, repo: Repo, tmp_path: Path) -> None:
    """Case 61, and the copy has lost its `.orch` besides."""
    intent = order(scene, repo, fake_reviewer("--touch", tmp_path / "up", "--wait-for", tmp_path / "go", "--pass"))
    process = start(scene, intent)
    wait_until((tmp_path / "up").exists, END_S)
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", str(repo.path), str(copy)], check=True)
    subprocess.run(["rm", "-rf", str(copy / ".orch")], check=True)
    swept = reaper.sweep(workspace.open_at(str(copy), dict(os.environ)))
    assert (swept.reaped, swept.trees) == ((), ())
    assert process.poll() is None
    (tmp_path / "go").touch()
    assert process.wait(END_S) == 0
    record = runs.final_record(intent.run_dir)
    assert record is not None
    assert record["verdict"] == "pass"


# -- a lock that cannot be handed down (Windows)


def test_a_supervisor_without_a_lock_takes_it_over(scene: Workspace, repo: Repo) -> None:
    intent = order(scene, repo)
    os.close(scene.book.publish(intent).fd)
    taken = supervisor._lock_of_ours(scene.book, intent.run_id)
    assert isinstance(taken, registry.Lock)
    assert scene.book.is_held(intent.run_id)
    scene.book.remove(intent.run_id)
    os.close(taken.fd)


def test_a_supervisor_without_a_lock_gives_way_to_who_holds_it(scene: Workspace, repo: Repo) -> None:
    intent = order(scene, repo)
    lock = scene.book.publish(intent)
    assert supervisor._lock_of_ours(scene.book, intent.run_id) is None
    scene.book.remove(intent.run_id)
    assert supervisor._lock_of_ours(scene.book, intent.run_id) is None
    os.close(lock.fd)
