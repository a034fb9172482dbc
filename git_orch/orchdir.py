"""`.orch`, the folder of live things: made whole, known again by its instance, refused where it is somebody else's.

It lies where a clone, an archive or another tool can put something as well, so nothing is written before it is known to
be ours: a plain folder of this user's, with an instance, that git does not track. The instance is also noted beside
git's own files, where no clone reaches: a folder that bears it was made here.
"""

from __future__ import annotations

import errno
import os
import time
from _stat import S_ISDIR, S_ISLNK

from git_orch import atomic, system
from git_orch.errors import EnvironmentProblem, ForeignDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from git_orch.layout import Layout

FOLDERS = ("pending", "inbox")
_FILES = (".gitignore", "instance")
_NAMES = frozenset((*FOLDERS, *_FILES))
_HEX = frozenset("0123456789abcdef")
_INSTANCE_DIGITS = 16
_IGNORE_ALL = b"*\n"
_STALE_S = 3600.0


def establish(layout: Layout, env: Mapping[str, str]) -> str:
    """`.orch` is there, whole and ours; gives its instance. Of many that make it at once, one wins.

    Raises:
        ForeignDirectory: it is something else, or git tracks it; nothing was written.
        EnvironmentProblem: it cannot be written.
    """
    try:
        return _establish(layout, env)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {layout.live}: {error.strerror}", "see who owns it") from error


def instance_of(live: str) -> str:
    """The instance of an `.orch` that may be ours, "" where there is none, or only a part of one.

    Raises:
        ForeignDirectory: it is something else.
    """
    try:
        status = os.lstat(live)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    if not S_ISDIR(status.st_mode):
        raise foreign(live, "it is a symbolic link" if S_ISLNK(status.st_mode) else "it is a file")
    if not _is_ours(status):
        raise foreign(live, f"it belongs to user {status.st_uid}")
    instance = _read_instance(os.path.join(live, "instance"))
    names = os.listdir(live)
    if not instance and not _NAMES.issuperset(names):
        raise foreign(live, f"it holds {_shown(live, names)}")
    for name in FOLDERS:
        if name in names:
            _check_inner(live, name)
    return instance


def make(live: str, instance: str) -> bool:
    """`.orch` is there, built under another name and renamed, so that nobody sees half of it; False where one was.

    The folder that it lies in is never made: where that is gone, so is the repository.
    """
    scratch = f"{live}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    os.mkdir(scratch, 0o700)
    try:
        _fill(scratch, instance)
        os.rename(scratch, live)
    except OSError as error:
        _remove_scratch(scratch)
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            return False
        raise
    return True


def mend(live: str, instance: str) -> str:
    """An `.orch` of ours that was taken away, or a part of it, is whole; gives its instance: that of whoever was first.

    `git clean -fdx` takes file by file, and what is written at the same moment stays behind alone.

    Raises:
        ForeignDirectory: something else lies there; nothing was written.
        OSError: it cannot be written.
    """
    if not instance_of(live) and not make(live, instance):
        _fill(live, instance)
    _complete_folder(live)
    return instance_of(live)


def sweep_scratch(live: str) -> None:
    """What a process that was killed left half-made beside `.orch` is gone, once it is an hour old."""
    folder, name = os.path.split(live)
    for other in os.listdir(folder):
        if other.startswith(name + ".") and other.endswith(".tmp"):
            path = os.path.join(folder, other)
            try:
                age_s = time.time() - os.lstat(path).st_mtime
            except FileNotFoundError:
                continue
            if age_s > _STALE_S:
                _remove_scratch(path)


def foreign(live: str, why: str) -> ForeignDirectory:
    """The refusal of an `.orch` that is not ours."""
    is_default = os.path.basename(live) == ".orch"
    name = ".orch" if is_default else live
    slash = "/" if os.path.isdir(live) and not os.path.islink(live) else ""
    hint = "git config orch.dir .git-orch" if is_default else f"move {live} away"
    return ForeignDirectory(f"{name}{slash} exists and is not ours ({why}).", hint)


def _establish(layout: Layout, env: Mapping[str, str]) -> str:
    instance = instance_of(layout.live)
    known_path = os.path.join(layout.durable, "instance")
    known = _read_instance(known_path)
    if not instance or instance != known:
        _refuse_tracked(layout, env)
    if not instance:
        os.makedirs(layout.durable, mode=0o755, exist_ok=True)
        instance = _begin(layout.live, known)
    _complete_folder(layout.live)
    if instance != known:
        atomic.write(known_path, instance.encode("ascii") + b"\n")
    return instance


def _begin(live: str, known: str) -> str:
    """`.orch` was missing, or lacks its instance: then it is ours only if we had one here, or nothing is in it."""
    if make(live, known or os.urandom(_INSTANCE_DIGITS // 2).hex()):
        return instance_of(live)
    instance = instance_of(live)
    if instance:  # somebody was faster
        return instance
    if not known:
        raise foreign(live, f"it holds {_shown(live, os.listdir(live))}")
    return mend(live, known)


def _refuse_tracked(layout: Layout, env: Mapping[str, str]) -> None:
    """A clone may bring an `.orch` of its own. Inside git's directory none can be."""
    work_tree, name = os.path.split(layout.live)
    if work_tree != os.path.dirname(layout.common_dir):
        return
    git = layout.git(env).replace(cwd=work_tree, git_dir=layout.common_dir, work_tree=work_tree)
    if git.run("ls-files", "-z", "--", name):
        raise foreign(layout.live, "git tracks it")


def _fill(folder: str, instance: str) -> None:
    """The folder holds all that an `.orch` does; what is there already stays."""
    # First of all what keeps `git status` from showing the rest.
    _write_missing(os.path.join(folder, ".gitignore"), _IGNORE_ALL)
    for name in FOLDERS:
        os.makedirs(os.path.join(folder, name), mode=0o700, exist_ok=True)
    _write_missing(os.path.join(folder, "instance"), instance.encode("ascii") + b"\n")


def _write_missing(path: str, data: bytes) -> None:
    if not os.path.lexists(path):
        atomic.write(path, data, mode=0o644)


def _remove_scratch(scratch: str) -> None:
    """The half-made folder is gone, unless something is in it that we do not make."""
    for name in _FILES:
        _try(os.unlink, os.path.join(scratch, name))
    for path in (*(os.path.join(scratch, name) for name in FOLDERS), scratch):
        _try(os.rmdir, path)


def _try(remove: Callable[[str], None], path: str) -> None:
    try:
        remove(path)
    except OSError:
        return


def _complete_folder(live: str) -> None:
    """What an `.orch` that has its instance may lack is there again."""
    _write_missing(os.path.join(live, ".gitignore"), _IGNORE_ALL)
    for name in FOLDERS:
        _make_private(live, name)


def _make_private(live: str, name: str) -> None:
    """The folder in `.orch` is there, this user's own, and closed to all others.

    `git stash pop` brings it back with the modes that a umask gives.
    """
    path = os.path.join(live, name)
    os.makedirs(path, mode=0o700, exist_ok=True)
    if _check_inner(live, name).st_mode & 0o077:
        os.chmod(path, 0o700)


def _check_inner(live: str, name: str) -> os.stat_result:
    status = os.lstat(os.path.join(live, name))
    if not S_ISDIR(status.st_mode) or not _is_ours(status):
        raise foreign(live, f"its {name} is no folder of yours")
    return status


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid == system.uid()


def _read_instance(path: str) -> str:
    raw = (atomic.read(path, limit=64) or b"").strip().decode("latin-1")
    return raw if len(raw) == _INSTANCE_DIGITS and _HEX.issuperset(raw) else ""


def _shown(live: str, names: list[str]) -> str:
    """Two of the names that are not ours, folders first and marked as such."""
    strange = sorted(name for name in names if name not in _NAMES) or sorted(names)
    folders = [name for name in strange if os.path.isdir(os.path.join(live, name))]
    ordered = [f"{name}/" for name in folders] + [name for name in strange if name not in folders]
    return " and ".join(ordered[:2]) or "nothing"
