"""Which reviewers rest, for how long, and when a pause begins anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from git_orch import cooldown
from git_orch.cooldown import Cooldown

NOW = 1_800_000_000.0


@pytest.fixture
def durable(tmp_path: Path) -> str:
    return str(tmp_path)


def test_nobody_rests_who_was_never_told_to(durable: str) -> None:
    assert cooldown.of(durable, "claude", NOW) is None
    assert cooldown.resting(durable, NOW) == {}


def test_the_time_that_the_provider_named_is_kept_to(durable: str) -> None:
    cooldown.note(durable, "codex", "rate-limited", until=NOW + 50, now=NOW)
    rests = Cooldown(fault="rate-limited", until=NOW + 50)
    assert cooldown.of(durable, "codex", NOW + 49) == rests
    assert cooldown.of(durable, "codex", NOW + 50) is None
    assert cooldown.resting(durable, NOW) == {"codex": rests}
    assert cooldown.of(durable, "claude", NOW) is None


@pytest.mark.parametrize(
    ("fault", "pauses"),
    [
        ("rate-limited", [300, 600, 1200, 2400, 3600, 3600]),
        ("quota", [3600, 7200, 14400, 21600]),
        ("overloaded", [60, 120, 240, 480, 900]),
    ],
)
def test_where_nobody_said_the_pause_grows(durable: str, fault: str, pauses: list[int]) -> None:
    at = NOW
    for pause in pauses:
        cooldown.note(durable, "claude", fault, now=at)
        rests = cooldown.of(durable, "claude", at)
        assert rests is not None
        assert rests.until - at == pause
        at = rests.until


def test_an_answer_begins_anew(durable: str) -> None:
    for _ in range(3):
        cooldown.note(durable, "claude", "overloaded", now=NOW)
    cooldown.clear(durable, "claude")
    assert cooldown.of(durable, "claude", NOW) is None
    cooldown.note(durable, "claude", "overloaded", now=NOW)
    assert cooldown.of(durable, "claude", NOW) == Cooldown(fault="overloaded", until=NOW + 60)


@pytest.mark.parametrize("fault", ["signed-out", "failed", "cut", "too-long", "over-budget", ""])
def test_what_does_not_pass_with_time_is_no_reason_to_wait(durable: str, fault: str) -> None:
    cooldown.note(durable, "claude", fault, until=NOW + 50, now=NOW)
    assert cooldown.of(durable, "claude", NOW) is None


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"{}", b'{"fault":"x","until":9e9,"times":1}', b'{"fault":"quota"', b"\xff"]
)
def test_a_file_that_is_none_of_ours_rests_nobody(durable: str, raw: bytes) -> None:
    cooldown.note(durable, "claude", "quota", now=NOW)
    Path(durable, cooldown.FOLDER, "claude.json").write_bytes(raw)
    assert cooldown.of(durable, "claude", NOW) is None
    cooldown.note(durable, "claude", "quota", now=NOW)
    assert cooldown.of(durable, "claude", NOW) is not None


def test_a_clock_that_was_set_back_makes_no_pause_of_years(durable: str) -> None:
    cooldown.note(durable, "claude", "quota", now=NOW)
    assert cooldown.of(durable, "claude", NOW - 400 * 86_400) is None
