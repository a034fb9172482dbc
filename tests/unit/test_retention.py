"""Old runs go, with all that is kept on their account, and nothing that lives does."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Any, cast

import pytest

from git_orch import dedup, registry, retention, runs
from git_orch.key import digest
from git_orch.layout import Layout
from git_orch.registry import Registry
from git_orch.store import Store
from tests.entries import end_run, intent_of, layout_at, make_registry

DAY_S = 86400.0
KIB = 1 << 10
PLENTY: dict[str, Any] = {"keep_runs": 200, "keep_days": 30, "keep_bytes": 1 << 30}


class Ledger:
    """A store of which only what was released is known."""

    def __init__(self) -> None:
        self.released: list[str] = []
        self.calls = 0

    def release(self, *run_ids: str) -> None:
        self.calls += 1
        self.released += run_ids


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return layout_at(tmp_path / "repo")


@pytest.fixture
def book(layout: Layout) -> Registry:
    return make_registry(layout)


def retire(layout: Layout, ledger: Ledger, *, entries: tuple[str, ...] = (), **limits: int) -> list[str]:
    store = cast(Store, ledger)
    kept: dict[str, Any] = {**PLENTY, **limits}
    gone = retention.retire(layout.durable, store, entries=entries, **kept)
    assert sorted(gone) == list(gone)
    assert not [run_id for run_id in gone if os.path.lexists(layout.run_dir(run_id))]
    assert ledger.released == list(gone)
    return list(gone)


def ended(layout: Layout, book: Registry, *, days_ago: float = 0.0, size: int = 0) -> str:
    """A run that ended, of that age, with that many bytes of output."""
    run_id = registry.make_run_id(time.time() - days_ago * DAY_S)
    end_run(intent_of(layout, book, run_id))
    folder = Path(layout.run_dir(run_id), "static")
    folder.mkdir()
    (folder / "result.out").write_bytes(b"x" * size)
    return run_id


def left(layout: Layout) -> list[str]:
    return runs.run_ids(layout.runs)


def test_nothing_goes_before_its_time(layout: Layout, book: Registry, ledger: Ledger) -> None:
    kept = sorted(ended(layout, book, days_ago=days) for days in (0, 1, 29.9))
    assert retire(layout, ledger) == []
    assert left(layout) == kept
    assert ledger.calls == 0  # no git is started for nothing


def test_where_there_is_nothing_nothing_is_made(layout: Layout, ledger: Ledger) -> None:
    assert retire(layout, ledger) == []
    assert not os.path.lexists(layout.durable)


def test_the_oldest_of_too_many_go(layout: Layout, book: Registry, ledger: Ledger) -> None:
    kept = sorted(ended(layout, book, days_ago=days) for days in (5, 4, 3, 2, 1))
    assert retire(layout, ledger, keep_runs=3) == kept[:2]
    assert left(layout) == kept[2:]
    assert ledger.calls == 1


def test_those_that_are_too_old_go(layout: Layout, book: Registry, ledger: Ledger) -> None:
    old = sorted(ended(layout, book, days_ago=days) for days in (30.1, 400))
    young = ended(layout, book, days_ago=29)
    assert retire(layout, ledger) == old
    assert left(layout) == [young]


def test_those_that_are_too_large_together_go_and_the_newest_never(
    layout: Layout, book: Registry, ledger: Ledger
) -> None:
    kept = sorted(ended(layout, book, days_ago=days, size=100 * KIB) for days in (3, 2, 1))
    assert retire(layout, ledger, keep_bytes=250 * KIB) == kept[:1]
    assert left(layout) == kept[1:]
    ledger.released.clear()
    assert retire(layout, ledger, keep_bytes=1) == kept[1:2]
    assert left(layout) == kept[2:]


@pytest.mark.parametrize("limits", [{"keep_runs": 0}, {"keep_days": 0}, {"keep_runs": 1, "keep_bytes": 0}])
def test_a_run_that_lives_is_never_taken(
    layout: Layout, book: Registry, ledger: Ledger, limits: dict[str, Any]
) -> None:
    """With a record, without an entry, and yet with a supervisor that has not come to its end."""
    run_id = ended(layout, book, days_ago=1)
    ended(layout, book)
    fd = runs.hold(layout.run_dir(run_id))
    retire(layout, ledger, **limits)
    assert run_id in left(layout)
    os.close(fd)
    ledger.released.clear()
    retire(layout, ledger, **limits)
    assert run_id not in left(layout)


def test_a_run_that_waits_for_the_reaper_is_never_taken(layout: Layout, book: Registry, ledger: Ledger) -> None:
    run_id = ended(layout, book, days_ago=99)
    assert retire(layout, ledger, entries=(run_id,)) == []
    assert retire(layout, ledger) == [run_id]


def test_what_was_never_published_goes_after_a_day(layout: Layout, book: Registry, ledger: Ledger) -> None:
    begun = [registry.make_run_id(time.time() - DAY_S * days) for days in (0, 2)]
    for run_id in begun:
        runs.make_folder(layout.run_dir(run_id))
    then = time.time() - 2 * DAY_S
    os.utime(layout.run_dir(begun[1]), (then, then))
    ended(layout, book)
    assert retire(layout, ledger, keep_runs=1) == begun[1:]
    assert begun[0] in left(layout)


def test_a_clock_that_was_set_back_takes_nothing(layout: Layout, book: Registry, ledger: Ledger) -> None:
    """The new run's id sorts before those of the hour that was lived twice."""
    earlier = ended(layout, book, days_ago=-1 / 24)
    now = ended(layout, book)
    assert retire(layout, ledger, keep_runs=2) == []
    assert left(layout) == [now, earlier]


def test_what_hangs_on_a_run_goes_with_it(layout: Layout, book: Registry, ledger: Ledger) -> None:
    old, young = ended(layout, book, days_ago=99), ended(layout, book)
    for run_id in (old, young):
        dedup.claim(layout, digest(run_id), run_id)
        (Path(layout.durable, "kept", run_id, "static", "closed")).mkdir(parents=True)
        Path(layout.durable, "kept", run_id, "static", "closed").chmod(0)
    assert retire(layout, ledger) == [old]
    assert os.listdir(Path(layout.durable, "index")) == [digest(young)]
    assert os.listdir(Path(layout.durable, "kept")) == [young]
    Path(layout.durable, "kept", young, "static", "closed").chmod(0o700)


def test_a_removal_that_was_killed_is_finished(layout: Layout, book: Registry, ledger: Ledger) -> None:
    run_id = ended(layout, book)
    trash = Path(layout.runs, f"{runs.TRASH}20200101T000000000-00000000")
    trash.mkdir()
    (trash / "record.json").write_text("{}")
    assert retire(layout, ledger) == []
    assert os.listdir(layout.runs) == [run_id]


# -- what is no run's


@pytest.mark.usefixtures("book")
def test_sessions_that_have_been_silent_for_as_long_go(layout: Layout, ledger: Ledger) -> None:
    folder = Path(layout.durable, "sessions")
    folder.mkdir()
    for name, days in (("old", 31), ("young", 29)):
        (folder / f"{name}.json").write_text("{}")
        then = time.time() - days * DAY_S
        os.utime(folder / f"{name}.json", (then, then))
        (folder / f"{name}.seen").touch()
        os.utime(folder / f"{name}.seen", (0, 0))  # there have been no news yet
    (folder / "gone.seen").touch()
    (folder / "typing.prompt").touch()
    (folder / "typing.json").write_text("{}")
    os.utime(folder / "typing.json", (then, then - 9 * DAY_S))
    retire(layout, ledger)
    assert sorted(os.listdir(folder)) == ["typing.json", "typing.prompt", "young.json", "young.seen"]


def worktree_folder(layout: Layout, git_dir: str) -> Path:
    folder = Path(layout.durable, "worktrees", digest(git_dir)[:16])
    folder.mkdir(parents=True)
    for name in ("index", "seed", "turn", "lock"):
        (folder / name).write_text("")
    return folder


@pytest.mark.usefixtures("book")
def test_what_was_kept_for_a_worktree_goes_when_git_knows_it_no_more(layout: Layout, ledger: Ledger) -> None:
    linked = os.path.join(layout.common_dir, "worktrees", "feature")
    os.makedirs(linked)
    here, there = worktree_folder(layout, layout.git_dir), worktree_folder(layout, linked)
    gone = worktree_folder(layout, os.path.join(layout.common_dir, "worktrees", "gone"))
    strange = Path(layout.durable, "worktrees", "mine")
    strange.mkdir()
    retire(layout, ledger)
    assert here.exists()
    assert there.exists()
    assert not gone.exists()
    assert strange.exists()


@pytest.mark.parametrize("name", ["turn", "lock"])
@pytest.mark.usefixtures("book")
def test_a_worktree_that_is_gone_but_in_use_is_left(layout: Layout, ledger: Ledger, name: str) -> None:
    gone = worktree_folder(layout, "/nonesuch")
    fd = os.open(gone / name, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    retire(layout, ledger)
    assert gone.exists()
    os.close(fd)
    retire(layout, ledger)
    assert not gone.exists()


@pytest.mark.usefixtures("book")
def test_a_copied_index_that_was_left_goes_after_a_day(layout: Layout, ledger: Ledger) -> None:
    folder = Path(layout.durable, "worktrees")
    folder.mkdir()
    for name, days in (("staged-1-00000000", 2), ("staged-2-00000000", 0)):
        (folder / name).write_text("")
        then = time.time() - days * DAY_S
        os.utime(folder / name, (then, then))
    retire(layout, ledger)
    assert os.listdir(folder) == ["staged-2-00000000"]
