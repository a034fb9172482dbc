"""Verdicts as git notes: by choice, on commits, found again by patch-id, mergeable, and never a word at the gate."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from git_orch import notes
from git_orch.git import Git
from git_orch.workspace import open_at
from tests.project import Json, Project

REF = "refs/notes/orch"


@pytest.fixture
def noted(project: Project) -> Project:
    """The project with notes on, and a second commit."""
    project.set("orch.notes", "true")
    project.repo.commit("second")
    return project


def orch(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "orch", *words], cwd=project.path, capture_output=True, text=True, timeout=60, check=False
    )


def review(project: Project, rev: str = "HEAD") -> None:
    done = orch(project, "review", rev)
    assert done.returncode in (0, 1), done.stderr
    project.settle()


def lines(project: Project, commit: str = "HEAD") -> list[str]:
    done = subprocess.run(
        ["git", "notes", f"--ref={REF}", "show", commit], cwd=project.path, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()


def gate(project: Project) -> Json:
    answer: Json = json.loads(orch(project, "gate", "--json", "--base", "HEAD~1").stdout)["gates"][0]
    return answer


def test_a_review_of_a_commit_is_noted_once(noted: Project) -> None:
    review(noted)
    (said,) = lines(noted)
    record = noted.record(noted.last)
    assert said.startswith(f"pass by static tree={record['tree_id']} base={record['base']['tree_id']} patch=")
    assert said.endswith(f" run={noted.last}")
    assert gate(noted)["notes"] == [said]
    done = orch(noted, "review", "--fresh", "HEAD")
    assert done.returncode == 0
    noted.settle()
    assert len(lines(noted)) == 2
    assert lines(noted) == sorted(lines(noted))


def test_nothing_is_noted_without_the_setting_nor_of_a_work_tree(noted: Project) -> None:
    noted.edit("one = 5\n")
    assert orch(noted, "review").returncode == 0
    noted.settle()
    noted.set("orch.notes", "false")
    review(noted)
    assert noted.repo.git("for-each-ref", "refs/notes") == ""
    assert gate(noted)["notes"] == []


def test_an_amended_and_a_rebased_commit_show_the_note_of_the_same_patch(noted: Project) -> None:
    review(noted)
    (said,) = lines(noted)
    old = noted.repo.git("rev-parse", "HEAD")
    noted.repo.git("commit", "--quiet", "--amend", "--message", "other words")
    assert lines(noted) == []
    assert gate(noted)["notes"] == [f"of {old[:7]}, the same patch: {said}"]
    noted.edit("two = 3\n")
    noted.repo.git("commit", "--quiet", "--all", "--amend", "--message", "other content")
    assert gate(noted)["notes"] == []


@pytest.mark.parametrize("says", ["*.py -diff", "*.py diff=theirs", "*.py text eol=crlf"])
def test_attributes_and_settings_change_no_patch_id(noted: Project, says: str) -> None:
    """With `-diff` any two changes of a file had the same patch-id, or none."""
    review(noted)
    (said,) = lines(noted)
    noted.repo.write(".git/info/attributes", f"{says}\n")
    noted.set("diff.theirs.textconv", "echo same #")
    noted.set("diff.renames", "copies")
    noted.set("diff.context", "9")
    noted.repo.git("commit", "--quiet", "--amend", "--message", "other words")
    (shown,) = gate(noted)["notes"]
    assert shown.endswith(said)
    noted.edit("two = 3\n")
    noted.repo.git("commit", "--quiet", "--all", "--amend", "--message", "other content")
    assert gate(noted)["notes"] == []


def test_notes_that_somebody_writes_meanwhile_stay(noted: Project) -> None:
    """The ref moves right before ours does."""
    workspace = open_at(str(noted.path), os.environ)
    head = noted.repo.git("rev-parse", "HEAD")
    (noted.path / ".git/orch").mkdir(exist_ok=True)
    theirs = iter([noted.repo.git("rev-parse", "HEAD~1"), ""])

    class Watched(Git):
        def run(self, *words: str | bytes, **more: Any) -> bytes:
            if words[0] == "update-ref" and (other := next(theirs)):
                noted.repo.git("notes", f"--ref={REF}", "add", "--message", "theirs", other)
            return super().run(*words, **more)

    git = Watched(**workspace.git.fields())
    notes.add(git, workspace.store, workspace.layout.durable, head, "ours")
    assert lines(noted) == ["ours"]
    assert lines(noted, "HEAD~1") == ["theirs"]
    assert next(theirs, None) is None
    noted.repo.git("fsck", "--strict")
    assert workspace.store.git().run("for-each-ref", "refs/notes") == b""


def test_a_note_lets_nothing_through(noted: Project) -> None:
    head = noted.repo.git("rev-parse", "HEAD")
    tree = noted.repo.git("rev-parse", "HEAD^{tree}")
    noted.repo.git("notes", f"--ref={REF}", "add", "--message", f"pass by static tree={tree} base={tree} patch=-", head)
    answer = gate(noted)
    assert (answer["state"], answer["passes"], len(answer["notes"])) == ("unreviewed", False, 1)


def test_notes_of_two_clones_merge(noted: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("other") / "clone"
    subprocess.run(["git", "clone", "--quiet", noted.path, path], check=True, timeout=60)
    other = Project.of(path)
    for key, value in (("orch.notes", "true"), ("orch.reviewers", "static")):
        other.set(key, value)
    review(noted)
    review(other)
    other.repo.git("fetch", "--quiet", "origin", f"{REF}:refs/notes/theirs")
    other.repo.git("notes", f"--ref={REF}", "merge", "--quiet", "--strategy=cat_sort_uniq", "refs/notes/theirs")
    assert sorted(lines(other)) == sorted({*lines(noted), *lines(other)})
    assert len(lines(other)) == 2


def test_where_it_cannot_be_noted_the_verdict_stands(noted: Project) -> None:
    noted.repo.write(".git/refs/notes/orch/blocked", noted.repo.git("rev-parse", "HEAD") + "\n")  # a folder in the way
    review(noted)
    assert noted.record(noted.last)["verdict"] == "pass"
    assert [each["event"] for each in noted.events() if each["event"] == "run.not-noted"] == ["run.not-noted"]
