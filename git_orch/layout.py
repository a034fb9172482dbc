"""Where everything lies: one function, used by the hook and by the command line alike.

`git worktree list` and `dirname .git` both mislead in a submodule, a bare repository or one with a separate git
directory; git's own answer for the common directory does not.
"""

from __future__ import annotations

import os

from git_orch.errors import EnvironmentProblem, GitError
from git_orch.git import Git, decode
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_QUESTIONS = (
    "--path-format=absolute",
    "--git-common-dir",
    "--git-dir",
    "--git-path",
    "index",
    "--git-path",
    "objects",
    "--show-object-format",
    "--show-toplevel",
)


class Layout(Record):
    """The places of one repository as seen from one of its worktrees; all paths are absolute.

    `worktree` is empty in a bare repository. `live` is `.orch`, `durable` is `<git common dir>/orch`.
    """

    worktree: str
    common_dir: str
    git_dir: str
    index: str
    objects: str
    object_format: str
    live: str
    durable: str

    @property
    def pending(self) -> str:
        """The folder of the registry's entries."""
        return os.path.join(self.live, "pending")

    @property
    def store(self) -> str:
        """The scratch repository."""
        return os.path.join(self.durable, "store.git")

    @property
    def runs(self) -> str:
        """The folder that holds one folder a run, kept after its end."""
        return os.path.join(self.durable, "runs")

    def run_dir(self, run_id: str) -> str:
        """The lasting folder of one run."""
        return os.path.join(self.runs, run_id)

    def git(self, env: Mapping[str, str]) -> Git:
        """git, looking at this worktree."""
        return Git(env=dict(env), cwd=self.worktree or self.git_dir, git_dir=self.git_dir, work_tree=self.worktree)


def locate(cwd: str, env: Mapping[str, str], *, orch_dir: str = "") -> Layout:
    """The layout of the repository that `cwd` lies in; GIT_DIR and GIT_WORK_TREE of `env` are honoured.

    Args:
        orch_dir: the setting `orch.dir`, another name for `.orch`.

    Raises:
        EnvironmentProblem: there is no repository, or git refuses it.
    """
    git = Git(env=dict(env), cwd=cwd, git_dir=env.get("GIT_DIR", ""), work_tree=env.get("GIT_WORK_TREE", ""))
    done = git.attempt("rev-parse", *_QUESTIONS)
    lines = decode(done.stdout).split("\n")[:-1]
    if len(lines) < 5:
        raise _refused(git.failure(("rev-parse",), done))
    if len(lines) > 6:
        raise EnvironmentProblem("the repository's path holds a newline", "move it to a path without one")
    common_dir, git_dir, index, objects, object_format = lines[:5]
    live, durable = places(common_dir, orch_dir)
    return Layout(
        worktree=lines[5] if len(lines) == 6 else "",
        common_dir=common_dir,
        git_dir=git_dir,
        index=index,
        objects=objects,
        object_format=object_format,
        live=live,
        durable=durable,
    )


def places(common_dir: str, orch_dir: str = "") -> tuple[str, str]:
    """`.orch` and `<common dir>/orch` of a repository, the same for all its worktrees.

    `.orch` stands beside a common directory that is called `.git`, and inside any other (bare, submodule, separate).
    """
    durable = os.path.join(common_dir, "orch")
    if os.path.basename(common_dir) != ".git":
        return os.path.join(durable, "live"), durable
    return os.path.join(os.path.dirname(common_dir), orch_dir or ".orch"), durable


def _refused(error: GitError) -> EnvironmentProblem:
    said = error.stderr.strip()
    if "not a git repository" in said or not said:
        return EnvironmentProblem("not in a git repository", "go to one, or `git init` first")
    if "dubious ownership" in said:
        return EnvironmentProblem(
            "git refuses this repository: it belongs to another user", "see `git help config`, safe.directory"
        )
    return EnvironmentProblem(f"git cannot read this repository: {said.splitlines()[-1]}")
