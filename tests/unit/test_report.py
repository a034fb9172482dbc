"""A run's record: the fields of the contract, and what is read back from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from git_orch import report, runs
from git_orch.layout import Layout
from git_orch.model import Base, Change, Coverage, Finding, Report, Review, Skipped, Usage
from git_orch.registry import Intent
from git_orch.report import Ended
from tests.entries import intent_of, layout_at, make_registry

FINDING = Finding(path="a b.py", message="planted", severity="blocking", start_line=3, reviewer="claude", id="kmzv")
REVIEWS = (
    Review(name="static", outcome="exited 0", verdict="pass", reviewed=("a b.py", "c\udcff"), usage=Usage(cpu_s=0.25)),
    Review(
        name="claude",
        outcome="exited 0",
        verdict="findings",
        findings=(FINDING,),
        reviewed=("a b.py",),
        littered=(".cache",),
        usage=Usage(cpu_s=1.5, peak_rss_bytes=1 << 20),
    ),
)
COVERAGE = Coverage(
    offered=("a b.py", "c\udcff"), reviewed=("a b.py",), skipped=(Skipped(path="big", reason="large", tracked=True),)
)
JOB = {"reviewer": "static", "child_pid": 7, "child_pgid": 7, "child_starttime": 99, "status": "done"}
ENDED = Ended(
    status="done",
    terminal_reason="completed",
    verdict="findings",
    reason="1 blocking",
    supervisor_pid=6,
    jobs=(JOB,),
    reviews=REVIEWS,
    change=Change(files=2, added=10, removed=1),
    materialized="cold",
    timings_ms={"total": 12},
)


@pytest.fixture
def intent(tmp_path: Path) -> Intent:
    layout: Layout = layout_at(tmp_path / "repo")
    return intent_of(layout, make_registry(layout), base_commit="d" * 40)


@pytest.fixture
def written(intent: Intent) -> Intent:
    """A run whose results and record are there."""
    runs.make_folder(intent.run_dir)
    findings = {"schema_version": "1", "findings": [FINDING.fields()]}
    runs.write(intent.run_dir, "findings.json", findings)
    runs.write(intent.run_dir, "coverage.json", report.coverage_json(COVERAGE, REVIEWS))
    runs.write(intent.run_dir, runs.RECORD, report.record_json(intent, ENDED))
    return intent


def rewrite(intent: Intent, name: str, **changes: Any) -> None:
    value = runs.read(intent.run_dir, name)
    assert value is not None
    kept = {key: changes.get(key, item) for key, item in value.items() if changes.get(key, item) is not None}
    runs.write(intent.run_dir, name, kept)


def test_the_record_has_every_field_of_the_contract(intent: Intent) -> None:
    wanted = """run_id task_kind access disposition tree_id base_tree_id head commit_oid run_dir status_path result_path
        client host session_id machine_id boot_id pid_ns instance temp_root started_at deadline attempt jobs status
        terminal_reason finished_at worktree_path worktree_gone supervisor_pid schema_version cpu_s peak_rss_bytes"""
    record = report.record_json(intent, ENDED)
    assert set(wanted.split()) <= record.keys()
    assert record["jobs"] == [JOB]
    assert record["cpu_s"] == 1.75
    assert record["peak_rss_bytes"] == 1 << 20
    assert record["worktree_gone"] is False
    assert json.loads(json.dumps(record)) is not None


def test_an_orphans_record_has_the_same_keys(intent: Intent) -> None:
    orphaned = Ended(status="orphaned", terminal_reason="reaped", verdict="unreviewed")
    assert list(report.record_json(intent, orphaned)) == list(report.record_json(intent, ENDED))


def test_a_worktree_that_is_gone_is_told(intent: Intent) -> None:
    moved = intent.replace(worktree_path="/nonesuch")
    assert report.record_json(moved, ENDED)["worktree_gone"] is True


def test_what_was_written_is_read_back(written: Intent) -> None:
    assert report.load(written.run_dir, reused=True) == Report(
        run_id=written.run_id,
        tree_id=written.tree_id,
        base=Base(tree_id=written.base_tree_id, name="HEAD", commit="d" * 40),
        subject="working tree",
        verdict="findings",
        reason="1 blocking",
        status="done",
        findings=(FINDING,),
        coverage=COVERAGE,
        reviews=REVIEWS,
        change=ENDED.change,
        materialized="cold",
        timings_ms={"total": 12},
        run_dir=written.run_dir,
        reused=True,
        usd_limit=5.0,
    )


def test_a_run_that_has_not_ended_has_no_report(intent: Intent) -> None:
    assert report.load(intent.run_dir) is None
    runs.make_folder(intent.run_dir)
    runs.write(intent.run_dir, runs.RECORD, report.record_json(intent, ENDED.replace(status="running")))
    assert report.load(intent.run_dir) is None


@pytest.mark.parametrize("name", ["findings.json", "coverage.json"])
def test_lost_results_leave_the_verdict(written: Intent, name: str) -> None:
    Path(written.run_dir, name).unlink()
    found = report.load(written.run_dir)
    assert found is not None
    assert found.verdict == "findings"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (runs.RECORD, {"run_id": None}),
        (runs.RECORD, {"reviewers": [{"outcome": "exited 0"}]}),
        (runs.RECORD, {"reviewers": 3}),
        (runs.RECORD, {"base": "HEAD"}),
        (runs.RECORD, {"base": {"name": "HEAD"}}),
        ("findings.json", {"findings": [{"line": 3}]}),
        ("findings.json", {"findings": ["text"]}),
        ("coverage.json", {"skipped": [{"why": "?"}]}),
    ],
)
def test_a_record_of_another_version_has_no_report(written: Intent, name: str, changes: dict[str, Any]) -> None:
    rewrite(written, name, **changes)
    assert report.load(written.run_dir) is None


def test_fields_of_a_newer_version_are_passed_over(written: Intent) -> None:
    plain = report.load(written.run_dir)
    rewrite(written, "findings.json", findings=[{**FINDING.fields(), "novel": 1}])
    rewrite(written, runs.RECORD, change={**ENDED.change.fields(), "novel": 1})
    found = report.load(written.run_dir)
    assert found is not None
    assert found == plain
