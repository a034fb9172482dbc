"""SARIF 2.1.0, for code scanning: a run a reviewer, and none looks clean that was not reviewed.

A reviewer that gave no judgement has `executionSuccessful: false` and an error notification; so has a run of git-orch's
own where the verdict is `unreviewed` for another reason. Columns are Unicode characters, the end exclusive, as here.
"""

from __future__ import annotations

import urllib.parse

import git_orch
from git_orch.formats.json_ import as_bytes, document
from git_orch.formats.terminal import shown
from git_orch.formats.words import by_weight, in_full, silent, why_silent, why_unreviewed
from git_orch.runs import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.model import Finding, Json, Report, Review, Severity

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
_LEVELS: dict[Severity, str] = {"blocking": "error", "advisory": "warning", "nit": "note"}


def render(report: Report) -> str:
    """The report as one SARIF log."""
    runs = [_reviewer_run(report, review) for review in report.reviews]
    names = {review.name for review in report.reviews}
    others = by_weight(finding for finding in report.findings if finding.reviewer not in names)
    if not runs or others or (report.verdict == "unreviewed" and not silent(report)):
        runs.append(_own_run(report, others))
    runs[0]["invocations"][0]["toolExecutionNotifications"] += _skipped(report)
    return document({"$schema": SCHEMA, "version": "2.1.0", "runs": runs})


def _reviewer_run(report: Report, review: Review) -> Json:
    findings = by_weight(one for one in report.findings if one.reviewer == review.name)
    why = [] if review.verdict != "unreviewed" else [why_silent(review)]
    return _run(report, review.name, findings, errors=why, successful=review.verdict != "unreviewed")


def _own_run(report: Report, findings: Sequence[Finding]) -> Json:
    """What is no reviewer's: findings of nobody, and the reason of an `unreviewed` that no reviewer is the cause of."""
    reviewed = report.verdict != "unreviewed"
    why = [] if reviewed else [f"not reviewed: {why_unreviewed(report)}"]
    return _run(report, "", findings, errors=why, successful=reviewed)


def _run(report: Report, name: str, findings: Sequence[Finding], *, errors: Sequence[str], successful: bool) -> Json:
    rules = sorted({finding.rule or "finding" for finding in findings})
    tool = f"git-orch/{name}" if name else "git-orch"
    driver = {"name": tool, "version": git_orch.__version__, "rules": [{"id": safe(rule)} for rule in rules]}
    return {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{tool}/{report.run_id}"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "invocations": [
            {
                "executionSuccessful": successful,
                "toolExecutionNotifications": [{"level": "error", "message": {"text": safe(why)}} for why in errors],
            }
        ],
        "results": [_result(finding, rules.index(finding.rule or "finding")) for finding in findings],
        "properties": {"verdict": report.verdict, "treeId": report.tree_id, "run": short(report.run_id)},
    }


def _result(finding: Finding, rule_index: int) -> Json:
    result: Json = {
        "ruleId": safe(finding.rule or "finding"),
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": safe(in_full(finding))},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(finding.path), **_region(finding)}}],
        "properties": {"id": finding.id},
    }
    if finding.fingerprint:
        result["partialFingerprints"] = {"gitOrch/v1": finding.fingerprint}
    return result


def _artifact(path: str) -> Json:
    """A relative reference of the path's very bytes."""
    return {"uri": urllib.parse.quote(as_bytes(path), safe="/"), "uriBaseId": ROOT}


def _region(finding: Finding) -> Json:
    if finding.start_line < 1:
        return {}
    end_line = max(finding.start_line, finding.end_line)
    region = {"startLine": finding.start_line, "endLine": end_line}
    if finding.start_column > 0:
        region["startColumn"] = finding.start_column
        if finding.end_column > (finding.start_column if end_line == finding.start_line else 0):
            region["endColumn"] = finding.end_column
    return {"region": region}


def _skipped(report: Report) -> list[Json]:
    """A warning for each path that nobody reviewed."""
    return [
        {
            "level": "warning",
            "message": {"text": safe(f"not reviewed: {entry.reason}")},
            "locations": [{"physicalLocation": {"artifactLocation": _artifact(entry.path)}}],
        }
        for entry in report.coverage.skipped
    ]


def safe(text: str) -> str:
    """The text with what cannot be seen as escapes, its lines kept; no part of it is a link (SARIF 3.11.6)."""
    lines = [shown(line) for line in text.splitlines()]
    return "\n".join(lines).replace("](", "] (")
