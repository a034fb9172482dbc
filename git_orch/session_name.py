"""How the files of a session are called, and whether anything has ended since it was last told all there was.

The name is a digest, since a client may send any string as an id. Loaded at every prompt: it imports next to nothing.
"""

from __future__ import annotations

import os
from _blake2 import blake2b

NEWS = "news"
"""Below `<git common dir>/orch`: its time changes whenever a run has ended, or a person has ended a mute."""
SEEN = ".seen"
_SUFFIX = ".json"


def of(client: str, session_id: str, worktree: str) -> str:
    """The file name of a session of a client in a worktree."""
    parts = "\0".join((client, session_id, worktree)).encode("utf-8", "surrogateescape")
    return blake2b(parts, digest_size=12).hexdigest() + _SUFFIX


def seen(durable: str, name: str) -> str:
    """The mark of the session whose file has that name: its time is that of the news that were dealt with last."""
    return f"{durable}/sessions/{name.removesuffix(_SUFFIX)}{SEEN}"


def has_news(durable: str, name: str) -> bool:
    """Whether the session has to look: something has ended, it was never told, or an answer waits for its receipt.

    Two stats. Times are compared for being the same, so that a clock which is set back hides nothing.
    """
    try:
        return os.stat(seen(durable, name)).st_mtime_ns != news_ns(durable)
    except OSError:
        return True


def news_ns(durable: str) -> int:
    """The time of the latest news; 0 where there were none."""
    try:
        return os.stat(f"{durable}/{NEWS}").st_mtime_ns
    except OSError:
        return 0
