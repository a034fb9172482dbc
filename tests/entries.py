"""Runs in a registry, without git and without a supervisor, for tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from git_orch import orchdir, registry, report, runs
from git_orch.launch import boot_id, machine_id, pid_namespace
from git_orch.layout import Layout
from git_orch.model import ReviewerSettings
from git_orch.registry import Intent, Registry

KEY = b"k" * 32
INSTANCE = "0123456789abcdef"


def layout_at(top: Path) -> Layout:
    """The layout of a plain repository in the folder, whether or not there is one."""
    git_dir = top / ".git"
    return Layout(
        worktree=str(top),
        common_dir=str(git_dir),
        git_dir=str(git_dir),
        index=str(git_dir / "index"),
        objects=str(git_dir / "objects"),
        object_format="sha1",
        live=str(top / ".orch"),
        durable=str(git_dir / "orch"),
    )


def make_registry(layout: Layout, *, key: bytes = KEY, instance: str = INSTANCE) -> Registry:
    """A registry with nothing in it."""
    os.makedirs(layout.durable)
    assert orchdir.make(layout.live, instance)
    return Registry(layout.live, key, instance)


def intent_of(layout: Layout, book: Registry, run_id: str = "", **changes: Any) -> Intent:
    """What a run of this machine and this boot was asked to do, in that repository."""
    run_id = run_id or registry.make_run_id()
    fields: dict[str, Any] = {
        "run_id": run_id,
        "tree_id": "a" * 40,
        "base_tree_id": "b" * 40,
        "subject": "working tree",
        "base_name": "HEAD",
        "temp_root": os.path.join(os.environ["TMPDIR"], f"git-orch-{os.geteuid()}"),
        "run_dir": layout.run_dir(run_id),
        "status_path": book.path(run_id, "state"),
        "result_path": os.path.join(layout.run_dir(run_id), "findings.json"),
        "durable": layout.durable,
        "common_dir": layout.common_dir,
        "git_dir": layout.git_dir,
        "objects": layout.objects,
        "object_format": layout.object_format,
        "worktree_path": layout.worktree,
        "started_at": "2026-11-30T20:15:00.123Z",
        "reviewers": (ReviewerSettings(name="static"), ReviewerSettings(name="claude", command="claude -p")),
        "machine_id": machine_id(),
        "boot_id": boot_id(),
        "pid_ns": pid_namespace(),
        "instance": book.instance,
    }
    return Intent(**{**fields, **changes})


def dead_run(layout: Layout, book: Registry, **changes: Any) -> Intent:
    """A run whose launcher has died before there was a supervisor: its entry is there, and nobody holds its lock."""
    intent = intent_of(layout, book, **changes)
    runs.make_folder(intent.run_dir)
    os.close(book.publish(intent).fd)
    return intent


def end_run(intent: Intent, **changes: Any) -> dict[str, Any]:
    """The run's record is there; gives it."""
    fields: dict[str, Any] = {"status": "done", "terminal_reason": "completed", "verdict": "pass", **changes}
    record = report.record_json(intent, report.Ended(**fields))
    runs.make_folder(intent.run_dir)
    runs.write(intent.run_dir, runs.RECORD, record)
    return record
