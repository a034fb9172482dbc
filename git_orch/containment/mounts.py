"""What a job in tier 1 sees: its `View`, made in the mount namespace that it has for itself.

Copies of the places that must stay visible are taken first (`open_tree`), while nothing is covered yet, and attached
later, so that what covers them cannot lose them. Where a mount fails the caller must not go on without it.
"""

from __future__ import annotations

import errno
import os

from git_orch.containment import Denied, View, linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

PLAIN = linux.MS_NOSUID | linux.MS_NODEV
SHUT = PLAIN | linux.MS_NOEXEC | linux.MS_RDONLY
FOLDER, LINK, KIND = 0o040000, 0o120000, 0o170000


def apply(view: View, tree: str) -> None:
    """This mount namespace shows the view; the order is that of `View`.

    Raises:
        Denied: a mount failed, or a place that has to be there is missing; says which.
    """
    if view.overlay:
        overlay(*view.overlay)
    _make_places(view, tree)
    kept = [_Copy("keep", path) for path in view.keep]
    writable = [_Copy("writable", path) for path in view.writable if os.path.lexists(path)]
    provided = [(place, _Copy("provide", source)) for source, place in view.provide]
    for path in view.read_only:
        with _Naming("read-only", path):
            os.lstat(path)
    for path in view.empty:
        with _Naming("empty", path):
            linux.mount("tmpfs", path, "tmpfs", PLAIN, "mode=0700")
    for copy in kept:
        copy.put_back()
    for path in view.read_only:
        if os.path.lexists(path):  # else it lay below an emptied folder and is out of reach already
            _Copy("read-only", path).make_read_only().put_back()
    for copy in writable:
        copy.put_back()
    for place, copy in provided:
        with _Naming("provide", place):
            copy.make_read_only().attach(_open_place(tree, place))
    for path in view.hidden:
        if os.path.exists(path):
            _hide(path)


def overlay(tree: str, upper: str, work: str) -> None:
    """What is written to tree goes to upper; tree itself is never changed.

    upper and work are new ones, on one file system: a volatile overlay's cannot be mounted again (overlayfs.rst).

    The three are named by descriptor, so that no character in a path needs an escape. `volatile` spares the sync of
    upper's whole file system at the end: upper is thrown away.
    """
    with _Naming("overlay", tree):
        descriptors = [os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for path in (tree, upper, work)]
        lower, upper, work = (f"/proc/self/fd/{fd}" for fd in descriptors)
        options = f"lowerdir={lower},upperdir={upper},workdir={work},volatile"
        linux.mount("overlay", tree, "overlay", PLAIN, options + (",userxattr" if _in_user_namespace() else ""))
        for fd in descriptors:
            os.close(fd)


class _Naming:
    """A kernel error in the block comes out as Denied, which names the step and the path."""

    def __init__(self, step: str, path: str) -> None:
        self._step = step
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, OSError):
            where = self._path if error.filename in (None, "", self._path) else f"{self._path} ({error.filename})"
            raise Denied(f"{self._step} {where}: {error.strerror}") from error


class _Copy:
    """A copy of the mounts at and below a path, which is put back once that path has been covered."""

    def __init__(self, step: str, path: str) -> None:
        self._step = step
        self._path = path
        with _Naming(step, path):
            self._fd = linux.clone_mount(path)

    def make_read_only(self) -> _Copy:
        with _Naming(self._step, self._path):
            linux.make_read_only(self._fd, self._path)
        return self

    def put_back(self) -> None:
        """The copy is seen at its own path, which is made where it is missing."""
        with _Naming(self._step, self._path):
            if not os.path.lexists(self._path):
                os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
                _make(self._path, like=os.fstat(self._fd).st_mode)
            self.attach(os.open(self._path, os.O_PATH | os.O_CLOEXEC))

    def attach(self, place_fd: int) -> None:
        """The copy is seen at the place; both descriptors are closed."""
        linux.attach_mount(self._fd, place_fd, self._path)
        os.close(place_fd)
        os.close(self._fd)


def _make_places(view: View, tree: str) -> None:
    """Every place for a provided path is there; where it was not, an empty folder or file is."""
    for source, place in view.provide:
        with _Naming("provide", place):
            os.close(_open_place(tree, place, like=os.stat(source).st_mode))


def _open_place(tree: str, place: str, like: int = 0) -> int:
    """An O_PATH descriptor of a place inside the tree; `like` is the mode of what goes there, if it may be made.

    No symbolic link is followed: links belong to what is reviewed, and a place made through one would be made in
    somebody's home.
    """
    *folders, name = place.split("/")
    if any(part in ("", ".", "..") for part in (*folders, name)):
        raise OSError(errno.EINVAL, "not a path below the tree", place)
    here = os.open(tree, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in folders:
        here = _step_down(here, part, like and FOLDER)
    return _step_down(here, name, like)


def _step_down(folder_fd: int, name: str, like: int) -> int:
    """A descriptor of what has that name in the folder, whose own descriptor is closed."""
    try:
        if like:
            try:
                _make(name, like=like, dir_fd=folder_fd)
            except FileExistsError:
                pass
        below = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder_fd)
    finally:
        os.close(folder_fd)
    if os.fstat(below).st_mode & KIND == LINK:
        os.close(below)
        raise OSError(errno.ELOOP, "is a symbolic link", name)
    return below


def _make(path: str, *, like: int, dir_fd: int | None = None) -> None:
    if like & KIND == FOLDER:
        os.mkdir(path, 0o755, dir_fd=dir_fd)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644, dir_fd=dir_fd))


def _hide(path: str) -> None:
    with _Naming("hidden", path):
        if os.path.isdir(path):
            linux.mount("tmpfs", path, "tmpfs", SHUT, "mode=0500,size=4k")
        else:
            _Copy("hidden", "/dev/null").attach(os.open(path, os.O_PATH | os.O_CLOEXEC))


def _in_user_namespace() -> bool:
    """Whether this is not the first one, where overlays keep their marks in trusted.* attributes (overlayfs.rst)."""
    with open("/proc/self/uid_map", "rb") as file:
        return file.read().split() != [b"0", b"0", b"4294967295"]
