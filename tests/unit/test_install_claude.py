"""Claude Code's settings files and its plugin: where they are, and what in them would keep our hooks from running."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import git_orch
from git_orch.errors import EnvironmentProblem
from git_orch.install import claude, clients, hooksfile
from git_orch.install.clients import Scope
from git_orch.install.receipts import Receipt


def put_in(raw: bytes) -> bytes:
    return hooksfile.put_in(raw, claude.CLIENT)


ROOT = Path(__file__).parents[2]


def load(path: Path) -> Any:
    return json.loads(path.read_bytes())


@pytest.mark.parametrize(
    ("scope", "env", "path"),
    [
        ("user", {"HOME": "/h"}, "/h/.claude/settings.json"),
        ("user", {"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}, "/c/settings.json"),
        ("user", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/settings.json"),
        ("project", {}, "/w/.claude/settings.json"),
        ("local", {}, "/w/.claude/settings.local.json"),
    ],
)
def test_where_the_settings_are(scope: Scope, env: dict[str, str], path: str) -> None:
    assert claude.CLIENT.settings_path(scope, env, "/w") == path


@pytest.mark.parametrize(
    ("scope", "env", "worktree", "reason"),
    [
        ("user", {}, "/w", "HOME is not set"),
        ("user", {"HOME": "relative"}, "/w", "HOME is not set"),
        ("project", {"HOME": "/h"}, "", "bare repository"),
        ("local", {"HOME": "/h"}, "", "bare repository"),
    ],
)
def test_where_there_can_be_none(scope: Scope, env: dict[str, str], worktree: str, reason: str) -> None:
    with pytest.raises(EnvironmentProblem, match=reason):
        claude.CLIENT.settings_path(scope, env, worktree)


def obstacles(tmp_path: Path, managed: dict[str, Any] | None = None, **scopes: Any) -> list[str]:
    paths: dict[Scope, str] = {}
    for scope in clients.SCOPES:
        paths[scope] = str(tmp_path / f"{scope}.json")
        if scope in scopes:
            Path(paths[scope]).write_text(json.dumps(scopes[scope]))
    (tmp_path / "managed").mkdir()
    if managed is not None:
        (tmp_path / "managed/managed-settings.json").write_text(json.dumps(managed))
    return claude.obstacles(paths, str(tmp_path / "managed"))


def test_usually_nothing_is_in_the_way(tmp_path: Path) -> None:
    assert obstacles(tmp_path, user={"model": "opus"}) == []


@pytest.mark.parametrize(
    ("scopes", "told"),
    [
        ({"user": {"disableAllHooks": True}}, "user.json"),
        ({"local": {"disableAllHooks": True}}, "local.json"),
        ({"user": {"disableAllHooks": False}, "project": {"disableAllHooks": True}}, "project.json"),
        ({"user": {"disableAllHooks": True}, "project": {"disableAllHooks": False}}, ""),
        ({"user": {"disableAllHooks": "true"}}, ""),
    ],
)
def test_hooks_that_are_switched_off_are_told_by_the_nearest_file(
    tmp_path: Path, scopes: dict[str, Any], told: str
) -> None:
    found = obstacles(tmp_path, **scopes)
    assert len(found) == bool(told)
    assert all("disableAllHooks" in sentence and told in sentence for sentence in found)


@pytest.mark.parametrize("key", ["allowManagedHooksOnly", "disableAllHooks"])
def test_what_an_administrator_forbids_is_told(tmp_path: Path, key: str) -> None:
    (sentence,) = obstacles(tmp_path, managed={key: True})
    assert key in sentence
    assert "administrator" in sentence


def test_a_managed_part_counts_too(tmp_path: Path) -> None:
    parts = tmp_path / "managed/managed-settings.d"
    parts.mkdir(parents=True)
    (parts / "10-hooks.json").write_text('{"allowManagedHooksOnly": true}')
    (parts / "20-broken.json").write_text("{")
    (sentence,) = claude.obstacles({}, str(tmp_path / "managed"))
    assert "10-hooks.json" in sentence


def test_the_plugin_beside_the_line_is_told(tmp_path: Path) -> None:
    (sentence,) = obstacles(tmp_path, user={"enabledPlugins": {"orch@any": True, "other@any": True}})
    assert "twice" in sentence


def test_a_plugin_that_is_off_is_none(tmp_path: Path) -> None:
    assert obstacles(tmp_path, user={"enabledPlugins": {"orch@any": False, "other@git-orch": True}}) == []


@pytest.mark.parametrize(
    ("raw", "uses"),
    [
        (b"", False),
        (b"{}", False),
        (put_in(b""), True),
        (b'{"enabledPlugins": {"orch@x": true}}', True),
        (b'{"enabledPlugins": {"orch@x": false}}', False),
        (b"{broken git-orch", True),
        (b"{broken", False),
    ],
)
def test_who_needs_the_launcher(raw: bytes, uses: bool) -> None:
    assert claude.uses_launcher(raw) is uses


def test_the_plugin_holds_the_same_lines_as_a_settings_file() -> None:
    assert load(ROOT / "hooks/hooks.json")["hooks"] == claude.CLIENT.entries()


def test_the_plugin_loads_by_its_manifest_alone() -> None:
    plugin = load(ROOT / ".claude-plugin/plugin.json")
    # Named there as well, the file is loaded twice, and Claude Code 2.1.197 then refuses the whole plugin.
    assert "hooks" not in plugin
    assert plugin["name"] == claude.PLUGIN
    assert plugin["version"] == git_orch.__version__


def test_the_repository_is_a_marketplace_with_the_plugin() -> None:
    marketplace = load(ROOT / ".claude-plugin/marketplace.json")
    (listed,) = marketplace["plugins"]
    assert (listed["name"], listed["source"]) == (claude.PLUGIN, "./")


def test_a_receipt_survives_being_written_down() -> None:
    receipt = Receipt(
        path="/x",
        kind="claude",
        original=b"\xef\xbb\xbf\xff\r\n",
        written="ab",
        settings={"orch.enabled": "true"},
        folders=("/a", "/a/b"),
        common_dir="/r/.git",
    )
    assert Receipt.from_json(json.loads(json.dumps(receipt.to_json()))) == receipt
    none = receipt.replace(original=None)
    assert Receipt.from_json(none.to_json()) == none
    assert not none.fits(None)


def test_on_windows_the_entry_asks_for_bash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "name", "nt")
    assert claude.CLIENT.handler("stop")["shell"] == "bash"
