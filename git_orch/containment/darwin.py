"""Tier 3, macOS. Written, not run.

There is no subreaper: what is orphaned goes to launchd, and ECHILD proves only that the guardian's own children are
gone. A double fork whose middle process ends at once is found again by its cookie alone, at the next sweep.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FIRST_ROOM = 64

_loaded: Any = None


def children(pid: int) -> list[int]:
    """The children of a process, by `proc_listchildpids` (libproc.h), which gives their number, not bytes."""
    import ctypes

    room = FIRST_ROOM
    while True:
        pids = (ctypes.c_int * room)()
        count = _libproc().proc_listchildpids(pid, pids, ctypes.sizeof(pids))
        if count < room:  # -1: there is no such process
            return list(pids[: max(count, 0)])
        room *= 2


def _libproc() -> Any:
    global _loaded  # noqa: PLW0603 - as in linux.py
    if _loaded is None:
        import ctypes

        _loaded = ctypes.CDLL("/usr/lib/libproc.dylib", use_errno=True)
    return _loaded
