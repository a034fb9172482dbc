"""Codex (`codex exec`): JSON lines, the answer in the last message of a turn that was completed."""

from __future__ import annotations

from git_orch.reviewers import faults
from git_orch.reviewers.client import Flag, Heard, Said, count, events, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.model import Json
    from git_orch.reviewers.client import Call, Output

NAME = "codex"
TITLE = "Codex"
PROGRAMS: tuple[str, ...] = ("codex",)
HELP: tuple[str, ...] = ("exec", "--help")
KEPT: tuple[str, ...] = ()
NEEDS_BUS = False


def flags(call: Call) -> tuple[Flag, ...]:
    """It looks by commands of the shell, which its sandbox keeps from writing and from the network."""
    model = (Flag(words=("--model", call.model), needed=True),) if call.model else ()
    return (
        Flag(words=("exec",)),
        Flag(words=("--json",), instead=("--experimental-json",), needed=True),
        Flag(words=("--sandbox", "read-only"), needed=True),
        Flag(words=("--skip-git-repo-check",), needed=True),
        Flag(words=("--output-schema", call.schema_path), needed=True),
        Flag(words=("--ephemeral",), lost="so the review is kept among its sessions"),
        Flag(words=("--ignore-rules",), lost="so the base's rules count"),
        Flag(words=("--config", "features.hooks=false"), needed=True),
        Flag(words=("--config", "project_doc_max_bytes=0")),
        Flag(words=("--config", 'approval_policy="never"')),
        Flag(words=("--config", 'web_search="disabled"')),
        Flag(words=("--config", "mcp_servers={}")),
        *model,
        Flag(words=("-",)),
    )


def environment(_call: Call) -> dict[str, str]:
    """Nothing that its flags do not say."""
    return {}


def planted() -> Mapping[str, bytes | None]:
    """Nothing: a project that it was not told to trust has no say."""
    return {}


def hear(output: Output) -> Heard:
    """The text of the last message before `turn.completed`, where nothing failed."""
    stream = events(output.stdout)
    if stream is None:
        return Heard(said=Said(fault="cut", text="its output is no stream of JSON"))
    heard = _with_cost(stream)
    if not stream:
        return heard.replace(said=faults.said(_last_words(output.stderr)))
    for event in stream:
        if event.get("type") == "turn.failed":
            return heard.replace(said=faults.said(words(event, "error", "message") or _error(stream)))
    if stream[-1].get("type") != "turn.completed":
        said = _error(stream)
        return heard.replace(said=faults.said(said) if said else Said(fault="cut", text="no turn was completed"))
    return heard.replace(answer=_message(stream))


def _message(stream: list[Json]) -> str:
    items = [event["item"] for event in stream if event.get("type") == "item.completed" and "item" in event]
    said = [words(item, "text") for item in items if words(item, "type") == "agent_message"]
    return said[-1] if said else ""


def _error(stream: list[Json]) -> str:
    said = [words(event, "message") for event in stream if event.get("type") == "error"]
    return said[-1] if said else ""


def _last_words(stderr: bytes) -> str:
    return stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]


def _with_cost(stream: list[Json]) -> Heard:
    """Its count of what goes in holds what came from the cache."""
    thread = next((words(event, "thread_id") for event in stream if event.get("type") == "thread.started"), "")
    turns = [event for event in stream if event.get("type") == "turn.completed"]
    cached = sum(count(turn, "usage", "cached_input_tokens") for turn in turns)
    used = sum(count(turn, "usage", name) for turn in turns for name in ("input_tokens", "output_tokens"))
    return Heard(session_id=thread, tokens=max(0, used - cached), cached_tokens=cached)
