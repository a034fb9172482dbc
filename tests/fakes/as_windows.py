"""A supervisor on Linux that does all that it does on Windows, executed before it begins.

Folders by path, no fork, no modes, a job object for each reviewer. What Windows itself would do is done by /proc, by a
process group in the place of a job object, and by a pidfd in the place of a process handle.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from git_orch import (
    atomic,
    attempt,
    by_path,
    cursor,
    dircache,
    disposal,
    inspection,
    listing,
    parking,
    place,
    reaper,
    removal,
    reviewing,
    system,
    windows,
)
from git_orch.containment import Containment
from git_orch.containment import windows as job_objects
from git_orch.system import FOLDER, PLAIN

if TYPE_CHECKING:
    from git_orch.containment import Job

USERS = (atomic, attempt, cursor, disposal, inspection, listing, parking, place, reaper, removal, system)


class Running:
    """As `job_objects.Running`: a process group that the program leads."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid
        self.handle = os.pidfd_open(process.pid)

    @classmethod
    def start(cls, job: Job) -> Running:
        """The program runs, with its streams in its files."""
        with open(job.stdout_path, "ab") as out, open(job.stderr_path, "ab") as err:
            process = subprocess.Popen(
                job.argv, env=job.env, cwd=job.cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err, process_group=0
            )
        return cls(process)

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """The group is being ended."""
        try:
            os.killpg(self.pid, 9)
        except ProcessLookupError:
            pass
        self._process.poll()

    def active(self) -> int:
        """Whether any of the group is left."""
        self._process.poll()
        try:
            while self._process.returncode is not None and os.waitpid(-self.pid, os.WNOHANG)[0]:
                pass  # this process is a subreaper here
            os.killpg(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            return 0
        return 1

    def pids(self) -> tuple[int, ...]:
        """The leader's."""
        return (self.pid,)

    def cpu_s(self) -> float:
        """Some."""
        return 0.5

    def peak_bytes(self) -> int:
        """Some."""
        return 4096

    def close(self) -> None:
        """The handle is closed."""
        os.close(self.handle)


def path_of(fd: int) -> str:
    """What /proc says in the place of GetFinalPathNameByHandle."""
    return os.readlink(f"/proc/self/fd/{fd}")


def become_windows() -> None:
    """From now on this process does as it would on Windows."""
    windows.path_of = path_of
    windows.open_folder = lambda path, *, pin=False: os.open(path, FOLDER)  # noqa: ARG005
    windows.open_file = lambda path: os.open(path, os.O_RDONLY | PLAIN)
    windows.free_bytes = lambda path: os.statvfs(path).f_bavail * os.statvfs(path).f_frsize
    for module in USERS:
        module.at = by_path  # type: ignore[attr-defined]
    for module in (system, dircache, listing, parking):
        module.HAS_MODES = False  # type: ignore[attr-defined]
    # `subprocess` forks by itself.
    for name in ("fork", "O_PATH"):
        delattr(os, name)
    job_objects.Running = Running  # type: ignore[assignment,misc]
    tier = Containment(tier=4, degraded_reason="Windows has no PID namespaces")
    reviewing.probe = lambda *_, **__: tier  # type: ignore[attr-defined]


become_windows()
