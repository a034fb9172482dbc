"""No text of a repository or a reviewer acts on a terminal, forges a line, or breaks a format (cases 54 and 71)."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from git_orch import formats
from git_orch.formats import rows
from git_orch.formats.show import ShowView, show_text
from git_orch.formats.status import RunRow, StatusView, status_text
from git_orch.formats.terminal import Terminal
from git_orch.model import SEVERITIES, Base, Coverage, Finding, Report, Review, Skipped
from tests.unit import format_examples as examples

FOR_PEOPLE = ("text", "concise", "github")
TEXT = st.text(st.characters(), max_size=60)
NUMBER = st.integers(0, 1 << 40) | st.integers(0, 8)
PATH = st.text(st.characters(), min_size=1, max_size=60)
FINDINGS = st.builds(
    Finding,
    path=PATH,
    message=TEXT,
    severity=st.sampled_from(SEVERITIES),
    start_line=NUMBER,
    end_line=NUMBER,
    start_column=NUMBER,
    end_column=NUMBER,
    rule=TEXT,
    fails_when=TEXT,
    suggestion=TEXT,
    reviewer=st.sampled_from(["static", "claude", ""]),
    id=st.sampled_from(["kmzv", ""]),
)
VERDICTS = st.sampled_from(["pass", "findings", "unreviewed", "nothing-to-review"])
REVIEWS = st.builds(
    Review, name=st.sampled_from(["static", "claude"]), outcome=TEXT, verdict=VERDICTS, reason=TEXT, note=TEXT,
    duration_ms=NUMBER,
)  # fmt: skip
REPORTS = st.builds(
    Report,
    run_id=st.just(examples.RUN_ID),
    tree_id=st.just("0c" * 20),
    base=st.builds(Base, tree_id=st.just("0c" * 20), name=TEXT, commit=st.sampled_from(["", "a9" * 20])),
    subject=TEXT,
    verdict=VERDICTS,
    reason=TEXT,
    findings=st.lists(FINDINGS, max_size=4).map(tuple),
    coverage=st.builds(
        Coverage,
        offered=st.lists(PATH, max_size=3).map(tuple),
        skipped=st.lists(st.builds(Skipped, path=PATH, reason=TEXT), max_size=3).map(tuple),
    ),
    reviews=st.lists(REVIEWS, max_size=2, unique_by=lambda review: review.name).map(tuple),
)


ACTS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)


def harmless(text: str) -> bool:
    return all(c.isprintable() or c in "\n\u00a0\u202f\u3000\u200c\u200d" for c in text)


@settings(max_examples=150)
@given(report=REPORTS, lines=st.lists(TEXT, max_size=9), width=st.integers(20, 120), unicode=st.booleans())
def test_no_report_harms_a_terminal_or_breaks_a_format(
    report: Report, lines: list[str], width: int, unicode: bool
) -> None:
    terminal = Terminal(width=width, unicode=unicode)
    for name in formats.NAMES:
        text = formats.render(report, name, terminal=terminal, source=lambda _, first, last: lines[: last - first + 1])
        text.encode("utf-8")
        assert text.endswith("\n")
        assert harmless(text) if name in FOR_PEOPLE else not ACTS.search(text)
        if name == "jsonl":
            assert all(json.loads(line)["type"] for line in text.removesuffix("\n").split("\n"))
        elif name not in FOR_PEOPLE:
            json.loads(text)
        elif name != "github" and not unicode:
            assert text.isascii()
    assert harmless(show_text(ShowView(report=report), terminal))


@pytest.mark.parametrize("name", formats.NAMES)
def test_a_hostile_report_forges_no_line(name: str) -> None:
    text = formats.render(examples.HOSTILE, name, terminal=Terminal(), source=examples.source)
    lines = text.splitlines()
    assert not [line for line in lines if line.lstrip().startswith("✓ pass") and name != "text"]
    assert not [line for line in lines if line.startswith("✓ pass")]
    if name == "github":
        commands = [line for line in lines if line.strip().startswith("::")]
        assert [command.split(" ")[0] for command in commands] == ["::warning", "::error", "::warning", "::notice"]
        assert "##[" not in lines[-1]


def test_status_and_progress_show_no_control_character() -> None:
    nasty = examples.NASTY
    row = RunRow(run_id=examples.RUN_ID, age_s=1, from_=nasty, what=nasty, by=nasty, state=nasty, mark="no")
    view = StatusView(branch=nasty, commit="a9" * 20, lines=(nasty,), more=nasty, rows=(row,), hooks=nasty, today=nasty)
    progress = [rows.Progress(name="claude", doing=nasty, cost="9k")]
    assert harmless(status_text(view, Terminal()))
    assert all(harmless(line) for line in rows.live_rows(progress, Terminal()))
    assert harmless(rows.log_row(examples.CODEX.replace(reason=nasty)))


def test_a_line_that_is_no_text_at_all_breaks_nothing() -> None:
    for name in formats.NAMES:
        text = formats.render(
            examples.REVIEW,
            name,
            terminal=Terminal(),
            source=lambda *_: ["\ud800\0\x7f"] * 3,
        )
        assert not ACTS.search(text)


def test_escapes_in_source_lines_are_shown() -> None:
    text = formats.render(
        examples.REVIEW,
        "text",
        terminal=Terminal(),
        source=lambda _, first, last: ["if a\u202e: \x1b[2J"] * (last - first + 1),
    )
    assert "if a\\u202e: \\x1b[2J" in text
    assert harmless(text)
