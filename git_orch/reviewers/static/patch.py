"""Which lines a difference adds, read from `git diff-tree -p --binary --full-index --no-renames`.

Format: git's documentation of "Generating patch text with -p". With `--no-renames` both names in a `diff --git`
line are the same, so a name with spaces can be told without guessing. Unlike `git_orch.patch` it reads the patch as a
stream, since that of a few large files is larger than all else that a review holds, and it keeps what is removed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import islice

from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Range = tuple[int, int]

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
# Removed text is wanted for one question only (is a name gone that Python code still uses?), so only there kept.
_KEEP_REMOVED = (b".py", b".pyi")


class Change(Record):
    """What the difference does to one path. `added` holds line numbers of the new file as ranges, ends included."""

    is_new: bool = False
    mode_changed: bool = False
    added: tuple[Range, ...] = ()
    removed: bytes = b""

    def adds(self, line: int) -> bool:
        """True if the difference adds this line of the new file."""
        return self.adds_any(line, line)

    def adds_any(self, first: int, last: int) -> bool:
        """True if the difference adds a line between these two, ends included."""
        at = bisect_right(self.added, (last, last)) - 1
        if at + 1 < len(self.added) and self.added[at + 1][0] <= last:
            at += 1
        return at >= 0 and self.added[at][1] >= first


class _Part:
    """The part of a patch that is about one path, while it is read."""

    def __init__(self, path: bytes) -> None:
        self.is_new = False
        self.mode_changed = False
        self.added: list[Range] = []
        self.removed: list[bytes] | None = [] if path.endswith(_KEEP_REMOVED) else None

    def add(self, first: int, last: int) -> None:
        """The lines are counted among the added ones."""
        if self.added and self.added[-1][1] == first - 1:
            self.added[-1] = (self.added[-1][0], last)
        else:
            self.added.append((first, last))

    def remove(self, text: bytes) -> None:
        """The text is kept if anything will ask for it."""
        if self.removed is not None:
            self.removed.append(text)

    def close(self) -> Change:
        """What was read, as a record."""
        return Change(
            is_new=self.is_new,
            mode_changed=self.mode_changed,
            added=tuple(self.added),
            removed=b"".join(self.removed or ()),
        )


def read_changes(patch: Iterable[bytes]) -> dict[bytes, Change]:
    """What the patch, given line by line, does to each path that it names."""
    lines = iter(patch)
    parts: dict[bytes, _Part] = {}
    part = _Part(b"")
    for line in lines:
        # No line of a binary patch can look like these: base85 has no space.
        if line.startswith(b"diff --git "):
            path = path_of(line)
            part = parts.setdefault(path, _Part(path))
        elif line.startswith(b"@@ "):
            _read_hunk(line, lines, part)
        elif line.startswith(b"new file mode "):
            part.is_new = True
        elif line.startswith(b"new mode "):
            part.mode_changed = True
    return {path: part.close() for path, part in parts.items()}


def _read_hunk(header: bytes, lines: Iterator[bytes], part: _Part) -> None:
    """Take exactly the lines that the header counts, whatever they look like."""
    match = _HUNK.match(header)
    if match is None:
        return
    old, new = (int(group or 1) for group in match.group(1, 3))
    number = int(match[2])
    if not old:  # a new file, mostly: all of it is added
        part.add(number, number + new - 1)
        next(islice(lines, new - 1, None), b"")
        return
    while old > 0 or new > 0:
        line = next(lines, b"")
        kind = line[:1]
        if kind == b"+":
            part.add(number, number)
        elif kind == b"-":
            part.remove(line[1:])
        elif kind == b"\\":
            continue
        elif not kind:
            return
        old -= kind != b"+"
        new -= kind != b"-"
        number += kind != b"-"


def path_of(header: bytes) -> bytes:
    """The path that a `diff --git` line of a patch without renames is about."""
    names = header.removeprefix(b"diff --git ").rstrip(b"\n")
    name = names[: len(names) // 2]
    if name.startswith(b'"'):
        name = _ESCAPE.sub(_unescape, name[1:-1])
    return name.removeprefix(b"a/")


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _ESCAPED.get(code, code)
