"""Fixtures of the acceptance tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A repository named `repo` under git-orch, with one commit and one edit."""
    return Project(tmp_path / "repo")
