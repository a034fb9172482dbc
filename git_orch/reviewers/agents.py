"""The clients by name, and an agent's answer: what its client heard of it, read as strictly as any other."""

from __future__ import annotations

from git_orch.errors import EnvironmentProblem
from git_orch.model import Exited, Record, Stalled, TimedOut
from git_orch.reviewers import answers, faults
from git_orch.reviewers.client import Heard, Said
from git_orch.reviewers.reading import NOTE_LIMIT, Answer, Unusable, encodable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.model import Outcome, ReviewerSettings
    from git_orch.reviewers.client import Client, Output
    from git_orch.reviewers.reading import Request

_TEXT_CLIENTS = ("copilot", "cursor", "gemini", "opencode")
_PRICED_CLIENTS = ("claude",)
_FENCES = ("```json\n", "```\n")


class Reply(Record):
    """What came of a call: the answer, or why there is none, and what its client told beside it."""

    answer: Answer | Unusable
    heard: Heard


def client(name: str) -> Client:
    """The client of that name (one of `config.AGENTS`); only that one is loaded."""
    match name:
        case "claude":
            from git_orch.reviewers import claude

            return claude
        case "codex":
            from git_orch.reviewers import codex

            return codex
        case "copilot":
            from git_orch.reviewers import copilot

            return copilot
        case "cursor":
            from git_orch.reviewers import cursor

            return cursor
        case "gemini":
            from git_orch.reviewers import gemini

            return gemini
        case "opencode":
            from git_orch.reviewers import opencode

            return opencode
        case "qwen":
            from git_orch.reviewers import qwen

            return qwen
    raise KeyError(name)


def answers_in_text(name: str) -> bool:
    """Whether the client has no schema, so that the answer is the text of its last message."""
    return name in _TEXT_CLIENTS


def keeps_to_a_price(name: str) -> bool:
    """Whether the client can be told what one call may cost at most, and ends itself there."""
    return name in _PRICED_CLIENTS


def missing(name: str) -> EnvironmentProblem:
    """The error where the client's program is not there."""
    of_client = client(name)
    return EnvironmentProblem(
        f"reviewer `{name}`: no program `{of_client.PROGRAMS[0]}` on PATH",
        f"install {of_client.TITLE}, or git config orch.reviewer.{name}.command 'COMMAND'",
    )


def read(of_client: Client, settings: ReviewerSettings, output: Output, outcome: Outcome, request: Request) -> Reply:
    """What the agent answered. Its client's exit status is neither a pass nor a fault; how we ended it is one."""
    heard = of_client.hear(output)
    if heard.said is not None:
        return Reply(answer=_unusable(heard.said, outcome, is_silent=not output.stdout.strip()), heard=heard)
    text = heard.answer.encode("utf-8", "replace")
    if answers_in_text(settings.name):
        text = unfenced(text)
    given = answers.read(
        settings.replace(output="json"),
        raw_result=None,
        raw_stdout=_with_real_paths(text, request),
        outcome=Exited(code=0) if isinstance(outcome, Exited) else outcome,
        request=request,
        raw_stderr=output.stderr,
    )
    return Reply(answer=given, heard=heard)


def unfenced(text: bytes) -> bytes:
    """The text without the fence of Markdown, where that encloses all of it and nothing else."""
    stripped = text.strip()
    for fence in _FENCES:
        raw = fence.encode("ascii")
        if stripped.startswith(raw) and stripped.endswith(b"\n```") and stripped.count(b"```") == 2:
            return stripped[len(raw) : -len(b"\n```")]
    return text


def _unusable(said: Said, outcome: Outcome, *, is_silent: bool) -> Unusable:
    """A client that was ended while it retried a limit has told of that limit already."""
    reason = faults.reason(said) if said.text.strip() or not is_silent else "no output"
    is_told = said.fault in ("rate-limited", "quota", "overloaded", "signed-out")
    if isinstance(outcome, TimedOut | Stalled) and is_told:
        reason = f"{reason}; no answer within {outcome.after_s:g} s"
    elif not isinstance(outcome, Exited):
        reason = answers.why_ended(outcome)
    is_empty = is_silent and said.fault == "failed"
    return Unusable(reason=reason, note=said.text.strip()[:NOTE_LIMIT], empty=is_empty)


def _with_real_paths(text: bytes, request: Request) -> bytes:
    """The answer with the real path wherever it has one as it was told, which differs where that is not UTF-8."""
    told = {encodable(path): path for path in request.offered if encodable(path) != path}
    if not told:
        return text
    return _replaced(text, told)


def _replaced(text: bytes, told: Mapping[str, str]) -> bytes:
    from binascii import b2a_base64

    from git_orch import jsontext

    try:
        document = jsontext.loads(text)
    except jsontext.JsonTextError:
        return text
    for key in ("files", "findings"):
        listed = document.get(key) if isinstance(document, dict) else None
        for entry in listed if isinstance(listed, list) else ():
            path = entry.get("path") if isinstance(entry, dict) else None
            if isinstance(path, str) and path in told:
                raw = told[path].encode("utf-8", "surrogateescape")
                entry["path_b64"] = b2a_base64(raw, newline=False).decode("ascii")
    return jsontext.dumps(document).encode("ascii")
