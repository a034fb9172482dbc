"""OpenCode (`opencode run`): JSON lines, the answer as the text of the message that ends with `stop`."""

from __future__ import annotations

from git_orch import jsontext
from git_orch.reviewers import faults
from git_orch.reviewers.client import Flag, Heard, Said, count, events, price, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.model import Json
    from git_orch.reviewers.client import Call, Output

NAME = "opencode"
TITLE = "OpenCode"
PROGRAMS: tuple[str, ...] = ("opencode",)
HELP: tuple[str, ...] = ("run", "--help")
KEPT: tuple[str, ...] = ()
NEEDS_BUS = False

_DENIED = ("edit", "bash", "webfetch", "websearch", "task", "skill", "question", "external_directory")


def flags(call: Call) -> tuple[Flag, ...]:
    """No plugins; a title of ours spares the request that it would make one with."""
    model = (Flag(words=("--model", call.model), needed=True),) if call.model else ()
    return (
        Flag(words=("run",)),
        Flag(words=("--format", "json"), needed=True),
        Flag(words=("--pure",), needed=True),
        Flag(words=("--title", "git-orch review")),
        *model,
    )


def environment(_call: Call) -> dict[str, str]:
    """Settings that outweigh all files: what it may not do, and nothing of the project's is read."""
    settings = {
        "permission": dict.fromkeys(_DENIED, "deny"),
        "share": "disabled",
        "autoupdate": False,
        "lsp": False,
        "formatter": False,
        "mcp": {},
    }
    return {
        "OPENCODE_CONFIG_CONTENT": jsontext.dumps(settings),
        "OPENCODE_PERMISSION": jsontext.dumps(dict.fromkeys(_DENIED, "deny")),
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        "OPENCODE_DISABLE_CLAUDE_CODE": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
    }


def planted() -> Mapping[str, bytes | None]:
    """Nothing: its variables reach all of it."""
    return {}


def hear(output: Output) -> Heard:
    """The text of the message whose last step ended with `stop`, where no error came."""
    stream = events(output.stdout)
    if stream is None:
        return Heard(said=Said(fault="cut", text="its output is no stream of JSON"))
    heard = _with_cost(stream)
    for event in stream:
        if event.get("type") == "error":
            said = words(event, "error", "data", "message") or words(event, "error", "name")
            return heard.replace(said=faults.said(said, status=count(event, "error", "data", "statusCode")))
    if not stream:
        said = output.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return heard.replace(said=faults.said(said))
    ends = [event for event in stream if event.get("type") == "step_finish"]
    if not ends or words(ends[-1], "part", "reason") != "stop":
        return heard.replace(said=Said(fault="cut", text="its last step did not end"))
    return heard.replace(answer=_text_of(stream, words(ends[-1], "part", "messageID")))


def _text_of(stream: list[Json], message: str) -> str:
    """All text of one message; its end may come before it in the stream."""
    parts = (event for event in stream if event.get("type") == "text" and words(event, "part", "messageID") == message)
    return "".join(words(event, "part", "text") for event in parts)


def _with_cost(stream: list[Json]) -> Heard:
    ends = [event for event in stream if event.get("type") == "step_finish"]
    session = next((words(event, "sessionID") for event in stream if words(event, "sessionID")), "")
    used = sum(count(end, "part", "tokens", name) for end in ends for name in ("input", "output", "reasoning"))
    written = sum(count(end, "part", "tokens", "cache", "write") for end in ends)
    return Heard(
        session_id=session,
        tokens=used + written,
        cached_tokens=sum(count(end, "part", "tokens", "cache", "read") for end in ends),
        cost_usd=sum(price(end, "part", "cost") for end in ends),
    )
