"""A report for a person at a terminal: docs/output.md has the layouts, tests/golden what comes out."""

from __future__ import annotations

from git_orch.formats.advice import Advice, next_steps, usual_advice
from git_orch.formats.blocks import GLANCE, block, nit
from git_orch.formats.masking import masked
from git_orch.formats.rows import header, name_width, reviewer_row
from git_orch.formats.spending import of_money
from git_orch.formats.terminal import Terminal, cells, mark_style, pad, wrap
from git_orch.formats.words import (
    by_weight,
    did_review,
    duration,
    file_count,
    listed,
    only_static,
    plural,
    silent,
    tally,
    why_unreviewed,
    with_severity,
)
from git_orch.runs import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.formats.excerpt import Source
    from git_orch.formats.terminal import Mark
    from git_orch.model import Finding, Report, Skipped

IN_FULL = 20  # findings with their lines, and as many nits; the rest is counted
MOST_SKIPPED = 5
_BEFORE = "this very tree was reviewed before"
_NARROW = 60
_REASON_LEAST = 20


def render(report: Report, terminal: Terminal, source: Source, advice: Sequence[Advice] | None = None) -> str:
    """The whole report: header, a row a reviewer, then `body`."""
    if report.verdict == "nothing-to-review":
        return body(report, terminal, source, advice)
    names = name_width([review.name for review in report.reviews])
    rows = [reviewer_row(review, terminal, names) for review in report.reviews]
    return "\n".join([header(report, terminal), *rows, body(report, terminal, source, advice)])


def body(report: Report, terminal: Terminal, source: Source, advice: Sequence[Advice] | None = None) -> str:
    """What follows the reviewers' rows: findings, verdict, coverage, what to type next (`advice`, else the usual)."""
    findings = by_weight(report.findings)
    blocks = _findings(findings, report, terminal, masked(findings, source))
    verdict = [*_verdict(report, terminal), *_coverage(report, terminal), *_run(report, terminal)]
    steps = next_steps(usual_advice(report) if advice is None else advice, terminal)
    apart = _has_details(report)  # a clean review is one glance: no empty line in it
    parts = [*blocks, verdict, steps] if apart else [*blocks, [*verdict, *steps]]
    lines = "\n\n".join("\n".join(part) for part in parts if part)
    return f"\n{lines}\n" if apart else f"{lines}\n"


def _findings(findings: list[Finding], report: Report, terminal: Terminal, source: Source) -> list[list[str]]:
    """A block a finding, one for all nits, one that counts what is not shown."""
    grave, nits = with_severity(findings, "blocking", "advisory"), with_severity(findings, "nit")
    blocks = [block(finding, terminal, source, GLANCE) for finding in grave[:IN_FULL]]
    blocks.append([line for finding in nits[:IN_FULL] for line in nit(finding, terminal)])
    left = max(0, len(grave) - IN_FULL) + max(0, len(nits) - IN_FULL)
    blocks.append([f"... and {left} more: git orch show {short(report.run_id)}"] if left else [])
    return [block for block in blocks if block]


def _verdict(report: Report, terminal: Terminal) -> list[str]:
    mark, word, rest = _judgement(report)
    said = terminal.clip(terminal.sentence(rest), GLANCE.message)
    lines = wrap(said, terminal.width, first=f"{terminal.mark(mark)} {word}: ", rest="  ")
    lines[0] = terminal.paint_at(lines[0], 0, len(word) + 2, mark_style(mark))
    return lines


def _judgement(report: Report) -> tuple[Mark, str, str]:
    """The mark, the word, and the rest of the sentence."""
    quiet = [review.name for review in silent(report)]
    but = f"; {listed(quiet)} did not review" if quiet else ""
    match report.verdict:
        case "pass":
            return "pass", "pass", f"{_passed(report)}{but}"
        case "findings":
            return "no", "findings", f"{tally(report.findings)} ({_readers(report)}){but}"
        case "unreviewed":
            found = f" ({tally(report.findings)} so far)" if report.findings else ""
            return "unreviewed", "unreviewed", f"{why_unreviewed(report)}{found}"
        case "nothing-to-review":
            return "skipped", "nothing to review", report.reason or "there is no difference"


def _readers(report: Report) -> str:
    if only_static(report):
        return "static, built-in checks only"
    return ", ".join(review.name for review in report.reviews if did_review(review))


def _passed(report: Report) -> str:
    """`3 of 3 files reviewed by static and claude in 13.4 s`; what was found, where it is below the threshold."""
    found = f"{tally(report.findings)}; " if report.findings else ""
    if only_static(report):
        extent = f"{_extent(report)}, built-in checks only, no agent read them"
    else:
        by = listed([review.name for review in report.reviews if did_review(review)])
        total_ms = 0 if _has_details(report) else report.timings_ms.get("total")
        extent = f"{_of(report)} reviewed by {by}" + (f" in {duration(total_ms)}" if total_ms else "")
    before = f", {_BEFORE}" if report.reused else ""
    name = "" if _has_details(report) else f" (run {short(report.run_id)}{before})"
    return f"{found}{extent}{name}"


def _of(report: Report) -> str:
    """`11 of 14 files`."""
    return f"{len(report.coverage.reviewed)} of {plural(file_count(report.coverage), 'file')}"


def _extent(report: Report) -> str:
    total = file_count(report.coverage)
    return plural(total, "file") if len(report.coverage.reviewed) == total else _of(report)


def _has_details(report: Report) -> bool:
    """Whether coverage and run have lines of their own below the verdict."""
    clean = report.verdict == "pass" and not report.findings and not report.coverage.skipped
    return not clean and report.verdict != "nothing-to-review"


def _coverage(report: Report, terminal: Terminal) -> list[str]:
    if not _has_details(report) or not file_count(report.coverage):
        return []
    skipped = sorted(report.coverage.skipped, key=lambda entry: not entry.tracked)
    more = f"; {len(skipped)} skipped" if skipped else ""
    left = len(skipped) - MOST_SKIPPED
    indent = skip_indent(terminal)
    ask = [f"{indent}... and {left} more: git orch show {short(report.run_id)}"] if left > 0 else []
    return [f"  covered   {_of(report)}{more}", *skip_lines(skipped[:MOST_SKIPPED], terminal, indent), *ask]


def skip_indent(terminal: Terminal) -> str:
    """Below the text of `  covered   `, or less where cells are dear."""
    return " " * (12 if terminal.width >= _NARROW else 4)


def skip_lines(skipped: Sequence[Skipped], terminal: Terminal, indent: str) -> list[str]:
    """Paths and their reasons in two columns, or each reason below its path where the terminal is too narrow."""
    room = terminal.width - len(indent)
    told = [(terminal.shown(entry.path), terminal.sentence(entry.reason)) for entry in skipped]
    paths = [terminal.clip_middle(path, max(18, room // 2)) for path, _ in told]
    column = len(indent) + max(map(cells, paths), default=0) + 2
    if any(column + min(_REASON_LEAST, cells(reason)) > terminal.width for _, reason in told):
        return [line for path, reason in told for line in _below(path, reason, terminal, indent)]
    firsts = [pad(indent + path, column) for path in paths]
    pairs = zip(firsts, told, strict=True)
    return [
        line for first, (_, reason) in pairs for line in wrap(reason, terminal.width, first=first, rest=" " * column)
    ]


def _below(path: str, reason: str, terminal: Terminal, indent: str) -> list[str]:
    hanging = indent + "  "
    path = terminal.clip_middle(path, terminal.width - len(indent))
    return [indent + path, *wrap(reason, terminal.width, first=hanging, rest=hanging)]


def _run(report: Report, terminal: Terminal) -> list[str]:
    if not _has_details(report):
        return []
    total_ms = report.timings_ms.get("total")
    took = [duration(total_ms)] if total_ms else []
    today = [f"{of_money(report.usd_today, report.usd_limit)} today"] if report.usd_today > 0 else []
    said = ", ".join([*took, _BEFORE] if report.reused else [*took, *today])
    return wrap(said, terminal.width, first=f"  run {short(report.run_id)}  ", rest=" " * 12)
