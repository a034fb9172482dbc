"""Windows' own calls, for `by_path`, `locks`, `proc` and `launch`. Written, not run.

Files that may be removed while they are open, folders, locks, pipes, and a process that leaves the job of its parent.
Each loads what it needs when it is called, so that the module can be imported everywhere else.

The lock of a *file* is two bytes: it is free where both can be locked. A launcher gives up the second one for the
supervisor to take, and keeps the first until the supervisor has it, so there is never an instant without a holder.
The lock of a *folder* is a handle that does not share its deletion: while it is open, nobody renames or removes it.
"""

from __future__ import annotations

import errno
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# LockFileEx keeps others from reading what it locks, so these bytes lie where no file of ours has any.
_HIGH_OF_LOCK, _HIGH_OF_NAMES = 1 << 30, 1 << 29  # the upper halves of their offsets
_LAUNCHERS, _SUPERVISORS = 0, 1  # the two bytes of a lock
_FAIL_IMMEDIATELY, _EXCLUSIVE = 1, 2
_SHARING_VIOLATION, _LOCK_VIOLATION, _NOT_LOCKED = 32, 33, 158
_LOOK_S = 0.01
# CreateFileW: the access, what others may do meanwhile, and that a link is opened itself; a folder needs the last one.
_READ, _READ_AND_WRITE, _DELETE, _TO_ASK = 0x80000000, 0x80000000 | 0x40000000, 0x10000, 0x80
_SHARE_ALL, _SHARE_CONTENT = 1 | 2 | 4, 1 | 2
_CREATE_NEW, _OPEN_EXISTING, _OPEN_ALWAYS = 1, 3, 4
_NOT_THROUGH_LINKS, _BACKUP_SEMANTICS = 0x00200000, 0x02000000
IS_FOLDER, IS_REPARSE_POINT = 0x10, 0x400  # FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT
_LONGEST_PATH = 32768
_PORTS = tuple(f"{kind}{number}" for kind in ("com", "lpt") for number in "0123456789\u00b9\u00b2\u00b3")
_DEVICES = frozenset(("con", "prn", "aux", "nul", "conin$", "conout$", *_PORTS))
_PREFETCH = r"SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters"
_FORBIDDEN_SIGNS = frozenset('<>:"|?*\\')

DETACHED_PROCESS = 0x8
CREATE_NEW_PROCESS_GROUP = 0x200
CREATE_BREAKAWAY_FROM_JOB = 0x01000000

_loaded: Any = None


def lock(fd: int, *, exclusive: bool, wait: bool) -> bool:
    """The file's lock is this process's; False where another has it. A lock that it had before is given up first.

    Of a folder: whether nobody holds it at this moment (see `pinned`).

    Raises:
        OSError: the file system keeps no locks.
    """
    if attributes_of(fd) & IS_FOLDER:
        return _is_free(fd)
    how = (_EXCLUSIVE if exclusive else 0) | (0 if wait else _FAIL_IMMEDIATELY)
    if not _lock_region(fd, how, _LAUNCHERS, _HIGH_OF_LOCK):
        return False
    if _lock_region(fd, how, _SUPERVISORS, _HIGH_OF_LOCK):
        return True
    _unlock_region(fd, _LAUNCHERS, _HIGH_OF_LOCK)
    return False


def let_take(fd: int) -> None:
    """The lock, which stays ours, can be taken over by the process that we start."""
    _unlock_region(fd, _SUPERVISORS, _HIGH_OF_LOCK)


def take_over(fd: int) -> bool:
    """The lock is this process's, whether or not the launcher that let it be taken still has its part of it."""
    return _lock_region(fd, _EXCLUSIVE | _FAIL_IMMEDIATELY, _SUPERVISORS, _HIGH_OF_LOCK)


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
    disposition = _CREATE_NEW if how & os.O_EXCL else _OPEN_ALWAYS if how & os.O_CREAT else _OPEN_EXISTING
    return _create_file(path, _READ_AND_WRITE, _SHARE_ALL, disposition, _NOT_THROUGH_LINKS, os.O_RDWR)


def open_file(path: str) -> int:
    """A descriptor of a plain file, to read; others may remove and rename it meanwhile.

    Raises:
        OSError: it is a link, a folder, or cannot be opened.
    """
    fd = _create_file(path, _READ, _SHARE_ALL, _OPEN_EXISTING, _NOT_THROUGH_LINKS, os.O_RDONLY)
    return _unless_linked(fd, path, folder=False)


def open_to_append(path: str) -> int:
    """A descriptor of a file, made where it was missing; whatever is written lands at its end, whoever else writes.

    Raises:
        OSError: it is a link, a folder, or cannot be opened.
    """
    append = 0x4 | 0x100000 | _TO_ASK  # FILE_APPEND_DATA without FILE_WRITE_DATA, SYNCHRONIZE
    fd = _create_file(path, append, _SHARE_ALL, _OPEN_ALWAYS, _NOT_THROUGH_LINKS, os.O_WRONLY | os.O_APPEND)
    return _unless_linked(fd, path, folder=False)


def open_folder(path: str, *, pin: bool = False) -> int:
    """A descriptor of a folder, for `path_of` and `os.fstat`. Where it pins, nobody renames or removes the folder.

    Raises:
        OSError: it is a link, a junction, no folder, or cannot be opened.
    """
    share = _SHARE_CONTENT if pin else _SHARE_ALL
    how = _NOT_THROUGH_LINKS | _BACKUP_SEMANTICS
    return _unless_linked(_create_file(path, _READ, share, _OPEN_EXISTING, how, os.O_RDONLY), path, folder=True)


def pinned(fd: int) -> int:
    """The folder of that descriptor is held by the one that is given in its place.

    Where that is refused (somebody is about to remove it) the same is given, and holds nothing.
    """
    try:
        holding = open_folder(path_of(fd), pin=True)
    except OSError:
        return fd
    os.close(fd)
    return holding


def path_of(fd: int) -> str:
    r"""Where the file or folder lies at this moment, as a path that begins `\\?\` and has no length limit.

    Raises:
        OSError: it was removed.
    """
    if sys.platform != "win32":
        raise OSError("GetFinalPathNameByHandle is of Windows")
    import ctypes

    room = ctypes.create_unicode_buffer(_LONGEST_PATH)
    length = _kernel32().GetFinalPathNameByHandleW(_handle_of(fd), room, _LONGEST_PATH, 0)
    if not 0 < length < _LONGEST_PATH:
        raise ctypes.WinError(ctypes.get_last_error())
    return room.value


def free_bytes(path: str) -> int:
    """What this user may still write where the folder lies; a quota counts.

    Raises:
        OSError: there is no such folder.
    """
    import ctypes

    free = ctypes.c_uint64()
    if not _kernel32().GetDiskFreeSpaceExW(path, ctypes.byref(free), None, None):
        _raise_unless(0)
    return free.value


def attributes_of(fd: int) -> int:
    """The FILE_ATTRIBUTE flags of what the descriptor is open on."""
    attributes: int = getattr(os.fstat(fd), "st_file_attributes", 0)
    return attributes


def is_in_profile(path: str, env: Mapping[str, str]) -> bool:
    """Whether it lies in the user's profile, which Windows closes to all but this user, the system, and administrators.

    Access lists are not read: what lies elsewhere is not believed to be closed.
    """
    profile = env.get("USERPROFILE", "")
    if not os.path.isabs(profile):
        return False
    whole, top = (os.path.normcase(os.path.realpath(place)).rstrip(os.sep) + os.sep for place in (path, profile))
    return whole.startswith(top) and whole != top


def is_name(name: str) -> bool:
    """Whether a file can have this name there, and only this: no device, no stream (`a:b`), no sign that is dropped.

    What git takes for `.git` by its short form (`git~1`) is none either, nor what is no UTF-8.
    """
    stem = name.partition(".")[0].rstrip(" ").casefold()
    if stem in _DEVICES or name.casefold() == "git~1" or name.endswith((".", " ")):
        return False
    is_text = not any("\udc80" <= sign <= "\udcff" for sign in name)
    return bool(name) and is_text and _FORBIDDEN_SIGNS.isdisjoint(name) and min(name) >= " "


def boot_id() -> str:
    """The number of this boot of the machine, "" where Windows counts none."""
    return _registered(_PREFETCH, "BootId")


def machine_id() -> str:
    """The id of this installation of Windows, "" where it has none."""
    return _registered(r"SOFTWARE\Microsoft\Cryptography", "MachineGuid")


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


def _create_file(path: str, access: int, share: int, disposition: int, flags: int, mode: int) -> int:
    if sys.platform != "win32":
        raise OSError("CreateFile is of Windows")
    import ctypes
    import msvcrt

    handle = _kernel32().CreateFileW(path, access, share, None, disposition, flags, None)
    if handle in (None, ctypes.c_void_p(-1).value):
        raise ctypes.WinError(ctypes.get_last_error())
    return msvcrt.open_osfhandle(handle, mode | os.O_NOINHERIT | os.O_BINARY)


def _unless_linked(fd: int, path: str, *, folder: bool) -> int:
    """The descriptor, where it is of what was asked for; else it is closed."""
    attributes = attributes_of(fd)
    if not attributes & IS_REPARSE_POINT and bool(attributes & IS_FOLDER) == folder:
        return fd
    os.close(fd)
    if attributes & IS_REPARSE_POINT:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if folder:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)


def _is_free(fd: int) -> bool:
    """Whether the folder could be renamed now. Another program's working folder counts as held too."""
    if sys.platform != "win32":
        raise OSError("folders are held like this on Windows")
    how = _NOT_THROUGH_LINKS | _BACKUP_SEMANTICS
    try:
        os.close(_create_file(path_of(fd), _DELETE | _TO_ASK, _SHARE_ALL, _OPEN_EXISTING, how, os.O_RDONLY))
    except OSError as error:
        if error.winerror != _SHARING_VIOLATION:
            raise
        return False
    return True


def _registered(where: str, name: str) -> str:
    """A value of the registry, of the whole machine."""
    if sys.platform != "win32":
        return ""
    import winreg

    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, where, 0, winreg.KEY_READ | winreg.KEY_WOW64_64KEY) as entry:
            return str(winreg.QueryValueEx(entry, name)[0])
    except OSError:
        return ""


def _unlock_region(fd: int, byte: int, high: int) -> None:
    import ctypes

    where = _region(byte, high)
    if not _kernel32().UnlockFileEx(_handle_of(fd), 0, 1, 0, ctypes.byref(where)):
        _raise_unless(_NOT_LOCKED)


def _lock_region(fd: int, how: int, byte: int, high: int) -> bool:
    import ctypes

    _unlock_region(fd, byte, high)  # what this handle has locked already would stand in its own way
    where = _region(byte, high)
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
        kernel32.GetFinalPathNameByHandleW.argtypes = (pointer, ctypes.c_wchar_p, dword, dword)
        kernel32.GetDiskFreeSpaceExW.argtypes = (ctypes.c_wchar_p, pointer, pointer, pointer)
        kernel32.PeekNamedPipe.argtypes = (pointer, pointer, dword, pointer, pointer, pointer)
        _loaded = kernel32
    return _loaded
