"""Where symbolic links lead. None is followed: only names are looked at, below the tree."""

from __future__ import annotations

import os
import posixpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from git_orch.model import Finding
    from git_orch.reviewers.static.source import Source

# As many as Linux follows (path_resolution(7)).
_MOST_STEPS = 40


def check(source: Source) -> Iterator[Finding]:
    """A finding if the link is absolute, leads out of the tree, or to nothing."""
    target = os.readlink(source.path)
    shown = target.decode("utf-8", "replace")
    if target.startswith(b"/"):
        yield source.finding("symlink-absolute", f"link to `{shown}`: that path is of this machine alone", line=1)
        return
    place = _target(source.path, target)
    if _is_outside(place):
        yield source.finding("symlink-outside", f"link to `{shown}`, which is outside of the repository", line=1)
    elif not _leads_somewhere(place):
        yield source.finding("symlink-broken", f"link to `{shown}`, which is not there", line=1)


def _target(path: bytes, target: bytes) -> bytes:
    """The path that the link's text names, relative to the tree."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _is_outside(path: bytes) -> bool:
    return path == b".." or path.startswith((b"../", b"/"))


def _leads_somewhere(path: bytes) -> bool:
    """Whether something is at the path, or behind the links there. A link that leaves the tree is told elsewhere."""
    for _ in range(_MOST_STEPS):
        if _is_outside(path):
            return True
        if not os.path.lexists(path):
            return False
        if not os.path.islink(path):
            return True
        path = _target(path, os.readlink(path))
    return False
