"""Fixtures of the acceptance tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A repository named `repo` under git-orch, with one commit and one edit."""
    return Project(tmp_path / "repo")


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """The folder of clients, first on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
    return folder
