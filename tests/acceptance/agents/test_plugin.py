"""The plugin, as the real Claude Code sees it. No request leaves the client for any of this."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.agents.clients import Installed, installed, setting
from tests.project import Project

PROJECT = Path(__file__).parents[3]
INSTALLED = Path(sys.prefix) / "share/git-orch/plugin"
CLIENTS = [pytest.param(each, id=each.label) for each in installed("claude")] or [
    pytest.param(None, marks=pytest.mark.skip(reason="claude is not installed: scripts/clients, AGENT_CLIS, or PATH"))
]

pytestmark = [pytest.mark.real_client, pytest.mark.parametrize("client", CLIENTS)]


def claude(client: Installed, *words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **setting("claude", "http://127.0.0.1:9", Path(os.environ["HOME"])).env}
    argv = [client.program, *words]
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_it_is_valid(client: Installed, tmp_path: Path) -> None:
    for path in (PROJECT, PROJECT / ".claude-plugin/plugin.json", INSTALLED):
        done = claude(client, "plugin", "validate", path, cwd=tmp_path)
        assert done.returncode == 0, f"{path}\n{done.stdout}\n{done.stderr}"


def test_a_broken_manifest_is_told_apart(client: Installed, tmp_path: Path) -> None:
    (tmp_path / ".claude-plugin").mkdir()
    (tmp_path / ".claude-plugin/plugin.json").write_text('{"name": ["orch"]}')
    assert claude(client, "plugin", "validate", tmp_path, cwd=tmp_path).returncode != 0


def test_it_installs_from_where_the_package_has_put_it(client: Installed, tmp_path: Path) -> None:
    added = claude(client, "plugin", "marketplace", "add", INSTALLED, cwd=tmp_path)
    assert added.returncode == 0, added.stdout + added.stderr
    done = claude(client, "plugin", "install", "orch@git-orch", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    config = Path(os.environ["HOME"]) / ".claude"
    assert json.loads((config / "settings.json").read_text())["enabledPlugins"] == {"orch@git-orch": True}
    copied = {path.relative_to(config).as_posix() for path in config.glob("plugins/cache/git-orch/orch/*/**/*.md")}
    names = {"/".join(Path(path).parts[5:]) for path in copied}
    assert {"commands/review.md", "commands/findings.md", "skills/reviewing/SKILL.md"} <= names


def test_it_connects_to_the_mcp_server(client: Installed, project: Project) -> None:
    added = claude(client, "mcp", "add", "orch", "--", "git", "orch", "mcp", cwd=project.path)
    assert added.returncode == 0, added.stdout + added.stderr
    listed = claude(client, "mcp", "list", cwd=project.path)
    assert "orch: git orch mcp - ✔ Connected" in listed.stdout.replace("✓", "✔"), listed.stdout + listed.stderr
    assert project.runs == []
