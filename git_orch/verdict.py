"""The verdict: of one reviewer, and of a run. A pass is said only by a reviewer that read all it was given."""

from __future__ import annotations

from git_orch.config import BUILT_IN
from git_orch.errors import EXIT_NO, EXIT_NOTHING, EXIT_PASS, EXIT_UNREVIEWED
from git_orch.model import (
    SEVERITIES,
    Cancelled,
    Coverage,
    Exited,
    NotStarted,
    Review,
    Signalled,
    Stalled,
    TimedOut,
    Unkillable,
    Usage,
)
from git_orch.reviewers.reading import RULE, Answer, Unusable, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from git_orch.model import Finding, Outcome, ReviewerSettings, Skipped, Threshold, Verdict

_EXIT_CODES = {
    "pass": EXIT_PASS,
    "findings": EXIT_NO,
    "unreviewed": EXIT_UNREVIEWED,
    "nothing-to-review": EXIT_NOTHING,
}
_PLURALS = {"blocking": "blocking", "advisory": "advisories", "nit": "nits"}


def exit_code(verdict: Verdict) -> int:
    """The exit status by which a command tells the verdict."""
    return _EXIT_CODES[verdict]


def at_threshold(finding: Finding, threshold: Threshold) -> bool:
    """Whether the finding is as grave as the threshold, or graver; none is for `never`."""
    return threshold != "never" and SEVERITIES.index(finding.severity) <= SEVERITIES.index(threshold)


def of_reviewer(
    settings: ReviewerSettings,
    outcome: Outcome,
    answer: Answer | Unusable,
    *,
    tampered: tuple[str, ...] = (),
    littered: tuple[str, ...] = (),
    duration_ms: int = 0,
    usage: Usage | None = None,
) -> Review:
    """What the reviewer made of the tree.

    `tampered` are paths that it changed: nothing that it says counts then. `littered` are files that it left: they are
    only told. Its verdict is `findings` if it has any, of whatever severity, and `nothing-to-review` if all that it
    was offered is left out by rule.
    """
    verdict, reason = _judged(answer, tampered)
    return Review(
        name=settings.name,
        outcome=outcome_word(outcome),
        verdict=verdict,
        reason=reason,
        note=answer.note,
        duration_ms=duration_ms,
        findings=() if tampered else answer.findings,
        reviewed=answer.reviewed if isinstance(answer, Answer) and not tampered else (),
        skipped=answer.skipped if isinstance(answer, Answer) and not tampered else (),
        littered=littered,
        required=settings.required,
        usage=usage or Usage(),
    )


def covered(offered: tuple[str, ...], left_out: tuple[Skipped, ...], answers: Iterable[Answer | Unusable]) -> Coverage:
    """The coverage of a run: what the snapshot left out, and each offered path that no reviewer read, with reasons."""
    usable = [answer for answer in answers if isinstance(answer, Answer)]
    read = {path for answer in usable for path in answer.reviewed}
    skipped = [entry for answer in usable for entry in answer.skipped]
    reasons = {entry.path: entry for entry in sorted(skipped, key=lambda entry: entry.reason.startswith(RULE))}
    return Coverage(
        offered=offered,
        reviewed=tuple(path for path in offered if path in read),
        skipped=(*left_out, *(reasons[path] for path in offered if path not in read and path in reasons)),
    )


def narrowed(coverage: Coverage, agents: Iterable[Answer | Unusable]) -> Coverage:
    """The coverage of a run in which agents reviewed: reviewed is what one of them read, the rest has its reason.

    What the built-in checks have looked at as well is not what a person means by "reviewed" then.
    """
    answers = [answer for answer in agents if isinstance(answer, Answer)]
    read = {path for answer in answers for path in answer.reviewed}
    unread = {entry.path: entry for answer in answers for entry in answer.skipped if entry.path not in read}
    if not unread:
        return coverage
    named = {entry.path for entry in coverage.skipped}
    return coverage.replace(
        reviewed=tuple(path for path in coverage.reviewed if path not in unread),
        skipped=(*coverage.skipped, *(entry for path, entry in unread.items() if path not in named)),
    )


def of_run(reviews: Sequence[Review], coverage: Coverage, threshold: Threshold) -> tuple[Verdict, str]:
    """The verdict of all reviewers together, and why, as one sentence.

    `findings` if any reviewer has one at the threshold, even one that was cut short; else `unreviewed` if a required
    one did not review, a tracked path was left out, or an offered path is neither in the coverage nor among what a
    reviewer read; else `pass`.
    """
    findings = [finding for review in reviews for finding in review.findings]
    if any(at_threshold(finding, threshold) for finding in findings):
        return "findings", _joined(_counted(findings, reviews), *_silent(reviews))
    if gap := _why_silent(reviews) or _left_out(coverage) or _unread(reviews, coverage):
        return "unreviewed", _joined(*gap, _counted(findings, reviews))
    if not _read(reviews, coverage):
        return "nothing-to-review", "every changed file is left out by rule" if coverage.skipped else "no file changed"
    return "pass", _joined(_passed(reviews, coverage), _counted(findings, reviews), *_silent(reviews))


def outcome_word(outcome: Outcome) -> str:
    """The stable word for how a job ended, as records and `--format json` have it."""
    match outcome:
        case Exited(code=0):
            return "completed"
        case Exited():
            return "child-exit-nonzero"
        case Signalled():
            return "child-signalled"
        case TimedOut():
            return "hard-timeout"
        case Stalled():
            return "stalled"
        case Cancelled():
            return "cancelled"
        case NotStarted():
            return "not-started"
        case Unkillable():
            return "unkillable"


def tally(findings: Iterable[Finding]) -> str:
    """`1 blocking, 2 advisories, 1 nit`; "" for none."""
    severities = [finding.severity for finding in findings]
    counts = ((severities.count(severity), severity) for severity in SEVERITIES)
    return ", ".join(_plural(count, severity, _PLURALS[severity]) for count, severity in counts if count)


def _judged(answer: Answer | Unusable, tampered: tuple[str, ...]) -> tuple[Verdict, str]:
    if tampered:
        return "unreviewed", f"tampered: {_named(tampered)}"
    if isinstance(answer, Unusable):
        return "unreviewed", answer.reason
    if unread := _not_by_rule(answer.skipped):
        return "unreviewed", f"left out {_named([skipped.path for skipped in unread])} ({shown(unread[0].reason)})"
    if answer.findings:
        return "findings", ""
    if not answer.reviewed:
        return "nothing-to-review", "all that it was offered is left out by rule"
    return "pass", ""


def _not_by_rule(skipped: Iterable[Skipped]) -> list[Skipped]:
    return [entry for entry in skipped if not entry.reason.startswith(RULE)]


def _silent(reviews: Iterable[Review]) -> list[str]:
    missing = (review for review in reviews if review.verdict == "unreviewed")
    return [f"{review.name} did not review{' everything' if review.reviewed else ''}" for review in missing]


def _why_silent(reviews: Iterable[Review]) -> list[str]:
    missing = (review for review in reviews if review.required and review.verdict == "unreviewed")
    return [f"{review.name} did not review: {review.reason or review.outcome}" for review in missing]


def _left_out(coverage: Coverage) -> list[str]:
    """The tracked paths that are in no tree, for a reason that is not a rule."""
    left = _not_by_rule(skipped for skipped in coverage.skipped if skipped.tracked)
    return [f"{_named([skipped.path for skipped in left])} was left out: {shown(left[0].reason)}"] if left else []


def _unread(reviews: Sequence[Review], coverage: Coverage) -> list[str]:
    """The paths that were offered and that no reviewer read."""
    read = _read(reviews, coverage)
    ruled = {skipped.path for skipped in coverage.skipped if skipped.reason.startswith(RULE)}
    left = [path for path in coverage.offered if path not in read and path not in ruled]
    return [f"no reviewer read {_named(left)}"] if left else []


def _readers(reviews: Iterable[Review]) -> list[Review]:
    return [review for review in reviews if review.reviewed or review.verdict != "unreviewed"]


def _read(reviews: Iterable[Review], coverage: Coverage) -> set[str]:
    """The offered paths that were read; what the coverage claims counts only if somebody read at all."""
    readers = _readers(reviews)
    read = {path for review in readers for path in review.reviewed}
    return read.union(coverage.reviewed if readers else ()).intersection(coverage.offered)


def _passed(reviews: Sequence[Review], coverage: Coverage) -> str:
    readers = _readers(reviews)
    read = len(_read(reviews, coverage).difference(entry.path for entry in coverage.skipped))
    offered = len(coverage.offered)
    if [review.name for review in reviews] == [BUILT_IN]:
        return f"{_plural(read, 'file')}, built-in checks only, no agent read them"
    *names, last = [review.name for review in readers]
    by = f"{', '.join(names)} and {last}" if names else last
    return f"{read} of {_plural(offered, 'file')} reviewed by {by}"


def _counted(findings: Sequence[Finding], reviews: Sequence[Review]) -> str:
    """`1 blocking, 2 nits (static, claude)`; "" for none."""
    if not findings:
        return ""
    return f"{tally(findings)} ({', '.join(review.name for review in reviews if review.findings)})"


def _joined(*clauses: str) -> str:
    return "; ".join(filter(None, clauses))


def _named(paths: Sequence[str]) -> str:
    """The first path, and how many there are beside it."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return shown(paths[0]) + more


def _plural(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
