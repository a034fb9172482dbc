"""A machine that does not cooperate: no room, no objects, a folder that cannot be used. Nothing is left half-done."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Orch
from tests.fakes import fake_reviewer
from tests.project import Project, appears

MIB = 1 << 20


def mount(folder: Path, size: str) -> None:
    """A file system of that size lies on the folder; skipped where that is not allowed."""
    folder.mkdir(mode=0o700, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root mounts a file system")
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr}")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A folder with 50 MB of room."""
    folder = tmp_path / "small"
    mount(folder, "50m")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("where", ["inside", "read-only", "relative"])
def test_a_folder_for_trees_that_cannot_be_one_is_refused(
    project: Project, orch: Orch, tmp_path: Path, where: str
) -> None:
    """Case 9: before anything starts."""
    tmp = project.path / "tmp" if where == "inside" else tmp_path / "closed"
    tmp.mkdir(mode=0o700 if where == "inside" else 0o500)
    if where == "read-only" and os.geteuid() == 0:
        tmp = Path("/proc")  # root may write to any folder but to such
    given = "tmp" if where == "relative" else str(tmp)
    done = orch("review", "--json", env={"TMPDIR": given})
    assert done.returncode == 4, done.stdout
    error = json.loads(done.stdout)["error"]
    assert error["hint"]
    assert project.fire(env={"TMPDIR": given}).stderr.startswith("git-orch: ")
    assert project.runs == []
    assert project.live == []


def test_a_folder_in_a_work_tree_that_only_a_variable_names_is_refused(
    project: Project, orch: Orch, tmp_path: Path
) -> None:
    worktree = tmp_path / "worktree"
    (worktree / "tmp").mkdir(parents=True)
    env = {"GIT_DIR": str(project.path / ".git"), "GIT_WORK_TREE": str(worktree), "TMPDIR": str(worktree / "tmp")}
    done = orch("review", "--json", env=env)
    assert done.returncode == 4, done.stdout
    assert "lies inside" in json.loads(done.stdout)["error"]["message"]
    assert project.runs == []


def test_no_room_for_a_tree_is_told_with_both_numbers(project: Project, small: Path) -> None:
    project.repo.write("large.bin", os.urandom(30 * MIB))
    project.repo.commit("large")
    project.edit("changed\n")
    project.reviewer("fake", "--pass")
    project.only("fake")
    project.fire(env={"TMPDIR": str(small)})
    record = project.ended()
    assert (record["status"], record["verdict"]) == ("failed", "unreviewed")
    assert record["terminal_reason"] == "environment"
    assert "needed" in record["reason"]
    assert "free" in record["reason"]
    assert list(small.glob("git-orch-*/2*")) == []


def test_a_write_that_fails_half_way_leaves_nothing(project: Project) -> None:
    """The same without a small disk: no file may grow beyond a limit, so that the archive of the tree cannot."""
    project.repo.write("large.bin", os.urandom(3 * MIB))
    project.repo.commit("large")
    project.edit("changed\n")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))

    command = ["git", "orch", "review", "--foreground", "--reviewer", "static", "--json"]
    done = subprocess.run(
        command, cwd=project.path, preexec_fn=limit, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 5, done.stderr
    record = project.record(project.last)
    assert (record["status"], record["verdict"]) == ("failed", "unreviewed")
    assert record["reason"]
    assert (project.live, project.trees()) == ([], [])


def test_a_full_disk_does_not_keep_a_run_from_being_recorded(tmp_path: Path, small: Path) -> None:
    project = Project(small / "repo")
    project.reviewer("fake", "--touch", tmp_path / "up", "--wait-for", tmp_path / "go", "--to-result", "--pass")
    project.only("fake")
    project.fire()
    appears(tmp_path / "up")
    fill(small / "ballast")
    (tmp_path / "go").touch()
    record = project.ended()
    assert (record["status"], record["verdict"]) == ("done", "pass")
    assert project.trees() == []


def fill(path: Path) -> None:
    """The disk has no room left."""
    with path.open("wb", buffering=0) as file:
        for size in (MIB, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def test_objects_that_are_missing_are_told(project: Project, orch: Orch) -> None:
    gone = project.repo.git("rev-parse", "HEAD:docs/b.txt")
    (project.path / ".git/objects" / gone[:2] / gone[2:]).unlink()
    project.reviewer("fake", "--pass")
    project.only("static", "fake")
    project.fire()
    record = project.ended()
    assert (record["status"], record["terminal_reason"]) == ("failed", "objects-missing")
    assert record["verdict"] == "unreviewed"
    assert "missing" in record["reason"]
    assert project.trees() == []
    assert orch("review", "--fresh").returncode == 5


def test_a_repository_that_is_the_home_directory(project: Project, tmp_path: Path) -> None:
    """Its tools can still write their caches (case 64: HOME itself a git repository)."""
    (project.path / ".cache").mkdir()
    command = f"touch $HOME/.cache/mine && ! touch $HOME/planted 2>/dev/null && exec {fake_reviewer('--pass')}"
    project.command("fake", command)
    project.only("fake")
    project.fire(env={"HOME": str(project.path)})
    record = project.ended()
    if record["jobs"][0]["containment"] != 1:
        pytest.skip("the checkout can be written here")
    assert record["verdict"] == "pass", record["reason"]
    assert (project.path / ".cache/mine").exists()
    assert tmp_path.exists()
