"""When a reviewer is ended, by a clock that the test turns: no process, no git."""

from __future__ import annotations

from pathlib import Path

import pytest

from git_orch.attempt import OUTPUT_LIMIT, Attempt, Subject
from git_orch.containment import Containment
from git_orch.guardian import Guard
from git_orch.model import Cancelled, NotStarted, ReviewerSettings, Stalled, TimedOut
from git_orch.store import Store
from tests.entries import intent_of, layout_at, make_registry

TIMEOUT_S, STALL_S = 100.0, 10.0


class Clock:
    """CLOCK_MONOTONIC, which stands still while the machine sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeGuard(Guard):
    """A guard of no process, which notes that it was asked to end its job."""

    def __init__(self) -> None:
        super().__init__()
        self.used_s = 0.0
        self.ended = False

    def cpu_s(self) -> float:
        return self.used_s

    def terminate(self) -> None:
        self.ended = True


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard() -> FakeGuard:
    return FakeGuard()


@pytest.fixture
def attempt(tmp_path: Path, clock: Clock, guard: FakeGuard) -> Attempt:
    """A reviewer at work for no time yet."""
    settings = ReviewerSettings(name="fake", command="x", timeout_s=TIMEOUT_S, stall_s=STALL_S)
    layout = layout_at(tmp_path / "repo")
    book = make_registry(layout)
    subject = Subject(
        intent=intent_of(layout, book, run_dir=str(tmp_path), reviewers=(settings,)),
        store=Store(path="/nowhere", object_format="sha1", env={}),
        key=b"k" * 32,
        env={},
        patch=b"",
        offered=("a.py",),
        containment=Containment(tier=2),
    )
    made = Attempt(settings, subject, clock)
    (tmp_path / "fake").mkdir()
    made.guard = guard
    return made


def pass_time(attempt: Attempt, clock: Clock, seconds: float) -> None:
    """So much time went by, looked at once a second as the supervisor does."""
    for _ in range(int(seconds)):
        clock.now += 1
        attempt.tick()


def write(attempt: Attempt, size_bytes: int, name: str = "result.out") -> None:
    with Path(attempt.folder, name).open("ab") as file:
        file.truncate(file.tell() + size_bytes)


def test_its_time_is_its_own_whatever_it_writes(attempt: Attempt, clock: Clock, guard: FakeGuard) -> None:
    for _ in range(int(TIMEOUT_S)):
        write(attempt, 1)
        pass_time(attempt, clock, 1)
    assert not guard.ended
    assert attempt.due_s() == 0
    pass_time(attempt, clock, 1)
    assert guard.ended
    assert attempt.outcome == TimedOut(after_s=TIMEOUT_S)


def test_who_computes_in_silence_lives(attempt: Attempt, clock: Clock, guard: FakeGuard) -> None:
    """Case 43."""
    for _ in range(int(TIMEOUT_S) - 1):
        guard.used_s += 0.5
        pass_time(attempt, clock, 1)
    assert not guard.ended


@pytest.mark.parametrize("stream", ["result.out", "result.err"])
def test_who_writes_lives(attempt: Attempt, clock: Clock, guard: FakeGuard, stream: str) -> None:
    for _ in range(8):
        write(attempt, 1, stream)
        pass_time(attempt, clock, STALL_S - 1)
    assert not guard.ended


def test_who_neither_writes_nor_computes_is_stalled(attempt: Attempt, clock: Clock, guard: FakeGuard) -> None:
    write(attempt, 1)
    pass_time(attempt, clock, STALL_S + 1)
    guard.used_s += 0.001  # no more than a poll that wakes up
    assert not guard.ended
    pass_time(attempt, clock, 1)
    assert guard.ended
    assert attempt.outcome == Stalled(after_s=STALL_S)


def test_a_machine_that_slept_takes_no_time_from_it(attempt: Attempt, clock: Clock, guard: FakeGuard) -> None:
    """Case 20: two hours of sleep, or a clock that is set back, are nothing to a monotonic clock."""
    pass_time(attempt, clock, 5)
    attempt.tick()  # two hours later by every other clock
    assert not guard.ended
    assert attempt.due_s() == TIMEOUT_S - 5


def test_a_flood_is_stopped_and_cut(attempt: Attempt, guard: FakeGuard) -> None:
    write(attempt, OUTPUT_LIMIT)
    attempt.tick()
    assert not guard.ended
    write(attempt, 1)
    attempt.tick()
    assert guard.ended
    assert attempt.outcome == Cancelled(reason="it wrote more than 64 MiB")


def test_the_first_reason_stays(attempt: Attempt, clock: Clock) -> None:
    attempt.cancel(Cancelled())
    pass_time(attempt, clock, TIMEOUT_S + 1)
    assert attempt.outcome == Cancelled()


def test_one_that_is_cancelled_before_it_starts_never_starts(attempt: Attempt) -> None:
    attempt.guard = None
    attempt.cancel(Cancelled())
    assert attempt.ended
    attempt.launch(-1)
    assert attempt.guard is None


def test_one_that_is_refused_says_why(attempt: Attempt) -> None:
    attempt.guard = None
    attempt.refuse("held back: static found a secret in a.py", "held-back")
    assert attempt.ended
    assert attempt.fault == "held-back"
    assert attempt.outcome == NotStarted(reason="held back: static found a secret in a.py")
