"""The commits at a gate, each with its base: as a person names them, or as git says at a push."""

from __future__ import annotations

from git_orch import target
from git_orch.errors import UsageError
from git_orch.gate import Tip
from git_orch.git import decode, encode
from git_orch.lineage import of_change
from git_orch.model import Base, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.git import Git
    from git_orch.workspace import Workspace

_MOST_REFS = 1000
_HEX = frozenset("0123456789abcdef")


class Pushed(Record):
    """One line of what git tells a pre-push hook; an object id of zeros stands for a ref that is not there."""

    local_ref: str
    local_oid: str
    remote_ref: str
    remote_oid: str

    @property
    def deletes(self) -> bool:
        """Whether the ref is taken away on the other side."""
        return not self.local_oid.strip("0")


def pushed_lines(raw: bytes) -> list[Pushed]:
    """The lines of a pre-push hook's standard input."""
    fields = [line.split(" ") for line in decode(raw).splitlines()]
    return [Pushed(local_ref=f[0], local_oid=f[1], remote_ref=f[2], remote_oid=f[3]) for f in fields if len(f) == 4]


def of_push(workspace: Workspace, pushed: Pushed, remote: str) -> Tip | None:
    """The commit that a push would bring to the remote; None where it brings none (a deletion, a tag of a blob).

    Its base is where it left what the remote has of that ref, by git's own word; of a new ref, of all that is known of
    the remote; of a remote that nothing is known of, a new fork, of all that any other remote has.

    Raises:
        BaseUnknown: a shallow history cannot prove it.
    """
    commit = "" if pushed.deletes else target.commit_of(workspace.git, pushed.local_oid)
    if not commit:
        return None
    name = _short(pushed.remote_ref)
    there = target.commit_of(workspace.git, pushed.remote_oid) if pushed.remote_oid.strip("0") else ""
    if there:
        base = target.base_of_others(workspace, [there], commit, f"{remote}/{name}")
    else:
        base = target.base_of_others(
            workspace, _known_of(workspace, remote) or _known_of(workspace, ""), commit, remote
        )
    return _tip(workspace, name, commit, base)


def of_revision(workspace: Workspace, rev: str, base: str = "") -> Tip:
    """The commit that a person names ("" for HEAD), with the base that a push of it would have.

    Raises:
        UsageError: there is no such revision.
        BaseUnknown: a shallow history cannot prove the base.
    """
    name = rev or "HEAD"
    branch = target.branch_name(workspace.git) if name == "HEAD" else name
    # A name that git does not know is no line of its answer's: all of them are asked for at once.
    there = [f"{branch}@{{push}}", f"{branch}@{{upstream}}"] if branch else []
    kinds = ("commit", "tree")
    names = [f"{each}^{{{kind}}}" for each in (name, base or name, *there) for kind in kinds]
    found = _objects(workspace.git, names)
    commit, tree = found[0], found[1]
    if not commit:
        raise UsageError(f"`{name}` is no revision here", "git orch gate [REV...]; git log --oneline shows some")
    asked = Base(tree_id=found[3], name=base, commit=found[2]) if base else None
    known = [oid for oid in found[4::2] if oid][:1]
    return _tip(workspace, branch or name, commit, asked or _base(workspace, name, branch, commit, known), tree)


def each(workspace: Workspace, tip: Tip) -> list[Tip]:
    """Every commit between the base and the tip, oldest first, compared with its own first parent."""
    git = workspace.git
    known = [f"^{tip.base.commit}"] if tip.base.commit else []
    commits = decode(git.run("rev-list", "--reverse", "--topo-order", tip.commit, *known)).split()
    return [_tip(workspace, f"{tip.name} {commit[:7]}", commit, _parent(workspace, commit)) for commit in commits]


def _base(workspace: Workspace, name: str, branch: str, commit: str, known: Sequence[str]) -> Base:
    """What the commit is compared with: in CI as that says, else where it left its counterpart on the remote."""
    in_ci = target.base_in_ci(workspace, commit) if name == "HEAD" else None
    if in_ci is not None:
        return in_ci
    if known:
        return target.base_of_others(workspace, known, commit, f"the remote's {branch}")
    there_already = target.base_of_others(workspace, _known_of(workspace, ""), commit, "what a remote has")
    if there_already.commit == commit:
        return there_already
    return target.base_of_commit(workspace, branch or name, commit)


def _objects(git: Git, names: Sequence[str]) -> list[str]:
    """The object id of each name, "" where it names nothing."""
    if any("\n" in name for name in names):
        return [""] * len(names)
    asked = encode("".join(f"{name}\n" for name in names))
    lines = decode(git.attempt("cat-file", "--batch-check=%(objectname)", stdin=asked).stdout).splitlines()
    return [line if set(line) <= _HEX else "" for line in lines]


def _parent(workspace: Workspace, commit: str) -> Base:
    parent = target.commit_of(workspace.git, f"{commit}^1")
    if not parent:
        return Base(tree_id=target.empty_tree(workspace.layout.object_format), name="nothing")
    return Base(tree_id=target.tree_of(workspace.git, parent), name=parent[:7], commit=parent)


def _tip(workspace: Workspace, name: str, commit: str, base: Base, tree: str = "") -> Tip:
    tree = tree or target.tree_of(workspace.git, commit)
    if not base.tree_id:
        raise UsageError(f"--base: `{base.name}` is no revision here", "git log --oneline shows some")
    changes = workspace.store.changed(base.tree_id, tree) if base.tree_id != tree else []
    return Tip(
        name=name,
        commit=commit,
        tree_id=tree,
        base=base,
        changes=tuple((change.path, *of_change(change)) for change in changes),
    )


def _known_of(workspace: Workspace, remote: str) -> Sequence[str]:
    """The commits that the remote is known to have; of a remote that is only a URL, or "", those of all remotes."""
    pattern = f"refs/remotes/{remote}/"
    is_name = remote and "*" not in remote and ":" not in remote
    words = ("for-each-ref", f"--count={_MOST_REFS}", "--sort=-committerdate", "--format=%(objectname) %(objecttype)")
    listed = decode(workspace.git.run(*words, pattern if is_name else "refs/remotes/")).splitlines()
    return list(dict.fromkeys(oid for oid, _, kind in (line.partition(" ") for line in listed) if kind == "commit"))


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
