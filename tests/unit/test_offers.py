"""An offer is made once, twice where it never arrived, and by one hook at a time; a fix is one session's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from git_orch import lease
from git_orch.offers import Offer, Offers

NAME = "5c1e7a02.json"
NOW = 1_000_000.0


def offer(mark: str = "f1", number: int = 1) -> Offer:
    return Offer(fingerprint=mark, finding_id="kmzv", run_id="r", at=NOW, way="stop", round=number)


@pytest.fixture
def durable(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def offers(durable: str) -> Iterator[Offers]:
    opened = opened_now(durable)
    yield opened
    opened.close()


def opened_now(durable: str, name: str = NAME) -> Offers:
    opened = Offers.open(durable, name)
    assert opened is not None
    return opened


def again(durable: str, opened: Offers) -> Offers:
    """The next hook of the session."""
    opened.close()
    return opened_now(durable)


def test_what_was_said_is_not_said_again(durable: str) -> None:
    first = opened_now(durable)
    assert not first.is_told("f1")
    assert first.claim(offer())
    first.said(["f1"])
    second = again(durable, first)
    assert [each.fingerprint for each in second.settle(restarted=False)] == ["f1"]
    assert second.is_told("f1")
    assert not second.claim(offer())
    third = again(durable, second)
    assert third.settle(restarted=False) == []
    assert third.is_told("f1")
    third.close()


def test_what_was_claimed_and_never_said_is_offered_once_more(durable: str) -> None:
    first = opened_now(durable)
    assert first.claim(offer())
    second = again(durable, first)  # it died in between
    assert second.settle(restarted=False) == []
    assert not second.is_told("f1")
    assert second.claim(offer(number=2))
    third = again(durable, second)  # and once more
    assert third.is_told("f1")
    assert not third.claim(offer(number=3))
    assert third.rounds == 2
    third.close()


def test_what_a_client_that_was_started_anew_may_not_have_read_is_offered_once_more(durable: str) -> None:
    first = opened_now(durable)
    assert first.claim(offer())
    first.said(["f1"])
    second = again(durable, first)
    assert second.settle(restarted=True) == []
    assert not second.is_told("f1")
    assert second.claim(offer(number=2))
    second.said(["f1"])
    third = again(durable, second)
    assert [each.times for each in third.settle(restarted=True)] == [2]
    assert third.is_told("f1")
    third.close()


def test_two_hooks_of_one_session_do_not_speak_at_once(durable: str) -> None:
    first = opened_now(durable)
    assert Offers.open(durable, NAME) is None
    other = opened_now(durable, "other.json")
    other.close()
    second = again(durable, first)
    second.close()


def test_rounds_are_counted_by_what_was_asked(offers: Offers) -> None:
    assert offers.rounds == 0
    offers.claim(offer("f1", number=0))
    assert offers.rounds == 0
    offers.claim(offer("f2", number=1))
    offers.claim(offer("f3", number=1))
    offers.claim(offer("f4", number=2))
    assert offers.rounds == 2


def test_a_notice_is_given_once(offers: Offers) -> None:
    assert offers.first_time("codex rate-limited")
    assert not offers.first_time("codex rate-limited")
    assert offers.first_time("codex signed-out")


@pytest.mark.parametrize("raw", ["", "[]", "{}", '{"fingerprint":"f1","state":"sold"}', "\x00", "nonsense"])
def test_a_torn_offer_was_made(durable: str, raw: str) -> None:
    """It is there, so somebody claimed it; what it says does not bring it back."""
    first = opened_now(durable)
    first.claim(offer())
    (Path(durable) / "told" / "5c1e7a02" / "f1.json").write_text(raw)
    second = again(durable, first)
    assert second.rounds == 0
    assert not second.claim(offer())
    second.close()


# -- the lease


def held(durable: str, name: str, *marks: str, now_s: float = NOW) -> list[str]:
    return lease.take(durable, "worktree", name, list(marks), now_s)


def test_a_fix_is_one_sessions(durable: str) -> None:
    assert held(durable, "a.json", "f1", "f2") == ["f1", "f2"]
    assert held(durable, "b.json", "f1", "f3") == ["f3"]
    assert held(durable, "a.json", "f1", "f3") == ["f1"]
    assert lease.take(durable, "elsewhere", "b.json", ["f1"], NOW) == ["f1"]


def test_it_ends_half_an_hour_after_the_session_was_last_heard_of(durable: str) -> None:
    assert held(durable, "a.json", "f1") == ["f1"]
    late = NOW + lease.LEASE_S + 1
    heard = Path(durable) / "sessions" / "a.json"
    heard.parent.mkdir()
    heard.touch()
    os.utime(heard, (late - 60, late - 60))
    assert held(durable, "b.json", "f1", now_s=late) == []
    os.utime(heard, (NOW, NOW))
    assert held(durable, "b.json", "f1", now_s=late) == ["f1"]
    assert held(durable, "a.json", "f1", now_s=late) == []


def test_a_clock_that_was_set_back_keeps_nobody_from_a_fix_for_ever(durable: str) -> None:
    assert held(durable, "a.json", "f1") == ["f1"]
    assert held(durable, "b.json", "f1", now_s=NOW - 60) == []
    assert held(durable, "b.json", "f1", now_s=NOW - 7200) == ["f1"]


@pytest.mark.parametrize("raw", ["", "[]", '{"held": 1}', '{"held": {"f1": {"session": "a"}}}'])
def test_a_torn_lease_holds_nothing(durable: str, raw: str) -> None:
    held(durable, "a.json", "f1")
    path = Path(durable) / "lease" / "worktree.json"
    path.write_text(raw)
    assert held(durable, "b.json", "f1") == ["f1"]
    assert json.loads(path.read_text())["held"]["f1"]["session"] == "b.json"
