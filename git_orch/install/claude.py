"""Claude Code's settings files: where they lie, what stands in them for us, and what in them keeps hooks from running.

The shape is that of code.claude.com/docs/en/hooks: `{"hooks": {EVENT: [{"hooks": [{"type": "command", ...}]}]}}`. The
same entry in several files runs once, so ours is the same, byte for byte, wherever it is put.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from git_orch import atomic
from git_orch.errors import EnvironmentProblem
from git_orch.install import edit, launcher
from git_orch.model import Record

if TYPE_CHECKING:
    from git_orch.model import Json

Scope = Literal["user", "project", "local"]
SCOPES: tuple[Scope, ...] = ("user", "project", "local")
NAME = "claude"
TITLE = "Claude Code"
PLUGIN = "git-orch"
TIMEOUT_S = 20  # the hook keeps a budget of a second itself; a client's own default is ten minutes
EVENTS: dict[str, launcher.Event] = {
    "Stop": "stop",
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
}
_MANAGED = {
    "darwin": "/Library/Application Support/ClaudeCode",
    "win32": r"C:\Program Files\ClaudeCode",
}


def settings_path(scope: Scope, env: Mapping[str, str], worktree: str) -> str:
    """The settings file of that scope.

    Raises:
        EnvironmentProblem: there is no HOME, or no work tree to have a project's settings.
    """
    if scope == "user":
        return os.path.join(_config_dir(env), "settings.json")
    if not worktree:
        raise EnvironmentProblem(
            f"a bare repository has no work tree, so there is no {scope} file of {TITLE}", "git orch install --user"
        )
    return os.path.join(worktree, ".claude", "settings.json" if scope == "project" else "settings.local.json")


def _config_dir(env: Mapping[str, str]) -> str:
    if env.get("CLAUDE_CONFIG_DIR"):
        return os.path.abspath(env["CLAUDE_CONFIG_DIR"])
    home = env.get("HOME", "")
    if not os.path.isabs(home):
        raise EnvironmentProblem("HOME is not set", f"set HOME, or CLAUDE_CONFIG_DIR: {TITLE} has its settings there")
    return os.path.join(home, ".claude")


def handler(event: launcher.Event) -> Json:
    """The entry for an event. On Windows it asks for Git Bash, since PowerShell breaks the quotes. Written, not run."""
    entry: Json = {"type": "command", "command": launcher.line(event), "timeout": TIMEOUT_S}
    return {**entry, "shell": "bash"} if os.name == "nt" else entry


def entries() -> Json:
    """What the key `hooks` of a settings file, or of a plugin, holds for us."""
    return {name: [{"hooks": [handler(event)]}] for name, event in EVENTS.items()}


# -- a settings file with and without us


class Place(Record):
    """A handler of ours in the text: the chain of objects and arrays that lead to it, outermost first."""

    event: str
    command: edit.Node
    chain: tuple[tuple[edit.Node, edit.Member], ...]


def put_in(raw: bytes) -> bytes:
    """The settings with our handlers, each once and in the present form; everything else stays as it is.

    Raises:
        NotJson: the file is not one that can be edited.
    """
    text = edit.decode(raw)
    if not text.strip():
        return edit.encode(edit.new_document({"hooks": entries()}), raw)
    text = _brought_up_to_date(text)
    for name, event in EVENTS.items():
        if not any(place.event == name for place in _places(text)):
            text = _with_handler(text, name, {"hooks": [handler(event)]})
    return edit.encode(text, raw)


def take_out(raw: bytes, keep: frozenset[str] = frozenset()) -> bytes:
    """The settings without any handler of ours, and without what that leaves empty, but for the keys to `keep`.

    `keep` has "hooks", and "hooks.EVENT" for each event whose array was there before us.

    Raises:
        NotJson: the file is not one that can be edited.
    """
    text = edit.decode(raw)
    if not text.strip():
        return raw
    while place := next(_places(text), None):
        text = _without(text, place, keep)
    return edit.encode(text, raw)


def has_ours(raw: bytes) -> bool:
    """Whether a handler of ours stands in the settings.

    Raises:
        NotJson: the file is not one that can be read.
    """
    text = edit.decode(raw)
    return bool(text.strip()) and next(_places(text), None) is not None


def keys_of(raw: bytes) -> frozenset[str]:
    """Which of `hooks` and `hooks.EVENT` the settings have: what `take_out` has to keep."""
    try:
        text = edit.decode(raw)
        hooks = edit.parse(text).member("hooks") if text.strip() else None
    except edit.NotJson:
        return frozenset()
    if hooks is None:
        return frozenset()
    return frozenset({"hooks", *(f"hooks.{member.key}" for member in hooks.node.members)})


def is_empty(raw: bytes) -> bool:
    """Whether the settings say nothing."""
    try:
        text = edit.decode(raw)
        return not text.strip() or not edit.parse(text).members
    except edit.NotJson:
        return False


def _places(text: str) -> Iterator[Place]:
    root = edit.parse(text)
    for hooks in (member for member in root.members if member.key == "hooks" and member.node.kind == "object"):
        for event in (member for member in hooks.node.members if member.node.kind == "array"):
            for group in event.node.members:
                yield from _places_of_group(group, ((root, hooks), (hooks.node, event), (event.node, group)))


def _places_of_group(group: edit.Member, chain: tuple[tuple[edit.Node, edit.Member], ...]) -> Iterator[Place]:
    handlers = group.node.member("hooks")
    if handlers is None:
        return
    for entry in handlers.node.members:
        command = entry.node.member("command")
        if command is not None and isinstance(command.node.value, str) and launcher.MARK in command.node.value:
            yield Place(event=chain[1][1].key, command=command.node, chain=(*chain, (handlers.node, entry)))


def _brought_up_to_date(text: str) -> str:
    """The text with each handler of ours in the present form; a second one for an event, or a stray one, is gone."""
    seen: set[str] = set()
    for place in _places(text):
        wanted = launcher.line(EVENTS[place.event]) if place.event in EVENTS else ""
        if not wanted or place.event in seen:
            return _brought_up_to_date(_without(text, place, keys_of(text.encode())))
        if place.command.value != wanted:
            return _brought_up_to_date(edit.replace(text, place.command, wanted))
        seen.add(place.event)
    return text


def _with_handler(text: str, event: str, group: Json) -> str:
    root = edit.parse(text)
    hooks = root.member("hooks")
    if hooks is None:
        return edit.add(text, root, {event: [group]}, key="hooks")
    if hooks.node.kind != "object":
        raise edit.NotJson("its `hooks` is no object")
    there = hooks.node.member(event)
    if there is None:
        return edit.add(text, hooks.node, [group], key=event)
    if there.node.kind != "array":
        raise edit.NotJson(f"its `hooks.{event}` is no list")
    return edit.add(text, there.node, group)


def _without(text: str, place: Place, keep: frozenset[str]) -> str:
    """The text without the handler, and without the group, event and `hooks` that it leaves empty and are not kept."""
    handlers_level, group_level, event_level, hooks_level = reversed(place.chain)
    if len(handlers_level[0].members) > 1:
        return edit.remove(text, *handlers_level)
    if len(group_level[0].members) > 1 or f"hooks.{place.event}" in keep:
        return edit.remove(text, *group_level)
    if len(event_level[0].members) > 1 or "hooks" in keep:
        return edit.remove(text, *event_level)
    return edit.remove(text, *hooks_level)


# -- what keeps hooks from running


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
        found.append(f"the plugin {PLUGIN} is on as well: each hook fires twice, and one of the two is enough")
    return found


def uses_launcher(raw: bytes) -> bool:
    """Whether the settings start our launcher, by a line or by the plugin; where it cannot be told: yes."""
    if not raw.removeprefix(edit.BOM).strip():
        return False
    try:
        return has_ours(raw) or _has_plugin(json.loads(edit.decode(raw)))
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
