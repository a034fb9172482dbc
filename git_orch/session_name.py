"""How the file of a session is called: a digest, since a client may send any string as an id."""

from __future__ import annotations

from _blake2 import blake2b


def of(client: str, session_id: str, worktree: str) -> str:
    """The file name of a session of a client in a worktree."""
    parts = "\0".join((client, session_id, worktree)).encode("utf-8", "surrogateescape")
    return blake2b(parts, digest_size=12).hexdigest() + ".json"
