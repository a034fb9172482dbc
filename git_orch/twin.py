"""A run's intent once more, in its lasting folder, for as long as the run lives.

`git clean -fdx` takes the entry in `.orch`, and a supervisor that is killed before it has put that back would leave a
run that nobody knows of. The MAC covers the folder's inode: in a copy of the repository nothing is acted upon.
"""

from __future__ import annotations

import os

from git_orch import atomic, jsontext
from git_orch import key as keys
from git_orch.registry import Intent

_NAME = "intent"
_LIMIT = 64 << 10


def write(intent: Intent, key: bytes) -> None:
    """The twin is there. The supervisor's, which holds the folder by then."""
    body = jsontext.dumps(intent.to_json()).encode("ascii")
    sealed = body + b"\n" + _mac(intent.run_dir, key, body).encode("ascii") + b"\n"
    atomic.write(os.path.join(intent.run_dir, _NAME), sealed)


def exists(run_dir: str) -> bool:
    """Whether the run has not been taken away by its supervisor or a reaper."""
    return os.path.lexists(f"{run_dir}/{_NAME}")


def read(run_dir: str, key: bytes) -> Intent | None:
    """The intent, or None where there is no twin, or none that was written here by this user."""
    raw = atomic.read(os.path.join(run_dir, _NAME), limit=_LIMIT) or b""
    body, _, given = raw.rstrip(b"\n").rpartition(b"\n")
    try:
        if not keys.same(given.decode("latin-1"), _mac(run_dir, key, body)):
            return None
        return Intent.from_json(jsontext.loads(body))
    except (OSError, jsontext.JsonTextError, TypeError, AttributeError):
        return None


def remove(run_dir: str) -> None:
    """Nothing of the run is left that a reaper would have to know."""
    try:
        os.unlink(os.path.join(run_dir, _NAME))
    except OSError:
        pass


def _mac(run_dir: str, key: bytes, body: bytes) -> str:
    return keys.mac(key, "twin", os.path.basename(run_dir), str(os.stat(run_dir).st_ino), body)
