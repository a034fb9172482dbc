"""What git says a tree holds (`ls-tree -r -l -z`), whether a disk can hold that, and whether a folder does.

A supervisor goes on living after it has made a tree, so nothing here keeps more than a path at a time: lists of 5,000
paths and entries would stay with the process as 3 MB of empty memory.
"""

from __future__ import annotations

import errno
import os

from git_orch import dircache, windows
from git_orch.errors import OrchError
from git_orch.git import decode
from git_orch.system import FOLDER, HAS_MODES, at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Listed = tuple[bytes, bytes, int, int]  # path, object id in hex, git's mode, size in bytes (-1: a gitlink)

# Names that no checkout may have, and what a listing holds that has one of them (and some that have none).
_FORBIDDEN = frozenset((b"", b".", b"..", b".git"))
_SUSPECT = (b".git/", b".git\0", b"./", b".\0")
# What lies on the disk for each mode of git's: type, and the owner's exec bit, which links and folders have always.
_TYPE_AND_EXEC = 0o170100 if HAS_MODES else 0o170000
_ON_DISK = {
    dircache.PLAIN: 0o100000 & _TYPE_AND_EXEC,
    dircache.EXECUTABLE: 0o100100 & _TYPE_AND_EXEC,
    dircache.LINK: 0o120100 & _TYPE_AND_EXEC,
    dircache.GITLINK: 0o040100 & _TYPE_AND_EXEC,
}
_MODES = {
    b"100644": dircache.PLAIN,
    b"100755": dircache.EXECUTABLE,
    b"120000": dircache.LINK,
    b"160000": dircache.GITLINK,
}
_BLOCK = 4096


class TreeUnusable(OrchError):
    """The tree cannot be had as files here: a path that no checkout may have, or names that the disk cannot keep."""

    code = "tree-unusable"


def refuse_unusable(raw: bytes, *, thoroughly: bool = False) -> None:
    """No path of the listed tree leads outside of it or into a repository.

    Args:
        thoroughly: and none is there twice, which tar and the check that follows it catch as well, in other words.

    Raises:
        TreeUnusable: one does.
    """
    if not HAS_MODES:
        refuse_unnameable(raw)
    lowered = raw.lower()
    if thoroughly or any(sign in lowered for sign in _SUSPECT):
        for path, _, _, _ in parse(raw):
            if not _FORBIDDEN.isdisjoint(path.lower().split(b"/")):
                raise TreeUnusable(f"the tree holds {decode(path)}, which no checkout may have", "git fsck says more")
    if thoroughly:
        _refuse_twice(raw)


def refuse_unnameable(raw: bytes) -> None:
    """Every path of the listed tree can be had on Windows under just that name.

    Raises:
        TreeUnusable: one cannot.
    """
    for path, _, _, _ in parse(raw):
        if not all(windows.is_name(name) for name in decode(path).split("/")):
            raise TreeUnusable(f"the tree holds {decode(path)}, a name that Windows does not have")


def _refuse_twice(raw: bytes) -> None:
    last = b""
    above: list[bytes] = []  # earlier paths that the present one begins with: `a` for `a.b`, and for `a/b`
    for path, _, _, _ in parse(raw):
        while above and not path.startswith(above[-1]):
            above.pop()
        if path <= last or (above and path[len(above[-1])] == ord("/")):
            raise TreeUnusable(f"the tree holds {decode(path)} twice, once as a folder perhaps", "git fsck says more")
        above.append(path)
        last = path


def files(raw: bytes) -> int:
    """How many paths are listed that are no gitlinks, which become folders."""
    return raw.count(b"\0") - (b"\0" + raw).count(b"\x00160000 commit ")  # \0 would take in the digits


def needed_bytes(raw: bytes) -> int:
    """The room that the tree takes while it is made, in whole blocks: itself, its archive, and some for its folders."""
    return sum(2 * (-(-max(size, 0) // _BLOCK) + 1) * _BLOCK for _, _, _, size in parse(raw))


def index_of(raw: bytes, folder: str, object_format: str) -> bytes:
    """An index that records what lies in the folder, where that is the listed tree: every path, type, exec bit, size.

    Contents are not read: they are git's own archive unpacked, and are hashed after the review.

    Raises:
        OSError: something is missing or of another kind; `filename` is its path.
    """
    entries = bytearray()
    top = at.open(folder, FOLDER)
    parent, fd = b"", top
    try:
        for path, oid, mode, size in parse(raw):
            above, _, name = path.rpartition(b"/")
            if above != parent:
                if fd != top:
                    os.close(fd)
                fd = top  # nothing else to close, should the next line fail
                fd, parent = _opened(top, above), above
            status = at.stat(name, dir_fd=fd, follow_symlinks=False)
            if status.st_mode & _TYPE_AND_EXEC != _ON_DISK[mode] or (
                status.st_size != size >= 0 and (HAS_MODES or mode != dircache.LINK)
            ):
                raise OSError(errno.EIO, "another type, mode or size", path)
            entries += dircache.entry(status, mode, oid, path)
    finally:
        if fd != top:
            os.close(fd)
        os.close(top)
    return dircache.assemble(entries, raw.count(b"\0"), object_format)


def count_files(folder: str) -> int:
    """How many things lie below the folder that are no folders; nothing but their names is looked at."""
    total = 0
    pending = [folder]
    while pending:
        present = pending.pop()
        with os.scandir(present) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{present}/{entry.name}")
                else:
                    total += 1
    return total


def parse(raw: bytes) -> Iterator[Listed]:
    """Each path of a listing, in git's order."""
    start, end = 0, raw.find(b"\0")
    while end >= 0:
        head, _, path = raw[start:end].partition(b"\t")
        octal, _, oid, size = head.split()
        mode = _MODES.get(octal) or dircache.git_mode(int(octal, 8))  # old trees hold 100664 and 100775
        yield path, oid, mode, int(size) if size.isdigit() else -1  # `-`; or BAD, a missing object: the archive tells
        start, end = end + 1, raw.find(b"\0", end + 1)


def colliding(paths: Iterable[bytes]) -> tuple[str, str] | None:
    """Two paths that differ only in case or in the composition of their characters, folders included."""
    from unicodedata import normalize  # only where the disk folds

    seen: dict[str, str] = {}
    for path in paths:
        names = decode(path).split("/")
        for depth in range(1, len(names) + 1):
            part = "/".join(names[:depth])
            other = seen.setdefault(normalize("NFC", part.casefold()), part)
            if other != part:
                return other, part
    return None


def _refuse_forbidden(raw: bytes) -> None:
    for path, _, _, _ in parse(raw):
        if not _FORBIDDEN.isdisjoint(path.lower().split(b"/")):
            raise TreeUnusable(f"the tree holds {decode(path)}, which no checkout may have", "git fsck says more")


def _opened(top: int, folder: bytes) -> int:
    """A descriptor of a folder of the tree, `top` itself for the topmost; no part of the way may be a link."""
    if not folder:
        return top
    fd = at.open(".", FOLDER, dir_fd=top)
    for name in folder.split(b"/"):
        try:
            below = at.open(name, FOLDER, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd
