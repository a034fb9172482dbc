"""A difference in portions that an agent can read at once, and the token at the end of each file's part.

A token proves that a part was read to its end: it is a random word, and stands nowhere else.
"""

from __future__ import annotations

import os

from git_orch import patch as patches
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST_BYTES, MOST_FILES = 160_000, 60
"""Of one portion: some 50,000 tokens, which leaves any model of today the room to look around."""
LARGEST_FILE_BYTES = 1 << 20
_BINARY = (b"\nGIT binary patch\n", b"\nBinary files ")
_HEADER = b"diff --git "


class Portion(Record):
    """Some files of a difference: their paths, their parts of the patch, each with its token at the end."""

    paths: tuple[str, ...]
    patch: bytes
    tokens: Mapping[str, str]


class Part(Record):
    """One file's part of a patch; of a file whose type changed, both."""

    path: str
    raw: bytes

    @property
    def is_binary(self) -> bool:
        """Whether git shows no lines of it."""
        head = self.raw[: self.raw.find(b"\n@@ ")] if b"\n@@ " in self.raw else self.raw
        return any(sign in head for sign in _BINARY)

    @property
    def lines(self) -> int:
        """How many lines it adds and takes away."""
        changes = patches.parse(self.raw)
        return sum(hunk.old_count + hunk.new_count for change in changes for hunk in change.hunks)


def parts(patch: bytes) -> tuple[Part, ...]:
    """The patch file by file, in its order. No line within a hunk, nor of a binary one, can begin as a header does."""
    found: dict[str, bytes] = {}
    for raw in _sections(patch):
        path = patches.parse(raw)[0].new_path
        found[path] = found.get(path, b"") + raw
    return tuple(Part(path=path, raw=raw) for path, raw in found.items())


def split(given: Iterable[Part], *, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> tuple[Portion, ...]:
    """All parts, in order, in portions no larger than that; a file that is larger makes a portion of its own."""
    groups: list[list[Part]] = []
    size = 0
    for part in given:
        if not groups or len(groups[-1]) >= most_files or size + len(part.raw) > most_bytes:
            groups.append([])
            size = 0
        groups[-1].append(part)
        size += len(part.raw)
    return tuple(map(_portion, groups))


def _portion(group: list[Part]) -> Portion:
    tokens = {part.path: os.urandom(5).hex() for part in group}
    text = b"".join(_ended(part.raw) + b"orch:%b\n" % tokens[part.path].encode("ascii") for part in group)
    return Portion(paths=tuple(part.path for part in group), patch=text, tokens=tokens)


def _ended(raw: bytes) -> bytes:
    return raw if raw.endswith(b"\n") else raw + b"\n"


def _sections(patch: bytes) -> Iterable[bytes]:
    if not patch.startswith(_HEADER):
        return
    start = 0
    while (end := patch.find(b"\n" + _HEADER, start)) >= 0:
        yield patch[start : end + 1]
        start = end + 1
    yield patch[start:]
