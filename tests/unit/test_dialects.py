"""Each client is read and answered in its own form, and in no other."""

from __future__ import annotations

from typing import Any

import pytest

from git_orch import dialects
from git_orch.dialects import PROMPT, START, STOP

Json = dict[str, Any]
TEXT = "read me"
# What each takes, from its documentation; codex refuses any key that is not in its schema.
CONTEXT: dict[str, dict[str, Json]] = {
    "claude": {
        START: {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": TEXT}},
        PROMPT: {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": TEXT}},
    },
    "gemini": {
        START: {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": TEXT}},
        PROMPT: {"hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": TEXT}},
    },
    "copilot": {START: {"additionalContext": TEXT}, PROMPT: {"additionalContext": TEXT}},
    "cursor": {START: {"additional_context": TEXT}, PROMPT: {"continue": True, "additional_context": TEXT}},
    "opencode": {START: {"context": TEXT}, PROMPT: {"context": TEXT}},
}
ONWARD: dict[str, Json] = {
    "claude": {"decision": "block", "reason": TEXT},
    "codex": {"decision": "block", "reason": TEXT},
    "qwen": {"decision": "block", "reason": TEXT},
    "gemini": {"decision": "deny", "reason": TEXT},
    "copilot": {"decision": "block", "reason": TEXT},
    "cursor": {"followup_message": TEXT},
    "opencode": {"prompt": TEXT},
}


@pytest.mark.parametrize("event", [START, PROMPT])
@pytest.mark.parametrize("client", dialects.CLIENTS)
def test_context_goes_where_the_client_looks_for_it(client: str, event: str) -> None:
    wanted = CONTEXT["claude" if client in ("codex", "qwen") else client][event]
    assert dialects.answer(client, event, context=TEXT) == wanted
    assert dialects.takes(client, event)


@pytest.mark.parametrize("client", dialects.CLIENTS)
def test_a_stop_goes_on_by_the_clients_own_word(client: str) -> None:
    assert dialects.answer(client, STOP, onward=TEXT) == ONWARD[client]
    assert dialects.takes(client, STOP)


@pytest.mark.parametrize(
    ("client", "key"),
    [
        ("claude", "systemMessage"),
        ("codex", "systemMessage"),
        ("qwen", "systemMessage"),
        ("gemini", "systemMessage"),
        ("opencode", "message"),
        ("copilot", ""),
        ("cursor", ""),
    ],
)
def test_a_person_is_told_where_the_client_has_a_way(client: str, key: str) -> None:
    assert dialects.answer(client, STOP, message=TEXT) == ({key: TEXT} if key else {})
    assert dialects.answer(client, STOP, onward=TEXT, message=TEXT) == ONWARD[client] | ({key: TEXT} if key else {})


@pytest.mark.parametrize("client", [*dialects.CLIENTS, "unknown", ""])
def test_blank_is_nothing(client: str) -> None:
    for event in (STOP, START, PROMPT, "wake"):
        assert dialects.answer(client, event, context=" \n", onward="", message=" ") == {}


@pytest.mark.parametrize("event", [STOP, START, PROMPT])
def test_an_unknown_client_is_told_nothing(event: str) -> None:
    assert dialects.answer("unknown", event, context=TEXT, onward=TEXT, message=TEXT) == {}
    assert not dialects.takes("unknown", event)


def test_no_context_at_a_stop_and_no_block_at_a_prompt() -> None:
    assert dialects.answer("claude", STOP, context=TEXT) == {}
    assert dialects.answer("claude", PROMPT, onward=TEXT) == {}


@pytest.mark.parametrize(
    ("payload", "env", "named", "client"),
    [
        ({"transcript_path": "x"}, {}, "", "claude"),
        ({}, {"CLAUDECODE": "1"}, "", "claude"),
        ({"transcript_path": "x", "turn_id": "t"}, {}, "", "codex"),
        ({"transcript_path": "x"}, {"GEMINI_SESSION_ID": "g", "CLAUDE_PROJECT_DIR": "/p"}, "", "gemini"),
        ({"sessionId": "s"}, {}, "", "copilot"),
        ({"conversation_id": "c"}, {"CLAUDE_PROJECT_DIR": "/p"}, "", "cursor"),
        ({"transcript_path": "x"}, {"CURSOR_VERSION": "3"}, "", "cursor"),
        ({"transcript_path": "x"}, {"CLAUDECODE": "1"}, "qwen", "qwen"),
        ({"transcript_path": "x"}, {}, "no-client", "claude"),
        ({}, {}, "", "unknown"),
    ],
)
def test_a_client_is_who_its_line_says_else_who_it_looks_like(
    payload: Json, env: dict[str, str], named: str, client: str
) -> None:
    assert dialects.client(payload, env, named) == client


@pytest.mark.parametrize(
    ("payload", "session"),
    [
        ({"session_id": "a", "conversation_id": "b"}, "a"),
        ({"sessionId": "b"}, "b"),
        ({"conversation_id": "c"}, "c"),
        ({"session_id": 5}, "unknown"),
        ({"session_id": "a\0b"}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_a_session_has_the_name_that_its_client_gives_it(payload: Json, session: str) -> None:
    assert dialects.session_id(payload) == session


@pytest.mark.parametrize(
    ("payload", "folder"),
    [
        ({"cwd": "/a", "workspace_roots": ["/b"]}, "/a"),
        ({"workspace_roots": ["/b", "/c"]}, "/b"),
        ({"workspace_roots": []}, ""),
        ({"workspace_roots": "/b"}, ""),
        ({"workspace_roots": [7]}, ""),
        ({}, ""),
    ],
)
def test_where_a_client_works(payload: Json, folder: str) -> None:
    assert dialects.folder(payload) == folder


@pytest.mark.parametrize(
    ("tasks", "busy"),
    [
        ([], 0),
        (None, 0),
        ("x", 0),
        ([{"status": "running"}], 1),
        ([{"status": "completed"}, {"status": "failed"}], 0),
        ([{"id": "x"}, "odd"], 2),
    ],
)
def test_tasks_that_go_on_are_counted(tasks: object, busy: int) -> None:
    assert dialects.busy({"background_tasks": tasks}) == busy


@pytest.mark.parametrize(
    ("payload", "may"),
    [
        ({}, True),
        ({"permission_mode": "acceptEdits", "status": "completed", "stopReason": "end_turn"}, True),
        ({"permission_mode": "plan"}, False),
        ({"status": "aborted"}, False),
        ({"status": "error"}, False),
        ({"stop_hook_active": True}, True),  # one bit, and qwen sends it at the first stop
    ],
)
def test_an_agent_that_plans_or_was_broken_off_is_asked_for_nothing(payload: Json, may: bool) -> None:
    assert dialects.may_go_on(payload) == may


@pytest.mark.parametrize(
    ("source", "is_so"), [("startup", True), ("resume", True), ("clear", False), ("compact", False)]
)
def test_a_client_that_was_started_anew(source: str, is_so: bool) -> None:
    assert dialects.is_restarted({"source": source}) == is_so
