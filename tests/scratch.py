"""The scratch store and the places of trees, as tests of both use them."""

from __future__ import annotations

import os
from pathlib import Path

from git_orch import layout, store
from git_orch.layout import Layout
from git_orch.place import Place, make_place, temp_root
from git_orch.registry import make_run_id
from git_orch.store import Store
from tests.repo import Repo

KEY = b"k" * 32


def layout_of(repo: Repo) -> Layout:
    return layout.locate(str(repo.path), os.environ)


def store_of(repo: Repo) -> Store:
    return store.ensure(layout_of(repo), os.environ)


def tree_of(repo: Repo, message: str = "change") -> str:
    """The tree-id of everything that lies in the worktree, committed."""
    repo.commit(message)
    return repo.git("rev-parse", "HEAD^{tree}")


def new_place(run_id: str = "", reviewer: str = "static", key: bytes = KEY) -> Place:
    return make_place(temp_root(os.environ), run_id or make_run_id(), reviewer, key)


def clear_places() -> None:
    """Every run's folder below the test's TMPDIR is disposed of."""
    from git_orch.disposal import dispose, leftovers

    root = temp_root(os.environ)
    for run_id in leftovers(root):
        assert dispose(root, run_id, KEY) == "disposed"


def content(folder: Path) -> dict[bytes, tuple[str, bytes]]:
    """Each path below the folder that is no folder, and each empty folder, with `x`, `-`, `l` or `d` and its bytes."""
    found = {}
    top = os.fsencode(folder)
    for parent, folders, files in os.walk(top):
        for name in (*folders, *files):
            path = os.path.join(parent, name)
            if os.path.islink(path):
                found[os.path.relpath(path, top)] = ("l", os.readlink(path))
            elif os.path.isfile(path):
                kind = "x" if os.stat(path).st_mode & 0o100 else "-"
                found[os.path.relpath(path, top)] = (kind, Path(os.fsdecode(path)).read_bytes())
            elif not os.listdir(path):
                found[os.path.relpath(path, top)] = ("d", b"")
    return found


def listed(repo: Repo, tree_id: str) -> dict[bytes, tuple[str, bytes]]:
    """The same of a tree, by git's own account."""
    kinds = {b"100644": "-", b"100755": "x", b"120000": "l", b"160000": "d"}
    found = {}
    for item in repo.git_bytes("ls-tree", "-r", "-z", tree_id).split(b"\0")[:-1]:
        head, _, path = item.partition(b"\t")
        mode, kind, oid = head.split()
        blob = repo.git_bytes("cat-file", "blob", oid.decode()) if kind == b"blob" else b""
        found[path] = (kinds[mode], blob)
    return found
