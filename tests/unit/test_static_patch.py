from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_orch.reviewers.static.patch import Change, path_of, read_changes

TWO_FILES = b"""\
diff --git a/src/a b.py b/src/a b.py
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/src/a b.py\t
+++ b/src/a b.py\t
@@ -1,5 +1,6 @@ def f():
 one
-two
+zwei
+drei
 three
 four
 five
@@ -10,2 +11,3 @@
 ten
+eleven
 twelve
diff --git a/new.txt b/new.txt
new file mode 100755
index 0000000000000000000000000000000000000000..3333333333333333333333333333333333333333
--- /dev/null
+++ b/new.txt
@@ -0,0 +1,3 @@
+diff --git a/x b/x
+@@ -1 +1 @@
+++ b/y
\\ No newline at end of file
"""


def changes(patch: bytes) -> dict[bytes, Change]:
    return read_changes(patch.splitlines(keepends=True))


def test_added_lines_are_counted_in_the_new_file() -> None:
    change = changes(TWO_FILES)[b"src/a b.py"]
    assert change.added == ((2, 3), (12, 12))
    assert not change.is_new


def test_an_added_line_that_looks_like_a_header_is_an_added_line() -> None:
    found = changes(TWO_FILES)
    assert list(found) == [b"src/a b.py", b"new.txt"]
    assert found[b"new.txt"] == Change(is_new=True, added=((1, 3),))


def test_removed_text_is_kept_for_python_alone() -> None:
    patch = TWO_FILES.replace(b"a b.py", b"a b.js")
    assert changes(TWO_FILES)[b"src/a b.py"].removed == b"two\n"
    assert changes(patch)[b"src/a b.js"].removed == b""


def test_what_has_no_text_is_named_all_the_same() -> None:
    patch = (
        b"diff --git a/x.sh b/x.sh\nold mode 100644\nnew mode 100755\n"
        b"diff --git a/e b/e\nnew file mode 100644\nindex 0000..e69d\n"
        b"diff --git a/i.png b/i.png\nindex 00..11 100644\nGIT binary patch\n"
        b"literal 3\nKcmZ?wbhEHbOA+\n\nliteral 0\nHcmV?d00001\n\n"
    )
    assert changes(patch) == {
        b"x.sh": Change(mode_changed=True),
        b"e": Change(is_new=True),
        b"i.png": Change(),
    }


def test_a_file_that_became_a_link_counts_once_and_as_new() -> None:
    patch = (
        b"diff --git a/l b/l\ndeleted file mode 100644\n--- a/l\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n"
        b"diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+target\n"
        b"\\ No newline at end of file\n"
    )
    assert changes(patch) == {b"l": Change(is_new=True, added=((1, 1),))}


def test_a_patch_that_is_cut_short_ends_quietly() -> None:
    assert changes(TWO_FILES[: TWO_FILES.index(b"+eleven")])[b"src/a b.py"].added == ((2, 3),)


@pytest.mark.parametrize(
    ("header", "path"),
    [
        (b"diff --git a/a b/a\n", b"a"),
        (b"diff --git a/a b/c b/a b/c\n", b"a b/c"),
        (b'diff --git "a/\\303\\274 \\"q\\".txt" "b/\\303\\274 \\"q\\".txt"\n', 'ü "q".txt'.encode()),
        (b'diff --git "a/\\377\\t\\n\\\\" "b/\\377\\t\\n\\\\"\n', b"\xff\t\n\\"),
        ("diff --git a/ü b/ü\n".encode(), "ü".encode()),
    ],
)
def test_any_path_is_read_back(header: bytes, path: bytes) -> None:
    assert path_of(header) == path


@given(st.sets(st.integers(1, 40)), st.integers(1, 40), st.integers(0, 10))
def test_adds_any_agrees_with_a_set(lines: set[int], first: int, more: int) -> None:
    ranges: list[tuple[int, int]] = []
    for line in sorted(lines):
        if ranges and ranges[-1][1] == line - 1:
            ranges[-1] = (ranges[-1][0], line)
        else:
            ranges.append((line, line))
    change = Change(added=tuple(ranges))
    assert change.adds_any(first, first + more) == bool(lines & set(range(first, first + more + 1)))
    assert change.adds(first) == (first in lines)
