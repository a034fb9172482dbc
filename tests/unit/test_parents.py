"""What lies above a tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from git_orch.parents import enclosing_repository, foreign_configuration

STEERING = [
    "ruff.toml",
    "pyproject.toml",
    "conftest.py",
    "node_modules",
    ".eslintrc.json",
    "CLAUDE.md",
    ".git",
    ".claude",
]


@pytest.mark.parametrize("name", STEERING)
def test_a_configuration_above_is_found(tmp_path: Path, name: str) -> None:
    root = tmp_path / "a" / "b" / "git-orch-0"
    root.mkdir(parents=True)
    assert foreign_configuration(str(root)) is None
    (tmp_path / "a" / name).mkdir()
    assert foreign_configuration(str(root)) == str(tmp_path / "a" / name)


def test_a_dangling_link_counts(tmp_path: Path) -> None:
    (tmp_path / "tox.ini").symlink_to("nowhere")
    assert foreign_configuration(str(tmp_path)) == str(tmp_path / "tox.ini")


def test_a_persons_own_client_settings_in_the_home_directory_are_not_foreign(tmp_path: Path) -> None:
    home = tmp_path / "home"
    root = home / "tmp"
    root.mkdir(parents=True)
    (home / ".claude").mkdir()
    assert foreign_configuration(str(root), home=str(home)) is None
    (home / "ruff.toml").touch()
    assert foreign_configuration(str(root), home=str(home)) == str(home / "ruff.toml")
    (root / ".claude").mkdir()
    assert foreign_configuration(str(root), home=str(home)) == str(root / ".claude")


def test_repositories_around_a_path_are_found(tmp_path: Path) -> None:
    inside = tmp_path / "repo" / "deep" / "er"
    inside.mkdir(parents=True)
    assert enclosing_repository(str(inside)) is None
    (tmp_path / "repo" / ".git").write_text("gitdir: elsewhere\n")
    assert enclosing_repository(str(inside)) == str(tmp_path / "repo")


def test_a_bare_repository_is_one(tmp_path: Path) -> None:
    for name in ("objects", "refs", "tmp"):
        (tmp_path / "bare" / name).mkdir(parents=True)
    assert enclosing_repository(str(tmp_path / "bare" / "tmp")) is None
    (tmp_path / "bare" / "HEAD").touch()
    assert enclosing_repository(str(tmp_path / "bare" / "tmp")) == str(tmp_path / "bare")
