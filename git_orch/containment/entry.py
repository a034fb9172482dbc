"""What happens in the job's process between fork and exec."""

from __future__ import annotations

import errno
import os
import sys

from git_orch.containment import TIER_NAMESPACE, Denied, Job, namespaces
from git_orch.containment.descendants import own_pid
from git_orch.errors import OrchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal  # the type checker knows no stub of the module that does the work
    from collections.abc import Collection
    from typing import NoReturn
else:
    import _signal

OOM_SCORE_ADDED = 500
MOST_OOM_SCORE = 1000
EXIT_NOT_STARTED = 127


def become(job: Job, streams: tuple[int, int, int], report_fd: int) -> NoReturn:
    """This process is the job; where that fails it has written why, and has ended.

    `report_fd` (closed by exec) gets a line with the process's number as the supervisor sees it, and then nothing, or
    why the job did not start: a line `denied` where its containment was refused, else `failed`, and the reason.
    """
    try:
        os.write(report_fd, b"%d\n" % own_pid())
        os.setsid()
        for target, fd in enumerate(streams):
            os.dup2(fd, target)
        close_all_but((report_fd,))
        _be_killed_first()
        if job.containment.tier == TIER_NAMESPACE:
            namespaces.shut_in(job.view, job.cwd)
        else:
            os.chdir(job.cwd)
        restore_signals()
        _execute(job.argv, job.env)
    except Exception as error:  # noqa: BLE001 - whatever it is, the job must not look as if it had run
        kind = b"denied\n" if isinstance(error, Denied) else b"failed\n"
        os.write(report_fd, kind + reason_of(error, job.argv[0]).encode(errors="replace"))
    finally:
        os._exit(EXIT_NOT_STARTED)


def reason_of(error: Exception, subject: str) -> str:
    """The error in a few words; the subject is what a system error was about, where that names nothing itself."""
    if isinstance(error, OSError):
        return f"{error.filename or subject}: {error.strerror}"
    return str(error) if isinstance(error, (OrchError, ValueError)) else repr(error)


def close_all_but(kept: Collection[int]) -> None:
    """No descriptor above 2 is open but the kept ones."""
    try:
        open_ones = [int(name) for name in os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")]
    except OSError:
        open_ones = list(range(os.sysconf("SC_OPEN_MAX")))
    for fd in open_ones:
        if fd > 2 and fd not in kept:
            try:
                os.close(fd)
            except OSError:  # the one that the listing was read from
                pass


def restore_signals() -> None:
    """No signal is ignored or blocked: both would pass through exec, as SIGPIPE, which Python ignores, does."""
    for number in _signal.valid_signals():
        if _signal.getsignal(number) == _signal.SIG_IGN:
            try:
                _signal.signal(number, _signal.SIG_DFL)
            except (OSError, ValueError):
                pass
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def _be_killed_first() -> None:
    """When memory runs out the kernel takes the job, not its guardian. Only ever raised: lowering is root's."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(fd, b"%d" % min(int(os.read(fd, 16)) + OOM_SCORE_ADDED, MOST_OOM_SCORE))
    except OSError:
        pass
    finally:
        os.close(fd)


def _execute(argv: tuple[str, ...], env: dict[str, str]) -> NoReturn:
    """The program runs in this process. Relative folders of PATH are passed over: the working directory is the tree.

    Raises:
        OSError: there is no such program, or it cannot be executed.
    """
    name = argv[0]
    if "/" in name and not name.startswith("/"):
        raise OSError(errno.EINVAL, "neither an absolute path nor a name", name)
    if "/" in name:
        os.execve(name, argv, env)  # noqa: S606 - here and below is the one place where that is wanted
    folders = env.get("PATH", os.defpath).split(":")
    refused: OSError | None = None
    for folder in folders:
        if folder.startswith("/"):
            try:
                os.execve(os.path.join(folder, name), argv, env)  # noqa: S606
            except (FileNotFoundError, NotADirectoryError):
                pass
            except OSError as error:
                if os.path.exists(os.path.join(folder, name)):  # else a folder that may not be searched
                    refused = refused or error
    raise refused or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
