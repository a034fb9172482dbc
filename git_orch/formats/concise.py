"""A line a finding, as compilers print them, and a last line with the verdict: for editors, grep and logs.

A finding's line is `path:line:column: severity: message [id reviewer/rule]`.
"""

from __future__ import annotations

from git_orch.formats.blocks import place
from git_orch.formats.terminal import Terminal
from git_orch.formats.words import (
    by_weight,
    did_review,
    file_count,
    listed,
    only_static,
    plural,
    silent,
    source_of,
    tally,
    why_unreviewed,
)
from git_orch.runs import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Finding, Report


def render(report: Report, terminal: Terminal) -> str:
    """All findings, the gravest first, and the verdict; lines are never broken."""
    lines = [_line(finding, terminal) for finding in by_weight(report.findings)]
    return "".join(f"{line}\n" for line in [*lines, terminal.sentence(summary(report))])


def _line(finding: Finding, terminal: Terminal) -> str:
    origin = " ".join(filter(None, (finding.id, terminal.sentence(source_of(finding)))))
    said = terminal.sentence(finding.message)
    return f"{place(finding, terminal)}: {finding.severity}: {said}" + (f" [{origin}]" if origin else "")


def summary(report: Report) -> str:
    """The verdict in one sentence: `findings: 1 blocking; 11 of 14 files; codex did not review (run 9f3a)`."""
    parts = [_verdict(report)]
    total = file_count(report.coverage)
    if total:
        parts.append(f"{len(report.coverage.reviewed)} of {plural(total, 'file')}")
    if report.verdict == "pass":
        by = listed([review.name for review in report.reviews if did_review(review)])
        parts.append("built-in checks only" if only_static(report) else f"by {by}")
    if report.verdict in ("pass", "findings") and silent(report):
        parts.append(f"{listed([review.name for review in silent(report)])} did not review")
    return f"{'; '.join(parts)} (run {short(report.run_id)})"


def _verdict(report: Report) -> str:
    match report.verdict:
        case "unreviewed":
            return f"unreviewed: {why_unreviewed(report)}"
        case "nothing-to-review":
            return f"nothing to review: {report.reason or 'there is no difference'}"
        case "pass" | "findings":
            return f"{report.verdict}: {tally(report.findings)}"
