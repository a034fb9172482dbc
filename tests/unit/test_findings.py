from __future__ import annotations

import difflib
import hashlib
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from git_orch import findings
from git_orch.findings import FileChange, Gone, Hunk, Lines, Moved, Still
from git_orch.model import Finding

FILE = ["import os", "", "def f(a):", "    x = 1", "    return  a", "", "def g(a):", "    x = 1", "    return a"]


def fault(line: int = 4, end_line: int = 0, **changes: Any) -> Finding:
    fields = {"path": "a.py", "message": "m", "severity": "blocking", "reviewer": "claude", "fails_when": "always"}
    return Finding(**{**fields, "start_line": line, "end_line": end_line or line, **changes})


def reader(**files: list[str]) -> Any:
    """A `line_of` over files whose names are given without `.py`."""

    def line_of(path: str, number: int) -> str | None:
        lines = files[path.removesuffix(".py")]
        return lines[number - 1] if number <= len(lines) else None

    return line_of


def prints(faults: list[Finding], lines: list[str]) -> list[str]:
    """The fingerprints of findings in a.py, in their order."""
    return [finding.fingerprint for finding in findings.identify(faults, reader(a=lines))]


class TestIdentity:
    def test_a_fingerprint_is_64_hex_digits_and_its_id_four_letters(self) -> None:
        [finding] = findings.identify([fault()], reader(a=FILE))
        assert len(finding.fingerprint) == 64
        assert set(finding.fingerprint) <= set("0123456789abcdef")
        assert finding.id == findings.letters(finding.fingerprint)[:4]
        assert set(finding.id) <= set("klmnopqrstuvwxyz")

    def test_it_is_the_same_on_every_machine(self) -> None:
        """Dismissals are kept by it: a change of this value orphans them all."""
        parts = b"6:claude4:a.py5:x = 11:01:1"
        assert prints([fault()], FILE) == [hashlib.blake2b(parts, digest_size=32).hexdigest()]

    @pytest.mark.parametrize(
        "changes", [{"rule": "other"}, {"message": "put otherwise"}, {"severity": "nit"}, {"suggestion": "s"}]
    )
    def test_wording_and_weight_are_no_part_of_it(self, changes: dict[str, Any]) -> None:
        assert prints([fault(**changes)], FILE) == prints([fault()], FILE)

    @pytest.mark.parametrize("changes", [{"path": "b.py"}, {"start_line": 3}, {"end_line": 5}, {"reviewer": "static"}])
    def test_place_text_and_reviewer_are_part_of_it(self, changes: dict[str, Any]) -> None:
        [other] = findings.identify([fault(**changes)], reader(a=FILE, b=FILE))
        assert [other.fingerprint] != prints([fault()], FILE)

    def test_it_lives_through_an_amend_and_ten_more_stops(self) -> None:
        """Case 27: edits elsewhere and another indentation leave it as it is, so that it is told once."""
        before = prints([fault(4)], FILE)
        edited = ["# new", "# lines", *FILE[:3], "\tif a:", "\t\t x  =\t1 ", *FILE[4:]]
        assert prints([fault(7)], edited) == before

    def test_equal_lines_are_told_apart_by_their_order_in_the_file(self) -> None:
        first, second = prints([fault(4), fault(8)], FILE)
        assert first != second
        # The second keeps its name when the reviewer no longer tells of the first.
        assert prints([fault(8)], FILE) == [second]

    def test_equal_runs_of_lines_are_told_apart(self) -> None:
        lines = ["a", "a", "a", "b"]
        first, second = prints([fault(1, 2), fault(2, 3)], lines)
        assert first != second
        assert prints([fault(2, 3)], lines) == [second]

    def test_findings_on_the_same_line_are_told_apart_in_any_order(self) -> None:
        faults = [fault(rule="x"), fault(rule="y"), fault(rule="y", message="n"), fault(reviewer="static")]
        whole = findings.identify(faults, reader(a=FILE))
        assert len({finding.fingerprint for finding in whole}) == 4
        assert findings.identify(faults[::-1], reader(a=FILE)) == whole

    def test_what_one_reviewer_says_does_not_name_what_another_says(self) -> None:
        both = findings.identify([fault(), fault(reviewer="static")], reader(a=FILE))
        [alone] = findings.identify([fault(reviewer="static")], reader(a=FILE))
        assert alone in both

    def test_whole_files_and_lines_that_are_not_there(self) -> None:
        assert len(set(prints([fault(0), fault(10**9), fault(1, 10**9)], FILE))) == 3

    def test_paths_and_lines_that_are_not_utf8(self) -> None:
        """Case 71."""
        path = "caf\udce9.py"
        [finding] = findings.identify([fault(1, path=path)], lambda _, line: "\udcff" if line == 1 else None)
        assert len(finding.fingerprint) == 64

    def test_ids_grow_until_they_are_alone(self) -> None:
        [finding] = findings.identify([fault()], reader(a=FILE))
        near = finding.fingerprint[:6] + ("0" if finding.fingerprint[6] != "0" else "1") * 58
        [named] = findings.identify([fault()], reader(a=FILE), known=[near, finding.fingerprint])
        assert named.id == findings.letters(finding.fingerprint[:7])

    @settings(max_examples=100)
    @given(st.lists(st.text("01", min_size=64, max_size=64), min_size=1, max_size=30))
    def test_an_id_begins_one_fingerprint_only(self, known: list[str]) -> None:
        [finding] = findings.identify([fault()], reader(a=FILE), known=known)
        prefix = findings.unhex(finding.id)
        assert [other for other in {*known, finding.fingerprint} if other.startswith(prefix)] == [finding.fingerprint]

    def test_letters_are_those_of_jj_and_can_be_read_back(self) -> None:
        assert findings.letters("0123456789abcdef") == "zyxwvutsrqponmlk"
        assert findings.unhex("ZYXWvutsrqponmlk") == "0123456789abcdef"
        with pytest.raises(ValueError, match="k to z"):
            findings.unhex("kmz4")

    def test_the_order_is_by_severity_path_line_rule_and_message(self) -> None:
        ordered = [
            fault(9, path="z.py"),
            fault(1, severity="advisory"),
            fault(2, severity="advisory", rule="a", message="z"),
            fault(2, severity="advisory", rule="b", message="a"),
            fault(2, severity="advisory", rule="b", message="b"),
            fault(1, severity="advisory", path="b.py"),
            fault(1, severity="nit"),
        ]
        shuffled = random.Random(1).sample(ordered, len(ordered))
        assert findings.in_order(shuffled) == tuple(ordered)

    def test_many_findings_in_a_long_file_are_named_quickly(self) -> None:
        lines = [f"line {number % 500}" for number in range(20_000)]
        faults = [fault(number, rule=str(number)) for number in range(1, 20_000, 100)]
        assert len({finding.id for finding in findings.identify(faults, reader(a=lines))}) == len(faults)


CHANGED = {"a.py": Lines(spans=(range(4, 6), range(9, 10)))}


class TestSettle:
    @pytest.mark.parametrize(
        ("finding", "severity"),
        [
            (fault(4), "blocking"),
            (fault(5), "blocking"),
            (fault(9), "blocking"),
            (fault(1, 4), "blocking"),
            (fault(6), "advisory"),
            (fault(6, 8), "advisory"),
            (fault(0), "advisory"),
            (fault(4, path="b.py"), "advisory"),
            (fault(4, fails_when=""), "advisory"),
            (fault(4, fails_when=" \n"), "advisory"),
            (fault(6, severity="nit"), "nit"),
            (fault(4, severity="advisory"), "advisory"),
        ],
    )
    def test_an_agent_blocks_only_inside_the_difference_and_with_a_failing_case(
        self, finding: Finding, severity: str
    ) -> None:
        [settled] = findings.settle([finding], changed_lines=CHANGED, from_agent=True)
        assert settled == finding.replace(severity=severity)
        assert findings.settle([finding], changed_lines=CHANGED, from_agent=False) == (finding,)


# What git 2.39 printed for `diff-tree -p -r -U0 -M --binary`, with object names shortened; git ends a name that holds a
# space with a tab.
PATCH = rb"""0123456789012345678901234567890123456789
diff --git a/a b.py b/a b.py
index de98044..860b3e5 100644
--- a/a b.py<TAB>
+++ b/a b.py<TAB>
@@ -2 +2,2 @@ a
-b
+B
+new
diff --git a/b.bin b/b.bin
index badc806..29a070e 100644
GIT binary patch
literal 5
McmZQb%FHtY00Y(mYybcN

literal 4
LcmZQb%FF`*0%`#|$

diff --git a/fresh b/fresh
new file mode 100644
index 0000000..92d5444
--- /dev/null
+++ b/fresh
@@ -0,0 +1 @@
+fresh
diff --git a/gone.py b/gone.py
deleted file mode 100644
index abaddc0..0000000
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-del
diff --git a/mode x b/mode x
old mode 100644
new mode 100755
diff --git a/empty b/new empty
similarity index 100%
rename from empty
rename to new empty
diff --git a/ren.py b/ren new.py
similarity index 73%
rename from ren.py
rename to ren new.py
index 535d2b0..9827e1a 100644
--- a/ren.py
+++ b/ren new.py<TAB>
@@ -4 +4 @@
-4
+four
diff --git "a/t\tab \"q\" \\1.txt" "b/t\tab \"q\" \\1.txt"
index bca70f3..4286f42 100644
--- "a/t\tab \"q\" \\1.txt"<TAB>
+++ "b/t\tab \"q\" \\1.txt"<TAB>
@@ -1 +1 @@
-q
+r
diff --git a/tricky b/tricky
index 12e5e30..a902457 100644
--- a/tricky
+++ b/tricky
@@ -1 +0,0 @@
--- a/x
@@ -2,0 +2,2 @@ keep
+++ b/y
+@@ -1 +1 @@
diff --git a/type b/type
deleted file mode 100644
index f73f309..0000000
--- a/type
+++ /dev/null
@@ -1 +0,0 @@
-file
diff --git a/type b/type
new file mode 120000
index 0000000..5425ec0
--- /dev/null
+++ b/type
@@ -0,0 +1 @@
+nowhere
\ No newline at end of file
diff --git "a/\303\244\377" "b/\303\244\377"
old mode 100644
new mode 100755
diff --git "a/\303\244.txt" "b/\303\244.txt"
index 587be6b..e25f181 100644
--- "a/\303\244.txt"
+++ "b/\303\244.txt"
@@ -1 +1 @@
-x
\ No newline at end of file
+y
\ No newline at end of file
""".replace(b"<TAB>", b"\t")


def hunk(old_start: int, old_count: int, new_start: int, new_count: int) -> Hunk:
    return Hunk(old_start=old_start, old_count=old_count, new_start=new_start, new_count=new_count)


def as_patch(old: list[str], new: list[str], context: int) -> bytes:
    lines = [line + "\n" for line in old], [line + "\n" for line in new]
    text = "".join(difflib.unified_diff(*lines, "a/a.py", "b/a.py", n=context))
    return b"diff --git a/a.py b/a.py\nindex 1..2 100644\n" + text.encode()


few_lines = st.lists(st.sampled_from(["a", "b", "c", "", "  a", "-- a/x", "++ b/y", "@@ -1 +1 @@"]), max_size=12)


class TestPatch:
    def test_every_kind_of_change(self) -> None:
        changes = findings.parse_hunks(PATCH)
        assert changes == {
            "a b.py": FileChange(path="a b.py", new_path="a b.py", hunks=(hunk(2, 1, 2, 2),)),
            "b.bin": FileChange(path="b.bin", new_path="b.bin"),
            "fresh": FileChange(path="fresh", new_path="fresh", hunks=(hunk(0, 0, 1, 1),), added=True),
            "gone.py": FileChange(path="gone.py", new_path="gone.py", hunks=(hunk(1, 1, 0, 0),), deleted=True),
            "mode x": FileChange(path="mode x", new_path="mode x"),
            "empty": FileChange(path="empty", new_path="new empty"),
            "ren.py": FileChange(path="ren.py", new_path="ren new.py", hunks=(hunk(4, 1, 4, 1),)),
            't\tab "q" \\1.txt': FileChange(
                path='t\tab "q" \\1.txt', new_path='t\tab "q" \\1.txt', hunks=(hunk(1, 1, 1, 1),)
            ),
            "tricky": FileChange(path="tricky", new_path="tricky", hunks=(hunk(1, 1, 0, 0), hunk(2, 0, 2, 2))),
            "type": FileChange(path="type", new_path="type", hunks=(hunk(1, 1, 0, 0),), deleted=True),
            "ä\udcff": FileChange(path="ä\udcff", new_path="ä\udcff"),
            "ä.txt": FileChange(path="ä.txt", new_path="ä.txt", hunks=(hunk(1, 1, 1, 1),)),
        }

    def test_added_lines_are_those_of_the_new_side(self) -> None:
        spans = {path: lines.spans for path, lines in findings.added_lines(PATCH).items()}
        assert spans == {
            "a b.py": (range(2, 4),),
            "b.bin": (),
            "fresh": (range(1, 2),),
            "mode x": (),
            "new empty": (),
            "ren new.py": (range(4, 5),),
            't\tab "q" \\1.txt': (range(1, 2),),
            "tricky": (range(2, 4),),
            "type": (range(1, 2),),
            "ä\udcff": (),
            "ä.txt": (range(1, 2),),
        }

    def test_what_was_taken_out_is_inside_the_difference(self) -> None:
        changed = findings.changed_lines(PATCH)
        assert [line in changed["tricky"] for line in range(5)] == [False, True, True, True, False]
        assert 0 in changed["gone.py"]
        assert 77 in changed["gone.py"]
        assert 1 in changed["type"]
        assert 77 in changed["type"]
        assert not changed["mode x"].touch(0, 100)

    def test_a_file_added_where_another_was_renamed_away(self) -> None:
        patch = (
            b"diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n"
            b"diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+1\n"
        )
        assert findings.parse_hunks(patch)["x"].new_path == "y"
        assert findings.added_lines(patch)["x"].spans == (range(1, 2),)

    @pytest.mark.parametrize("patch", [b"", b"\n", b"0123\n", PATCH[:500], PATCH[:470]])
    def test_a_patch_that_is_empty_or_cut_off_is_no_error(self, patch: bytes) -> None:
        assert len(findings.parse_hunks(patch)) == patch.count(b"diff --git")

    @settings(max_examples=200)
    @given(few_lines, few_lines, st.integers(0, 4))
    def test_context_makes_no_difference(self, old: list[str], new: list[str], context: int) -> None:
        plain = findings.parse_hunks(as_patch(old, new, 0))["a.py"]
        assert findings.parse_hunks(as_patch(old, new, context))["a.py"] == plain
        assert sum(hunk.new_count - hunk.old_count for hunk in plain.hunks) == len(new) - len(old)


def moved(old: list[str], new: list[str], first: int, last: int = 0) -> Any:
    """What became of a finding on these lines; the patch is difflib's."""
    change = findings.parse_hunks(as_patch(old, new, 0)).get("a.py")
    return findings.reanchor(fault(first, last), change, "\n".join(old) + "\n", "\n".join(new) + "\n")


OLD = ["a", "b", "c", "d", "e"]


class TestReanchor:
    @pytest.mark.parametrize(
        ("new", "lines", "anchor"),
        [
            (["a", "b", "c", "d", "e", "f"], (3, 3), Still(line=3)),
            (["x", "y", *OLD], (3, 3), Moved(line=5, path="a.py")),
            (["b", "c", "d", "e"], (3, 3), Moved(line=2, path="a.py")),
            (["a", "b", "new", "c", "d", "e"], (3, 3), Moved(line=4, path="a.py")),
            (["a", "b", "c", "new", "d", "e"], (3, 3), Still(line=3)),
            (["a", "b", "c", "new", "d", "e"], (3, 4), Gone()),
            (["a", "b", "c", "new", "d", "e"], (4, 5), Moved(line=5, path="a.py")),
            (["a", "b", "X", "d", "e"], (3, 3), Gone()),
            (["a", "b", "d", "e"], (3, 3), Gone()),
            (["a", "b", "  c ", "d", "e"], (3, 3), Still(line=3)),
            (["a", "b", "X", "c ", "d", "e"], (3, 3), Moved(line=4, path="a.py")),
            (["a", "b", "d", "e", "c"], (3, 3), Moved(line=5, path="a.py")),
            (["a", "b", "d", "e", "c", "c"], (3, 3), Gone()),
            (["d", "e", "a", " b", "c"], (2, 2), Moved(line=4, path="a.py")),
            (["a", "b", "X", "d", "e"], (0, 0), Still(line=0)),
        ],
    )
    def test_where_a_finding_goes(self, new: list[str], lines: tuple[int, int], anchor: object) -> None:
        assert moved(OLD, new, *lines) == anchor

    def test_a_twin_that_was_there_before_is_not_the_finding(self) -> None:
        assert moved(["x = 1", "b", "x = 1"], ["b", "x = 1"], 1) == Gone()

    def test_blank_lines_are_never_found_again(self) -> None:
        assert moved(["a", "", "b", "c"], ["a", "b", "c", ""], 2) == Gone()

    def test_other_changes_of_the_file(self) -> None:
        finding = fault(4)
        renamed = FileChange(path="a.py", new_path="b.py", hunks=(hunk(1, 0, 2, 1),))
        assert findings.reanchor(finding, None, "", "") == Still(line=4)
        assert findings.reanchor(finding, renamed, "", "") == Moved(line=5, path="b.py")
        assert findings.reanchor(fault(0), renamed, "", "") == Moved(line=0, path="b.py")
        assert findings.reanchor(finding, renamed.replace(deleted=True), "", "") == Gone()
        assert findings.reanchor(finding, renamed.replace(added=True), "", "") == Still(line=4)

    def test_only_a_newline_ends_a_line(self) -> None:
        old, new = "a\x0cb\u2028c\nfault\n", "a\x0cb\u2028c\nnew\n  fault\n"
        change = FileChange(path="a.py", new_path="a.py", hunks=(hunk(2, 1, 2, 2),))
        assert findings.reanchor(fault(2), change, old, new) == Moved(line=3, path="a.py")

    @settings(max_examples=300)
    @given(few_lines, few_lines)
    def test_a_line_that_stays_is_followed_and_one_that_goes_never_points_elsewhere(
        self, old: list[str], new: list[str]
    ) -> None:
        kept = {
            old_index + offset: new_index + offset
            for old_index, new_index, size in difflib.SequenceMatcher(a=old, b=new).get_matching_blocks()
            for offset in range(size)
        }
        for index, line in enumerate(old):
            anchor = moved(old, new, index + 1)
            if index in kept:
                assert anchor.line == kept[index] + 1
            elif not isinstance(anchor, Gone):
                assert new[anchor.line - 1].split() == line.split()
                assert anchor.line - 1 not in kept.values()
