"""Findings against what is there now, in `status` and `show`: the same ones, whatever happens to the commits."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.terminal import Terminal
from tests.conftest import Orch
from tests.project import Project

TWO = '[{"path": "a.py", "start_line": 2}, {"path": "docs/b.txt", "severity": "advisory", "message": "mild"}]'


@pytest.fixture
def found(project: Project, orch: Orch) -> Project:
    """The project after a review that found a fault in line 2 of a.py, and another in docs/b.txt."""
    project.only("fake")
    project.reviewer("fake", "--findings", TWO)
    project.edit("more text\n", "docs/b.txt")
    orch("review")
    return project


def ids(project: Project, run_id: str = "") -> list[str]:
    return [each["id"] for each in project.read(run_id or project.last, "findings.json")["findings"]]


def opened(orch: Orch) -> str:
    return orch("status").stdout.partition("Open findings")[2].partition("\n\n")[0]


def test_still_there_moved_and_gone(found: Project, orch: Orch) -> None:
    grave, mild = ids(found)
    assert f"blocking[{grave}]" in opened(orch)
    assert f"advisory[{mild}]" in opened(orch)
    assert "still there" in orch("show").stdout
    found.edit("zero = 0\nhalf = 0\none = 1\ntwo = 2\n")
    found.edit("other words\n", "docs/b.txt")
    shown = orch("show").stdout
    assert "Findings against what is there now" in shown
    assert [line.split()[1:3] for line in shown.splitlines() if f"[{grave}]" in line] == [["moved", "2→4"]]
    assert [line.split()[1] for line in shown.splitlines() if f"[{mild}]" in line] == ["gone"]
    status = opened(orch)
    assert all(part in status for part in ("a.py:4", "(was 2)", "1 gone since"))
    assert mild not in status


def test_a_file_of_another_name_is_followed(found: Project, orch: Orch) -> None:
    grave, _ = ids(found)
    (found.path / "a.py").rename(found.path / "z.py")
    assert [line.split()[1] for line in orch("show").stdout.splitlines() if f"[{grave}]" in line] == ["moved"]
    assert "z.py:2" in orch("show").stdout


def test_amend_rebase_and_ten_more_stops_leave_the_same_findings(found: Project, orch: Orch) -> None:
    before, told = ids(found), opened(orch)
    found.rewrite()
    assert opened(orch) == told
    for number in range(10):
        found.reviewer("fake", "--findings", TWO, "--stderr", f"{number}")
        found.edit(f"{number}\n", "unrelated.txt")
        found.fire()
        found.settle()
    assert opened(orch) == told
    again = orch("review", "--json", "main..topic")
    assert sorted(each["id"] for each in json.loads(again.stdout)["findings"]) == sorted(before)


def test_what_a_person_dismissed_is_counted_and_not_listed(found: Project, orch: Orch) -> None:
    grave, mild = ids(found)
    with Terminal("git", "orch", "dismiss", grave, "--why", "so be it", cwd=found.path) as terminal:
        assert terminal.end() == 0
    status = opened(orch)
    assert (grave in status, mild in status, "1 dismissed" in status) == (False, True, True)


def test_a_later_review_that_was_told_and_is_silent_lets_go(found: Project, orch: Orch) -> None:
    grave, _ = ids(found)
    found.reviewer("fake", "--pass")
    found.edit("one = 1\ntwo = 2\nthree = 3\n")
    orch("review")
    assert grave not in opened(orch)


def test_to_look_changes_nothing_of_the_users(found: Project, orch: Orch) -> None:
    index = found.path / ".git/index"
    before, status = index.read_bytes(), found.repo.git("status", "--porcelain")
    assert orch("status").returncode == orch("show").returncode == 0
    assert (index.read_bytes(), found.repo.git("status", "--porcelain")) == (before, status)
