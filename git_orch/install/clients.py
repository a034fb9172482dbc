"""The clients whose hooks we install: where each one's settings lie, and the form that a handler has there.

Sources: developers.openai.com/codex/hooks; google-gemini/gemini-cli, docs/hooks/reference.md; QwenLM/qwen-code,
docs/users/features/hooks.md; github/docs, content/copilot/reference/hooks-reference.md; cursor.com/docs/hooks;
opencode.ai/docs/plugins. How each is read and answered when it fires is the business of `dialects`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from git_orch.errors import EnvironmentProblem, UsageError
from git_orch.install import launcher
from git_orch.model import Record

if TYPE_CHECKING:
    from git_orch.model import Json

Scope = Literal["user", "project", "local"]
SCOPES: tuple[Scope, ...] = ("user", "project", "local")
TIMEOUT_S = 20  # the hook keeps a budget of a second itself; a client's own default is up to ten minutes
CURSOR_LOOPS = 10  # how often a stop may go on by itself: our own rounds end far earlier
_ALIKE: dict[str, launcher.Event] = {
    "Stop": "stop",
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
}


class Client(Record):
    """A client: its name as people type it, and how its hooks are written down.

    `shape` is `grouped` (`hooks.EVENT[].hooks[]`, as Claude Code has it), `flat` (`hooks.EVENT[]`, with a `version`) or
    `plugin` (a file of ours alone). `events` are its own names and ours, `files` its settings by scope, below `home`
    (`homes`: variables that name another folder instead) or below the work tree. `command_key` and `extra` make up a
    handler. `comments`: whether it reads JSON with comments. `vendor` is whose plan it uses.
    """

    name: str
    title: str
    vendor: str
    events: Mapping[str, launcher.Event]
    files: Mapping[Scope, str]
    home: str = ""
    homes: tuple[str, ...] = ()
    shape: Literal["grouped", "flat", "plugin"] = "grouped"
    command_key: str = "command"
    extra: Mapping[str, object] = {}
    comments: bool = False
    named: bool = True

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that its settings have."""
        return tuple(scope for scope in SCOPES if scope in self.files)

    def line(self, event: launcher.Event) -> str:
        """The command line of an event; all but Claude's name their client, since others read Claude's files too."""
        return launcher.line(event, self.name if self.named else "")

    def handler(self, event: launcher.Event) -> Json:
        """The entry for an event. On Windows Claude's asks for Git Bash, as PowerShell breaks quotes (not run)."""
        kind = {} if self.name == "cursor" else {"type": "command"}
        entry: Json = {**kind, self.command_key: self.line(event), **self.extra}
        if self.name == "cursor" and event == "stop":
            entry["loop_limit"] = CURSOR_LOOPS
        return {**entry, "shell": "bash"} if self.name == "claude" and os.name == "nt" else entry

    def group(self, event: launcher.Event) -> Json:
        """What stands in the list of an event."""
        return {"hooks": [self.handler(event)]} if self.shape == "grouped" else self.handler(event)

    def entries(self) -> Json:
        """What the key `hooks` of its settings holds for us."""
        return {name: [self.group(event)] for name, event in self.events.items()}

    def document(self) -> Json:
        """Settings that hold nothing but our hooks."""
        return {"version": 1, "hooks": self.entries()} if self.shape == "flat" else {"hooks": self.entries()}

    def settings_path(self, scope: Scope, env: Mapping[str, str], worktree: str) -> str:
        """The settings file of that scope.

        Raises:
            UsageError: the client has no such scope.
            EnvironmentProblem: there is no HOME, or no work tree to have a project's settings.
        """
        if scope not in self.files:
            raise UsageError(
                f"{self.title} has no {scope} settings", " or ".join(f"--{known}" for known in self.scopes)
            )
        if scope == "user":
            return os.path.join(self._home(env), self.files[scope])
        if not worktree:
            raise EnvironmentProblem(
                f"a bare repository has no work tree, so there is no {scope} file of {self.title}",
                f"git orch install {self.name} --user",
            )
        return os.path.join(worktree, self.files[scope])

    def _home(self, env: Mapping[str, str]) -> str:
        for name in self.homes:
            if env.get(name):
                folder = os.path.abspath(env[name])
                return os.path.join(folder, _BELOW[name]) if name in _BELOW else folder
        home = env.get("HOME", "")
        if not os.path.isabs(home):
            names = " or ".join(("HOME", *self.homes[:1]))
            raise EnvironmentProblem("HOME is not set", f"set {names}: {self.title} has its settings there")
        return os.path.join(home, self.home)


_BELOW = {"GEMINI_CLI_HOME": ".gemini", "XDG_CONFIG_HOME": "opencode"}
_CLIENTS = (
    Client(
        name="claude",
        title="Claude Code",
        vendor="Claude",
        events=_ALIKE,
        home=".claude",
        homes=("CLAUDE_CONFIG_DIR",),
        files={
            "user": "settings.json",
            "project": os.path.join(".claude", "settings.json"),
            "local": os.path.join(".claude", "settings.local.json"),
        },
        extra={"timeout": TIMEOUT_S},
        named=False,
    ),
    Client(
        name="codex",
        title="Codex",
        vendor="OpenAI",
        events=_ALIKE,
        home=".codex",
        homes=("CODEX_HOME",),
        files={"user": "hooks.json", "project": os.path.join(".codex", "hooks.json")},
        extra={"timeout": TIMEOUT_S},
    ),
    Client(
        name="gemini",
        title="Gemini CLI",
        vendor="Google",
        events={"AfterAgent": "stop", "SessionStart": "session-start", "BeforeAgent": "user-prompt-submit"},
        home=".gemini",
        homes=("GEMINI_CLI_HOME",),
        files={"user": "settings.json", "project": os.path.join(".gemini", "settings.json")},
        extra={"timeout": TIMEOUT_S * 1000, "name": "git-orch"},
        comments=True,
    ),
    Client(
        name="copilot",
        title="Copilot CLI",
        vendor="GitHub",
        events={"agentStop": "stop", "sessionStart": "session-start", "userPromptSubmitted": "user-prompt-submit"},
        home=".copilot",
        homes=("COPILOT_HOME",),
        files={
            "user": os.path.join("hooks", "git-orch.json"),
            "project": os.path.join(".github", "hooks", "git-orch.json"),
        },
        shape="flat",
        command_key="bash",
        extra={"timeoutSec": TIMEOUT_S},
    ),
    Client(
        name="qwen",
        title="Qwen Code",
        vendor="Qwen",
        events=_ALIKE,
        home=".qwen",
        homes=("QWEN_HOME",),
        files={"user": "settings.json", "project": os.path.join(".qwen", "settings.json")},
        extra={"timeout": TIMEOUT_S * 1000},  # 0.x reads milliseconds; where a version reads seconds it is no limit
        comments=True,
    ),
    Client(
        name="opencode",
        title="opencode",
        vendor="model provider's",
        events={
            "session.idle": "stop",
            "session.created": "session-start",
            "chat.message": "user-prompt-submit",
        },
        home=os.path.join(".config", "opencode"),
        homes=("OPENCODE_CONFIG_DIR", "XDG_CONFIG_HOME"),
        files={
            "user": os.path.join("plugins", "git-orch.js"),
            "project": os.path.join(".opencode", "plugins", "git-orch.js"),
        },
        shape="plugin",
    ),
    Client(
        name="cursor",
        title="Cursor",
        vendor="Cursor",
        events={"stop": "stop", "sessionStart": "session-start", "beforeSubmitPrompt": "user-prompt-submit"},
        home=".cursor",
        files={"user": "hooks.json", "project": os.path.join(".cursor", "hooks.json")},
        shape="flat",
        extra={"timeout": TIMEOUT_S},
    ),
)
CLIENTS: dict[str, Client] = {client.name: client for client in _CLIENTS}
"""In the order in which a person is told of them."""


def known(name: str) -> Client:
    """The client of that name.

    Raises:
        UsageError: there is none.
    """
    if name in CLIENTS:
        return CLIENTS[name]
    raise UsageError(f"no client `{name}` here ({' '.join(CLIENTS)}, and git for git's own hooks)")


def in_use(env: Mapping[str, str]) -> str:
    """The client in whose session we are asked, "" for none."""
    signs = {
        "CLAUDECODE": "claude",
        "CODEX_THREAD_ID": "codex",
        "GEMINI_CLI": "gemini",
        "QWEN_CODE": "qwen",
        "COPILOT_CLI": "copilot",
        "OPENCODE": "opencode",
        "CURSOR_AGENT": "cursor",
    }
    return next((name for sign, name in signs.items() if env.get(sign)), "")
