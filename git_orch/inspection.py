"""After a review: is the tree still the one that was made, and is there anything beside it?

One walk of our own, by descriptors: no git, for a planted `.git` may name a program as its fsmonitor; no ignore rules,
for the tree brings them.

A file's content is hashed again unless nothing can have changed it: all that the kernel says of it is as it was
recorded, down to the nanosecond of its last change. Size and time of writing alone prove nothing, anyone can set those;
the time of the last change only the kernel sets. It is believed where (1) this process could not set the clock, nor
then a job of the same user, (2) the file system notes every write through a mapping, which tmpfs does not, and (3) the
file was not changed in the same tick in which it was recorded. Where any of that fails, all is hashed.
"""

from __future__ import annotations

import mmap
import os
from _blake2 import blake2b
from _stat import S_ISDIR, S_ISREG

from git_orch import atomic, dircache, system
from git_orch.cursor import Cursor
from git_orch.git import decode, encode
from git_orch.model import Record
from git_orch.system import FOLDER, at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from git_orch.dircache import Known
    from git_orch.place import Place
    from git_orch.store import Store

MOST_LITTERED = 1000
INDEX_LIMIT = 1 << 34
_CAP_SYS_TIME = 25
_TICK_NS = 50_000_000  # coarser than any kernel's tick (10 ms)
_COARSE_NS = 2_000_000_000  # file systems that keep whole seconds, or FAT's two
_CHUNK = 1 << 20


class Inspection(Record):
    """What differs from the tree that was made, as paths from its top.

    `tampered`: paths of the tree that are missing or have another type, exec bit or content. `littered`: paths that
    are not the tree's, folders ending in `/` and standing for all below them; at most 1,000 of them are named.
    `size_bytes` is what the files of the tree hold.
    """

    tampered: tuple[str, ...] = ()
    littered: tuple[str, ...] = ()
    size_bytes: int = 0

    @property
    def clean(self) -> bool:
        """Whether the tree is as it was made, and alone."""
        return not self.tampered and not self.littered


def inspect(place: Place, store: Store, tree_id: str) -> Inspection:
    """What became of the place's tree. Nothing that could still write to it may live.

    Raises:
        GitError: what the tree was cannot be read any more.
    """
    walk = _Walk(_expected(place, store, tree_id), store.object_format, _trusted_until(place))
    try:
        top = at.open(place.tree, FOLDER)
    except OSError:
        return walk.result()
    try:
        walk.run(top)
    finally:
        os.close(top)
    return walk.result()


def _folders_of(paths: Iterable[bytes]) -> set[bytes]:
    """Every folder that the paths lie in, at any depth."""
    folders: set[bytes] = set()
    for path in paths:
        parent = path.rpartition(b"/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition(b"/")[0]
    return folders


def _expected(place: Place, store: Store, tree_id: str) -> dict[bytes, Known]:
    """What is known of each path of the tree: by the index of when it was made, if that is untouched, else by git."""
    raw = recorded(place)
    if raw:
        return dict(dircache.entries(raw, store.object_format))
    known = {}
    for entry in store.entries(tree_id):
        mode = int(entry.mode, 8)
        canonical = mode if mode == dircache.GITLINK else dircache.git_mode(mode)
        known[encode(entry.path)] = (canonical, entry.oid, b"")
    return known


def recorded(place: Place) -> bytes:
    """The index that was written when the tree was made; empty where it is not the very same any more."""
    if place.made is None:
        return b""
    raw = atomic.read(place.index, limit=INDEX_LIMIT) or b""
    return raw if blake2b(raw).hexdigest() == place.made.index_digest else b""


def _trusted_until(place: Place) -> int:
    """The time of last change, in ns, up to which a file that looks unchanged is unchanged; 0 where none is."""
    if place.made is None or _clock_can_be_set() or not _notes_every_write(place):
        return 0
    written_ns = place.made.written_ns
    return written_ns - (_TICK_NS if written_ns % 1_000_000_000 else _COARSE_NS)


def _clock_can_be_set() -> bool:
    """Whether a job of ours could have set the clock, and with it the time of a change: CAP_SYS_TIME, mostly root's."""
    status = atomic.read("/proc/self/status") or b""
    for line in status.split(b"\n"):
        if line.startswith(b"CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_TIME & 1)
    return system.uid() == 0


def _notes_every_write(place: Place) -> bool:
    """Whether a write through a mapping moves a file's time of change: the marker is written over itself.

    Read first, then written: tmpfs maps a page that was read for writing too, and hears nothing of what follows.
    """
    try:
        fd = os.open(place.marker, os.O_RDWR | system.PLAIN)
    except OSError:
        return False
    try:
        before = os.fstat(fd)
        if not S_ISREG(before.st_mode) or before.st_dev != os.stat(place.tree).st_dev:
            return False
        with mmap.mmap(fd, 1) as mapped:
            mapped[0] = mapped[0]
        return os.fstat(fd).st_ctime_ns > before.st_ctime_ns
    except (OSError, ValueError):
        return False
    finally:
        os.close(fd)


class _Walk:
    """One walk through a tree, with what it has found so far."""

    def __init__(self, expected: dict[bytes, Known], object_format: str, trusted_until_ns: int) -> None:
        self._missing = expected
        self._folders = _folders_of(expected)
        self._algorithm = dircache.algorithm(object_format)
        self._trusted_until_ns = trusted_until_ns
        self._tampered: list[bytes] = []
        self._littered: list[bytes] = []
        self._size_bytes = 0

    def run(self, top_fd: int) -> None:
        """Everything below the folder has been looked at."""
        with Cursor(top_fd) as cursor:
            pending = [self._look(cursor)]
            while pending:
                if pending[-1]:
                    name = pending[-1].pop()
                    try:
                        cursor.enter(name)
                    except OSError:  # closed, or swapped: what should lie in it counts as missing
                        continue
                    pending.append(self._look(cursor))
                else:
                    pending.pop()
                    if pending:
                        cursor.leave()

    def result(self) -> Inspection:
        """What was found; what was not, is missing."""
        return Inspection(
            tampered=tuple(decode(path) for path in sorted((*self._tampered, *self._missing))),
            littered=tuple(decode(path) for path in sorted(self._littered)),
            size_bytes=self._size_bytes,
        )

    def _look(self, cursor: Cursor) -> list[str]:
        """Everything in the present folder has been compared; gives the folders of the tree that lie in it."""
        folders = []
        with at.scandir(cursor.fd) as entries:
            for entry in entries:
                path = os.fsencode(cursor.below(entry.name))
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                known = self._missing.pop(path, None)
                if known is not None:
                    self._compare(path, entry.name, cursor.fd, status, known)
                elif not S_ISDIR(status.st_mode):
                    self._litter(path)
                elif path not in self._folders:
                    self._litter(path + b"/")
                if S_ISDIR(status.st_mode) and (path in self._folders or (known and known[0] == dircache.GITLINK)):
                    folders.append(entry.name)
        return folders

    def _compare(self, path: bytes, name: str, dir_fd: int, status: os.stat_result, known: Known) -> None:
        mode, oid, stat = known
        if dircache.git_mode(status.st_mode) != mode and not dircache.is_file_without_bit(status.st_mode, mode):
            self._tampered.append(path)
            return
        if mode == dircache.GITLINK:
            return
        self._size_bytes += status.st_size
        unchanged = stat == dircache.stat_bytes(status, mode) and dircache.ctime_ns(stat) < self._trusted_until_ns
        if not unchanged and self._hash(name, dir_fd, status, mode) != oid:
            self._tampered.append(path)

    def _litter(self, path: bytes) -> None:
        if len(self._littered) < MOST_LITTERED:
            self._littered.append(path)

    def _hash(self, name: str, dir_fd: int, status: os.stat_result, mode: int) -> str:
        """The object id of what lies there, as git computes it; empty where it cannot be read."""
        try:
            if mode == dircache.LINK:
                target = os.fsencode(at.readlink(name, dir_fd=dir_fd))
                return self._algorithm(b"blob %d\0%b" % (len(target), target)).hexdigest()
            fd = at.open(name, os.O_RDONLY | system.PLAIN, dir_fd=dir_fd)
        except OSError:
            return ""
        digest = self._algorithm(b"blob %d\0" % status.st_size)
        try:
            wanted = min(status.st_size, _CHUNK - 1) + 1  # a byte more: what has grown does not hash as it was
            part = os.read(fd, wanted)
            while part:
                digest.update(part)
                part = os.read(fd, wanted) if len(part) == wanted else b""
        except OSError:
            return ""
        finally:
            os.close(fd)
        return digest.hexdigest()
