"""Whether a person attends: by Claude's variables, else by the command line of the client."""

from __future__ import annotations

import pytest

from git_orch.attendance import is_attended


@pytest.mark.parametrize(
    ("env", "attended"),
    [
        ({"CLAUDE_CODE_SESSION_ATTENDED": "1", "CLAUDE_CODE_ENTRYPOINT": "sdk-cli", "CI": "true"}, True),
        ({"CLAUDE_CODE_SESSION_ATTENDED": "0", "CLAUDE_CODE_ENTRYPOINT": "cli"}, False),
        ({"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}, False),
        ({"CLAUDE_CODE_ENTRYPOINT": "sdk-py"}, False),
        ({"CLAUDE_CODE_ENTRYPOINT": "cli"}, True),
        ({"CLAUDE_CODE_ENTRYPOINT": "claude-vscode"}, True),
        ({"CLAUDE_CODE_SESSION_ATTENDED": "perhaps", "CLAUDE_CODE_ENTRYPOINT": "cli"}, True),
        ({"CI": "true"}, False),
        ({"CI": "false"}, True),
        ({}, True),
    ],
)
def test_claude_says_so_itself(env: dict[str, str], attended: bool) -> None:
    assert is_attended("claude", env, list) == attended


@pytest.mark.parametrize(
    ("client", "words", "attended"),
    [
        ("codex", ["/usr/bin/codex"], True),
        ("codex", ["/usr/bin/codex", "exec", "fix it"], False),
        ("codex", ["node", "/x/bin/codex.js", "--model", "m"], True),
        ("codex", ["node", "/x/bin/codex.js", "exec"], False),
        ("gemini", ["node", "/x/bin/gemini", "-p", "fix it"], False),
        ("gemini", ["node", "/x/bin/gemini", "--prompt=fix it"], False),
        ("gemini", ["node", "/x/bin/gemini", "--prompt-interactive", "x"], True),
        ("qwen", ["qwen", "--prompt", "x"], False),
        ("copilot", ["copilot", "-p", "x"], False),
        ("copilot", ["copilot"], True),
        ("opencode", ["opencode", "run", "x"], False),
        ("opencode", ["opencode"], True),
        ("cursor", ["cursor-agent", "--print", "x"], False),
        ("claude", ["claude", "-p", "x"], False),
    ],
)
def test_of_the_others_their_command_line_tells(client: str, words: list[str], attended: bool) -> None:
    lines = [["sh", "-c", "codex exec"], words, ["bash", "-p", "exec", "run"]]
    assert is_attended(client, {}, lambda: lines) == attended


def test_the_nearest_client_of_that_name_counts() -> None:
    lines = [["codex"], ["codex", "exec"]]
    assert is_attended("codex", {}, lambda: lines)


def test_the_variables_of_another_client_around_it_do_not_count() -> None:
    assert not is_attended("codex", {"CLAUDE_CODE_SESSION_ATTENDED": "1"}, lambda: [["codex", "exec"]])
    assert is_attended("codex", {"CLAUDE_CODE_SESSION_ATTENDED": "0"}, lambda: [["codex"]])


def test_without_a_look_at_processes_somebody_attends() -> None:
    assert is_attended("gemini", {}, list)
    assert not is_attended("gemini", {"CI": "1"}, list)


def test_our_own_ancestors_can_be_looked_at() -> None:
    assert is_attended("no-such-client", {})
