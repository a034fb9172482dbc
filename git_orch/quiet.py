"""Whether a session has been quiet: when its person last typed something, by the time of a file.

`<git common dir>/orch/sessions/<digest>.prompt`, touched at each prompt. Loaded there: it imports next to nothing.
"""

from __future__ import annotations

import os

from git_orch import system

_SUFFIX = ".json"


def path(durable: str, name: str) -> str:
    """The file of the session whose own file has that name."""
    return f"{durable}/sessions/{name.removesuffix(_SUFFIX)}.prompt"


def disturb(durable: str, name: str) -> None:
    """The session has had a prompt at this moment. Never fails: at worst a review is paid for that nobody reads."""
    place = path(durable, name)
    try:
        os.utime(place)
    except FileNotFoundError:
        _make(place)
    except OSError:
        pass


def disturbed_at(durable: str, name: str) -> float:
    """When the session last had a prompt, in seconds since 1970; 0 where it had none."""
    try:
        return os.stat(path(durable, name)).st_mtime
    except OSError:
        return 0.0


def _make(place: str) -> None:
    try:
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | system.NOFOLLOW, 0o600))
    except OSError:  # no session was ever seen here
        pass
