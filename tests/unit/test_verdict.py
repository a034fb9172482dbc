from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from git_orch import verdict
from git_orch.model import (
    SEVERITIES,
    THRESHOLDS,
    Cancelled,
    Coverage,
    Exited,
    Finding,
    NotStarted,
    Review,
    ReviewerSettings,
    Signalled,
    Skipped,
    Stalled,
    TimedOut,
    Unkillable,
    Usage,
)
from git_orch.reviewers.answers import Answer, Unusable

if TYPE_CHECKING:
    from git_orch.model import Outcome, Severity, Threshold

FINE = Exited(code=0)
CODEX = ReviewerSettings(name="codex")
ALL = ("a.py", "b.py", "c.py")
COVERAGE = Coverage(offered=ALL)


def finding(severity: Severity = "blocking", path: str = "a.py") -> Finding:
    return Finding(path=path, message="m", severity=severity)


def review(name: str, *severities: Severity, reviewed: tuple[str, ...] = ALL, **changes: Any) -> Review:
    """A reviewer that read `reviewed` and has a finding of each severity."""
    found = tuple(map(finding, severities))
    return Review(
        name=name,
        outcome="completed",
        verdict="findings" if found else "pass",
        findings=found,
        reviewed=reviewed,
    ).replace(**changes)


def silent(name: str, reason: str = "rate limited until 15:20", **changes: Any) -> Review:
    return Review(name=name, outcome="completed", verdict="unreviewed", reason=reason, **changes)


class TestOfReviewer:
    def test_a_pass(self) -> None:
        usage = Usage(cpu_s=1.5, peak_rss_bytes=1 << 20)
        answer = Answer(reviewed=ALL, note="read all")
        assert verdict.of_reviewer(CODEX, FINE, answer, littered=("x.pyc",), duration_ms=7, usage=usage) == Review(
            name="codex",
            outcome="completed",
            verdict="pass",
            note="read all",
            duration_ms=7,
            reviewed=ALL,
            littered=("x.pyc",),
            usage=usage,
        )

    def test_any_finding_makes_it_findings(self) -> None:
        given = verdict.of_reviewer(CODEX, FINE, Answer(findings=(finding("nit"),), reviewed=ALL))
        assert (given.verdict, given.findings) == ("findings", (finding("nit"),))

    def test_unusable_is_unreviewed_with_its_reason_and_its_findings(self) -> None:
        answer = Unusable(reason="no answer within 600 s", note="text", findings=(finding(),))
        given = verdict.of_reviewer(CODEX, TimedOut(after_s=600.0), answer)
        assert (given.verdict, given.reason, given.note) == ("unreviewed", "no answer within 600 s", "text")
        assert (given.findings, given.reviewed) == ((finding(),), ())

    @pytest.mark.parametrize("answer", [Answer(reviewed=ALL), Answer(findings=(finding(),), reviewed=ALL)])
    def test_tampered_voids_what_it_says(self, answer: Answer) -> None:
        """Case 24."""
        given = verdict.of_reviewer(CODEX, FINE, answer, tampered=("a\n.py", "b.py"))
        assert (given.verdict, given.reason) == ("unreviewed", "tampered: a\\n.py and 1 more")
        assert (given.findings, given.reviewed) == ((), ())

    def test_litter_is_not_tampering(self) -> None:
        """Case 52: caches of ruff, mypy and pytest."""
        given = verdict.of_reviewer(CODEX, FINE, Answer(reviewed=ALL), littered=(".ruff_cache/x",))
        assert (given.verdict, given.littered) == ("pass", (".ruff_cache/x",))

    def test_a_gap_in_its_coverage_is_unreviewed_and_its_findings_stand(self) -> None:
        skipped = (Skipped(path="b.py", reason="not listed by codex"), Skipped(path="c.py", reason="rule:binary"))
        given = verdict.of_reviewer(
            CODEX, FINE, Answer(findings=(finding("nit"),), reviewed=("a.py",), skipped=skipped)
        )
        assert (given.verdict, given.reason) == ("unreviewed", "left out b.py (not listed by codex)")
        assert (given.findings, given.reviewed) == ((finding("nit"),), ("a.py",))

    def test_what_a_rule_leaves_out_is_no_gap(self) -> None:
        rule = Skipped(path="b.bin", reason="rule:binary")
        assert verdict.of_reviewer(CODEX, FINE, Answer(reviewed=("a.py",), skipped=(rule,))).verdict == "pass"
        assert verdict.of_reviewer(CODEX, FINE, Answer(skipped=(rule,))).verdict == "nothing-to-review"

    def test_having_read_nothing_is_no_pass(self) -> None:
        assert verdict.of_reviewer(CODEX, FINE, Answer()).verdict == "nothing-to-review"

    def test_whether_it_is_required_is_its_setting(self) -> None:
        assert not verdict.of_reviewer(CODEX.replace(required=False), FINE, Answer(reviewed=ALL)).required

    @pytest.mark.parametrize(
        ("outcome", "word"),
        [
            (FINE, "completed"),
            (Exited(code=1), "child-exit-nonzero"),
            (Signalled(signal=9), "child-signalled"),
            (TimedOut(after_s=1.0), "hard-timeout"),
            (Stalled(after_s=1.0), "stalled"),
            (Cancelled(), "cancelled"),
            (NotStarted(reason="r"), "not-started"),
            (Unkillable(pids=(1,)), "unkillable"),
        ],
    )
    def test_words_for_outcomes(self, outcome: Outcome, word: str) -> None:
        assert verdict.outcome_word(outcome) == word


class TestOfRun:
    @pytest.mark.parametrize("severity", SEVERITIES)
    @pytest.mark.parametrize("threshold", THRESHOLDS)
    def test_thresholds(self, severity: Severity, threshold: Threshold) -> None:
        at = threshold != "never" and SEVERITIES.index(severity) <= SEVERITIES.index(threshold)
        given, reason = verdict.of_run([review("static"), review("claude", severity)], COVERAGE, threshold)
        assert given == ("findings" if at else "pass")
        assert reason.endswith(f"1 {severity} (claude)")

    @pytest.mark.parametrize(
        ("reviews", "coverage", "expected"),
        [
            pytest.param(
                [review("static"), review("claude")],
                COVERAGE,
                ("pass", "3 of 3 files reviewed by static and claude"),
                id="a pass names its readers",
            ),
            pytest.param(
                [review("static"), review("claude"), review("codex")],
                COVERAGE,
                ("pass", "3 of 3 files reviewed by static, claude and codex"),
                id="three readers",
            ),
            pytest.param(
                [review("static")],
                COVERAGE,
                ("pass", "3 files, built-in checks only, no agent read them"),
                id="static alone says so",
            ),
            pytest.param(
                [review("static", "blocking"), review("claude", "advisory", "nit", "nit"), silent("codex")],
                COVERAGE,
                ("findings", "1 blocking, 1 advisory, 2 nits (static, claude); codex did not review"),
                id="findings come before what is missing",
            ),
            pytest.param(
                [review("static"), silent("codex")],
                COVERAGE,
                ("unreviewed", "codex did not review: rate limited until 15:20"),
                id="a required reviewer is missing",
            ),
            pytest.param(
                [review("static", "nit"), silent("codex", reason="")],
                COVERAGE,
                ("unreviewed", "codex did not review: completed; 1 nit (static)"),
                id="findings below the threshold are counted",
            ),
            pytest.param(
                [review("static"), review("claude"), silent("codex", required=False)],
                COVERAGE,
                ("pass", "3 of 3 files reviewed by static and claude; codex did not review"),
                id="a reviewer that is not required may be missing",
            ),
            pytest.param(
                [silent("codex", required=False, findings=(finding(),))],
                COVERAGE,
                ("findings", "1 blocking (codex); codex did not review"),
                id="findings of a job that was cut short count",
            ),
            pytest.param(
                [silent("codex", required=False)],
                COVERAGE,
                ("unreviewed", "no reviewer read a.py and 2 more"),
                id="no reviewer at all",
            ),
            pytest.param([], COVERAGE, ("unreviewed", "no reviewer read a.py and 2 more"), id="none was asked"),
            pytest.param(
                [review("static", reviewed=("a.py",)), review("claude", reviewed=("b.py",))],
                COVERAGE,
                ("unreviewed", "no reviewer read c.py"),
                id="a path that none read",
            ),
            pytest.param(
                [review("static")],
                COVERAGE.replace(skipped=(Skipped(path="d\x1b.bin", reason="over 10 MiB", tracked=True),)),
                ("unreviewed", "d\\x1b.bin was left out: over 10 MiB"),
                id="a tracked path was left out",
            ),
            pytest.param(
                [review("static")],
                COVERAGE.replace(skipped=(Skipped(path=".env", reason="looks like a secret"),)),
                ("pass", "3 files, built-in checks only, no agent read them"),
                id="an untracked path was left out",
            ),
            pytest.param(
                [review("static")],
                COVERAGE.replace(skipped=(Skipped(path="x.lock", reason="rule:lock file", tracked=True),)),
                ("pass", "3 files, built-in checks only, no agent read them"),
                id="a tracked path was left out by rule",
            ),
            pytest.param(
                [review("static", reviewed=("a.py",))],
                Coverage(offered=("a.py", "b.bin"), skipped=(Skipped(path="b.bin", reason="rule:binary"),)),
                ("pass", "1 file, built-in checks only, no agent read them"),
                id="an offered path was skipped by rule",
            ),
            pytest.param(
                [review("static", reviewed=(), verdict="nothing-to-review")],
                Coverage(offered=("b.bin",), skipped=(Skipped(path="b.bin", reason="rule:binary"),)),
                ("nothing-to-review", "every changed file is left out by rule"),
                id="all is skipped by rule",
            ),
            pytest.param(
                [review("static", reviewed=(), verdict="nothing-to-review")],
                Coverage(offered=("gone.py",), reviewed=("gone.py",)),
                ("pass", "1 file, built-in checks only, no agent read them"),
                id="a deleted file has nothing to read",
            ),
            pytest.param(
                [silent("codex", required=False)],
                Coverage(offered=("gone.py",), reviewed=("gone.py",)),
                ("unreviewed", "no reviewer read gone.py"),
                id="coverage without a reader is none",
            ),
            pytest.param(
                [review("static"), silent("codex", required=False, reviewed=("a.py",))],
                COVERAGE,
                ("pass", "3 of 3 files reviewed by static and codex; codex did not review everything"),
                id="one that is not required read a part",
            ),
            pytest.param([], Coverage(), ("nothing-to-review", "no file changed"), id="nothing changed"),
        ],
    )
    def test_verdict_and_reason(self, reviews: list[Review], coverage: Coverage, expected: tuple[str, str]) -> None:
        assert verdict.of_run(reviews, coverage, "blocking") == expected

    def test_never_overlooks_findings_but_not_what_is_missing(self) -> None:
        reviews = [review("static", "blocking"), silent("codex")]
        assert verdict.of_run(reviews[:1], COVERAGE, "never")[0] == "pass"
        assert verdict.of_run(reviews, COVERAGE, "never")[0] == "unreviewed"


class TestCovered:
    def test_what_one_reviewer_read_is_covered(self) -> None:
        left_out = (Skipped(path=".env", reason="looks like a secret"),)
        answers: list[Answer | Unusable] = [
            Answer(reviewed=("a.py",), skipped=(Skipped(path="b.bin", reason="rule:binary"),)),
            Answer(skipped=(Skipped(path="a.py", reason="gap"), Skipped(path="b.bin", reason="not listed by x"))),
            Unusable(reason="no output"),
        ]
        assert verdict.covered(("a.py", "b.bin", "c.py"), left_out, answers) == Coverage(
            offered=("a.py", "b.bin", "c.py"),
            reviewed=("a.py",),
            skipped=(*left_out, Skipped(path="b.bin", reason="rule:binary")),
        )


@pytest.mark.parametrize(("given", "code"), [("pass", 0), ("findings", 1), ("unreviewed", 5), ("nothing-to-review", 6)])
def test_exit_codes(given: Any, code: int) -> None:
    assert verdict.exit_code(given) == code
