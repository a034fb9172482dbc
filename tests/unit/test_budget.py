"""The ledger: what is denied and why, what counts, and what a crash, a torn line or a full file leaves of it."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from git_orch import budget, locks
from git_orch.budget import Denied, Granted
from git_orch.model import UNLIMITED, Budget

NOON = time.mktime((2026, 11, 30, 12, 0, 0, 0, 0, -1))
HOUR = 3600.0


@pytest.fixture
def durable(tmp_path: Path) -> str:
    return str(tmp_path / "orch")


def ask(durable: str, name: str, now: float = NOON, limits: Budget | None = None, **how: Any) -> Granted | Denied:
    told = {"session": "s1", "wanted_usd": 1.0, "is_kept_to": True, **how}
    return budget.reserve(durable, name, limits or Budget(), now=now, **told)


def fill(durable: str, times: int, *, at: float, usd: float = 0.0, tokens: int = 0, session: str = "s1") -> None:
    for number in range(times):
        name = f"{at}-{number}/claude"
        ask(durable, name, at, bound=False, session=session)
        budget.settle(durable, name, usd=usd, tokens=tokens)


def test_the_first_call_is_granted_what_a_review_may_cost(durable: str) -> None:
    assert ask(durable, "r1/claude") == Granted(usd=1.0)
    (spending,) = budget.read(durable, NOON).spendings
    assert (spending.usd, spending.is_open, spending.session) == (1.0, True, "s1")


@pytest.mark.parametrize(
    ("limits", "filled", "reason"),
    [
        (Budget(hour=3), {"times": 3, "at": NOON - 1200}, "3 of 3 agent reviews this hour; next at 12:40"),
        (Budget(day=3, hour=9), {"times": 3, "at": NOON - 7200}, "3 of 3 agent reviews today"),
        (Budget(session=2), {"times": 2, "at": NOON - 60}, "2 of 2 agent reviews of this session"),
        (Budget(tokens=1000), {"times": 2, "at": NOON - 60, "tokens": 500}, "1000 of 1000 tokens today"),
        (Budget(usd=1.0), {"times": 2, "at": NOON - 60, "usd": 0.5}, "$1.00 of $1.00 today"),
        (Budget(hour=0), {"times": 0, "at": NOON}, "0 of 0 agent reviews this hour; next at 13:00"),
    ],
)
def test_each_limit_is_a_reason(durable: str, limits: Budget, filled: dict[str, Any], reason: str) -> None:
    fill(durable, **filled)
    assert ask(durable, "r1/claude", limits=limits) == Denied(reason=reason)
    assert len(budget.read(durable, NOON).spendings) == filled["times"]  # a denial takes nothing


@pytest.mark.parametrize(
    ("limits", "at"),
    [
        (Budget(hour=3), NOON - HOUR - 1),
        (Budget(day=3, hour=9), NOON - 13 * HOUR),  # yesterday, local time
        (Budget(hour=UNLIMITED), NOON - 60),
    ],
)
def test_what_is_past_or_unlimited_is_none(durable: str, limits: Budget, at: float) -> None:
    fill(durable, 3, at=at)
    assert isinstance(ask(durable, "r1/claude", limits=limits), Granted)


def test_another_session_has_its_own_limit_and_shares_the_others(durable: str) -> None:
    fill(durable, 2, at=NOON - 60)
    assert isinstance(ask(durable, "r1/claude", limits=Budget(session=2), session="s2"), Granted)
    assert isinstance(ask(durable, "r2/claude", limits=Budget(hour=3), session="s2"), Denied)


def test_a_person_is_counted_and_never_denied(durable: str) -> None:
    limits = Budget(hour=0, usd=0.0)
    assert ask(durable, "r1/claude", limits=limits, bound=False) == Granted(usd=1.0)
    assert len(budget.read(durable, NOON).hour()) == 1


def test_a_call_is_given_no_more_than_what_is_left(durable: str) -> None:
    """What others have been given and not yet spent is set aside, so that all together stay below the day's limit."""
    limits = Budget(usd=1.5)
    assert ask(durable, "r1/claude", limits=limits) == Granted(usd=1.0)
    assert ask(durable, "r2/claude", limits=limits) == Granted(usd=0.5)
    assert ask(durable, "r3/claude", limits=limits) == Denied(reason="$1.50 of $1.50 today")
    budget.settle(durable, "r1/claude", usd=0.1, tokens=7)
    granted = ask(durable, "r3/claude", limits=limits)
    assert isinstance(granted, Granted)
    assert granted.usd == pytest.approx(0.9)


def test_who_asks_while_another_is_at_the_ledger_sees_what_that_one_wrote(
    durable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two for the last place: the order is forced, and the second waits at the lock."""
    fill(durable, 1, at=NOON - 60)
    other = locks.open_lockable(f"{durable}/{budget.LOCK}", 0)
    assert locks.exclusive(other)
    real, is_asking = locks.exclusive, threading.Event()

    def exclusive(fd: int, *, wait: bool = False) -> bool:
        is_asking.set()
        return real(fd, wait=wait)

    monkeypatch.setattr(locks, "exclusive", exclusive)
    answers: list[Granted | Denied] = []
    second = threading.Thread(target=lambda: answers.append(ask(durable, "r2/claude", limits=Budget(hour=2))))
    second.start()
    assert is_asking.wait(10)
    with open(f"{durable}/{budget.FILE}", "ab") as file:
        file.write(json.dumps({"id": "r1/claude", "at": NOON, "usd": 1.0}).encode() + b"\n")
    os.close(other)
    second.join(10)
    assert answers == [Denied(reason="2 of 2 agent reviews this hour; next at 12:59")]


def test_nothing_is_set_aside_for_a_client_that_keeps_to_no_price(durable: str) -> None:
    ask(durable, "r1/codex", is_kept_to=False)
    assert budget.usd(budget.read(durable, NOON).day()) == 0.0


def test_a_review_whose_supervisor_died_counts_with_all_that_it_was_given(durable: str) -> None:
    ask(durable, "r1/claude")
    ledger = budget.read(durable, NOON + 60)
    assert (len(ledger.hour()), budget.usd(ledger.day()), budget.paid(ledger.day())) == (1, 1.0, 0.0)


def test_a_call_that_was_never_made_does_not_count(durable: str) -> None:
    ask(durable, "r1/claude")
    budget.release(durable, "r1/claude")
    assert budget.read(durable, NOON).spendings == ()


def test_torn_and_foreign_lines_are_passed_over(durable: str) -> None:
    fill(durable, 1, at=NOON, usd=0.25)
    with open(f"{durable}/{budget.FILE}", "ab") as file:
        file.write(b'{"id":7}\n[]\nnull\n{"id":"x","at":"soon"}\n{"id":"y","usd":1}\n{"id":"r0/cl')
    assert ask(durable, "r1/claude", NOON) == Granted(usd=1.0)
    ledger = budget.read(durable, NOON)
    assert [each.usd for each in ledger.spendings] == [0.25, 1.0]


def test_a_file_that_has_grown_large_loses_what_is_old(durable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    fill(durable, 3, at=now - 30 * 86_400, usd=0.5)
    fill(durable, 2, at=now, usd=0.25)
    monkeypatch.setattr(budget, "_LARGE", 10)
    assert ask(durable, "r1/claude", now) == Granted(usd=1.0)
    assert [each.usd for each in budget.read(durable, now).spendings] == [0.25, 0.25, 1.0]
    lines = Path(durable, budget.FILE).read_bytes().splitlines()
    assert all(json.loads(line)["id"] for line in lines)


def test_midnight_is_the_local_one() -> None:
    assert NOON - budget.midnight(NOON) == 12 * HOUR
