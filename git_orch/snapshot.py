"""What the work tree is now, as a tree-id, without touching anything of the user's.

Not `git add -A`: one unreadable file, an embedded repository without commits, core.safecrlf or a vanishing file makes
it fail, and write-tree then gives HEAD's tree, which reads as "nothing to review". Here every path goes in by itself,
and what does not is named.
"""

from __future__ import annotations

import os
import time
from _stat import S_ISDIR, S_ISLNK

from git_orch import index as indexes
from git_orch import layout, system, untracked
from git_orch.errors import GitError, OrchError
from git_orch.git import decode, encode, split_z
from git_orch.index import LINK_REMOVED, REMOVED, SUBMODULE, TYPE_CHANGED, UNMERGED, IndexCopy, PrivateIndex
from git_orch.model import Record, Skipped
from git_orch.untracked import EMBEDDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from git_orch.config import Settings
    from git_orch.git import Git
    from git_orch.index import Seen
    from git_orch.layout import Layout
    from git_orch.store import Store
    from git_orch.untracked import Selection

HOOK_FILES, HOOK_BYTES = 2_000, 64 << 20
_BATCH_FILES, _BATCH_BYTES = 500, 8 << 20
_TRACKED_BATCH = 2_000  # twice as many in each further call
_HASHING_SHARE = 0.7  # of the budget: the tree is to be written and the run started in what is left
_TRACKED_SHARE = 4.0  # a tree without a tracked path is unreviewed, which is worse than a hook that is felt
_LOOK_S = 30.0


class SnapshotFailed(OrchError):
    """No tree could be made; HEAD's tree is never given instead."""

    code = "snapshot"


class Snapshot(Record):
    """A tree-id and what of the work tree is not in it."""

    tree_id: str
    skipped: tuple[Skipped, ...] = ()
    elapsed_ms: int = 0


class Limits(Record):
    """What a snapshot may take: untracked files and their bytes, and seconds (0: no limit).

    Untracked files are hashed for 0.7 of the seconds, tracked ones for as many as four times.
    """

    files: int = 0
    size_bytes: int = 0
    seconds: float = 0.0


def take(place: Layout, store: Store, settings: Settings, env: Mapping[str, str], limits: Limits) -> Snapshot:
    """The work tree's tree-id; its new objects are in the store.

    Raises:
        SnapshotFailed: git could not read the work tree.
    """
    start = time.monotonic()
    try:
        root_fd = system.at.open(encode(place.worktree), os.O_RDONLY | system.DIRECTORY | system.CLOEXEC)
        try:
            with PrivateIndex(place, store, env) as index:
                taking = _Taking(index, root_fd, settings.max_untracked_bytes, limits, start)
                tree_id, skipped = taking.run(_own_folder(place))
        finally:
            os.close(root_fd)
    except GitError as error:
        raise SnapshotFailed(f"snapshot: {error.message}", "git status may say more") from error
    except OSError as error:
        raise SnapshotFailed(f"snapshot: {_said(error)}") from error
    return Snapshot(tree_id=tree_id, skipped=skipped, elapsed_ms=_ms(start))


def in_time(place: Layout, store: Store, settings: Settings, env: Mapping[str, str]) -> Snapshot:
    """The same, with no more than a hook may take.

    Raises:
        SnapshotFailed: git could not read the work tree.
    """
    limits = Limits(files=HOOK_FILES, size_bytes=HOOK_BYTES, seconds=settings.hook_budget_s)
    return take(place, store, settings, env, limits)


def staged(place: Layout, store: Store, env: Mapping[str, str]) -> Snapshot:
    """The tree-id of what is staged: the user's index, as it is.

    Raises:
        SnapshotFailed: the index has unmerged paths or cannot be read.
    """
    start = time.monotonic()
    try:
        with IndexCopy(place) as copy:  # write-tree takes the lock of its index
            git = place.git(env).replace(index=copy.path, objects=store.objects)
            tree_id = git.line("write-tree", "--missing-ok")
    except GitError as error:
        raise SnapshotFailed(f"snapshot of the index: {error.message}", "finish the merge first") from error
    except OSError as error:
        raise SnapshotFailed(f"snapshot of the index: {_said(error)}") from error
    return Snapshot(tree_id=tree_id, elapsed_ms=_ms(start))


def hidden_edits(git: Git, worktree: str) -> tuple[Skipped, ...]:
    """Tracked files whose edits git was told not to see (assume-unchanged, skip-worktree) and that do differ.

    Slow on a large index, and so the supervisor's to ask, not the hook's. Where skip-worktree keeps a file away (a
    sparse checkout), its absence is no edit.

    Raises:
        GitError: git could not look.
    """
    marked = _marked(git, encode(worktree))
    if not marked:
        return ()
    with IndexCopy(layout.locate(worktree, git.env)) as copy:
        git = git.replace(index=copy.path)
        listed = b"".join(path + b"\0" for path in marked)
        git.run("update-index", "--no-assume-unchanged", "-z", "--stdin", stdin=listed)
        git.run("update-index", "--no-skip-worktree", "-z", "--stdin", stdin=listed)
        git.attempt("update-index", "-q", "--refresh")  # its status 1 says that some differ: those are wanted
        edited = frozenset(split_z(git.run("diff-files", "-z", "--name-only")))
    return tuple(
        Skipped(path=decode(path), reason=f"edited, hidden by {flag}", tracked=True)
        for path, flag in marked.items()
        if path in edited
    )


def _marked(git: Git, root: bytes) -> dict[bytes, str]:
    """The paths with one of the two flags, with its name; of skip-worktree those that are there."""
    marked: dict[bytes, str] = {}
    for item in split_z(git.run("ls-files", "-v", "-z")):
        tag, path = item[:1], item[2:]
        if tag.islower():  # h; or s, which has both flags
            marked[path] = "assume-unchanged"
        elif tag == b"S" and os.path.lexists(os.path.join(root, path)):
            marked[path] = "skip-worktree"
    return marked


class _Taking:
    """One snapshot under way: the parts of `take` that share its index and its clock."""

    def __init__(self, index: PrivateIndex, root_fd: int, max_bytes: int, limits: Limits, start: float) -> None:
        self._index = index
        self._root_fd = root_fd
        self._max_bytes = max_bytes
        self._limits = limits
        self._start = start

    def run(self, own: bytes) -> tuple[str, tuple[Skipped, ...]]:
        """The tree-id of the work tree and what is left out of it; `own` is the name of our folder at its top."""
        try:
            seen, chosen = self._look(own)
            stale = self._rules_changed(seen, chosen)
        except GitError:
            if not self._index.known.tree_id:
                raise
            stale = True  # the kept index may be what is broken
        if stale:
            self._index.reseed()
            seen, chosen = self._look(own)
        inner = self._inner_repositories(seen)
        tree_id, lost = self._put_in(seen, chosen)
        tracked = {path: why for path, why in lost.items() if path not in chosen.entering} | seen.unreadable
        loose = (
            {path: why for path, why in lost.items() if path in chosen.entering} | chosen.left_out | seen.closed | inner
        )
        return tree_id, (*_skipped(tracked, tracked=True), *_skipped(loose, tracked=False))

    def _look(self, own: bytes) -> tuple[Seen, Selection]:
        """What there is, and which of the untracked may enter."""
        seen = self._index.look(timeout_s=_LOOK_S if self._limits.seconds else indexes.GIT_TIMEOUT_S)
        listed = [path for path in seen.untracked if path.partition(b"/")[0] != own]
        limits = self._limits
        chosen = untracked.select(
            self._root_fd, listed, max_bytes=self._max_bytes, files=limits.files, size_bytes=limits.size_bytes
        )
        return seen, chosen

    def _inner_repositories(self, seen: Seen) -> dict[bytes, str]:
        """The repositories that stand where a tracked file was: git lists them neither as changed nor as untracked."""
        replaced = [path for path, letter in seen.changed.items() if letter in (REMOVED, TYPE_CHANGED)]
        replaced += self._index.known.absent
        found = ((path, self._lstat(path)) for path in replaced)
        folders = (path + b"/" for path, status in found if status and S_ISDIR(status.st_mode))
        return {path: EMBEDDED for path in folders if self._lstat(path + b".git")}

    def _rules_changed(self, seen: Seen, chosen: Selection) -> bool:
        """Whether a .gitattributes came, went or changed since the last snapshot: files were hashed by other rules."""
        if not self._index.known.tree_id:
            return False
        fresh = chosen.entering.keys() - self._index.known.extras
        return any(path.rpartition(b"/")[2] == b".gitattributes" for path in (*seen.changed, *fresh))

    def _put_in(self, seen: Seen, chosen: Selection) -> tuple[str, dict[bytes, str]]:
        """The tree-id, with everything in the index that is to enter; and what never went in."""
        index, known = self._index, self._index.known
        dropped = known.extras - chosen.entering.keys()
        beyond = {path for path, letter in seen.changed.items() if letter == REMOVED and self._beyond_link(path)}
        leaving = dropped | beyond
        back = [path for path in self._returned(known.absent) if path not in seen.changed]
        known_paths = [path for path in (*seen.changed, *back) if path not in leaving]
        fresh = {path: size for path, size in chosen.entering.items() if path not in known.extras}
        if known.tree_id and not (known_paths or fresh or leaving):
            return known.tree_id, {}
        mark, since_ns = index.mark(), index.clock_ns()
        index.forget(leaving)
        if not known.tree_id:
            index.settle(path for path, letter in seen.changed.items() if letter == UNMERGED)
        lost = self._add(known_paths, fresh)
        index.forget(known.extras & lost.keys())  # better not there than as it was
        tree_id = known.tree_id if known.tree_id and index.mark() == mark else index.write_tree()
        if LINK_REMOVED not in seen.changed.values():  # should it come back, nothing here would know it for a submodule
            extras = frozenset(chosen.entering) - lost.keys()
            given = (*known_paths, *fresh)
            absent = known.absent - (frozenset(given) - lost.keys())
            absent |= beyond.union(self._unsure(given, since_ns, seen)) - (chosen.entering.keys() - extras)
            index.keep(known.replace(tree_id=tree_id, extras=extras, absent=absent - dropped))
        return tree_id, lost

    def _returned(self, absent: Iterable[bytes]) -> list[bytes]:
        """The paths that are there again, as files."""
        found = ((path, self._lstat(path)) for path in absent)
        there = (path for path, status in found if status and not S_ISDIR(status.st_mode))
        return [path for path in there if not self._beyond_link(path)]

    def _unsure(self, paths: Iterable[bytes], since_ns: int, seen: Seen) -> list[bytes]:
        """The paths that git may not have found, so that they are not in the index now.

        A file that went and came back while git looked has a ctime since then.
        """
        found = zip(paths, map(self._lstat, paths), strict=True)
        return [
            path
            for path, status in found
            if status is None
            or status.st_ctime_ns >= since_ns
            or (S_ISDIR(status.st_mode) and seen.changed.get(path) != SUBMODULE)
        ]

    def _lstat(self, path: bytes) -> os.stat_result | None:
        try:
            return system.at.lstat(path, dir_fd=self._root_fd)
        except OSError:
            return None

    def _add(self, tracked: list[bytes], fresh: dict[bytes, int]) -> dict[bytes, str]:
        """Everything is in the index but what is given back; there is more patience for tracked paths."""
        batches = _batches(fresh)
        first = [] if len(tracked) > _TRACKED_BATCH else next(batches, [])  # one call does for most snapshots
        lost: dict[bytes, str] = {}
        at, size = 0, _TRACKED_BATCH if self._limits.seconds else max(len(tracked), 1)
        while at < len(tracked) or first:
            part = tracked[at : at + size]
            lost |= self._index.add(part + first, self._until(_TRACKED_SHARE if part else _HASHING_SHARE))
            at, size, first = at + size, 2 * size, []  # each call writes the whole index
        for batch in batches:
            lost |= self._index.add(batch, self._until(_HASHING_SHARE))
        return lost

    def _until(self, share: float) -> float:
        return self._start + self._limits.seconds * share if self._limits.seconds else 0.0

    def _beyond_link(self, path: bytes) -> bool:
        """Whether a folder of the path is a symbolic link by now: git then refuses to look at the path at all."""
        folder = path.rpartition(b"/")[0]
        while folder:
            status = self._lstat(folder)
            if status and S_ISLNK(status.st_mode):
                return True
            folder = folder.rpartition(b"/")[0]
        return False


def _batches(fresh: dict[bytes, int]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    total = 0
    for path, size in fresh.items():
        if batch and (len(batch) >= _BATCH_FILES or total + size > _BATCH_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(path)
        total += size
    if batch:
        yield batch


def _skipped(reasons: dict[bytes, str], *, tracked: bool) -> Iterator[Skipped]:
    for path in sorted(reasons):
        yield Skipped(path=decode(path), reason=reasons[path], tracked=tracked)


def _own_folder(place: Layout) -> bytes:
    """The name of our folder at the top of the work tree, or nothing where it lies elsewhere."""
    inside = os.path.dirname(place.live) == place.worktree
    return encode(os.path.basename(place.live)) if inside else b""


def _said(error: OSError) -> str:
    return f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)


def _ms(start: float) -> int:
    return int((time.monotonic() - start) * 1000)
