"""A supervisor on Linux that holds its jobs as on macOS: no subreaper, no pidfd; its kernel's answers come from /proc.

What is orphaned goes to the system's first process, or to a subreaper above the test, as it goes to launchd there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from pathlib import Path

from git_orch import reviewing
from git_orch.containment import Containment, darwin

ZOMBIE = b"Z"


def fields(pid: int) -> list[bytes]:
    """Those of /proc/PID/stat from the state on."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def all_pids() -> list[int]:
    """Every process."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def number(pid: int) -> int:
    """One that is not used again soon: when it began, and its pid."""
    return int(fields(pid)[19]) << 22 | pid


def identity(pid: int) -> tuple[int, int] | None:
    """Its number, and that of its parent: Linux does not keep that of who forked it."""
    try:
        parent = int(fields(pid)[1])
        return number(pid), number(parent) if parent else 0
    except (OSError, IndexError):
        return None


def short(pid: int) -> darwin.Short | None:
    """What /proc tells of it."""
    try:
        state, parent, group = fields(pid)[:3]
        uid = os.stat(f"/proc/{pid}").st_uid
    except (OSError, IndexError):
        return None
    return darwin.Short(int(parent), int(group), uid, "", is_zombie=state == ZOMBIE)


def environment(pid: int) -> list[bytes]:
    """The entries that it was started with."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def children(pid: int) -> list[int]:
    """Those whose parent it is."""
    found: Collection[tuple[int, darwin.Short | None]] = [(each, short(each)) for each in all_pids()]
    return [each for each, seen in found if seen is not None and seen.parent == pid]


def become_darwin() -> None:
    """From now on this process does as it would on macOS."""
    tier = Containment(tier=3, degraded_reason="macOS has no PID namespaces")
    reviewing.probe = lambda *_, **__: tier  # type: ignore[attr-defined]
    for own in (all_pids, identity, short, environment, children):
        setattr(darwin, own.__name__, own)
    darwin.cpu_seconds = lambda pid: 0.0  # noqa: ARG005
    for name in ("pidfd_open", "waitid", "O_PATH"):
        delattr(os, name)
    sys.platform = "darwin"


become_darwin()
