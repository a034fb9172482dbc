"""The rules by which a client lets its agent ask for reviews without asking a person each time: printed, never written.

Only what reads, or asks for a review: nothing that stops, lands, allows, trusts, mutes or dismisses. `gate` is there
where a rule can name it without its options, for one of them is a person's.

Run with the real client: claude, codex, opencode. The others are as their pages have it.

Sources: code.claude.com/docs/en/permissions; developers.openai.com/codex/rules; geminicli.com/docs/reference/
policy-engine; QwenLM/qwen-code, docs/users/configuration/settings.md; opencode.ai/docs/permissions; docs.github.com,
Copilot CLI, --allow-tool; docs.cursor.com/en/cli/reference/permissions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from git_orch.errors import UsageError
from git_orch.model import Record

if TYPE_CHECKING:
    from git_orch.install.clients import Client

VERBS = ("review", "wait", "show", "status", "logs")
SERVER = "orch"
"""The name of `git orch mcp` among a client's servers, as README adds it: its tools are all of this kind."""

_WITHOUT = "cursor"


class Rules(Record):
    """The text of the rules, and where a person puts it."""

    text: str
    where: str


def has_rules(client: Client) -> bool:
    """Whether there are any for it."""
    return client.name != _WITHOUT


def rules(client: Client) -> Rules:
    """The rules in the client's own form.

    Raises:
        UsageError: it has none by which a part of a command can be named.
    """
    match client.name:
        case "claude":
            allow = [*(f"Bash(git orch {verb}:*)" for verb in VERBS), "Bash(git orch gate)", f"mcp__{SERVER}"]
            return Rules(text=_json({"permissions": {"allow": allow}}), where="~/.claude/settings.json")
        case "qwen":
            allow = [*(f"Bash(git orch {verb} *)" for verb in VERBS), *(f"Bash(git orch {verb})" for verb in VERBS)]
            allow += ["Bash(git orch gate)", f"mcp__{SERVER}"]
            return Rules(text=_json({"permissions": {"allow": allow}}), where="~/.qwen/settings.json")
        case "opencode":
            shell = {f"git orch {verb}{more}": "allow" for verb in VERBS for more in ("", " *")}
            permission = {"bash": {**shell, "git orch gate": "allow"}, f"{SERVER}_*": "allow"}
            return Rules(text=_json({"permission": permission}), where="~/.config/opencode/opencode.json")
        case "codex":
            lines = (f'prefix_rule(pattern = ["git", "orch", "{verb}"], decision = "allow")' for verb in VERBS)
            return Rules(text="".join(f"{line}\n" for line in lines), where="~/.codex/rules/git-orch.rules")
        case "gemini":
            prefixes = json.dumps([f"git orch {verb}" for verb in VERBS])
            shell_rule = f'toolName = "run_shell_command"\ncommandPrefix = {prefixes}'
            found = (shell_rule, f'mcpName = "{SERVER}"')
            text = "\n".join(f'[[rule]]\n{what}\ndecision = "allow"\npriority = 100\n' for what in found)
            return Rules(text=text, where="~/.gemini/policies/git-orch.toml")
        case "copilot":
            return Rules(
                text=f"--allow-tool='{SERVER}'\n", where="copilot's command line, with `git orch mcp` as a server"
            )
    raise UsageError(
        f"a rule of {client.title} names a program, and none of its verbs",
        f"use the MCP server, and allow its tools when {client.title} asks",
    )


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"
