"""A tree-id made into a folder of files, byte for byte, and nothing else.

Cold: `git archive` to a file, and tar. Warm: a tree of an earlier run that was left as it had been made, brought up to
date by `git read-tree`, in a seventh of the time of a checkout. The store's attributes switch every conversion off, so
what lies on the disk is what the tree holds: LFS pointers stay pointers.
"""

from __future__ import annotations

import errno
import os
from _blake2 import blake2b

from git_orch import atomic, dircache, parking, proc
from git_orch.cursor import FOLDER
from git_orch.disposal import dispose, leftovers, sweep_abandoned, sweep_trash
from git_orch.errors import EnvironmentProblem, OrchError
from git_orch.git import Git, decode, without_git
from git_orch.inspection import INDEX_LIMIT, Inspection, folders_of, inspect
from git_orch.parents import foreign_configuration
from git_orch.parking import park
from git_orch.place import Made, Place, check_space, make_place, temp_root
from git_orch.removal import remove_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from git_orch.store import Store

    Listed = tuple[bytes, bytes, int, int]  # path, object id in hex, git's mode, size in bytes (-1: a gitlink)

__all__ = [
    "Inspection",
    "Place",
    "TreeUnusable",
    "check_space",
    "dispose",
    "foreign_configuration",
    "inspect",
    "leftovers",
    "make_place",
    "materialize",
    "needed_bytes",
    "park",
    "sweep_abandoned",
    "sweep_trash",
    "temp_root",
]

_FORBIDDEN = (b"/.git/", b"/../", b"/./", b"//")
# What lies on the disk for each mode of git's: type, and the owner's exec bit, which links and folders have always.
_TYPE_AND_EXEC = 0o170100
_ON_DISK = {
    dircache.PLAIN: 0o100000,
    dircache.EXECUTABLE: 0o100100,
    dircache.LINK: 0o120100,
    dircache.GITLINK: 0o040100,
}
_MODES = {
    b"100644": dircache.PLAIN,
    b"100755": dircache.EXECUTABLE,
    b"120000": dircache.LINK,
    b"160000": dircache.GITLINK,
}
_BLOCK = 4096
# 2001-09-09. git compares whole seconds, and reads every file again that is as new as the index: files with the time of
# now would all be read by a warm start that comes within the second.
_FILE_TIME_S = 1_000_000_000
_TIMEOUT_S = 900.0
_UMASK = 0o022
# As root tar would otherwise restore owners and modes, and fail where it may not.
_TAR = ("tar", "-x", "--no-same-owner", "--no-same-permissions")
# A user's TAR_OPTIONS could leave files out; GNU tar takes `host:path` for a tape on another machine.
_TAR_OPTIONS = "--force-local"


class TreeUnusable(OrchError):
    """The tree cannot be had as files here: a path that no checkout may have, or names that the disk cannot keep."""

    code = "tree-unusable"


def materialize(store: Store, tree_id: str, place: Place, *, warm: bool = True) -> Literal["cold", "warm"]:
    """`place.tree` holds the tree, every path and every byte, and `place.made` remembers it.

    Raises:
        ObjectsMissing: a partial clone is offline, or the repository is not whole.
        TreeUnusable: it cannot be kept as files on this disk.
        EnvironmentProblem: there is no room, or no tar.
        GitError: git could not read it.
    """
    umask = os.umask(_UMASK)
    try:
        if warm and parking.take(place, store) and _bring_up_to_date(store, tree_id, place):
            return "warm"
        _clear(place)
        _unpack(store, tree_id, place)
    finally:
        os.umask(umask)
    return "cold"


def needed_bytes(store: Store, tree_id: str) -> int:
    """The room that a tree takes while it is made: its files and the archive of them."""
    return _room(list(_parse(store.listing(tree_id))))


# -- warm


def _bring_up_to_date(store: Store, tree_id: str, place: Place) -> bool:
    """Whether `read-tree` has turned the parked tree into this one, with nothing in it that the index does not name."""
    done = _git(store, place).attempt("read-tree", "--reset", "-u", tree_id, timeout_s=_TIMEOUT_S)
    if done.code != 0:
        return False
    raw = atomic.read(place.index, limit=INDEX_LIMIT) or b""
    try:
        if _count_files(place.tree) != _files_expected(raw, store):
            return False
    except OSError:
        return False
    place.made = _made(place, raw)
    return True


def _files_expected(raw: bytes, store: Store) -> int:
    """How many entries of the index are no gitlinks; the quick answer where there are none is read from its head."""
    if b"\x00\x00\xe0\x00" not in raw:  # a gitlink's mode, 160000, in the index
        return dircache.count(raw)
    try:
        modes = [mode for _, (mode, _, _) in dircache.entries(raw, store.object_format)]
    except ValueError:
        return -1
    return sum(mode != dircache.GITLINK for mode in modes)


def _count_files(tree: str) -> int:
    """Everything below the folder that is no folder, counted without a stat; read-tree has looked at each of them."""
    total = 0
    folders = [tree]
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{folder}/{entry.name}")
                else:
                    total += 1
    return total


# -- cold


def _unpack(store: Store, tree_id: str, place: Place) -> None:
    if store.promisor:
        store.fetch_missing(tree_id)
    listed = list(_parse(_listing(store, tree_id)))
    _refuse_unusable(listed, place)
    check_space(place.root, _room(listed))
    archive = os.path.join(place.root, "tree.tar")
    os.mkdir(place.tree, 0o755)
    try:
        _archive(store, tree_id, archive)
        _extract(store, archive, place)
    finally:
        remove_path(archive)
    raw = _recorded(listed, place, store.object_format)
    atomic.write(place.index, raw)
    place.made = _made(place, raw)


def _listing(store: Store, tree_id: str) -> bytes:
    done = store.git().attempt("ls-tree", "-r", "-l", "-z", "--full-tree", tree_id, timeout_s=_TIMEOUT_S)
    if done.code != 0:
        store.fetch_missing(tree_id)  # says what is missing, where that is why
        raise Git.failure(("ls-tree",), done, _TIMEOUT_S)
    return done.stdout


def _archive(store: Store, tree_id: str, archive: str) -> None:
    """The tree lies in the archive; as that of a commit, for then its files have the commit's time."""
    signed = f"git-orch <> {_FILE_TIME_S} +0000"
    commit = f"tree {tree_id}\nauthor {signed}\ncommitter {signed}\n\n".encode("ascii")
    dated = store.git().run("hash-object", "-t", "commit", "-w", "--stdin", stdin=commit).decode("ascii").strip()
    done = store.git().attempt("archive", "--format=tar", "-o", archive, dated, timeout_s=_TIMEOUT_S)
    if done.code != 0:
        store.fetch_missing(tree_id)
        raise Git.failure(("archive",), done, _TIMEOUT_S)


def _extract(store: Store, archive: str, place: Place) -> None:
    env = {**without_git(store.env), "LC_ALL": "C", "TAR_OPTIONS": _TAR_OPTIONS}
    try:
        done = proc.run([*_TAR, "-f", archive, "-C", place.tree], env=env, timeout_s=_TIMEOUT_S)
    except FileNotFoundError as error:
        raise EnvironmentProblem("tar is not on PATH", "install tar") from error
    if done.code != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise EnvironmentProblem(
            f"tar could not unpack the tree into {place.tree}: {said[0] if said else f'exit status {done.code}'}",
            "set TMPDIR to a folder on another disk",
        )


def _clear(place: Place) -> None:
    """What a warm start may have left is gone."""
    for path in (place.tree, place.index, place.index + ".lock"):
        if not remove_path(path):
            raise EnvironmentProblem(f"{path} cannot be removed")


# -- the check


def _recorded(listed: list[Listed], place: Place, object_format: str) -> bytes:
    """The index of what lies in the folder, which is the tree: each path with its type, exec bit and size, no other.

    Contents are git's own archive unpacked; they are hashed again after the review, not before.

    Raises:
        EnvironmentProblem: the disk did not keep the tree as it is.
    """
    top = os.open(place.tree, FOLDER)
    try:
        entries = _entries(listed, top)
    except OSError as error:
        raise _not_kept(place, f"{error.strerror}: {os.fsdecode(error.filename or '')}") from error
    finally:
        os.close(top)
    if _count_files(place.tree) != sum(mode != dircache.GITLINK for _, _, mode, _ in listed):
        raise _not_kept(place, "it holds more than the tree")
    return dircache.assemble(entries, object_format)


def _entries(listed: list[Listed], top: int) -> list[bytes]:
    """An index entry for each path, where the right thing lies there; else OSError. The inner loop of a cold start."""
    entries = []
    folder, fd = b"", top
    try:
        for path, oid, mode, size in listed:
            parent, _, name = path.rpartition(b"/")
            if parent != folder:
                if fd != top:
                    os.close(fd)
                fd = top  # nothing else to close, should the next line fail
                fd, folder = _opened(top, parent), parent
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if status.st_mode & _TYPE_AND_EXEC != _ON_DISK[mode] or status.st_size != size >= 0:
                raise OSError(errno.EIO, "of another type, mode or size", path)
            entries.append(dircache.entry(dircache.stat_bytes(status, mode), oid, path))
    finally:
        if fd != top:
            os.close(fd)
    return entries


def _opened(top: int, folder: bytes) -> int:
    """A descriptor of a folder of the tree, `top` itself for the topmost; no part of the way may be a link."""
    if not folder:
        return top
    fd = os.open(".", FOLDER, dir_fd=top)
    for name in folder.split(b"/"):
        try:
            below = os.open(name, FOLDER, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd


def _refuse_unusable(listed: list[Listed], place: Place) -> None:
    """Nothing in the tree leads outside of it, and no two names are one to this disk."""
    paths = [path for path, _, _, _ in listed]
    text = b"/%b/" % b"/".join(paths).lower()
    if paths and any(part in text for part in _FORBIDDEN):
        raise TreeUnusable("the tree holds a .git, .. or nameless path, as no checkout may", "git fsck names it")
    clash = folders_of(paths).intersection(paths)
    if clash or len(set(paths)) < len(paths):
        raise TreeUnusable("the tree holds a path twice, once as a folder perhaps", "git fsck names it")
    if _folds_case(place):
        twins = colliding(paths)
        if twins:
            raise TreeUnusable(
                f"{twins[0]} and {twins[1]} are one name to the disk of {place.root}",
                "set TMPDIR to a folder on a disk that tells upper from lower case",
            )


def colliding(paths: list[bytes]) -> tuple[str, str] | None:
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


def _folds_case(place: Place) -> bool:
    """Whether the disk takes the marker's name in capitals for the marker's name."""
    return os.path.lexists(os.path.join(place.run_folder, os.path.basename(place.marker).upper()))


def _parse(raw: bytes) -> Iterator[Listed]:
    for item in raw.split(b"\0")[:-1]:
        head, _, path = item.partition(b"\t")
        octal, _, oid, size = head.split()
        mode = _MODES.get(octal) or dircache.git_mode(int(octal, 8))  # old trees hold 100664 and 100775
        yield path, oid, mode, int(size) if size.isdigit() else -1  # `-`, or BAD: the archive will tell


def _room(listed: list[Listed]) -> int:
    """Bytes on the disk: each file in whole blocks, once as itself and once in the archive, and some folders."""
    return sum(2 * (-(-max(size, 0) // _BLOCK) + 1) * _BLOCK for _, _, _, size in listed)


def _made(place: Place, raw: bytes) -> Made:
    return Made(blake2b(raw).hexdigest(), os.stat(place.index).st_mtime_ns)


def _not_kept(place: Place, what: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"{place.tree} is not the tree it was made from: {what}", "set TMPDIR to a folder on another disk"
    )


def _git(store: Store, place: Place) -> Git:
    return store.git(index=place.index, work_tree=place.tree)
