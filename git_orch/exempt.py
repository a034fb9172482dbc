"""Which changed files no agent is given, by rule: nobody writes them, so nobody has to read them.

Each is named in the coverage with its rule. What a rule goes by is the base's: the attributes of the reviewed tree
could declare all of it generated.
"""

from __future__ import annotations

import os

from git_orch import atomic
from git_orch.git import encode, split_z
from git_orch.reviewers.reading import RULE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from git_orch.store import Changed, Store

LOCK_FILES = frozenset(
    (
        ".terraform.lock.hcl",
        "Cargo.lock",
        "Chart.lock",
        "Gemfile.lock",
        "MODULE.bazel.lock",
        "Package.resolved",
        "Pipfile.lock",
        "Podfile.lock",
        "buf.lock",
        "bun.lock",
        "bun.lockb",
        "composer.lock",
        "conan.lock",
        "conda-lock.yml",
        "deno.lock",
        "flake.lock",
        "go.sum",
        "gradle.lockfile",
        "mix.lock",
        "npm-shrinkwrap.json",
        "package-lock.json",
        "packages.lock.json",
        "pdm.lock",
        "pixi.lock",
        "pnpm-lock.yaml",
        "poetry.lock",
        "pubspec.lock",
        "renv.lock",
        "stack.yaml.lock",
        "uv.lock",
        "yarn.lock",
    )
)
# At the top only: `src/vendor/` may well be a module about vendors.
_VENDORED_TOPS = ("vendor", "third_party")
_VENDORED = frozenset(("node_modules", "bower_components"))
_GENERATED, _VENDORED_ATTRIBUTE = "linguist-generated", "linguist-vendored"
_PLAIN_FILES = ("100644", "100755")
_OFF = frozenset(("unspecified", "unset", "false"))


def by_rule(
    changed: Sequence[Changed], binary: frozenset[str], attributes: Mapping[str, frozenset[str]]
) -> dict[str, str]:
    """The reason for each path that is exempt; `binary` are those whose difference git does not show as text."""
    moved = _moved(changed)
    found = {}
    for change in changed:
        reason = _reason(change.path, attributes.get(change.path, frozenset()))
        if not reason and change.path in moved:
            reason = "renamed only"
        if not reason and change.path in binary:
            reason = "binary"
        if reason:
            found[change.path] = RULE + reason
    return found


def attributes(store: Store, tree_id: str, paths: Iterable[str]) -> dict[str, frozenset[str]]:
    """Which of linguist's attributes each path has by the `.gitattributes` of a tree, for those that have any."""
    wanted = list(paths)
    files = _attribute_files(store, tree_id, wanted)
    if not files or not wanted:
        return {}
    index = os.path.join(store.path, f"attributes.{os.getpid()}-{os.urandom(4).hex()}.index")
    git = store.git(index=index)
    try:
        git.run("update-index", "-z", "--index-info", stdin=files)
        words = ("check-attr", "--cached", "-z", "--stdin", _GENERATED, _VENDORED_ATTRIBUTE)
        told = split_z(git.run(*words, stdin=b"".join(encode(path) + b"\0" for path in wanted)))
    finally:
        for path in (index, f"{index}.lock"):
            atomic.discard(path)
    return _set_ones(told)


def _set_ones(told: list[bytes]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    items = iter(told)
    for path, name, value in zip(items, items, items, strict=True):
        if value.decode("ascii", "replace") not in _OFF:
            key = os.fsdecode(path)
            found[key] = found.get(key, frozenset()) | {name.decode("ascii", "replace")}
    return found


def _attribute_files(store: Store, tree_id: str, paths: list[str]) -> bytes:
    """The entries of the tree's `.gitattributes` in and above the folders of the paths, for an index."""
    folders = {""}
    for path in paths:
        while path := path.rpartition("/")[0]:
            folders.add(path)
    names = [encode(f"{folder}/.gitattributes" if folder else ".gitattributes") for folder in sorted(folders)]
    found = b""
    for start in range(0, len(names), 500):
        done = store.git().attempt(
            "--literal-pathspecs", "ls-tree", "-z", "--full-tree", tree_id, "--", *names[start : start + 500]
        )
        found += b"".join(item + b"\0" for item in split_z(done.stdout) if item.startswith(b"100"))
    return found


def _moved(changed: Sequence[Changed]) -> set[str]:
    """Both ends of each rename that changed no byte and no mode."""
    gone = {(change.old_oid, change.old_mode): change.path for change in changed if change.status == "D"}
    came = {(change.new_oid, change.new_mode): change.path for change in changed if change.status == "A"}
    return {side[key] for key in gone.keys() & came.keys() if key[1] in _PLAIN_FILES for side in (gone, came)}


def _reason(path: str, attributes: frozenset[str]) -> str:
    *folders, name = path.split("/")
    if name in LOCK_FILES:
        return "lock file"
    if _GENERATED in attributes:
        return "generated"
    if _VENDORED_ATTRIBUTE in attributes or not _VENDORED.isdisjoint(folders):
        return "vendored"
    return "vendored" if folders and folders[0] in _VENDORED_TOPS else ""
