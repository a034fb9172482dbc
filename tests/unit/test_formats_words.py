"""Numbers, times and sizes as people read them; errors; the lines of a log."""

from __future__ import annotations

import json

import pytest

from git_orch import formats
from git_orch.errors import BaseUnknown, NothingToReview, OrchError, UsageError
from git_orch.formats import rows, words
from git_orch.formats.blocks import GLANCE, block, whole
from git_orch.formats.line import LineView, status_line
from git_orch.formats.terminal import Terminal, cells
from git_orch.model import Skipped
from tests.unit import format_examples as examples


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0 s"), (14.9, "14 s"), (59, "59 s"), (60, "1 min"), (371, "6 min"), (3600, "1 h"), (90_000, "1 d"),
     (3 * 86_400, "3 d"), (-3600, "0 s")],
)  # fmt: skip
def test_age(seconds: float, told: str) -> None:
    assert words.age(seconds) == told


@pytest.mark.parametrize(
    ("ms", "told"),
    [(0, "0 ms"), (41, "41 ms"), (100, "0.1 s"), (900, "0.9 s"), (31_400, "31.4 s"), (59_949, "59.9 s"),
     (59_950, "1m00s"), (124_000, "2m04s"), (3_900_000, "1h05m")],
)  # fmt: skip
def test_duration(ms: int, told: str) -> None:
    assert words.duration(ms) == told


@pytest.mark.parametrize(
    ("size_bytes", "told"),
    [(0, "0 B"), (1023, "1023 B"), (1 << 20, "1 MiB"), (18_035_507, "17.2 MiB"), (412 << 20, "412 MiB"),
     (11 << 30, "11 GiB"), (5 << 50, "5120 TiB")],
)  # fmt: skip
def test_size(size_bytes: int, told: str) -> None:
    assert words.size(size_bytes) == told


def test_tally() -> None:
    assert words.tally([]) == "no findings"
    assert words.tally(examples.REVIEW.findings) == "1 blocking, 1 advisory, 1 nit"
    assert words.tally([examples.SQL, examples.SQL, examples.LOCK, examples.LOCK]) == "2 blocking, 2 advisories"


def test_names_in_a_row() -> None:
    assert [words.listed(["a", "b", "c"][:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UsageError("no format `xml`"), "git-orch: no format `xml`\n"),
        (
            BaseUnknown("base unknown: this clone is shallow (depth 1).", "git fetch --unshallow\nor --base REV"),
            "git-orch: base unknown: this clone is shallow (depth 1).\n"
            "          git fetch --unshallow\n          or --base REV\n",
        ),
        (OrchError("no \x1b]0;x\x07 here\nsecond"), "git-orch: no \\x1b]0;x\\x07 here\n          second\n"),
        (
            OrchError("not in a git repository", "go to one, or `git init` first"),
            "git-orch: not in a git repository: go to one, or `git init` first\n",
        ),
        (OrchError("which run?", "RUN, or --all"), "git-orch: which run?\n          RUN, or --all\n"),
        (OrchError("no verb `x`", "git orch help"), "git-orch: no verb `x`\n          git orch help\n"),
        (OrchError(""), "git-orch: error\n"),
    ],
)
def test_an_error_in_words(error: OrchError, text: str) -> None:
    assert formats.error(error, as_json=False) == text


def test_an_error_as_json() -> None:
    error = NothingToReview("nothing to review: \udcff", "git orch review main..")
    told = json.loads(formats.error(error, as_json=True))
    assert told == {
        "schema_version": "1",
        "error": {
            "code": "nothing-to-review",
            "exit": 6,
            "message": "nothing to review: \ufffd",
            "hint": "git orch review main..",
        },
    }


def test_a_format_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="no format `x\\\\x1bml`"):
        formats.render(examples.CLEAN, "x\x1bml", terminal=Terminal(), source=examples.source)


@pytest.mark.parametrize(
    ("view", "line"),
    [
        (LineView(), ""),
        (LineView(verdict="pass"), "✓"),
        (LineView(verdict="unreviewed"), "?"),
        (LineView(blocking=1, advisory=1, verdict="findings", running_s=14.2, cost="$0.41"), "✗1 ▲1 ⠼14s $0.41"),
        (LineView(verdict="pass", running_s=61), "⠙1min"),
    ],
)
def test_the_line_for_a_prompt(view: LineView, line: str) -> None:
    assert status_line(view, Terminal()) == line


@pytest.mark.parametrize("width", [20, 30, 40, 80])
def test_moving_rows_never_wrap(width: int) -> None:
    states = [
        *examples.STATES,
        rows.Progress(
            name="a-reviewer-with-a-very-long-name", elapsed_s=7300, doing="名前" * 40 + "\x1b[2J", cost="12k tokens"
        ),
        rows.Progress(name="gone", review=examples.CODEX),
    ]
    lines = rows.live_rows(states, Terminal(width=width), frame=3)
    assert len(lines) == len(states) + 1
    assert all(cells(line) <= width and line.isprintable() for line in lines)


def test_the_spinner_turns() -> None:
    state = [rows.Progress(name="claude")]
    assert len({rows.live_rows(state, Terminal(), frame)[0] for frame in range(10)}) == 10
    assert rows.live_rows(state, Terminal(unicode=False), 5)[0].startswith("  / claude")


def test_a_log_line_is_one_line() -> None:
    assert rows.log_row(examples.CODEX.replace(reason="first\n::error::second\x1b")).splitlines() == [
        "git-orch: codex: not reviewed: first ::error::second\\x1b"
    ]


def test_a_finding_alone_has_nothing_left_out() -> None:
    code = "\n".join(f"line {number}" for number in range(30))
    finding = examples.LOCK.replace(message="why " * 400, suggestion=code, fails_when="so " * 300)
    text = whole(finding, Terminal(), examples.source)
    said = text.split()
    assert (said.count("why"), said.count("so"), said.count("line"), "…" in text) == (400, 300, 30, False)
    glance = "\n".join(block(finding, Terminal(), examples.source, GLANCE))
    assert "… 24 more lines" in glance
    assert glance.count("why") < 160


def test_thousands_of_paths_left_out_are_counted() -> None:
    skipped = tuple(Skipped(path=f"vendor/{n}.js", reason="rule:vendored", tracked=n == 2999) for n in range(3000))
    report = examples.CLEAN.replace(coverage=examples.CLEAN.coverage.replace(skipped=skipped))
    lines = formats.render(report, "text", terminal=Terminal(), source=examples.source).splitlines()
    listed = [line for line in lines if "rule:vendored" in line]
    assert len(listed) == 5
    assert "vendor/2999.js" in listed[0]
    assert any(line.strip() == "... and 2995 more: git orch show b204" for line in lines)
    assert any(line.startswith("  covered   3 of 3003 files; 3000 skipped") for line in lines)
