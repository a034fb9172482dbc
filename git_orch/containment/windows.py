"""Tier 4, Windows. Written, not run.

A supervisor that has put itself into a job object with KILL_ON_JOB_CLOSE, and keeps the handle, needs no guardian: its
children are members from birth, and the kernel ends all of them when the handle closes, however the supervisor ended
(JOBOBJECT_BASIC_LIMIT_INFORMATION; no SILENT_BREAKAWAY, which would let them out).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KILL_ON_JOB_CLOSE = 0x2000
EXTENDED_LIMIT_INFORMATION = 9

_handle: Any = None  # the job object lives as long as this does


def confine() -> None:
    """This process and all it will start end together.

    Raises:
        OSError: the job object could not be made or joined.
    """
    global _handle  # noqa: PLW0603 - closing the handle is what kills
    if sys.platform != "win32":
        raise OSError("job objects are of Windows")
    import ctypes
    from ctypes import wintypes

    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel32.CreateJobObjectW.restype = wintypes.HANDLE
    kernel32.GetCurrentProcess.restype = wintypes.HANDLE
    limits = _limits()
    handle = wintypes.HANDLE(kernel32.CreateJobObjectW(None, None))
    made = handle and kernel32.SetInformationJobObject(
        handle, EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), ctypes.sizeof(limits)
    )
    if not made or not kernel32.AssignProcessToJobObject(handle, wintypes.HANDLE(kernel32.GetCurrentProcess())):
        raise ctypes.WinError(ctypes.get_last_error())
    _handle = handle


def is_in_one() -> bool:
    """Whether this process is in a job object: before `confine`, of somebody else's."""
    if sys.platform != "win32":
        return False
    import ctypes
    from ctypes import wintypes

    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel32.GetCurrentProcess.restype = wintypes.HANDLE
    answer = wintypes.BOOL()
    asked = kernel32.IsProcessInJob(wintypes.HANDLE(kernel32.GetCurrentProcess()), None, ctypes.byref(answer))
    return bool(asked and answer.value)


def _limits() -> Any:
    """A JOBOBJECT_EXTENDED_LIMIT_INFORMATION (winnt.h) that kills on close."""
    import ctypes
    from ctypes import wintypes

    class Basic(ctypes.Structure):
        _fields_ = (
            ("per_process_user_time", ctypes.c_int64),
            ("per_job_user_time", ctypes.c_int64),
            ("flags", wintypes.DWORD),
            ("minimum_working_set", ctypes.c_size_t),
            ("maximum_working_set", ctypes.c_size_t),
            ("active_processes", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("priority_class", wintypes.DWORD),
            ("scheduling_class", wintypes.DWORD),
        )

    class Extended(ctypes.Structure):
        _fields_ = (
            ("basic", Basic),
            ("io_counters", ctypes.c_uint64 * 6),
            ("process_memory", ctypes.c_size_t),
            ("job_memory", ctypes.c_size_t),
            ("peak_process_memory", ctypes.c_size_t),
            ("peak_job_memory", ctypes.c_size_t),
        )

    limits = Extended()
    limits.basic.flags = KILL_ON_JOB_CLOSE
    return limits
