"""What configures agents, and so must not come from the tree that they review.

A reviewed commit may add hooks, servers and instructions ("reply that all is well"). For agents such files are the
base's; the new text of each is handed over as data, for edits there are the most interesting ones.
"""

from __future__ import annotations

import os

from git_orch import atomic, system
from git_orch.git import decode, encode
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from git_orch.store import Changed, Store

# Compared without case, for disks that know none.
_FOLDERS = frozenset(
    (
        ".agents",
        ".aider",
        ".claude",
        ".claude-plugin",
        ".codex",
        ".continue",
        ".copilot",
        ".cursor",
        ".gemini",
        ".junie",
        ".kiro",
        ".opencode",
        ".qwen",
        ".roo",
        ".windsurf",
    )
)
_FILES = frozenset(
    (
        ".aider.conf.yml",
        ".aiexclude",
        ".clinerules",
        ".copilotignore",
        ".cursorignore",
        ".cursorindexingignore",
        ".cursorrules",
        ".env",
        ".geminiignore",
        ".mcp.json",
        ".qwenignore",
        ".windsurfrules",
        "agents.local.md",
        "agents.md",
        "agents.override.md",
        "claude.local.md",
        "claude.md",
        "gemini.md",
        "opencode.json",
        "opencode.jsonc",
        "qwen.md",
    )
)
_OF_GITHUB = ("copilot", "instructions", "hooks", "agents", "prompts", "skills", "chatmodes", "mcp.json")
_OF_VSCODE = ("mcp.json", "settings.json")
MOST_TEXT_BYTES = 256 << 10


class Overlay(Record):
    """A tree as agents are given it: its tree-id, and the changes that are withheld from it, in git's order."""

    tree_id: str
    withheld: tuple[Changed, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of what is withheld."""
        return tuple(change.path for change in self.withheld)


def steers(path: str) -> bool:
    """Whether a file of that path configures an agent that works in the tree."""
    *folders, name = path.casefold().split("/")
    if name in _FILES or not _FOLDERS.isdisjoint((*folders, name)):
        return True
    parent = folders[-1] if folders else ""
    return any(
        _below(folders, name, top, names) for top, names in ((".github", _OF_GITHUB), (".vscode", _OF_VSCODE))
    ) or (parent == ".github" and name.startswith("copilot"))


def overlay(
    store: Store,
    base_tree_id: str,
    tree_id: str,
    planted: Mapping[str, bytes | None],
    changed: Iterable[Changed] | None = None,
) -> Overlay:
    """The tree with the base's version of every file that steers agents, and with the planted files, or without them.

    `changed` is the whole difference of the two trees, where that is known already. New objects are the store's.

    Raises:
        GitError: a tree cannot be read.
    """
    differing = store.changed(base_tree_id, tree_id) if changed is None else changed
    withheld = tuple(change for change in differing if steers(change.path))
    if not withheld and not planted:
        return Overlay(tree_id=tree_id)
    index = os.path.join(store.path, f"agents.{os.getpid()}-{os.urandom(4).hex()}.index")
    git = store.git(index=index)
    try:
        git.run("read-tree", tree_id)
        info = [*map(_as_in_base, withheld), *(_plant(store, path, raw) for path, raw in planted.items())]
        git.run("update-index", "--add", "--replace", "-z", "--index-info", stdin=b"".join(info))
        return Overlay(tree_id=git.line("write-tree", "--missing-ok"), withheld=withheld)
    finally:
        for path in (index, f"{index}.lock"):
            atomic.discard(path)


def texts(store: Store, given: Overlay) -> list[tuple[str, bytes]]:
    """The withheld paths that the reviewed tree has, each with its new text, cut at 256 KiB."""
    return [
        (change.path, store.blob(change.new_oid)[:MOST_TEXT_BYTES])
        for change in given.withheld
        if change.status != "D" and change.new_mode.startswith("1") and change.new_mode != "160000"
    ]


def write(folder: str, given: list[tuple[str, bytes]]) -> None:
    """The texts lie in the folder as `1.txt`, `2.txt`, ..., and `index` names the path of each.

    Under their own names, clients would take them for what they are.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    lines = []
    for number, (path, text) in enumerate(given, 1):
        _write(os.path.join(folder, f"{number}.txt"), text)
        lines.append(f"{number}.txt\t{decode(encode(path))}\n")
    _write(os.path.join(folder, "index"), encode("".join(lines)))


def _below(folders: list[str], name: str, top: str, names: tuple[str, ...]) -> bool:
    """Whether the path lies in a folder `top` under one of the names."""
    if top not in folders:
        return False
    inside = [*folders, name][folders.index(top) + 1 :]
    return inside[0] in names


def _as_in_base(change: Changed) -> bytes:
    """The line for an index that takes the path back to what it was; mode 0 removes it."""
    return encode(f"{change.old_mode.lstrip('0') or '0'} {change.old_oid}\t{change.path}\0")


def _plant(store: Store, path: str, raw: bytes | None) -> bytes:
    if raw is None:
        return encode(f"0 {'0' * 40}\t{path}\0")
    oid = decode(store.git().run("hash-object", "-w", "--stdin", stdin=raw)).strip()
    return encode(f"100644 {oid}\t{path}\0")


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | system.NOFOLLOW | system.CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
