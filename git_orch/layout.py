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

    from git_orch.proc import Finished

QUESTION = (
    "rev-parse",
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
    """The layout of the repository that `cwd` lies in, or that GIT_DIR and GIT_WORK_TREE of `env` name.

    A hook of git's is given a GIT_DIR without a GIT_WORK_TREE, which would make any folder that it goes to the top of
    the work tree: where the repository found from `cwd` is the one that GIT_DIR names, it is taken as found.
    An index file named by GIT_INDEX_FILE (a commit under way) is taken for the worktree's, if it is there.

    Args:
        orch_dir: the setting `orch.dir`, another name for `.orch`.

    Raises:
        EnvironmentProblem: there is no repository, or git refuses it.
    """
    named, top, index = (_absolute(env, name) for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"))
    found = _ask(Git(env=dict(env), cwd=cwd), orch_dir)
    if (named or top) and (top or isinstance(found, GitError) or not _is_same(found.git_dir, named)):
        found = _ask(Git(env=dict(env), cwd=cwd, git_dir=named, work_tree=top), orch_dir)
    if isinstance(found, GitError):
        raise _refused(found)
    return found.replace(index=index) if os.path.isfile(index) else found


def _ask(git: Git, orch_dir: str) -> Layout | GitError:
    return _heard(git, git.attempt(*QUESTION), orch_dir)


def heard(git: Git, done: Finished, orch_dir: str = "") -> Layout:
    """The layout that is the answer of `git` to `QUESTION`, asked where no variable names a repository.

    Raises:
        EnvironmentProblem: there is no repository, or git refuses it.
    """
    found = _heard(git, done, orch_dir)
    if isinstance(found, GitError):
        raise _refused(found)
    return found


def _heard(git: Git, done: Finished, orch_dir: str) -> Layout | GitError:
    lines = decode(done.stdout).split("\n")[:-1]
    if len(lines) < 5:  # --show-toplevel fails where there is no work tree, and is therefore the last
        return git.failure(("rev-parse",), done)
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


def _absolute(env: Mapping[str, str], name: str) -> str:
    """A path of the environment's; it is relative to where the process was started, not to where git is sent."""
    return os.path.abspath(env[name]) if env.get(name) else ""


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


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
