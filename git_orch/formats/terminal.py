"""What the place where text goes can show, and text made safe and fit for it.

Everything that comes from a repository or a reviewer passes `shown` before a person sees it: a path may hold a newline,
a message an escape sequence that writes to the clipboard, a source line an override of the writing direction
(CVE-2021-42574). Widths are counted in terminal cells, not characters.
"""

from __future__ import annotations

import codecs
import os

from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, TextIO

    from git_orch.model import Verdict

    Mark = Literal["pass", "no", "warning", "unreviewed", "skipped", "running", ""]
    Style = Literal["red", "yellow", "green", "cyan", ""]

DEFAULT_WIDTH = 80
NARROWEST = 20
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ASCII_FRAMES = "|/-\\"
_MARKS = {"pass": "✓", "no": "✗", "warning": "▲", "unreviewed": "?", "skipped": "–", "": " "}  # noqa: RUF001
_ASCII_MARKS = {"pass": "+", "no": "x", "warning": "!", "unreviewed": "?", "skipped": "-", "": " "}
_MARK_STYLES: dict[str, Style] = {"pass": "green", "no": "red", "warning": "yellow", "unreviewed": "yellow"}
VERDICT_MARKS: dict[Verdict, Mark] = {
    "pass": "pass",
    "findings": "no",
    "unreviewed": "unreviewed",
    "nothing-to-review": "skipped",
}
_SGR = {"red": "31", "yellow": "33", "green": "32", "cyan": "36"}
# No-break spaces, the ideographic space, and the two joiners that Persian, Indic scripts and emoji cannot do without.
_INVISIBLE_BUT_FINE = frozenset("\u00a0\u202f\u3000\u200c\u200d")
_WORTH_BREAKING = 8  # cells left in a line, for which a text without spaces (as Japanese has none) is broken
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Terminal(Record):
    """How wide a line may be, whether there is colour, whether more than ASCII, whether lines can be redrawn."""

    width: int = DEFAULT_WIDTH
    colour: bool = False
    unicode: bool = True
    live: bool = False

    @classmethod
    def of(cls, stream: TextIO, env: Mapping[str, str]) -> Terminal:
        """What the stream can show, by the stream and by NO_COLOR, CLICOLOR_FORCE, TERM and COLUMNS."""
        tty = _is_tty(stream)
        smart = tty and env.get("TERM") != "dumb"
        forced = env.get("CLICOLOR_FORCE", "0") not in ("", "0")
        return cls(
            width=_width(stream, tty, env),
            colour=not env.get("NO_COLOR") and (smart or forced),
            unicode=_speaks_unicode(stream),
            live=smart,
        )

    @property
    def ellipsis(self) -> str:
        """What stands where text was left out."""
        return "…" if self.unicode else "..."

    @property
    def arrow(self) -> str:
        """What stands between a former and a present place."""
        return "→" if self.unicode else "->"

    def mark(self, mark: Mark, frame: int = 0) -> str:
        """The one-cell sign for an outcome; `frame` turns the sign of what is running."""
        if mark == "running":
            frames = FRAMES if self.unicode else ASCII_FRAMES
            return frames[frame % len(frames)]
        return (_MARKS if self.unicode else _ASCII_MARKS)[mark]

    def paint(self, text: str, style: Style) -> str:
        """The text in that colour, where there is colour."""
        return f"\x1b[{_SGR[style]}m{text}\x1b[0m" if self.colour and style else text

    def paint_at(self, line: str, start: int, length: int, style: Style) -> str:
        """The line with `length` of its characters in that colour."""
        end = start + length
        return line[:start] + self.paint(line[start:end], style) + line[end:]

    def shown(self, text: str) -> str:
        """The text as `shown` gives it, in ASCII where the stream has no more."""
        return shown(text, ascii_only=not self.unicode)

    def sentence(self, text: str) -> str:
        """The text as one line: white space of any kind is one space, all else as `shown`."""
        return self.shown(" ".join(text.split()))

    def clip(self, text: str, width: int) -> str:
        """The text, its end left out where it is wider than that many cells."""
        if cells(text) <= width:
            return text
        return head(text, width - len(self.ellipsis)).rstrip() + self.ellipsis if width > len(self.ellipsis) else ""

    def clip_middle(self, text: str, width: int) -> str:
        """The text, its middle left out where it is too wide: of a path, the end says more than the rest."""
        if cells(text) <= width:
            return text
        room = width - len(self.ellipsis)
        if room < 2:
            return self.clip(text, width)
        front = room // 3
        return head(text, front) + self.ellipsis + tail(text, room - front)


def mark_style(mark: Mark) -> Style:
    """The colour of an outcome."""
    return _MARK_STYLES.get(mark, "")


def _is_tty(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _width(stream: TextIO, tty: bool, env: Mapping[str, str]) -> int:
    columns = env.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns[:5]) > 0:
        return max(NARROWEST, int(columns[:5]))
    if not tty:
        return DEFAULT_WIDTH
    try:
        return max(NARROWEST, os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH)
    except (OSError, ValueError):
        return DEFAULT_WIDTH


def _speaks_unicode(stream: TextIO) -> bool:
    try:
        return codecs.lookup(getattr(stream, "encoding", None) or "ascii").name == "utf-8"
    except LookupError:
        return False


def shown(text: str, *, ascii_only: bool = False) -> str:
    r"""The text with an escape for every character that a terminal acts upon or a reader cannot see.

    So ESC is `\x1b`, a right-to-left override `\u202e`, a byte that was not UTF-8 `\xff`. Printable characters stay,
    unless only ASCII can be shown.
    """
    if text.isprintable() and (text.isascii() or not ascii_only):
        return text
    return "".join(c if _stays(c, ascii_only) else _escape(c) for c in text)


def _stays(character: str, ascii_only: bool) -> bool:
    if ascii_only and not character.isascii():
        return False
    return character.isprintable() or character in _INVISIBLE_BUT_FINE


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python carries a byte that was not UTF-8
        code -= 0xDC00
    if code < 0x100:
        return _NAMED.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cells(text: str) -> int:
    """How many terminal cells the text takes; never fewer than a terminal uses (it may join an emoji sequence)."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    import unicodedata

    if character.isascii():
        return 1
    if "\u1160" <= character <= "\u11ff" or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def head(text: str, width: int) -> str:
    """As much of the beginning as fits into that many cells."""
    if text.isascii():
        return text[: max(0, width)]
    used = 0
    for index, character in enumerate(text):
        used += _cells_of(character)
        if used > width:
            return text[:index]
    return text


def tail(text: str, width: int) -> str:
    """As much of the end as fits into that many cells."""
    used = 0
    for index in range(len(text), 0, -1):
        used += _cells_of(text[index - 1])
        if used > width:
            return text[index:]
    return text


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text filled up with spaces to that many cells, at its left side if `right`."""
    space = " " * (width - cells(text))
    return space + text if right else text + space


def wrap(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """The text in lines of at most `width` cells, broken at spaces; only a word that fits no line is broken itself.

    The first line begins with `first`, each further one with `rest`.
    """
    lines: list[str] = []
    line, begun = first, False
    words = [word for word in reversed(text.split(" ")) if word]
    while words:
        word = words.pop()
        space = " " if begun else ""
        room = width - cells(line) - len(space)
        if cells(word) > max(room, width - cells(rest)) and room >= _WORTH_BREAKING:
            words.append(word[len(head(word, room)) :])
            word = head(word, room)
        elif cells(word) > room and (begun or cells(line) > cells(rest)):
            words.append(word)
            lines.append(line.rstrip())
            line, begun = rest, False
            continue
        elif cells(word) > room:  # a line of its own, and still too narrow
            piece = head(word, room) or word[0]
            words += [word[len(piece) :]] if piece != word else []
            word = piece
        line, begun = line + space + word, True
    return [*lines, line.rstrip()]
