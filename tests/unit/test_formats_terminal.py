"""What a terminal can show, and text that cannot harm it and fits into it."""

from __future__ import annotations

import io
import os
import pty

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_orch.formats.excerpt import cut_line
from git_orch.formats.terminal import Terminal, cells, head, pad, shown, tail, wrap

TEXT = st.text(st.characters(), max_size=80)


class Screen(io.StringIO):
    """A stream that says it is a terminal, of that encoding."""

    def __init__(self, encoding: str | None = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str | None:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


class Pipe(Screen):
    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("env", "tty", "colour"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm"}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({}, True, True),
        ({"NO_COLOR": "1", "TERM": "xterm"}, True, False),
        ({"NO_COLOR": "", "TERM": "xterm"}, True, True),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"CLICOLOR_FORCE": "0"}, False, False),
        ({"CLICOLOR_FORCE": ""}, False, False),
        ({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True, True),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_colour(env: dict[str, str], tty: bool, colour: bool) -> None:
    assert Terminal.of(Screen() if tty else Pipe(), env).colour is colour


@pytest.mark.parametrize(
    ("env", "live"), [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"TERM": "xterm", "NO_COLOR": "1"}, True)]
)
def test_lines_are_redrawn_on_a_terminal_that_can(env: dict[str, str], live: bool) -> None:
    assert Terminal.of(Screen(), env).live is live
    assert not Terminal.of(Pipe(), env).live


@pytest.mark.parametrize(
    ("columns", "width"),
    [("132", 132), ("", 80), ("0", 80), ("-5", 80), ("wide", 80), ("٣٢", 80), ("7", 20), ("9" * 400, 99_999)],
)
def test_columns_decide_the_width_where_there_is_no_terminal(columns: str, width: int) -> None:
    assert Terminal.of(Pipe(), {"COLUMNS": columns}).width == width


def test_the_width_is_the_terminals() -> None:
    controller, device = pty.openpty()
    try:
        with os.fdopen(device, "w", encoding="utf-8") as stream:
            assert Terminal.of(stream, {}).width == 80  # a new one has no size
            assert Terminal.of(stream, {"COLUMNS": "44"}).width == 44
    finally:
        os.close(controller)


@pytest.mark.parametrize(
    ("encoding", "unicode"),
    [("utf-8", True), ("UTF8", True), ("ascii", False), ("latin-1", False), (None, False), ("no-such", False)],
)
def test_more_than_ascii_only_where_the_stream_is_utf_8(encoding: str | None, unicode: bool) -> None:
    assert Terminal.of(Pipe(encoding), {}).unicode is unicode


def test_a_closed_stream_is_no_terminal() -> None:
    stream = io.StringIO()
    stream.close()
    assert Terminal.of(stream, {}).width == 80


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain - text", "plain - text"),
        ("naïve 名前 👍", "naïve 名前 👍"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x1b]52;c;Zm9v\x07", "\\x1b]52;c;Zm9v\\x07"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x9b31m\x7f\x00", "\\x9b31m\\x7f\\x00"),
        ("\u202egnp\u2066x\u2069\u200f", "\\u202egnp\\u2066x\\u2069\\u200f"),
        ("a\u2028b\u200bc\ufeff", "a\\u2028b\\u200bc\\ufeff"),
        ("caf\udce9", "caf\\xe9"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("नी\u200cल 👩\u200d🚀", "नी\u200cल 👩\u200d🚀"),
        ("a\u00a0b", "a\u00a0b"),
    ],
)
def test_what_a_terminal_acts_upon_or_nobody_sees_is_an_escape(text: str, seen: str) -> None:
    assert shown(text) == seen


@given(TEXT)
def test_shown_text_is_one_harmless_line(text: str) -> None:
    seen = shown(text)
    assert len(seen.splitlines()) <= 1
    assert all(c.isprintable() or c in "\u00a0\u202f\u3000\u200c\u200d" for c in seen)
    seen.encode("utf-8")
    assert shown(text, ascii_only=True).isascii()


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("abc", 3),
        ("名前", 4),
        ("e\u0301", 1),
        ("\u1112\u1161\u11ab", 2),
        ("ｶﾅ", 2),
        ("👍", 2),
        ("न\u200cल", 2),
    ],
)
def test_cells(text: str, width: int) -> None:
    assert cells(text) == width


@given(TEXT, st.integers(0, 40))
def test_cut_text_fits(text: str, width: int) -> None:
    for unicode in (True, False):
        terminal = Terminal(unicode=unicode)
        seen = terminal.shown(text)
        assert cells(terminal.clip(seen, width)) <= width
        assert cells(terminal.clip_middle(seen, width)) <= width
    assert seen.startswith(head(seen, width))
    assert seen.endswith(tail(seen, width))


def test_what_is_cut_is_told() -> None:
    assert Terminal().clip("abcdefgh", 5) == "abcd…"
    assert Terminal(unicode=False).clip("abcdefgh", 5) == "ab..."
    assert Terminal().clip("名前名前", 4) == "名…"
    assert Terminal().clip("abcdefgh", 8) == "abcdefgh"


def test_of_a_path_the_end_stays() -> None:
    assert Terminal().clip_middle("services/payments/src/charge.py", 16) == "servi…/charge.py"


def test_padding_counts_cells() -> None:
    assert pad("名前", 6) == "名前  "
    assert pad("7", 3, right=True) == "  7"
    assert pad("too wide", 3) == "too wide"


@given(TEXT, st.integers(10, 60), st.sampled_from(["", "  ", "blocking[kmzv]: "]), st.sampled_from(["", "    "]))
def test_wrapped_lines_fit_and_lose_nothing(text: str, width: int, first: str, rest: str) -> None:
    seen = Terminal().sentence(text)
    lines = wrap(seen, width, first=first, rest=rest)
    assert all(cells(line) <= max(width, cells(first.rstrip())) for line in lines)
    assert "".join(lines).replace(" ", "") == (first + seen).replace(" ", "")


def test_only_a_word_that_fits_no_line_is_broken() -> None:
    assert wrap("one three five", 9, first="> ", rest="  ") == ["> one", "  three", "  five"]
    assert wrap("a " + "x" * 25, 12) == ["a xxxxxxxxxx", "xxxxxxxxxxxx", "xxx"]


@given(TEXT, st.integers(0, 90), st.integers(0, 90), st.integers(8, 60))
def test_a_cut_line_fits_and_its_mark_is_within(text: str, start: int, length: int, room: int) -> None:
    seen, column, marked = cut_line(text, start, start + length, room, Terminal())
    assert cells(seen) <= room
    assert column >= 0
    assert marked >= 1
    assert column + marked <= room + 1


def test_of_a_minified_line_the_place_is_shown() -> None:
    line = "x" * 70_000 + "HERE" + "y" * 70_000
    seen, column, marked = cut_line(line, 70_000, 70_004, 40, Terminal())
    assert seen[column : column + marked] == "HERE"
    assert seen.startswith("…")
    assert seen.endswith("…")


def test_a_caret_stands_below_wide_characters_and_tabs() -> None:
    seen, column, marked = cut_line("\t名前 = x\r\n", 6, 7, 60, Terminal())
    assert seen == "    名前 = x"
    assert (column, marked) == (cells("    名前 = "), 1)
