"""A snapshot of a test's repository, and the plain way beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from git_orch import layout, snapshot, store
from git_orch.config import Settings
from git_orch.snapshot import Limits, Snapshot
from tests.repo import Repo
from tests.scratch import store_of


def take(
    repo: Repo, *, limits: Limits | None = None, env: Mapping[str, str] | None = None, **settings: Any
) -> Snapshot:
    """A snapshot of the repository's work tree; `settings` are fields of `Settings`."""
    where = env if env is not None else os.environ
    place = layout.locate(str(repo.path), where)
    return snapshot.take(place, store.ensure(place, where), Settings(**settings), where, limits or Limits())


@dataclass(frozen=True, slots=True)
class Plain:
    """What the plain way came to: the exit status of `git add -A`, what it said, and the tree made all the same."""

    code: int
    said: str
    tree_id: str


def plain(repo: Repo) -> Plain:
    """`git add -A` and `git write-tree` on a copy of the index, its objects elsewhere: what a quick script does."""
    index = Path(repo.git("rev-parse", "--path-format=absolute", "--git-path", "index"))
    objects = repo.git("rev-parse", "--path-format=absolute", "--git-path", "objects")
    scratch = Path(os.environ["TMPDIR"], f"plain-{os.urandom(4).hex()}")
    (scratch / "objects" / "info").mkdir(parents=True)
    (scratch / "objects" / "info" / "alternates").write_text(objects + "\n")
    if index.exists():
        shutil.copy2(index, scratch / "index")
    env = {
        **os.environ,
        "GIT_INDEX_FILE": str(scratch / "index"),
        "GIT_OBJECT_DIRECTORY": str(scratch / "objects"),
    }
    added = _git(repo, env, "-c", "core.hooksPath=/dev/null", "add", "-A", ":(top,exclude).orch", ":/")
    written = _git(repo, env, "write-tree")
    shutil.rmtree(scratch)
    return Plain(code=added.returncode, said=added.stderr, tree_id=written.stdout.strip())


def _git(repo: Repo, env: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *words], cwd=repo.path, env=env, capture_output=True, encoding="utf-8", errors="replace", check=False
    )


def names(repo: Repo, tree_id: str) -> list[str]:
    """The paths of a tree in the store."""
    return [entry.path for entry in store_of(repo).entries(tree_id)]


def content(repo: Repo, tree_id: str, path: str) -> bytes:
    """A file of a tree in the store."""
    return store_of(repo).git().run("cat-file", "blob", f"{tree_id}:{path}")


def mode(repo: Repo, tree_id: str, path: str) -> str:
    """The mode of a path of a tree in the store, as git writes it."""
    return next(entry.mode for entry in store_of(repo).entries(tree_id) if entry.path == path)
