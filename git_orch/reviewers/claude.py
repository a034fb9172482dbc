"""Claude Code (`claude -p`): one JSON object, the answer in its `structured_output`."""

from __future__ import annotations

from git_orch import jsontext
from git_orch.reviewers import faults
from git_orch.reviewers.client import Flag, Heard, Said, count, field, price, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from git_orch.model import Json
    from git_orch.reviewers.client import Call, Output

NAME = "claude"
TITLE = "Claude Code"
PROGRAMS: tuple[str, ...] = ("claude",)
HELP: tuple[str, ...] = ("--help",)
# Without the hooks' own: CLAUDE_CODE_SESSION_ID, CLAUDE_CODE_ENTRYPOINT, CLAUDE_CODE_MESSAGING_SOCKET and the like.
KEPT: tuple[str, ...] = (
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
    "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
    "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
    "CLAUDE_CODE_CLIENT_CERT",
    "CLAUDE_CODE_CLIENT_KEY",
    "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_MAX_RETRIES",
)
NEEDS_BUS = False

_NO_HOOKS = '{"disableAllHooks":true}'
_OVER_BUDGET = ("error_max_budget_usd", "error_max_turns")


def flags(call: Call) -> tuple[Flag, ...]:
    """It reads, and does nothing else: of its tools those that look at files, and nobody is asked for more.

    Of the settings only the user's are loaded, which hold the sign-in: neither hooks, MCP servers and permissions of
    the tree, nor its CLAUDE.md with all that it imports.
    """
    bound = (Flag(words=("--max-budget-usd", f"{call.budget_usd:.2f}"), lost="so nothing bounds the price"),)
    model = (Flag(words=("--model", call.model), needed=True),) if call.model else ()
    return (
        Flag(words=("-p",)),
        Flag(words=("--output-format", "json"), needed=True),
        Flag(words=("--json-schema", call.schema), needed=True),
        Flag(words=("--tools", "Read,Grep,Glob"), instead=("--allowed-tools", "Read,Grep,Glob"), needed=True),
        Flag(words=("--permission-mode", "dontAsk"), needed=True),
        Flag(words=("--settings", _NO_HOOKS), needed=True),
        Flag(words=("--setting-sources", "user"), lost="so the base's project settings count"),
        Flag(words=("--strict-mcp-config",), lost="so configured MCP servers are started"),
        Flag(words=("--disable-slash-commands",)),
        Flag(words=("--no-session-persistence",), lost="so the review is kept among its sessions"),
        *(bound if call.budget_usd >= 0 else ()),
        Flag(words=("--add-dir", call.folder)),
        *model,
    )


def environment(_call: Call) -> dict[str, str]:
    """It neither updates itself nor reports in the middle of a review."""
    return {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}


def planted() -> Mapping[str, bytes | None]:
    """Nothing: its flags reach all of it."""
    return {}


def hear(output: Output) -> Heard:
    """The last object of the result: a stream that was cut is a success with no structured output."""
    try:
        result = jsontext.loads(output.stdout)
    except jsontext.JsonTextError:
        return Heard(said=faults.said((output.stderr or output.stdout).decode("utf-8", "replace")))
    if words(result, "type") != "result":
        return Heard(said=Said(fault="failed", text="its output holds no result"))
    heard = _with_cost(result)
    given = field(result, "structured_output")
    if words(result, "subtype") in _OVER_BUDGET:
        return heard.replace(said=Said(fault="over-budget", text=_said(result)))
    if field(result, "is_error") is not False or words(result, "subtype") != "success":
        return heard.replace(said=faults.said(_said(result), status=count(result, "api_error_status")))
    if not isinstance(given, dict):
        return heard.replace(said=Said(fault="failed", text=f"no structured output; it said: {_said(result)}"))
    return heard.replace(answer=jsontext.dumps(given))


def _said(result: Json) -> str:
    errors = field(result, "errors")
    listed = [text for text in errors if isinstance(text, str)] if isinstance(errors, list) else []
    return words(result, "result") or "; ".join(listed) or words(result, "subtype")


def _with_cost(result: Any) -> Heard:
    used = ("input_tokens", "output_tokens", "cache_creation_input_tokens")
    return Heard(
        session_id=words(result, "session_id"),
        tokens=sum(count(result, "usage", name) for name in used),
        cached_tokens=count(result, "usage", "cache_read_input_tokens"),
        cost_usd=price(result, "total_cost_usd"),
    )
