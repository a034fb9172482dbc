"""What the gate says, laid out as docs/output.md has it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from git_orch.formats import gate as printed
from git_orch.formats.gate import Answer
from git_orch.formats.terminal import Terminal, cells
from git_orch.gate import Gap, Judgement, Open, Tip
from git_orch.model import Base, Finding

PAGE = (Path(__file__).parents[2] / "docs/output.md").read_text(encoding="utf-8")
FINDING = Finding(
    path="src/db/orders.py",
    start_line=41,
    end_line=41,
    severity="blocking",
    message="user input reaches the SQL query unescaped",
    reviewer="claude",
    rule="sql-injection",
    fingerprint="f" * 64,
    id="kmzv",
)
CHANGES = tuple((f"f{n}", "a", "b") for n in range(5))
HOSTILE = FINDING.replace(path="a\n::error::b|c", message="\x1b]52;c;aGk=\x07 <img src=x> [x](y) @all ##[error]\nb")


def tip(name: str, commit: str) -> Tip:
    base = Base(tree_id="t", name="origin/main", commit="b" * 40)
    return Tip(name=name, commit=commit.ljust(40, "0"), tree_id="e" * 40, base=base, changes=CHANGES)


def run(short: str) -> str:
    return f"20261130T201500123-{short}61c2"


ANSWERS = (
    Answer(
        judgement=Judgement(
            state="allow", tip=tip("main", "a91c02e"), reason="this very tree was reviewed", run_ids=(run("9f3a"),)
        ),
        passes=True,
    ),
    Answer(
        judgement=Judgement(
            state="allow",
            tip=tip("topic-a", "5be1c90"),
            reason="its 3 changed files were reviewed as is",
            run_ids=(run("b204"),),
        ),
        passes=True,
    ),
    Answer(
        judgement=Judgement(
            state="block",
            tip=tip("topic-b", "77c1e02"),
            reason="1 blocking finding: kmzv src/db/orders.py:41",
            open=(Open(finding=FINDING, run_id=run("9f3a")),),
        )
    ),
    Answer(
        judgement=Judgement(
            state="stale",
            tip=tip("topic-c", "0d41aa9"),
            reason="2 of 5 changed files are not as reviewed",
            gaps=(Gap(path="f1", reviewers=("claude",)), Gap(path="f2", reviewers=("claude",))),
        ),
        review="git orch review topic-c",
    ),
    Answer(
        judgement=Judgement(state="unreviewed", tip=tip("topic-d", "c01f3b7"), reason="no run covers it"),
        review="git orch review topic-d",
    ),
)
BLOCKED = ANSWERS[2]


def example(title: str) -> str:
    """The block below that title, without the line that was typed and what git adds."""
    block = re.search(rf"^## {re.escape(title)}\n```\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    assert block
    return "".join(f"{line}\n" for line in block[1].splitlines() if not line.startswith(("$", "error:")))


def test_the_list_is_the_one_of_the_page() -> None:
    assert printed.render(ANSWERS, "text", Terminal()) == example("gate")


def test_a_stopped_push_is_the_one_of_the_page() -> None:
    at = BLOCKED.judgement.replace(tip=tip("pay-refactor", "5be1c90"))
    waits = printed.waiting(at.replace(state="pending", reason="its review is running"), 38.0, at_push=True)
    told = printed.stopped([BLOCKED.replace(judgement=at)], Terminal())
    assert f"{waits}\n{told}" == example("gate, pre-push")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_of_the_list_is_wider_than_the_terminal(width: int) -> None:
    lines = printed.render(ANSWERS, "text", Terminal(width=width)).splitlines()
    assert max(cells(line) for line in lines if "git orch" not in line) <= max(width, 62)


def test_the_exit_status() -> None:
    allowed, stale = ANSWERS[0], ANSWERS[3]
    assert [printed.exit_code(some) for some in ([], [allowed], [allowed, stale], [stale, BLOCKED])] == [0, 0, 5, 1]
    assert printed.exit_code([stale.replace(passes=True)]) == 0


@pytest.mark.parametrize("name", printed.NAMES)
def test_what_a_repository_or_a_reviewer_writes_acts_on_nothing(name: str) -> None:
    judgement = BLOCKED.judgement.replace(open=(Open(finding=HOSTILE, run_id=run("9f3a"), disputed="\x1b[2J"),))
    said = printed.render([BLOCKED.replace(judgement=judgement)], name, Terminal())
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "\n::error::" not in said
    assert "##[" not in said.replace("\\#\\#\\[", "") or name in ("json", "gitlab", "text")
    if name == "markdown":
        assert not re.search(r"(?<!\\)[<\[]", said)
        assert "@all" not in said


def test_the_object_says_all() -> None:
    told = json.loads(printed.render(ANSWERS, "json", Terminal()))
    assert [each["state"] for each in told["gates"]] == ["allow", "allow", "block", "stale", "unreviewed"]
    assert told["exit"] == 1
    assert told["gates"][2]["findings"][0]["id"] == "kmzv"
    assert told["gates"][3]["missing"][0] == {"path": "f1", "reviewers": ["claude"]}


def test_gitlab_gets_issues_with_fingerprints_of_their_own() -> None:
    issues = json.loads(printed.render(ANSWERS, "gitlab", Terminal()))
    assert len({issue["fingerprint"] for issue in issues}) == len(issues) == 4
    assert {issue["severity"] for issue in issues} == {"blocker", "major"}
    assert all(set(issue) == {"description", "check_name", "fingerprint", "severity", "location"} for issue in issues)


def test_github_is_told_an_error_where_it_is_not_reviewed() -> None:
    lines = printed.render(ANSWERS, "github", Terminal()).splitlines()
    assert sum(line.startswith("::error ") for line in lines) == 3
    allowed = [answer.replace(passes=True) for answer in ANSWERS[3:]]
    assert all(line.startswith("::warning ") for line in printed.render(allowed, "github", Terminal()).splitlines())
