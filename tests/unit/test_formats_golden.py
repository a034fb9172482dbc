"""What a person sees is what docs/output.md promises, at three widths. UPDATE_GOLDEN=1 rewrites the golden files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from git_orch import formats
from git_orch.formats import plan, rows
from git_orch.formats.show import show_text
from git_orch.formats.spending import budget_text, today
from git_orch.formats.status import status_text
from git_orch.formats.terminal import Terminal, cells
from tests.unit import format_examples as examples

GOLDEN = Path(__file__).parents[1] / "golden"
PAGES = [(GOLDEN.parents[1] / "docs" / name, least) for name, least in (("output.md", 10), ("plan.md", 1))]
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))
WIDTHS = (40, 80, 120)
# Places and commands are whole, so that they can be opened and pasted; a place of a nit may have a line of its own.
WHOLE = ("  --> ", "  git orch ", "  files ", "nit[")


def review_text(name: str) -> Callable[[Terminal], str]:
    report = examples.REPORTS[name]
    return lambda terminal: formats.render(report, "text", terminal=terminal, source=examples.source)


def live_text(terminal: Terminal) -> str:
    lines = [rows.header(examples.REVIEW, terminal), *rows.live_rows(examples.STATES, terminal, frame=2)]
    return "\n".join(lines) + "\n"


VIEWS: dict[str, Callable[[Terminal], str]] = {
    **{f"review-{name}": review_text(name) for name in examples.REPORTS},
    "live": live_text,
    "status": lambda terminal: status_text(examples.STATUS, terminal),
    "status-whole": lambda terminal: status_text(examples.STATUS_WHOLE, terminal),
    "status-new": lambda terminal: status_text(examples.STATUS_NEW, terminal),
    "budget": lambda terminal: budget_text(examples.BUDGET, terminal),
    "budget-open": lambda terminal: budget_text(examples.BUDGET_OPEN, terminal),
    "plan": lambda terminal: plan.render(examples.plan(), "text", terminal),
    "plan-serial": lambda terminal: plan.render(examples.plan(strict_files=True), "text", terminal),
    "show": lambda terminal: show_text(examples.SHOW, terminal),
    "show-whole": lambda terminal: show_text(examples.SHOW_WHOLE, terminal),
    "show-unreviewed": lambda terminal: show_text(examples.SHOW_UNREVIEWED, terminal),
}


def documented(text: str) -> str:
    """The page with each block that names a golden file replaced by what is in that file."""

    def block(match: re.Match[str]) -> str:
        golden = (GOLDEN / f"{match['name']}.txt").read_text(encoding="utf-8")
        return f"<!-- golden: {match['name']} -->\n```\n{golden}```\n"

    return re.sub(r"<!-- golden: (?P<name>\S+) -->\n```\n.*?^```\n", block, text, flags=re.DOTALL | re.MULTILINE)


def compare(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", VIEWS)
def test_as_the_golden_file(name: str, width: int) -> None:
    compare(f"{name}-{width}", VIEWS[name](Terminal(width=width)))


@pytest.mark.parametrize("width", [*WIDTHS, 57, 60, 200])
@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_no_line_is_wider_than_the_terminal(name: str, width: int, ascii_only: bool) -> None:
    lines = VIEWS[name](Terminal(width=width, unicode=not ascii_only)).splitlines()
    too_wide = [line for line in lines if cells(line) > width and not line.startswith(WHOLE)]
    assert not too_wide


@pytest.mark.parametrize("name", VIEWS)
def test_the_narrowest_terminal_still_gets_the_commands(name: str) -> None:
    narrow, wide = (" ".join(VIEWS[name](Terminal(width=width)).split()).count("git orch") for width in (20, 80))
    assert narrow == wide


@pytest.mark.parametrize("name", VIEWS)
def test_no_line_ends_in_spaces_and_no_two_empty_lines_follow_each_other(name: str) -> None:
    text = VIEWS[name](Terminal())
    assert all(line == line.rstrip() for line in text.splitlines())
    assert "\n\n\n" not in text
    assert text.endswith("\n")


@pytest.mark.parametrize("name", VIEWS)
def test_without_unicode_all_is_ascii(name: str) -> None:
    assert VIEWS[name](Terminal(unicode=False)).isascii()


def test_marks_in_ascii() -> None:
    compare("review-review-ascii-80", review_text("review")(Terminal(unicode=False)))


def test_colour_is_on_verdict_severity_and_marker_only() -> None:
    compare("review-review-colour-80", review_text("review")(Terminal(colour=True)).replace("\x1b", "<ESC>"))


@pytest.mark.parametrize("name", VIEWS)
def test_colour_changes_nothing_else(name: str) -> None:
    coloured = VIEWS[name](Terminal(colour=True))
    for code in ("31", "32", "33", "36", "0"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured == VIEWS[name](Terminal())


@pytest.mark.parametrize("name", ["review", "clean", "static-alone", "unreviewed", "not-run", "nothing", "partly"])
def test_concise_as_the_golden_file(name: str) -> None:
    compare(
        f"concise-{name}",
        formats.render(examples.REPORTS[name], "concise", terminal=Terminal(), source=examples.source),
    )


def test_github_as_the_golden_file() -> None:
    compare("github", formats.render(examples.REVIEW, "github", terminal=Terminal(), source=examples.source))


def test_the_lines_for_a_log_as_the_golden_file() -> None:
    lines = [rows.log_start(examples.REVIEW), rows.log_row(examples.STATIC), rows.log_still("claude", 30.2)]
    lines += [rows.log_row(examples.CLAUDE), rows.log_row(examples.CODEX)]
    compare("log", "".join(f"{line}\n" for line in lines))


def test_the_documentation_shows_what_is_printed() -> None:
    """Last, so that UPDATE_GOLDEN has written the files before."""
    for path, least in PAGES:
        page = path.read_text(encoding="utf-8")
        assert page.count("<!-- golden: ") >= least
        if UPDATE:
            path.write_text(documented(page), encoding="utf-8")
            page = documented(page)
        assert page == documented(page)


def test_the_day_in_one_line() -> None:
    assert today(examples.BUDGET) == "today: 7 agent reviews, $0.41 of $5.00; this hour 3 of 12"
    assert today(examples.BUDGET_OPEN) == ""  # a day without any
    open_day = examples.BUDGET_OPEN.replace(day=examples.BUDGET.day.replace(reviews=1, usd=0.0))
    assert today(open_day) == "today: 1 agent review, $0.00; this hour 0"
