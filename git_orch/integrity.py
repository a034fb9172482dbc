"""Whether the user's git directory is as it was before a job that could have written to it (tier 2).

Hooks and settings that appear during a review would run as the person at the next git command, and no review needs to
make them: whoever finds some takes them for the reviewer's. Refs, HEAD and the index change whenever the person goes on
working: that they did is told, by whom is not known.
"""

from __future__ import annotations

import os
from _blake2 import blake2b
from _stat import S_ISDIR

from git_orch import atomic
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from git_orch.registry import Intent

    Look = dict[str, str]  # path: what it was, in short

_SETTINGS = ("config", "config.worktree", "info/attributes", "commondir", "gitdir")
_MOVING = ("HEAD", "packed-refs", "refs", "index", "MERGE_HEAD", "ORIG_HEAD", "logs/refs/stash")


class Change(Record):
    """What differs from before: paths that steer git, and paths that move as one works."""

    settings: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()


def look(intent: Intent) -> tuple[Look, Look]:
    """The git directory of this moment: what steers git, by content, and what moves as one works, by stat."""
    folders = dict.fromkeys((intent.common_dir, intent.git_dir))
    steering: Look = {}
    moving: Look = {}
    for folder in folders:
        for name in _SETTINGS:
            _note(steering, os.path.join(folder, name), _content)
        for name in _MOVING:
            _note(moving, os.path.join(folder, name), _stat)
    _note(steering, os.path.join(intent.common_dir, "hooks"), _content)
    return steering, moving


def change(before: tuple[Look, Look], after: tuple[Look, Look]) -> Change:
    """What differs between two looks."""
    return Change(settings=_different(before[0], after[0]), moved=_different(before[1], after[1]))


def _different(before: Look, after: Look) -> tuple[str, ...]:
    return tuple(sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path)))


def _note(seen: Look, path: str, how: Callable[[str, os.stat_result], str]) -> None:
    """The path, with all below it where it is a folder, is in what was seen; nothing where it is not there."""
    try:
        status = os.lstat(path)
        names = os.listdir(path) if S_ISDIR(status.st_mode) else None
    except OSError:
        return
    if names is None:
        seen[path] = how(path, status)
        return
    for name in names:
        if not name.endswith(".lock"):
            _note(seen, os.path.join(path, name), how)


def _stat(_path: str, status: os.stat_result) -> str:
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _content(path: str, status: os.stat_result) -> str:
    """Type, mode and content; of a configuration without its branches, which `git push -u` adds to."""
    raw = atomic.read(path)
    if raw is None:
        return f"{status.st_mode:o} {os.readlink(path) if os.path.islink(path) else _stat(path, status)}"
    if os.path.basename(path) == "config":
        raw = _without_branches(raw)
    return f"{status.st_mode:o} {blake2b(raw, digest_size=16).hexdigest()}"


def _without_branches(raw: bytes) -> bytes:
    kept = []
    in_branch = False
    for line in raw.splitlines():
        header = line.strip()
        if header.startswith(b"["):  # alone on its line: another section might follow it there
            in_branch = header.startswith(b'[branch "') and header.endswith(b'"]') and header.count(b"[") == 1
        if not in_branch:
            kept.append(line)
    return b"\n".join(kept)
