"""Who fixes what in a worktree, so that two sessions in it do not fix the same: `<git common dir>/orch/lease/<digest>`.

`{"schema_version": "1", "held": {FINGERPRINT: {"session": NAME, "at": SECONDS}}}`, written under `<digest>.lock`. A
session that was asked for a fix has it for half an hour after its last event; then somebody else may be asked.
"""

from __future__ import annotations

import os
import time

from git_orch import atomic, jsontext, locks
from git_orch.model import SCHEMA_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.model import Json

FOLDER = "lease"
LEASE_S = 1800.0
_WAIT_S, _NAP_S = 0.2, 0.005


def take(durable: str, worktree: str, name: str, fingerprints: Sequence[str], now_s: float) -> list[str]:
    """Those of the findings that are now the session's to fix in that worktree (a digest), and nobody else's.

    `name` is that of the session's file. Of a lock that cannot be had in time: none.
    """
    if not fingerprints:
        return []
    folder = os.path.join(durable, FOLDER)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    fd = locks.open_lockable(os.path.join(folder, f"{worktree}.lock"), os.O_CREAT)
    try:
        return _take(durable, worktree, name, fingerprints, now_s) if _locked(fd) else []
    finally:
        os.close(fd)


def _take(durable: str, worktree: str, name: str, fingerprints: Sequence[str], now_s: float) -> list[str]:
    path = os.path.join(durable, FOLDER, f"{worktree}.json")
    held = {key: hold for key, hold in _read(path).items() if _is_held(durable, hold, now_s)}
    ours = [each for each in fingerprints if each not in held or held[each]["session"] == name]
    held |= {each: {"session": name, "at": now_s} for each in ours}
    atomic.write(path, jsontext.dumps({"schema_version": SCHEMA_VERSION, "held": held}).encode("ascii"))
    return ours


def _is_held(durable: str, hold: Json, now_s: float) -> bool:
    """Whether the holder was asked, or was heard of, within half an hour; of a clock that was set back: within one."""
    try:
        heard = os.stat(os.path.join(durable, "sessions", hold["session"])).st_mtime
    except OSError:
        heard = 0.0
    return min(abs(now_s - float(hold["at"])), abs(now_s - heard)) < LEASE_S


def _read(path: str) -> dict[str, Json]:
    try:
        held = jsontext.loads(atomic.read(path, limit=1 << 22) or b"")["held"]
        return {str(key): {"session": str(hold["session"]), "at": float(hold["at"])} for key, hold in held.items()}
    except (jsontext.JsonTextError, KeyError, TypeError, ValueError, AttributeError):
        return {}


def _locked(fd: int) -> bool:
    deadline = time.monotonic() + _WAIT_S
    try:
        while not locks.exclusive(fd):
            if time.monotonic() > deadline:
                return False
            time.sleep(_NAP_S)
    except OSError:  # a file system without locks
        pass
    return True
