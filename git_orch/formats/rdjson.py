"""reviewdog's diagnostic format (rdjson): a diagnostic a finding, and one for each reviewer that did not review.

Columns there are UTF-8 bytes, the end exclusive; so they are given where the line itself can be looked at. Every
diagnostic has a location, for reviewdog does not start without one.
"""

from __future__ import annotations

from git_orch.formats.json_ import as_bytes, document, replaced
from git_orch.formats.sarif import safe
from git_orch.formats.words import by_weight, in_full, silent, why_silent, why_unreviewed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.formats.excerpt import Source
    from git_orch.model import Finding, Json, Report, Severity

_SEVERITIES: dict[Severity, str] = {"blocking": "ERROR", "advisory": "WARNING", "nit": "INFO"}


def render(report: Report, source: Source) -> str:
    """The report as one DiagnosticResult."""
    diagnostics = [*_unreviewed(report), *(_diagnostic(finding, source) for finding in by_weight(report.findings))]
    return document({"source": {"name": "git-orch"}, "diagnostics": diagnostics})


def _unreviewed(report: Report) -> list[Json]:
    """An error for a verdict that is none, a warning for a reviewer that others made up for."""
    reasons = [(review.name, why_silent(review)) for review in silent(report)]
    if report.verdict == "unreviewed" and not reasons:
        reasons = [("git-orch", f"not reviewed: {why_unreviewed(report)}")]
    severity = "ERROR" if report.verdict == "unreviewed" else "WARNING"
    told = {"severity": severity, "location": {"path": replaced(next(iter(report.coverage.offered), "."))}}
    return [{"message": safe(text), "source": {"name": name}, **told} for name, text in reasons]


def _diagnostic(finding: Finding, source: Source) -> Json:
    diagnostic: Json = {
        "message": safe(in_full(finding)),  # the suggestion is prose: reviewdog would apply `suggestions` as code
        "location": {"path": replaced(finding.path), **_range(finding, source)},
        "severity": _SEVERITIES[finding.severity],
        "source": {"name": finding.reviewer or "git-orch"},
    }
    if finding.rule:
        diagnostic["code"] = {"value": safe(finding.rule)}
    return diagnostic


def _range(finding: Finding, source: Source) -> Json:
    path, first, last = finding.path, finding.start_line, max(finding.start_line, finding.end_line)
    if first < 1:
        return {}
    start: Json = {"line": first, **_column(path, first, finding.start_column, source)}
    end: Json = {"line": last, **_column(path, last, finding.end_column, source)}
    if ("column" in start) == ("column" in end):
        return {"range": {"start": start, "end": end}}
    # Half a range would be read as another one: it is a point in a line, or whole lines.
    return {"range": {"start": start} if first == last else {"start": {"line": first}, "end": {"line": last}}}


def _column(path: str, line: int, column: int, source: Source) -> Json:
    """The column counted in bytes, where there is one and the line is at hand."""
    lines = source(path, line, line) if column > 0 else None
    if not lines:
        return {}
    return {"column": len(as_bytes(lines[0][: column - 1])) + 1}
