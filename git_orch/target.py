"""What is to be reviewed, and against what: a tree and its base, proved or refused, never guessed."""

from __future__ import annotations

import os

from git_orch import atomic, snapshot
from git_orch.errors import BaseUnknown, NothingToReview, UsageError
from git_orch.git import decode
from git_orch.model import Base, Record, Skipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
    if question.all_files and question.base:
        raise UsageError("--all-files and --base exclude each other", "leave one of them out")
    target = _of_revision(question, workspace) if question.rev else _of_worktree(question, workspace)
    # A tracked path that could not be read may well differ: that is unreviewed, and no "nothing to review".
    if target.tree_id == target.base.tree_id and not any(left_out.tracked for left_out in target.skipped):
        raise _nothing_to_review(question, target, workspace)
    return target


def _of_worktree(question: Question, workspace: Workspace) -> Target:
    if not workspace.layout.worktree:
        raise UsageError("there is no work tree here", "name a revision: git orch review REV")
    head = commit_of(workspace.git, "HEAD")
    base = _asked_base(question, workspace) or _worktree_base(workspace, head)
    place, store = workspace.layout, workspace.store
    if question.staged:
        taken = snapshot.staged(place, store, workspace.env)
    else:
        taken = snapshot.take(place, store, workspace.settings, workspace.env, snapshot.Limits())
    return Target(
        tree_id=taken.tree_id,
        base=base,
        subject="staged changes" if question.staged else "working tree",
        head=head,
        skipped=taken.skipped,
        snapshot_ms=taken.elapsed_ms,
    )


def _of_revision(question: Question, workspace: Workspace) -> Target:
    git = workspace.git
    left, dots, right = _range(question.rev)
    if dots and question.base:
        raise UsageError("a range and --base exclude each other", "leave one of them out")
    tip = _commit(git, right or "HEAD")
    base = _asked_base(question, workspace)
    if base is None and dots:
        base = _merge_base(workspace, left or "HEAD", tip)
    return Target(
        tree_id=tree_of(git, tip),
        base=base or _base_of_commit(workspace, right, tip),
        subject=question.rev,
        commit=tip,
        head=commit_of(git, "HEAD"),
    )


def _asked_base(question: Question, workspace: Workspace) -> Base | None:
    """The base by `--all-files` or `--base`: exactly what a person named, a commit or a tree."""
    if question.all_files:
        return _nothing(workspace)
    if not question.base:
        return None
    commit = commit_of(workspace.git, question.base)
    # A session's base is a snapshot of ours: its tree is in the store alone.
    tree = tree_of(workspace.git, commit or question.base) or tree_of(workspace.store.git(), question.base)
    if not tree:
        raise UsageError(f"--base: `{question.base}` is no revision here", "git log --oneline shows some")
    return Base(tree_id=tree, name=question.base, commit=commit)


def _worktree_base(workspace: Workspace, head: str) -> Base:
    """HEAD, unless the branch's own base or the pull request of a CI says otherwise."""
    if not head:
        return _nothing(workspace)
    configured = dict(workspace.settings.branch_bases).get(branch_name(workspace.git), "")
    if configured:
        return _merge_base(workspace, configured, head)
    return _base_in_ci(workspace, head) or Base(tree_id=tree_of(workspace.git, head), name="HEAD", commit=head)


def _base_of_commit(workspace: Workspace, name: str, tip: str) -> Base:
    """A branch is compared with where it left its base or the trunk, any other commit with its first parent."""
    git = workspace.git
    is_branch = any(_ref(git, f"refs/{kind}/{name}") == tip for kind in ("heads", "remotes"))
    configured = dict(workspace.settings.branch_bases).get(name, "") if is_branch else ""
    if configured:
        return _merge_base(workspace, configured, tip)
    in_ci = _base_in_ci(workspace, tip) if name == "HEAD" else None
    if in_ci is not None:
        return in_ci
    trunk = _trunk(git) if is_branch else ""
    if trunk and commit_of(git, trunk) != tip:
        return _merge_base(workspace, trunk, tip)
    return _first_parent(workspace, name, tip) or _nothing(workspace)


def _base_in_ci(workspace: Workspace, tip: str) -> Base | None:
    """The base of the pull or merge request that this is a job of: as GitHub and GitLab say it by their variables."""
    named = workspace.env.get("CI_MERGE_REQUEST_DIFF_BASE_SHA", "")
    if named:
        commit = commit_of(workspace.git, named)
        if not commit:
            raise _shallow(workspace.git, tip)
        return Base(tree_id=tree_of(workspace.git, commit), name="the merge request's base", commit=commit)
    branch = workspace.env.get("GITHUB_BASE_REF", "")
    if not branch:
        return None
    if _is_githubs_merge(workspace, tip):
        return _first_parent(workspace, "HEAD", tip)
    if not commit_of(workspace.git, f"refs/remotes/origin/{branch}"):
        raise BaseUnknown(f"base unknown: origin/{branch} is not here", f"git fetch origin {branch}, or --base REV")
    return _merge_base(workspace, f"refs/remotes/origin/{branch}", tip)


def _is_githubs_merge(workspace: Workspace, tip: str) -> bool:
    """Whether the commit is the merge into the base that GitHub itself made, so that its first parent is the base's.

    A request's own head can be a merge as well: behind its first parent lie commits that nobody has looked at.
    """
    ref, commit = (workspace.env.get(f"GITHUB_{name}", "") for name in ("REF", "SHA"))
    is_made_there = ref.startswith("refs/pull/") and ref.endswith("/merge") and commit == tip
    return is_made_there and _recorded_parents(workspace.git, tip) == 2


def base_of_commit(workspace: Workspace, name: str, tip: str) -> Base:
    """What a review by hand compares a commit, called by that name, with.

    Raises:
        BaseUnknown: a shallow history cannot prove it.
    """
    return _base_of_commit(workspace, name, tip)


def base_in_ci(workspace: Workspace, tip: str) -> Base | None:
    """What the pull or merge request that this is a job of compares the commit with; None where it is no such job.

    Raises:
        BaseUnknown: a shallow history cannot prove it.
    """
    return _base_in_ci(workspace, tip)


def base_of_others(workspace: Workspace, others: Sequence[str], tip: str, name: str) -> Base:
    """Where `tip` left the histories of all these commits together; the empty tree where it shares nothing with them.

    Raises:
        BaseUnknown: a shallow history cannot prove it.
    """
    if not others:
        return _nothing(workspace)
    git = workspace.git
    found = git.attempt("merge-base", tip, *others).stdout.decode("ascii", "replace").split()
    if not _reaches_far_enough(workspace, found[:1], tip, *others):
        raise _shallow(git, tip)
    if not found:
        return _nothing(workspace)
    return Base(tree_id=tree_of(git, found[0]), name=name, commit=found[0])


def _first_parent(workspace: Workspace, name: str, tip: str) -> Base | None:
    """The first parent of a commit, None where it is the first of its history."""
    git = workspace.git
    parent = commit_of(git, f"{tip}^1")
    if parent:
        return Base(tree_id=tree_of(git, parent), name=f"{name}^", commit=parent)
    if _recorded_parents(git, tip):
        raise _shallow(git, tip)
    return None


def _merge_base(workspace: Workspace, other: str, tip: str) -> Base:
    """Where `tip` left the history of `other`.

    A shallow history proves it where `other` itself is an ancestor, or where it is cut off behind the common commit
    only: else a better one may be behind the cut.
    """
    git, name = workspace.git, _short(other)
    commit = _commit(git, other)
    if git.attempt("merge-base", "--is-ancestor", commit, tip).code == 0:
        return Base(tree_id=tree_of(git, commit), name=name, commit=commit)
    found = git.attempt("merge-base", commit, tip).stdout.decode("ascii", "replace").split()
    if not _reaches_far_enough(workspace, found[:1], commit, tip):
        raise _shallow(git, tip)
    if not found:
        raise BaseUnknown(f"base unknown: {name} and {tip[:7]} have no common commit", "name one with --base REV")
    return Base(tree_id=tree_of(git, found[0]), name=f"where it left {name}", commit=found[0])


def _reaches_far_enough(workspace: Workspace, found: list[str], *tips: str) -> bool:
    """Whether no commit between the tips and what was found has parents that a shallow clone does not have."""
    cut = (atomic.read(os.path.join(workspace.layout.common_dir, "shallow")) or b"").split()
    if not cut:
        return True
    between = workspace.git.run("rev-list", *tips, *(f"^{commit}" for commit in found)).split()
    return not frozenset(cut).intersection(between)


def _trunk(git: Git) -> str:
    """The branch that others start from, as a full ref; "" if there is none.

    The upstream's default branch, else origin's (a fork's own is often behind), else a local main or master.
    """
    names = ["main", "master"]
    origin = git.attempt("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD")
    if origin.code == 0:
        names.insert(0, decode(origin.stdout).strip().removeprefix("refs/remotes/origin/"))
    candidates = ["refs/remotes/upstream/HEAD", *(f"refs/remotes/upstream/{name}" for name in names)]
    candidates += [f"refs/remotes/origin/{name}" for name in names]
    candidates += [f"refs/heads/{name}" for name in names[-2:]]
    listed = decode(git.run("for-each-ref", "--format=%(refname) %(symref)", *candidates)).splitlines()
    there = {ref: symref or ref for ref, _, symref in (line.partition(" ") for line in listed)}
    return next((there[ref] for ref in candidates if ref in there), "")


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/").removeprefix("refs/remotes/")


def branch_name(git: Git) -> str:
    """The checked-out branch, "" where HEAD is detached."""
    done = git.attempt("symbolic-ref", "--quiet", "--short", "HEAD")
    return decode(done.stdout).strip() if done.code == 0 else ""


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
    """Pathspecs as typed in `cwd`, as they read from the top of the work tree."""
    prefix = os.path.relpath(os.path.realpath(cwd), os.path.realpath(layout.worktree)) if layout.worktree else "."
    if prefix == "." or prefix.startswith(".."):
        return pathspec
    return tuple(_from_top(spec, prefix) for spec in pathspec)


def _from_top(spec: str, prefix: str) -> str:
    """One pathspec; its magic (`:(icase)x`, `:!x`) is kept, and `:(top)x` or `:/x` has no prefix."""
    if spec == ":":
        return spec
    if spec.startswith(":("):
        magic, _, path = spec.partition(")")
        magic += ")"
        is_top = "top" in magic[2:-1].split(",")
    else:
        path = spec[1:].lstrip("/!^") if spec.startswith(":") else spec
        magic = spec[: len(spec) - len(path)]
        is_top = "/" in magic
    return spec if is_top else magic + os.path.normpath(os.path.join(prefix, path))


def _ref(git: Git, name: str) -> str:
    """The object that a full ref names, "" where there is none; `refs/heads/topic~1` is none."""
    done = git.attempt("show-ref", "--verify", "--hash", name)
    return decode(done.stdout).strip() if done.code == 0 else ""


def _verify(git: Git, name: str) -> str:
    done = git.attempt("rev-parse", "--quiet", "--verify", "--end-of-options", name)
    return done.stdout.decode("ascii", "replace").strip() if done.code == 0 else ""


def _commit(git: Git, name: str) -> str:
    found = commit_of(git, name)
    if found:
        return found
    if name == "HEAD":
        raise UsageError("there is no commit yet", "git orch review takes all files as new")
    raise UsageError(f"`{name}` is no revision here", "for a path, write it after --")


def _range(text: str) -> tuple[str, str, str]:
    for dots in ("...", ".."):
        left, found, right = text.partition(dots)
        if found:
            return left, dots, right
    return "", "", text


def _nothing(workspace: Workspace) -> Base:
    return Base(tree_id=empty_tree(workspace.layout.object_format), name="nothing")


def _recorded_parents(git: Git, commit: str) -> int:
    """How many parents the commit itself names, be they here or behind the cut of a shallow clone."""
    return git.run("cat-file", "commit", commit).partition(b"\n\n")[0].count(b"\nparent ")


def _shallow(git: Git, tip: str) -> BaseUnknown:
    depth = git.line("rev-list", "--count", "--first-parent", tip)
    return BaseUnknown(
        f"base unknown: this clone is shallow (depth {depth})",
        "git fetch --unshallow, or in Actions: fetch-depth: 0, or --base REV",
    )


def _nothing_to_review(question: Question, target: Target, workspace: Workspace) -> NothingToReview:
    at = f" ({target.base.commit[:7]})" if target.base.commit else ""
    if question.rev:
        return NothingToReview(f"nothing to review: {question.rev} is as {target.base.name}{at}")
    what = "nothing is staged that is not in" if question.staged else "the working tree is as"
    said = f"nothing to review: {what} {target.base.name}{at}"
    if not target.base.commit and not target.head:
        said = "nothing to review: there is no commit yet, and " + (
            "nothing is staged" if question.staged else "no file"
        )
    if target.skipped:
        one, more = target.skipped[0], len(target.skipped) - 1
        return NothingToReview(said, f"left out: {one.path}: {one.reason}" + (f", and {more} more" if more else ""))
    trunk = _trunk(workspace.git)
    if not target.head:
        return NothingToReview(said)
    if trunk and commit_of(workspace.git, trunk) != target.head:
        return NothingToReview(said, f"for the commits of this branch: git orch review {_short(trunk)}..")
    return NothingToReview(said, "for the last commit: git orch review HEAD")
