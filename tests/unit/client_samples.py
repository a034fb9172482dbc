"""What the real clients wrote, shortened: an answer in each one's own form, and what they write in its place.

Taken from claude 2.1.197 and 2.1.332, codex 0.171.0, gemini 0.61.0, qwen 0.24.4, copilot 1.0.102 and opencode 1.18.33;
cursor's from its vendor's pages.
"""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
SESSION = "d6fd3c25-03e6-439a-8d69-2577947c86f1"
LIMIT = "You've hit your session limit · resets 3:20am (UTC)"


def lines(*events: Json) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


# -- an answer in the client's own form


def claude(answer: Any, **changes: Any) -> bytes:
    usage = {"input_tokens": 22, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 14}
    head = {"type": "result", "subtype": "success", "is_error": False, "api_error_status": None, "num_turns": 3}
    told = {"result": json.dumps(answer), "session_id": SESSION, "total_cost_usd": 0.09, "usage": usage}
    return json.dumps({**head, **told, "structured_output": answer, "terminal_reason": "completed", **changes}).encode()


def codex(text: str, *more: Json, end: Json | None = None) -> bytes:
    usage = {"input_tokens": 122, "cached_input_tokens": 100, "output_tokens": 14, "reasoning_output_tokens": 0}
    return lines(
        {"type": "thread.started", "thread_id": SESSION},
        {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata not found."}},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "reading"}},
        {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": text}},
        *more,
        end or {"type": "turn.completed", "usage": usage},
    )


def gemini(text: str, **changes: Any) -> bytes:
    tokens = {"input": 22, "prompt": 22, "candidates": 14, "total": 136, "cached": 100, "thoughts": 0, "tool": 0}
    stats = {"models": {"gemini-2.5-pro": {"tokens": tokens}}, "tools": {"totalCalls": 2}}
    return json.dumps({"session_id": SESSION, "response": text, "stats": stats, **changes}, indent=2).encode()


def qwen(answer: Any, **changes: Any) -> bytes:
    usage = {"input_tokens": 122, "output_tokens": 14, "cache_read_input_tokens": 100, "total_tokens": 136}
    head = {"type": "result", "subtype": "success", "session_id": SESSION, "is_error": False, "num_turns": 2}
    result = {**head, "result": json.dumps(answer), "usage": usage, "structured_result": answer, **changes}
    return json.dumps([{"type": "system", "subtype": "init", "session_id": SESSION}, result]).encode()


def copilot(text: str, *more: Json, requests: tuple[Json, ...] = ()) -> bytes:
    return lines(
        {"type": "session.skills_loaded", "data": {"skills": []}, "ephemeral": True},
        {"type": "assistant.message", "data": {"content": "r", "toolRequests": [{"name": "view"}]}},
        {"type": "assistant.message", "data": {"content": text, "toolRequests": list(requests)}},
        *more,
        {"type": "result", "sessionId": SESSION, "exitCode": 0, "usage": {"premiumRequests": 0}},
    )


COPILOT_USAGE = json.dumps(
    {"modelMetrics": {"m": {"usage": {"inputTokens": 122, "outputTokens": 14, "cacheReadTokens": 100}}}}
).encode()


def opencode(text: str, *more: Json, reason: str = "stop") -> bytes:
    def event(kind: str, part: Json) -> Json:
        return {"type": kind, "sessionID": SESSION, "part": {"messageID": "msg_2", **part}}

    tokens = {"total": 36, "input": 22, "output": 14, "reasoning": 0, "cache": {"write": 0, "read": 100}}
    return lines(
        event("step_start", {"messageID": "msg_1"}),
        event("text", {"messageID": "msg_1", "text": "r"}),
        event("step_finish", {"messageID": "msg_1", "reason": "tool-calls", "tokens": {}, "cost": 0.04}),
        event("step_start", {}),
        event("text", {"text": text}),
        *more,
        event("step_finish", {"reason": reason, "tokens": tokens, "cost": 0.05}),
    )


def cursor(text: str, **changes: Any) -> bytes:
    head = {"type": "result", "subtype": "success", "is_error": False, "duration_ms": 1234, "session_id": SESSION}
    return json.dumps({**head, "result": text, "request_id": "r", **changes}).encode() + b"\n"


def answering(name: str, answer: Any) -> bytes:
    """The answer as that client writes it."""
    text = json.dumps(answer)
    match name:
        case "claude":
            return claude(answer)
        case "qwen":
            return qwen(answer)
        case "codex":
            return codex(text)
        case "copilot":
            return copilot(text)
        case "cursor":
            return cursor(text)
        case "gemini":
            return gemini(text)
        case "opencode":
            return opencode(text)
    raise KeyError(name)


# -- what is no answer: client, standard output, standard error, the fault

NO_ANSWERS: list[tuple[str, bytes, bytes, str]] = [
    ("claude", claude(None, is_error=True, result=LIMIT, structured_output=None), b"", "rate-limited"),
    (
        "claude",
        claude(None, is_error=True, api_error_status=529, result="API Error: 529 Overloaded."),
        b"",
        "overloaded",
    ),
    ("claude", claude(None, is_error=True, result="Not logged in · Please run /login"), b"", "signed-out"),
    ("claude", claude(None, is_error=True, api_error_status=400, result="Credit balance is too low"), b"", "quota"),
    ("claude", claude(None, subtype="error_max_budget_usd", is_error=True, errors=["Reached"]), b"", "over-budget"),
    ("claude", claude(None, subtype="error_during_execution", is_error=True, result=None), b"", "failed"),
    ("claude", claude(None, result="No issues found."), b"", "failed"),
    ("claude", claude({"nonce": "N"})[:-20], b"", "failed"),
    ("claude", b"Not logged in - Please run /login", b"", "signed-out"),
    ("claude", b"", b"error: unknown option '--json-schema'", "failed"),
    ("claude", b"[]", b"", "failed"),
    ("codex", codex("", end={"type": "turn.failed", "error": {"message": "Quota exceeded."}}), b"", "quota"),
    (
        "codex",
        codex("", {"type": "error", "message": "stream disconnected before completion"}, end={"type": "turn.failed"}),
        b"",
        "cut",
    ),
    ("codex", codex("{}", end={"type": "turn.started"}), b"", "cut"),
    ("codex", codex("{}")[:-30], b"", "cut"),
    ("codex", b"", b"Error: not logged in. Run codex login", "signed-out"),
    (
        "gemini",
        b"",
        b"Attempt 1 failed: You exceeded your current quota. Please retry in 47.2s.\n at x",
        "rate-limited",
    ),
    (
        "gemini",
        b"",
        b'Error when talking _ApiError: {"error":{"code":400,"message":"API key not valid"}}',
        "signed-out",
    ),
    ("gemini", gemini("", error={"type": "Error", "message": "overloaded", "code": 503}), b"", "overloaded"),
    ("gemini", gemini("x")[:-9], b"", "failed"),
    ("qwen", qwen(None, is_error=True, error={"message": "[API Error: 401 Incorrect API key]"}), b"", "signed-out"),
    ("qwen", qwen(None, subtype="error_during_execution", is_error=True), b"", "failed"),
    ("qwen", qwen(None, structured_result=None, result="looks fine"), b"", "failed"),
    ("qwen", b"", b"Retrying in 60s (attempt 1/10): [API Error: 429 Rate limit exceeded]", "rate-limited"),
    ("qwen", b"[]", b"", "failed"),
    (
        "copilot",
        copilot("", {"type": "session.error", "data": {"message": "429 exceeded your rate limit", "statusCode": 429}}),
        b"",
        "rate-limited",
    ),
    ("copilot", copilot("{}").rsplit(b"\n", 2)[0], b"", "cut"),
    ("copilot", b"", b"Error: No authentication information found.", "signed-out"),
    (
        "opencode",
        opencode("", {"type": "error", "error": {"name": "APIError", "data": {"message": "bad", "statusCode": 401}}}),
        b"",
        "signed-out",
    ),
    ("opencode", opencode("{}", reason="length"), b"", "cut"),
    ("opencode", opencode("{}", reason="unknown"), b"", "cut"),
    ("opencode", opencode("{}")[:-40], b"", "cut"),
    ("cursor", b"", b"Error: You've hit your usage limit", "rate-limited"),
    ("cursor", cursor("limit", is_error=True), b"", "failed"),
]
