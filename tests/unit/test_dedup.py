"""A verdict's key: claimed once, held while its run lives or its verdict can be used, never taken from another."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Any

import pytest

from git_orch import dedup, runs
from git_orch.dedup import Duplicate
from git_orch.layout import Layout
from git_orch.registry import Intent, Registry
from tests.entries import dead_run, end_run, intent_of, layout_at, make_registry

KEY = "c" * 32


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return layout_at(tmp_path / "repo")


@pytest.fixture
def book(layout: Layout) -> Registry:
    return make_registry(layout)


@pytest.fixture
def dead(layout: Layout, book: Registry) -> Intent:
    """A dead run that has claimed the key."""
    intent = dead_run(layout, book)
    assert dedup.claim(layout, KEY, intent.run_id) is None
    return intent


def owner(layout: Layout) -> str:
    path = Path(layout.durable, "index", KEY)
    return path.read_text() if path.exists() else ""


def newcomer(layout: Layout, book: Registry) -> str:
    return intent_of(layout, book).run_id


def test_the_first_one_has_the_key_while_its_launcher_holds_its_entry(layout: Layout, book: Registry) -> None:
    first = intent_of(layout, book)
    lock = book.publish(first)
    assert dedup.standing(layout, KEY) is None
    assert dedup.claim(layout, KEY, first.run_id) is None
    assert dedup.claim(layout, KEY, newcomer(layout, book)) == Duplicate(run_id=first.run_id)
    assert dedup.standing(layout, KEY) == Duplicate(run_id=first.run_id)
    os.close(lock.fd)


@pytest.mark.usefixtures("dead")
def test_a_dead_run_keeps_nothing_from_being_reviewed(layout: Layout, book: Registry) -> None:
    assert dedup.standing(layout, KEY) is None
    second = newcomer(layout, book)
    assert dedup.claim(layout, KEY, second) is None
    assert owner(layout) == second


def test_a_supervisor_whose_entry_was_wiped_still_has_the_key(layout: Layout, book: Registry, dead: Intent) -> None:
    book.remove(dead.run_id)
    fd = runs.hold(dead.run_dir)
    assert dedup.claim(layout, KEY, newcomer(layout, book)) == Duplicate(run_id=dead.run_id)
    os.close(fd)
    assert dedup.standing(layout, KEY) is None


@pytest.mark.parametrize(
    ("verdict", "reused"), [("pass", True), ("findings", True), ("nothing-to-review", True), ("unreviewed", False)]
)
def test_a_verdict_is_used_again_and_unreviewed_never(layout: Layout, dead: Intent, verdict: str, reused: bool) -> None:
    end_run(dead, verdict=verdict)
    assert (dedup.standing(layout, KEY) == Duplicate(run_id=dead.run_id)) == reused


@pytest.mark.parametrize("raw", ["", "../../../etc/passwd", "x" * 65, "20261130T201500123-9F3A61C2"])
@pytest.mark.usefixtures("dead")
def test_what_names_no_run_is_nobodys(layout: Layout, book: Registry, raw: str) -> None:
    Path(layout.durable, "index", KEY).write_text(raw)
    assert dedup.standing(layout, KEY) is None
    second = newcomer(layout, book)
    assert dedup.claim(layout, KEY, second) is None
    assert owner(layout) == second


@pytest.mark.usefixtures("dead")
def test_two_that_find_the_owner_dead_do_not_take_the_key_from_each_other(
    layout: Layout, book: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the first one's look at the owner and its claim comes the second one: it has to wait, then to yield."""
    first, second = intent_of(layout, book), intent_of(layout, book)
    locks = [book.publish(first), book.publish(second)]
    real = dedup.standing
    seen: list[bool] = []

    def late(*args: Any) -> Duplicate | None:
        found = real(*args)
        if not seen:
            fd = os.open(Path(layout.durable, "index"), os.O_RDONLY)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                seen.append(True)
            except BlockingIOError:
                seen.append(False)
            os.close(fd)
        return found

    monkeypatch.setattr(dedup, "standing", late)
    assert dedup.claim(layout, KEY, first.run_id) is None
    assert seen == [False]  # nobody else could have changed a key meanwhile
    assert dedup.claim(layout, KEY, second.run_id) == Duplicate(run_id=first.run_id)
    for lock in locks:
        os.close(lock.fd)


@pytest.mark.usefixtures("dead")
def test_a_lock_that_somebody_sits_on_holds_nobody_up_for_long(layout: Layout, book: Registry) -> None:
    fd = os.open(Path(layout.durable, "index"), os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    start = time.monotonic()
    assert dedup.claim(layout, KEY, newcomer(layout, book)) is None
    assert time.monotonic() - start < 5
    os.close(fd)


def test_a_key_is_given_back_by_its_owner_alone(layout: Layout, book: Registry, dead: Intent) -> None:
    dedup.unclaim(layout.durable, KEY, newcomer(layout, book))
    assert owner(layout) == dead.run_id
    dedup.unclaim(layout.durable, KEY, dead.run_id)
    assert owner(layout) == ""
    dedup.unclaim(layout.durable, KEY, dead.run_id)
    dedup.unclaim(layout.durable, "", dead.run_id)


def test_there_may_be_no_index_yet(layout: Layout, book: Registry) -> None:
    assert dedup.standing(layout, KEY) is None
    dedup.unclaim(layout.durable, KEY, newcomer(layout, book))
    dedup.release(layout.durable)
    assert not Path(layout.durable, "index").exists()


def test_keys_of_runs_that_are_gone_do_not_pile_up(layout: Layout, book: Registry, dead: Intent) -> None:
    index = Path(layout.durable, "index")
    for number in range(20):
        dedup.claim(layout, f"{number:032x}", newcomer(layout, book))
    (index / f".{KEY}.77-0a1b2c3d.tmp").write_text(newcomer(layout, book))  # of a claimer that was killed
    dedup.release(layout.durable)
    assert os.listdir(index) == [KEY]
    assert owner(layout) == dead.run_id


def test_a_key_that_changes_hands_meanwhile_stays(
    layout: Layout, book: Registry, dead: Intent, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.remove(dead.run_dir)
    successor = dead_run(layout, book)
    real = dedup._lock

    def late(folder: str) -> int:
        Path(folder, KEY).write_text(successor.run_id)
        return real(folder)

    monkeypatch.setattr(dedup, "_lock", late)
    dedup.release(layout.durable)
    assert owner(layout) == successor.run_id
