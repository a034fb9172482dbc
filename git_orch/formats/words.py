"""Numbers, times and names as people read them."""

from __future__ import annotations

from git_orch.model import SEVERITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from git_orch.model import Coverage, Finding, Report, Review, Severity, Usage

_PLURALS = {"blocking": "blocking", "advisory": "advisories", "nit": "nits"}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
STATIC = "static"
_UNTOLD = {
    "queued": "the run has not begun",
    "starting": "the run is starting",
    "running": "the run goes on",
    "stopping": "the run is stopping",
    "failed": "the run failed",
    "timed-out": "the run took too long",
    "cancelled": "the run was cancelled",
    "orphaned": "the run's supervisor died",
    "unkillable": "the run's processes cannot be ended",
    "superseded": "a newer tree took the run's place",
}


def plural(count: int, one: str, many: str = "") -> str:
    """`1 file`, `3 files`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def closest(word: str, known: Iterable[str]) -> str:
    """The known word that is one slip away from this one, "" where there is none."""
    import difflib  # only on the way to an error

    return next(iter(difflib.get_close_matches(word, list(known), n=1)), "")


def listed(names: Sequence[str]) -> str:
    """`static`, `static and claude`, `static, claude and codex`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def short_id(oid: str) -> str:
    """The seven hex digits by which people call a tree or a commit."""
    return oid[:7]


def tally(findings: Iterable[Finding]) -> str:
    """`1 blocking, 2 advisories, 1 nit`, or `no findings`."""
    severities = [finding.severity for finding in findings]
    counts = [(severities.count(severity), severity) for severity in SEVERITIES]
    return ", ".join(plural(n, severity, _PLURALS[severity]) for n, severity in counts if n) or "no findings"


def by_weight(findings: Iterable[Finding]) -> list[Finding]:
    """The gravest first, then by place."""
    return sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), f.path, f.start_line, f.start_column))


def with_severity(findings: Iterable[Finding], *severities: Severity) -> list[Finding]:
    """Those of these severities."""
    return [finding for finding in findings if finding.severity in severities]


def source_of(finding: Finding) -> str:
    """Who says it by which rule: `claude/sql-injection`."""
    return "/".join(filter(None, (finding.reviewer, finding.rule)))


def in_full(finding: Finding) -> str:
    """The message with what it fails on and what would help, in lines: for formats that have one text a finding."""
    extra = (("Fails when", finding.fails_when), ("Suggestion", finding.suggestion))
    return "\n".join([finding.message, *(f"{label}: {text}" for label, text in extra if text)])


def why_silent(review: Review) -> str:
    """`codex did not review: rate limited until 15:20`."""
    return f"{review.name} did not review: {review.reason or review.outcome}"


def why_all_silent(report: Report) -> str:
    """The same of every reviewer that gave no judgement."""
    return "; ".join(map(why_silent, silent(report)))


def did_review(review: Review) -> bool:
    """Whether the reviewer gave a judgement."""
    return review.verdict in ("pass", "findings")


def silent(report: Report) -> list[Review]:
    """The reviewers that were asked and gave no judgement."""
    return [review for review in report.reviews if review.verdict == "unreviewed"]


def only_static(report: Report) -> bool:
    """Whether the built-in checks were the only reviewer."""
    return [review.name for review in report.reviews] == [STATIC]


def file_count(coverage: Coverage) -> int:
    """How many changed files there were, those left out included."""
    return len({*coverage.offered, *(skipped.path for skipped in coverage.skipped)})


def why_unreviewed(report: Report) -> str:
    """The reason of a verdict that is none; never empty."""
    return report.reason or why_all_silent(report) or _UNTOLD.get(report.status, "no reviewer gave a judgement")


def duration(ms: int) -> str:
    """`41 ms`, `31.4 s`, `2m04s`, `1h05m`: at most six characters below ten hours."""
    if ms < 100:
        return f"{ms} ms"
    return f"{ms / 1000:.1f} s" if ms < 59_950 else elapsed(ms / 1000)


def elapsed(seconds: float) -> str:
    """`23 s`, `2m04s`, `1h05m`."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60}m{whole % 60:02d}s" if whole < 3600 else f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def age(seconds: float) -> str:
    """`14 s`, `6 min`, `1 h`, `3 d`; a clock that was set back gives `0 s`."""
    whole = max(0, int(seconds))
    for unit, length_s in (("d", 86_400), ("h", 3600), ("min", 60)):
        if whole >= length_s:
            return f"{whole // length_s} {unit}"
    return f"{whole} s"


def tokens(count: int) -> str:
    """`640 tokens`, `18k tokens`, `1.2M tokens`."""
    if count < 1000:
        return f"{count} tokens"
    return f"{round(count / 1000)}k tokens" if count < 999_500 else f"{count / 1_000_000:.1f}M tokens"


def money(usd: float) -> str:
    """`$0.09`; less than a cent is `<$0.01`."""
    return f"${usd:.2f}" if usd >= 0.005 else "<$0.01"


def price(usage: Usage) -> list[str]:
    """What an agent cost, as far as it is known: `18k tokens`, `$0.09`."""
    told = [tokens(usage.tokens)] if usage.tokens else []
    return [*told, money(usage.cost_usd)] if usage.cost_usd > 0 else told


def size(size_bytes: int) -> str:
    """`512 B`, `1 MiB`, `17.2 MiB`, `412 MiB`."""
    value, unit = float(size_bytes), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    digits = f"{value:.0f}" if value >= 100 or unit == 0 else f"{value:.1f}".removesuffix(".0")
    return f"{digits} {_UNITS[unit]}"
