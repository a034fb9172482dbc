"""What is to be reviewed, and against what: a tree and its base, proved or refused, never guessed."""

from __future__ import annotations

import os

from git_orch import snapshot
from git_orch.errors import BaseUnknown, NothingToReview, UsageError
from git_orch.model import Base, Record, Skipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.git import Git
    from git_orch.layout import Layout
    from git_orch.workspace import Workspace


class Target(Record):
    """A tree, what it is compared with, and its name for people; `skipped` is what a snapshot left out."""

    tree_id: str
    base: Base
    subject: str
    commit: str = ""
    head: str = ""
    skipped: tuple[Skipped, ...] = ()
    snapshot_ms: int = 0


class Question(Record):
    """What a person asked for: a REV or a range, or the work tree, or what is staged."""

    rev: str = ""
    base: str = ""
    staged: bool = False
    all_files: bool = False


def resolve(question: Question, workspace: Workspace) -> Target:
    """The target of a review by hand.

    Raises:
        UsageError: a revision is none, or two ways of asking meet.
        BaseUnknown: a shallow history cannot prove the base.
        NothingToReview: the tree is as its base.
        SnapshotFailed: the work tree could not be read.
    """
    if question.staged and question.rev:
        raise UsageError("--staged and a revision exclude each other", "leave one of them out")
    target = _of_revision(question, workspace) if question.rev else _of_worktree(question, workspace)
    if question.all_files:
        target = target.replace(base=_nothing(workspace))
    if target.tree_id == target.base.tree_id:
        raise _nothing_to_review(question, target, workspace)
    return target


def _of_worktree(question: Question, workspace: Workspace) -> Target:
    if not workspace.layout.worktree:
        raise UsageError("a bare repository has no work tree", "name a revision: git orch review REV")
    head = commit_of(workspace.git, "HEAD")
    if question.base:
        base = _base(workspace, question.base, required=head)
    else:
        base = _worktree_base(workspace, head)
    taken = (
        snapshot.staged(workspace.layout, workspace.store, workspace.env)
        if question.staged
        else snapshot.take(workspace.layout, workspace.store, workspace.settings, workspace.env, snapshot.Limits())
    )
    return Target(
        tree_id=taken.tree_id,
        base=base,
        subject="staged changes" if question.staged else "working tree",
        head=head,
        skipped=taken.skipped,
        snapshot_ms=taken.elapsed_ms,
    )


def _worktree_base(workspace: Workspace, head: str) -> Base:
    branch = branch_name(workspace.git)
    configured = dict(workspace.settings.branch_bases).get(branch, "")
    if configured:
        return _base(workspace, configured, required=head)
    if not head:
        return _nothing(workspace)
    return Base(tree_id=tree_of(workspace.git, head), name="HEAD", commit=head)


def _of_revision(question: Question, workspace: Workspace) -> Target:
    git = workspace.git
    left, dots, right = _range(question.rev)
    tip = _commit(git, right or "HEAD")
    if question.base:
        base = _base(workspace, question.base, required=tip)
    elif dots:
        base = _merge_base(workspace, left or "HEAD", tip)
    else:
        base = _base_of_commit(workspace, right, tip)
    return Target(tree_id=tree_of(git, tip), base=base, subject=question.rev, commit=tip, head=commit_of(git, "HEAD"))


def _base_of_commit(workspace: Workspace, name: str, tip: str) -> Base:
    """A branch is compared with where it left the default branch, any other commit with its first parent."""
    git = workspace.git
    is_branch = git.attempt("show-ref", "--verify", "--quiet", f"refs/heads/{name}").code == 0
    configured = dict(workspace.settings.branch_bases).get(name, "") if is_branch else ""
    if configured:
        return _base(workspace, configured, required=tip)
    trunk = default_branch(git) if is_branch else ""
    if trunk and commit_of(git, trunk) != tip:
        return _merge_base(workspace, trunk, tip)
    parent = commit_of(git, f"{tip}^1")
    if parent:
        return Base(tree_id=tree_of(git, parent), name=f"{name}^", commit=parent)
    if _is_cut(git, tip):
        raise _shallow()
    return _nothing(workspace)


def _base(workspace: Workspace, name: str, *, required: str) -> Base:
    """The base that somebody named: a commit, or a tree."""
    git = workspace.git
    commit = commit_of(git, name)
    tree = tree_of(git, commit or name)
    if not tree:
        raise UsageError(f"--base: `{name}` is no revision here", "git log --oneline shows some")
    return Base(tree_id=tree, name=name, commit=commit)


def _merge_base(workspace: Workspace, other: str, tip: str) -> Base:
    """Where `tip` left the history of `other`.

    A shallow history proves it only where `other` itself is an ancestor: any other common commit may have a better one
    behind the cut.
    """
    git = workspace.git
    commit = _commit(git, other)
    if git.attempt("merge-base", "--is-ancestor", commit, tip).code == 0:
        return Base(tree_id=tree_of(git, commit), name=other, commit=commit)
    if git.line("rev-parse", "--is-shallow-workspace") == "true":
        raise _shallow()
    found = git.attempt("merge-base", commit, tip).stdout.decode("ascii", "replace").split()
    if not found:
        raise BaseUnknown(f"base unknown: {other} and {tip[:7]} have no common commit", "name one with --base REV")
    return Base(tree_id=tree_of(git, found[0]), name=f"where it left {other}", commit=found[0])


def default_branch(git: Git) -> str:
    """The branch that others start from: the upstream's, else origin's, else a local main or master; "" if none."""
    for remote in ("upstream", "origin"):
        done = git.attempt("symbolic-ref", "--quiet", "--short", f"refs/remotes/{remote}/HEAD")
        if done.code == 0:
            return done.stdout.decode("utf-8", "surrogateescape").strip()
    for name in ("upstream/main", "upstream/master", "origin/main", "origin/master"):
        if git.attempt("show-ref", "--verify", "--quiet", f"refs/remotes/{name}").code == 0:
            return name
    for name in ("main", "master"):
        if git.attempt("show-ref", "--verify", "--quiet", f"refs/heads/{name}").code == 0:
            return name
    return ""


def branch_name(git: Git) -> str:
    """The checked-out branch, "" where HEAD is detached."""
    done = git.attempt("symbolic-ref", "--quiet", "--short", "HEAD")
    return done.stdout.decode("utf-8", "surrogateescape").strip() if done.code == 0 else ""


def commit_of(git: Git, name: str) -> str:
    """The commit that a revision names, "" where it names none."""
    return _verify(git, f"{name}^{{commit}}")


def tree_of(git: Git, name: str) -> str:
    """The tree-id of a commit or tree, "" where it names none."""
    return _verify(git, f"{name}^{{tree}}")


def empty_tree(object_format: str) -> str:
    """The tree-id of the tree without entries: git knows it in every repository."""
    if object_format == "sha256":
        return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
    return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def within(pathspec: tuple[str, ...], layout: Layout, cwd: str) -> tuple[str, ...]:
    """Pathspecs as typed in `cwd`, as they read from the top of the work tree; those with magic are left as they are."""
    prefix = os.path.relpath(os.path.realpath(cwd), os.path.realpath(layout.worktree)) if layout.worktree else "."
    if prefix == "." or prefix.startswith(".."):
        return pathspec
    return tuple(spec if spec.startswith(":") else os.path.normpath(os.path.join(prefix, spec)) for spec in pathspec)


def _verify(git: Git, name: str) -> str:
    done = git.attempt("rev-parse", "--quiet", "--verify", "--end-of-options", name)
    return done.stdout.decode("ascii", "replace").strip() if done.code == 0 else ""


def _commit(git: Git, name: str) -> str:
    found = commit_of(git, name)
    if not found:
        raise UsageError(f"`{name}` is no revision here", "for a path, write it after --")
    return found


def _range(text: str) -> tuple[str, str, str]:
    for dots in ("...", ".."):
        left, found, right = text.partition(dots)
        if found:
            return left, dots, right
    return "", "", text


def _nothing(workspace: Workspace) -> Base:
    return Base(tree_id=empty_tree(workspace.layout.object_format), name="nothing")


def _is_cut(git: Git, commit: str) -> bool:
    """Whether a shallow clone ends at this commit: it has parents that are not here."""
    return b"\nparent " in git.run("cat-file", "commit", commit).partition(b"\n\n")[0]


def _shallow() -> BaseUnknown:
    return BaseUnknown(
        "base unknown: this clone is shallow", "git fetch --unshallow, or in Actions: fetch-depth: 0, or --base REV"
    )


def _nothing_to_review(question: Question, target: Target, workspace: Workspace) -> NothingToReview:
    at = f" ({target.base.commit[:7]})" if target.base.commit else ""
    if question.rev:
        return NothingToReview(f"nothing to review: {question.rev} is as {target.base.name}{at}")
    what = "nothing is staged that is not in" if question.staged else "the working tree is as"
    trunk = default_branch(workspace.git) or "BASE"
    return NothingToReview(
        f"nothing to review: {what} {target.base.name}{at}",
        f"for the commits of this branch: git orch review {trunk}..",
    )
