"""Workflow commands of GitHub Actions: an annotation a finding, and one where something was not reviewed."""

from __future__ import annotations

from git_orch.formats.concise import summary
from git_orch.formats.terminal import shown
from git_orch.formats.words import by_weight, in_full, silent, source_of, why_silent, why_unreviewed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Finding, Report, Severity

_COMMANDS: dict[Severity, str] = {"blocking": "error", "advisory": "warning", "nit": "notice"}


def render(report: Report) -> str:
    """The gravest first, for GitHub shows ten of a kind a step; the verdict last, as a line of the log."""
    findings = [_annotation(finding) for finding in by_weight(report.findings)]
    return "".join(f"{line}\n" for line in [*_unreviewed(report), *findings, f"git-orch: {_plain(summary(report))}"])


def _unreviewed(report: Report) -> list[str]:
    if report.verdict == "unreviewed":
        return [f"::error title=git-orch::{_data(f'not reviewed: {why_unreviewed(report)}')}"]
    return [f"::warning title=git-orch::{_data(why_silent(review))}" for review in silent(report)]


def _annotation(finding: Finding) -> str:
    title = " ".join(filter(None, ("git-orch", finding.id, source_of(finding))))
    properties = {"file": finding.path, **_place(finding), "title": title}
    told = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {told}::{_data(in_full(finding))}"


def _place(finding: Finding) -> dict[str, int]:
    """Columns only within one line: GitHub refuses the others. Its ends are inclusive."""
    if finding.start_line < 1:
        return {}
    end_line = max(finding.start_line, finding.end_line)
    place = {"line": finding.start_line, "endLine": end_line}
    if finding.start_column > 0 and end_line == finding.start_line:
        place["col"] = finding.start_column
        if finding.end_column > finding.start_column:
            place["endColumn"] = finding.end_column - 1
    return place


def _data(text: str) -> str:
    """The text as the command's message: its lines kept, what cannot be seen as escapes."""
    lines = [shown(line).replace("%", "%25") for line in text.splitlines()]
    return "%0A".join(lines)


def _property(text: str) -> str:
    """The text as a property's value."""
    return shown(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")


def _plain(text: str) -> str:
    """The text as a line of the log, in which no old-style command is found (`##[...]` is one anywhere in a line)."""
    return shown(" ".join(text.split())).replace("##[", "# #[")
