"""The kernel calls of Linux that Python has no name for: prctl, unshare, mount and its younger kin, capset.

ctypes is loaded at the first call. Every function raises OSError with the kernel's errno and the path it was about.
System call numbers from 424 on are the same on every architecture (syscalls(2)).
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REC, MS_PRIVATE = 1 << 14, 1 << 18

CAP_DAC_READ_SEARCH, CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_CHROOT = 2, 16, 17, 18
CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_MKNOD = 19, 21, 27

_PR_SET_NAME, _PR_CAPBSET_READ, _PR_CAPBSET_DROP = 15, 23, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 36, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4

_SYS_OPEN_TREE, _SYS_MOVE_MOUNT, _SYS_MOUNT_SETATTR = 428, 429, 442
_AT_FDCWD, _AT_RECURSIVE, _AT_EMPTY_PATH = -100, 0x8000, 0x1000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_F_EMPTY_PATH, _MOVE_MOUNT_T_EMPTY_PATH = 0x04, 0x40
_MOUNT_ATTR_RDONLY = 1

_CAPABILITY_VERSION_3 = 0x20080522

_loaded: Any = None


def subreaper() -> None:
    """What is orphaned below this process becomes its child. Not inherited by fork (PR_SET_CHILD_SUBREAPER)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_name(name: str) -> None:
    """`ps` shows this name, at most 15 bytes, for the process."""
    _checked("prctl", _libc().prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0))


def unshare(flags: int) -> None:
    """This process, or for CLONE_NEWPID its next child, is in namespaces of its own."""
    _checked("unshare", _libc().unshare(flags))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """A file system, or with an empty kind a change of propagation, is in place at target."""
    names = (os.fsencode(source), os.fsencode(target), kind.encode() or None)
    result = _libc().mount(*names, _long(flags), os.fsencode(options) or None)
    _checked("mount", result, target)


def umount(target: str) -> None:
    """Nothing is mounted at target any more."""
    _checked("umount", _libc().umount2(os.fsencode(target), 0), target)


def clone_mount(path: str) -> int:
    """A descriptor of a copy of the mounts at and below path, which are nowhere yet (open_tree)."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE
    return _syscall(_SYS_OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags, path=path)


def make_read_only(mount_fd: int, path: str) -> None:
    """A copy of mounts is read-only, with all below it.

    mount_setattr, since a remount changes the topmost mount alone and fails on those of a user namespace's owner.
    """
    attributes = b"".join(value.to_bytes(8, sys.byteorder) for value in (_MOUNT_ATTR_RDONLY, 0, 0, 0))
    flags = _AT_EMPTY_PATH | _AT_RECURSIVE
    _syscall(_SYS_MOUNT_SETATTR, mount_fd, b"", flags, attributes, _long(len(attributes)), path=path)


def attach_mount(mount_fd: int, target_fd: int, path: str) -> None:
    """A copy of mounts is seen at the place that target_fd (O_PATH) is open on; path is for the error."""
    flags = _MOVE_MOUNT_F_EMPTY_PATH | _MOVE_MOUNT_T_EMPTY_PATH
    _syscall(_SYS_MOVE_MOUNT, mount_fd, b"", target_fd, b"", flags, path=path)


def drop_from_bounding_set(capability: int) -> None:
    """No program that this process executes can have the capability."""
    if _prctl(_PR_CAPBSET_READ, capability):
        _prctl(_PR_CAPBSET_DROP, capability)


def restrict_capabilities(mask: int) -> None:
    """This process has no capability outside the mask, neither to use nor to pass on."""
    import ctypes

    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = _CAPABILITY_VERSION_3.to_bytes(4, sys.byteorder) + bytes(4)
    sets = ctypes.create_string_buffer(24)  # effective, permitted, inheritable; the low words, then the high ones
    _checked("capget", _libc().capget(header, sets))
    masks = [(mask >> shift & 0xFFFFFFFF) for shift in (0, 0, 0, 32, 32, 32)]
    words = [int.from_bytes(sets.raw[4 * i : 4 * i + 4], sys.byteorder) & masks[i] for i in range(6)]
    _checked("capset", _libc().capset(header, b"".join(word.to_bytes(4, sys.byteorder) for word in words)))


def no_new_privileges() -> None:
    """No exec of this process or its descendants can gain anything by set-user-ID or file capabilities."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _prctl(option: int, first: int) -> int:
    return _checked("prctl", _libc().prctl(option, _long(first), _long(0), _long(0), _long(0)))


def _syscall(number: int, *arguments: object, path: str) -> int:
    words = [_long(word) if isinstance(word, int) else word for word in arguments]
    names = {_SYS_OPEN_TREE: "open_tree", _SYS_MOVE_MOUNT: "move_mount", _SYS_MOUNT_SETATTR: "mount_setattr"}
    return _checked(names[number], _libc().syscall(_long(number), *words), path)


def _checked(name: str, result: int, path: str | None = None) -> int:
    if result == -1:
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}", path)
    return result


def _long(value: int) -> Any:
    import ctypes

    return ctypes.c_long(value)


def _libc() -> Any:
    global _loaded  # noqa: PLW0603 - loading it costs 4 ms, and most who import this never call
    if _loaded is None:
        import ctypes

        _loaded = ctypes.CDLL(None, use_errno=True)
    return _loaded
