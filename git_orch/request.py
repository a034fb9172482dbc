"""What a reviewer is handed: `$ORCH_DIR` beside its tree, never in it, and a closed list of variables.

A tracked `.review` symlink would lead what is written inside the tree out of it, so nothing is ever written there.
"""

from __future__ import annotations

import os

from git_orch import atomic
from git_orch import key as keys
from git_orch.git import encode, without_git
from git_orch.model import Record
from git_orch.system import TEMP_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLES = (
    "ORCH_DIR",
    "ORCH_RUN_ID",
    "ORCH_TREE",
    "ORCH_BASE",
    "ORCH_DIFF",
    "ORCH_FILES",
    "ORCH_NONCE",
    "ORCH_RESULT",
    "ORCH_TASK",
)
"""All variables that a reviewer is told. `git orch` itself drops them on entry."""

COOKIE = "ORCH_TASK"
"""The variable by which what outlives its supervisor is found; its value is `cookie_of`."""

RESULT = "result"
RESULT_LIMIT = 64 << 20

# Of the client that fired us: they would bind a reviewer that is such a client itself to the session.
_OF_A_CLIENT = ("CLAUDECODE", "CLAUDE_CODE_", "CLAUDE_ENV_FILE", "CLAUDE_PID", "CLAUDE_EFFORT", "CLAUDE_PROJECT_DIR")
_OF_OTHER_CLIENTS = (
    "CLAUDE_PLUGIN_",
    "AI_AGENT",
    *(f"CODEX_{name}" for name in ("SESSION_ID", "THREAD_ID", "TOOL_CALL_ID", "SANDBOX", "CI", "MANAGED_", "VERSION")),
    "CODEX_APPLY_PATCH_",
    *(f"GEMINI_{name}" for name in ("PROJECT_DIR", "SESSION_ID", "CWD", "CLI_NO_RELAUNCH", "CLI_IDE_")),
    "QWEN_CODE",
    "QWEN_PROJECT_DIR",
    "COPILOT_AGENT_",
    "OPENCODE_PID",
    "OPENCODE_SERVER_",
    "CURSOR_AGENT",
    "CURSOR_TRACE_ID",
)
_SIGNS_OF_CLIENTS = ("GEMINI_CLI", "OPENCODE", "OLDPWD", "PWD")


class Request(Record):
    """The request of one reviewer: where it lies and what it is about."""

    folder: str
    tree: str
    run_id: str
    tree_id: str
    base_tree_id: str
    nonce: str
    cookie: str
    temp: str
    ceiling: str

    @property
    def result_path(self) -> str:
        """The file that the reviewer may write its answer to."""
        return os.path.join(self.folder, RESULT)

    def write(self, patch: bytes, paths: tuple[str, ...]) -> None:
        """The patch and the list of paths lie in the request's folder."""
        os.makedirs(self.temp, mode=0o700, exist_ok=True)
        atomic.write(os.path.join(self.folder, "diff"), patch)
        atomic.write(os.path.join(self.folder, "files"), b"".join(encode(path) + b"\0" for path in paths))

    def result(self) -> bytes | None:
        """What the reviewer wrote, or None where that is no plain file."""
        return atomic.read(self.result_path, limit=RESULT_LIMIT)

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """The reviewer's whole environment: the person's, without git's, the client's and our own, plus the request."""
        kept = {name: value for name, value in without_git(env).items() if not _is_scrubbed(name)}
        return {
            **kept,
            "ORCH_DIR": self.folder,
            "ORCH_RUN_ID": self.run_id,
            "ORCH_TREE": self.tree_id,
            "ORCH_BASE": self.base_tree_id,
            "ORCH_DIFF": os.path.join(self.folder, "diff"),
            "ORCH_FILES": os.path.join(self.folder, "files"),
            "ORCH_NONCE": self.nonce,
            "ORCH_RESULT": self.result_path,
            COOKIE: self.cookie,
            **dict.fromkeys(TEMP_NAMES, self.temp),
            "PWD": self.tree,
            # git would look above the tree for a repository, and find the user's home or a colleague's.
            "GIT_CEILING_DIRECTORIES": self.ceiling,
        }


def cookie_of(run_id: str, key: bytes) -> str:
    """What everything that a run starts carries in its environment, and only this user's key can make."""
    return f"{run_id}.{keys.mac(key, 'task', run_id)}"


def without_ours(env: Mapping[str, str]) -> dict[str, str]:
    """`env` as a command of ours takes it: without the variables of a request."""
    return {name: value for name, value in env.items() if name not in VARIABLES}


def inside_reviewer(env: Mapping[str, str]) -> bool:
    """Whether we were started by a reviewer: a hook then does nothing, or reviews would fire reviews."""
    return COOKIE in env


def _is_scrubbed(name: str) -> bool:
    return name.startswith((*_OF_A_CLIENT, *_OF_OTHER_CLIENTS, "ORCH_")) or name in _SIGNS_OF_CLIENTS
