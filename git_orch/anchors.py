"""Where findings stand in another tree than the one that they were reported on."""

from __future__ import annotations

from git_orch import findings
from git_orch.errors import GitError
from git_orch.git import decode, encode, split_z
from git_orch.model import Record
from git_orch.patch import FileChange, parse_hunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.findings import Anchor
    from git_orch.model import Finding
    from git_orch.store import Store

_HUNKS = ("-p", "-U0", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color")
_MOST_PATHS = 200


class _Side(Record):
    """A tree whose files are read as text."""

    store: Store
    tree: str

    def text(self, path: str) -> str:
        """The file's text, "" where there is none."""
        try:
            return self.store.git().run("cat-file", "blob", encode(f"{self.tree}:{path}")).decode("utf-8", "replace")
        except GitError:
            return ""


def stand(
    store: Store, reviewed: str, present: str, found: Sequence[Finding], *, renames: bool = False
) -> list[Anchor]:
    """For each finding in the tree `reviewed` where it stands in the tree `present`; two git calls a finding at most.

    `renames`: also in a file of another name. Both trees have to be whole then: of evidence, all else would look new.
    """
    paths = sorted({finding.path for finding in found})
    if not paths or reviewed == present:
        return [findings.Still(line=finding.start_line) for finding in found]
    changes = _changes(store, reviewed, present, paths, renames)
    old, new = _Side(store=store, tree=reviewed), _Side(store=store, tree=present)
    return [_anchor(finding, changes.get(finding.path), old, new) for finding in found]


def _anchor(finding: Finding, change: FileChange | None, old: _Side, new: _Side) -> Anchor:
    first = findings.reanchor(finding, change, "", "")
    if not isinstance(first, findings.Gone) or change is None or change.deleted:
        return first
    return findings.reanchor(finding, change, old.text(finding.path), new.text(change.new_path))


def _changes(store: Store, reviewed: str, present: str, paths: Sequence[str], renames: bool) -> dict[str, FileChange]:
    git = store.git()
    if renames and _some_left(store, reviewed, present, paths):
        return parse_hunks(git.run("diff-tree", "-r", *_HUNKS, "-M", reviewed, present))
    found: dict[str, FileChange] = {}
    for first in range(0, len(paths), _MOST_PATHS):
        where = [encode(path) for path in paths[first : first + _MOST_PATHS]]
        words = ("--literal-pathspecs", "diff-tree", "-r", *_HUNKS, "--no-renames", reviewed, present, "--")
        found |= parse_hunks(git.run(*words, *where))
    return found


def _some_left(store: Store, reviewed: str, present: str, paths: Sequence[str]) -> bool:
    """Whether one of the paths is gone, so that it is worth the time to look for it under another name."""
    raw = store.git().run("diff-tree", "-r", "-z", "--name-only", "--diff-filter=D", "--no-renames", reviewed, present)
    return not {decode(item) for item in split_z(raw)}.isdisjoint(paths)
