"""Gemini CLI (`gemini`): one JSON object, the answer as the text of its `response`."""

from __future__ import annotations

from git_orch import jsontext
from git_orch.reviewers import faults
from git_orch.reviewers.client import Flag, Heard, Said, count, field, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from git_orch.model import Json
    from git_orch.reviewers.client import Call, Output

NAME = "gemini"
TITLE = "Gemini CLI"
PROGRAMS: tuple[str, ...] = ("gemini",)
HELP: tuple[str, ...] = ("--help",)
KEPT: tuple[str, ...] = ()
NEEDS_BUS = False

# It has no flag for hooks, and retries a limit for ten minutes. The settings of a workspace outweigh the user's.
_SETTINGS: Json = {
    "hooksConfig": {"enabled": False},
    "mcp": {"allowed": []},
    "mcpServers": {},
    "general": {"maxAttempts": 2, "enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "tools": {"core": ["read_file", "read_many_files", "list_directory", "glob", "grep_search", "search_file_content"]},
}


def flags(call: Call) -> tuple[Flag, ...]:
    """Plan mode: its policy denies every tool that changes something."""
    model = (Flag(words=("--model", call.model), needed=True),) if call.model else ()
    return (
        Flag(words=("--output-format", "json"), needed=True),
        Flag(words=("--approval-mode", "plan"), needed=True),
        Flag(words=("--skip-trust",), lost="so it takes the tree for untrusted"),
        Flag(words=("--extensions", "none"), lost="so its extensions are loaded"),
        Flag(words=("--include-directories", call.folder)),
        *model,
    )


def environment(_call: Call) -> dict[str, str]:
    """What an older one has in place of `--skip-trust`, so that the planted settings count."""
    return {"GEMINI_CLI_TRUST_WORKSPACE": "true"}


def planted() -> Mapping[str, bytes | None]:
    """Settings of the workspace: no hooks, no MCP servers, tools that read, and a limit is told at once."""
    return {".gemini/settings.json": jsontext.dumps(_SETTINGS).encode("ascii")}


def hear(output: Output) -> Heard:
    """The `response`; an error stands in the object, or behind a trace on standard error, where its message counts."""
    try:
        result = jsontext.loads(output.stdout)
    except jsontext.JsonTextError:
        return Heard(said=faults.said(_error(output)))
    if not isinstance(result, dict):
        return Heard(said=Said(fault="failed", text="its output holds no object"))
    heard = _with_cost(result)
    if field(result, "error") is not None:
        status = count(result, "error", "code")
        return heard.replace(said=faults.said(words(result, "error", "message"), status=status if status > 99 else 0))
    return heard.replace(answer=words(result, "response"))


def _error(output: Output) -> str:
    """The lines that tell what failed, without the trace."""
    lines = (output.stderr.strip() or output.stdout).decode("utf-8", "replace").splitlines()
    told = [line for line in lines if any(sign in line for sign in ("rror", "failed", "quota", "limit", "retry"))]
    return "\n".join(told or lines[-1:])[:2000]


def _with_cost(result: Any) -> Heard:
    models = field(result, "stats", "models")
    used = list(models.values()) if isinstance(models, dict) else []
    cached = sum(count(model, "tokens", "cached") for model in used)
    total = sum(count(model, "tokens", "total") for model in used)
    return Heard(session_id=words(result, "session_id"), tokens=max(0, total - cached), cached_tokens=cached)
