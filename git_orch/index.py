"""The private index of a worktree: a copy of the user's, kept between snapshots, so that what was hashed once is not
hashed again. `index.lock` of the user's repository is never taken.

In `<git common dir>/orch/worktrees/<name>/`: `index`; `seed`, the identity of the user's index that it was copied from;
`extras`, the untracked paths that were let in (NUL-separated); `last`, the tree-id that it stands for; `lock`.
"""

from __future__ import annotations

import fcntl
import os

from git_orch import atomic
from git_orch.key import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from git_orch.layout import Layout

_FILES = ("index", "index.lock", "seed", "extras", "last", "lock")


def folder(layout: Layout) -> str:
    """The folder of a worktree's own data, the same for all that look at this worktree."""
    return os.path.join(layout.durable, "worktrees", digest(layout.git_dir)[:16])


class PrivateIndex:
    """A context in which nobody else uses the same private index.

    Where another snapshot of the same worktree is under way, this one works on a copy of its own that goes at the end.
    """

    def __init__(self, layout: Layout) -> None:
        self._real = layout.index
        kept = folder(layout)
        os.makedirs(kept, mode=0o700, exist_ok=True)
        self._lock_fd = os.open(os.path.join(kept, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._own = False
            self.folder = kept
        except OSError:
            self._own = True
            self.folder = os.path.join(kept, f"{os.getpid()}-{os.urandom(4).hex()}")
            os.mkdir(self.folder, 0o700)
        self.extras: set[bytes] = set()
        self.last = ""

    @property
    def path(self) -> str:
        """The index file that git is given."""
        return os.path.join(self.folder, "index")

    def __enter__(self) -> PrivateIndex:
        self._remove("index.lock")  # of a snapshot that was killed: the lock is ours, so nobody is writing
        if self._seed() != (atomic.read(os.path.join(self.folder, "seed")) or b"").decode("ascii", "replace"):
            self.reseed()
        else:
            self.extras = set((atomic.read(os.path.join(self.folder, "extras")) or b"").split(b"\0")) - {b""}
            self.last = (atomic.read(os.path.join(self.folder, "last")) or b"").decode("ascii", "replace")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._own:
            for name in _FILES:
                self._remove(name)
            os.rmdir(self.folder)
        elif kind is not None:
            self._remove("seed")  # whatever went wrong, the next snapshot starts from the user's index
        os.close(self._lock_fd)

    def reseed(self) -> None:
        """The private index is the user's of this moment, with nothing added."""
        self.extras, self.last = set(), ""
        for name in ("index.lock", "seed", "extras", "last"):
            self._remove(name)
        seed = self._seed()
        if seed == "none":
            self._remove("index")
        else:
            status = os.stat(self._real)
            with open(self._real, "rb") as real:
                atomic.write(self.path, real.read())
            # git trusts an entry's stat data only where it is older than the index file: a later time here would make
            # it believe a file that was edited in the same instant in which the user's index was written.
            os.utime(self.path, ns=(status.st_atime_ns, status.st_mtime_ns))
        atomic.write(os.path.join(self.folder, "seed"), seed.encode("ascii"))

    def remember(self, tree_id: str) -> None:
        """The index as it is now stands for that tree."""
        if tree_id == self.last:
            return
        atomic.write(os.path.join(self.folder, "extras"), b"\0".join(sorted(self.extras)))
        atomic.write(os.path.join(self.folder, "last"), tree_id.encode("ascii"))
        self.last = tree_id

    def _seed(self) -> str:
        try:
            real = os.stat(self._real)
        except FileNotFoundError:
            return "none"
        return f"{real.st_dev}:{real.st_ino}:{real.st_size}:{real.st_mtime_ns}:{real.st_ctime_ns}"

    def _remove(self, name: str) -> None:
        try:
            os.unlink(os.path.join(self.folder, name))
        except FileNotFoundError:
            return
