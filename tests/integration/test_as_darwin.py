"""Whole runs of a supervisor that holds its jobs as on macOS, on Linux: nobody is handed what a job has orphaned."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from git_orch import runs
from git_orch.registry import Intent
from git_orch.workspace import Workspace
from tests.adversaries.stage import is_alive
from tests.fakes import fake_reviewer
from tests.integration.scene import PROJECT, open_scene
from tests.integration.test_supervisor import order, supervise
from tests.repo import Repo

AS_DARWIN = f"sys.path.append({str(PROJECT)!r})\nimport tests.fakes.as_darwin\n"


@pytest.fixture
def scene(repo: Repo) -> Workspace:
    return open_scene(repo)


def record_of(scene: Workspace, intent: Intent) -> dict[str, Any]:
    """The record of a run that has ended, and of which nothing is left but the record."""
    log = Path(intent.run_dir, "supervisor.log")
    assert supervise(scene, intent, AS_DARWIN) == 0, log.read_text()
    record = runs.final_record(intent.run_dir)
    assert record is not None, log.read_text()
    assert record["terminal_reason"] != "supervisor-error", log.read_text()
    assert not os.path.exists(os.path.join(intent.temp_root, intent.run_id))
    assert os.listdir(scene.book.pending) == []
    return record


def test_a_review_runs(scene: Workspace, repo: Repo) -> None:
    record = record_of(scene, order(scene, repo, fake_reviewer("--pass"), fake_reviewer("--pass")))
    assert (record["status"], record["verdict"]) == ("done", "pass")
    assert [job["containment"] for job in record["jobs"]] == [3, 3]


@pytest.mark.parametrize("ending", ["exit 0", "sleep 300"])
def test_what_left_its_group_and_was_orphaned_is_ended(
    scene: Workspace, repo: Repo, tmp_path: Path, ending: str
) -> None:
    """A session of its own, and no parent: by the nonce in its environment."""
    said = tmp_path / "pid"
    inner = f"echo $$ >{said}.new; mv {said}.new {said}; exec sleep 300"
    command = f"(setsid sh -c '{inner}' &); until [ -e {said} ]; do :; done; {ending}"
    intent = order(scene, repo, command)
    (reviewer,) = intent.reviewers
    record = record_of(scene, intent.replace(reviewers=(reviewer.replace(timeout_s=2.0),)))
    assert record["verdict"] == "unreviewed"
    assert not is_alive(int(said.read_text()))
