"""A snapshot is the work tree as it is, in every kind of repository, and nothing of the user's is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from git_orch import snapshot
from git_orch.snapshot import SnapshotFailed
from tests.conftest import MakeRepo
from tests.repo import Repo, init_repo
from tests.scratch import layout_of, store_of
from tests.snapshots import content, mode, names, plain, take
from tests.untouched import fingerprint

PROJECT = Path(__file__).parents[2]
TAKE = """\
import os
from git_orch import config, layout, snapshot, store
place = layout.locate(os.getcwd(), os.environ)
taken = snapshot.take(place, store.ensure(place, os.environ), config.Settings(), os.environ, snapshot.Limits())
with open(os.environ["REPORT"], "a") as file:
    file.write(place.worktree + " " + taken.tree_id + chr(10))
"""


def commit_some(repo: Repo) -> Repo:
    repo.write("a.txt", "one\n")
    repo.write("src/b.txt", "two\n")
    repo.commit()
    return repo


# -- the work tree as it is


def test_an_edit_after_the_snapshot_is_not_in_it(repo: Repo) -> None:
    commit_some(repo)
    repo.write("a.txt", "first edit\n")
    taken = take(repo)
    repo.write("a.txt", "second edit\n")
    assert content(repo, taken.tree_id, "a.txt") == b"first edit\n"
    assert content(repo, take(repo).tree_id, "a.txt") == b"second edit\n"


def test_edits_of_the_same_size_within_one_second_are_seen(repo: Repo) -> None:
    commit_some(repo)  # the index was written in this very second, and the file keeps its size
    for number in range(10):
        repo.write("a.txt", f"on{number}\n")
        repo.write("new.txt", f"tw{number}\n")
        taken = take(repo)
        assert content(repo, taken.tree_id, "a.txt") == f"on{number}\n".encode()
        assert content(repo, taken.tree_id, "new.txt") == f"tw{number}\n".encode()


def test_an_edit_in_the_second_in_which_the_index_was_written_is_seen(repo: Repo, tmp_path: Path) -> None:
    commit_some(repo)
    repo.git("config", "core.trustctime", "false")  # so that size and mtime are all that tells
    index = repo.path / ".git/index"
    repo.write("a.txt", "six\n")
    set_time(repo.path / "a.txt")
    repo.git("add", "a.txt")
    set_time(index)
    repo.write("a.txt", "ten\n")
    set_time(repo.path / "a.txt")
    # A copy of the index that is younger than the edit, and git believes what it says of the file.
    (tmp_path / "young").write_bytes(index.read_bytes())
    env = {**os.environ, "GIT_INDEX_FILE": str(tmp_path / "young")}
    assert subprocess.run(["git", "diff-files", "--quiet"], cwd=repo.path, env=env, check=False).returncode == 0
    assert content(repo, take(repo).tree_id, "a.txt") == b"ten\n"


def set_time(path: Path) -> None:
    """The file was last written at one second long ago."""
    os.utime(path, (1_700_000_000, 1_700_000_000))


def test_a_clean_work_tree_is_heads_tree(repo: Repo) -> None:
    commit_some(repo)
    taken = take(repo)
    assert (taken.tree_id, taken.skipped) == (repo.git("rev-parse", "HEAD^{tree}"), ())


def test_what_was_taken_before_is_taken_again_without_writing(repo: Repo) -> None:
    commit_some(repo)
    repo.write("new.txt", "new\n")
    first = take(repo)
    kept = next(Path(layout_of(repo).durable, "worktrees").iterdir())
    before = {path.name: path.stat().st_mtime_ns for path in kept.iterdir()}
    assert take(repo).tree_id == first.tree_id
    assert {path.name: path.stat().st_mtime_ns for path in kept.iterdir()} == before


def test_a_removed_file_that_comes_back_is_in_the_next_snapshot(repo: Repo) -> None:
    commit_some(repo)
    repo.write("also.txt", "untracked\n")
    (repo.path / "a.txt").unlink()
    assert names(repo, take(repo).tree_id) == ["also.txt", "src/b.txt"]
    repo.write("a.txt", "back\n")
    assert names(repo, take(repo).tree_id) == ["a.txt", "also.txt", "src/b.txt"]
    assert take(repo).tree_id == plain(repo).tree_id


def test_a_removed_file_that_is_ignored_comes_back_too(repo: Repo) -> None:
    repo.write(".gitignore", "*.log\n")
    repo.write("kept.log", "tracked all the same\n")
    repo.commit()
    (repo.path / "kept.log").unlink()
    assert names(repo, take(repo).tree_id) == [".gitignore"]
    repo.write("kept.log", "tracked all the same\n")
    assert take(repo).tree_id == repo.git("rev-parse", "HEAD^{tree}")


def test_an_untracked_file_that_becomes_ignored_leaves(repo: Repo) -> None:
    commit_some(repo)
    repo.write("made.log", "1\n")
    assert "made.log" in names(repo, take(repo).tree_id)
    repo.write(".gitignore", "*.log\n")
    assert names(repo, take(repo).tree_id) == [".gitignore", "a.txt", "src/b.txt"]


def test_attributes_that_change_hash_again_what_was_hashed_by_the_old_ones(repo: Repo) -> None:
    commit_some(repo)
    set_time(repo.write("a.txt", "one\r\ntwo\r\n"))  # older than the index, which is then believed
    assert content(repo, take(repo).tree_id, "a.txt") == b"one\r\ntwo\r\n"
    repo.write(".gitattributes", "*.txt text\n")
    assert content(repo, take(repo).tree_id, "a.txt") == b"one\ntwo\n"
    repo.write(".gitattributes", "*.txt -text\n")
    assert content(repo, take(repo).tree_id, "a.txt") == b"one\r\ntwo\r\n"
    (repo.path / ".git/info").mkdir(exist_ok=True)
    (repo.path / ".git/info/attributes").write_text("*.txt text\n")
    assert content(repo, take(repo).tree_id, "a.txt") == b"one\ntwo\n"


# -- tracked all the same: what an index made from nothing loses


def test_modes_stay_where_the_file_system_has_none(repo: Repo) -> None:
    repo.write("run.sh", "#!/bin/sh\n", mode=0o755)
    repo.commit()
    repo.git("config", "core.filemode", "false")
    repo.write("run.sh", "#!/bin/sh\nexit\n", mode=0o644)
    assert mode(repo, take(repo).tree_id, "run.sh") == "100755"
    assert "100644" in from_nothing(repo)


def test_a_tracked_file_that_is_ignored_stays(repo: Repo) -> None:
    repo.write("kept.log", "1\n")
    repo.commit()
    repo.write(".gitignore", "*.log\n")
    assert names(repo, take(repo).tree_id) == [".gitignore", "kept.log"]
    assert "kept.log" not in from_nothing(repo)


def from_nothing(repo: Repo) -> str:
    """What `git add -A` on an index that did not exist holds."""
    env = {**os.environ, "GIT_INDEX_FILE": str(repo.path / ".git" / "from-nothing")}
    subprocess.run(["git", "add", "-A"], cwd=repo.path, env=env, check=True)
    return subprocess.run(
        ["git", "ls-files", "-s"], cwd=repo.path, env=env, check=True, capture_output=True, text=True
    ).stdout


# -- from hooks of git's


@pytest.mark.parametrize("hook", ["pre-commit", "post-commit"])
def test_from_a_hook_in_a_linked_worktree(repo: Repo, tmp_path: Path, hook: str) -> None:
    commit_some(repo)
    repo.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked")
    install(repo, hook, TAKE)
    repo.write("only-in-main.txt", "not here\n")
    linked.write("a.txt", "edited\n")
    linked.write("new.txt", "new\n")
    commit_all(linked, tmp_path)
    worktree, tree_id = (tmp_path / "report").read_text().split()
    assert worktree == str(linked.path)
    assert names(linked, tree_id) == ["a.txt", "new.txt", "src/b.txt"]
    assert content(linked, tree_id, "a.txt") == b"edited\n"
    # The commit is what `commit -a` makes of it, and the index what it leaves: nothing of the snapshot is in either.
    assert linked.git("ls-tree", "-r", "--name-only", "HEAD").split() == ["a.txt", "src/b.txt"]
    index = Path(linked.git("rev-parse", "--path-format=absolute", "--git-path", "index"))
    left = index.read_bytes()
    (repo.path / ".git/hooks" / hook).unlink()
    linked.git("reset", "--quiet", "--soft", "HEAD^")
    linked.git("reset", "--quiet", "--mixed")
    linked.write("a.txt", "edited\n")
    commit_all(linked, tmp_path)
    assert entries(left, linked, tmp_path) == linked.git("ls-files", "-s")


@pytest.mark.parametrize("hook", ["pre-commit", "post-commit"])
def test_the_plain_way_in_a_hook_changes_the_users_index(repo: Repo, tmp_path: Path, hook: str) -> None:
    commit_some(repo)
    install(repo, hook, "import subprocess\nsubprocess.run(['git', 'add', '-A'])\n")
    repo.write("a.txt", "edited\n")
    repo.write("new.txt", "new\n")
    commit_all(repo, tmp_path)
    assert "new.txt" in repo.git("ls-files")


def test_the_index_is_byte_identical_after_a_snapshot_in_a_hook(repo: Repo, tmp_path: Path) -> None:
    commit_some(repo)
    index = repo.path / ".git/index"
    around = "import os\ndef index(): return open(os.environ['GIT_INDEX_FILE'], 'rb').read()\nbefore = index()\n"
    install(repo, "pre-commit", around + TAKE + "assert index() == before\n")
    repo.write("a.txt", "edited\n")
    repo.write("new.txt", "new\n")
    commit_all(repo, tmp_path)  # fails if the hook does
    before = index.read_bytes()
    env = {**os.environ, "GIT_INDEX_FILE": ".git/index", "GIT_DIR": ".git"}
    os.chdir(repo.path)
    assert names(repo, take(repo, env=env).tree_id) == ["a.txt", "new.txt", "src/b.txt"]
    assert index.read_bytes() == before


def install(repo: Repo, hook: str, code: str) -> None:
    """The hook runs the code with our package."""
    script = f"#!/bin/sh\nPYTHONPATH='{PROJECT}' exec '{sys.executable}' - <<'END'\n{code}END\n"
    repo.write(f".git/hooks/{hook}", script, mode=0o755)


def commit_all(repo: Repo, tmp_path: Path) -> None:
    subprocess.run(
        ["git", "commit", "--quiet", "-a", "-m", "x"],
        cwd=repo.path,
        env={**os.environ, "REPORT": str(tmp_path / "report")},
        check=True,
        timeout=60,
    )


def entries(index: bytes, repo: Repo, tmp_path: Path) -> str:
    """What an index file holds."""
    (tmp_path / "an-index").write_bytes(index)
    env = {**os.environ, "GIT_INDEX_FILE": str(tmp_path / "an-index")}
    done = subprocess.run(["git", "ls-files", "-s"], cwd=repo.path, env=env, check=True, capture_output=True, text=True)
    return done.stdout.removesuffix("\n")


# -- kinds of repositories


def bare_with_worktree(make_repo: MakeRepo, tmp_path: Path) -> Repo:
    origin = commit_some(make_repo("origin"))
    origin.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))
    Repo(tmp_path / "bare").git("worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "tree"))
    return Repo(tmp_path / "tree")


def submodule(make_repo: MakeRepo, tmp_path: Path) -> Repo:
    outer = with_submodule(make_repo)
    assert tmp_path in outer.path.parents
    return Repo(outer.path / "sub")


def separate_git_dir(make_repo: MakeRepo, tmp_path: Path) -> Repo:
    commit_some(make_repo("origin")).git(
        "clone", "--quiet", f"--separate-git-dir={tmp_path / 'elsewhere'}", ".", str(tmp_path / "tree")
    )
    return Repo(tmp_path / "tree")


def detached(make_repo: MakeRepo, _tmp_path: Path) -> Repo:
    repo = commit_some(make_repo("repo"))
    repo.git("checkout", "--quiet", "--detach")
    return repo


def sha256(make_repo: MakeRepo, _tmp_path: Path) -> Repo:
    return commit_some(make_repo("repo", object_format="sha256"))


def unborn(make_repo: MakeRepo, _tmp_path: Path) -> Repo:
    return make_repo("repo")


def unborn_with_index(make_repo: MakeRepo, _tmp_path: Path) -> Repo:
    repo = make_repo("repo")
    repo.write("staged.txt", "1\n")
    repo.git("add", "-A")
    return repo


def shallow(make_repo: MakeRepo, tmp_path: Path) -> Repo:
    origin = commit_some(make_repo("origin"))
    repo = commit_some(origin)
    repo.git("clone", "--quiet", "--depth=1", f"file://{repo.path}", str(tmp_path / "tree"))
    return Repo(tmp_path / "tree")


def colon_in_path(make_repo: MakeRepo, _tmp_path: Path) -> Repo:
    return commit_some(make_repo("with:colon and 'quotes\" ü"))


KINDS = [
    bare_with_worktree,
    submodule,
    separate_git_dir,
    detached,
    sha256,
    unborn,
    unborn_with_index,
    shallow,
    colon_in_path,
]


@pytest.mark.parametrize("kind", KINDS)
def test_in_every_kind_of_repository(
    kind: Callable[[MakeRepo, Path], Repo], make_repo: MakeRepo, tmp_path: Path
) -> None:
    repo = kind(make_repo, tmp_path)
    repo.write("src/b.txt", "edited\n")
    repo.write("live/new.txt", "new\n")  # `orch/live` is ours where `.git` is no folder; a folder `live` is not
    before = fingerprint(repo)
    taken = take(repo)
    assert fingerprint(repo) == before
    assert taken.skipped == ()
    assert (taken.tree_id, plain(repo).code) == (plain(repo).tree_id, 0)
    assert content(repo, taken.tree_id, "live/new.txt") == b"new\n"
    assert content(repo, taken.tree_id, "src/b.txt") == b"edited\n"


def test_from_a_subfolder_the_whole_work_tree_is_taken(repo: Repo) -> None:
    commit_some(repo)
    repo.write("top.txt", "new\n")
    inside = Repo(repo.path / "src")
    assert take(inside).tree_id == take(repo).tree_id == plain(repo).tree_id
    done = subprocess.run(["git", "ls-files", "-o"], cwd=inside.path, capture_output=True, text=True, check=True)
    assert "top.txt" not in done.stdout  # a listing made where one happens to be


def test_our_own_folder_is_never_in_it(repo: Repo) -> None:
    commit_some(repo)
    repo.write(".orch/inbox/x.json", "{}\n")
    repo.write("sub/.orch/mine.txt", "theirs\n")
    assert names(repo, take(repo).tree_id) == ["a.txt", "src/b.txt", "sub/.orch/mine.txt"]


def with_submodule(make_repo: MakeRepo) -> Repo:
    inner, outer = commit_some(make_repo("inner")), commit_some(make_repo("outer"))
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "sub")
    outer.commit("with a submodule", add=False)
    return outer


def test_a_submodule_with_a_commit_that_is_nowhere_else(make_repo: MakeRepo) -> None:
    outer = with_submodule(make_repo)
    sub = Repo(outer.path / "sub")
    sub.write("a.txt", "committed, not pushed\n")
    unpushed = sub.commit()
    sub.write("a.txt", "and an edit that is not committed\n")
    before, inside = fingerprint(outer), fingerprint(sub)
    taken = take(outer)
    assert (fingerprint(outer), fingerprint(sub)) == (before, inside)
    assert taken.tree_id == plain(outer).tree_id
    assert store_of(outer).git().line("ls-tree", taken.tree_id, "sub") == f"160000 commit {unpushed}\tsub"


def test_a_submodule_that_goes_and_comes_back(make_repo: MakeRepo) -> None:
    outer = with_submodule(make_repo)
    (outer.path / "sub").rename(outer.path.parent / "away")
    assert take(outer).tree_id == plain(outer).tree_id
    assert "sub" not in names(outer, take(outer).tree_id)
    (outer.path.parent / "away").rename(outer.path / "sub")
    assert take(outer).tree_id == plain(outer).tree_id == outer.git("rev-parse", "HEAD^{tree}")


def test_a_bare_repository_has_no_work_tree(make_repo: MakeRepo) -> None:
    with pytest.raises(SnapshotFailed):
        take(make_repo("bare", bare=True))


# -- in the middle of things


def conflicted(repo: Repo, command: str) -> Repo:
    """A merge or rebase has stopped at a conflict in run.sh, and at one that removed gone.txt."""
    repo.write("run.sh", "base\n", mode=0o755)
    repo.write("gone.txt", "base\n")
    repo.write("other.txt", "base\n")
    repo.commit("base")
    repo.git("checkout", "--quiet", "-b", "topic")
    repo.write("run.sh", "topic\n", mode=0o755)
    repo.write("gone.txt", "topic\n")
    repo.commit("topic")
    repo.git("checkout", "--quiet", "main")
    repo.write("run.sh", "main\n", mode=0o755)
    (repo.path / "gone.txt").unlink()
    repo.commit("main")
    done = subprocess.run(["git", command, "topic"], cwd=repo.path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    return repo


@pytest.mark.parametrize("command", ["merge", "rebase"])
@pytest.mark.parametrize("has_modes", [True, False])
def test_in_the_middle_of(repo: Repo, command: str, has_modes: bool) -> None:
    conflicted(repo, command)
    repo.git("config", "core.filemode", str(has_modes).lower())
    repo.write("other.txt", "edited\n")
    if not has_modes:
        (repo.path / "run.sh").chmod(0o644)
    before = fingerprint(repo)
    taken = take(repo)
    assert fingerprint(repo) == before
    assert (plain(repo).code, taken.tree_id) == (0, plain(repo).tree_id)
    assert b"<<<<<<<" in content(repo, taken.tree_id, "run.sh")
    assert mode(repo, taken.tree_id, "run.sh") == "100755"
    assert take(repo).tree_id == taken.tree_id
    (repo.path / "run.sh").unlink()
    assert take(repo).tree_id == plain(repo).tree_id


def test_intent_to_add(repo: Repo) -> None:
    commit_some(repo)
    repo.write("soon.txt", "soon\n")
    repo.write("later.txt", "later\n")
    repo.git("add", "--intent-to-add", "soon.txt", "later.txt")
    (repo.path / "later.txt").unlink()
    before = fingerprint(repo)
    taken = take(repo)
    assert fingerprint(repo) == before
    assert taken.tree_id == plain(repo).tree_id
    assert names(repo, taken.tree_id) == ["a.txt", "soon.txt", "src/b.txt"]


# -- what is staged


def test_what_is_staged_is_the_index_as_it_is(repo: Repo) -> None:
    commit_some(repo)
    repo.write("a.txt", "staged\n")
    repo.git("add", "a.txt")
    repo.write("a.txt", "and edited\n")
    repo.write("new.txt", "untracked\n")
    before = fingerprint(repo)
    taken = snapshot.staged(layout_of(repo), store_of(repo), os.environ)
    assert fingerprint(repo) == before
    assert content(repo, taken.tree_id, "a.txt") == b"staged\n"
    assert names(repo, taken.tree_id) == ["a.txt", "src/b.txt"]
    worktrees = Path(layout_of(repo).durable, "worktrees")
    assert [path for folder in worktrees.iterdir() for path in folder.iterdir()] == []


def test_what_is_staged_in_a_pre_commit_hook_is_what_will_be_committed(repo: Repo, tmp_path: Path) -> None:
    commit_some(repo)
    install(
        repo,
        "pre-commit",
        TAKE.replace("snapshot.take(", "snapshot.staged(").replace(
            "config.Settings(), os.environ, snapshot.Limits()", "os.environ"
        ),
    )
    repo.write("a.txt", "by -a, so it is in no index but the one of the commit\n")
    commit_all(repo, tmp_path)
    assert (tmp_path / "report").read_text().split()[1] == repo.git("rev-parse", "HEAD^{tree}")


def test_nothing_is_staged_where_there_is_no_index(repo: Repo) -> None:
    taken = snapshot.staged(layout_of(repo), store_of(repo), os.environ)
    assert taken.tree_id == repo.git("hash-object", "-t", "tree", os.devnull)


def test_a_conflict_is_not_staged(repo: Repo) -> None:
    conflicted(repo, "merge")
    with pytest.raises(SnapshotFailed) as refused:
        snapshot.staged(layout_of(repo), store_of(repo), os.environ)
    assert refused.value.hint == "finish the merge first"


# -- no place to write


def test_a_repository_without_objects_fails_and_never_gives_heads_tree(repo: Repo) -> None:
    commit_some(repo)
    place, store = layout_of(repo), store_of(repo)
    (repo.path / ".git/index").write_bytes(b"DIRC, and then nothing that is an index")
    with pytest.raises(SnapshotFailed) as refused:
        take(repo)
    assert "index" in refused.value.message
    with pytest.raises(SnapshotFailed):
        snapshot.staged(place, store, os.environ)


def test_a_kept_index_that_is_broken_is_made_anew(repo: Repo) -> None:
    commit_some(repo)
    repo.write("new.txt", "new\n")
    first = take(repo)
    next(Path(layout_of(repo).durable, "worktrees").glob("*/index")).write_bytes(b"DIRC")
    assert take(repo).tree_id == first.tree_id


@pytest.fixture
def elsewhere(tmp_path: Path) -> Repo:
    return init_repo(tmp_path / "elsewhere")


def test_a_worktree_of_another_repository_is_never_read(repo: Repo, elsewhere: Repo) -> None:
    commit_some(repo)
    commit_some(elsewhere)
    elsewhere.write("theirs.txt", "theirs\n")
    # GIT_DIR of a hook names `repo`, and somebody sends us to another folder: as git, we obey GIT_DIR and its top.
    env = {**os.environ, "GIT_DIR": str(repo.path / ".git"), "GIT_WORK_TREE": str(repo.path)}
    taken = take(elsewhere, env=env)
    assert names(repo, taken.tree_id) == ["a.txt", "src/b.txt"]
