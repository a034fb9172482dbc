"""What no agent is given, by rule."""

from __future__ import annotations

import pytest

from git_orch import exempt
from git_orch.store import Changed

ONE, TWO = "1" * 40, "2" * 40


def change(path: str, status: str = "M", old: str = ONE, new: str = TWO, mode: str = "100644") -> Changed:
    return Changed(path=path, old_mode=mode, new_mode=mode, old_oid=old, new_oid=new, status=status)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("package-lock.json", "rule:lock file"),
        ("web/yarn.lock", "rule:lock file"),
        ("go.sum", "rule:lock file"),
        ("vendor/lib/a.go", "rule:vendored"),
        ("third_party/x.c", "rule:vendored"),
        ("web/node_modules/x/index.js", "rule:vendored"),
        ("src/vendor/orders.py", ""),
        ("src/lock.py", ""),
        ("vendor", ""),
        ("package-lock.json.py", ""),
    ],
)
def test_names_that_nobody_writes(path: str, reason: str) -> None:
    found = exempt.by_rule([change(path)], frozenset(), {})
    assert found == ({path: reason} if reason else {})


def test_attributes_of_the_base_count() -> None:
    given = {"a.py": frozenset(("linguist-generated",)), "b.py": frozenset(("linguist-vendored",))}
    found = exempt.by_rule([change("a.py"), change("b.py"), change("c.py")], frozenset(), given)
    assert found == {"a.py": "rule:generated", "b.py": "rule:vendored"}


def test_what_git_shows_no_lines_of() -> None:
    assert exempt.by_rule([change("a.png")], frozenset(("a.png",)), {}) == {"a.png": "rule:binary"}


def test_a_rename_that_changed_no_byte() -> None:
    moved = [change("old.py", "D", ONE, "0" * 40), change("new.py", "A", "0" * 40, ONE)]
    assert exempt.by_rule(moved, frozenset(), {}) == dict.fromkeys(("old.py", "new.py"), "rule:renamed only")


@pytest.mark.parametrize(
    "moved",
    [
        [change("old.py", "D", ONE, "0" * 40), change("new.py", "A", "0" * 40, TWO)],
        [change("old.py", "D", ONE, "0" * 40), change("new.py", "A", "0" * 40, ONE, mode="100755")],
        [change("old", "D", ONE, "0" * 40, "120000"), change("new", "A", "0" * 40, ONE, "120000")],
        [change("new.py", "A", "0" * 40, ONE)],
    ],
)
def test_a_rename_that_changed_something(moved: list[Changed]) -> None:
    assert exempt.by_rule(moved, frozenset(), {}) == {}
