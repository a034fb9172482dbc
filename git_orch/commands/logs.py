"""`git orch logs`: what a run's reviewers wrote, as it comes with `-f`."""

from __future__ import annotations

import os
import time

from git_orch.commands import history, speaking
from git_orch.commands.status import look
from git_orch.formats.terminal import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

POLL_S = 0.1
_CHUNK = 1 << 16
_NAMES = ("result.out", "result.err")


def logs(name: str | None, env: dict[str, str], *, follow: bool, reviewer: str = "", raw: bool = False) -> int:
    """Everything that was written is printed, a line with its reviewer's name; with `follow` until the run ends."""
    seen = look(env)
    run_id = history.resolve(name, seen.layout, seen.book)
    run_dir = seen.layout.run_dir(run_id)
    tails: dict[str, Tail] = {}
    while True:
        is_live = seen.book is not None and os.path.exists(seen.book.path(run_id, "json"))
        for path, label in _files(run_dir, reviewer):
            tail = tails.setdefault(path, Tail(path, label, raw=raw))
            for line in tail.lines(last=not is_live):
                speaking.say(line)
        if not is_live or not follow:
            return 0
        time.sleep(POLL_S)


class Tail:
    """A file read from where it was left; whole lines, so that two reviewers' words do not mix."""

    def __init__(self, path: str, label: str, *, raw: bool) -> None:
        self._path = path
        self._label = label
        self._raw = raw
        self._offset = 0
        self._rest = b""

    def lines(self, *, last: bool) -> Iterator[str]:
        """The lines that have come since, ready to print; with `last` also one that has no end."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                while part := file.read(_CHUNK):
                    self._offset += len(part)
                    *whole, self._rest = (self._rest + part).split(b"\n")
                    yield from map(self._shown, whole)
        except OSError:
            return
        if last and self._rest:
            yield self._shown(self._rest)
            self._rest = b""

    def _shown(self, line: bytes) -> str:
        text = line.decode("utf-8", "replace")
        return f"{self._label}: {text if self._raw else shown(text)}\n"


def _files(run_dir: str, reviewer: str) -> list[tuple[str, str]]:
    found = []
    for name in sorted(os.listdir(run_dir)) if os.path.isdir(run_dir) else ():
        folder = os.path.join(run_dir, name)
        if os.path.isdir(folder) and reviewer in ("", name):
            found += [(os.path.join(folder, file), name) for file in _NAMES]
    return found
