"""A tree-id made into a folder of files, byte for byte, and nothing else.

Cold: `git archive` to a file, and tar. Warm: a tree of an earlier run that was left as it had been made, brought up to
date by `git read-tree`, in a seventh of the time of a checkout. The store's attributes switch every conversion off, so
what lies on the disk is what the tree holds: LFS pointers stay pointers.
"""

from __future__ import annotations

import os
from _blake2 import blake2b

from git_orch import atomic, dircache, listing, parking, proc, windows
from git_orch.errors import EnvironmentProblem, GitError
from git_orch.git import Git, decode, run_both, without_git
from git_orch.inspection import INDEX_LIMIT
from git_orch.listing import TreeUnusable
from git_orch.place import Made, check_space, free_bytes
from git_orch.removal import remove_path
from git_orch.store import ObjectsMissing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from git_orch.place import Place
    from git_orch.store import Store

_TIMEOUT_S = 900.0
_PLENTY_BYTES = 8 << 30  # above that nobody adds up sizes first; where it is not enough, the failure tells the numbers
_UMASK = 0o022
# As root tar would otherwise restore owners and modes, and fail where it may not. -m: the time of unpacking is as good
# as the archive's, and a system call a file cheaper.
_TAR = ("tar", "-x", "--no-same-owner", "--no-same-permissions", "-m")
# GNU tar's alone, in place of the user's own, which could leave files out: it takes `host:path` for a tape on another
# machine, and reads 10 KiB at a time.
_TAR_OPTIONS = "--force-local --blocking-factor=512 --numeric-owner"


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
    return listing.needed_bytes(store.listing(tree_id))


# -- warm


def _bring_up_to_date(store: Store, tree_id: str, place: Place) -> bool:
    """Whether `read-tree` has turned the parked tree into this one, with nothing in it that the index does not name."""
    done = _git(store, place).attempt("read-tree", "--reset", "-u", tree_id, timeout_s=_TIMEOUT_S)
    if done.code != 0:
        return False
    raw = atomic.read(place.index, limit=INDEX_LIMIT) or b""
    try:
        if listing.count_files(place.tree) != _files_expected(raw, store):
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


# -- cold


def _unpack(store: Store, tree_id: str, place: Place) -> None:
    if store.promisor:
        store.fetch_missing(tree_id)
    archive = os.path.join(place.root, "tree.tar")
    try:
        listed = _archived(store, tree_id, archive, place)
        listing.refuse_unusable(listed)
        if _folds_case(place):
            _refuse_colliding(listed, place)
        raw = _made_from(archive, store, listed, place)
    except (ObjectsMissing, TreeUnusable):
        raise
    except (EnvironmentProblem, GitError):
        remove_path(archive)
        _say_why(store, tree_id, place)
        raise
    finally:
        remove_path(archive)
    atomic.write(place.index, raw)
    place.made = _made(place, raw)


def _archived(store: Store, tree_id: str, archive: str, place: Place) -> bytes:
    """What the tree holds, listed; its archive lies in that file. Side by side, where the room need not be counted."""
    git = store.reader()
    lists = ("ls-tree", "-r", "-l", "-z", "--full-tree", tree_id)
    archives = ("archive", "--format=tar", "-o", archive, tree_id)
    try:
        if free_bytes(place.root) >= _PLENTY_BYTES:
            return run_both((git, lists), (git, archives), timeout_s=_TIMEOUT_S)[0].stdout
        listed = git.run(*lists, timeout_s=_TIMEOUT_S)
        listing.refuse_unusable(listed)
        check_space(place.root, listing.needed_bytes(listed))
        git.run(*archives, timeout_s=_TIMEOUT_S)
    except GitError:
        store.fetch_missing(tree_id)  # says what is missing, where that is why
        raise
    return listed


def _say_why(store: Store, tree_id: str, place: Place) -> None:
    """A better reason for a failure is raised, where there is one: the tree itself, or the room on the disk."""
    listed = store.listing(tree_id)
    listing.refuse_unusable(listed, thoroughly=True)
    check_space(place.root, listing.needed_bytes(listed))


def _made_from(archive: str, store: Store, listed: bytes, place: Place) -> bytes:
    """The tree is unpacked and checked; gives its index. Where it is not, nothing is left of it."""
    os.mkdir(place.tree, 0o755)
    try:
        _extract(store, archive, place)
        return _checked(listed, place, store.object_format)
    except BaseException:
        remove_path(place.tree)
        raise


def _extract(store: Store, archive: str, place: Place) -> None:
    env = {**without_git(store.env), "LC_ALL": "C", "TAR_OPTIONS": _TAR_OPTIONS}
    try:
        done = proc.run([*_tar(), "-f", archive, "-C", place.tree], env=env, timeout_s=_TIMEOUT_S)
    except FileNotFoundError as error:
        raise EnvironmentProblem("tar is not on PATH", "install tar") from error
    if done.code != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise EnvironmentProblem(
            f"tar could not unpack the tree into {place.tree}: {said[0] if said else f'exit status {done.code}'}",
            "set TMPDIR to a folder on another disk",
        )


def _tar() -> tuple[str, ...]:
    return (windows.system_tar(), *_TAR[1:]) if os.name == "nt" else _TAR


def _clear(place: Place) -> None:
    """What a warm start may have left is gone."""
    for path in (place.tree, place.index, place.index + ".lock"):
        if not remove_path(path):
            raise EnvironmentProblem(f"{path} cannot be removed")


def _checked(listed: bytes, place: Place, object_format: str) -> bytes:
    """The index of the folder, which holds the listed tree and nothing else."""
    try:
        raw = listing.index_of(listed, place.tree, object_format)
    except OSError as error:
        path = error.filename or b""
        raise _not_kept(place, f"{decode(path) if isinstance(path, bytes) else path}: {error.strerror}") from error
    if listing.count_files(place.tree) != listing.files(listed):
        raise _not_kept(place, "it holds more than the tree")
    return raw


def _folds_case(place: Place) -> bool:
    """Whether the disk takes the marker's name in capitals for the marker's name."""
    return os.path.lexists(os.path.join(place.run_folder, os.path.basename(place.marker).upper()))


def _refuse_colliding(listed: bytes, place: Place) -> None:
    twins = listing.colliding(path for path, _, _, _ in listing.parse(listed))
    if twins:
        raise TreeUnusable(
            f"{twins[0]} and {twins[1]} are one name to the disk of {place.root}",
            "set TMPDIR to a folder on a disk that tells upper from lower case",
        )


def _made(place: Place, raw: bytes) -> Made:
    return Made(blake2b(raw).hexdigest(), os.stat(place.index).st_mtime_ns)


def _not_kept(place: Place, what: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"{place.tree} is not the tree it was made from: {what}", "set TMPDIR to a folder on another disk"
    )


def _git(store: Store, place: Place) -> Git:
    return store.git(index=place.index, work_tree=place.tree)
