"""What outlived both supervisor and guardian, found by the cookie in its environment.

Tiers 2 and 3 alone can leave such processes. The caller is the reaper, which holds the run's lock and has read its
authenticated entry (the first proof); the cookie, which only this user's key can make, is the second. No number is
ever taken from a file. What has emptied its environment, or forks and exits faster than one reads, is not found.
"""

from __future__ import annotations

import os
import sys
import time

from git_orch.containment.descendants import PROC, own_pid, read_whole, stat_fields
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal  # the type checker knows no stub of the module that does the work
else:
    import _signal

SIGKILL = 9
COOKIE_PREFIX = b"ORCH_TASK="
QUIET_ROUNDS = 2
FIRST_NAP_S, LONGEST_NAP_S = 0.001, 0.05


class Stray(Record):
    """A process that belongs to a dead run.

    It is known by pid and `started` (clock ticks since boot; on macOS a number of its own, never used again), and
    where pidfds have inodes (Linux 6.9) by that, which is never used again either; else that is 0. `cookie` is what its
    environment holds; empty where it merely has its working directory or root in the tree: that may be a person looking
    around, so it is told of and never killed. macOS tells none of these.
    """

    pid: int
    started: int
    pidfd_inode: int
    cookie: bytes = b""
    name: str = ""


def find(cookie: bytes, *, cwd_under: str | None) -> list[Stray]:
    """The processes of this user whose environment holds the cookie, `ORCH_TASK=<run-id>.<mac>`, as one whole entry.

    Then those that are only in `cwd_under`. Never this process, one of its ancestors, or PID 1.

    Raises:
        ValueError: that is no cookie.
    """
    if not cookie.startswith(COOKIE_PREFIX) or cookie == COOKIE_PREFIX or b"\0" in cookie:
        raise ValueError("not a cookie")
    spared = _lineage()
    if sys.platform == "darwin":
        from git_orch.containment import darwin

        return [
            Stray(pid=pid, started=own, pidfd_inode=0, cookie=cookie) for pid, own in darwin.carriers(cookie, spared)
        ]
    numbers = [int(name) for name in os.listdir(PROC) if name.isdecimal()]
    strays = [_find_one(pid, cookie, cwd_under) for pid in numbers if pid not in spared]
    return sorted((stray for stray in strays if stray), key=lambda stray: (not stray.cookie, stray.pid))


def kill(stray: Stray) -> bool:
    """The stray was sent SIGKILL, being still the process that was found and still carrying the cookie."""
    if not stray.cookie or stray.pid in _lineage():
        return False
    if sys.platform == "darwin":
        from git_orch.containment import darwin

        return stray.cookie in darwin.environment(stray.pid) and darwin.kill(stray.pid, stray.started)
    try:
        pidfd = os.pidfd_open(stray.pid)
    except OSError:
        return False
    try:
        now = _identify(stray.pid, pidfd, stray.cookie, None)
        if now is None or now.replace(name=stray.name) != stray:
            return False
        _signal.pidfd_send_signal(pidfd, SIGKILL)
    except OSError:
        return False
    finally:
        os.close(pidfd)
    return True


def clear(cookie: bytes, *, budget_s: float) -> tuple[int, ...]:
    """Nothing that carries the cookie is left: two rounds in a row found none. Else those found last.

    A process that was born while one looked is found in the next round (actions/runner#4601). On Windows there are
    none: the job object has ended them with the supervisor.
    """
    if os.name == "nt":
        return ()
    deadline = time.monotonic() + budget_s
    quiet, nap_s = 0, FIRST_NAP_S
    while True:
        strays = find(cookie, cwd_under=None)
        quiet = 0 if strays else quiet + 1
        if quiet == QUIET_ROUNDS:
            return ()
        if strays and time.monotonic() > deadline:
            return tuple(stray.pid for stray in strays)
        for stray in strays:
            kill(stray)
        time.sleep(nap_s)
        nap_s = min(nap_s * 1.5, LONGEST_NAP_S)


def _find_one(pid: int, cookie: bytes, cwd_under: str | None) -> Stray | None:
    """The process as a stray, if it is one. A pidfd is held while one looks, so that all is about one process."""
    try:
        if os.stat(f"{PROC}/{pid}").st_uid != os.geteuid():
            return None
        pidfd = os.pidfd_open(pid)
    except (OSError, AttributeError):  # gone; or a system without pidfds, where nothing may be hunted
        return None
    try:
        return _identify(pid, pidfd, cookie, cwd_under)
    except (OSError, IndexError):
        return None
    finally:
        os.close(pidfd)


def _identify(pid: int, pidfd: int, cookie: bytes, cwd_under: str | None) -> Stray | None:
    """What that process is to us, read while it surely had that number."""
    is_ours = os.stat(f"{PROC}/{pid}").st_uid == os.geteuid()
    carries = cookie in _environment(pid)
    stray = Stray(
        pid=pid,
        started=int(stat_fields(pid)[19]),
        pidfd_inode=os.fstat(pidfd).st_ino if _has_pidfs(pidfd) else 0,
        cookie=cookie if carries else b"",
        name=os.fsdecode(read_whole(f"{PROC}/{pid}/comm").strip()),
    )
    _signal.pidfd_send_signal(pidfd, 0)  # raises if it has been reaped: then the number may have been another's
    is_there = carries or (cwd_under is not None and _is_under(pid, cwd_under))
    return stray if is_ours and is_there else None


def _environment(pid: int) -> list[bytes]:
    """The entries with which the process was started; none where they cannot be read."""
    try:
        return read_whole(f"{PROC}/{pid}/environ").split(b"\0")
    except OSError:
        return []


def _is_under(pid: int, folder: str) -> bool:
    for link in ("cwd", "root"):
        try:
            place = os.readlink(f"{PROC}/{pid}/{link}")
        except OSError:
            continue
        if place == folder or place.startswith(folder.rstrip("/") + "/"):
            return True
    return False


def _has_pidfs(pidfd: int) -> bool:
    """Whether a pidfd has an inode of its own, rather than the one that all anonymous descriptors share."""
    other = os.eventfd(0)
    try:
        return os.fstat(pidfd).st_dev != os.fstat(other).st_dev
    finally:
        os.close(other)


def _lineage() -> frozenset[int]:
    """PID 1, this process, and its ancestors."""
    spared = {1}
    pid = own_pid()
    while pid > 0 and pid not in spared:
        spared.add(pid)
        try:
            pid = _parent(pid)
        except (OSError, IndexError):
            break
    return frozenset(spared)


def _parent(pid: int) -> int:
    if sys.platform == "darwin":
        from git_orch.containment import darwin

        seen = darwin.short(pid)
        return 0 if seen is None else seen.parent
    return int(stat_fields(pid)[1])
