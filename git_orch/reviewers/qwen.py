"""Qwen Code (`qwen`): a JSON list of messages, the answer in the `structured_result` of the last."""

from __future__ import annotations

from git_orch import jsontext
from git_orch.reviewers import faults
from git_orch.reviewers.client import Flag, Heard, Said, count, field, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from git_orch.reviewers.client import Call, Output

NAME = "qwen"
TITLE = "Qwen Code"
PROGRAMS: tuple[str, ...] = ("qwen",)
HELP: tuple[str, ...] = ("--help",)
KEPT: tuple[str, ...] = ("QWEN_CODE_SYSTEM_SETTINGS_PATH",)
NEEDS_BUS = False


def flags(call: Call) -> tuple[Flag, ...]:
    """Plan mode denies what changes something; safe mode leaves hooks, extensions, MCP and context files out."""
    model = (Flag(words=("--model", call.model), needed=True),) if call.model else ()
    return (
        Flag(words=("--output-format", "json"), needed=True),
        Flag(words=("--json-schema", f"@{call.schema_path}"), needed=True),
        Flag(words=("--approval-mode", "plan"), needed=True),
        Flag(words=("--safe-mode",), instead=("--bare",), needed=True),
        Flag(words=("--chat-recording=false",)),
        Flag(words=("--max-wall-time", f"{max(1, int(call.timeout_s))}s")),
        Flag(words=("--add-dir", call.folder)),
        *model,
    )


def environment(_call: Call) -> dict[str, str]:
    """Nothing that its flags do not say."""
    return {}


def planted() -> Mapping[str, bytes | None]:
    """No settings of the workspace: it would write them anew in the form of its version, and the tree be another."""
    return {".qwen/settings.json": None}


def hear(output: Output) -> Heard:
    """What the last message, the result, holds as the object that was asked for."""
    try:
        messages = jsontext.loads(output.stdout)
    except jsontext.JsonTextError:
        return Heard(said=faults.said(_error(output)))
    result = messages[-1] if isinstance(messages, list) and messages else None
    if words(result, "type") != "result":
        return Heard(said=Said(fault="failed", text="its output ends with no result"))
    heard = _with_cost(result)
    if field(result, "is_error") is not False or words(result, "subtype") != "success":
        return heard.replace(said=faults.said(words(result, "error", "message") or words(result, "result")))
    given = field(result, "structured_result")
    if not isinstance(given, dict):
        return heard.replace(
            said=Said(fault="failed", text=f"no structured result; it said: {words(result, 'result')}")
        )
    return heard.replace(answer=jsontext.dumps(given))


def _error(output: Output) -> str:
    """The lines that tell what failed: while it retries, standard error is all that there is."""
    lines = (output.stderr.strip() or output.stdout).decode("utf-8", "replace").splitlines()
    told = [line for line in lines if "rror" in line or "etrying" in line]
    return "\n".join(told or lines[-1:])[:2000]


def _with_cost(result: Any) -> Heard:
    cached = count(result, "usage", "cache_read_input_tokens")
    used = count(result, "usage", "input_tokens") + count(result, "usage", "output_tokens")
    return Heard(session_id=words(result, "session_id"), tokens=max(0, used - cached), cached_tokens=cached)
