from __future__ import annotations

import pytest

from git_orch.reviewers.static import markers
from tests.unit.static_sources import changed, new, told

CONFLICT = "a\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> feature/x\nb\n"
DIFF3 = "<<<<<<< ours\na\n||||||| 1234567\nb\n=======\nc\n>>>>>>> theirs\n"
JUJUTSU = "<<<<<<< Conflict 1 of 1\n%%%%%%% Changes\n-a\n+b\n+++++++ Contents\nc\n>>>>>>> Conflict 1 of 1 ends\n"


@pytest.mark.parametrize(
    ("content", "span"),
    [
        (CONFLICT, (2, 6)),
        (CONFLICT.replace("\n", "\r\n"), (2, 6)),
        (DIFF3, (1, 7)),
        (JUJUTSU, (1, 7)),
        ("x\n<<<<<<< HEAD\nleft over\n", (2, 2)),
        ("left over\n>>>>>>> feature\n", (2, 2)),
        ("<<<<<<< a\n<<<<<<< b\nx\n=======\ny\n>>>>>>> c\n", (1, 1)),
    ],
)
def test_what_a_merge_leaves_behind_blocks(content: str, span: tuple[int, int]) -> None:
    first, *_ = markers.check(new("a.txt", content))
    assert (first.rule, first.severity, first.start_line, first.end_line) == ("conflict-marker", "blocking", *span)


def test_both_sides_are_named_once() -> None:
    (finding,) = markers.check(new("a.txt", CONFLICT))
    assert finding.message == "merge conflict left in the file, between `HEAD` and `feature/x`"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("h.rst", "Title\n=======\n\ntext\n"),
        ("h.md", "Title\n=======\n"),
        ("diff.txt", "<<<<<<<\n>>>>>>>\n"),
        ("c.sh", "cat <<<<<<< x\n"),
        ("deep.txt", "<<<<<<<< eight\n>>>>>>>> eight\n"),
        ("doc.rst", "    <<<<<<< HEAD\n    =======\n    >>>>>>> x\n"),
        ("mail.txt", ">>>>>> six\n>>>>>>> seven times quoted\n>>>>>>> and on\n"),
        ("a.patch", "+<<<<<<< HEAD\n+=======\n+>>>>>>> x\n"),
        ("table.txt", "||||||| a\n=======\n"),
    ],
)
def test_what_only_looks_like_it_is_not_told(path: str, content: str) -> None:
    assert not list(markers.check(new(path, content)))


@pytest.mark.parametrize("line", [2, 4, 6])
def test_one_added_marker_is_enough(line: int) -> None:
    assert told(markers.check(changed("a.c", CONFLICT, [(line, line)]))) == [("conflict-marker", "blocking", 2)]


def test_a_conflict_that_was_there_is_not_told() -> None:
    assert not list(markers.check(changed("tests/fixture.txt", CONFLICT, [(1, 1), (3, 3), (7, 9)])))


@pytest.mark.parametrize(
    ("path", "content", "parses", "severity"),
    [
        ("doc.md", f"# Merging\n\n```\n{CONFLICT}```\n", False, "advisory"),
        ("doc.md", f"```\ncode\n```\n{CONFLICT}```\ncode\n```\n", False, "blocking"),
        ("doc.md", "```\n<<<<<<< HEAD\n```\n=======\n>>>>>>> x\n", False, "blocking"),
        ("tests/test_merge.py", f'TEXT = """\n{CONFLICT}"""\n', True, "advisory"),
        ("tests/test_merge.py", CONFLICT, False, "blocking"),
        ("src/merge.py", f'"""\n{CONFLICT}"""\n', True, "blocking"),
    ],
)
def test_an_example_is_less_than_a_conflict(path: str, content: str, parses: bool, severity: str) -> None:
    assert [finding.severity for finding in markers.check(new(path, content), parses=parses)] == [severity]


def test_a_sides_name_cannot_steer_a_terminal() -> None:
    content = "<<<<<<< \x1b]52;c;aGk=\x07\nx\n=======\ny\n>>>>>>> b\u202ec\n"
    (finding,) = markers.check(new("a.txt", content))
    assert finding.message.isprintable()
