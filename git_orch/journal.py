"""What happened to a run, one JSON line an event, appended and never changed (`events.jsonl`)."""

from __future__ import annotations

import os
import time

from git_orch import atomic, jsontext
from git_orch.model import utc_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Json


class Journal:
    """The events of one run: `{"time", "event", ...}` in the order in which they happened."""

    def __init__(self, run_dir: str) -> None:
        self._path = os.path.join(run_dir, "events.jsonl")
        self._may_be_torn = True

    def write(self, event: str, **facts: object) -> None:
        """The event stands in the file, unless the disk is full: an event is never worth the run.

        It begins a line of its own even where a full disk or a power cut has left half a line before it.
        """
        line = jsontext.dumps({"time": utc_stamp(time.time()), "event": event, **facts}).encode("ascii") + b"\n"
        try:
            atomic.append(self._path, b"\n" + line if self._is_torn() else line)
        except OSError:
            self._may_be_torn = True
            return
        self._may_be_torn = False

    def read(self) -> list[Json]:
        """All events so far; a torn line is left out."""
        events = []
        for line in (atomic.read(self._path) or b"").split(b"\n"):
            try:
                events.append(jsontext.loads(line))
            except jsontext.JsonTextError:
                continue
        return [event for event in events if isinstance(event, dict) and isinstance(event.get("event"), str)]

    def _is_torn(self) -> bool:
        """Whether the file ends within a line; looked at once, and again after a failure."""
        return self._may_be_torn and atomic.is_torn(self._path)
