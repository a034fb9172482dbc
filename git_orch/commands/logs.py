"""`git orch logs`: what a run's reviewers wrote, as it comes with `-f`."""

from __future__ import annotations

import os
import time

from git_orch.commands import helping, history, speaking
from git_orch.commands.looking import look
from git_orch.errors import UsageError
from git_orch.formats.terminal import shown
from git_orch.runs import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from git_orch.commands.looking import Look

POLL_S = 0.1
_CHUNK = 1 << 16
_NAMES = ("result.out", "result.err")
_SUPERVISOR = "supervisor"


def logs(name: str, env: dict[str, str], *, follow: bool, reviewer: str = "", raw: bool = False) -> int:
    """Everything that was written is printed, a line with its reviewer's name; with `follow` until the run ends."""
    seen = look(env)
    run_id = history.resolve(name, seen.layout, seen.book)
    if reviewer:
        _check(reviewer, run_id, seen)
    tails: dict[str, Tail] = {}
    while True:
        lives = history.is_there(run_id, seen.book) and history.is_alive(run_id, seen.layout, seen.book)
        for path, label in _files(seen.layout.run_dir(run_id), reviewer):
            tail = tails.setdefault(path, Tail(path, label, raw=raw))
            for line in tail.lines(last=not lives):
                speaking.say(line)
        if not (lives and follow and speaking.is_heard()):
            break
        time.sleep(POLL_S)
    if not any(tail.has_said for tail in tails.values()):
        speaking.tell(f"git-orch: run {short(run_id)}: {reviewer or 'its reviewers'} wrote nothing\n")
    return 0


class Tail:
    """A file read from where it was left; whole lines, so that two reviewers' words do not mix."""

    def __init__(self, path: str, label: str, *, raw: bool) -> None:
        self.has_said = False
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
        self.has_said = True
        text = line.decode("utf-8", "surrogateescape")
        return f"{self._label}: {text if self._raw else shown(text)}\n"


def _check(reviewer: str, run_id: str, seen: Look) -> None:
    facts = history.record(run_id, seen.layout, seen.book) or {}
    names = history.reviewer_names(facts)
    if reviewer not in names:
        raise UsageError(
            f"run {short(run_id)} has no reviewer `{reviewer}`{helping.perhaps(reviewer, names)}", " ".join(names)
        )


def _files(run_dir: str, reviewer: str) -> list[tuple[str, str]]:
    """What may hold words, with whose they are: each reviewer's two streams, and the supervisor's complaints."""
    found = []
    for name in sorted(os.listdir(run_dir)) if os.path.isdir(run_dir) else ():
        folder = os.path.join(run_dir, name)
        if os.path.isdir(folder) and reviewer in ("", name):
            found += [(os.path.join(folder, file), name) for file in _NAMES]
    own = os.path.join(run_dir, f"{_SUPERVISOR}.log")
    return found if reviewer else [*found, (own, _SUPERVISOR)]
