"""Every worktree of a repository computes the same places, whatever kind of repository it is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from git_orch import layout
from git_orch.errors import EnvironmentProblem
from git_orch.layout import Layout
from tests.conftest import MakeRepo
from tests.ordinary_user import NOBODY
from tests.repo import Repo


def committed(repo: Repo) -> Repo:
    repo.write("a/b/c.txt", "one\n")
    repo.commit()
    return repo


def at(path: Path | str, **env: str) -> Layout:
    return layout.locate(str(path), {**os.environ, **env})


def places(path: Path | str) -> tuple[str, str, str]:
    """What all worktrees must agree on."""
    here = at(path)
    return here.common_dir, here.live, here.durable


def linked(repo: Repo, path: Path) -> Path:
    repo.git("worktree", "add", "--quiet", "--detach", str(path))
    return path


def test_a_plain_repository(repo: Repo) -> None:
    committed(repo)
    here = at(repo.path)
    git_dir = str(repo.path / ".git")
    assert here == Layout(
        worktree=str(repo.path),
        common_dir=git_dir,
        git_dir=git_dir,
        index=f"{git_dir}/index",
        objects=f"{git_dir}/objects",
        object_format="sha1",
        live=str(repo.path / ".orch"),
        durable=f"{git_dir}/orch",
    )
    assert (here.pending, here.store, here.runs) == (
        str(repo.path / ".orch/pending"),
        f"{git_dir}/orch/store.git",
        f"{git_dir}/orch/runs",
    )
    assert here.run_dir("x") == f"{git_dir}/orch/runs/x"


def test_from_a_subfolder_and_from_a_linked_worktree(repo: Repo, tmp_path: Path) -> None:
    committed(repo)
    other = linked(repo, tmp_path / "linked")
    inside = linked(repo, repo.path / "inside")
    expected = (str(repo.path / ".git"), str(repo.path / ".orch"), str(repo.path / ".git/orch"))
    for path in (repo.path, repo.path / "a/b", other, other / "a", inside, inside / "a"):
        assert places(path) == expected
    there = at(other / "a/b")
    assert (there.worktree, there.git_dir) == (str(other), str(repo.path / ".git/worktrees/linked"))
    assert there.index == str(repo.path / ".git/worktrees/linked/index")
    assert there.objects == str(repo.path / ".git/objects")


def test_a_bare_repository(make_repo: MakeRepo, tmp_path: Path) -> None:
    committed(make_repo("origin")).git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    bare = Repo(tmp_path / "bare.git")
    other = linked(bare, tmp_path / "tree")
    expected = (str(bare.path), str(bare.path / "orch/live"), str(bare.path / "orch"))
    assert [places(path) for path in (bare.path, bare.path / "refs", other, other / "a")] == [expected] * 4
    assert (at(bare.path).worktree, at(other).worktree) == ("", str(other))
    assert at(bare.path).git(os.environ).line("rev-parse", "--is-bare-repository") == "true"


def test_a_separate_git_dir(make_repo: MakeRepo, tmp_path: Path) -> None:
    git_dir = tmp_path / "elsewhere"
    committed(make_repo("origin")).git("clone", "--quiet", f"--separate-git-dir={git_dir}", ".", str(tmp_path / "tree"))
    other = linked(Repo(tmp_path / "tree"), tmp_path / "linked")
    expected = (str(git_dir), str(git_dir / "orch/live"), str(git_dir / "orch"))
    assert [places(path) for path in (tmp_path / "tree", tmp_path / "tree/a", other)] == [expected] * 3


def test_a_submodule(make_repo: MakeRepo, tmp_path: Path) -> None:
    inner, outer = committed(make_repo("inner")), committed(make_repo("outer"))
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "sub")
    other = linked(Repo(outer.path / "sub"), tmp_path / "linked")
    git_dir = outer.path / ".git/modules/sub"
    expected = (str(git_dir), str(git_dir / "orch/live"), str(git_dir / "orch"))
    assert [places(path) for path in (outer.path / "sub", outer.path / "sub/a", other)] == [expected] * 3
    assert at(outer.path / "sub").worktree == str(outer.path / "sub")
    # `git worktree list` takes the git directory for the main worktree there.
    first = Repo(other).git("worktree", "list", "--porcelain").splitlines()[0]
    assert first == f"worktree {git_dir}"


def test_a_submodule_of_old_with_its_git_directory_inside(make_repo: MakeRepo) -> None:
    outer = committed(make_repo("outer"))
    inner = committed(make_repo("outer/sub"))
    assert places(inner.path) == (
        str(outer.path / "sub/.git"),
        str(outer.path / "sub/.orch"),
        str(outer.path / "sub/.git/orch"),
    )


def test_a_link_to_the_repository_is_the_repository(repo: Repo, tmp_path: Path) -> None:
    committed(repo)
    (tmp_path / "link").symlink_to(repo.path)
    assert at(tmp_path / "link/a") == at(repo.path)


def test_sha256(make_repo: MakeRepo) -> None:
    assert at(make_repo("repo", object_format="sha256").path).object_format == "sha256"


def test_another_name_for_the_folder(repo: Repo, make_repo: MakeRepo) -> None:
    assert layout.locate(str(repo.path), os.environ, orch_dir=".git-orch").live == str(repo.path / ".git-orch")
    bare = make_repo("bare", bare=True)
    assert layout.locate(str(bare.path), os.environ, orch_dir=".git-orch").live == str(bare.path / "orch/live")


@pytest.mark.parametrize("name", ["with:colon", "with space", "ü", "\udcff", "-dash", "a'\"$(x)", "x.git", "tab\there"])
def test_odd_paths(make_repo: MakeRepo, name: str) -> None:
    repo = committed(make_repo(name))
    here = at(repo.path / "a")
    assert here.worktree == str(repo.path)
    assert here.git(os.environ).line("rev-parse", "--show-prefix") == ""


# -- what the environment says


def test_git_dir_of_a_hook_does_not_make_any_folder_the_top(repo: Repo, tmp_path: Path) -> None:
    committed(repo)
    other = linked(repo, tmp_path / "linked")
    git_dir = str(repo.path / ".git/worktrees/linked")
    assert at(other / "a", GIT_DIR=git_dir) == at(other)
    # The plain way: git takes the folder that it is in for the top of the work tree.
    env = {**os.environ, "GIT_DIR": git_dir}
    done = subprocess.run(
        ["git", "rev-parse", "--show-toplevel"], cwd=other / "a", env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{other / 'a'}\n"


def test_a_relative_git_dir_is_relative_to_where_we_were_started(repo: Repo, tmp_path: Path) -> None:
    committed(repo)
    os.chdir(repo.path)
    assert at(repo.path, GIT_DIR=".git") == at(repo.path)
    assert at(tmp_path, GIT_DIR=".git", GIT_WORK_TREE=".") == at(repo.path)


def test_git_dir_that_names_another_repository_is_obeyed_as_git_does(repo: Repo, make_repo: MakeRepo) -> None:
    committed(repo)
    elsewhere = committed(make_repo("elsewhere"))
    here = at(elsewhere.path, GIT_DIR=str(repo.path / ".git"))
    assert (here.common_dir, here.worktree) == (str(repo.path / ".git"), str(elsewhere.path))
    here = at(elsewhere.path, GIT_DIR=str(repo.path / ".git"), GIT_WORK_TREE=str(repo.path / "a"))
    assert (here.common_dir, here.worktree) == (str(repo.path / ".git"), str(repo.path / "a"))


def test_git_dir_where_there_is_no_repository(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "bare-home").mkdir()
    here = at(tmp_path / "bare-home", GIT_DIR=str(repo.path / ".git"), GIT_WORK_TREE=str(tmp_path / "bare-home"))
    assert here.worktree == str(tmp_path / "bare-home")


def test_an_index_of_a_commit_under_way_is_the_index(repo: Repo) -> None:
    committed(repo)
    lock = repo.write(".git/index.lock", "")
    assert at(repo.path, GIT_INDEX_FILE=str(lock)).index == str(lock)
    os.chdir(repo.path)
    assert at(repo.path, GIT_INDEX_FILE=".git/index.lock").index == str(lock)
    lock.unlink()
    assert at(repo.path, GIT_INDEX_FILE=str(lock)).index == str(repo.path / ".git/index")


def test_a_ceiling_is_heeded(repo: Repo) -> None:
    committed(repo)
    with pytest.raises(EnvironmentProblem):
        at(repo.path / "a/b", GIT_CEILING_DIRECTORIES=str(repo.path / "a"))


# -- what is refused


def not_a_repository(path: Path) -> str:
    (path / "plain").mkdir()
    return str(path / "plain")


def not_there(path: Path) -> str:
    return str(path / "gone")


def broken(path: Path) -> str:
    (path / "broken").mkdir()
    (path / "broken/.git").write_text("gitdir: /nowhere\n")
    return str(path / "broken")


def newline(path: Path) -> str:
    (path / "new\nline").mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=path / "new\nline", check=True)
    return str(path / "new\nline")


def newline_bare(path: Path) -> str:
    (path / "new\nline").mkdir()
    subprocess.run(["git", "init", "--quiet", "--bare"], cwd=path / "new\nline", check=True)
    return str(path / "new\nline")


@pytest.mark.parametrize(
    ("make", "says", "hint"),
    [
        (not_a_repository, "not in a git repository", "go to one, or `git init` first"),
        (not_there, "git cannot read this repository: fatal: cannot change to", ""),
        (broken, "not in a git repository", "go to one, or `git init` first"),
        (newline, "the repository's path holds a newline", "move it to a path without one"),
        (newline_bare, "the repository's path holds a newline", "move it to a path without one"),
    ],
)
def test_refused(make: Callable[[Path], str], says: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem) as refused:
        at(make(tmp_path))
    assert refused.value.message.startswith(says)
    assert refused.value.hint == hint
    assert refused.value.exit_code == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_another_user(repo: Repo) -> None:
    for path in (repo.path, repo.path / ".git"):
        os.chown(path, NOBODY, NOBODY)
    with pytest.raises(EnvironmentProblem) as refused:
        at(repo.path)
    assert "belongs to another user" in refused.value.message


def test_no_git(repo: Repo, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem) as refused:
        at(repo.path, PATH=str(tmp_path))
    assert refused.value.message == "git is not on PATH"
