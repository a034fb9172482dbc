"""What of a user's repository may not change, in one value that can be compared."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.repo import Repo

OURS = ("orch", ".orch")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """All that belongs to the user: their index, refs, objects, settings, what `git status` says, and every file.

    `work_tree` has type, size, mtime and inode of each path; `git_files` the content of all files in the git directory
    but for the objects, of which `objects` has the names. Our own two folders are left out.
    """

    index: bytes
    refs: str
    objects: frozenset[str]
    git_files: dict[str, str]
    status: bytes
    stash: str
    work_tree: dict[str, tuple[int, int, int, int]]


def fingerprint(repo: Repo) -> Fingerprint:
    """The repository as it is, seen from this worktree; looking changes nothing."""
    common = Path(repo.git("rev-parse", "--path-format=absolute", "--git-common-dir"))
    index = Path(repo.git("rev-parse", "--path-format=absolute", "--git-path", "index"))
    is_bare = repo.git("rev-parse", "--is-bare-repository") == "true"
    files = [path for path in _files(common) if not path.is_relative_to(common / "objects")]
    return Fingerprint(
        index=index.read_bytes() if index.exists() else b"",
        refs=repo.git("for-each-ref", "--format=%(refname) %(objectname) %(symref)"),
        objects=frozenset(str(path.relative_to(common)) for path in _files(common / "objects")),
        git_files={str(path.relative_to(common)): _digest(path) for path in files},
        status=b"" if is_bare else _status(repo),
        stash=repo.git("stash", "list"),
        work_tree={} if is_bare else {str(path): _identity(path) for path in _files(repo.path)},
    )


def _status(repo: Repo) -> bytes:
    """What `git status` says; `--no-optional-locks`, for a plain one would itself write the index."""
    words = ("status", "--porcelain=v2", "-z", "--branch", "--ignored", "--untracked-files=all")
    lines = repo.git_bytes("--no-optional-locks", *words).split(b"\0")
    return b"\0".join(line for line in lines if not line.startswith(b"! .orch/"))


def _files(folder: Path) -> Iterator[Path]:
    """Every file and link below a folder, but for ours and, in a work tree, its git directory."""
    for top, names, files in os.walk(folder):
        names[:] = [name for name in names if name not in OURS and name != ".git"]
        here = Path(top)
        yield from (
            here / name for name in (*files, *names) if not (here / name).is_dir() or (here / name).is_symlink()
        )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "none"


def _identity(path: Path) -> tuple[int, int, int, int]:
    status = path.lstat()
    return status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino
