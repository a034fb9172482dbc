"""One run: `git orch show RUN`. A fact that is not known has no line."""

from __future__ import annotations

from git_orch.formats.advice import Advice, next_steps
from git_orch.formats.found import FoundRow, found_lines
from git_orch.formats.paragraphs import joined, plain, sentences
from git_orch.formats.rows import outcome_mark
from git_orch.formats.terminal import VERDICT_MARKS, Terminal, mark_style, pad, wrap
from git_orch.formats.text import skip_lines
from git_orch.formats.words import file_count, plural, price, short_id, size, why_all_silent, why_unreviewed
from git_orch.model import Record, Report, Usage
from git_orch.runs import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.model import Review

_LABEL = 11  # "contained  "


class ShowView(Record):
    """What `show RUN` shows beside the report: sentences as they are printed, empty where nothing is known.

    `worktree`, `started`, `fired_by`, `contained` and `files` are facts of the run; `found` are its findings against
    the tree `now`, or as they were reported; `told` says to whom they went; `all_skipped` lists every path left out.
    """

    report: Report
    worktree: str = ""
    started: str = ""
    fired_by: str = ""
    contained: str = ""
    usage: Usage = Usage()
    files: str = ""
    found: tuple[FoundRow, ...] = ()
    now: str = ""
    told: str = ""
    all_skipped: bool = False
    advice: tuple[Advice, ...] = ()


def show_text(view: ShowView, terminal: Terminal) -> str:
    """A run's name and verdict, its facts in two columns, its findings against what is there now."""
    title = f"Findings against what is there now (tree {short_id(view.now)})" if view.now else "Findings"
    told = sentences([f"told: {view.told}"] if view.told else [], terminal)
    found = [*plain(title, terminal), *found_lines(view.found, terminal), *told] if view.found else []
    skipped = skip_lines(view.report.coverage.skipped, terminal, "  ") if view.all_skipped else []
    return joined(
        [
            [*_title(view.report, terminal), *_facts(view, terminal)],
            ["Skipped", *skipped] if skipped else [],
            found,
            next_steps(view.advice, terminal),
        ]
    )


def _title(report: Report, terminal: Terminal) -> list[str]:
    mark = VERDICT_MARKS[report.verdict]
    verdict = f"{terminal.mark(mark)} {report.verdict.replace('-', ' ')}"
    line = f"run {short(report.run_id)}  {report.run_id}  "
    painted = terminal.paint(verdict, mark_style(mark))
    if len(line) + len(verdict) > terminal.width:
        return [line.rstrip(), f"  {painted}"]
    return [line + painted]


def _facts(view: ShowView, terminal: Terminal) -> list[str]:
    report = view.report
    facts = [
        ("what", _what(view)),
        ("fired by", view.fired_by),
        ("time", _time(view)),
        ("reason", _reason(report)),
    ]
    lines = [line for label, text in facts for line in _fact(label, text, terminal)]
    lines += _reviewers(report.reviews, terminal)
    later = [
        ("covered", _covered(view)),
        ("contained", view.contained),
        ("cost", _cost(view.usage)),
    ]
    lines += [line for label, text in later for line in _fact(label, text, terminal)]
    # A path to open: never broken.
    return [*lines, f"  {pad('files', _LABEL)}{terminal.shown(view.files)}"] if view.files else lines


def _fact(label: str, text: str, terminal: Terminal) -> list[str]:
    rest = " " * (2 + _LABEL)
    return wrap(terminal.sentence(text), terminal.width, first=f"  {pad(label, _LABEL)}", rest=rest) if text else []


def _what(view: ShowView) -> str:
    report = view.report
    where = f" of {view.worktree}" if view.worktree else ""
    oid = short_id(report.base.commit or report.base.tree_id)
    named = f"{report.base.name} {oid}" if report.base.name and not oid.startswith(report.base.name) else oid
    return f"{report.subject}{where}, tree {short_id(report.tree_id)} against {named}"


def _reason(report: Report) -> str:
    """Why there is no verdict, where the reviewers' own lines do not say it."""
    why = why_unreviewed(report) if report.verdict == "unreviewed" else ""
    return "" if why == why_all_silent(report) else why


def _time(view: ShowView) -> str:
    timings = view.report.timings_ms
    tree = f" ({view.report.materialized})" if view.report.materialized else ""
    steps = (("snapshot", "snapshot", ""), ("materialize", "tree", tree), ("review", "review", ""))
    told = ", ".join(f"{word} {_seconds(timings[key])}{more}" for key, word, more in steps if key in timings)
    total = f"{_seconds(timings['total'])} s" if "total" in timings else ""
    return ": ".join(filter(None, (", ".join(filter(None, (view.started, total))), told)))


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.2f}" if ms < 1000 else f"{ms / 1000:.1f}"


def _reviewers(reviews: Sequence[Review], terminal: Terminal) -> list[str]:
    names = max((len(review.name) for review in reviews), default=0)
    lines: list[str] = []
    for number, review in enumerate(reviews):
        mark = outcome_mark(review)
        label = pad("" if number else "reviewers", _LABEL)
        first = f"  {label}{terminal.mark(mark)} {pad(review.name, names)}  "
        row = wrap(terminal.sentence(_said(review)), terminal.width, first=first, rest=" " * (4 + _LABEL))
        lines += [terminal.paint_at(row[0], 2 + _LABEL, 1, mark_style(mark)), *row[1:]]
    return lines


def _said(review: Review) -> str:
    if review.verdict == "unreviewed":
        return f"not reviewed: {review.reason or review.outcome}"
    count = plural(len(review.findings), "finding") if review.findings else "no findings"
    told = ", ".join([count, *price(review.usage)])
    return f"{told}; {review.note}" if review.note else told


def _covered(view: ShowView) -> str:
    coverage = view.report.coverage
    total = file_count(coverage)
    if not total:
        return ""
    hint = "" if view.all_skipped else " (--coverage lists them)"
    skipped = f", {len(coverage.skipped)} skipped{hint}" if coverage.skipped else ""
    return f"{len(coverage.reviewed)} of {plural(total, 'file')}{skipped}"


def _cost(usage: Usage) -> str:
    if not usage.cpu_s and not usage.peak_rss_bytes:
        return ""
    peak = f", {size(usage.peak_rss_bytes)} peak" if usage.peak_rss_bytes else ""
    return f"{usage.cpu_s:.1f} s CPU{peak}"
