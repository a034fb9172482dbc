"""What agents may cost: settling, seats, budgets and cooldowns, with real hooks and supervisors (cases 23 and 60)."""

from __future__ import annotations

import base64
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from git_orch import admission, budget, cooldown, seats
from git_orch.model import Budget
from tests.conftest import Orch
from tests.fakes import fake_client
from tests.project import Json, Project, reviewer_of
from tests.unit import client_samples as samples
from tests.waiting import wait_until

LIMIT = samples.claude(None, is_error=True, result=samples.LIMIT, structured_output=None).decode()
FAR = "10m"  # to settle that long is to wait for as long as the test does
Client = Callable[..., None]


@pytest.fixture
def agent(project: Project, bin_folder: Path) -> Client:
    """A function that makes `claude`, which takes these steps, a reviewer of the project beside `static`."""

    def make(*steps: Any, settle: str = "1ms", name: str = "claude") -> None:
        fake_client.install(bin_folder, name, *steps)
        project.set("orch.settle", settle)
        project.only("static", name)

    return make


def calls(bin_folder: Path) -> list[Json]:
    return fake_client.shown(bin_folder)


def durable(project: Project) -> str:
    return str(project.path / ".git" / "orch")


def spend(project: Project, times: int, usd: float = 0.0) -> None:
    """That many agent reviews were made in the last minute."""
    for number in range(times):
        name = f"earlier-{number}/claude"
        limits = Budget()
        budget.reserve(
            durable(project), name, limits, session="s0", wanted_usd=1.0, is_kept_to=True, bound=False, now=time.time()
        )
        budget.settle(durable(project), name, usd=usd, tokens=100)


def events(project: Project, name: str) -> list[Json]:
    """What the last run's journal tells of that, which may not have begun yet."""
    is_there = bool(project.runs) and project.file(project.last, "events.jsonl").exists()
    return [event for event in project.events() if event["event"] == name] if is_there else []


def queued(project: Project) -> str:
    """The run that waits for its agent, once its static has ended."""
    wait_until(lambda: project.live and events(project, "reviewer.waiting"), 20, what="an agent waits")
    wait_until(lambda: project.state(project.last) == "queued", 20)
    return project.last


# -- settling


def test_an_answer_soon_after_the_stop_means_that_no_agent_is_paid_for(
    project: Project, agent: Client, bin_folder: Path
) -> None:
    """Case 60. The free checks have run at once."""
    agent(settle=FAR)
    project.fire("session-start")
    project.edit("one = 1\nthree = 3\n")
    project.fire()
    run_id = queued(project)
    assert [event["reviewer"] for event in events(project, "reviewer.ended")] == ["static"]
    assert seats.taken(os.environ, 2) == 0
    project.fire("user-prompt-submit")
    record = project.ended(run_id)
    assert (record["status"], record["verdict"]) == ("superseded", "unreviewed")
    assert record["reason"] == "superseded by a prompt"
    assert reviewer_of(record, "static")["verdict"] == "pass"
    assert calls(bin_folder) == []
    assert budget.read(durable(project)).spendings == ()


def test_what_was_not_paid_for_is_reviewed_with_the_next_stop(
    project: Project, agent: Client, bin_folder: Path
) -> None:
    agent(settle=FAR)
    project.fire("session-start")
    project.edit("one = 1\nthree = 3\n")
    project.fire()
    queued(project)
    project.fire("user-prompt-submit")
    project.settle()
    project.set("orch.settle", "1ms")
    project.edit("four = 4\n", "b.py")
    project.fire()
    record = project.ended()
    assert record["verdict"] == "pass"
    assert project.read(project.last, "coverage.json")["reviewed"] == ["a.py", "b.py"]
    assert len(calls(bin_folder)) == 1


def test_the_same_tree_after_a_prompt_is_reviewed_as_well(project: Project, agent: Client, bin_folder: Path) -> None:
    """Nothing is claimed by a review that gave way."""
    agent(settle=FAR)
    project.fire()
    first = queued(project)
    project.fire("user-prompt-submit")
    project.settle()
    project.set("orch.settle", "1ms")
    project.fire(session="s2")
    record = project.ended()
    assert (record["run_id"] != first, record["verdict"]) == (True, "pass")
    assert len(calls(bin_folder)) == 1


def test_a_turn_without_an_edit_has_the_work_of_the_one_before_reviewed(
    project: Project, agent: Client, bin_folder: Path
) -> None:
    """The person asked what it had done, 5 s after it had done it."""
    agent(settle=FAR)
    project.fire("session-start")
    project.edit("three = 3\n")
    project.fire()
    queued(project)
    project.fire("user-prompt-submit")
    project.settle()
    project.set("orch.settle", "1ms")
    project.fire()
    record = project.ended()
    assert (record["verdict"], len(project.runs)) == ("pass", 2)
    project.fire()  # and once is enough
    project.settle()
    assert (len(project.runs), len(calls(bin_folder))) == (2, 1)


def test_a_prompt_of_another_session_supersedes_nothing(project: Project, agent: Client) -> None:
    agent(settle=FAR)
    project.fire()
    run_id = queued(project)
    project.fire("user-prompt-submit", session="s2")
    project.fire("user-prompt-submit", session="s1")
    assert project.ended(run_id)["status"] == "superseded"
    stamps = sorted((project.path / ".git/orch/sessions").glob("*.prompt"))
    assert len(stamps) == 2  # and the first of them alone did nothing: the run was still there for the second


def test_a_newer_tree_supersedes_the_one_that_settles(project: Project, agent: Client, bin_folder: Path) -> None:
    agent(settle=FAR)
    project.fire()
    first = queued(project)
    project.edit("four = 4\n", "b.py")
    project.fire()
    wait_until(lambda: project.live == [project.last] and project.last != first, 20)
    second = queued(project)
    assert project.record(first)["terminal_reason"] == f"superseded-by {second}"
    project.fire("user-prompt-submit")
    project.settle()
    assert calls(bin_folder) == []


def test_a_session_that_stays_quiet_is_reviewed(project: Project, agent: Client, bin_folder: Path) -> None:
    agent(settle="1500ms")
    project.fire()
    record = project.ended()
    assert record["verdict"] == "pass"
    begun = next(each for each in events(project, "reviewer.materializing") if each["reviewer"] == "claude")
    assert admission.seconds(begun["time"]) - admission.seconds(record["started_at"]) >= 1.5
    assert len(calls(bin_folder)) == 1


def test_a_settling_run_is_cancelled_like_any_other(project: Project, agent: Client, orch: Orch) -> None:
    agent(settle=FAR)
    project.fire()
    run_id = queued(project)
    told = orch("status").stdout
    assert "a review waits" in told
    assert "queued" in told
    assert orch("stop", run_id[-8:]).returncode == 0
    assert project.ended(run_id)["status"] == "cancelled"


def test_a_review_by_hand_does_not_settle(agent: Client, orch: Orch) -> None:
    agent(settle=FAR)
    assert orch("review").returncode == 0


# -- seats


def test_no_more_agents_review_at_once_than_there_are_seats(
    project: Project, agent: Client, bin_folder: Path, orch: Orch
) -> None:
    agent()
    project.set("orch.maxReviews", "1")
    seat = seats.take(os.environ, 1)  # another repository's review
    project.fire()
    queued(project)
    told = json.loads(orch("status", "--budget", "--json").stdout)["budget"]["machine"]
    assert told == {"reviews": 1, "limit": 1}
    assert calls(bin_folder) == []
    seats.give_back(seat)
    assert project.ended()["verdict"] == "pass"
    assert seats.taken(os.environ, 1) == 0
    assert os.listdir(Path(os.environ["XDG_STATE_HOME"], "git-orch/seats/line")) == []


def test_the_seat_of_a_supervisor_that_was_killed_is_free(
    project: Project, agent: Client, orch: Orch, tmp_path: Path
) -> None:
    """Its review counts, with all that it was given."""
    agent(["leave_a_writer", str(tmp_path / "never" / "there")], ["wait_for", str(tmp_path / "go")])
    project.set("orch.maxReviews", "1")
    project.fire()
    wait_until(lambda: seats.taken(os.environ, 1) == 1, 20, what="the seat is taken")
    wait_until(lambda: project.guardian(project.last), 20)
    os.kill(project.supervisor(project.last), signal.SIGKILL)
    wait_until(lambda: seats.taken(os.environ, 1) == 0, 20, what="the seat is free")
    orch("sweep")
    ledger = budget.read(durable(project))
    assert (len(ledger.hour()), budget.usd(ledger.day())) == (1, 1.0)


def test_a_person_who_waits_for_a_seat_is_told_so(
    project: Project, agent: Client, bin_folder: Path, orch: Orch
) -> None:
    agent()
    project.set("orch.maxReviews", "1")
    seat = seats.take(os.environ, 1)
    run_id = orch("review", "-d").stdout.strip()
    wait_until(lambda: project.state(run_id) == "queued" and events(project, "reviewer.waiting"), 20)
    done = orch("wait", "last", "--timeout", "500ms")
    assert done.returncode == 5
    assert "git-orch: claude: waits: no more than 1 agents review at once" in done.stderr
    seats.give_back(seat)
    assert orch("wait", "last").returncode == 0
    assert len(calls(bin_folder)) == 1


# -- the budget


def test_beyond_the_budget_a_hook_calls_no_agent(project: Project, agent: Client, bin_folder: Path) -> None:
    agent()
    project.set("orch.budget.hour", "3")
    spend(project, 3)
    project.fire()
    record = project.ended()
    assert (record["verdict"], record["status"]) == ("unreviewed", "done")
    claude = reviewer_of(record, "claude")
    assert claude["reason"].startswith("budget: 3 of 3 agent reviews this hour; next at ")
    assert reviewer_of(record, "static")["verdict"] == "pass"
    assert calls(bin_folder) == []
    assert len(budget.read(durable(project)).spendings) == 3


def test_what_the_budget_kept_back_is_reviewed_once_there_is_some_without_another_edit(
    project: Project, agent: Client, bin_folder: Path
) -> None:
    agent(["pass"])
    project.set("orch.budget.hour", "1")
    spend(project, 1)
    project.fire("session-start")
    project.edit("three = 3\n")
    for _ in range(3):  # as long as there is none, it is said once
        project.fire()
        assert project.ended()["verdict"] == "unreviewed"
    assert (len(project.runs), calls(bin_folder)) == (1, [])
    project.set("orch.budget.hour", "2")
    project.fire()
    assert project.ended()["verdict"] == "pass"
    project.fire()
    project.settle()
    assert (len(project.runs), len(calls(bin_folder))) == (2, 1)


def test_a_loop_is_ended_by_the_hour(project: Project, agent: Client, bin_folder: Path) -> None:
    agent()
    project.set("orch.budget.hour", "2")
    for number in range(4):
        project.edit(f"number = {number}\n")
        project.fire()
        project.settle()
    assert len(calls(bin_folder)) == 2


def test_one_of_two_that_race_for_the_last_place_gets_it(
    project: Project, agent: Client, bin_folder: Path, tmp_path: Path
) -> None:
    agent(["wait_for", str(tmp_path / "go")], ["pass"])
    project.set("orch.budget.hour", "1")
    project.repo.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    other = Project.of(tmp_path / "other")
    other.edit("one = 1\nfive = 5\n")
    project.fire()
    other.fire(session="s2", cwd=other.path)
    wait_until(lambda: len(project.live) < 2 and len(project.runs) == 2, 20, what="one of them was denied")
    (tmp_path / "go").touch()
    project.settle()
    verdicts = sorted(project.record(run_id)["verdict"] for run_id in project.runs)
    assert verdicts == ["pass", "unreviewed"]
    assert len(calls(bin_folder)) == 1


def test_a_client_that_keeps_to_a_price_is_told_what_is_left(project: Project, agent: Client, bin_folder: Path) -> None:
    agent()
    project.set("orch.budget.usd", "0.50")
    spend(project, 1, usd=0.20)
    project.fire()
    project.settle()
    (seen,) = calls(bin_folder)
    assert seen["argv"][seen["argv"].index("--max-budget-usd") + 1] == "0.30"
    ledger = budget.read(durable(project))
    assert budget.paid(ledger.day()) == pytest.approx(0.29)  # what it cost, not what it was given


def test_the_calls_of_one_review_share_its_price(project: Project, agent: Client, bin_folder: Path, orch: Orch) -> None:
    agent()
    project.set("orch.budget.reviewUsd", "0.20")
    for number in range(4):
        project.edit("".join(f"v{line} = {line}\n" for line in range(9000)), f"big{number}.py")
    assert orch("review").returncode == 5
    given = [seen["argv"][seen["argv"].index("--max-budget-usd") + 1] for seen in calls(bin_folder)]
    assert given == ["0.20", "0.11"]  # each cost 0.09; what is left would buy no answer
    claude = reviewer_of(project.record(project.last), "claude")
    assert "the $0.20 of a review are spent" in claude["reason"]
    (spending,) = budget.read(durable(project)).spendings
    assert spending.usd == pytest.approx(0.18)


def test_no_price_is_told_where_none_is_set(project: Project, agent: Client, bin_folder: Path) -> None:
    agent()
    project.set("orch.budget.reviewUsd", "unlimited")
    project.set("orch.budget.usd", "unlimited")
    project.fire()
    assert project.ended()["verdict"] == "pass"
    assert "--max-budget-usd" not in calls(bin_folder)[0]["argv"]


def test_a_person_is_told_and_not_refused(project: Project, agent: Client, bin_folder: Path, orch: Orch) -> None:
    agent()
    project.set("orch.budget.hour", "1")
    spend(project, 1)
    done = orch("review")
    assert done.returncode == 0
    assert "git-orch: over the budget of hooks: 1 of 1 agent reviews this hour" in done.stderr
    assert len(calls(bin_folder)) == 1
    assert len(budget.read(durable(project)).hour()) == 2


def test_an_agent_that_asks_is_held_to_it(project: Project, agent: Client, bin_folder: Path, orch: Orch) -> None:
    agent()
    project.set("orch.budget.hour", "1")
    spend(project, 1)
    done = orch("review", env={"CLAUDECODE": "1"})
    assert done.returncode == 5
    assert "budget: 1 of 1 agent reviews this hour" in done.stdout
    assert calls(bin_folder) == []


def test_what_was_spent_is_told(agent: Client, orch: Orch) -> None:
    agent()
    assert "today:" not in orch("status").stdout
    done = orch("review", "--fresh")
    assert done.returncode == 0
    assert "today: 1 agent review, $0.09 of $5.00; this hour 1 of 12" in orch("status").stdout
    assert "$0.09" in orch("status", "--line").stdout
    told = orch("status", "--budget").stdout
    assert "this hour  1 of 12 agent reviews" in told
    assert "today      1 of 60 agent reviews, $0.09 of $5.00, 41 tokens" in told
    facts = json.loads(orch("status", "--budget", "--json").stdout)["budget"]
    assert facts["limits"]["hour"] == 12
    assert facts["limits"]["tokens"] is None
    assert facts["day"] == {"reviews": 1, "usd": 0.09, "tokens": 41}


def test_a_review_with_something_to_say_tells_the_day(project: Project, agent: Client, orch: Orch) -> None:
    agent(["say", LIMIT])
    spend(project, 2, usd=0.2)
    done = orch("review")
    assert done.returncode == 5
    assert "$0.49 of $5.00 today" in done.stdout


@pytest.mark.parametrize("value", ["-1", "many", "1.5.2", "1e9"])
def test_a_limit_that_is_none_is_refused_by_name(project: Project, orch: Orch, value: str) -> None:
    project.set("orch.budget.usd", value)
    done = orch("review")
    assert done.returncode == 2
    assert "orch.budget.usd" in done.stderr


# -- cooldown


def test_a_limited_reviewer_is_not_called_before_its_time(
    project: Project, agent: Client, bin_folder: Path, orch: Orch
) -> None:
    """Case 23: one call, no retry, and none at the next Stop, which says until when."""
    agent(["say", LIMIT])
    for number in range(3):
        project.edit(f"number = {number}\n")
        project.fire()
        record = project.ended()
        claude = reviewer_of(record, "claude")
        assert (record["verdict"], claude["fault"]) == ("unreviewed", "rate-limited")
        assert claude["reason"].startswith("rate limited until ")
        assert claude["resets_at"]
    assert len(calls(bin_folder)) == 1
    assert len(budget.read(durable(project)).spendings) == 1
    assert "claude: rate limited until " in orch("status", "--budget").stdout
    assert orch("review").returncode == 5
    assert len(calls(bin_folder)) == 1
    assert orch("review", "--fresh").returncode == 5  # a person may want it asked all the same
    assert len(calls(bin_folder)) == 2


def test_one_whose_time_has_come_is_called_again(project: Project, agent: Client, bin_folder: Path) -> None:
    agent()
    cooldown.note(durable(project), "claude", "rate-limited", until=1000.5, now=1000.0)
    project.fire()
    assert project.ended()["verdict"] == "pass"
    assert len(calls(bin_folder)) == 1
    assert cooldown.read(durable(project), "claude") is None


def test_what_a_resting_reviewer_has_not_seen_is_reviewed_after_its_rest_without_another_edit(
    project: Project, agent: Client, bin_folder: Path
) -> None:
    agent(["say", LIMIT])
    for _ in range(2):
        project.fire()
        assert project.ended()["verdict"] == "unreviewed"
    assert (len(project.runs), len(calls(bin_folder))) == (1, 1)
    cooldown.note(durable(project), "claude", "rate-limited", until=1000.5, now=1000.0)  # it is over
    agent(["pass"])
    project.fire()
    assert project.ended()["verdict"] == "pass"
    assert len(project.runs) == 2


def test_a_limit_inside_an_ordinary_answer_is_none(project: Project, agent: Client) -> None:
    fault = {
        "path": "a.py",
        "start_line": 2,
        "end_line": 2,
        "severity": "blocking",
        "rule": "limit",
        "message": f"it says: {samples.LIMIT}",
        "fails_when": "too many requests, 429",
        "suggestion": None,
    }
    agent(["answer", {"status": "findings", "findings": [fault]}])
    project.fire()
    assert project.ended()["verdict"] == "findings"
    assert cooldown.resting(durable(project)) == {}


# -- what is not given to an agent


def test_a_hook_gives_no_agent_what_is_too_large(project: Project, agent: Client, bin_folder: Path) -> None:
    agent(settle=FAR)
    project.edit("".join(f"line{number} = {number}\n" for number in range(3001)))
    project.fire()
    record = project.ended()  # at once: nobody settles for what is not called
    assert record["verdict"] == "unreviewed"
    reason = reviewer_of(record, "claude")["reason"]
    assert reason.startswith("too large: 3002 changed lines in 1 files, 48 kB")
    assert "git orch review --reviewer claude" in reason
    assert reviewer_of(record, "static")["verdict"] == "pass"
    assert (calls(bin_folder), budget.read(durable(project)).spendings) == ([], ())


def test_a_change_of_exempt_files_alone_costs_nothing_and_says_so(
    project: Project, agent: Client, bin_folder: Path
) -> None:
    agent(settle=FAR)
    project.repo.git("checkout", "-q", "a.py")
    project.edit("lock\n", "uv.lock")
    project.edit("x = 1\n", "vendor/lib.py")
    project.fire()
    record = project.ended()
    claude = reviewer_of(record, "claude")
    assert (claude["verdict"], claude["reason"]) == ("nothing-to-review", "all that it was offered is left out by rule")
    skipped = {each["path"]: each["reason"] for each in project.read(project.last, "coverage.json")["skipped"]}
    assert skipped == {"uv.lock": "rule:lock file", "vendor/lib.py": "rule:vendored"}
    assert (calls(bin_folder), budget.read(durable(project)).spendings) == ([], ())


def test_a_secret_keeps_the_difference_from_agents(project: Project, agent: Client, bin_folder: Path) -> None:
    agent(settle=FAR)
    body = base64.b64encode(bytes(number * 73 % 251 for number in range(480))).decode()
    project.edit(f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n")
    project.fire()
    record = project.ended()
    assert record["verdict"] == "findings"
    assert reviewer_of(record, "claude")["reason"] == "held back: static found a secret in a.py"
    assert (calls(bin_folder), budget.read(durable(project)).spendings) == ([], ())
