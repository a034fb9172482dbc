"""The intent in the lasting folder: believed where it was written, and nowhere else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from git_orch import twin
from git_orch.registry import Intent
from tests.entries import KEY, intent_of, layout_at, make_registry


@pytest.fixture
def run(tmp_path: Path) -> Intent:
    layout = layout_at(tmp_path / "repo")
    intent = intent_of(layout, make_registry(layout))
    os.makedirs(intent.run_dir)
    return intent


def test_what_was_written_is_read_until_it_is_removed(run: Intent) -> None:
    assert twin.read(run.run_dir, KEY) is None
    twin.write(run, KEY)
    assert twin.exists(run.run_dir)
    assert twin.read(run.run_dir, KEY) == run
    twin.remove(run.run_dir)
    twin.remove(run.run_dir)
    assert not twin.exists(run.run_dir)


def test_another_users_is_not_believed(run: Intent) -> None:
    twin.write(run, b"x" * 32)
    assert twin.read(run.run_dir, KEY) is None


def test_a_copy_is_not_believed_and_a_moved_repository_is(run: Intent, tmp_path: Path) -> None:
    twin.write(run, KEY)
    copy, moved = tmp_path / "copy", tmp_path / "moved"
    shutil.copytree(tmp_path / "repo", copy)
    os.rename(tmp_path / "repo", moved)
    within = os.path.relpath(run.run_dir, tmp_path / "repo")
    assert twin.read(str(copy / within), KEY) is None
    assert twin.read(str(moved / within), KEY) == run


@pytest.mark.parametrize("raw", [b"", b"{}\n", b"{}\n0123\n", b"\xff\xfe\n\xff\n", b"\n" * 10])
def test_rubbish_is_not_believed(run: Intent, raw: bytes) -> None:
    Path(run.run_dir, "intent").write_bytes(raw)
    assert twin.read(run.run_dir, KEY) is None


def test_a_link_is_not_followed(run: Intent, tmp_path: Path) -> None:
    twin.write(run, KEY)
    os.rename(Path(run.run_dir, "intent"), tmp_path / "elsewhere")
    Path(run.run_dir, "intent").symlink_to(tmp_path / "elsewhere")
    assert twin.read(run.run_dir, KEY) is None
