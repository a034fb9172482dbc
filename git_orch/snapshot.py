"""What the work tree is now, as a tree-id, without touching anything of the user's.

Not `git add -A`: one unreadable file, an embedded repository without commits, core.safecrlf or a vanishing file makes it
fail, and write-tree then gives HEAD's tree, which reads as "nothing to review". Here every path goes in by itself, and
what does not is named.
"""

from __future__ import annotations

import os
import time

from git_orch import untracked
from git_orch.errors import GitError, OrchError
from git_orch.git import decode, split_z
from git_orch.index import PrivateIndex
from git_orch.model import Record, Skipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from git_orch.config import Settings
    from git_orch.git import Git
    from git_orch.layout import Layout
    from git_orch.store import Store

_UPDATE = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
_BATCH_FILES, _BATCH_BYTES = 500, 8 << 20
HOOK_FILES, HOOK_BYTES = 2_000, 64 << 20


class SnapshotFailed(OrchError):
    """No tree could be made; HEAD's tree is never given instead."""

    code = "snapshot"


class Snapshot(Record):
    """A tree-id and what of the work tree is not in it."""

    tree_id: str
    skipped: tuple[Skipped, ...] = ()
    elapsed_ms: int = 0


class Limits(Record):
    """What a snapshot may take: untracked files and bytes, and seconds (0: no limit)."""

    files: int = 0
    size_bytes: int = 0
    seconds: float = 0.0


def take(layout: Layout, store: Store, settings: Settings, env: Mapping[str, str], limits: Limits) -> Snapshot:
    """The work tree's tree-id; its new objects are in the store.

    Raises:
        SnapshotFailed: git could not read the work tree.
    """
    start = time.monotonic()
    try:
        with PrivateIndex(layout) as index:
            return _Taking(layout, store, settings, env, limits, index, start).run()
    except GitError as error:
        raise SnapshotFailed(f"snapshot: {error.message}", "git status may say more") from error
    except OSError as error:
        raise SnapshotFailed(f"snapshot: {error.strerror}: {error.filename}") from error


def staged(layout: Layout, store: Store, env: Mapping[str, str]) -> Snapshot:
    """The tree-id of what is staged: the user's index, as it is.

    Raises:
        SnapshotFailed: the index has unmerged paths or cannot be read.
    """
    start = time.monotonic()
    folder = os.path.join(layout.durable, "worktrees")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    copy = os.path.join(folder, f"staged-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        if os.path.exists(layout.index):
            with open(layout.index, "rb") as real, open(copy, "xb") as scratch:
                scratch.write(real.read())
        git = layout.git(env).replace(index=copy, objects=store.objects)
        tree_id = git.line("write-tree", "--missing-ok")
    except GitError as error:
        raise SnapshotFailed(f"snapshot of the index: {error.message}", "finish the merge first") from error
    finally:
        for path in (copy, copy + ".lock"):
            if os.path.lexists(path):
                os.unlink(path)
    return Snapshot(tree_id=tree_id, elapsed_ms=_ms(start))


class _Taking:
    """One snapshot under way: the parts of `take` that share its index and its clock."""

    def __init__(
        self,
        layout: Layout,
        store: Store,
        settings: Settings,
        env: Mapping[str, str],
        limits: Limits,
        index: PrivateIndex,
        start: float,
    ) -> None:
        self._root = os.fsencode(layout.worktree)
        self._git: Git = layout.git(env).replace(index=index.path, objects=store.objects)
        self._settings = settings
        self._limits = limits
        self._index = index
        self._start = start
        self._live = os.path.basename(os.fsencode(layout.live))
        self._skipped: dict[bytes, Skipped] = {}

    def run(self) -> Snapshot:
        gone = self._drop_extras()
        tracked = self._changed()
        fresh = self._fresh()
        if tracked or fresh or gone or not self._index.last:
            self._add(tracked, fresh)
            tree_id = self._git.line("write-tree", "--missing-ok")
            self._index.remember(tree_id)
        skipped = tuple(self._skipped[path] for path in sorted(self._skipped))
        return Snapshot(tree_id=self._index.last, skipped=skipped, elapsed_ms=_ms(self._start))

    def _changed(self) -> list[bytes]:
        """Tracked paths whose stat data differs: edited, gone, unmerged, intended to be added."""
        names = self._git.run("diff-files", "-z", "--name-only", "--ignore-submodules=dirty")
        return list(dict.fromkeys(split_z(names)))

    def _fresh(self) -> list[tuple[bytes, int]]:
        """Untracked paths that may enter, with their sizes, within the limits on files and bytes."""
        taken: list[tuple[bytes, int]] = []
        total = 0
        for path in split_z(self._git.run("ls-files", "-o", "-z", "--exclude-standard")):
            if path.partition(b"/")[0] == self._live:
                continue
            if self._limits.files and len(taken) >= self._limits.files:
                self._skip(path, f"over the {self._limits.files} new files that a hook takes in at once", tracked=False)
                continue
            try:
                why, size = untracked.objection(self._root, path, max_bytes=self._settings.max_untracked_bytes)
            except OSError:
                continue  # gone, or its folder is: it is not part of the work tree any more
            if why is None and self._limits.size_bytes and total + size > self._limits.size_bytes:
                why = f"over the {untracked.size_text(self._limits.size_bytes)} that a hook takes in at once"
            if why is not None:
                self._skip(path, why, tracked=False)
                continue
            total += size
            taken.append((path, size))
        return taken

    def _drop_extras(self) -> bool:
        """Whether paths left the index that were let in as untracked and are now ignored, secret or too large."""
        if not self._index.extras:
            return False
        listed = b"\0".join(self._index.extras) + b"\0"
        ignored = set(split_z(self._git.attempt("check-ignore", "-z", "--stdin", "--no-index", stdin=listed).stdout))
        for path in self._index.extras - ignored:
            try:
                why, _ = untracked.objection(
                    self._root, path, max_bytes=self._settings.max_untracked_bytes, known=True
                )
            except OSError:
                continue  # gone: diff-files tells, and update-index removes it
            if why is not None:
                ignored.add(path)
        if ignored:
            self._git.run("update-index", "--force-remove", "-z", "--stdin", stdin=b"\0".join(ignored) + b"\0")
            self._index.extras -= ignored
        return bool(ignored)

    def _add(self, tracked: list[bytes], fresh: list[tuple[bytes, int]]) -> None:
        """Everything is in the index but what is named: tracked paths in any case, untracked ones while there is time."""
        batches = _batches(fresh)
        first = next(batches, [])
        self._update(tracked, first)
        for batch in batches:
            if self._limits.seconds and time.monotonic() - self._start > self._limits.seconds * 0.7:
                for path in batch:
                    self._skip(path, "not hashed within orch.hookBudget", tracked=False)
                continue
            self._update([], batch)

    def _update(self, tracked: list[bytes], fresh: list[bytes]) -> None:
        """The paths are in the index; those that never go in are found by halves, left out and named."""
        lost = self._try(tracked + fresh)
        known = frozenset(tracked) - self._index.extras
        for path, why in lost.items():
            why = self._try([path]).get(path, "")  # once more: it may have changed under our hands
            if why:
                self._skip(path, why, tracked=path in known)
        self._index.extras.update(path for path in fresh if path not in self._skipped)

    def _try(self, paths: list[bytes]) -> dict[bytes, str]:
        if not paths:
            return {}
        done = self._git.attempt(*_UPDATE, stdin=b"\0".join(paths) + b"\0")
        if done.code == 0:
            return {}
        if len(paths) == 1:
            return {paths[0]: _why(self._root, paths[0], done.stderr)}
        middle = len(paths) // 2
        return {**self._try(paths[:middle]), **self._try(paths[middle:])}

    def _skip(self, path: bytes, why: str, *, tracked: bool) -> None:
        self._skipped[path] = Skipped(path=decode(path), reason=why, tracked=tracked)


def hidden_edits(git: Git, worktree: str) -> tuple[Skipped, ...]:
    """Tracked files whose edits git was told not to see (assume-unchanged, skip-worktree) and that do differ.

    Slow on a large index, and so the supervisor's to ask, not the hook's.
    """
    marked: dict[bytes, str] = {}
    for item in split_z(git.run("ls-files", "-v", "-z")):
        tag, path = item[:1], item[2:]
        if tag == b"S":
            marked[path] = "edited, hidden by skip-worktree"
        elif tag.islower():
            marked[path] = "edited, hidden by assume-unchanged"
    root = os.fsencode(worktree)
    marked = {path: why for path, why in marked.items() if os.path.isfile(os.path.join(root, path))}
    edited = _edited(git, list(marked))
    return tuple(Skipped(path=decode(path), reason=marked[path], tracked=True) for path in edited)


def _edited(git: Git, paths: list[bytes]) -> list[bytes]:
    """Those of the paths whose content in the work tree is not what the index has."""
    if not paths:
        return []
    listed = git.run("ls-files", "-s", "-z", "--", *(b":(literal)" + path for path in paths))
    in_index = {}
    for item in split_z(listed):
        head, _, path = item.partition(b"\t")
        in_index[path] = head.split()[1]
    plain = [path for path in paths if b"\n" not in path]
    hashed = git.run("hash-object", "--stdin-paths", stdin=b"\n".join(plain) + b"\n").split()
    return [path for path, oid in zip(plain, hashed, strict=True) if in_index.get(path) != oid]


def _batches(fresh: list[tuple[bytes, int]]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    total = 0
    for path, size in fresh:
        if batch and (len(batch) >= _BATCH_FILES or total + size > _BATCH_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(path)
        total += size
    if batch:
        yield batch


def _why(root: bytes, path: bytes, stderr: bytes) -> str:
    full = os.path.join(root, path)
    if os.path.isfile(full) and not os.access(full, os.R_OK):
        return "unreadable"
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if not line.startswith("fatal: Unable to")]
    said = lines[-1].removeprefix("error: ").removeprefix("fatal: ")[:120] if lines else "git gave no reason"
    return f"cannot be added: {said}"


def _ms(start: float) -> int:
    return int((time.monotonic() - start) * 1000)


