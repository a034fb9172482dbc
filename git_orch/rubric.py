"""The text by which agents judge beside the project's rules: a design, a list of what matters here.

`--rubric FILE` is read as it lies on the disk: a person has just named it. What `orch.rubric` names inside the work
tree is the base's version, for the tree under review must not bring the measure that it is judged by.
"""

from __future__ import annotations

import os

from git_orch import atomic
from git_orch.errors import UsageError
from git_orch.git import decode
from git_orch.prompt import MOST_RUBRIC_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.workspace import Workspace


def named(path: str, cwd: str) -> str:
    """The text of a file that a person named.

    Raises:
        UsageError: there is no such text.
    """
    return _checked(atomic.read(os.path.realpath(os.path.join(cwd, path))), f"--rubric: `{path}`")


def configured(workspace: Workspace, base_tree_id: str) -> str:
    """The text that `orch.rubric` names, "" where that is not set.

    Raises:
        UsageError: there is no such text.
    """
    path = workspace.settings.rubric
    if not path:
        return ""
    home = workspace.env.get("HOME", "")
    full = os.path.join(home, path[2:]) if path.startswith("~/") and home else path
    inside = _inside(full, workspace.layout.worktree)
    if not inside:
        return _checked(atomic.read(os.path.realpath(full)), f"orch.rubric: `{path}`")
    done = workspace.store.git().attempt("cat-file", "blob", f"{base_tree_id}:{inside}")
    return _checked(done.stdout if done.code == 0 else None, f"orch.rubric: `{path}` in the base")


def _inside(path: str, worktree: str) -> str:
    """The path from the top of the work tree, "" where it lies outside."""
    if not os.path.isabs(path):
        normal = os.path.normpath(path)
        return "" if normal.startswith("..") else normal
    below = os.path.relpath(os.path.realpath(path), os.path.realpath(worktree)) if worktree else ".."
    return "" if below.startswith("..") else below


def _checked(raw: bytes | None, what: str) -> str:
    if raw is None:
        raise UsageError(f"{what} is no file that can be read", "name a text file: a design, a list of what matters")
    if len(raw) > MOST_RUBRIC_BYTES or b"\0" in raw:
        raise UsageError(f"{what} is no text of at most {MOST_RUBRIC_BYTES >> 10} KiB", "name a shorter one")
    return decode(raw)
