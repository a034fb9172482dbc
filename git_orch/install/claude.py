"""Claude Code's own: its entry in the table of clients, and what in its settings keeps hooks from running.

The shape is that of code.claude.com/docs/en/hooks: `{"hooks": {EVENT: [{"hooks": [{"type": "command", ...}]}]}}`. The
same entry in several files runs once, so ours is the same, byte for byte, wherever it is put.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from git_orch import atomic
from git_orch.install import clients, edit, hooksfile
from git_orch.install.clients import SCOPES, Scope

if TYPE_CHECKING:
    from git_orch.model import Json

CLIENT = clients.CLIENTS["claude"]
NAME = CLIENT.name
TITLE = CLIENT.title
PLUGIN = "orch"
_MANAGED = {
    "darwin": "/Library/Application Support/ClaudeCode",
    "win32": r"C:\Program Files\ClaudeCode",
}


def obstacles(paths: Mapping[Scope, str], managed_dir: str = "") -> list[str]:
    """A sentence for each setting because of which the client would not run our line, or would run it twice."""
    found = []
    values = {scope: _read(path) for scope, path in paths.items()}
    disabled = [scope for scope in SCOPES if "disableAllHooks" in values.get(scope, {})]
    if disabled and values[disabled[-1]]["disableAllHooks"] is True:  # the nearest file decides
        found.append(f"`disableAllHooks` is true in {paths[disabled[-1]]}: {TITLE} runs no hook until that is gone")
    for path, value in _managed(managed_dir or _MANAGED.get(sys.platform, "/etc/claude-code")):
        for key in ("disableAllHooks", "allowManagedHooksOnly"):
            if value.get(key) is True:
                found.append(f"`{key}` is set by your administrator in {path}: {TITLE} will not run this hook")
    if any(_has_plugin(value) for value in values.values()):
        found.append(f"the plugin {PLUGIN} of git-orch is on as well: each hook fires twice, and one of them is enough")
    return found


def uses_launcher(raw: bytes) -> bool:
    """Whether the settings start our launcher, by a line or by the plugin; where it cannot be told: yes."""
    if not raw.removeprefix(edit.BOM).strip():
        return False
    try:
        return hooksfile.has_ours(raw, CLIENT) or _has_plugin(json.loads(edit.decode(raw)))
    except ValueError:
        return b"git-orch" in raw


def _has_plugin(value: Json) -> bool:
    plugins = value.get("enabledPlugins")
    return isinstance(plugins, dict) and any(
        name.partition("@")[0] == PLUGIN and on is True for name, on in plugins.items()
    )


def _managed(folder: str) -> Iterator[tuple[str, Json]]:
    parts = os.path.join(folder, "managed-settings.d")
    try:
        names = sorted(name for name in os.listdir(parts) if name.endswith(".json"))
    except OSError:
        names = []
    for path in (os.path.join(folder, "managed-settings.json"), *(os.path.join(parts, name) for name in names)):
        yield path, _read(path)


def _read(path: str) -> Json:
    """The object in a settings file; an empty one where there is none, or none that can be read."""
    raw = atomic.read(os.path.realpath(path))
    try:
        value = json.loads((raw or b"").removeprefix(edit.BOM))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
