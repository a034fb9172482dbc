"""Whole runs of a supervisor that works as on Windows: by paths, without fork, with job objects; on Linux."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from git_orch import runs
from git_orch.config import BUILT_IN
from git_orch.model import ReviewerSettings
from git_orch.registry import Intent
from git_orch.workspace import Workspace
from tests.fakes import fake_reviewer
from tests.integration.scene import PROJECT, open_scene
from tests.integration.test_supervisor import BLOCKING, order, supervise
from tests.repo import Repo

AS_WINDOWS = f"sys.path.append({str(PROJECT)!r})\nimport tests.fakes.as_windows\n"


@pytest.fixture
def scene(repo: Repo) -> Workspace:
    return open_scene(repo)


def record_of(scene: Workspace, intent: Intent) -> dict[str, Any]:
    """The record of a run that has ended, and of which nothing is left but the record."""
    assert supervise(scene, intent, AS_WINDOWS) == 0, Path(intent.run_dir, "supervisor.log").read_text()
    record = runs.final_record(intent.run_dir)
    assert record is not None, Path(intent.run_dir, "supervisor.log").read_text()
    assert record["terminal_reason"] != "supervisor-error", Path(intent.run_dir, "supervisor.log").read_text()
    assert not os.path.exists(os.path.join(intent.temp_root, intent.run_id))
    assert os.listdir(scene.book.pending) == []
    return record


def test_a_review_runs(scene: Workspace, repo: Repo) -> None:
    intent = order(scene, repo, fake_reviewer("--pass"), fake_reviewer("--to-result", "--findings", BLOCKING))
    record = record_of(scene, intent)
    assert (record["status"], record["verdict"]) == ("done", "findings")
    assert [job["containment"] for job in record["jobs"]] == [4, 4]
    assert not os.path.exists(os.path.join(intent.temp_root, "warm"))


def test_what_hangs_is_ended_with_what_it_started(scene: Workspace, repo: Repo) -> None:
    intent = order(scene, repo, fake_reviewer("--hang"))
    (reviewer,) = intent.reviewers
    record = record_of(scene, intent.replace(reviewers=(reviewer.replace(timeout_s=1.0),)))
    assert (record["status"], record["verdict"]) == ("timed-out", "unreviewed")


def test_a_tree_that_was_edited_is_noticed(scene: Workspace, repo: Repo) -> None:
    record = record_of(scene, order(scene, repo, "sh -c 'echo more >>a.py; echo >new'"))
    (review,) = record["reviewers"]
    assert "a.py" in str(review)
    assert record["verdict"] == "unreviewed"


def test_the_built_in_reviewer_runs(scene: Workspace, repo: Repo) -> None:
    intent = order(scene, repo)
    record = record_of(scene, intent.replace(reviewers=(ReviewerSettings(name=BUILT_IN),)))
    assert record["status"] == "done"
    assert record["verdict"] != "unreviewed"
