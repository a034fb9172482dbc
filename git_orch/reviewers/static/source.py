"""One changed file, as the tree holds it: opened once, never through a link."""

from __future__ import annotations

import os
import re
import stat

from git_orch.model import Finding
from git_orch.reviewers.static.patch import Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypedDict, Unpack

    from git_orch.model import Severity

    class More(TypedDict, total=False):
        """What a finding may say besides."""

        end_line: int
        start_column: int
        end_column: int
        fails_when: str
        suggestion: str


# Larger ones are data or generated: reading them costs seconds and tells nothing that a person would act on. The
# largest hand-written source that is known to us (SQLite's amalgamation apart) is under 2 MiB.
READ_LIMIT_BYTES = 5 << 20
# git's own rule for "binary": a NUL in this many bytes at the beginning (xdiff-interface.c, FIRST_FEW_BYTES).
_BINARY_PROBE_BYTES = 8000
_MESSAGE_LIMIT = 300
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")


class Source:
    """A changed path with what is at it. `content` is empty where `unread` tells why it was not read.

    A reason that begins with `rule:` is by intent (binary, too large); any other is a gap in the review.
    """

    def __init__(
        self, path: bytes, change: Change, *, mode: int = 0, size: int = 0, content: bytes = b"", unread: str = ""
    ) -> None:
        self.path = path
        self.name = path.decode("utf-8", "replace")
        self.change = change
        self.mode = mode
        self.size = size
        self.content = content
        self.unread = unread
        self._lines: list[bytes] | None = None

    @property
    def is_link(self) -> bool:
        """True if a symbolic link is at the path."""
        return stat.S_ISLNK(self.mode)

    @property
    def filename(self) -> str:
        """The last part of the path."""
        return self.name.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The last suffix of the file name in small letters with its dot, or nothing."""
        return os.path.splitext(self.filename)[1].lower()

    @property
    def lines(self) -> list[bytes]:
        """The content without line feeds, cut where git cuts it; what follows the last one is a line if not empty."""
        if self._lines is None:
            self._lines = self.content.split(b"\n")
            if not self._lines[-1]:
                self._lines.pop()
        return self._lines

    def added(self) -> Iterator[tuple[int, bytes]]:
        """Number and text of each added line."""
        lines = self.lines
        for first, last in self.change.added:
            yield from enumerate(lines[first - 1 : last], first)

    def without_content(self) -> Source:
        """The same without the bytes, for what has to be remembered."""
        return Source(self.path, self.change, mode=self.mode, size=self.size, unread=self.unread)

    def finding(
        self, rule: str, message: str, severity: Severity = "advisory", *, line: int = 0, **more: Unpack[More]
    ) -> Finding:
        """A finding in this file; without `end_line` it is about one line.

        What a parser places behind the end of the file is about the last line.
        """
        last = len(self.lines) if self.content else line
        more["end_line"] = min(more.get("end_line", line), last)
        if line > last:
            line, more["start_column"] = last, 0
        return Finding(path=self.name, rule=rule, message=one_line(message), severity=severity, start_line=line, **more)


def load(path: bytes, change: Change) -> Source:
    """The source at this path below the current folder; what hinders reading it is told in `unread`."""
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode):
            return Source(path, change, mode=found.st_mode, size=found.st_size, unread=_not_a_file(found.st_mode))
        if found.st_size > READ_LIMIT_BYTES:
            return Source(path, change, mode=found.st_mode, size=found.st_size, unread=_too_large(found.st_size))
        content = _read(path)
    except OSError as error:
        return Source(path, change, unread=f"cannot be read: {error.strerror}")
    if b"\0" in content[:_BINARY_PROBE_BYTES]:
        unread = "rule:binary (only its name and size were checked)"
        return Source(path, change, mode=found.st_mode, size=found.st_size, unread=unread)
    return Source(path, change, mode=found.st_mode, size=found.st_size, content=content)


def _read(path: bytes) -> bytes:
    # Folders on the way cannot be links (a git tree has no entry below one); O_NONBLOCK is for a FIFO put there since.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        return file.read(READ_LIMIT_BYTES)


def _not_a_file(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return ""
    return "rule:submodule" if stat.S_ISDIR(mode) else "neither a file nor a link"


def _too_large(size_bytes: int) -> str:
    return f"rule:large ({size_bytes / (1 << 20):.1f} MiB, over the {READ_LIMIT_BYTES >> 20} MiB that are read)"


def one_line(text: str) -> str:
    """The text on one line of bounded length, without what could steer a terminal."""
    clean = _UNPRINTABLE.sub(" ", text).strip()
    return clean if len(clean) <= _MESSAGE_LIMIT else clean[: _MESSAGE_LIMIT - 1] + "…"
