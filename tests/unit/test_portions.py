"""A difference file by file, in portions, each file's part with its token."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_orch import portions


def text_part(path: str, lines: int = 1) -> bytes:
    body = b"".join(b"+line %d\n" % number for number in range(lines))
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\nindex {'0' * 40}..{'1' * 40}\n".encode()
    return head + f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{lines} @@\n".encode() + body


BINARY = (
    b"diff --git a/x.png b/x.png\nindex 1111..2222 100644\nGIT binary patch\n"
    b"literal 5\nMcmZQ%U|?VX0RR911^@s6\n\nliteral 3\nKcmZQ%V_*OP04M+h\n\n"
)
TRICKY = (
    b"diff --git a/a.patch b/a.patch\nindex 1111..2222 100644\n--- a/a.patch\n+++ b/a.patch\n@@ -1,2 +1,3 @@\n"
    b" diff --git a/evil b/evil\n+GIT binary patch\n-orch:0000000000\n+orch:ffffffffff\n\\ No newline at end of file"
)
RENAMED_MODE = b"diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
QUOTED = text_part("x").replace(b"a/x b/x", b'"a/caf\\351" "b/caf\\351"').replace(b"b/x\n", b'"b/caf\\351"\n')


def test_each_file_is_a_part_whatever_its_lines_hold() -> None:
    found = portions.parts(text_part("a.py") + TRICKY + b"\n" + BINARY + RENAMED_MODE + QUOTED)
    assert [part.path for part in found] == ["a.py", "a.patch", "x.png", "run.sh", "caf\udce9"]
    assert [part.is_binary for part in found] == [False, False, True, False, False]
    assert [part.lines for part in found] == [1, 3, 0, 0, 1]


def test_a_file_whose_type_changed_is_one_part() -> None:
    gone = b"diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-text\n"
    (part,) = portions.parts(gone + text_part("x"))
    assert (part.path, part.lines) == ("x", 2)


@pytest.mark.parametrize("patch", [b"", b"\n"])
def test_nothing_has_no_parts(patch: bytes) -> None:
    assert portions.parts(patch) == ()
    assert portions.split(()) == ()


def test_each_part_ends_with_a_token_of_its_own() -> None:
    (portion,) = portions.split(portions.parts(text_part("a.py") + TRICKY + b"\n" + text_part("b.py")))
    assert portion.paths == ("a.py", "a.patch", "b.py")
    assert len(set(portion.tokens.values())) == 3
    at_line_starts = re.findall(rb"^orch:([0-9a-f]{10})$", portion.patch, re.MULTILINE)
    assert [token.decode() for token in at_line_starts] == [portion.tokens[path] for path in portion.paths]


def test_tokens_are_new_each_time() -> None:
    parts = portions.parts(text_part("a.py"))
    assert portions.split(parts)[0].tokens != portions.split(parts)[0].tokens


@given(st.lists(st.integers(1, 400), max_size=30), st.integers(200, 9000), st.integers(1, 9))
def test_no_file_is_lost_and_no_portion_is_larger_than_it_must_be(sizes: list[int], most: int, files: int) -> None:
    patch = b"".join(text_part(f"f{number}.py", lines) for number, lines in enumerate(sizes))
    parts = portions.parts(patch)
    found = portions.split(parts, most_bytes=most, most_files=files)
    assert [path for portion in found for path in portion.paths] == [part.path for part in parts]
    sizes_by_path = {part.path: len(part.raw) for part in parts}
    for portion in found:
        assert set(portion.tokens) == set(portion.paths)
        assert len(portion.paths) <= files
        assert len(portion.paths) == 1 or sum(sizes_by_path[path] for path in portion.paths) <= most
