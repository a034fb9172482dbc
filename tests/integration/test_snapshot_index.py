"""The private index: kept between snapshots, shared by many at once, and never believed when it should not be."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from git_orch import index, locks
from git_orch.index import PrivateIndex
from git_orch.store import Store
from tests.repo import Repo
from tests.scratch import layout_of, store_of
from tests.snapshots import content, names, plain, take
from tests.untouched import fingerprint

PROJECT = Path(__file__).parents[2]
KEPT_FILES = ["index", "known", "lock", "seed"]


@pytest.fixture
def started(repo: Repo) -> Repo:
    repo.write("a.txt", "one\n")
    repo.write("b.txt", "two\n")
    repo.commit()
    repo.write("a.txt", "edited\n")
    repo.write("new.txt", "new\n")
    return repo


def kept(repo: Repo) -> Path:
    """The one folder that the snapshots of this worktree keep."""
    (folder,) = Path(layout_of(repo).durable, "worktrees").iterdir()
    return folder


def is_kept(repo: Repo) -> bool:
    """Whether the next snapshot starts from what the last one left."""
    with PrivateIndex(layout_of(repo), store_of(repo), os.environ) as private:
        return private.known.tree_id != ""


# -- what makes it begin anew


def user_index(repo: Repo) -> None:
    repo.git("add", "a.txt")


def settings(repo: Repo) -> None:
    repo.git("config", "core.autocrlf", "input")


def attributes(repo: Repo) -> None:
    repo.write(".git/info/attributes", "*.txt text\n")


def gc(repo: Repo) -> None:
    repo.git("gc", "--quiet", "--prune=now")


def new_store(repo: Repo) -> None:
    subprocess.run(["rm", "-rf", layout_of(repo).store], check=True)


def old(repo: Repo) -> None:
    words = (kept(repo) / "known").read_bytes().split(b"\0")
    words[1] = repr(time.time() - index.KEPT_S - 1).encode()
    (kept(repo) / "known").write_bytes(b"\0".join(words))


def from_the_future(repo: Repo) -> None:
    words = (kept(repo) / "known").read_bytes().split(b"\0")
    words[1] = repr(time.time() + 3600).encode()
    (kept(repo) / "known").write_bytes(b"\0".join(words))


def torn(repo: Repo) -> None:
    known = (kept(repo) / "known").read_bytes()
    (kept(repo) / "known").write_bytes(known[: len(known) // 4])


def empty(repo: Repo) -> None:
    (kept(repo) / "known").write_bytes(b"")


@pytest.mark.parametrize("change", [user_index, settings, attributes, gc, new_store, old, from_the_future, torn, empty])
def test_it_begins_anew_after(started: Repo, change: Callable[[Repo], None]) -> None:
    first = take(started)
    assert is_kept(started)
    change(started)
    assert not is_kept(started)
    assert take(started).tree_id == first.tree_id
    assert store_of(started).missing(first.tree_id) == []
    assert is_kept(started)


def test_it_is_younger_than_what_the_stores_gc_takes() -> None:
    expiry = inspect.signature(Store.gc).parameters["prune_expire"].default
    number, unit, _ = expiry.split(".")
    assert unit == "hours"
    assert int(number) * 3600 >= 2 * index.KEPT_S


def test_after_the_gc_of_the_store_nothing_is_missing(started: Repo) -> None:
    first = take(started)
    objects = Path(store_of(started).objects)
    long_ago = time.time() - 3 * 3600
    for path in objects.glob("??/*"):
        os.utime(path, (long_ago, long_ago))
    old(started)  # as old as its objects
    assert store_of(started).gc() == ""
    assert store_of(started).missing(first.tree_id) != []  # so the kept index names objects that are gone
    assert take(started).tree_id == first.tree_id
    assert store_of(started).missing(first.tree_id) == []


# -- killed


def test_a_snapshot_that_was_killed_leaves_nothing_to_believe(started: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    take(started)

    def killed(_self: PrivateIndex) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(PrivateIndex, "write_tree", killed)
    started.write("new.txt", "newer\n")
    with pytest.raises(KeyboardInterrupt):
        take(started)
    monkeypatch.undo()
    assert not is_kept(started)
    (kept(started) / "index.lock").write_bytes(b"of a git that was killed")
    taken = take(started)
    assert content(started, taken.tree_id, "new.txt") == b"newer\n"
    assert sorted(path.name for path in kept(started).iterdir()) == KEPT_FILES


def test_what_the_killed_left_is_gone_after_an_hour(started: Repo) -> None:
    take(started)
    left, young = kept(started) / "4711-aabbccdd", kept(started) / "4712-aabbccdd"
    for folder in (left, young):
        folder.mkdir()
        (folder / "index").write_bytes(b"")
    os.utime(left, (1, 1))
    take(started)
    assert (left.exists(), young.exists()) == (False, True)


# -- a file that goes and comes back just while git looks


@pytest.mark.parametrize("name", ["a.txt", "fresh.txt"])
def test_a_file_that_is_away_for_the_moment_in_which_git_looks(
    started: Repo, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    take(started)
    path = started.write(name, "there before and after\n")
    original = PrivateIndex.add

    def blink(self: PrivateIndex, paths: Sequence[bytes], until: float = 0.0) -> dict[bytes, str]:
        path.rename(started.path.parent / "away")
        lost = original(self, paths, until)
        (started.path.parent / "away").rename(path)
        return lost

    monkeypatch.setattr(PrivateIndex, "add", blink)
    assert name not in names(started, take(started).tree_id)
    monkeypatch.undo()
    assert content(started, take(started).tree_id, name) == b"there before and after\n"
    started.write(".git/info/exclude", "fresh.txt\n")
    assert take(started).tree_id == plain(started).tree_id
    assert take(started).tree_id == plain(started).tree_id


@pytest.mark.parametrize("name", ["new.txt", "fresh.txt"])
def test_an_untracked_file_that_cannot_be_added_is_not_in_the_tree(
    started: Repo, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert "new.txt" in names(started, take(started).tree_id)
    path = started.write(name, "newer\n")

    def refuse(_self: PrivateIndex, _paths: Sequence[bytes], _until: float = 0.0) -> dict[bytes, str]:
        path.unlink()
        path.write_text("and another\n")
        return {os.fsencode(name): "cannot be added"}

    monkeypatch.setattr(PrivateIndex, "add", refuse)
    taken = take(started)
    assert name not in names(started, taken.tree_id)
    assert [(left_out.path, left_out.tracked) for left_out in taken.skipped] == [(name, False)]
    monkeypatch.undo()
    started.write(".git/info/exclude", "fresh.txt\nnew.txt\n")
    assert names(started, take(started).tree_id) == ["a.txt", "b.txt"]


# -- many at once

TAKE_WHEN_TOLD = """
import os, sys
from git_orch import config, layout, snapshot, store
place = layout.locate(os.getcwd(), os.environ)
scratch = store.ensure(place, os.environ)
sys.stdin.read()
for _ in range(2):
    print(snapshot.take(place, scratch, config.Settings(), os.environ, snapshot.Limits()).tree_id)
"""


@pytest.mark.parametrize("number", [8, pytest.param(64, marks=pytest.mark.slow)])
def test_many_snapshots_at_once(started: Repo, number: int) -> None:
    expected = plain(started).tree_id
    before = fingerprint(started)
    store_of(started)
    read_end, write_end = os.pipe()
    processes = [
        subprocess.Popen(
            [sys.executable, "-S", "-c", TAKE_WHEN_TOLD],
            cwd=started.path,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            stdin=read_end,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(number)
    ]
    os.close(read_end)
    os.close(write_end)  # all of them begin now
    said = [process.communicate(timeout=100)[0].split() for process in processes]
    assert said == [[expected, expected]] * number
    assert [process.returncode for process in processes] == [0] * number
    assert sorted(path.name for path in kept(started).iterdir()) == KEPT_FILES
    assert fingerprint(started) == before
    assert take(started).tree_id == expected


def test_two_worktrees_have_two_indexes(started: Repo, tmp_path: Path) -> None:
    started.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked")
    linked.write("only-here.txt", "1\n")
    first, second = take(started), take(linked)
    assert (take(started).tree_id, take(linked).tree_id) == (first.tree_id, second.tree_id)
    assert names(started, second.tree_id) == ["a.txt", "b.txt", "only-here.txt"]
    assert len(list(Path(layout_of(started).durable, "worktrees").iterdir())) == 2


def test_a_file_system_without_links_and_locks(started: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("os.link", refuse)
    monkeypatch.setattr(locks, "exclusive", refuse)
    assert take(started).tree_id == take(started).tree_id == plain(started).tree_id
    assert [path.name for path in kept(started).iterdir()] == ["lock"]
