"""The clients: how each one's event is read, and how it wants to be answered. The one table of them.

Sources: code.claude.com/docs/en/hooks; openai/codex, codex-rs/hooks/schema/generated (strict: no key that it does not
name); google-gemini/gemini-cli, docs/hooks/reference.md; QwenLM/qwen-code, docs/users/features/hooks.md; github/docs,
content/copilot/reference/hooks-reference.md; cursor.com/docs/hooks; opencode.ai/docs/plugins. docs/delivery.md says
which of it was run. Loaded at every prompt: it imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.model import Json

CLIENTS = ("claude", "codex", "copilot", "cursor", "gemini", "opencode", "qwen")
STOP, START, PROMPT = "stop", "session-start", "user-prompt-submit"

# By client and event: the keys under which a text for the agent goes ("*" is the text), and what stands beside it.
_CONTEXT: dict[str, dict[str, Json]] = {
    "claude": {
        START: {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "*"}},
        PROMPT: {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "*"}},
    },
    "gemini": {
        START: {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "*"}},
        PROMPT: {"hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "*"}},
    },
    "copilot": {START: {"additionalContext": "*"}, PROMPT: {"additionalContext": "*"}},
    "cursor": {START: {"additional_context": "*"}, PROMPT: {"continue": True, "additional_context": "*"}},
    "opencode": {START: {"context": "*"}, PROMPT: {"context": "*"}},
}
# By client: the answer to a stop because of which the agent goes on.
_ONWARD: dict[str, Json] = {
    "claude": {"decision": "block", "reason": "*"},
    "gemini": {"decision": "deny", "reason": "*"},
    "copilot": {"decision": "block", "reason": "*"},
    "cursor": {"followup_message": "*"},
    "opencode": {"prompt": "*"},
}
# By client: the key of a text that the person sees. Copilot and Cursor have none.
_MESSAGE = {"claude": "systemMessage", "gemini": "systemMessage", "opencode": "message"}
_AS = {"codex": "claude", "qwen": "claude"}
_OVER = ("completed", "failed", "killed", "stopped", "cancelled", "done")


def answer(client: str, event: str, *, context: str = "", onward: str = "", message: str = "") -> Json:
    """The object that the client takes at that event; empty where there is nothing that it could be told.

    `context` is read by the agent with what comes next, `onward` makes it go on after a stop, `message` is for the
    person. A text is never blank: codex refuses a block without a reason.
    """
    who = _AS.get(client, client)
    said: Json = {}
    if context.strip():
        said |= _with(_CONTEXT.get(who, {}).get(event, {}), context)
    if onward.strip() and event == STOP:
        said |= _with(_ONWARD.get(who, {}), onward)
    if message.strip() and who in _MESSAGE:
        said[_MESSAGE[who]] = message
    return said


def takes(client: str, event: str) -> bool:
    """Whether the client's agent can be told something at that event."""
    who = _AS.get(client, client)
    return who in _ONWARD if event == STOP else event in _CONTEXT.get(who, {})


def _with(shape: Json, told: str) -> Json:
    return {key: _with(value, told) if isinstance(value, dict) else told if value == "*" else value
            for key, value in shape.items()}  # fmt: skip


# -- what a client says of itself


def client(payload: Json, env: Mapping[str, str], named: str = "") -> str:
    """Which client fired the hook: as its line says, else as far as it shows.

    Claude's lines name none: others read its settings files as well (Copilot a repository's, Cursor a plugin's).
    """
    if named in CLIENTS:
        return named
    if "CURSOR_VERSION" in env or "conversation_id" in payload:
        return "cursor"
    if "GEMINI_SESSION_ID" in env:
        return "gemini"
    if "CLAUDECODE" in env or "CLAUDE_PROJECT_DIR" in env or "transcript_path" in payload:
        return "codex" if "turn_id" in payload else "claude"
    return "copilot" if "sessionId" in payload else "unknown"


def session_id(payload: Json) -> str:
    """The client's id of its session, or `unknown`."""
    names = ("session_id", "sessionId", "conversation_id")
    return next(filter(None, (text(payload, name) for name in names)), "unknown")


def folder(payload: Json) -> str:
    """Where the client says that it works, "" where it does not."""
    roots = payload.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
    return text(payload, "cwd") or ("" if "\0" in first else first)


def busy(payload: Json) -> int:
    """How many tasks of the session go on behind a stop: what it leaves now is not yet what it will be."""
    tasks = payload.get("background_tasks")
    if not isinstance(tasks, list):
        return 0
    return sum(not (isinstance(task, dict) and text(task, "status") in _OVER) for task in tasks)


def is_restarted(payload: Json) -> bool:
    """Whether the client was started anew: what it was answered before it ended may never have reached its agent."""
    return text(payload, "source") in ("startup", "resume")


def may_go_on(payload: Json) -> bool:
    """Whether the agent has stopped by itself, and may change files: not while it plans, nor was it broken off."""
    planning = text(payload, "permission_mode") == "plan"
    broken_off = text(payload, "status") in ("aborted", "error") or text(payload, "stopReason") in ("error", "abort")
    return not planning and not broken_off


def text(payload: Json, name: str) -> str:
    """A text of the payload, "" where it is none."""
    value = payload.get(name)
    return value if isinstance(value, str) and "\0" not in value else ""
