"""Cursor's CLI (`cursor-agent -p`): one JSON object, the answer as the text of its `result`.

Written from the vendor's pages on its parameters, output format and permissions; not run (docs/reviewers.md).
"""

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

NAME = "cursor"
TITLE = "Cursor"
PROGRAMS: tuple[str, ...] = ("cursor-agent",)
HELP: tuple[str, ...] = ("--help",)
KEPT: tuple[str, ...] = ()
NEEDS_BUS = True

_PERMISSIONS: Json = {
    "permissions": {"allow": ["Read(**)"], "deny": ["Write(**)", "Shell(*)", "WebFetch(*)", "Mcp(*:*)"]}
}


def flags(call: Call) -> tuple[Flag, ...]:
    """Ask mode reads and answers."""
    model = (Flag(words=("--model", call.model), needed=True),) if call.model else ()
    return (
        Flag(words=("-p",)),
        Flag(words=("--output-format", "json"), needed=True),
        Flag(words=("--mode", "ask"), needed=True),
        Flag(words=("--trust",)),
        *model,
    )


def environment(_call: Call) -> dict[str, str]:
    """Nothing that its flags do not say."""
    return {}


def planted() -> Mapping[str, bytes | None]:
    """Of the project: no hooks, no MCP servers, and permissions to read alone."""
    return {
        ".cursor/hooks.json": b'{"version":1,"hooks":{}}',
        ".cursor/mcp.json": b'{"mcpServers":{}}',
        ".cursor/cli.json": jsontext.dumps(_PERMISSIONS).encode("ascii"),
    }


def hear(output: Output) -> Heard:
    """The `result` of a success; on failure there is no object, and standard error tells why."""
    try:
        result = jsontext.loads(output.stdout)
    except jsontext.JsonTextError:
        said = (output.stderr.strip() or output.stdout).decode("utf-8", "replace")
        return Heard(said=faults.said(said.strip().rpartition("\n")[2]))
    if words(result, "type") != "result":
        return Heard(said=Said(fault="failed", text="its output holds no result"))
    heard = _with_cost(result)
    if field(result, "is_error") is not False or words(result, "subtype") != "success":
        return heard.replace(said=faults.said(words(result, "result")))
    return heard.replace(answer=words(result, "result"))


def _with_cost(result: Any) -> Heard:
    used = ("inputTokens", "outputTokens", "cacheWriteTokens")
    return Heard(
        session_id=words(result, "session_id"),
        tokens=sum(count(result, "usage", name) for name in used),
        cached_tokens=count(result, "usage", "cacheReadTokens"),
    )
