"""The scratch store: it sees what the repository has, keeps what it is given, and touches nothing of the user's."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from git_orch import layout, locks, store
from git_orch.errors import EnvironmentProblem, GitError
from git_orch.store import ObjectsMissing
from tests.conftest import MakeRepo
from tests.repo import Repo, init_repo
from tests.scratch import layout_of, store_of, tree_of


def objects_of(repo: Repo) -> list[str]:
    top = repo.path / ".git" / "objects"
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))


def blob_in_store(repo: Repo, content: bytes) -> str:
    git = store_of(repo).git()
    return git.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()


def test_it_sees_the_repositorys_objects_and_keeps_its_own(repo: Repo) -> None:
    repo.write("a", "one\n")
    tree_id = tree_of(repo)
    before = objects_of(repo)
    made = store_of(repo)
    assert [entry.path for entry in made.entries(tree_id)] == ["a"]
    oid = blob_in_store(repo, b"mine\n")
    assert made.blob(oid) == b"mine\n"
    assert objects_of(repo) == before
    assert oid not in repo.git("cat-file", "--batch-all-objects", "--batch-check", "--unordered")


def test_nothing_but_the_orch_folder_is_new_in_the_repository(repo: Repo) -> None:
    repo.write("a", "one\n")
    repo.commit()
    before = sorted(path for path in (repo.path / ".git").rglob("*"))
    config = (repo.path / ".git" / "config").read_bytes()
    store_of(repo)
    fresh = {
        path.relative_to(repo.path / ".git").parts[0] for path in (repo.path / ".git").rglob("*") if path not in before
    }
    assert fresh == {"orch"}
    assert os.listdir(repo.path / ".git" / "orch") == ["store.git"]
    assert (repo.path / ".git" / "config").read_bytes() == config


def test_opening_it_again_costs_no_git_call(repo: Repo) -> None:
    place = layout_of(repo)
    assert store.open_existing(place, os.environ) is None
    made = store.ensure(place, os.environ)
    without_git = {**os.environ, "PATH": "/nowhere"}
    assert store.ensure(place, without_git).path == made.path
    with pytest.raises(EnvironmentProblem, match="git is not on PATH"):
        store.ensure(layout_of(init_repo(repo.path / "other")), without_git)


def test_twenty_four_at_once_make_one(repo: Repo) -> None:
    place = layout_of(repo)
    start_r, start_w = os.pipe()
    children = []
    for _ in range(24):
        pid = os.fork()
        if pid == 0:
            os.close(start_w)
            os.read(start_r, 1)  # the end of the pipe is the start of all
            try:
                os._exit(0 if store.ensure(place, os.environ).blob(store_blob(place)) == b"" else 1)
            except BaseException:  # noqa: BLE001 - the exit status tells
                os._exit(2)
        children.append(pid)
    os.close(start_r)
    os.close(start_w)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 24
    assert os.listdir(place.durable) == ["store.git"]


def store_blob(place: layout.Layout) -> str:
    git = store.ensure(place, os.environ).git()
    return git.run("hash-object", "-w", "--stdin").decode().strip()


def test_a_store_that_is_not_whole_is_told(repo: Repo) -> None:
    os.makedirs(layout_of(repo).store)
    with pytest.raises(EnvironmentProblem, match="not whole"):
        store_of(repo)


def test_a_folder_that_cannot_be_written_is_told_and_left_empty(repo: Repo) -> None:
    Path(layout_of(repo).durable).write_text("in the way")
    with pytest.raises(EnvironmentProblem, match="cannot write"):
        store_of(repo)


@pytest.mark.parametrize("name", ["with:colon", '"quoted', "#hash", "back\\slash", "sp ace", "\udcff\udcfe"])
def test_any_sign_may_stand_in_the_repositorys_path(tmp_path: Path, name: str) -> None:
    repo = init_repo(tmp_path / name)
    repo.write("a", "one\n")
    tree_id = tree_of(repo)
    made = store_of(repo)
    assert [entry.path for entry in made.entries(tree_id)] == ["a"]
    assert made.reader().run("ls-tree", "--name-only", tree_id) == b"a\n"


@pytest.mark.parametrize("name", ['"quoted\\', "#hash", "plain"])
def test_objects_that_lie_elsewhere_are_named_absolutely(tmp_path: Path, name: str) -> None:
    repo = init_repo(tmp_path / "repo")
    repo.write("a", "one\n")
    tree_id = tree_of(repo)
    os.rename(repo.path / ".git" / "objects", tmp_path / name)
    (repo.path / ".git" / "objects").mkdir()
    place = layout_of(repo).replace(objects=str(tmp_path / name))
    made = store.ensure(place, os.environ)
    assert [entry.path for entry in made.entries(tree_id)] == ["a"]
    assert made.reader().run("ls-tree", "--name-only", tree_id) == b"a\n"


def test_a_clone_may_be_moved_and_copied(repo: Repo, tmp_path: Path) -> None:
    repo.write("a", "one\n")
    tree_id = tree_of(repo)
    store_of(repo)
    shutil.copytree(repo.path, tmp_path / "copy")
    os.rename(repo.path, tmp_path / "moved")
    for name in ("copy", "moved"):
        assert [entry.path for entry in store_of(Repo(tmp_path / name)).entries(tree_id)] == ["a"]


def test_alternates_of_the_repository_are_followed(repo: Repo, tmp_path: Path) -> None:
    repo.write("a", "one\n")
    tree_id = tree_of(repo)
    subprocess.run(["git", "clone", "-qs", repo.path, tmp_path / "shared"], check=True, timeout=60)
    relative = init_repo(tmp_path / "relative")
    (relative.path / ".git/objects/info/alternates").write_text("../../../shared/.git/objects\n")
    for borrower in (Repo(tmp_path / "shared"), relative):
        assert [entry.path for entry in store_of(borrower).entries(tree_id)] == ["a"]
        assert store_of(borrower).reader().run("ls-tree", "--name-only", tree_id) == b"a\n"


def test_a_reader_looks_among_the_users_objects_first_and_finds_the_stores(repo: Repo) -> None:
    repo.write("a", "one\n")
    theirs = tree_of(repo)
    made = store_of(repo)
    ours = (
        made.git().run("mktree", "-z", stdin=b"100644 blob %s\tb\0" % blob_in_store(repo, b"two\n").encode()).decode()
    )
    before = objects_of(repo)
    reader = made.reader()
    assert reader.command("archive", theirs).env["GIT_OBJECT_DIRECTORY"] == "."
    assert os.path.samefile(reader.cwd, repo.path / ".git" / "objects")
    for tree_id, content in ((theirs, b"one\n"), (ours.strip(), b"two\n")):
        assert content in reader.run("archive", "--format=tar", tree_id)
    assert objects_of(repo) == before


def test_a_partial_clone_is_never_read_from_its_own_objects_which_git_would_fetch_into(partial: Repo) -> None:
    assert store_of(partial).reader() == store_of(partial).git()


def test_sha256(make_repo: MakeRepo) -> None:
    repo = make_repo("sha256", object_format="sha256")
    repo.write("a", "one\n")
    base, tree_id = tree_of(repo), ""
    repo.write("a", "two\n")
    tree_id = tree_of(repo)
    made = store_of(repo)
    (change,) = made.changed(base, tree_id)
    assert (len(change.new_oid), made.blob(change.new_oid)) == (64, b"two\n")
    made.keep_evidence("r1", base, tree_id)
    assert made.gc("now") == ""
    assert made.evidence("r1") is not None


@pytest.mark.parametrize("kind", ["worktree", "bare", "submodule", "separate"])
def test_every_kind_of_repository_has_one(kind: str, repo: Repo, make_repo: MakeRepo, tmp_path: Path) -> None:
    repo.write("a", "one\n")
    tree_id = tree_of(repo)
    at = tmp_path / "at"
    if kind == "worktree":
        repo.git("worktree", "add", "-q", "--detach", at)
    elif kind == "bare":
        repo.git("clone", "-q", "--bare", repo.path, at)
    elif kind == "submodule":
        outer = make_repo("outer")
        outer.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", repo.path, "sub")
        at = outer.path / "sub"
    else:
        repo.git("clone", "-q", "--separate-git-dir", tmp_path / "gitdir", repo.path, at)
    made = store_of(Repo(at))
    assert [entry.path for entry in made.entries(tree_id)] == ["a"]
    assert made.path == os.path.join(layout_of(Repo(at)).common_dir, "orch", "store.git")
    if kind == "worktree":
        assert made.path == store_of(repo).path


# -- differences


def test_changes_are_told_with_modes_objects_and_status(repo: Repo) -> None:
    repo.write("same", "same\n")
    repo.write("gone", "gone\n")
    repo.write("edited", "old\n")
    repo.write("script", "x\n")
    repo.write("becomes-link", "x\n")
    base = tree_of(repo)
    (repo.path / "gone").unlink()
    repo.write("edited", "new\n")
    (repo.path / "script").chmod(0o755)
    (repo.path / "becomes-link").unlink()
    (repo.path / "becomes-link").symlink_to("same")
    repo.write(b'new \xff\n\t"'.decode("utf-8", "surrogateescape"), "new\n")
    tree_id = tree_of(repo)
    made = store_of(repo)
    changes = {change.path: change for change in made.changed(base, tree_id)}
    new = b'new \xff\n\t"'.decode("utf-8", "surrogateescape")
    assert {path: (change.status, change.old_mode, change.new_mode) for path, change in changes.items()} == {
        "gone": ("D", "100644", "000000"),
        "edited": ("M", "100644", "100644"),
        "script": ("M", "100644", "100755"),
        "becomes-link": ("T", "100644", "120000"),
        new: ("A", "000000", "100644"),
    }
    assert made.blob(changes["edited"].old_oid) == b"old\n"
    assert made.blob(changes["edited"].new_oid) == b"new\n"
    assert [change.path for change in made.changed(base, tree_id, ["ed*", ":(exclude)nothing"])] == ["edited"]
    assert made.changed(tree_id, tree_id) == []


def test_a_rename_is_a_removal_and_an_addition(repo: Repo) -> None:
    repo.git("config", "diff.renames", "copies")
    repo.write("old", "content\n" * 20)
    base = tree_of(repo)
    (repo.path / "old").rename(repo.path / "new")
    tree_id = tree_of(repo)
    assert [(change.path, change.status) for change in store_of(repo).changed(base, tree_id)] == [
        ("new", "A"),
        ("old", "D"),
    ]


def test_a_patch_is_whole_whatever_attributes_and_settings_say(repo: Repo, tmp_path: Path) -> None:
    """Case 65: `-diff` makes a text binary, a driver's textconv runs a program, settings move prefixes."""
    witness = tmp_path / "ran"
    repo.git("config", "diff.boom.textconv", f"touch {witness}; cat")
    repo.git("config", "diff.boom.command", f"touch {witness}; true")
    for key, value in (("noprefix", "true"), ("external", f"touch {witness}"), ("suppressBlankEmpty", "true")):
        repo.git("config", "--global", f"diff.{key}", value)
    repo.git("config", "--global", "core.attributesFile", repo.write("../global-attributes", "* -diff\n"))
    repo.write(".gitattributes", "* -diff\n*.py diff=boom\n")
    repo.write("a.txt", "one\n\n")
    repo.write("b.py", "one\n")
    repo.write("binary", b"\0\1\2")
    base = tree_of(repo)
    for name, text in (("a.txt", b"two\n\n"), ("b.py", b"two\n"), ("binary", b"\0\3"), ("naïve name", b"x\n")):
        repo.write(name, text)
    tree_id = tree_of(repo)
    patch = store_of(repo).patch(base, tree_id)
    assert b"\n-one\n+two\n" in patch.partition(b"a/b.py")[2]
    assert b"\n-one\n+two\n \n" in patch.partition(b"a/a.txt")[2]
    assert b"GIT binary patch" in patch
    assert not witness.exists()
    plain = init_repo(tmp_path / "plain")
    plain.git("config", "diff.noprefix", "false")
    (plain.path / ".git/objects/info/alternates").write_text(f"{repo.path}/.git/objects\n")
    plain.git("read-tree", base)
    plain.git("apply", "--cached", stdin=patch)
    assert plain.git("write-tree") == tree_id


def test_a_patch_of_some_paths_takes_them_literally(repo: Repo) -> None:
    names = ["*.py", "a.py", ":(top)b.py", "b.py", "[ab].py"]
    for name in names:
        repo.write(name, "one\n")
    base = tree_of(repo)
    for name in names:
        repo.write(name, "two\n")
    tree_id = tree_of(repo)
    made = store_of(repo)
    for name in names:
        assert made.patch(base, tree_id, [name]).count(b"\ndiff --git ") == 0
        assert f"+++ b/{name}\n".encode() in made.patch(base, tree_id, [name])
    assert made.patch(base, tree_id, []) == b""


def test_a_patch_of_more_paths_than_a_command_line_holds(repo: Repo) -> None:
    names = [f"{'deep/' * 30}{number:05d}" for number in range(1500)]
    blob = repo.git("hash-object", "-w", "--stdin", stdin="x\n")
    repo.git("update-index", "--index-info", stdin="".join(f"100644 {blob}\t{name}\n" for name in names))
    tree_id = repo.git("write-tree")
    base = repo.git("mktree")
    made = store_of(repo)
    assert made.patch(base, tree_id, names) == made.patch(base, tree_id)


def test_a_submodule_is_part_of_a_difference_whatever_is_ignored(repo: Repo) -> None:
    repo.git("config", "diff.ignoreSubmodules", "all")
    base = repo.git("mktree")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    (change,) = store_of(repo).changed(base, repo.git("write-tree"))
    assert (change.path, change.new_mode, change.status) == ("sub", "160000", "A")


def test_entries_tell_kind_and_size(repo: Repo) -> None:
    repo.write("dir/a", "12345")
    repo.git("add", "dir/a")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    entries = store_of(repo).entries(repo.git("write-tree"), sizes=True)
    assert [(entry.path, entry.mode, entry.kind, entry.size) for entry in entries] == [
        ("dir/a", "100644", "blob", 5),
        ("sub", "160000", "commit", -1),
    ]


# -- what is kept


def test_a_tree_is_held_without_a_git_call_and_let_go(repo: Repo) -> None:
    made = store_of(repo)
    git = made.git()
    blob = git.run("hash-object", "-w", "--stdin", stdin=b"only here\n").decode().strip()
    tree_id = git.run("mktree", stdin=f"100644 blob {blob}\ta\n".encode()).decode().strip()
    made.replace(env={**made.env, "PATH": "/nowhere"}).hold("r1", tree_id)
    assert made.gc("now") == ""
    assert made.blob(blob) == b"only here\n"
    made.release("r1", "never-held")
    assert made.gc("now") == ""
    with pytest.raises(GitError):
        made.blob(blob)


def test_what_was_just_written_survives_a_gc_that_nobody_held_it_for(repo: Repo) -> None:
    made = store_of(repo)
    blob = blob_in_store(repo, b"of a snapshot under way\n")
    assert made.gc() == ""
    assert made.blob(blob) == b"of a snapshot under way\n"


def test_evidence_outlives_the_users_objects(repo: Repo) -> None:
    """Case 67: amend, `gc --prune=now`, a sweep of old runs: the store's own gc goes on working."""
    repo.write("kept", "kept\n" * 50)
    repo.write("edited", "old\n")
    repo.write("dir/gone", "gone\n")
    base = tree_of(repo, "base")
    (repo.path / "dir/gone").unlink()
    repo.write("edited", "new\n")
    repo.write("added", "added\n")
    tree_id = tree_of(repo, "reviewed")
    made = store_of(repo)
    made.hold("r1", tree_id)
    oids = {oid for change in made.changed(base, tree_id) for oid in (change.old_oid, change.new_oid) if int(oid, 16)}
    made.keep_evidence("r1", base, tree_id)
    made.hold("r0", tree_id)
    made.keep_evidence("r0", base, tree_id)  # an older run, with the very same evidence
    # The user's side: everything is rewritten, nothing of the old is left.
    repo.git("checkout", "-q", "--orphan", "fresh")
    repo.git("rm", "-rfq", ".")
    repo.write("other", "other\n")
    repo.commit("amended")
    repo.git("branch", "-D", "main")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    present = repo.git("cat-file", "--batch-all-objects", "--batch-check")
    assert not [oid for oid in oids if oid in present]
    made.release("r0")
    for _ in range(2):
        assert made.gc("now") == ""
        assert {made.blob(oid) for oid in oids} == {b"old\n", b"new\n", b"gone\n", b"added\n"}
    kept = made.evidence("r1")
    assert kept is not None
    assert {change.path: change.status for change in made.changed(kept.base, kept.tree)} == {
        "added": "A",
        "dir/gone": "D",
        "edited": "M",
    }
    made.release("r1")
    assert made.gc("now") == ""
    assert made.evidence("r1") is None
    for oid in oids:
        with pytest.raises(GitError):
            made.blob(oid)
    assert not list(Path(made.objects, "pack").iterdir())


def test_plain_refs_to_the_users_objects_would_break_every_gc(repo: Repo) -> None:
    """The plain way, so that the test above can fail: a ref to the reviewed tree instead of its evidence."""
    repo.write("a", "one\n")
    tree_id = tree_of(repo)
    made = store_of(repo)
    made.hold("r1", tree_id)
    repo.git("update-ref", "-d", "HEAD")
    repo.git("rm", "-rfq", "--cached", ".")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    assert "failed" in made.gc()
    made.release("r1")
    assert made.gc() == ""


def test_a_plain_gc_would_drop_what_the_user_still_has(repo: Repo) -> None:
    """Why evidence is in kept packs: `repack -l` leaves out what an alternate holds, and then that goes."""
    repo.write("a", "old\n")
    base = tree_of(repo)
    repo.write("a", "new\n")
    tree_id = tree_of(repo)
    repo.git("gc", "-q")
    made = store_of(repo)
    made.keep_evidence("r1", base, tree_id)
    assert made.gc("now") == ""
    shutil.rmtree(repo.path / ".git" / "objects" / "pack")
    kept = made.evidence("r1")
    assert kept is not None
    (change,) = made.changed(kept.base, kept.tree)
    assert (made.blob(change.old_oid), made.blob(change.new_oid)) == (b"old\n", b"new\n")


def test_evidence_of_many_runs_ends_in_one_pack(repo: Repo) -> None:
    made = store_of(repo)
    repo.write("a", "0\n")
    last = tree_of(repo)
    for number in range(1, 6):
        repo.write("a", f"{number}\n")
        tree_id = tree_of(repo)
        made.keep_evidence(f"r{number}", last, tree_id)
        last = tree_id
    assert made.gc("now") == ""
    assert len(list(Path(made.objects, "pack").glob("*.pack"))) == 1
    made.release("r1", "r2")
    assert made.gc("now") == ""
    assert [made.evidence(f"r{number}") is not None for number in range(1, 6)] == [False, False, True, True, True]


def test_no_difference_leaves_no_evidence_and_no_ref(repo: Repo) -> None:
    repo.write("a", "one\n")
    tree_id = tree_of(repo)
    made = store_of(repo)
    made.hold("r1", tree_id)
    made.keep_evidence("r1", tree_id, tree_id)
    assert made.evidence("r1") is None
    assert made.git().run("for-each-ref") == b""


def test_a_tree_whose_objects_are_gone_is_let_go_all_the_same(repo: Repo) -> None:
    repo.write("a", "one\n")
    base = repo.git("mktree")
    tree_id = tree_of(repo)
    made = store_of(repo)
    made.hold("r1", tree_id)
    shutil.rmtree(repo.path / ".git" / "objects")
    (repo.path / ".git" / "objects").mkdir()
    with pytest.raises(GitError):
        made.keep_evidence("r1", base, tree_id)
    assert made.git().run("for-each-ref") == b""
    assert made.gc() == ""


def test_a_ref_that_gc_has_packed_is_let_go_too(repo: Repo) -> None:
    repo.write("a", "one\n")
    tree_id = tree_of(repo)
    made = store_of(repo)
    made.hold("r1", tree_id)
    assert made.gc() == ""
    assert not Path(made.path, "refs", "live", "r1").exists()
    made.keep_evidence("r1", tree_id, tree_id)
    assert made.git().run("for-each-ref") == b""


def test_two_gcs_at_once_are_one(repo: Repo) -> None:
    made = store_of(repo)
    lock = made._open_lock()
    try:
        assert locks.exclusive(lock)
        assert made.gc() == "another process is at it"
    finally:
        os.close(lock)
    assert made.gc() == ""


def test_what_crashes_left_goes_with_a_gc_after_an_hour(repo: Repo) -> None:
    made = store_of(repo)
    old, fresh = (Path(f"{made.path}.{name}.tmp") for name in ("1-old", "2-fresh"))
    for folder in (old, fresh):
        (folder / "refs").mkdir(parents=True)
    os.utime(old, (0, 0))
    assert made.gc() == ""
    assert (old.exists(), fresh.exists()) == (False, True)


# -- partial clones


@pytest.fixture
def partial(repo: Repo, tmp_path: Path) -> Repo:
    """A blobless clone without a checkout, of a repository with three files."""
    for name in ("a", "b", "dir/c"):
        repo.write(name, f"{name}\n")
    repo.commit()
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.git("config", "uploadpack.allowAnySHA1InWant", "true")
    clone = tmp_path / "partial"
    repo.git("clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{repo.path}", clone)
    return Repo(clone)


def test_a_partial_clones_objects_are_fetched_at_once_and_into_the_store(partial: Repo) -> None:
    made = store_of(partial)
    tree_id = partial.git("rev-parse", "HEAD^{tree}")
    before = objects_of(partial)
    assert made.promisor == "origin"
    assert len(made.missing(tree_id)) == 3
    assert made.fetch_missing(tree_id) == 3
    assert made.fetch_missing(tree_id) == 0
    assert made.missing(tree_id) == []
    assert objects_of(partial) == before
    assert made.gc("now") == ""


def test_a_partial_clone_that_is_offline_says_so(partial: Repo, tmp_path: Path) -> None:
    made = store_of(partial)
    os.rename(tmp_path / "repo", tmp_path / "unplugged")
    with pytest.raises(ObjectsMissing, match="3 objects are missing and cannot be fetched") as raised:
        made.fetch_missing(partial.git("rev-parse", "HEAD^{tree}"))
    assert len(raised.value.oids) == 3


def test_the_store_follows_the_remote_of_a_partial_clone(partial: Repo, tmp_path: Path) -> None:
    store_of(partial)
    os.rename(tmp_path / "repo", tmp_path / "moved")
    partial.git("remote", "set-url", "origin", f"file://{tmp_path}/moved")
    assert store_of(partial).fetch_missing(partial.git("rev-parse", "HEAD^{tree}")) == 3


def test_a_relative_remote_of_a_partial_clone_is_found(partial: Repo) -> None:
    partial.git("remote", "set-url", "origin", "../repo")
    assert store_of(partial).fetch_missing(partial.git("rev-parse", "HEAD^{tree}")) == 3


def test_a_clone_that_is_whole_promises_nothing(repo: Repo) -> None:
    repo.git("config", "remote.origin.url", "/somewhere/promisor")
    made = store_of(repo)
    assert made.promisor == ""
    assert made.git().line("config", "core.repositoryformatversion") == "0"
    with pytest.raises(ObjectsMissing):
        made.fetch_missing("1" * 40)


def test_odd_values_of_a_configuration_arrive_as_they_are(partial: Repo) -> None:
    value = 'a "quoted" back\\slash # and ; more\tend'
    partial.git("config", "http.proxy", value)
    partial.git("config", 'url.ssh://x y"z/.insteadOf', "gh:")
    git = store_of(partial).git()
    assert git.line("config", "http.proxy") == value
    assert git.line("config", 'url.ssh://x y"z/.insteadof') == "gh:"
