"""What a tree needs of a disk, from git's listing of it."""

from __future__ import annotations

import pytest

from git_orch.listing import TreeUnusable, files, needed_bytes, parse, refuse_unusable

KINDS = {"160000": "commit"}
OID = "ce013625030ba8dba906f756967f9e9ca394464a"


def listed(*entries: tuple[str, str, str]) -> bytes:
    """A listing of these (mode, size, path)."""
    lines = (f"{mode} {KINDS.get(mode, 'blob')} {OID} {size:>7}\t{path}\0" for mode, size, path in entries)
    return "".join(lines).encode()


def paths(*names: str) -> bytes:
    return listed(*(("100644", "1", name) for name in names))


def test_files_and_room_are_counted_and_gitlinks_are_no_files() -> None:
    raw = listed(("100644", "1", "a"), ("100755", "4097", "b"), ("160000", "-", "c"), ("120000", "0", "d"))
    assert files(raw) == 3
    assert needed_bytes(raw) == 4096 * 2 * (2 + 3 + 1 + 1)
    assert [(path, mode, size) for path, _, mode, size in parse(raw)] == [
        (b"a", 0o100644, 1),
        (b"b", 0o100755, 4097),
        (b"c", 0o160000, -1),
        (b"d", 0o120000, 0),
    ]
    assert files(b"") == 0


@pytest.mark.parametrize(
    "names",
    [
        (".gitattributes", ".github/x", ".gitignore", "a"),
        ("...", ".a", "a..b", "a.git"),
        ("a", "a!", "a-b", "a.b", "a0"),
        ("a.b", "a/b", "a/c/d", "a0"),
        ("a", "a.b/c", "a.b/d", "b"),
        ("x\t.git-like", "x\ty"),
    ],
)
def test_names_that_only_look_odd_may_be_had(names: tuple[str, ...]) -> None:
    refuse_unusable(paths(*names))
    refuse_unusable(paths(*names), thoroughly=True)


@pytest.mark.parametrize(
    "name", [".git", ".git/config", "a/.git", "a/.git/config", ".GIT", "a/.gIt/x", ".", "..", "../a", "a/../b", "a/./b"]
)
@pytest.mark.parametrize("thoroughly", [False, True])
def test_names_that_no_checkout_may_have_are_refused(name: str, thoroughly: bool) -> None:
    with pytest.raises(TreeUnusable, match="no checkout may have"):
        refuse_unusable(paths(name), thoroughly=thoroughly)


@pytest.mark.parametrize(
    "names",
    [
        ("a", "a"),
        ("b", "a"),
        ("a", "a/b"),
        ("a", "a-b", "a.b", "a.b.c", "a/b"),
        ("a", "a!/x", "a/b/c"),
        ("d/a", "d/a.b", "d/a/x"),
    ],
)
def test_a_path_that_is_there_twice_is_refused(names: tuple[str, ...]) -> None:
    """A link and a folder of one name: what is unpacked into the folder would follow the link."""
    with pytest.raises(TreeUnusable, match="twice"):
        refuse_unusable(paths(*names), thoroughly=True)
