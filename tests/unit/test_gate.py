"""The gate's judgement: pure, from steps that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_orch import gate
from git_orch.decisions import Decision, Decisions
from git_orch.findings import Gone, Still
from git_orch.gate import Judgement, Policy, Tip
from git_orch.lineage import Step, digest_of
from git_orch.model import Base, Finding, ReviewerSettings

if TYPE_CHECKING:
    from git_orch.findings import Anchor

AGENT = ReviewerSettings(name="agent", command="agent")
STATIC = ReviewerSettings(name="static")
BOTH = Policy(reviewers=(STATIC, AGENT))
ONE = Policy(reviewers=(AGENT,))
A, B, C, D = (f"100644 {letter * 40}" for letter in "abcd")
BASE = Base(tree_id="base-tree", name="origin/main", commit="base-commit")
FAULT = Finding(
    path="p", message="m", severity="blocking", start_line=3, reviewer="agent", fingerprint="f" * 64, id="kkkk"
)
NOBODY = Decisions()


def tip(*changes: tuple[str, str, str]) -> Tip:
    return Tip(name="topic", commit="tip-commit", tree_id="tip-tree", base=BASE, changes=changes or (("p", A, C),))


def step(
    number: int,
    old: str,
    new: str,
    *,
    by: Sequence[ReviewerSettings] = (STATIC, AGENT),
    path: str = "p",
    found: Sequence[Finding] = (),
    told: Sequence[Finding] = (),
    contested: Sequence[Finding] = (),
    tree: str = "",
    live: bool = False,
) -> Step:
    return Step(
        run_id=f"run-{number}",
        tree_id=tree or f"tree-{number}",
        contents={path: (old, new)},
        readers={each.name: frozenset({path}) for each in by},
        asked={each.name: digest_of(each) for each in by},
        findings=tuple(found),
        handed=frozenset(each.fingerprint for each in told),
        contested=frozenset(each.fingerprint for each in contested),
        live=live,
    )


def stays(_: Step, found: Sequence[Finding]) -> list[Anchor]:
    return [Still(line=each.start_line) for each in found]


def goes(_: Step, found: Sequence[Finding]) -> list[Anchor]:
    return [Gone() for _ in found]


def judged(
    *steps: Step, policy: Policy = BOTH, decided: Decisions = NOBODY, where: gate.Where = stays, at: Tip | None = None
) -> Judgement:
    return gate.judge(at or tip(), policy, steps, decided, where)


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        ([], "unreviewed"),
        ([step(1, A, C)], "allow"),
        ([step(1, A, B), step(2, B, C)], "allow"),
        ([step(2, B, C), step(1, A, B)], "allow"),
        ([step(1, A, B)], "stale"),
        ([step(1, B, C)], "stale"),  # case 72: the small edit alone
        ([step(1, D, C)], "stale"),  # another base
        ([step(1, A, C, by=[STATIC])], "unreviewed"),
        ([step(1, A, B, by=[STATIC]), step(2, B, C, by=[AGENT])], "stale"),
        ([step(1, A, C, path="other")], "unreviewed"),
        ([step(1, A, C, live=True)], "pending"),
        ([step(1, A, B), step(2, B, C, live=True)], "pending"),
        ([step(1, A, B, live=True)], "unreviewed"),
        ([step(1, A, C, by=[STATIC], live=True)], "unreviewed"),
    ],
)
def test_who_covered_what(steps: list[Step], state: str) -> None:
    assert judged(*steps).state == state


def test_the_very_tree() -> None:
    assert judged(step(1, A, C, tree="tip-tree")).very_tree
    assert not judged(step(1, A, C)).very_tree
    exact = BOTH.replace(exact=True)
    assert judged(step(1, A, C), policy=exact).state != "allow"
    assert judged(step(1, A, C, tree="tip-tree"), policy=exact).state == "allow"


def test_a_file_that_came_or_went_is_covered_like_any_other() -> None:
    came, went = tip(("p", "", C)), tip(("p", A, ""))
    assert judged(step(1, "", C), at=came).state == "allow"
    assert judged(step(1, A, C), at=came).state == "stale"
    assert judged(step(1, A, ""), at=went).state == "allow"
    assert judged(step(1, A, "", found=[FAULT]), at=went).state == "allow"  # its lines went with it


CLOSED = Decisions(lines=(Decision(kind="dismiss", by="person", at=1.0, fingerprint=FAULT.fingerprint),))
DISPUTED = Decisions(lines=(Decision(kind="dispute", by="agent", at=1.0, fingerprint=FAULT.fingerprint, why="no"),))
MINE = FAULT.replace(reviewer="static")


@pytest.mark.parametrize(
    ("steps", "decided", "where", "state"),
    [
        ([step(1, A, C, found=[FAULT])], NOBODY, stays, "block"),
        ([step(1, A, C, found=[FAULT.replace(severity="nit")])], NOBODY, stays, "allow"),
        ([step(1, A, C, found=[FAULT])], CLOSED, stays, "allow"),
        ([step(1, A, C, found=[FAULT])], DISPUTED, stays, "block"),
        # A line that is gone is closed by the review of what came in its place, and that is missing here.
        ([step(1, A, B, found=[FAULT])], NOBODY, goes, "stale"),
        ([step(1, A, B, found=[FAULT]), step(2, B, C)], NOBODY, goes, "allow"),
        # A line that stands is open, though a later review does not repeat it ...
        ([step(1, A, B, found=[FAULT]), step(2, B, C)], NOBODY, stays, "block"),
        ([step(1, A, C, found=[FAULT]), step(2, A, C)], NOBODY, stays, "block"),
        # ... unless that was told of it, and looked at the file as it became, or at a dispute.
        ([step(1, A, B, found=[FAULT]), step(2, B, C, told=[FAULT])], NOBODY, stays, "allow"),
        ([step(1, A, B, found=[FAULT]), step(2, B, C, told=[FAULT], found=[FAULT])], NOBODY, stays, "block"),
        ([step(1, A, C, found=[FAULT]), step(2, A, C, told=[FAULT])], NOBODY, stays, "block"),
        ([step(1, A, C, found=[FAULT]), step(2, A, C, told=[FAULT], contested=[FAULT])], DISPUTED, stays, "allow"),
        # Another branch's review lets go of nothing here.
        ([step(1, A, C, found=[FAULT]), step(2, A, D, told=[FAULT])], NOBODY, stays, "block"),
        # Nor does another reviewer's.
        ([step(1, A, B, found=[FAULT]), step(2, B, C, told=[FAULT], by=[STATIC])], NOBODY, stays, "block"),
        # The built-in checks say the same of the same.
        ([step(1, A, B, found=[MINE]), step(2, B, C), step(3, A, C)], NOBODY, stays, "allow"),
        ([step(1, A, B, found=[MINE]), step(2, B, C)], NOBODY, stays, "block"),
        # What was found in the commit's own content counts, whatever that was compared with.
        ([step(1, B, C, found=[FAULT]), step(2, A, C)], NOBODY, stays, "block"),
        # A live run is worth waiting for only if it may change something.
        ([step(1, A, C, found=[FAULT]), step(2, A, C, live=True)], NOBODY, stays, "block"),
        ([step(1, A, B, found=[FAULT]), step(2, B, C, live=True)], NOBODY, stays, "pending"),
        ([step(1, A, C, found=[FAULT]), step(2, A, C, live=True)], DISPUTED, stays, "pending"),
    ],
)
def test_what_is_open(steps: list[Step], decided: Decisions, where: gate.Where, state: str) -> None:
    assert judged(*steps, decided=decided, where=where).state == state


def test_a_finding_about_a_whole_file_goes_with_its_content() -> None:
    whole = FAULT.replace(start_line=0)
    assert judged(step(1, A, C, found=[whole])).state == "block"
    assert judged(step(1, A, B, found=[whole]), step(2, B, C)).state == "allow"


def test_never_is_never() -> None:
    assert judged(step(1, A, C, found=[FAULT]), policy=BOTH.replace(fail_on="never")).state == "allow"
    nit = FAULT.replace(severity="nit")
    assert judged(step(1, A, C, found=[nit]), policy=BOTH.replace(fail_on="nit")).state == "block"


def test_other_settings_are_another_reviewer() -> None:
    other = AGENT.replace(command="true")
    assert judged(step(1, A, C, by=[STATIC, other])).state == "unreviewed"
    patient = AGENT.replace(timeout_s=1.0, stall_s=2.0, required=False)
    assert judged(step(1, A, C, by=[STATIC, patient])).state == "allow"


def test_a_persons_word_and_nothing_new() -> None:
    allowed = Decisions(lines=(Decision(kind="allow", by="person", at=1.0, why="hurry", commit="tip-commit"),))
    assert judged(decided=allowed).state == "allow"
    assert gate.judge(tip().replace(changes=()), BOTH, [], NOBODY, stays).state == "allow"


CONTENTS = ("", A, B, C, D)


EDGES = st.lists(st.tuples(st.sampled_from(CONTENTS), st.sampled_from(CONTENTS)), max_size=6)


@given(EDGES, st.sampled_from((B, C, "")))
def test_nothing_is_allowed_that_no_chain_of_reviews_leads_to(edges: list[tuple[str, str]], new: str) -> None:
    """Against the plain way: every sequence of distinct steps, tried one after the other."""
    steps = [step(n, old, after, by=[AGENT]) for n, (old, after) in enumerate(edges) if old != after]
    answer = judged(*steps, policy=ONE, at=tip(("p", A, new)))
    assert (answer.state == "allow") == is_chained([each.contents["p"] for each in steps], A, new)


def is_chained(edges: list[tuple[str, str]], start: str, end: str) -> bool:
    walks = [[start]]
    for walk in walks:
        if walk[-1] == end:
            assert all(pair in edges for pair in pairwise(walk))
            return True
        walks += [[*walk, new] for old, new in edges if old == walk[-1] and new not in walk]
    return False
