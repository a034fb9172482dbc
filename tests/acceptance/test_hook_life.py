"""A client's Stop hook, from its return to the record: nothing is lost, nobody is made to wait, nothing runs twice."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import Orch
from tests.project import HOOK, Project, appears
from tests.waiting import wait_until

FAST_S = 10.0  # a busy machine; what hangs would take for ever
TIMES = 20


def runner(project: Project, *, fds: tuple[int, ...] = (), stdin: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """The hook, started as a client does: three pipes and a process group of its own."""
    return subprocess.Popen(
        [*HOOK, "stop"],
        cwd=project.path,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=fds,
        start_new_session=True,
    )


def test_no_run_is_lost_where_the_group_is_killed_on_return(project: Project) -> None:
    """Case 11."""
    project.reviewer("fake", "--pass")
    project.only("fake")
    for number in range(TIMES):
        project.edit(f"number = {number}\n")
        hook = runner(project)
        assert hook.stdin
        hook.stdin.write(project.payload().encode())
        hook.stdin.close()
        hook.wait(FAST_S)
        try:
            os.killpg(hook.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # nobody was left in it, which is the point
        assert hook.stdout
        assert hook.stderr
        assert (hook.stdout.read(), hook.stderr.read()) == (b"", b"")
        hook.stdout.close()
        hook.stderr.close()
    project.settle()
    statuses = [project.record(run_id)["status"] for run_id in project.runs]
    assert len(statuses) == TIMES
    assert set(statuses) <= {"done", "superseded"}
    assert statuses[-1] == "done"


def test_every_descriptor_of_the_client_is_let_go(project: Project, tmp_path: Path) -> None:
    """Case 12: a reviewer that still runs keeps neither stdout, stderr nor a stray descriptor 3 open."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    project.reviewer("fake", "--touch", tmp_path / "up", "--fifo", fifo, "--pass")
    project.only("fake")
    stray_r, stray_w = os.pipe()
    hook = runner(project, fds=(stray_w,))
    os.close(stray_w)
    assert hook.stdin
    assert hook.stdout
    assert hook.stderr
    hook.stdin.write(project.payload().encode())
    hook.stdin.flush()  # and stays open: some clients never close it
    for fd in (hook.stdout.fileno(), hook.stderr.fileno(), stray_r):
        assert select.select([fd], [], [], FAST_S)[0]
        assert os.read(fd, 100) == b""
    hook.wait(FAST_S)
    appears(tmp_path / "up")
    assert project.live == [project.last]
    fifo.write_bytes(b"")
    assert project.ended()["verdict"] == "pass"
    for pipe in (hook.stdin, hook.stdout, hook.stderr):
        pipe.close()
    os.close(stray_r)


@pytest.mark.parametrize("said", [b"", b'{"session_id":"s1","cwd":'])
def test_a_client_that_never_ends_its_sentence_is_not_waited_for(project: Project, said: bytes) -> None:
    hook = runner(project)
    assert hook.stdin
    hook.stdin.write(said)
    hook.stdin.flush()
    assert hook.wait(FAST_S) == 0
    for pipe in (hook.stdin, hook.stdout, hook.stderr):
        assert pipe
        pipe.close()
    project.settle()


def test_of_the_stops_that_wait_only_the_newest_is_reviewed(project: Project, tmp_path: Path) -> None:
    """Three Stops while a review goes on: the running one ends first, the middle ones give way, no change is lost."""
    project.reviewer("fake", "--touch", tmp_path / "up", "--wait-for", tmp_path / "go", "--pass")
    project.only("fake")
    for number in range(4):
        project.edit(f"number = {number}\n", f"file{number}.py")
        project.fire()
        if number == 0:
            appears(tmp_path / "up")
        else:
            wait_until(lambda: project.state(project.last) == "queued", 10)
    (tmp_path / "go").touch()
    project.settle()
    first, *middle, last = [project.record(run_id) for run_id in project.runs]
    assert [record["status"] for record in (first, *middle, last)] == ["done", "superseded", "superseded", "done"]
    assert {record["verdict"] for record in middle} == {"unreviewed"}
    assert middle[0]["terminal_reason"] == f"superseded-by {middle[1]['run_id']}"
    assert first["tree_id"] != last["base_tree_id"]  # not judged yet when the others were fired
    changed = project.file(last["run_id"], "changes.patch").read_text()
    assert [number for number in range(4) if f"+number = {number}\n" in changed] == [0, 1, 2, 3]


def test_the_next_stop_looks_at_what_came_after_the_last_judgement(project: Project) -> None:
    project.reviewer("fake", "--pass")
    project.only("fake")
    for number in range(2):
        project.edit(f"number = {number}\n", f"file{number}.py")
        project.fire()
        project.settle()
    first, second = [project.record(run_id) for run_id in project.runs]
    assert second["base_tree_id"] == first["tree_id"]
    project.reviewer("fake", "--not-logged-in")
    for number in range(2, 4):
        project.edit(f"number = {number}\n", f"file{number}.py")
        project.fire()
        project.settle()
    third, fourth = [project.record(run_id) for run_id in project.runs[2:]]
    assert third["base_tree_id"] == fourth["base_tree_id"] == second["tree_id"]  # an unreviewed tree is no base


def test_a_run_outlives_its_folder_being_wiped(project: Project, orch: Orch, tmp_path: Path) -> None:
    """Case 50: `git clean -fdx` and `git stash --all` in the middle of a run."""
    project.reviewer("fake", "--touch", tmp_path / "up", "--wait-for", tmp_path / "go", "--pass")
    project.only("fake")
    project.fire()
    appears(tmp_path / "up")
    run_id = project.last
    for wipe in (["clean", "-fdxq"], ["stash", "push", "--quiet", "--all"]):
        supervisor = project.supervisor(run_id)
        os.kill(supervisor, signal.SIGSTOP)  # it would put the entry back before we have looked
        try:
            project.repo.git(*wipe)
            assert project.live == []
        finally:
            os.kill(supervisor, signal.SIGCONT)
        wait_until(lambda: project.live == [run_id], 10, what="the entry is back")
        assert project.supervisor(run_id)
    assert orch("sweep", "--json").returncode == 0
    assert project.live == [run_id]
    (tmp_path / "go").touch()
    assert project.ended(run_id)["verdict"] == "pass"
    assert [event["event"] for event in project.events(run_id)].count("run.restored") == 2
    assert [path.name for path in project.pending.iterdir()] == []


def test_a_wiped_run_can_still_be_stopped(project: Project, orch: Orch, tmp_path: Path) -> None:
    project.reviewer("fake", "--touch", tmp_path / "up", "--hang")
    project.only("fake")
    project.fire()
    appears(tmp_path / "up")
    shutil.rmtree(project.path / ".orch")
    wait_until(lambda: project.live, 10, what="the entry is back")
    assert orch("stop", "--all").returncode == 0
    assert project.ended()["status"] == "cancelled"


def test_a_run_whose_repository_goes_away_ends(project: Project, tmp_path: Path) -> None:
    project.reviewer("fake", "--touch", tmp_path / "up", "--hang")
    project.only("fake")
    project.fire()
    appears(tmp_path / "up")
    run_id = project.last
    shutil.rmtree(project.path)
    wait_until(lambda: not project.processes(run_id), 15, what="the reviewer has ended")
    wait_until(lambda: not project.trees(), 15, what="the tree is gone")


def test_nothing_changed_fires_nothing(project: Project) -> None:
    project.reviewer("fake", "--pass")
    project.only("fake")
    project.fire("session-start")
    project.fire()
    assert project.runs == []
    project.edit("changed\n")
    project.fire()
    project.settle()
    project.fire()
    project.fire("session-start", session="another")
    project.fire(session="another")
    assert len(project.runs) == 1


def test_an_edit_that_cannot_be_read_is_no_pass_and_is_told_once(project: Project) -> None:
    """The tree is that of the pass before, since the edit is not in it: the verdict must not be reused, nor silence."""
    project.reviewer("fake", "--pass")
    project.only("fake")
    project.fire("session-start")
    project.edit("changed\n")
    project.fire()
    assert project.ended()["verdict"] == "pass"
    (project.path / ".git/info/attributes").write_text("*.py filter=gone\n")
    project.set("filter.gone.clean", "no-such-program")
    project.set("filter.gone.required", "true")
    project.edit("not to be read\n")
    project.fire()
    assert len(project.runs) == 2
    assert project.ended()["verdict"] == "unreviewed"
    project.fire()
    assert len(project.runs) == 2


def test_time_from_stop_to_record_is_told(project: Project) -> None:
    began = time.time()
    project.fire()
    record = project.ended()
    timings = record["timings_ms"]
    assert set(timings) == {"snapshot", "materialize", "review", "dispose", "total"}
    assert timings["total"] <= (time.time() - began) * 1000 + 1
    assert timings["total"] >= timings["materialize"] + timings["review"]
