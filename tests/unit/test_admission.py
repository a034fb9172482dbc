"""The order in which an agent is asked about at the door, and the session's quiet, by a clock that a test sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from git_orch import admission, budget, cooldown, quiet, seats, session_name
from git_orch.admission import Admission, Admitted, Refused, Waits
from git_orch.model import Budget, Review, Usage, utc_stamp
from git_orch.registry import Intent

NOW = 1_800_000_000.25


@pytest.fixture
def intent(tmp_path: Path) -> Intent:
    (tmp_path / "orch" / "sessions").mkdir(parents=True)
    names = ("tree_id", "base_tree_id", "subject", "base_name", "temp_root", "run_dir", "common_dir", "git_dir")
    words: dict[str, Any] = dict.fromkeys(names, "x")
    return Intent(
        **words,
        run_id="20261130T201500123-9f3a61c2",
        durable=str(tmp_path / "orch"),
        objects="x",
        object_format="sha1",
        worktree_path="/src/shop",
        started_at=utc_stamp(NOW),
        reviewers=(),
        client="claude",
        session_id="s1",
        settle_s=15.0,
        max_reviews=1,
        budget=Budget(hour=2),
    )


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


def door(intent: Intent, env: dict[str, str], now: float = NOW, **changes: Any) -> Admission:
    return Admission(intent.replace(**changes), env, clock=lambda: now)


def ended(verdict: Any = "pass", **changes: Any) -> Review:
    return Review(name="claude", outcome="completed", verdict=verdict, **changes)


@pytest.mark.parametrize("seconds", [0.0, 951_782_400.0, 1_709_164_800.5, NOW, 4_102_444_799.999])
def test_a_stamp_is_read_as_it_was_written(seconds: float) -> None:
    assert admission.seconds(utc_stamp(seconds)) == pytest.approx(seconds, abs=0.0011)
    assert admission.seconds("soon") == 0.0


@pytest.mark.parametrize(("later_s", "left_s"), [(0.0, 15.0), (5.0, 10.0), (15.0, 0.0), (999.0, 0.0), (-999.0, 15.0)])
def test_quiet_is_counted_from_the_stop(intent: Intent, env: dict[str, str], later_s: float, left_s: float) -> None:
    """A clock that is set back makes nobody wait for longer than the setting."""
    assert door(intent, env, NOW + later_s).quiet_in_s() == pytest.approx(left_s, abs=0.01)
    assert door(intent, env, NOW + later_s, client="you").quiet_in_s() == 0.0


def test_a_prompt_after_the_stop_overtakes_and_one_before_does_not(intent: Intent, env: dict[str, str]) -> None:
    name = session_name.of("claude", "s1", "/src/shop")
    assert not door(intent, env).is_overtaken()
    quiet.disturb(intent.durable, name)
    began_before, began_after = utc_stamp(1_000_000_000.0), utc_stamp(4_000_000_000.0)
    assert door(intent, env, started_at=began_before).is_overtaken()
    assert not door(intent, env, started_at=began_after).is_overtaken()
    assert not door(intent, env, started_at=began_before, session_id="s2").is_overtaken()
    assert not door(intent, env, started_at=began_before, client="you").is_overtaken()


def test_what_is_refused_takes_neither_a_seat_nor_a_place(intent: Intent, env: dict[str, str]) -> None:
    cooldown.note(intent.durable, "claude", "quota", until=NOW + 60, now=NOW)
    refused = door(intent, env).enter("claude", 1.0)
    assert isinstance(refused, Refused)
    assert (refused.fault, refused.until) == ("quota", NOW + 60)
    assert refused.reason.startswith("its quota is used up until ")
    assert (seats.taken(env, 1), budget.read(intent.durable, NOW).spendings) == (0, ())
    assert isinstance(door(intent, env, fresh=True).enter("claude", 1.0), Admitted)


def test_who_waits_for_a_seat_holds_no_place_in_the_budget(intent: Intent, env: dict[str, str]) -> None:
    first, second = door(intent, env), door(intent, env, run_id="20261130T201500123-00000002")
    assert first.enter("claude", 1.0) == Admitted(usd=1.0)
    assert second.enter("claude", 1.0) == Waits()
    assert len(budget.read(intent.durable, NOW).hour()) == 1
    first.leave("claude", ended(usage=Usage(cost_usd=0.2, tokens=9)), was_called=True)
    assert second.enter("claude", 1.0) == Admitted(usd=1.0)
    assert budget.paid(budget.read(intent.durable, NOW).hour()) == 0.2


def test_the_seat_is_given_back_where_the_budget_says_no(intent: Intent, env: dict[str, str]) -> None:
    one = door(intent, env, max_reviews=3)
    for number in range(3):
        answer = one.enter(f"agent{number}", 1.0)
    assert answer == Refused(reason=budget_reason(answer), code="over-budget")
    assert seats.taken(env, 3) == 2
    for number in range(2):
        one.leave(f"agent{number}", ended(), was_called=False)
    assert (seats.taken(env, 3), budget.read(intent.durable, NOW).spendings) == (0, ())


def budget_reason(answer: object) -> str:
    assert isinstance(answer, Refused)
    assert answer.reason.startswith("budget: 2 of 2 agent reviews this hour; next at ")
    return answer.reason


def test_a_fault_makes_it_rest_and_an_answer_ends_that(intent: Intent, env: dict[str, str]) -> None:
    one = door(intent, env)
    one.enter("claude", 1.0)
    until = utc_stamp(NOW + 600)
    one.leave("claude", ended("unreviewed", fault="rate-limited", resets_at=until), was_called=True)
    rests = cooldown.of(intent.durable, "claude", NOW)
    assert rests is not None
    assert rests.until == pytest.approx(NOW + 600, abs=0.01)
    later = door(intent, env, NOW + 601)
    assert isinstance(later.enter("claude", 1.0), Admitted)
    later.leave("claude", ended("findings"), was_called=True)
    assert cooldown.read(intent.durable, "claude") is None


def test_where_the_ledger_cannot_be_written_nobody_is_called(intent: Intent, env: dict[str, str]) -> None:
    (Path(intent.durable) / budget.LOCK).mkdir()
    answer = door(intent, env).enter("claude", 1.0)
    assert isinstance(answer, Refused)
    assert answer.reason.startswith("budget: the ledger cannot be written: ")
    assert seats.taken(env, 1) == 0


def test_a_review_that_never_came_in_leaves_nothing(intent: Intent, env: dict[str, str]) -> None:
    door(intent, env).leave("claude", ended("unreviewed", fault="quota"), was_called=False)
    assert cooldown.read(intent.durable, "claude") is None
    assert budget.read(intent.durable, NOW).spendings == ()
