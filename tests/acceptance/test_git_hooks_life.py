"""A repository with git's own hooks installed, as its user lives with it: commits are reviewed, pushes wait."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import Orch
from tests.project import Project
from tests.repo import Repo, init_repo
from tests.waiting import wait_until

BLOCKING = '[{"path": "a.py", "start_line": 2}]'


@pytest.fixture
def hooked(project: Project, orch: Orch, tmp_path: Path) -> Project:
    """The project with both hooks, its first commit in a remote, and one more reviewer beside `static`."""
    remote = init_repo(tmp_path / "remote.git", bare=True)
    git = project.repo.git
    git("checkout", "--quiet", "a.py")
    git("remote", "add", "origin", remote.path)
    git("push", "--quiet", "--set-upstream", "origin", "main")
    project.only("static", "fake")
    project.reviewer("fake", "--pass")
    project.set("orch.settle", "1ms")
    assert orch("install", "git", "--gate", "--yes").returncode == 0
    return project


def commit(project: Project, text: str, *words: str, env: Mapping[str, str] | None = None) -> float:
    """A file of the project holds the text, committed; gives the seconds that the commit took."""
    project.edit(text)
    start = time.monotonic()
    subprocess.run(
        ["git", "commit", "--quiet", "--all", "--message", "change", *words],
        cwd=project.path,
        env={**os.environ, **(env or {})},
        check=True,
        capture_output=True,
        timeout=30,
    )
    return time.monotonic() - start


def push(project: Project, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "push", *(words or ("origin", "HEAD"))],
        cwd=project.path,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_push_right_after_a_commit_waits_and_passes(hooked: Project, tmp_path: Path) -> None:
    started, go = tmp_path / "started", tmp_path / "go"
    hooked.reviewer("fake", "--touch", started, "--wait-for", go, "--pass")
    commit(hooked, "one = 1\ntwo = 2\n")  # is back while its reviewer still waits
    waiting = subprocess.Popen(
        ["git", "push", "origin", "main"], cwd=hooked.path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        wait_until(started.exists, 20)
        assert waiting.poll() is None
        go.touch()
        _, said = waiting.communicate(timeout=30)
    finally:
        waiting.kill()
    assert (waiting.returncode, "its review is running" in said) == (0, True), said
    assert hooked.record(hooked.last)["client"] == "git"


def test_five_commits_and_a_push_are_one_judgement(hooked: Project) -> None:
    for number in range(5):
        commit(hooked, f"one = 1\ntwo = {number}\n")
    done = push(hooked)
    assert done.returncode == 0, done.stderr
    hooked.settle()
    tip = hooked.repo.git("rev-parse", "HEAD^{tree}")
    assert [hooked.record(run)["tree_id"] for run in hooked.runs].count(tip) == 1


def test_a_finding_stops_the_push_and_says_each_way_out(hooked: Project) -> None:
    hooked.reviewer("fake", "--findings", BLOCKING)
    commit(hooked, "one = 1\ntwo = 2\n")
    done = push(hooked)
    assert done.returncode != 0
    for part in ("push stopped: main ", "1 blocking finding", "git orch dismiss ", "ORCH=0 git push", "a.py:2"):
        assert part in done.stderr
    assert push(hooked, env={"ORCH": "0"}).returncode == 0


def test_a_fix_is_reviewed_from_the_commit_that_was(hooked: Project) -> None:
    commit(hooked, "one = 1\ntwo = 2\n")
    first = hooked.ended()
    commit(hooked, "one = 1\ntwo = 3\n")
    second = hooked.ended()
    assert second["base_tree_id"] == first["tree_id"]
    assert push(hooked).returncode == 0


def test_what_no_commit_of_ours_fired_is_not_pushed(hooked: Project) -> None:
    commit(hooked, "one = 1\ntwo = 2\n", env={"ORCH": "0"})
    assert hooked.runs == []
    done = push(hooked)
    assert (done.returncode != 0, "review it:  git orch review " in done.stderr) == (True, True)
    assert hooked.live == []


def test_deletions_and_what_the_remote_has_go_out(hooked: Project) -> None:
    git = hooked.repo.git
    git("branch", "old")
    assert push(hooked, "origin", "old").returncode == 0  # nothing in it is new to the remote
    assert push(hooked, "origin", "--delete", "old").returncode == 0
    git("tag", "v1")
    assert push(hooked, "origin", "v1").returncode == 0


def test_a_new_fork_gets_what_another_remote_has_and_only_reviewed_commits_beside(
    hooked: Project, tmp_path: Path
) -> None:
    fork = init_repo(tmp_path / "fork.git", bare=True)
    hooked.repo.git("remote", "add", "fork", fork.path)
    assert push(hooked, "fork", "main").returncode == 0
    empty = init_repo(tmp_path / "empty.git", bare=True)
    hooked.repo.git("remote", "add", "empty", empty.path)
    commit(hooked, "one = 1\ntwo = 2\n", env={"ORCH": "0"})
    done = push(hooked, "empty", "main")
    assert (done.returncode != 0, "a.py" in done.stderr, "docs" in done.stderr) == (True, True, False)


def test_every_ref_of_a_push_is_judged(hooked: Project) -> None:
    hooked.repo.git("switch", "--quiet", "--create", "good")
    commit(hooked, "one = 1\ntwo = 2\n")
    hooked.settle()
    hooked.repo.git("switch", "--quiet", "--create", "bad", "main")
    commit(hooked, "one = 2\n", env={"ORCH": "0"})
    done = push(hooked, "origin", "good", "bad")
    assert done.returncode != 0
    assert ("bad" in done.stderr, "push stopped: good" in done.stderr) == (True, False)
    assert push(hooked, "origin", "good").returncode == 0


def test_amended_and_rebased_commits_pass_by_their_content(hooked: Project) -> None:
    git = hooked.repo.git
    git("switch", "--quiet", "--create", "topic")
    commit(hooked, "one = 1\ntwo = 2\n")
    hooked.settle()
    commit(hooked, "one = 1\ntwo = 2\n", "--amend")
    hooked.settle()
    runs = len(hooked.runs)
    git("switch", "--quiet", "main")
    hooked.edit("more\n", "docs/c.txt")
    git("add", "docs/c.txt")
    commit(hooked, "one = 1\n")
    assert push(hooked).returncode == 0
    hooked.settle()
    git("switch", "--quiet", "topic")
    git("rebase", "--quiet", "main")
    hooked.settle()
    assert len(hooked.runs) == runs + 1  # main's alone: a rebase fires none
    assert push(hooked, "origin", "topic").returncode == 0


def test_the_index_of_the_commit_is_left_alone_and_the_worktrees_tree_is_reviewed(
    hooked: Project, tmp_path: Path
) -> None:
    """Case 4: a real post-commit in a linked worktree, with GIT_DIR and GIT_INDEX_FILE exported."""
    hooked.repo.git("worktree", "add", "--quiet", tmp_path / "linked", "-b", "side")
    linked = Repo(tmp_path / "linked")
    linked.write("a.py", "one = 1\nlinked = 2\n")
    linked.git("commit", "--quiet", "--all", "--message", "c")
    index = tmp_path / "repo/.git/worktrees/linked/index"
    before = index.read_bytes()
    record = hooked.ended()
    assert record["tree_id"] == linked.git("rev-parse", "HEAD^{tree}")
    assert record["worktree_path"] == str(linked.path)
    assert index.read_bytes() == before
    assert record["verdict"] == "pass"


def test_no_variable_of_gits_reaches_the_reviewer(hooked: Project, tmp_path: Path) -> None:
    dumped = tmp_path / "environment"
    hooked.reviewer("fake", "--dump-environment", dumped, "--pass")
    commit(hooked, "one = 1\ntwo = 2\n", env={"GIT_AUTHOR_NAME": "somebody"})
    assert hooked.ended()["verdict"] == "pass"
    names = [line.split('"')[1] for line in dumped.read_text().splitlines() if '"GIT_' in line]
    assert names == ["GIT_CEILING_DIRECTORIES"]


def test_a_commit_costs_little(hooked: Project) -> None:
    hooked.reviewer("fake", "--spin", "2", "--pass")
    assert commit(hooked, "one = 1\ntwo = 2\n") < 2
    hooked.settle()


def test_after_uninstall_nothing_fires(hooked: Project, orch: Orch) -> None:
    assert orch("uninstall", "git").returncode == 0
    commit(hooked, "one = 1\ntwo = 2\n")
    assert push(hooked).returncode == 0
    assert hooked.runs == []


def test_what_install_git_says(project: Project, orch: Orch) -> None:
    assert orch("install", "git").returncode == 2  # nobody to ask
    assert "nothing was written" in orch("install", "git", "--gate", "--dry-run").stdout
    assert not (project.path / ".git/hooks/post-commit").exists()
    assert orch("install", "git", "--print", "pre-push").stdout.startswith("sh -c ")
    assert orch("install", "--gate").returncode == 2
    assert "runs " in orch("install", "git", "--yes").stdout
    assert "nothing of git-orch" not in orch("uninstall", "git").stdout
    assert "nothing of git-orch" in orch("uninstall", "git").stdout
