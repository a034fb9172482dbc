"""What is compared with what: proved or refused, never guessed, and always told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from git_orch import registry, store, target
from git_orch.config import Settings
from git_orch.errors import BaseUnknown, NothingToReview, UsageError
from git_orch.model import Base
from git_orch.snapshot import SnapshotFailed
from git_orch.target import Question, Target, resolve, within
from git_orch.workspace import Workspace
from tests.conftest import MakeRepo
from tests.ordinary_user import as_ordinary_user, open_folder
from tests.repo import Repo, init_repo
from tests.scratch import KEY, layout_of
from tests.untouched import fingerprint


def workspace(repo: Repo, bases: dict[str, str] | None = None, **env: str) -> Workspace:
    """The repository, opened; `bases` are `branch.NAME.orchBase`."""
    place = layout_of(repo)
    around = {**os.environ, **env}
    return Workspace(
        layout=place,
        settings=Settings(branch_bases=tuple((bases or {}).items())),
        book=registry.ensure(place, KEY, around),
        store=store.ensure(place, around),
        key=KEY,
        env=around,
    )


def ask(
    repo: Repo,
    rev: str = "",
    *,
    bases: dict[str, str] | None = None,
    env: dict[str, str] | None = None,
    **question: Any,
) -> Target:
    return resolve(Question(**{"rev": rev, **question}), workspace(repo, bases, **(env or {})))


def changed(repo: Repo, wanted: Target) -> list[str]:
    """The paths that a reviewer of the target would see as changed."""
    scratch = store.ensure(layout_of(repo), os.environ)
    return [change.path for change in scratch.changed(wanted.base.tree_id, wanted.tree_id)]


def commit(repo: Repo, name: str) -> str:
    repo.write(name, f"{name}\n")
    return repo.commit(name)


@pytest.fixture
def branched(repo: Repo) -> Repo:
    """`main` with two commits, of which `topic` (checked out, two commits of its own) has the first."""
    commit(repo, "first")
    repo.git("checkout", "--quiet", "-b", "topic")
    commit(repo, "topic1")
    commit(repo, "topic2")
    repo.git("checkout", "--quiet", "main")
    commit(repo, "second")
    repo.git("checkout", "--quiet", "topic")
    return repo


def oid(repo: Repo, name: str) -> str:
    return repo.git("rev-parse", name)


# -- the work tree


def test_the_work_tree_against_head(branched: Repo) -> None:
    branched.write("new", "new\n")
    before = fingerprint(branched)
    wanted = ask(branched)
    assert fingerprint(branched) == before
    head = oid(branched, "HEAD")
    assert (wanted.base.name, wanted.base.commit, wanted.head) == ("HEAD", head, head)
    assert (wanted.subject, wanted.commit) == ("working tree", "")
    assert changed(branched, wanted) == ["new"]


def test_what_is_staged_against_head(branched: Repo) -> None:
    branched.write("new", "new\n")
    branched.git("add", "new")
    branched.write("other", "not staged\n")
    wanted = ask(branched, staged=True)
    assert (wanted.subject, changed(branched, wanted)) == ("staged changes", ["new"])


def test_a_clean_work_tree_names_the_way_to_the_commits(branched: Repo) -> None:
    with pytest.raises(NothingToReview) as nothing:
        ask(branched)
    head = oid(branched, "HEAD")[:7]
    assert nothing.value.message == f"nothing to review: the working tree is as HEAD ({head})"
    assert nothing.value.hint == "for the commits of this branch: git orch review main.."
    assert nothing.value.exit_code == 6
    with pytest.raises(NothingToReview, match="nothing is staged that is not in HEAD"):
        ask(branched, staged=True)


def test_a_clean_work_tree_of_the_trunk_and_of_no_commit(branched: Repo, make_repo: MakeRepo) -> None:
    branched.git("checkout", "--quiet", "main")
    with pytest.raises(NothingToReview) as nothing:
        ask(branched)
    assert nothing.value.hint == "for the last commit: git orch review HEAD"
    empty = make_repo("empty")
    with pytest.raises(NothingToReview) as nothing:
        ask(empty)
    assert nothing.value.message == "nothing to review: there is no commit yet, and no file"
    with pytest.raises(NothingToReview) as nothing:
        ask(empty, staged=True)
    assert nothing.value.message == "nothing to review: there is no commit yet, and nothing is staged"


def test_nothing_but_what_is_left_out_is_told(branched: Repo) -> None:
    branched.write(".env", "x\n")
    branched.write("a.pem", "x\n")
    with pytest.raises(NothingToReview) as nothing:
        ask(branched)
    assert nothing.value.hint == "left out: .env: looks like a secret, never copied, and 1 more"


def test_a_tracked_file_that_cannot_be_read_is_not_nothing(tmp_path: Path) -> None:
    def action() -> None:
        os.environ.update(HOME=str(folder), XDG_CONFIG_HOME=str(folder), TMPDIR=str(folder))
        (folder / "gitconfig").write_text("[user]\n\tname = A\n\temail = a@example.com\n")
        os.environ["GIT_CONFIG_GLOBAL"] = str(folder / "gitconfig")
        repo = init_repo(folder / "work")
        commit(repo, "first")
        repo.write("first", "edited\n", mode=0o000)
        wanted = ask(repo)
        assert wanted.tree_id == wanted.base.tree_id
        assert [(left_out.path, left_out.tracked) for left_out in wanted.skipped] == [("first", True)]

    with open_folder(tmp_path) as folder:
        as_ordinary_user(action)


def test_before_the_first_commit_all_is_new(repo: Repo) -> None:
    repo.write("a", "a\n")
    wanted = ask(repo)
    assert (wanted.base.name, wanted.base.commit, changed(repo, wanted)) == ("nothing", "", ["a"])


def test_before_the_first_commit_in_sha256(make_repo: MakeRepo) -> None:
    repo = make_repo("repo", object_format="sha256")
    repo.write("a", "a\n")
    wanted = ask(repo)
    assert wanted.base.tree_id == repo.git("hash-object", "-t", "tree", os.devnull)
    assert changed(repo, wanted) == ["a"]


def test_a_bare_repository_has_no_work_tree(make_repo: MakeRepo) -> None:
    with pytest.raises(UsageError) as refused:
        ask(make_repo("bare", bare=True))
    assert refused.value.hint == "name a revision: git orch review REV"


def test_a_base_by_hand(branched: Repo) -> None:
    wanted = ask(branched, base="main")
    assert (wanted.base.name, wanted.base.commit) == ("main", oid(branched, "main"))
    assert changed(branched, wanted) == ["second", "topic1", "topic2"]  # exactly what was named
    assert ask(branched, base="HEAD~2").base.commit == oid(branched, "HEAD~2")
    assert ask(branched, base="main^{tree}").base == Base(tree_id=oid(branched, "main^{tree}"), name="main^{tree}")
    with pytest.raises(UsageError, match="--base: `nonsense` is no revision here"):
        ask(branched, base="nonsense")


def test_the_base_of_a_branch(branched: Repo) -> None:
    wanted = ask(branched, bases={"topic": "main", "other": "HEAD"})
    assert (wanted.base.name, wanted.base.commit) == ("where it left main", oid(branched, "main^"))
    assert changed(branched, wanted) == ["topic1", "topic2"]
    assert ask(branched, bases={"topic": "main"}, base="HEAD^").base.name == "HEAD^"
    branched.git("checkout", "--quiet", "--detach")
    branched.write("new", "new\n")
    assert ask(branched, bases={"topic": "main"}).base.name == "HEAD"


def test_all_files(branched: Repo) -> None:
    wanted = ask(branched, all_files=True)
    assert (wanted.base.name, changed(branched, wanted)) == ("nothing", ["first", "topic1", "topic2"])
    assert changed(branched, ask(branched, "main", all_files=True)) == ["first", "second"]


@pytest.mark.parametrize(
    "question",
    [
        {"rev": "main", "staged": True},
        {"rev": "main..topic", "base": "main"},
        {"all_files": True, "base": "main"},
    ],
)
def test_two_ways_of_asking(branched: Repo, question: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        ask(branched, **question)  # type: ignore[arg-type]


def test_a_conflict_cannot_be_reviewed_as_staged(branched: Repo) -> None:
    branched.write("second", "ours\n")
    branched.commit()
    subprocess.run(["git", "merge", "main"], cwd=branched.path, capture_output=True, check=False)
    with pytest.raises(SnapshotFailed):
        ask(branched, staged=True)
    assert "second" in changed(branched, ask(branched))


# -- revisions


def test_a_branch_since_it_left_the_trunk(branched: Repo) -> None:
    wanted = ask(branched, "topic")
    assert (wanted.base.name, wanted.base.commit) == ("where it left main", oid(branched, "main^"))
    assert (wanted.subject, wanted.commit, wanted.tree_id) == (
        "topic",
        oid(branched, "topic"),
        oid(branched, "topic^{tree}"),
    )
    assert changed(branched, wanted) == ["topic1", "topic2"]
    assert ask(branched, "topic", bases={"topic": "topic~1"}).base.commit == oid(branched, "topic~1")


def test_the_trunk_itself_and_any_other_commit_against_their_parents(branched: Repo) -> None:
    assert changed(branched, ask(branched, "main")) == ["second"]
    assert changed(branched, ask(branched, "HEAD")) == ["topic2"]
    assert changed(branched, ask(branched, oid(branched, "topic~1"))) == ["topic1"]
    assert ask(branched, "topic~1").base.name == "topic~1^"


def test_the_first_commit_and_a_merge(branched: Repo) -> None:
    assert ask(branched, "main^").base.name == "nothing"
    branched.git("merge", "--quiet", "--no-edit", "main")
    assert changed(branched, ask(branched, "HEAD")) == ["second"]


def test_a_tag_and_a_tag_of_a_tag(branched: Repo) -> None:
    branched.git("tag", "-a", "-m", "x", "v1", "topic~1")
    branched.git("tag", "-a", "-m", "x", "v1.0", "v1")
    assert changed(branched, ask(branched, "v1.0")) == ["topic1"]


@pytest.mark.parametrize("rev", ["main..topic", "main...topic", "main..", "main...HEAD"])
def test_a_range_is_what_one_side_has_alone(branched: Repo, rev: str) -> None:
    wanted = ask(branched, rev)
    assert changed(branched, wanted) == ["topic1", "topic2"]
    assert (wanted.base.name, wanted.subject) == ("where it left main", rev)


def test_a_range_from_an_ancestor(branched: Repo) -> None:
    wanted = ask(branched, "HEAD~1..")
    assert (wanted.base.name, changed(branched, wanted)) == ("HEAD~1", ["topic2"])
    assert changed(branched, ask(branched, "..main")) == ["second"]
    with pytest.raises(NothingToReview, match=r"nothing to review: \.\. is as HEAD"):
        ask(branched, "..")


def test_a_range_without_a_common_commit(branched: Repo) -> None:
    branched.git("checkout", "--quiet", "--orphan", "alone")
    commit(branched, "alone")
    with pytest.raises(BaseUnknown) as unknown:
        ask(branched, "main..alone")
    assert unknown.value.message.startswith("base unknown: main and ")
    assert unknown.value.hint == "name one with --base REV"


def test_what_is_no_revision(branched: Repo) -> None:
    for rev in ("nonsense", "nonsense..topic", "topic..nonsense", "HEAD^{tree}", "-h", "--all", ""):
        if rev:
            with pytest.raises(UsageError, match="is no revision here") as refused:
                ask(branched, rev)
            assert refused.value.hint == "for a path, write it after --"


@pytest.mark.parametrize("name", ["first", "src", "HEAD~0", "a..b"])
def test_a_branch_named_like_a_file(branched: Repo, name: str) -> None:
    branched.write("src/x", "x\n")
    branched.write("other", "x\n")
    if name in ("first", "src"):
        branched.git("branch", name, "topic")
        wanted = ask(branched, name)
        assert (wanted.commit, changed(branched, wanted)) == (oid(branched, "refs/heads/topic"), ["topic1", "topic2"])
    elif name == "HEAD~0":
        assert ask(branched, name).commit == oid(branched, "HEAD")
    else:
        with pytest.raises(UsageError):
            ask(branched, name)


def test_a_tag_named_like_a_branch_is_the_tag_as_for_git(branched: Repo) -> None:
    branched.git("tag", "topic", "topic~1")
    wanted = ask(branched, "topic")
    assert (wanted.commit, wanted.base.name) == (oid(branched, "refs/tags/topic"), "topic^")
    assert changed(branched, ask(branched, "heads/topic")) == ["topic2"]


# -- which branch others start from


def remote(repo: Repo, name: str, tip: str, *, head: str = "") -> None:
    """A remote as it is after a fetch; with `head` also as `git clone` leaves it."""
    repo.git("update-ref", f"refs/remotes/{name}/{head or 'main'}", tip)
    if head:
        repo.git("symbolic-ref", f"refs/remotes/{name}/HEAD", f"refs/remotes/{name}/{head}")


def test_a_fork_that_is_behind_its_upstream(branched: Repo) -> None:
    """`origin` has a HEAD, as of a clone; `upstream` has none, as of `git remote add`. The topic left upstream late."""
    remote(branched, "origin", oid(branched, "main~1"), head="main")
    remote(branched, "upstream", oid(branched, "topic~1"))
    wanted = ask(branched, "topic")
    assert (wanted.base.name, wanted.base.commit) == ("upstream/main", oid(branched, "topic~1"))
    assert changed(branched, wanted) == ["topic2"]
    assert changed(branched, ask(branched, "origin/main..topic")) == ["topic1", "topic2"]
    with pytest.raises(NothingToReview) as nothing:
        ask(branched)
    assert nothing.value.hint.endswith("git orch review upstream/main..")


def test_the_upstreams_branch_has_the_name_of_origins(branched: Repo) -> None:
    remote(branched, "origin", oid(branched, "main~1"), head="develop")
    branched.git("update-ref", "refs/remotes/upstream/main", oid(branched, "main~1"))
    branched.git("update-ref", "refs/remotes/upstream/develop", oid(branched, "topic~1"))
    assert ask(branched, "topic").base.name == "upstream/develop"


def test_origin_alone_with_a_branch_of_another_name(branched: Repo) -> None:
    remote(branched, "origin", oid(branched, "topic~1"), head="trunk")
    assert ask(branched, "topic").base.name == "origin/trunk"


def test_origin_without_a_head(branched: Repo) -> None:
    branched.git("update-ref", "refs/remotes/origin/master", oid(branched, "topic~1"))
    assert ask(branched, "topic").base.name == "origin/master"


def test_a_head_of_origin_that_points_nowhere(branched: Repo) -> None:
    branched.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone")
    assert ask(branched, "topic").base.name == "where it left main"


def test_no_remote_and_no_trunk(branched: Repo) -> None:
    branched.git("branch", "-m", "main", "unusual")
    assert changed(branched, ask(branched, "topic")) == ["topic2"]  # its last commit, and the base says so
    assert ask(branched, "topic").base.name == "topic^"
    with pytest.raises(NothingToReview) as nothing:
        ask(branched)
    assert nothing.value.hint == "for the last commit: git orch review HEAD"


def test_a_branch_of_a_remote(branched: Repo) -> None:
    remote(branched, "origin", oid(branched, "main"), head="main")
    branched.git("update-ref", "refs/remotes/origin/topic", oid(branched, "topic"))
    assert changed(branched, ask(branched, "origin/topic")) == ["topic1", "topic2"]


# -- shallow clones


def clone(repo: Repo, path: Path, *words: str) -> Repo:
    """A clone of which `main` is the default branch, where it has that."""
    repo.git("clone", "--quiet", *words, f"file://{repo.path}", str(path))
    subprocess.run(["git", "remote", "set-head", "origin", "main"], cwd=path, capture_output=True, check=False)
    return Repo(path)


def test_a_shallow_clone_whose_merge_base_is_not_there(branched: Repo, tmp_path: Path) -> None:
    shallow = clone(branched, tmp_path / "shallow", "--depth=1", "--no-single-branch", "--branch=topic")
    for rev in ("topic", "origin/main..topic", "HEAD"):
        with pytest.raises(BaseUnknown) as unknown:
            ask(shallow, rev)
        assert unknown.value.message == "base unknown: this clone is shallow (depth 1)"
        assert unknown.value.hint == "git fetch --unshallow, or in Actions: fetch-depth: 0, or --base REV"
    assert changed(shallow, ask(shallow, "topic", base="origin/main")) == ["second", "topic1", "topic2"]
    assert changed(shallow, ask(shallow, "topic", all_files=True)) == ["first", "topic1", "topic2"]
    shallow.write("new", "new\n")
    assert changed(shallow, ask(shallow)) == ["new"]
    shallow.git("fetch", "--quiet", "--unshallow")
    assert changed(shallow, ask(shallow, "topic")) == ["topic1", "topic2"]


def test_a_shallow_clone_whose_merge_base_is_wrong(repo: Repo, tmp_path: Path) -> None:
    """An old common commit is there by a second path; the true merge base lies behind the cut."""
    commit(repo, "old")
    repo.git("branch", "side")
    for name in ("m1", "m2"):
        commit(repo, name)
    true_base = oid(repo, "HEAD")
    repo.git("checkout", "--quiet", "-b", "topic")
    for name in ("t1", "t2"):
        commit(repo, name)
    repo.git("merge", "--quiet", "--no-edit", "-s", "ours", "side~0", "--allow-unrelated-histories")
    repo.git("checkout", "--quiet", "side")
    commit(repo, "s1")
    repo.git("checkout", "--quiet", "topic")
    repo.git("merge", "--quiet", "--no-edit", "side")
    repo.git("checkout", "--quiet", "main")
    for name in ("m3", "m4"):
        commit(repo, name)
    repo.git("merge", "--quiet", "--no-edit", "side")
    repo.git("checkout", "--quiet", "topic")
    assert true_base in repo.git("merge-base", "--all", "main", "topic").split()
    shallow = clone(repo, tmp_path / "shallow", "--depth=3", "--no-single-branch", "--branch=topic")
    guessed = shallow.git("merge-base", "origin/main", "topic").split()
    assert guessed
    assert true_base not in guessed  # what the plain way takes
    with pytest.raises(BaseUnknown):
        ask(shallow, "origin/main..topic")


def test_a_shallow_clone_that_reaches_far_enough(branched: Repo, tmp_path: Path) -> None:
    branched.git("checkout", "--quiet", "main")
    base = oid(branched, "main~1")
    branched.git("checkout", "--quiet", "topic")
    shallow = clone(branched, tmp_path / "shallow", "--depth=3", "--no-single-branch", "--branch=topic")
    assert shallow.git("rev-parse", "--is-shallow-repository") == "false" or base in shallow.git("rev-list", "--all")
    assert changed(shallow, ask(shallow, "topic")) == ["topic1", "topic2"]


def test_a_shallow_clone_cut_behind_the_common_commit(repo: Repo, tmp_path: Path) -> None:
    for number in range(5):
        commit(repo, f"old{number}")
    repo.git("checkout", "--quiet", "-b", "topic")
    commit(repo, "topic1")
    repo.git("checkout", "--quiet", "main")
    commit(repo, "second")
    shallow = clone(repo, tmp_path / "shallow", "--depth=3", "--no-single-branch", "--branch=topic")
    assert shallow.git("rev-parse", "--is-shallow-repository") == "true"
    assert changed(shallow, ask(shallow, "topic")) == ["topic1"]  # proved: nothing between the tips and it is cut


def test_the_parent_of_a_commit_at_the_cut(branched: Repo, tmp_path: Path) -> None:
    shallow = clone(branched, tmp_path / "shallow", "--depth=2", "--branch=topic")
    assert changed(shallow, ask(shallow, "HEAD")) == ["topic2"]
    with pytest.raises(BaseUnknown):
        ask(shallow, "HEAD~1")


# -- in CI


def test_a_pull_requests_merge_commit(branched: Repo, tmp_path: Path) -> None:
    branched.git("checkout", "--quiet", "--detach", "main")
    branched.git("merge", "--quiet", "--no-edit", "topic")
    env = {"GITHUB_BASE_REF": "main", "GITHUB_REF": "refs/pull/7/merge", "GITHUB_SHA": oid(branched, "HEAD")}
    wanted = ask(branched, env=env)
    assert (wanted.base.name, wanted.base.commit) == ("HEAD^", oid(branched, "main"))
    assert changed(branched, wanted) == changed(branched, ask(branched, "HEAD", env=env)) == ["topic1", "topic2"]
    branched.git("branch", "pull", "HEAD")
    shallow = clone(branched, tmp_path / "shallow", "--depth=1", "--branch=pull")
    with pytest.raises(BaseUnknown, match="depth 1"):
        ask(shallow, env=env)
    deeper = clone(branched, tmp_path / "deeper", "--depth=2", "--branch=pull")
    assert changed(deeper, ask(deeper, env=env)) == ["topic1", "topic2"]


def test_a_pull_requests_head(branched: Repo) -> None:
    env = {"GITHUB_BASE_REF": "main"}
    with pytest.raises(BaseUnknown) as unknown:
        ask(branched, env=env)
    assert unknown.value.hint == "git fetch origin main, or --base REV"
    remote(branched, "origin", oid(branched, "main"))
    assert changed(branched, ask(branched, env=env)) == ["topic1", "topic2"]
    assert changed(branched, ask(branched, env=env, base="HEAD~1")) == ["topic2"]
    assert changed(branched, ask(branched, "main", env=env)) == ["first", "second"][1:]


@pytest.mark.parametrize("ref", ["", "refs/pull/7/merge", "refs/pull/7/head", "refs/heads/topic"])
def test_a_pull_requests_head_that_is_a_merge(ref: str, branched: Repo) -> None:
    """The base was merged into the branch: what was there before must not be taken for the base's."""
    branched.git("merge", "--quiet", "--no-edit", "main")
    env = {"GITHUB_BASE_REF": "main", "GITHUB_REF": ref, "GITHUB_SHA": oid(branched, "main")}
    with pytest.raises(BaseUnknown):
        ask(branched, env=env)
    remote(branched, "origin", oid(branched, "main"))
    for moved in (False, True):
        wanted = ask(branched, env=env)
        assert wanted.base.commit == oid(branched, "main")
        assert changed(branched, wanted) == changed(branched, ask(branched, "HEAD", env=env)) == ["topic1", "topic2"]
        if not moved:
            branched.git("checkout", "--quiet", "--detach", "main")
            remote(branched, "origin", commit(branched, "later"))
            branched.git("checkout", "--quiet", "topic")


def test_a_merge_request(branched: Repo) -> None:
    env = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": oid(branched, "main~1")}
    wanted = ask(branched, env=env)
    assert (wanted.base.name, changed(branched, wanted)) == ("the merge request's base", ["topic1", "topic2"])
    with pytest.raises(BaseUnknown):
        ask(branched, env={"CI_MERGE_REQUEST_DIFF_BASE_SHA": "1" * 40})


# -- pathspecs


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("x.py", "a/b/x.py"),
        ("./x.py", "a/b/x.py"),
        ("../x.py", "a/x.py"),
        (".", "a/b"),
        ("..", "a"),
        ("c/", "a/b/c"),
        ("*.py", "a/b/*.py"),
        (":/x.py", ":/x.py"),
        (":(top)x.py", ":(top)x.py"),
        (":(icase,top)x.py", ":(icase,top)x.py"),
        (":!x.py", ":!a/b/x.py"),
        (":^x.py", ":^a/b/x.py"),
        (":/!x.py", ":/!x.py"),
        (":(exclude)x.py", ":(exclude)a/b/x.py"),
        (":(glob)**/x.py", ":(glob)a/b/**/x.py"),
        (":", ":"),
        ("-x", "a/b/-x"),
    ],
)
def test_pathspecs_from_a_subfolder(repo: Repo, typed: str, meant: str) -> None:
    (repo.path / "a/b").mkdir(parents=True)
    place = layout_of(repo)
    assert within((typed,), place, str(repo.path / "a/b")) == (meant,)
    assert within((typed,), place, str(repo.path)) == (typed,)


def test_pathspecs_without_a_work_tree(make_repo: MakeRepo) -> None:
    bare = make_repo("bare", bare=True)
    assert within(("x", ":!y"), layout_of(bare), str(bare.path / "refs")) == ("x", ":!y")


# -- names


def test_the_empty_tree_is_gits(make_repo: MakeRepo) -> None:
    for object_format in ("sha1", "sha256"):
        repo = make_repo(object_format, object_format=object_format)
        assert target.empty_tree(object_format) == repo.git("hash-object", "-t", "tree", os.devnull)


def test_names_that_are_there_and_not(branched: Repo) -> None:
    git = workspace(branched).git
    assert target.branch_name(git) == "topic"
    assert target.commit_of(git, "main") == oid(branched, "main")
    assert target.tree_of(git, "main") == oid(branched, "main^{tree}")
    assert (target.commit_of(git, "no"), target.commit_of(git, ""), target.tree_of(git, "no")) == ("", "", "")
    branched.git("checkout", "--quiet", "--detach")
    assert target.branch_name(git) == ""
