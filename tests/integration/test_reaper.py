"""After a supervisor was killed: everything of its run is taken away, once, and nothing of anybody else's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from git_orch import dedup, disposal, jsontext, locks, proc, reaper, registry, retention, runs, workspace
from git_orch.containment import strays
from git_orch.reaper import Absent, Reaped, Swept
from git_orch.registry import Held, Refused
from git_orch.workspace import Workspace
from tests.adversaries.dying_supervisor import KEY_OF_VERDICT, RESULT
from tests.adversaries.stage import is_alive
from tests.entries import dead_run, end_run, intent_of
from tests.integration.scene import PROJECT, Dying, cookie, dead, open_scene, trees
from tests.repo import Repo
from tests.seal import MARKER
from tests.waiting import wait_until


@pytest.fixture
def scene(repo: Repo) -> Workspace:
    return open_scene(repo)


@pytest.fixture
def bystander() -> Iterator[int]:
    """A process that has nothing to do with anything; it has to survive, and is ended by the test that has it."""
    process = subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL)
    try:
        yield process.pid
        assert process.poll() is None, "an innocent was killed"
    finally:
        process.kill()
        process.wait(10)


def reapable(*run_ids: str) -> Swept:
    return Swept(reaped=tuple(sorted(run_ids)))


def record_of(scene: Workspace, run_id: str) -> dict[str, Any]:
    record = runs.final_record(scene.layout.run_dir(run_id))
    assert record is not None
    return record


def entries(scene: Workspace) -> list[str]:
    return sorted(os.listdir(scene.book.pending))


def owner_of_key(scene: Workspace) -> str:
    path = Path(scene.layout.durable, "index", KEY_OF_VERDICT)
    return path.read_text() if path.exists() else ""


def store_refs(scene: Workspace) -> list[str]:
    return scene.store.git().run("for-each-ref", "--format=%(refname)").decode().split()


# -- killed at each stage


@pytest.mark.usefixtures("bystander")
def test_killed_before_there_was_a_supervisor(scene: Workspace, repo: Repo) -> None:
    run = dead(repo, "published")
    assert reaper.sweep(scene) == reapable(run.run_id)
    assert reaper.sweep(scene) == Swept()
    assert record_of(scene, run.run_id)["status"] == "orphaned"
    assert entries(scene) == []
    assert owner_of_key(scene) == ""


@pytest.mark.usefixtures("bystander")
def test_killed_at_work(scene: Workspace, repo: Repo) -> None:
    run = dead(repo, "working")
    assert is_alive(run.job)
    assert run.tree.is_dir()
    assert reaper.sweep(scene) == reapable(run.run_id)
    assert not is_alive(run.job)
    assert not run.tree.exists()
    assert entries(scene) == []
    assert owner_of_key(scene) == ""
    record = record_of(scene, run.run_id)
    assert (record["status"], record["terminal_reason"], record["verdict"]) == ("orphaned", "reaped", "unreviewed")
    assert record["reason"] == "its supervisor died before the review ended"
    assert record["supervisor_pid"] == run.pid
    assert record["jobs"] == [{"reviewer": "claude", "child_pid": run.job, "status": "running"}]
    assert record["finished_at"] > record["started_at"]
    assert reaper.sweep(scene) == Swept()


def test_what_a_reviewer_had_written_is_kept(scene: Workspace, repo: Repo) -> None:
    run = dead(repo, "working")
    reaper.sweep(scene)
    assert Path(scene.layout.run_dir(run.run_id), "claude", "result").read_bytes() == RESULT


def test_the_evidence_is_kept_and_the_tree_let_go(scene: Workspace, repo: Repo) -> None:
    run = dead(repo, "working")
    assert store_refs(scene) == [f"refs/live/{run.run_id}"]
    reaper.sweep(scene)
    assert store_refs(scene) == [f"refs/runs/{run.run_id}"]
    evidence = scene.store.evidence(run.run_id)
    assert evidence is not None
    assert scene.store.git().run("show", f"{evidence.tree}:a.py") == b"reviewed\n"


def test_an_end_that_was_recorded_stands(scene: Workspace, repo: Repo) -> None:
    run = dead(repo, "recorded")
    folder = Path(scene.layout.run_dir(run.run_id))
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert run.tree.is_dir()
    assert reaper.sweep(scene) == reapable(run.run_id)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    assert record_of(scene, run.run_id)["verdict"] == "findings"
    assert not run.tree.exists()
    assert entries(scene) == []
    assert owner_of_key(scene) == run.run_id  # its verdict can be used again


def test_killed_between_tree_and_entry(scene: Workspace, repo: Repo) -> None:
    run = dead(repo, "disposed")
    assert not run.tree.exists()
    assert reaper.sweep(scene) == reapable(run.run_id)
    assert record_of(scene, run.run_id)["status"] == "done"
    assert entries(scene) == []


@pytest.mark.parametrize("at", ["runs.write", "dedup.unclaim", "disposal.dispose", "book.remove"])
def test_a_reaper_that_is_killed_itself_leaves_the_rest_to_the_next(
    scene: Workspace, repo: Repo, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    run = dead(repo, "working")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    owners = {"runs": runs, "dedup": dedup, "disposal": disposal, "book": registry.Registry}
    module, _, name = at.partition(".")
    with monkeypatch.context() as patch:
        patch.setattr(owners[module], name, killed)
        with pytest.raises(KeyboardInterrupt):
            reaper.sweep(scene)
    assert reaper.sweep(scene) == reapable(run.run_id)
    assert record_of(scene, run.run_id)["status"] == "orphaned"
    assert not run.tree.exists()
    assert entries(scene) == []
    assert store_refs(scene) == [f"refs/runs/{run.run_id}"]
    assert dedup.standing(scene.layout, KEY_OF_VERDICT) is None


# -- who is left alone


def test_a_run_that_lives_is_left_alone(scene: Workspace, repo: Repo) -> None:
    with Dying(repo, "working") as run:
        assert reaper.sweep(scene) == Swept(left=(run.run_id,))
        assert reaper.sweep_one(scene, run.run_id) == Held()
        assert is_alive(run.job)
        assert run.tree.is_dir()
        assert is_alive(run.pid)
    assert reaper.sweep(scene) == reapable(run.run_id)


def test_two_sweeps_at_once_act_once(scene: Workspace, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    run = dead(repo, "working")
    second: list[Swept] = []
    real = strays.clear

    def meanwhile(*args: Any, **options: Any) -> tuple[int, ...]:
        if not second:
            second.append(reaper.sweep(scene))
        return real(*args, **options)

    monkeypatch.setattr(strays, "clear", meanwhile)
    assert reaper.sweep(scene) == reapable(run.run_id)
    assert second == [Swept(left=(run.run_id,))]


def test_a_run_that_ended_while_one_looked_is_absent(scene: Workspace, repo: Repo) -> None:
    run = dead(repo, "disposed")
    scene.book.remove(run.run_id)
    assert reaper.sweep_one(scene, run.run_id) == Absent()


@pytest.mark.leaves_entries("the lock is lost: nothing is done")
@pytest.mark.leaves_trees("the same")
def test_a_lost_lock_is_no_proof_of_death(scene: Workspace, repo: Repo) -> None:
    with Dying(repo, "working") as run:
        os.unlink(scene.book.path(run.run_id, "lock"))
        assert reaper.sweep(scene).refused == (
            Refused(run_id=run.run_id, reason="its lock is missing or no plain file"),
        )
        assert is_alive(run.job)
        assert run.tree.is_dir()
        os.kill(run.job, 9)


@pytest.mark.leaves_entries("put back by a stash, and left to the supervisor")
@pytest.mark.usefixtures("tmp_path")
def test_an_entry_that_a_stash_brought_back_is_not_taken_for_a_dead_run(scene: Workspace, repo: Repo) -> None:
    """Its lock is another file then, which nobody holds; the inode of the folder may well be the old one again."""
    with Dying(repo, "working") as run:
        lock = Path(scene.book.path(run.run_id, "lock"))
        lock.unlink()
        lock.write_bytes(b"")
        assert not scene.book.is_held(run.run_id)
        assert reaper.sweep(scene) == Swept(left=(run.run_id,))
        assert is_alive(run.job)
        assert run.tree.is_dir()
    assert reaper.sweep(scene) == reapable(run.run_id)


@pytest.mark.leaves_trees("its tree is in use")
@pytest.mark.leaves_entries("the same")
def test_a_tree_that_somebody_holds_is_told_and_left(scene: Workspace, repo: Repo) -> None:
    import fcntl

    run = dead(repo, "working")
    fd = os.open(run.tree.parents[1], os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    [refused] = reaper.sweep(scene).refused
    assert refused.reason == f"its tree is in use: {run.tree.parents[1]}"
    assert run.tree.is_dir()
    assert record_of(scene, run.run_id)["status"] == "orphaned"
    os.close(fd)
    assert reaper.sweep(scene) == reapable(run.run_id)


def test_a_tree_without_our_mark_is_told_and_left(scene: Workspace, repo: Repo) -> None:
    run = dead(repo, "working")
    folder = run.tree.parents[1]
    (folder / ".marker").unlink()
    [refused] = reaper.sweep(scene).refused
    assert refused.reason == f"its tree bears no mark of ours: {folder}"
    assert run.tree.is_dir()
    shutil.rmtree(folder)  # as the person is told
    assert reaper.sweep(scene) == reapable(run.run_id)


# -- whom it kills


@contextmanager
def processes(*environments: dict[str, str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A process for each environment; all of them are ended in the end."""
    common = {"PATH": os.environ["PATH"], MARKER: os.environ[MARKER]}
    started = [subprocess.Popen(["sleep", "300"], env=common | env, start_new_session=True) for env in environments]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait(10)


@pytest.mark.usefixtures("bystander")
def test_only_what_carries_this_very_cookie_is_killed(scene: Workspace, repo: Repo) -> None:
    run = dead(repo, "working")
    genuine = cookie(scene, run.run_id)
    innocents = (
        {"ORCH_TASK": cookie(scene, registry.make_run_id())},  # another run's
        {"ORCH_TASK": f"{run.run_id}.{'0' * 32}"},  # forged
        {"ORCH_TASK": genuine + "0"},
        {"OTHER": f"x ORCH_TASK={genuine}"},
        {"MY_ORCH_TASK": genuine},
    )
    with processes(*innocents) as started:
        assert reaper.sweep(scene) == reapable(run.run_id)
        assert not is_alive(run.job)
        assert [process.poll() for process in started] == [None] * len(started)


def test_a_job_in_the_folder_without_the_cookie_is_not_killed(scene: Workspace, repo: Repo) -> None:
    """It may be a person looking around."""
    run = dead(repo, "working")
    process = subprocess.Popen(["sleep", "300"], cwd=run.tree)
    reaper.sweep(scene)
    assert process.poll() is None
    process.kill()
    process.wait(10)


@pytest.mark.parametrize("field", ["boot_id", "pid_ns"])
def test_after_a_reboot_or_from_another_namespace_nobody_is_hunted(scene: Workspace, repo: Repo, field: str) -> None:
    run = dead(repo, "working", **{field: "another"})
    assert reaper.sweep(scene) == reapable(run.run_id)
    assert is_alive(run.job)
    assert record_of(scene, run.run_id)["status"] == "orphaned"
    assert not run.tree.exists()
    os.kill(run.job, 9)


@pytest.mark.leaves_entries("of another machine: told, never acted upon")
@pytest.mark.leaves_trees("the same")
def test_another_machines_run_is_told_and_left(scene: Workspace, repo: Repo) -> None:
    run = dead(repo, "working", machine_id="another")
    assert reaper.sweep(scene).refused == (Refused(run_id=run.run_id, reason="of another machine"),)
    assert is_alive(run.job)
    assert run.tree.is_dir()
    os.kill(run.job, 9)


@pytest.mark.leaves_entries("its processes cannot be killed")
@pytest.mark.leaves_trees("the same")
def test_processes_that_cannot_be_killed_are_told(
    scene: Workspace, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = dead(repo, "published")
    monkeypatch.setattr(strays, "clear", lambda *_, **__: (41, 42))
    [refused] = reaper.sweep(scene).refused
    assert refused.reason == "processes of it cannot be killed: 41, 42"
    assert runs.final_record(scene.layout.run_dir(run.run_id)) is None


@pytest.mark.leaves_trees("the disk is full")
def test_a_full_disk_holds_up_one_run_and_only_for_now(
    scene: Workspace, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, ended = dead(repo, "working"), dead(repo, "recorded")
    room = Path(scene.layout.run_dir(run.run_id), runs.ROOM)
    room.write_bytes(b"0" * 4096)

    def full(run_dir: str, name: str, _: object) -> None:
        assert not room.exists()
        raise OSError(28, "No space left on device", os.path.join(run_dir, name))

    with monkeypatch.context() as patch:
        patch.setattr(runs, "write", full)
        swept = reaper.sweep(scene)
    assert swept.reaped == (ended.run_id,)
    findings = os.path.join(scene.layout.run_dir(run.run_id), "findings.json")
    assert swept.refused == (
        Refused(run_id=run.run_id, reason=f"cannot be reaped now: No space left on device: {findings}"),
    )
    assert not is_alive(run.job)
    assert run.tree.is_dir()
    assert reaper.sweep(scene) == reapable(run.run_id)
    assert record_of(scene, run.run_id)["status"] == "orphaned"


# -- what it is given to read


@pytest.mark.leaves_entries("hostile, and left as they are")
def test_hostile_entries_are_told_and_nothing_of_them_is_touched(
    scene: Workspace, repo: Repo, bystander: int, tmp_path: Path
) -> None:
    """Case 17: someone's pid and a home directory, in every disguise."""
    home = tmp_path / "precious"
    home.mkdir()
    (home / "thesis.txt").write_text("three years")
    genuine = intent_of(scene.layout, scene.book, **trees(repo))
    body = {
        **genuine.to_json(),
        "supervisor_pid": bystander,
        "temp_root": str(home),
        "jobs": [{"child_pid": bystander}],
    }
    forged = jsontext.dumps(body) + "\nmac " + "0" * 32 + "\n"
    pending = Path(scene.book.pending)
    ids = [registry.make_run_id() for _ in range(6)]
    (pending / f"{ids[0]}.json").write_text(forged)
    (home / "x.json").write_text(forged)
    (pending / f"{ids[1]}.json").symlink_to(home / "x.json")
    os.mkfifo(pending / f"{ids[2]}.json")
    os.link(home / "x.json", pending / f"{ids[3]}.json")
    (pending / f"{ids[4]}.json").write_text(forged + " " * 70_000)
    (pending / f"{ids[5]}.json").write_text(forged[:100])
    for run_id in ids:
        (pending / f"{run_id}.lock").write_text("")
    (pending / "x.json").write_text(forged)
    os.mkdir(pending / "..x.json")
    before = entries(scene)
    swept = reaper.sweep(scene)
    assert {refused.run_id for refused in swept.refused} == {*ids, "x.json", "..x.json"}
    assert swept.replace(refused=()) == Swept()
    assert entries(scene) == before
    assert (home / "thesis.txt").read_text() == "three years"
    assert sorted(os.listdir(home)) == ["thesis.txt", "x.json"]


def test_a_result_is_not_read_through_a_link(scene: Workspace, repo: Repo, tmp_path: Path) -> None:
    """A job may have put a link where its request was."""
    run = dead(repo, "working")
    request = run.tree.with_name("request")
    shutil.rmtree(request)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "result").write_text("secret")
    request.symlink_to(tmp_path / "elsewhere")
    assert reaper.sweep(scene) == reapable(run.run_id)
    assert not Path(scene.layout.run_dir(run.run_id), "claude").exists()
    assert (tmp_path / "elsewhere" / "result").read_text() == "secret"


@pytest.mark.leaves_entries("a copy's are told and left")
@pytest.mark.leaves_trees("the original lives while its copy is swept")
def test_a_sweep_in_a_copied_clone_touches_nothing_of_the_original(
    scene: Workspace, repo: Repo, tmp_path: Path
) -> None:
    """Case 61: `cp -a` of a clone with a live run, and with a dead one."""
    gone = dead(repo, "working")
    with Dying(repo, "working") as live:
        subprocess.run(["cp", "-a", repo.path, tmp_path / "copy"], check=True)
        copy = workspace.open_at(str(tmp_path / "copy"), dict(os.environ))
        before = entries(copy)
        swept = reaper.sweep(copy)
        assert swept.reaped == swept.left == swept.trees == ()
        assert [refused.run_id for refused in swept.refused] == [gone.run_id, live.run_id]
        assert {refused.reason for refused in swept.refused} == {"copied from another clone, or not made by git-orch"}
        assert entries(copy) == before
        for run in (gone, live):
            assert is_alive(run.job)
            assert run.tree.is_dir()
            assert reaper.force(copy, run.run_id) == swept.refused[run is live]
        assert is_alive(live.pid)
    assert reaper.sweep(scene) == reapable(gone.run_id, live.run_id)


@pytest.mark.usefixtures("scene")
def test_a_repository_that_was_moved_is_swept_where_it_is_now(repo: Repo, tmp_path: Path) -> None:
    run = dead(repo, "working")
    repo.path.rename(tmp_path / "moved")
    moved = workspace.open_at(str(tmp_path / "moved"), dict(os.environ))
    assert reaper.sweep(moved) == reapable(run.run_id)
    assert not repo.path.exists()
    record = record_of(moved, run.run_id)
    assert record["run_dir"] == moved.layout.run_dir(run.run_id)
    assert not is_alive(run.job)


# -- the budget


def test_what_the_budget_does_not_reach_is_told_and_left_for_later(scene: Workspace, repo: Repo) -> None:
    ids = [dead_run(scene.layout, scene.book, **trees(repo)).run_id for _ in range(3)]
    swept = reaper.sweep(scene, budget_s=-1.0)
    assert swept == Swept(unfinished=True)
    assert entries(scene) == sorted(f"{run_id}.{kind}" for run_id in ids for kind in ("json", "lock", "state"))
    assert reaper.sweep(scene) == reapable(*ids)


def test_a_hunt_that_does_not_fit_into_the_budget_is_taken_up_again(
    scene: Workspace, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = dead(repo, "working")
    budgets: list[float] = []

    def slow(_: bytes, *, budget_s: float) -> tuple[int, ...]:
        budgets.append(budget_s)
        later = time.monotonic() + 1.0
        monkeypatch.setattr(time, "monotonic", lambda: later)
        return (run.job,)

    with monkeypatch.context() as patch:
        patch.setattr(strays, "clear", slow)
        assert reaper.sweep(scene, budget_s=0.2) == Swept(unfinished=True)
    monkeypatch.undo()
    assert 0.0 < budgets[0] <= 0.2
    assert runs.final_record(scene.layout.run_dir(run.run_id)) is None
    assert reaper.sweep(scene, budget_s=30.0) == reapable(run.run_id)


def test_an_ended_run_costs_no_sync_no_process_and_no_parse(
    scene: Workspace, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = []
    for _ in range(3):
        intent = dead_run(scene.layout, scene.book, **trees(repo))
        end_run(intent)
        ids.append(intent.run_id)

    def dear(*_: object, **__: object) -> None:
        raise AssertionError("that costs")

    for owner, name in ((os, "fsync"), (proc, "run"), (jsontext, "loads"), (disposal, "dispose"), (strays, "clear")):
        monkeypatch.setattr(owner, name, dear)
    assert reaper.sweep(scene) == reapable(*ids)
    assert entries(scene) == []


# -- by force


@pytest.mark.usefixtures("bystander")
def test_force_kills_whom_the_kernel_names_and_nobody_else(scene: Workspace, repo: Repo) -> None:
    with Dying(repo, "working") as run:
        assert scene.book.supervisor_pid(run.run_id) == run.pid
        assert reaper.force(scene, run.run_id) == Reaped()
        assert not is_alive(run.job)
        assert not is_alive(run.pid)
        assert not run.tree.exists()
    assert record_of(scene, run.run_id)["status"] == "orphaned"
    assert entries(scene) == []


def test_force_does_nothing_where_the_kernel_names_nobody(
    scene: Workspace, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that is held without a record lock: whoever it is, it is nobody whom we know."""
    monkeypatch.setattr(reaper, "FORCE_S", 0.3)
    with Dying(repo, "published") as run:
        assert reaper.force(scene, run.run_id) == Held()
        assert is_alive(run.pid)
    assert reaper.sweep(scene) == reapable(run.run_id)


def test_force_of_a_dead_run_is_a_sweep_of_it(scene: Workspace, repo: Repo) -> None:
    run, other = dead(repo, "working"), dead(repo, "disposed")
    assert reaper.force(scene, run.run_id) == Reaped()
    assert scene.book.run_ids() == [other.run_id]
    assert reaper.force(scene, run.run_id) == Refused(
        run_id=run.run_id, reason="cannot be read: No such file or directory"
    )
    reaper.sweep(scene)


def test_a_pid_that_changed_hands_between_two_looks_is_not_killed(bystander: int) -> None:
    named = iter([bystander, 0])
    reaper._kill_holder(lambda _: next(named), "run")


def test_a_file_systems_word_about_another_machines_process_is_not_believed(
    scene: Workspace, repo: Repo, bystander: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Dying(repo, "working") as run:
        monkeypatch.setattr(locks, "holder", lambda *_: bystander)
        assert scene.book.supervisor_pid(run.run_id) == 0
        monkeypatch.undo()
        assert scene.book.supervisor_pid(run.run_id) == run.pid
    reaper.sweep(scene)


# -- what nobody speaks of


@pytest.mark.usefixtures("repo")
def test_litter_and_trees_of_repositories_that_are_gone_go_too(
    scene: Workspace, make_repo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = make_repo("lost")
    open_scene(lost)
    run = dead(lost, "working")
    os.kill(run.job, 9)
    shutil.rmtree(lost.path)
    litter = Path(scene.book.pending, f"{registry.make_run_id()}.lock")
    litter.write_text("")
    assert reaper.sweep(scene) == Swept()
    assert not litter.exists()
    assert run.tree.is_dir()  # its own repository's reaper has a day to harvest it
    monkeypatch.setattr(reaper, "ABANDONED_S", -1.0)
    assert reaper.sweep(scene) == Swept(trees=(run.run_id,))
    assert not run.tree.exists()


@pytest.mark.leaves_trees("it lives")
def test_a_tree_of_another_repository_that_lives_is_never_abandoned(
    scene: Workspace, make_repo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repo("other")
    theirs = open_scene(other)
    monkeypatch.setattr(reaper, "ABANDONED_S", -1.0)
    with Dying(other, "working") as run:
        assert reaper.sweep(scene) == Swept()
        assert run.tree.is_dir()
    assert reaper.sweep(theirs) == reapable(run.run_id)


def test_the_events_tell_the_end(scene: Workspace, repo: Repo) -> None:
    run = dead(repo, "working")
    reaper.sweep(scene)
    lines = Path(scene.layout.run_dir(run.run_id), "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["run.ended"]


def test_a_detached_sweep_comes_to_the_same_end(scene: Workspace, repo: Repo) -> None:
    """What `session-start` leaves to the background is the same sweep in another process."""
    run = dead(repo, "working")
    code = """import os, sys
sys.path.insert(0, sys.argv[1])
from git_orch import reaper, workspace
reaper.sweep(workspace.open_at(sys.argv[2], dict(os.environ)))"""
    subprocess.run([sys.executable, "-I", "-S", "-c", code, PROJECT, repo.path], check=True, timeout=60)
    wait_until(lambda: not is_alive(run.job), 5)
    assert entries(scene) == []


def test_the_store_outlives_what_the_user_prunes(scene: Workspace, repo: Repo) -> None:
    """Case 67: objects that only the user's repository held are gone, and the store's own gc goes on working."""
    run = dead(repo, "working")
    assert reaper.sweep(scene) == reapable(run.run_id)
    repo.git("reset", "--quiet", "--hard", "HEAD~")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "--quiet", "--prune=now")
    assert scene.store.gc("now") == ""
    evidence = scene.store.evidence(run.run_id)
    assert evidence is not None
    assert scene.store.git().run("show", f"{evidence.tree}:a.py") == b"reviewed\n"
    gone = retention.retire(
        scene.layout.durable, scene.store, entries=(), keep_runs=0, keep_days=30, keep_bytes=1 << 30
    )
    assert gone == (run.run_id,)
    assert store_refs(scene) == []
    assert scene.store.gc("now") == ""
