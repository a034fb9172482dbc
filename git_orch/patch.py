"""A patch of git's, read back: which lines of which file became which.

Source: git-diff(1), "Generating patch text with -p", and core.quotePath in git-config(1). Patches come from our own
`diff-tree -p`, with any number of context lines, so the prefixes are always `a/` and `b/`.
"""

from __future__ import annotations

from sys import maxsize

from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ESCAPES = {
    b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r", b'"': b'"', b"\\": b"\\"
}  # fmt: skip


class Hunk(Record):
    """`old_count` lines from `old_start` became `new_count` lines from `new_start`, without context.

    As in git's own `-U0`, a count of 0 stands after its line: `old_start=3, old_count=0` inserts after line 3.
    """

    old_start: int
    old_count: int
    new_start: int
    new_count: int


class FileChange(Record):
    """What became of one file. `path` is its old path (the new one if it was `added`), `new_path` the other.

    `hunks` are in order; there are none where only mode or name changed, or the content is binary.
    """

    path: str
    new_path: str
    hunks: tuple[Hunk, ...] = ()
    added: bool = False
    deleted: bool = False


class Lines(Record):
    """A set of line numbers, as spans in order."""

    spans: tuple[range, ...] = ()

    def __contains__(self, line: int) -> bool:
        return any(line in span for span in self.spans)

    def touch(self, first: int, last: int) -> bool:
        """Whether any line from `first` to `last`, both included, is in the set."""
        return any(span.start <= last and first < span.stop for span in self.spans)


def parse(patch: bytes) -> tuple[FileChange, ...]:
    """The changes of the patch in its order; a path whose type changed comes twice, as deleted and as added."""
    sections: list[_Section] = []
    lines = iter(patch.split(b"\n"))
    for line in lines:
        if line.startswith(b"diff --git "):
            sections.append(_Section(line.removeprefix(b"diff --git ")))
        elif sections and line.startswith(b"@@ -"):
            sections[-1].hunks += _hunks(line, lines)
        elif sections:
            sections[-1].take(line)
    return tuple(section.change() for section in sections)


def parse_hunks(patch: bytes) -> dict[str, FileChange]:
    """The changes by their old path; an added file by its new one, where no other stands there."""
    changes = parse(patch)
    by_path = {change.path: change for change in changes if not change.added}
    return by_path | {change.path: change for change in changes if change.added and change.path not in by_path}


def added_lines(patch: bytes) -> dict[str, Lines]:
    """For each file of the new side, the lines that were added or changed."""
    return {
        change.new_path: Lines(spans=tuple(_new_lines(hunk) for hunk in change.hunks if hunk.new_count))
        for change in parse(patch)
        if not change.deleted
    }


def changed_lines(patch: bytes) -> dict[str, Lines]:
    """For each file, the lines that lie inside the difference.

    Those are the added ones, the two beside each deletion, and all of a deleted file: to take out a check is a fault,
    too, and it is seen at the place where the check was.
    """
    inside: dict[str, tuple[range, ...]] = {}
    for change in parse(patch):
        spans = (range(maxsize),) if change.deleted else tuple(map(_new_lines, change.hunks))
        inside[change.new_path] = inside.get(change.new_path, ()) + spans
    return {path: Lines(spans=spans) for path, spans in inside.items()}


def _new_lines(hunk: Hunk) -> range:
    """The hunk's lines on the new side; of a deletion the lines before and after it."""
    if hunk.new_count:
        return range(hunk.new_start, hunk.new_start + hunk.new_count)
    return range(max(1, hunk.new_start), hunk.new_start + 2)


class _Section:
    """The part of a patch that is about one file, while it is read."""

    def __init__(self, names: bytes) -> None:
        self.names = names
        self.old = self.new = ""
        self.added = self.deleted = False
        self.hunks: list[Hunk] = []

    def take(self, line: bytes) -> None:
        """Note what a header line says; lines of other kinds say nothing."""
        word, _, rest = line.partition(b" ")
        if word == b"---":
            self.old = _prefixed(rest) or self.old
        elif word == b"+++":
            self.new = _prefixed(rest) or self.new
        elif line.startswith((b"rename from ", b"copy from ")):
            self.old = _unquoted(rest.partition(b" ")[2])
        elif line.startswith((b"rename to ", b"copy to ")):
            self.new = _unquoted(rest.partition(b" ")[2])
        else:
            self.added |= line.startswith(b"new file mode ")
            self.deleted |= line.startswith(b"deleted file mode ")

    def change(self) -> FileChange:
        name = self.old or self.new or _common_name(self.names)
        return FileChange(
            path=name,
            new_path=self.new or name,
            hunks=tuple(self.hunks),
            added=self.added,
            deleted=self.deleted,
        )


def _hunks(header: bytes, lines: Iterator[bytes]) -> list[Hunk]:
    """The runs of changed lines under a `@@ -a,b +c,d @@`; takes from `lines` as many as the header announces."""
    old, new = header.split(b" ")[1:3]
    old_start, old_left = _extent(old)
    new_start, new_left = _extent(new)
    run = _Runs(old_start + (old_left == 0), new_start + (new_left == 0))
    while (old_left or new_left) and (line := next(lines, None)) is not None:
        kind = line[:1]
        if kind == b"\\":  # "\ No newline at end of file"
            continue
        old_left -= kind != b"+"
        new_left -= kind != b"-"
        run.take(kind)
    run.close()
    return run.hunks


class _Runs:
    """Counts the lines of a hunk into runs without context; `old` and `new` are the next line of each side."""

    def __init__(self, old: int, new: int) -> None:
        self.old, self.new = old, new
        self.removed = self.added = 0
        self.hunks: list[Hunk] = []

    def take(self, kind: bytes) -> None:
        if kind == b"-":
            self.removed += 1
        elif kind == b"+":
            self.added += 1
        else:
            self.close()
            self.old += 1
            self.new += 1

    def close(self) -> None:
        """The run that was open, if any, is a hunk."""
        if self.removed or self.added:
            self.hunks.append(
                Hunk(
                    old_start=self.old - (not self.removed),
                    old_count=self.removed,
                    new_start=self.new - (not self.added),
                    new_count=self.added,
                )
            )
        self.old += self.removed
        self.new += self.added
        self.removed = self.added = 0


def _extent(side: bytes) -> tuple[int, int]:
    """`-12,3` as (12, 3); a count of 1 is left out by git."""
    start, comma, count = side[1:].partition(b",")
    return int(start), int(count) if comma else 1


def _prefixed(name: bytes) -> str:
    """The path behind `--- ` or `+++ `; "" for /dev/null, which has no prefix."""
    # git ends the name with a tab where it holds a space.
    name = name.removesuffix(b"\t")
    return "" if name == b"/dev/null" else _unquoted(name)[2:]


def _common_name(names: bytes) -> str:
    """The path of a `diff --git a/X b/X`: without other headers both sides have the same."""
    return _unquoted(names[: len(names) // 2])[2:]


def _unquoted(name: bytes) -> str:
    r"""The path that git printed, in C-style quotes if it holds `"`, `\`, a control character or a byte above 0x7f."""
    if name.startswith(b'"') and name.endswith(b'"'):
        name = b"".join(_unescaped(name[1:-1]))
    return name.decode("utf-8", "surrogateescape")


def _unescaped(quoted: bytes) -> Iterator[bytes]:
    head, *parts = quoted.replace(b"\\\\", b"\\134").split(b"\\")
    yield head
    for part in parts:
        letter = part[:1]
        if letter in _ESCAPES:
            yield _ESCAPES[letter] + part[1:]
        else:
            yield bytes((int(part[:3], 8),)) + part[3:]
