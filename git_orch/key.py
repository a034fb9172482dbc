"""The key of this user, by which git-orch knows its own files again.

A clone can bring a `.orch/pending/x.json` that names anything; only what carries a MAC by this key is acted upon.
"""

from __future__ import annotations

import os
from _blake2 import blake2b
from _operator import _compare_digest

from git_orch import atomic, system
from git_orch.errors import EnvironmentProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

KEY_BYTES = 32


def state_dir(env: Mapping[str, str]) -> str:
    """The folder of this user's key, trust store and hook launcher.

    Raises:
        EnvironmentProblem: neither XDG_STATE_HOME nor HOME says where.
    """
    state = env.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        home = system.home(env)
        if not os.path.isabs(home):
            raise EnvironmentProblem("HOME is not set", "set HOME, or XDG_STATE_HOME, to a folder of yours")
        state = os.path.join(home, ".local", "state")
    return os.path.join(state, "git-orch")


def load(env: Mapping[str, str]) -> bytes:
    """The key, made on first use; however many processes make it at once, all get the same one.

    Raises:
        EnvironmentProblem: it cannot be written, or is readable by others.
    """
    folder = state_dir(env)
    path = os.path.join(folder, "key")
    try:
        key = atomic.read(path, limit=KEY_BYTES)
        if key is None:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            # On the disk: an empty one would be in everybody's way after a power cut.
            atomic.create(path, os.urandom(KEY_BYTES), durable=True)
            key = atomic.read(path, limit=KEY_BYTES)
        status = os.lstat(path)
    except OSError as error:
        raise EnvironmentProblem(
            f"cannot keep a key in {folder}: {error.strerror}", "set XDG_STATE_HOME to a folder that you can write"
        ) from error
    if key is None or len(key) != KEY_BYTES:
        raise EnvironmentProblem(f"{path} is not a key of git-orch", "remove it; a new one is made")
    if not system.is_private(status, path):
        raise EnvironmentProblem(f"{path} can be read by others", f"chmod 600 {path}, or remove it")
    return key


def mac(key: bytes, *parts: str | bytes) -> str:
    """32 hex digits that only the holder of the key can make for these parts, in this order."""
    raw = [part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part for part in parts]
    # With their lengths, so that ("ab", "c") is not ("a", "bc").
    return blake2b(b"".join([b"%d:%b" % (len(part), part) for part in raw]), key=key, digest_size=16).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two MACs are equal, in a time that does not tell where they differ."""
    return one.isascii() and other.isascii() and _compare_digest(one, other)


def digest(*parts: str | bytes) -> str:
    """32 hex digits that name these parts, without a key."""
    return mac(b"", *parts)
