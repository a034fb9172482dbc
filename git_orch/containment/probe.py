"""What this machine allows: found out by doing all of it once, since each part may be granted and the next refused."""

from __future__ import annotations

import errno
import os
import select
import sys
import time

from git_orch import atomic, jsontext
from git_orch.containment import (
    TIER_DARWIN,
    TIER_NAMESPACE,
    TIER_SUBREAPER,
    TIER_WINDOWS,
    Containment,
    Denied,
    View,
    linux,
    namespaces,
)
from git_orch.containment.entry import close_all_but, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal  # the type checker knows no stub of the module that does the work
    from typing import NoReturn
else:
    import _signal

CACHE_VERSION = 1
MOST_REMEMBERED = 16
TIMEOUT_S = 10.0
SIGKILL = 9
# What a sandbox changes for the processes in it: the same user may be inside one and outside, with one cache.
RIGHTS = (b"NoNewPrivs:", b"Seccomp:", b"CapEff:", b"CapBnd:")


def probe(scratch: str, cache: str = "", *, refresh: bool = False) -> Containment:
    """How well a job can be contained here; tier 2 with the reason in words where it is not tier 1.

    `scratch` is a folder of ours on the file system where trees will lie: whether overlays work depends on it. `cache`
    is a file that remembers until the next boot for which sets of rights tier 1 held; one that cannot be read or
    written costs the 20 ms of the attempt. A lesser answer is not remembered, as it may be of the moment, or a person
    about to put it right. `refresh` asks anew.
    """
    if sys.platform == "darwin":
        return Containment(tier=TIER_DARWIN, degraded_reason="macOS has no PID namespaces")
    if sys.platform != "linux":
        return Containment(tier=TIER_WINDOWS, degraded_reason="Windows has no PID namespaces")
    boot, circumstances = _circumstances(scratch)
    remembered = _recall(cache, boot)
    if circumstances in remembered and not refresh:
        return Containment(tier=TIER_NAMESPACE, overlay=remembered[circumstances])
    answer = _try_all(scratch)
    if answer.tier == TIER_NAMESPACE:
        _remember(cache, boot, {**remembered, circumstances: answer.overlay})
    return answer


def without_namespaces(reason: str) -> Containment:
    """The best that there is here apart from tier 1, which is not wanted, or not to be had, for that reason."""
    tier = TIER_DARWIN if sys.platform == "darwin" else TIER_SUBREAPER if sys.platform == "linux" else TIER_WINDOWS
    return Containment(tier=tier, degraded_reason=reason)


def _try_all(scratch: str) -> Containment:
    reason = _attempt(scratch, with_overlay=True)
    if reason.startswith("overlay"):
        reason, overlay = _attempt(scratch, with_overlay=False), False
    else:
        overlay = True
    if reason:
        return Containment(tier=TIER_SUBREAPER, degraded_reason=reason)
    return Containment(tier=TIER_NAMESPACE, overlay=overlay)


def _attempt(scratch: str, *, with_overlay: bool) -> str:
    """Why tier 1 does not hold here; empty if it does: its fences were made, tried, and nothing was left."""
    stage = os.path.join(scratch, f".probe-{os.getpid()}-{time.monotonic_ns()}")
    try:
        os.mkdir(stage, 0o700)
        for name in ("checkout", "tree", "upper", "work"):
            os.mkdir(os.path.join(stage, name), 0o700)
        try:
            return _run_in_namespace(stage, with_overlay)
        finally:
            _remove(stage)
    except OSError as error:
        return f"cannot be tried: {reason_of(error, scratch)}"


def _run_in_namespace(stage: str, with_overlay: bool) -> str:
    """What the innermost of three processes reports: this one's child, its child (PID 1), and that one's (the job)."""
    report_r, report_w = os.pipe()
    try:
        child = os.fork()
        if not child:
            _be_tried(stage, report_w, with_overlay)
    finally:
        os.close(report_w)
    try:
        said = _listen(report_r, time.monotonic() + TIMEOUT_S)
    finally:
        os.kill(child, SIGKILL)  # not reaped yet, so still ours; in most cases it has ended
        os.waitpid(child, 0)
        os.close(report_r)
    if said is None:
        return f"no answer within {TIMEOUT_S:g} s"
    return "" if said == b"ok" else said.decode(errors="replace") or "the process that tried it was killed"


def _listen(fd: int, deadline: float) -> bytes | None:
    """All that is said until the last speaker has ended, or None where that takes too long."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    said = b""
    while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        part = os.read(fd, 1 << 12)
        if not part:
            return said
        said += part
    return None


def _be_tried(stage: str, report_w: int, with_overlay: bool) -> NoReturn:
    """This process, just forked, has tried tier 1 and reported; it waits for its child so that none is orphaned."""
    try:
        close_all_but((report_w,))
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        namespaces.separate()
        if init := os.fork():
            os.waitpid(init, 0)
        elif job := os.fork():
            # Nobody kills PID 1 when its parent is killed; without a handler of its own it would ignore the alarm.
            _signal.signal(_signal.SIGALRM, lambda *_: os._exit(1))
            _signal.setitimer(_signal.ITIMER_REAL, TIMEOUT_S)
            os.waitpid(job, 0)
        else:
            _try_fences(stage, with_overlay)
            os.write(report_w, b"ok")
    except (Denied, OSError) as error:
        os.write(report_w, reason_of(error, "fork").encode(errors="replace"))
    finally:
        os._exit(0)


def _try_fences(stage: str, with_overlay: bool) -> None:
    """Raises Denied where one of the fences of tier 1 is not there or does not hold."""
    checkout, tree, upper, work = (os.path.join(stage, name) for name in ("checkout", "tree", "upper", "work"))
    view = View(read_only=(checkout,), overlay=(tree, upper, work) if with_overlay else None)
    namespaces.shut_in(view, tree)
    if os.readlink("/proc/self") != str(os.getpid()):
        raise Denied("/proc shows other processes")
    try:
        linux.umount(checkout)
        raise Denied("mounts can be taken away by the job")
    except OSError:
        pass
    if _can_write(checkout):
        raise Denied("what is read-only can be written")
    if with_overlay and not (_can_write(tree) and os.listdir(upper)):
        raise Denied("overlay: cannot be written")


def _can_write(folder: str) -> bool:
    try:
        os.mkdir(os.path.join(folder, "written"))
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        return False
    return True


def _remove(folder: str) -> None:
    """The folder is gone, as far as it can be; nothing in it is a link that is followed."""
    try:
        os.chmod(folder, 0o700)
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                _remove(entry.path)
            else:
                os.unlink(entry.path)
        os.rmdir(folder)
    except OSError:
        pass


def _circumstances(scratch: str) -> tuple[str, str]:
    """The boot, and what the answer depends on besides: user, rights, namespaces, AppArmor, the file system."""
    facts = [str(os.geteuid()), str(os.stat(scratch).st_dev)]
    facts += [_link(f"/proc/self/ns/{kind}") for kind in ("user", "pid", "mnt")]
    status = _content("/proc/self/status").splitlines()
    facts += [line.split()[-1].decode() for line in status if line.startswith(RIGHTS)]
    facts += [_content("/proc/self/attr/current").rstrip(b"\n\0").decode(errors="replace"), sys.executable]
    return _content("/proc/sys/kernel/random/boot_id").strip().decode(), " ".join(facts)


def _recall(cache: str, boot: str) -> dict[str, bool]:
    """For each circumstance in which tier 1 held since that boot, whether overlays did."""
    try:
        known = jsontext.loads(atomic.read(cache) or b"{}") if cache else {}
    except jsontext.JsonTextError:
        return {}
    match known:
        case {"version": 1, "boot": str(then), "overlay": dict(overlay)} if then == boot:
            return {key: value for key, value in overlay.items() if isinstance(value, bool)}
    return {}


def _remember(cache: str, boot: str, overlay: dict[str, bool]) -> None:
    if not cache:
        return
    latest = dict(list(overlay.items())[-MOST_REMEMBERED:])
    try:
        atomic.write(cache, jsontext.dumps({"version": CACHE_VERSION, "boot": boot, "overlay": latest}).encode())
    except OSError:
        pass


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
