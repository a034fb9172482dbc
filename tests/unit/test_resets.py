"""When a limit is over, out of the sentences in which clients and providers tell it."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_orch.reviewers import resets

NOW = datetime(2026, 11, 30, 23, 53, 10, tzinfo=UTC).timestamp()


def at(text: str) -> float:
    """The instant, UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.fixture(autouse=True)
def local_time_is_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("You've hit your session limit · resets 3:20am (UTC)", "2026-12-01 03:20"),
        ("You've hit your limit · resets 11:55pm (UTC)", "2026-11-30 23:55"),
        ("resets 3pm (UTC)", "2026-12-01 15:00"),
        ("resets 12am (UTC)", "2026-12-01 00:00"),
        ("resets 12:30pm (UTC)", "2026-12-01 12:30"),
        ("5-hour limit reached ∙ resets 3am", "2026-12-01 03:00"),
        ("weekly limit reached, resets Dec 4, 5pm (Europe/Berlin)", "2026-12-04 16:00"),
        ("resets Jan 2 at 9:00 (America/New_York)", "2027-01-02 14:00"),
        ("rate limited until 15:20", "2026-12-01 15:20"),
        (
            "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit "  # noqa: RUF001 - as it was written
            "https://chatgpt.com/settings/usage to purchase more credits or try again at Dec 1st, 2026 1:53 AM.",
            "2026-12-01 01:53",
        ),
        ("usage limit reached|1796090000", "2026-12-01 01:53:20"),
        ('{"resets_at": 1796090000}', "2026-12-01 01:53:20"),
        ('{"resets_at": 1796090000000}', "2026-12-01 01:53:20"),
        ("limit resets at 2026-12-01T04:05:06Z", "2026-12-01 04:05:06"),
        ("limit resets at 2026-12-01T04:05:06+02:00", "2026-12-01 02:05:06"),
        ("Please retry in 47.2s.", "2026-11-30 23:53:57.2"),
        ("Please try again in 2 hours 5 minutes.", "2026-12-01 01:58:10"),
        ("Try again in 2h5m", "2026-12-01 01:58:10"),
        ("try again in 1 day, 3 hours and 2 min", "2026-12-02 02:55:10"),
        ("Rate limit reached. Please wait for 90 seconds", "2026-11-30 23:54:40"),
        ("Retrying after 5499ms", ""),  # its own pause between two tries
        ("retry-after: 120", "2026-11-30 23:55:10"),
        ('"retryDelay":"34s"', "2026-11-30 23:53:44"),
        ("Your limit resets in 3 weeks", "2026-12-21 23:53:10"),
    ],
)
def test_the_sentence_says_when(text: str, when: str) -> None:
    wanted = at(when) if when else 0.0
    assert resets.parse(text, NOW) == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Overloaded",
        "API Error: Request rejected (429) · This request would exceed your account rate limit",
        "try again in a moment",
        "resets 25:70",
        "resets 13pm",
        "resets Feb 31, 3pm",
        "try again in 2 years",
        "resets 2020-01-01T00:00:00Z",
        "limit 1796090000",
        "version 2.1.332 was released at 15:20",
        "see https://example.com/until/15",
    ],
)
def test_what_says_no_time_gives_none(text: str) -> None:
    assert resets.parse(text, NOW) == 0.0


def test_a_time_of_day_without_a_zone_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert resets.parse("resets 3:20am", NOW) == at("2026-12-01 18:20")  # it is 8:53 there
    assert resets.parse("resets 9:20am", NOW) == at("2026-12-01 00:20")


def test_an_unknown_zone_counts_as_local() -> None:
    assert resets.parse("resets 3:20am (Nowhere/Land)", NOW) == at("2026-12-01 03:20")


@given(st.text(max_size=200))
def test_no_text_breaks_it_and_no_time_is_beyond_a_month(text: str) -> None:
    for sentence in (text, f"resets {text}", f"try again in {text}"):
        found = resets.parse(sentence, NOW)
        assert found == 0.0 or NOW < found <= NOW + resets.LONGEST_S


def test_a_long_text_takes_no_time() -> None:
    begun = time.process_time()
    for filler in ("resets ", "1 h ", "a", "9", " in 1h", "try again "):
        resets.parse(filler * 20_000, NOW)
    assert time.process_time() - begun < 5.0
    assert os.environ["TZ"] == "UTC"
