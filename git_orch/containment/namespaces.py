"""Tier 1: a PID namespace whose first process is the guardian, and mounts that the job cannot undo.

The guardian stays among the mounts of the supervisor; only the job goes on into a mount namespace, with a /proc that
shows its own processes alone. The guardian keeps capabilities that the job gives up, which is also what keeps the job
out of /proc/1/root (ptrace(2): they would have to be a subset).
"""

from __future__ import annotations

import errno
import os

from git_orch.containment import Denied, View, linux, mounts

DROPPED = (
    linux.CAP_SYS_ADMIN,
    linux.CAP_SYS_PTRACE,
    linux.CAP_SYS_RAWIO,
    linux.CAP_SYS_MODULE,
    linux.CAP_SYS_CHROOT,
    linux.CAP_MKNOD,
    linux.CAP_DAC_READ_SEARCH,  # open_by_handle_at would find the checkout through any other mount of its disk
)
UNSHARE_ATTEMPTS = 3


def separate() -> None:
    """The next child of this process is PID 1 of a new PID namespace.

    Root needs no user namespace for it, and in one with a map of itself alone could not write the files of others. An
    ordinary user gets one in which nothing but the own user and group is named.

    Raises:
        Denied: this machine does not allow it.
    """
    uid, gid = os.geteuid(), os.getegid()
    try:
        _unshare(linux.CLONE_NEWPID | (linux.CLONE_NEWUSER if uid else 0))
    except OSError as error:
        raise Denied(_no_namespace(error)) from error
    if uid:
        try:
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{uid} {uid} 1")
            _write("/proc/self/gid_map", f"{gid} {gid} 1")
        except OSError as error:
            raise Denied(_no_capabilities(error, "user namespace")) from error


def shut_in(view: View | None, tree: str) -> None:
    """This process, about to become the job, sees its own mounts and /proc, and cannot change the mounts back.

    Its working directory is the tree as it is seen now. Must run in a child of PID 1.

    Raises:
        Denied: a mount failed; nothing weaker is tried.
    """
    try:
        linux.unshare(linux.CLONE_NEWNS)
        linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    except OSError as error:
        raise Denied(_no_capabilities(error, "mount namespace")) from error
    try:
        linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    except OSError as error:
        raise Denied(_no_proc(error)) from error
    if view:
        mounts.apply(view, tree)
    os.chdir(tree)
    _drop_privileges()


def _drop_privileges() -> None:
    """An ordinary user keeps no capability of the namespace; root loses those that would lead out of the mounts."""
    for capability in DROPPED:
        linux.drop_from_bounding_set(capability)
    kept = 0 if os.geteuid() else ~sum(1 << capability for capability in DROPPED)
    linux.restrict_capabilities(kept & (1 << 64) - 1)
    linux.no_new_privileges()


def _unshare(flags: int) -> None:
    """Tried again on EINVAL, which the kernel gives a single-threaded process at times (lkml 2015/7/28/833, bazel)."""
    for _ in range(UNSHARE_ATTEMPTS - 1):
        try:
            return linux.unshare(flags)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
    return linux.unshare(flags)


def _no_namespace(error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EUSERS:
            return "no more namespaces may be made here (user.max_user_namespaces, user.max_pid_namespaces)"
        case errno.EPERM | errno.EACCES:
            return "this system or container does not let this user make namespaces"
        case errno.ENOSYS | errno.EINVAL:
            return "this kernel has no user or PID namespaces"
    return f"no namespace: {error.strerror}"


def _no_capabilities(error: OSError, what: str) -> str:
    if error.errno in (errno.EPERM, errno.EACCES):
        return f"{what}: namespaces have no rights here{_apparmor()}"
    return f"{what}: {error.strerror}"


def _no_proc(error: OSError) -> str:
    if error.errno in (errno.EPERM, errno.EACCES):
        return f"/proc cannot be mounted: parts of it are masked, as in a container{_apparmor()}"
    return f"/proc cannot be mounted: {error.strerror}"


def _apparmor() -> str:
    """A hint where Ubuntu 23.10 or later takes the capabilities of unprivileged user namespaces away."""
    name = "kernel.apparmor_restrict_unprivileged_userns"
    try:
        with open("/proc/sys/" + name.replace(".", "/"), "rb") as file:
            return f" ({name}=1)" if file.read(1) == b"1" else ""
    except OSError:
        return ""


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
