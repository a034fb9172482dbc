"""What people and agents decided about findings, gates and delivery: `<git common dir>/orch/decisions.jsonl`.

One JSON line a decision, appended by one write and never changed; the last word on a thing is the one that holds. Any
command or hook may write. A person dismisses, allows and mutes; an agent disputes.
"""

from __future__ import annotations

import os
import time

from git_orch import atomic, jsontext
from git_orch.model import Record, utc_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from git_orch.model import Json

    Kind = Literal["dismiss", "dispute", "allow", "mute", "unmute"]
    By = Literal["person", "agent"]

FILE = "decisions.jsonl"
WHY_LIMIT = 2000
KINDS: tuple[Kind, ...] = ("dismiss", "dispute", "allow", "mute", "unmute")
_LIMIT = 64 << 20


class Decision(Record):
    """One decision.

    `fingerprint` is what a dismissal or a dispute is about, `path` and `message` name that finding for people. `commit`
    and `base_tree_id` are what an allowance is about. `session` is whom a mute silences (empty: every session of the
    repository) and `until` the second since 1970 at which that ends (0: never). `who` is the session of an agent.
    """

    kind: Kind
    by: By
    at: float
    why: str = ""
    fingerprint: str = ""
    path: str = ""
    message: str = ""
    commit: str = ""
    base_tree_id: str = ""
    session: str = ""
    until: float = 0.0
    who: str = ""


class Decisions(Record):
    """All decisions of a repository, oldest first, and the questions that they answer."""

    lines: tuple[Decision, ...] = ()

    def dismissed(self, fingerprint: str) -> Decision | None:
        """A person's word that the finding is closed."""
        return self._last("dismiss", fingerprint)

    def disputed(self, fingerprint: str) -> Decision | None:
        """An agent's word that the finding is wrong, while no person has closed it."""
        return None if self.dismissed(fingerprint) else self._last("dispute", fingerprint)

    def allowed(self, commit: str) -> Decision | None:
        """A person's word that this commit may go out as it is."""
        allowances = (line for line in reversed(self.lines) if line.kind == "allow" and line.by == "person")
        return next((line for line in allowances if line.commit == commit), None)

    def muted(self, session: str, now: float) -> Decision | None:
        """The mute because of which the session is told nothing at this moment.

        An unmute ends what silenced that session before it, or, of the repository, every session.
        """
        mutes: list[Decision] = []
        for line in self.lines:
            if line.kind == "unmute" and line.session in ("", session):
                mutes = []
            elif line.kind == "mute" and line.session in ("", session):
                mutes.append(line)
        return next((mute for mute in reversed(mutes) if not mute.until or now < mute.until), None)

    def mutes(self, now: float) -> list[Decision]:
        """The mutes that hold at this moment, oldest first.

        One of every session may have been ended for a single one: it holds for the others, and is in the list.
        """
        held: list[Decision] = []
        for line in self.lines:
            if line.kind == "unmute":
                held = [mute for mute in held if line.session and mute.session != line.session]
            elif line.kind == "mute" and (not line.until or now < line.until):
                held.append(line)
        return held

    def _last(self, kind: Kind, fingerprint: str) -> Decision | None:
        return next((d for d in reversed(self.lines) if d.kind == kind and d.fingerprint == fingerprint), None)


def read(durable: str) -> Decisions:
    """All decisions; lines that are torn, or of a newer version, are passed over."""
    raw = atomic.read(os.path.join(durable, FILE), limit=_LIMIT) or b""
    return Decisions(lines=tuple(line for line in map(_parse, raw.split(b"\n")) if line is not None))


def write(durable: str, decision: Decision) -> None:
    """The decision stands in the file; what a full disk or a power cut tore before it stays a line of its own.

    Raises:
        OSError: it cannot be written; nothing was decided.
    """
    path = os.path.join(durable, FILE)
    os.makedirs(durable, mode=0o755, exist_ok=True)
    told = {name: value for name, value in decision.fields().items() if value}
    line = jsontext.dumps({"schema_version": "1", "time": utc_stamp(decision.at), **told}).encode("ascii") + b"\n"
    atomic.append(path, b"\n" + line if atomic.is_torn(path) else line)


def now() -> float:
    """This second, as decisions have it."""
    return time.time()


def _parse(line: bytes) -> Decision | None:
    try:
        value: Json = jsontext.loads(line)
        known = {name: value[name] for name in Decision._fields if name in value}
        decision = Decision(**known)
    except (jsontext.JsonTextError, TypeError, AttributeError):
        return None
    if not _is_well_formed(decision):
        return None
    # An agent's word counts as a dispute, and as nothing else.
    return decision if decision.by == "person" or decision.kind == "dispute" else None


def _is_well_formed(decision: Decision) -> bool:
    numbers = ("at", "until")
    texts = (value for name, value in decision.fields().items() if name not in numbers)
    are_numbers = all(isinstance(getattr(decision, name), (int, float)) for name in numbers)
    return are_numbers and all(isinstance(text, str) for text in texts) and decision.kind in KINDS
