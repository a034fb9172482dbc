"""GitHub Copilot CLI (`copilot`): JSON lines, the answer as the text of the last message."""

from __future__ import annotations

from git_orch import jsontext
from git_orch.reviewers import faults
from git_orch.reviewers.client import Flag, Heard, Said, count, events, field, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.model import Json
    from git_orch.reviewers.client import Call, Output

NAME = "copilot"
TITLE = "GitHub Copilot CLI"
PROGRAMS: tuple[str, ...] = ("copilot",)
HELP: tuple[str, ...] = ("--help",)
KEPT: tuple[str, ...] = ()
NEEDS_BUS = True  # it keeps its token in the desktop's keyring

# Read from a folder that is trusted, which `--trust-folder` says for this session alone; what steers is the base's.
_SETTINGS: Json = {"disableAllHooks": True}
_NO_SERVERS: Json = {"mcpServers": {}}


def flags(call: Call) -> tuple[Flag, ...]:
    """Of its tools the three that look; what writes or runs is denied besides."""
    model = (Flag(words=("--model", call.model), needed=True),) if call.model else ()
    return (
        Flag(words=("--silent",)),
        Flag(words=("--output-format", "json"), needed=True),
        Flag(words=("--available-tools", "view", "grep", "glob"), lost="so only denials keep it from writing"),
        Flag(words=("--deny-tool=write",), needed=True),
        Flag(words=("--deny-tool=shell",), needed=True),
        Flag(words=("--trust-folder",), lost="so its user's hooks run"),
        Flag(words=("--no-ask-user",)),
        Flag(words=("--no-auto-update",)),
        Flag(words=("--no-custom-instructions",), lost="so the base's instructions are read"),
        Flag(words=("--disable-builtin-mcps",)),
        Flag(words=("--no-color",)),
        Flag(words=("--log-level", "none")),
        Flag(words=("--usage-output-file", call.usage_path), lost="so its tokens are not counted"),
        Flag(words=("--add-dir", call.folder)),
        *model,
    )


def environment(_call: Call) -> dict[str, str]:
    """Nothing that its flags do not say."""
    return {}


def planted() -> Mapping[str, bytes | None]:
    """Settings of the folder: no hooks, no MCP servers, whatever the base has."""
    none = jsontext.dumps(_NO_SERVERS).encode("ascii")
    return {
        ".github/copilot/settings.json": jsontext.dumps(_SETTINGS).encode("ascii"),
        ".mcp.json": none,
        ".github/mcp.json": none,
        ".vscode/mcp.json": b'{"servers":{}}',
    }


def hear(output: Output) -> Heard:
    """The content of the last message, where the result came and no error did."""
    stream = events(output.stdout)
    if stream is None:
        return Heard(said=Said(fault="cut", text="its output is no stream of JSON"))
    result = stream[-1] if stream and stream[-1].get("type") == "result" else None
    heard = _with_cost(output, result)
    for event in stream:
        if event.get("type") == "session.error":
            status = count(event, "data", "statusCode")
            return heard.replace(said=faults.said(words(event, "data", "message"), status=status))
    if result is None:
        said = output.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return heard.replace(
            said=Said(fault="cut", text="no result came") if stream and not said else faults.said(said)
        )
    return heard.replace(answer=_message(stream))


def _message(stream: list[Json]) -> str:
    said = [event for event in stream if event.get("type") == "assistant.message"]
    # One that calls tools is on its way; only one that calls none is the answer.
    return "" if not said or field(said[-1], "data", "toolRequests") else words(said[-1], "data", "content")


def _with_cost(output: Output, result: Json | None) -> Heard:
    try:
        told = jsontext.loads(output.usage) if output.usage else {}
    except jsontext.JsonTextError:
        told = {}
    models = field(told, "modelMetrics")
    used = [field(model, "usage") for model in models.values()] if isinstance(models, dict) else []
    cached = sum(count(model, "cacheReadTokens") for model in used)
    total = sum(count(model, name) for model in used for name in ("inputTokens", "outputTokens"))
    return Heard(session_id=words(result, "sessionId"), tokens=max(0, total - cached), cached_tokens=cached)
