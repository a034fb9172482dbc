"""What kept a client from answering, by its own error."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from git_orch.reviewers import faults
from git_orch.reviewers.client import Said

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC).timestamp()


@pytest.fixture(autouse=True)
def local_time_is_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


# As the clients wrote them (docs/reviewers.md), with the HTTP status where their output has it.
@pytest.mark.parametrize(
    ("text", "status", "fault"),
    [
        ("API Error: 529 Overloaded. This is a server-side issue, usually temporary", 529, "overloaded"),
        ("API Error: 529 Overloaded.", 0, "overloaded"),
        ("API Error: Request rejected (429) · This request would exceed your account rate limit", 429, "rate-limited"),
        ("You've hit your session limit · resets 3:20am (UTC)", 0, "rate-limited"),
        ("Credit balance is too low", 400, "quota"),
        ("Prompt is too long · the request is ~250000 tokens (limit 200000)", 400, "too-long"),
        ("Invalid API key · Fix external API key", 401, "signed-out"),
        ("Failed to authenticate. API Error: 403 nope", 403, "signed-out"),
        ("Not logged in · Please run /login", 0, "signed-out"),
        ("You’ve hit your usage limit. Upgrade to Pro, or try again at Dec 1st, 2026 1:53 AM.", 0, "rate-limited"),  # noqa: RUF001 - as it was written
        ("exceeded retry limit, last status: 429 Too Many Requests", 0, "rate-limited"),
        ("unexpected status 401 Unauthorized: bad key, url: http://127.0.0.1:1/v1/responses", 0, "signed-out"),
        ("Quota exceeded. Check your plan and billing details.", 0, "quota"),
        ("We’re currently experiencing high demand, which may cause temporary errors.", 0, "overloaded"),  # noqa: RUF001 - as it was written
        ("stream disconnected before completion: stream closed before response.completed", 0, "cut"),
        ("You exceeded your current quota. Please retry in 47.2s.\nSuggested retry after 2s..", 429, "rate-limited"),
        ("You exceeded your current quota, please check your plan and billing details.", 429, "quota"),
        ("[API Error: 401 Incorrect API key]", 0, "signed-out"),
        ("[API Error: 500 scripted error]", 0, "overloaded"),
        ("[API Error: Model stream ended without a finish reason.]", 0, "cut"),
        ("402 You have no quota (Request ID: x)", 402, "quota"),
        ("Sorry, you have exceeded your rate limit. Please try again in 2 hours 5 minutes.", 429, "rate-limited"),
        ("Input is too long for requested model", 413, "too-long"),
        ("a bug", 0, "failed"),
        ("port 4290 is taken", 0, "failed"),
        ("", 0, "failed"),
    ],
)
def test_the_error_names_its_kind(text: str, status: int, fault: str) -> None:
    assert faults.said(text, status=status, now=NOW).fault == fault


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Said(fault="rate-limited", text="x", resets_at=NOW + 3 * 3600 + 1200), "rate limited until 15:20"),
        (Said(fault="rate-limited", text="slow  down\n"), 'rate limited: "slow down"'),
        (Said(fault="signed-out", text="Not logged in"), 'not signed in: "Not logged in"'),
        (Said(fault="failed", text=""), "it failed"),
        (Said(fault="failed", text="a\x1b]52;c;x\x07\u202eb"), 'it failed: "a\\x1b]52;c;x\\x07\\u202eb"'),
    ],
)
def test_the_reason_is_a_few_words(said: Said, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    assert faults.reason(said) == reason


def test_a_reason_keeps_to_one_line_however_long_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    reason = faults.reason(faults.said("word " * 5000, now=NOW))
    assert len(reason) < 200
    assert "\n" not in reason


def test_another_day_is_named() -> None:
    assert faults.clock(NOW, NOW) == "12:00"
    assert faults.clock(NOW + 86_400, NOW) == "1 Dec 12:00"


def test_a_limit_knows_when_it_ends_and_other_faults_do_not() -> None:
    assert faults.said("rate limit, resets 3pm (UTC)", now=NOW).resets_at == NOW + 3 * 3600
    assert faults.said("Not logged in, resets 3pm", now=NOW).resets_at == 0.0
