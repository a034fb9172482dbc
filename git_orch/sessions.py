"""What is known of a client's session: the tree that it began with, and the one that it was last reviewed at.

`<git common dir>/orch/sessions/<digest>.json`, written whole by rename; each session's hooks come one after the other.
"""

from __future__ import annotations

import os
import time

from git_orch import atomic, jsontext, session_name, system
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Json


class Session(Record):
    """One session of one client in one worktree. `base_tree_id` is what its next review is compared with.

    `late`: it was first heard of at a stop, so that the base is a commit, and nobody knows whose what differs is.
    """

    client: str
    session_id: str
    worktree: str
    base_tree_id: str = ""
    reviewed_tree_id: str = ""
    left_out: str = ""
    late: bool = False
    run_ids: tuple[str, ...] = ()


def path(durable: str, client: str, session_id: str, worktree: str) -> str:
    """The file of a session."""
    return os.path.join(durable, "sessions", session_name.of(client, session_id, worktree))


def read(durable: str, client: str, session_id: str, worktree: str) -> Session | None:
    """The session, or None where it has not been seen."""
    return _read(path(durable, client, session_id, worktree))


def latest(durable: str, worktree: str) -> Session | None:
    """The session of that worktree that was heard of last, or None where there was none."""
    folder = os.path.join(durable, "sessions")
    names = [name for name in os.listdir(folder) if name.endswith(".json")] if os.path.isdir(folder) else []
    found = (_read(os.path.join(folder, name)) for name in sorted(names, key=lambda name: -_mtime(folder, name)))
    return next((session for session in found if session is not None and session.worktree == worktree), None)


def write(durable: str, session: Session) -> None:
    """The session is as given."""
    place = path(durable, session.client, session.session_id, session.worktree)
    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    atomic.write(place, jsontext.dumps(session.fields()).encode("ascii"))


def announce(durable: str) -> None:
    """Every session of the repository looks, at its next event, for what there is to be told. Never fails."""
    try:
        _stamp(os.path.join(durable, session_name.NEWS), time.time_ns())
    except OSError:
        pass


def is_done(durable: str, name: str, news_ns: int) -> None:
    """The session whose file has that name need not look again before there are other news than these."""
    _stamp(session_name.seen(durable, name), news_ns)


def is_waiting(durable: str, name: str) -> None:
    """The session looks at its next event, whatever happens until then."""
    try:
        os.unlink(session_name.seen(durable, name))
    except FileNotFoundError:
        pass


def _stamp(path: str, time_ns: int) -> None:
    """The file is there, empty, and has that time."""
    try:
        os.utime(path, ns=(time_ns, time_ns))
    except FileNotFoundError:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | system.CLOEXEC | system.NOFOLLOW, 0o600))
        os.utime(path, ns=(time_ns, time_ns))


def _read(place: str) -> Session | None:
    try:
        value: Json = jsontext.loads(atomic.read(place, limit=1 << 20) or b"")
        known = {name: value[name] for name in Session._fields if name in value}
        return Session(**{**known, "run_ids": tuple(known.get("run_ids", ()))})
    except (jsontext.JsonTextError, TypeError):
        return None


def _mtime(folder: str, name: str) -> float:
    try:
        return os.stat(os.path.join(folder, name)).st_mtime
    except OSError:  # it is retired at this moment
        return 0.0
