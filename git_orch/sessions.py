"""What is known of a client's session: the tree that it began with, and the one that it was last reviewed at.

`<git common dir>/orch/sessions/<digest>.json`, written whole by rename; each session's hooks come one after the other.
"""

from __future__ import annotations

import os

from git_orch import atomic, jsontext, session_name
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Json


class Session(Record):
    """One session of one client in one worktree. `base_tree_id` is what its next review is compared with."""

    client: str
    session_id: str
    worktree: str
    base_tree_id: str = ""
    reviewed_tree_id: str = ""
    left_out: str = ""
    told: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()


def path(durable: str, client: str, session_id: str, worktree: str) -> str:
    """The file of a session."""
    return os.path.join(durable, "sessions", session_name.of(client, session_id, worktree))


def read(durable: str, client: str, session_id: str, worktree: str) -> Session | None:
    """The session, or None where it has not been seen."""
    raw = atomic.read(path(durable, client, session_id, worktree), limit=1 << 20)
    try:
        value: Json = jsontext.loads(raw or b"")
        known = {name: value[name] for name in Session._fields if name in value}
        return Session(**{**known, "told": tuple(known.get("told", ())), "run_ids": tuple(known.get("run_ids", ()))})
    except (jsontext.JsonTextError, TypeError):
        return None


def write(durable: str, session: Session) -> None:
    """The session is as given."""
    place = path(durable, session.client, session.session_id, session.worktree)
    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    atomic.write(place, jsontext.dumps(session.fields()).encode("ascii"))
