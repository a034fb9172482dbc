"""Windows' own calls, for `locks`, `proc` and `launch`. Written, not run.

Files that may be removed while they are open, locks, pipes, and a process that leaves the job of its parent. Each loads
what it needs when it is called, so that the module can be imported everywhere else.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# LockFileEx keeps others from reading what it locks, so these bytes lie where no file of ours has any.
_HIGH_OF_LOCK, _HIGH_OF_NAMES = 1 << 30, 1 << 29  # the upper halves of their offsets
_FAIL_IMMEDIATELY, _EXCLUSIVE = 1, 2
_LOCK_VIOLATION, _NOT_LOCKED = 33, 158
_LOOK_S = 0.01

DETACHED_PROCESS = 0x8
CREATE_NEW_PROCESS_GROUP = 0x200
CREATE_BREAKAWAY_FROM_JOB = 0x01000000

_loaded: Any = None


def lock(fd: int, *, exclusive: bool, wait: bool) -> bool:
    """The file's lock is this process's; False where another has it. A lock that it had before is given up first.

    Raises:
        OSError: the file system keeps no locks.
    """
    how = (_EXCLUSIVE if exclusive else 0) | (0 if wait else _FAIL_IMMEDIATELY)
    return _lock_region(fd, how, 0, _HIGH_OF_LOCK)


def lock_name(fd: int, byte: int) -> bool:
    """This process has the name that the byte stands for; False where another has it.

    Raises:
        OSError: the file system keeps no locks.
    """
    return _lock_region(fd, _EXCLUSIVE | _FAIL_IMMEDIATELY, byte, _HIGH_OF_NAMES)


def open_shared(path: str, how: int) -> int:
    """As os.open for reading and writing, but others may remove and rename it, which Python's way refuses them.

    Args:
        how: 0, or `os.O_CREAT`, with or without `os.O_EXCL`.
    """
    if sys.platform != "win32":
        raise OSError("CreateFile is of Windows")
    import ctypes
    import msvcrt

    read_and_write, share_all = 0x80000000 | 0x40000000, 1 | 2 | 4
    create_new, open_existing, open_always = 1, 3, 4
    disposition = create_new if how & os.O_EXCL else open_always if how & os.O_CREAT else open_existing
    no_following = 0x00200000  # FILE_FLAG_OPEN_REPARSE_POINT
    handle = _kernel32().CreateFileW(path, read_and_write, share_all, None, disposition, no_following, None)
    if handle in (None, ctypes.c_void_p(-1).value):
        raise ctypes.WinError(ctypes.get_last_error())
    return msvcrt.open_osfhandle(handle, os.O_RDWR | os.O_NOINHERIT | os.O_BINARY)


def readable(fd: int, timeout_s: float) -> bool:
    """Whether a pipe has something to read, or has ended, within that time: `select` knows sockets only.

    What is no pipe (a file, NUL) is always readable; a console too, where nobody waits for us.
    """
    import ctypes

    deadline = time.monotonic() + timeout_s
    while True:
        waiting = ctypes.c_uint32()
        if not _kernel32().PeekNamedPipe(_handle_of(fd), None, 0, None, ctypes.byref(waiting), None):
            return True  # ended (ERROR_BROKEN_PIPE), or no pipe: a read says which, and does not wait
        if waiting.value:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_S)


def spawn_detached(argv: Sequence[str], *, env: Mapping[str, str], inherit: Sequence[int]) -> Any:
    """A program runs without console, window or streams, and out of our job where that lets it go; gives a `Popen`.

    A job that refuses (of some terminals, of CI) keeps it: then the process can tell by itself that it is in one.
    `inherit`: descriptors whose handles it gets, each under its `handle_number`.
    """
    if sys.platform != "win32":
        raise OSError("creation flags are of Windows")
    import subprocess

    handles = [handle_number(fd) for fd in inherit]
    given: Any = {
        "env": dict(env),
        "startupinfo": subprocess.STARTUPINFO(lpAttributeList={"handle_list": handles}),
        **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL),
    }
    alone = DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP
    for handle in handles:
        os.set_handle_inheritable(handle, True)
    try:
        return subprocess.Popen(list(argv), creationflags=alone | CREATE_BREAKAWAY_FROM_JOB, **given)
    except PermissionError:  # ERROR_ACCESS_DENIED, 5
        return subprocess.Popen(list(argv), creationflags=alone, **given)
    finally:
        for handle in handles:
            os.set_handle_inheritable(handle, False)


def handle_number(fd: int) -> int:
    """The number under which a process that inherits this descriptor's handle finds it."""
    return int(_handle_of(fd).value)


def descriptor_of(handle: int) -> int:
    """A descriptor, for writing, of an inherited handle of that number; none of this process's children inherits it."""
    if sys.platform != "win32":
        raise OSError("handles are of Windows")
    import msvcrt

    os.set_handle_inheritable(handle, False)
    return msvcrt.open_osfhandle(handle, os.O_WRONLY | os.O_NOINHERIT | os.O_BINARY)


def interpreter() -> str:
    """The interpreter itself: a venv's `python.exe` starts it as a child in a job that ends with it."""
    return os.path.abspath(getattr(sys, "_base_executable", "") or sys.executable)


def find_program(name: str, path: str) -> str | None:
    """The absolute path of an `.exe` of that name on a PATH; never of a batch file, whose arguments cmd.exe reads."""
    names = [name] if name.lower().endswith(".exe") else [name + ".exe"]
    folders = [""] if os.path.dirname(name) else path.split(os.pathsep)
    for candidate in (os.path.join(folder, name) for folder in folders for name in names):
        if os.path.isabs(candidate) and os.path.isfile(candidate):  # a relative folder would be one of the tree
            return os.path.abspath(candidate)
    return None


def with_system(env: Mapping[str, str]) -> dict[str, str]:
    """The environment with SYSTEMROOT, without which a process of Windows has neither sockets nor random numbers."""
    root = os.environ.get("SYSTEMROOT")
    return dict(env) if root is None else {"SYSTEMROOT": root, **env}


def system_tar() -> str:
    """The path of bsdtar, a part of Windows since 2018: a GNU tar, as Git for Windows has it, takes `C:` for a host."""
    return os.path.join(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "tar.exe")


def _lock_region(fd: int, how: int, byte: int, high: int) -> bool:
    import ctypes

    where = _region(byte, high)
    # What this handle has locked already would stand in its own way.
    if not _kernel32().UnlockFileEx(_handle_of(fd), 0, 1, 0, ctypes.byref(where)):
        _raise_unless(_NOT_LOCKED)
    if _kernel32().LockFileEx(_handle_of(fd), how, 0, 1, 0, ctypes.byref(where)):
        return True
    _raise_unless(_LOCK_VIOLATION)
    return False


def _raise_unless(expected: int) -> None:
    import ctypes

    if sys.platform == "win32":
        number = ctypes.get_last_error()
        if number != expected:
            raise ctypes.WinError(number)


def _region(byte: int, high: int) -> Any:
    """The OVERLAPPED (minwinbase.h) that names one byte."""
    import ctypes

    class Overlapped(ctypes.Structure):
        _fields_ = (
            ("internal", ctypes.c_size_t),
            ("internal_high", ctypes.c_size_t),
            ("offset", ctypes.c_uint32),
            ("offset_high", ctypes.c_uint32),
            ("event", ctypes.c_void_p),
        )

    return Overlapped(offset=byte, offset_high=high)


def _handle_of(fd: int) -> Any:
    if sys.platform != "win32":
        raise OSError("handles are of Windows")
    import ctypes
    import msvcrt

    return ctypes.c_void_p(msvcrt.get_osfhandle(fd))


def _kernel32() -> Any:
    """The functions with the types without which a handle would be cut off at 32 bits."""
    global _loaded  # noqa: PLW0603 - loaded at the first use, and only on Windows
    if sys.platform != "win32":
        raise OSError("kernel32 is of Windows")
    if _loaded is None:
        import ctypes

        dword, pointer = ctypes.c_uint32, ctypes.c_void_p
        kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel32.LockFileEx.argtypes = (pointer, dword, dword, dword, dword, pointer)
        kernel32.UnlockFileEx.argtypes = (pointer, dword, dword, dword, pointer)
        kernel32.CreateFileW.argtypes = (ctypes.c_wchar_p, dword, dword, pointer, dword, dword, pointer)
        kernel32.CreateFileW.restype = pointer
        kernel32.PeekNamedPipe.argtypes = (pointer, pointer, dword, pointer, pointer, pointer)
        _loaded = kernel32
    return _loaded
