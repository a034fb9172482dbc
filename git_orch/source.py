"""Lines of the reviewed tree, out of the store, for those who print findings."""

from __future__ import annotations

from git_orch.errors import GitError
from git_orch.git import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.store import Store

_FEW = 16  # files that git reads in the time that loading libgit2 takes


class Source:
    """The text of a tree's files.

    A few are read by git itself. For more the store is opened by libgit2: it has no extension that libgit2 does not
    know, and sees every object by its alternates; a SHA-256 store is read by git in any case, with the same answers.
    Once the tree is gone (it was never committed, and the store was packed since), the evidence that was kept of
    `run_id` has the changed files.
    """

    def __init__(self, store: Store, tree_id: str, run_id: str = "") -> None:
        self._store = store
        self._tree_id = tree_id
        self._run_id = run_id
        self._read: dict[str, list[str] | None] = {}

    def __call__(self, path: str, first: int, last: int) -> list[str] | None:
        """Lines `first` to `last` of a file, without their ends; None where the tree has no such text."""
        if path not in self._read:
            blob = self._blob(path)
            self._read[path] = None if blob is None else blob.decode("utf-8", "replace").splitlines()
        lines = self._read[path]
        return None if lines is None else lines[max(first, 1) - 1 : last]

    def _blob(self, path: str) -> bytes | None:
        if self._store.object_format != "sha1" or len(self._read) < _FEW:
            return self._by_git(path)
        return self._by_libgit2(path)

    def _by_libgit2(self, path: str) -> bytes | None:
        import pygit2  # 70 ms

        try:
            repository = pygit2.Repository(self._store.path)
            entry = repository[self._tree_id].peel(pygit2.Tree)[encode(path).decode("utf-8")]
        except (KeyError, ValueError, UnicodeDecodeError, pygit2.GitError):
            return self._by_git(path)
        return bytes(entry.data) if isinstance(entry, pygit2.Blob) else None

    def _by_git(self, path: str) -> bytes | None:
        found = self._at(self._tree_id, path)
        if found is None and self._run_id:
            kept = self._store.evidence(self._run_id)
            found = self._at(kept.tree, path) if kept is not None else None
        return found

    def _at(self, tree_id: str, path: str) -> bytes | None:
        try:
            return self._store.git().run("cat-file", "blob", encode(f"{tree_id}:{path}"))
        except GitError:
            return None
