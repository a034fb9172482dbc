"""Whatever `git add -A` can do, a snapshot gives the same tree, also when it starts from what it kept."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.repo import Repo, init_repo
from tests.snapshots import plain, take

NAMES = ("a", "d", "d/x.txt", "d/y", "n.log", "sub dir/\u00fc", ".gitattributes", ".gitignore")
CONTENTS = ("", "one\n", "two\n", "one\r\ntwo\r\n", "x" * 4000)
RULES = {
    ".gitattributes": {"": "*.txt text\n", "one\n": "*.txt -text\n", "two\n": "* text=auto\n"},
    ".gitignore": {"": "*.log\n", "one\n": "d/\n", "two\n": "*\n"},
}
INDEX = {
    "add": ("add", "--all", "--force"),
    "intend": ("add", "--intent-to-add", "--force"),
    "unstage": ("rm", "--cached", "--quiet", "-r", "--ignore-unmatch"),
    "exec": ("update-index", "--chmod=+x"),
}

NOTHING = st.just("")
WHAT = st.one_of(
    st.tuples(st.sampled_from(("write", "write long ago")), st.sampled_from(NAMES), st.sampled_from(CONTENTS)),
    st.tuples(st.just("remove"), st.sampled_from(NAMES), NOTHING),
    st.tuples(st.just("link"), st.sampled_from(NAMES), st.sampled_from(("d", "nowhere", "a"))),
    st.tuples(st.just("chmod"), st.sampled_from(NAMES), NOTHING),
    st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("index"), st.sampled_from(NAMES), st.sampled_from(tuple(INDEX))),
    st.tuples(st.sampled_from(("commit", "refresh", "nothing")), NOTHING, NOTHING),
)
STEPS = st.lists(st.tuples(WHAT, st.booleans()), min_size=1, max_size=16)


def make_room(path: Path) -> None:
    """A file or link where a folder of the path should be is gone, and the path itself too."""
    for parent in [*reversed(path.parents), path]:
        if parent.is_symlink() or (parent.is_file()):
            parent.unlink()
    if path.is_dir():
        shutil.rmtree(path)
    path.parent.mkdir(parents=True, exist_ok=True)


def do(repo: Repo, step: tuple[str, str, str]) -> None:
    """One step of a person or an agent; one that makes no sense at this moment does nothing."""
    what, name, other = step
    path = repo.path / name
    if what.startswith("write"):
        make_room(path)
        path.write_bytes(RULES.get(name, {}).get(other, other).encode())
        if what == "write long ago":  # git believes its index of such a file, and reads a young one again
            os.utime(path, (1_700_000_000, 1_700_000_000))
    elif what == "link":
        make_room(path)
        path.symlink_to(other)
    elif what == "rename" and path.is_file() and not path.is_symlink():
        held = path.read_bytes()
        path.unlink()
        make_room(repo.path / other)
        (repo.path / other).write_bytes(held)
    elif what == "remove" and os.path.lexists(path):
        make_room(path)
    elif what == "chmod" and path.is_file() and not path.is_symlink():
        path.chmod(path.stat().st_mode ^ 0o111)
    elif what == "index":
        attempt(repo, *INDEX[other], "--", name)
    elif what == "commit":
        attempt(repo, "commit", "--quiet", "--allow-empty", "--message", "step")
    elif what == "refresh":
        attempt(repo, "update-index", "-q", "--refresh")


def attempt(repo: Repo, *words: str) -> None:
    """Git has run, whether it could or not."""
    subprocess.run(["git", *words], cwd=repo.path, capture_output=True, check=False)


def assert_equal(repo: Repo) -> None:
    expected = plain(repo)
    assert expected.code == 0, expected.said
    got = take(repo)
    assert got.skipped == ()
    assert got.tree_id == expected.tree_id, repo.git("status", "--short")


@settings(max_examples=int(os.environ.get("PYTEST_EX", "40")), derandomize="PYTEST_EX" not in os.environ)
@given(STEPS)
def test_any_history_of_a_work_tree_gives_the_tree_of_add_all(steps: list[tuple[tuple[str, str, str], bool]]) -> None:
    repo = init_repo(Path(os.environ["TMPDIR"], os.urandom(6).hex()))
    for step, then_look in steps:
        do(repo, step)
        if then_look:
            assert_equal(repo)
    assert_equal(repo)
    shutil.rmtree(repo.path)
