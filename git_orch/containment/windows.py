"""Tier 4, Windows. Written, not run.

A supervisor that has put itself into a job object with KILL_ON_JOB_CLOSE, and keeps the handle, needs no guardian: its
children are members from birth, and the kernel ends all of them when the handle closes, however the supervisor ended
(JOBOBJECT_BASIC_LIMIT_INFORMATION; no SILENT_BREAKAWAY, which would let them out). Each reviewer runs in a job object
of its own, nested in that one (Windows 8 and later), so that it can be ended and counted by itself: it is started
suspended, put in, and only then let go. "No process is active in the job" is what ECHILD is elsewhere: proof.
"""

from __future__ import annotations

import os
import sys
import time

from git_orch import windows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from git_orch.containment import Job

KILL_ON_JOB_CLOSE = 0x2000
BASIC_ACCOUNTING_INFORMATION, BASIC_PROCESS_ID_LIST, EXTENDED_LIMIT_INFORMATION = 1, 3, 9
CREATE_SUSPENDED, CREATE_NO_WINDOW, CREATE_NEW_PROCESS_GROUP = 0x4, 0x08000000, 0x200
USE_SHOW_WINDOW, USE_STD_HANDLES, HIDDEN = 0x1, 0x100, 0
WAIT_TIMEOUT, MOST_AWAITED = 258, 62
FAILED = 0xFFFFFFFF  # of ResumeThread
MOST_LISTED = 300
TICKS_A_SECOND = 10_000_000  # 100 ns each
ENDED_BY_US = 1
TO_TERMINATE = 0x8  # JOB_OBJECT_TERMINATE
_NAME = "Global\\git-orch-"  # in all of the user's sessions: a hook's may not be that of who stops the run

_handle: Any = None  # the job object lives as long as this does
_loaded: Any = None


def confine(cookie: str) -> None:
    """This process and all it will start end together, and can be ended by who knows the run's cookie (`end`).

    Raises:
        OSError: the job object could not be made or joined.
    """
    global _handle  # noqa: PLW0603 - closing the handle is what kills
    if sys.platform != "win32":
        raise OSError("job objects are of Windows")
    import ctypes

    handle = _new_job(_NAME + cookie)
    if not _kernel32().AssignProcessToJobObject(handle, _kernel32().GetCurrentProcess()):
        raise ctypes.WinError(ctypes.get_last_error())
    _handle = handle


def end(cookie: str) -> bool:
    """The supervisor of the run with that cookie, and all that it started, are being ended; False where none lives.

    The name is the kernel's, and is there as long as the job object: that is, as long as the supervisor lives. Only the
    holder of this user's key can make it.
    """
    if os.name != "nt":
        return False
    handle = _kernel32().OpenJobObjectW(TO_TERMINATE, 0, _NAME + cookie)
    if not handle:
        return False
    is_ended = bool(_kernel32().TerminateJobObject(handle, ENDED_BY_US))
    _kernel32().CloseHandle(handle)
    return is_ended


def is_in_one() -> bool:
    """Whether this process is in a job object: before `confine`, of somebody else's."""
    if sys.platform != "win32":
        return False
    import ctypes

    answer = ctypes.c_int()
    asked = _kernel32().IsProcessInJob(_kernel32().GetCurrentProcess(), None, ctypes.byref(answer))
    return bool(asked and answer.value)


class Running:
    """A program in a job object of its own, with all that it starts.

    Attributes:
        pid: the program's.
        handle: the program's, as a number; it is signalled when the program has ended.
    """

    def __init__(self, pid: int, handle: int, job: Any) -> None:
        self.pid = pid
        self.handle = handle
        self._job = job

    @classmethod
    def start(cls, job: Job) -> Running:
        """The job's program runs, without a window.

        Raises:
            OSError: it could not be started, or not be held; then nothing of it is left.
        """
        if sys.platform != "win32":
            raise OSError("job objects are of Windows")
        import _winapi
        import ctypes

        process, thread, pid = _create_suspended(job)
        try:
            held = _new_job()
            if not _kernel32().AssignProcessToJobObject(held, process) or _kernel32().ResumeThread(thread) == FAILED:
                raise ctypes.WinError(ctypes.get_last_error())
        except OSError:
            _winapi.TerminateProcess(process, ENDED_BY_US)
            _winapi.CloseHandle(process)
            raise
        finally:
            _winapi.CloseHandle(thread)
        return cls(pid, process, held)

    def exit_code(self) -> int | None:
        """The program's exit code, a 32-bit number without a sign; None while it runs."""
        if sys.platform != "win32":
            raise OSError("processes have handles on Windows")
        import _winapi

        if _winapi.WaitForSingleObject(self.handle, 0) == WAIT_TIMEOUT:
            return None
        return _winapi.GetExitCodeProcess(self.handle)

    def kill(self) -> None:
        """Everything in the job object is being ended; what has ended already is as it was."""
        _kernel32().TerminateJobObject(self._job, ENDED_BY_US)

    def active(self) -> int:
        """How many processes live in the job object."""
        return int(self._accounting().active_processes)

    def pids(self) -> tuple[int, ...]:
        """Who they are, at most 300 of them."""
        answer = _process_list()()
        self._ask(BASIC_PROCESS_ID_LIST, answer)
        return tuple(int(pid) for pid in answer.pids[: min(answer.listed, MOST_LISTED)])

    def cpu_s(self) -> float:
        """CPU seconds of all that are or were in the job object."""
        told = self._accounting()
        return float((told.user_time + told.kernel_time) / TICKS_A_SECOND)

    def peak_bytes(self) -> int:
        """The most memory that all of them had committed at once."""
        limits = _limits()()
        self._ask(EXTENDED_LIMIT_INFORMATION, limits)
        return int(limits.peak_job_memory)

    def close(self) -> None:
        """The handles are closed, by which whatever were left would be ended."""
        for handle in (self.handle, self._job):
            _kernel32().CloseHandle(handle)

    def _accounting(self) -> Any:
        told = _accounting()()
        self._ask(BASIC_ACCOUNTING_INFORMATION, told)
        return told

    def _ask(self, kind: int, answer: Any) -> None:
        """The answer is filled in; what is refused stays zero, but for a list that is too short (ERROR_MORE_DATA)."""
        import ctypes

        _kernel32().QueryInformationJobObject(self._job, kind, ctypes.byref(answer), ctypes.sizeof(answer), None)


class Group:
    """A program that runs already, and what it starts from now on, to be ended together; else it is left alone."""

    def __init__(self, process: int) -> None:
        self._job: Any = _kernel32().CreateJobObjectW(None, None)
        _kernel32().AssignProcessToJobObject(self._job, process)

    def kill(self) -> None:
        """All of them are being ended."""
        _kernel32().TerminateJobObject(self._job, ENDED_BY_US)

    def close(self) -> None:
        """They go on as they like."""
        _kernel32().CloseHandle(self._job)


class Poll:
    """As `select.poll`, which Windows lacks, for the handles of processes."""

    def __init__(self) -> None:
        self._handles: list[int] = []

    def register(self, handle: int, _events: int) -> None:
        """It is waited for as well."""
        self._handles.append(handle)

    def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
        """The handles that are signalled, within that time."""
        if not self._handles:
            time.sleep(timeout_ms / 1000)
            return []
        if sys.platform != "win32":
            raise OSError("processes have handles on Windows")
        import _winapi

        # The others, if there ever were more, are looked at in the rhythm of the caller's time-out.
        found = _winapi.WaitForMultipleObjects(self._handles[:MOST_AWAITED], False, int(timeout_ms))
        if found == WAIT_TIMEOUT:
            return []
        return [(each, 1) for each in self._handles if _winapi.WaitForSingleObject(each, 0) != WAIT_TIMEOUT]


def _create_suspended(job: Job) -> tuple[int, int, int]:
    """Handles of a new process and of its only thread, which has not run yet, and the process's number."""
    if sys.platform != "win32":
        raise OSError("CreateProcess is of Windows")
    import _winapi
    import msvcrt
    import subprocess

    program = windows.find_program(job.argv[0], job.env.get("PATH", ""))
    if program is None:
        raise FileNotFoundError(2, "not found on PATH, as an .exe", job.argv[0])
    fds = [os.open(os.devnull, os.O_RDONLY | os.O_NOINHERIT)]
    try:
        fds += [windows.open_to_append(path) for path in (job.stdout_path, job.stderr_path)]
        streams = [msvcrt.get_osfhandle(fd) for fd in fds]
        for handle in streams:
            os.set_handle_inheritable(handle, True)
        startup = subprocess.STARTUPINFO(
            dwFlags=USE_SHOW_WINDOW | USE_STD_HANDLES,
            wShowWindow=HIDDEN,
            hStdInput=streams[0],
            hStdOutput=streams[1],
            hStdError=streams[2],
            lpAttributeList={"handle_list": streams},  # and nothing else is handed down
        )
        line = subprocess.list2cmdline([program, *job.argv[1:]])
        how = CREATE_SUSPENDED | CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP
        env = windows.with_system(job.env)
        process, thread, pid, _ = _winapi.CreateProcess(program, line, None, None, True, how, env, job.cwd, startup)
    finally:
        for fd in fds:
            os.close(fd)
    return process, thread, pid


def _new_job(name: str | None = None) -> Any:
    """A handle of a job object that ends all its members when it is closed.

    Raises:
        OSError: there is none to be had.
    """
    if sys.platform != "win32":
        raise OSError("job objects are of Windows")
    import ctypes

    limits = _limits()()
    limits.flags = KILL_ON_JOB_CLOSE
    handle = _kernel32().CreateJobObjectW(None, name)
    size = ctypes.sizeof(limits)
    if not handle or not _kernel32().SetInformationJobObject(
        handle, EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), size
    ):
        raise ctypes.WinError(ctypes.get_last_error())
    return handle


def _limits() -> Any:
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION (winnt.h), 144 bytes."""
    import ctypes

    class Limits(ctypes.Structure):
        _fields_ = (
            ("per_process_user_time", ctypes.c_int64),
            ("per_job_user_time", ctypes.c_int64),
            ("flags", ctypes.c_uint32),
            ("minimum_working_set", ctypes.c_size_t),
            ("maximum_working_set", ctypes.c_size_t),
            ("active_processes", ctypes.c_uint32),
            ("affinity", ctypes.c_size_t),
            ("priority_class", ctypes.c_uint32),
            ("scheduling_class", ctypes.c_uint32),
            ("io_counters", ctypes.c_uint64 * 6),
            ("process_memory", ctypes.c_size_t),
            ("job_memory", ctypes.c_size_t),
            ("peak_process_memory", ctypes.c_size_t),
            ("peak_job_memory", ctypes.c_size_t),
        )

    return Limits


def _accounting() -> Any:
    """JOBOBJECT_BASIC_ACCOUNTING_INFORMATION (winnt.h), 48 bytes; the times in 100 ns."""
    import ctypes

    class Accounting(ctypes.Structure):
        _fields_ = (
            ("user_time", ctypes.c_int64),
            ("kernel_time", ctypes.c_int64),
            ("period_user_time", ctypes.c_int64),
            ("period_kernel_time", ctypes.c_int64),
            ("page_faults", ctypes.c_uint32),
            ("processes", ctypes.c_uint32),
            ("active_processes", ctypes.c_uint32),
            ("terminated_processes", ctypes.c_uint32),
        )

    return Accounting


def _process_list() -> Any:
    """JOBOBJECT_BASIC_PROCESS_ID_LIST (winnt.h), with room for 300."""
    import ctypes

    class ProcessList(ctypes.Structure):
        _fields_ = (
            ("assigned", ctypes.c_uint32),
            ("listed", ctypes.c_uint32),
            ("pids", ctypes.c_size_t * MOST_LISTED),
        )

    return ProcessList


def _kernel32() -> Any:
    """The functions with the types without which a handle would be cut off at 32 bits."""
    global _loaded  # noqa: PLW0603 - loaded at the first use, and only on Windows
    if sys.platform != "win32":
        raise OSError("kernel32 is of Windows")
    if _loaded is None:
        import ctypes

        number, pointer = ctypes.c_uint32, ctypes.c_void_p
        kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel32.CreateJobObjectW.argtypes = (pointer, ctypes.c_wchar_p)
        kernel32.CreateJobObjectW.restype = pointer
        kernel32.OpenJobObjectW.argtypes = (number, ctypes.c_int, ctypes.c_wchar_p)
        kernel32.OpenJobObjectW.restype = pointer
        kernel32.GetCurrentProcess.restype = pointer
        kernel32.SetInformationJobObject.argtypes = (pointer, ctypes.c_int, pointer, number)
        kernel32.QueryInformationJobObject.argtypes = (pointer, ctypes.c_int, pointer, number, pointer)
        kernel32.AssignProcessToJobObject.argtypes = (pointer, pointer)
        kernel32.TerminateJobObject.argtypes = (pointer, number)
        kernel32.IsProcessInJob.argtypes = (pointer, pointer, pointer)
        kernel32.ResumeThread.argtypes = (pointer,)
        kernel32.ResumeThread.restype = number
        kernel32.CloseHandle.argtypes = (pointer,)
        _loaded = kernel32
    return _loaded
