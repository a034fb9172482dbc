"""Where trees lie: `$TEMP/git-orch-<uid>/<run-id>/<reviewer>/`, marked as ours and locked while they live."""

from __future__ import annotations

import errno
import os
from _stat import S_ISDIR

from git_orch import atomic, locks, system
from git_orch import key as keys
from git_orch.errors import EnvironmentProblem
from git_orch.parents import enclosing_repository, foreign_configuration
from git_orch.registry import is_run_id
from git_orch.removal import remove_path
from git_orch.system import at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MARKER = ".marker"
NEW = ".new-"
_LEAST_FREE_BYTES = 1 << 20

# The locks of runs that this process holds, by the path of the run's folder. A temp cleaner (systemd-tmpfiles) passes
# over a folder that is locked; whoever made a folder knows it again by the descriptor, even where its marker is gone.
_held: dict[str, int] = {}


class Place:
    """The folder of one reviewer of a run. `made` is what `materialize` remembers of the tree for `inspect`."""

    def __init__(self, run_id: str, reviewer: str, root: str, key: bytes) -> None:
        self.run_id = run_id
        self.reviewer = reviewer
        self.root = root
        self.key = key
        self.made: Made | None = None

    @property
    def run_folder(self) -> str:
        """The folder of the whole run, which holds the marker."""
        return os.path.dirname(self.root)

    @property
    def temp_root(self) -> str:
        """The root that the place lies in."""
        return os.path.dirname(self.run_folder)

    @property
    def tree(self) -> str:
        """The folder that becomes the tree."""
        return os.path.join(self.root, "tree")

    @property
    def request(self) -> str:
        """The folder of what the reviewer is handed."""
        return os.path.join(self.root, "request")

    @property
    def index(self) -> str:
        """The file that records what lay on the disk when the tree was made, as git's index."""
        return os.path.join(self.root, "index")

    @property
    def marker(self) -> str:
        """The file that proves that the run's folder is ours."""
        return os.path.join(self.run_folder, MARKER)


class Made:
    """The record of a tree that was made: the digest of its index file, and that file's time of writing in ns."""

    def __init__(self, index_digest: str, written_ns: int) -> None:
        self.index_digest = index_digest
        self.written_ns = written_ns


def temp_root(env: Mapping[str, str], *, forbidden: Iterable[str] = ()) -> str:
    """The folder for all trees of this user, made where it was missing: TMPDIR (else /tmp) + `git-orch-<uid>`.

    Where tools would obey a configuration above it, XDG_RUNTIME_DIR or the cache folder is taken instead, if that is
    any better.

    Args:
        forbidden: folders that it must not lie in, besides every repository.

    Raises:
        EnvironmentProblem: it lies in a repository, cannot be written, is full, or is another user's.
    """
    forbidden = tuple(os.path.realpath(path) for path in forbidden)
    first = _open_root(env.get("TMPDIR") or system.temp_folder(env), forbidden)
    home = env.get("HOME", "")
    if foreign_configuration(first, home=home) is None:
        return first
    for folder in (env.get("XDG_RUNTIME_DIR", ""), _cache(env)):
        try:
            other = _open_root(folder, forbidden)
        except EnvironmentProblem:
            continue
        if foreign_configuration(other, home=home) is None:
            return other
    return first


def check_space(root: str, needed_bytes: int) -> None:
    """There is room for that many bytes.

    Raises:
        EnvironmentProblem: there is not; the message tells both numbers.
    """
    free = free_bytes(root)
    if free < needed_bytes:
        raise EnvironmentProblem(
            f"not enough room in {root}: {_mib(needed_bytes)} needed, {_mib(free)} free",
            "set TMPDIR to a folder on another disk",
        )


def free_bytes(root: str) -> int:
    """What this user may still write where the folder lies."""
    status = at.statvfs(root)
    return status.f_bavail * status.f_frsize


def make_place(root: str, run_id: str, reviewer: str, key: bytes) -> Place:
    """The reviewer's folder is there, marked as ours, and its run's folder is locked by this process.

    Raises:
        EnvironmentProblem: it cannot be written.
    """
    run_folder = os.path.join(root, run_id)
    place = Place(run_id, reviewer, os.path.join(run_folder, reviewer), key)
    try:
        if run_folder not in _held:
            _make_run_folder(root, run_id, key)
        for folder in (place.root, place.request):
            os.mkdir(folder, 0o700)
    except OSError as error:
        raise EnvironmentProblem(
            f"cannot make {place.root}: {error.strerror}", "set TMPDIR to a folder on another disk"
        ) from error
    return place


def held(run_folder: str) -> int:
    """The descriptor by which this process holds the lock of a run's folder, or -1."""
    return _held.get(run_folder, -1)


def let_go(run_folder: str) -> None:
    """This process does not hold the lock of the run's folder any more."""
    fd = _held.pop(run_folder, -1)
    if fd >= 0:
        os.close(fd)


def is_marked(run_fd: int, root: str, run_id: str, key: bytes) -> bool:
    """Whether the folder carries our marker, made for this very folder under this name."""
    try:
        fd = at.open(MARKER, os.O_RDONLY | system.PLAIN, dir_fd=run_fd)
    except OSError:
        return False
    try:
        given = os.read(fd, 64).decode("latin-1").strip()
    except OSError:
        return False
    finally:
        os.close(fd)
    return keys.same(given, _mark(root, run_id, os.fstat(run_fd).st_ino, key))


def _make_run_folder(root: str, run_id: str, key: bytes) -> None:
    """The run's folder is there: marked and locked under another name first, so that it is never seen without."""
    if not is_run_id(run_id):
        raise OSError(errno.EINVAL, f"{run_id} is no run-id")
    scratch = os.path.join(root, f"{NEW}{run_id}-{os.urandom(4).hex()}")
    os.mkdir(scratch, 0o700)
    fd = at.open(scratch, system.FOLDER)
    try:
        locks.shared(fd)  # nobody else knows the folder yet
        mark = _mark(root, run_id, os.fstat(fd).st_ino, key)
        atomic.write(os.path.join(scratch, MARKER), mark.encode("ascii") + b"\n")
        os.rename(scratch, os.path.join(root, run_id))
    except BaseException:
        os.close(fd)
        remove_path(scratch)
        raise
    _held[os.path.join(root, run_id)] = locks.pinned(fd)


def _mark(root: str, run_id: str, inode: int, key: bytes) -> str:
    return keys.mac(key, "place", os.path.realpath(root), run_id, str(inode))


def _open_root(folder: str, forbidden: tuple[str, ...]) -> str:
    """`git-orch-<uid>` in the folder, made where it was missing, or why it is refused."""
    if not os.path.isabs(folder):
        raise EnvironmentProblem(f"TMPDIR is not an absolute path: {folder or 'empty'}", "export TMPDIR=/tmp")
    folder = os.path.realpath(folder)
    inside = enclosing_repository(folder) or next((path for path in forbidden if _is_within(folder, path)), None)
    if inside is not None:
        raise EnvironmentProblem(
            f"the temporary folder {folder} lies inside the repository {inside}", "set TMPDIR to a folder outside of it"
        )
    root = os.path.join(folder, f"git-orch-{system.uid()}")
    try:
        _make_private(root)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            check_space(folder, _LEAST_FREE_BYTES)
        raise EnvironmentProblem(
            f"cannot write to the temporary folder {folder}: {error.strerror}", "set TMPDIR to a folder of yours"
        ) from error
    check_space(root, _LEAST_FREE_BYTES)
    return root


def _make_private(root: str) -> None:
    """The folder is there, this user's own and closed to all others; or OSError says what it is instead."""
    try:
        os.mkdir(root, 0o700)
    except FileExistsError:
        pass
    status = os.lstat(root)
    if not S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, f"{os.path.basename(root)} in it is no folder")
    if not system.is_private(status, root):
        raise PermissionError(errno.EPERM, f"{os.path.basename(root)} in it is not yours alone (mode 0700)")
    if not os.access(root, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "read-only")


def _cache(env: Mapping[str, str]) -> str:
    home = env.get("HOME", "")
    return env.get("XDG_CACHE_HOME") or (os.path.join(home, ".cache") if home else "")


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _mib(size_bytes: int) -> str:
    return f"{max(size_bytes, 0) / (1 << 20):.1f} MiB"
