"""Whatever is done to the bytes that a client writes, they pass only while they still say so.

What they say is told by an oracle that knows the clients' forms and the standard `json`, but none of the readers.
Two thousand and more mutations of each client's output; the run is the same each time.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from git_orch import verdict
from git_orch.config import AGENTS
from git_orch.model import Exited, ReviewerSettings
from git_orch.reviewers import agents
from git_orch.reviewers.client import Output
from git_orch.reviewers.reading import Request
from tests.unit import client_samples as samples

NONCE = "9f3a61c29f3a61c29f3a61c29f3a61c2"
TOKENS = {"a.py": "0badf00d11", "src/b c.py": "0badf00d22", "docs/c.md": "0badf00d33"}
REQUEST = Request(nonce=NONCE, offered=tuple(TOKENS), tokens=TOKENS, root="/t/tree")
MUTATIONS = 2400
Json = dict[str, Any]

PASSING: Json = {
    "schema_version": "1",
    "nonce": NONCE,
    "status": "no_findings",
    "reason": None,
    "files": [{"path": path, "token": token} for path, token in TOKENS.items()],
    "findings": [],
}
FINDING = {"path": "a.py", "start_line": 1, "end_line": 1, "severity": "nit", "rule": "r", "message": "m"}
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 1e400, "", "x", "findings", "no_findings", "unable_to_review", "error", "success",
    [], {}, [None], [[]], {"a": 1}, "1", "2", NONCE, NONCE[:-1], "0badf00d11", "a.py", "../a.py", "/t/tree/a.py",
    [FINDING],
]  # fmt: skip
CUTS = (b"", b"\n", b"}", b"]}", b"null", b"\xff", b'"', b",", b"{}", b"\x00")
AROUND = (
    (b"Here it is:\n", b""),
    (b"", b"\nDone."),
    (b"", b"{}"),
    (b"{}\n", b""),
    (b"[", b"]"),
    (b"\xef\xbb\xbf", b""),
    (b"", b"\n\n"),
    (b"null\n", b""),
    (b'{"result":', b"}"),
)


# -- what the bytes say, without our readers


def says_pass(name: str, raw: bytes) -> bool:
    """Whether the output is whole, tells of no error, and holds an answer that passes."""
    try:
        answer = HEARD[name](raw)
        document = answer if isinstance(answer, dict) else json.loads(unfenced(answer), parse_constant=_no)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return False
    return isinstance(document, dict) and answer_passes(document)


def _no(_: str) -> None:
    raise ValueError


def parsed(raw: bytes) -> Any:
    return json.loads(raw.decode("utf-8"), parse_constant=_no)


def unfenced(text: str) -> str:
    text = text.strip()
    for fence in ("```json\n", "```\n"):
        if text.startswith(fence) and text.endswith("\n```") and text.count("```") == 2:
            return text.removeprefix(fence).removesuffix("\n```")
    return text.removeprefix("\ufeff")


def answer_passes(document: Json) -> bool:
    head = (document.get("schema_version"), document.get("nonce"), document.get("status"))
    if head != ("1", NONCE, "no_findings") or document.get("findings") not in (None, []):
        return False
    proven = {
        entry["path"].removeprefix("/t/tree/").removeprefix("./")
        for entry in document["files"]
        if isinstance(entry, dict) and entry.get("token") == TOKENS.get(_plain(entry["path"]))
    }
    skipped = {_plain(entry["path"]) for entry in document.get("skipped") or []}
    return proven >= set(TOKENS) and not skipped & set(TOKENS)


def _plain(path: str) -> str:
    return path.removeprefix("/t/tree/").removeprefix("./")


def of_result(raw: bytes, field: str) -> Any:
    result = parsed(raw)
    assert_that(result["type"] == "result" and result["subtype"] == "success" and result["is_error"] is False)
    return result[field]


def of_qwen(raw: bytes) -> Any:
    result = parsed(raw)[-1]
    assert_that(result["type"] == "result" and result["subtype"] == "success" and result["is_error"] is False)
    return result["structured_result"]


def of_gemini(raw: bytes) -> Any:
    result = parsed(raw)
    assert_that(result.get("error") is None)
    return result["response"]


def stream(raw: bytes) -> list[Json]:
    return [parsed(line) for line in raw.split(b"\n") if line.strip()]


def of_codex(raw: bytes) -> Any:
    events = stream(raw)
    assert_that(events[-1]["type"] == "turn.completed" and all(each.get("type") != "turn.failed" for each in events))
    items = [
        each["item"] for each in events if each.get("type") == "item.completed" and isinstance(each.get("item"), dict)
    ]
    return [item.get("text") for item in items if item.get("type") == "agent_message"][-1]


def of_copilot(raw: bytes) -> Any:
    events = stream(raw)
    assert_that(events[-1]["type"] == "result" and all(each.get("type") != "session.error" for each in events))
    last = [each for each in events if each.get("type") == "assistant.message"][-1]["data"]
    assert_that(not last.get("toolRequests"))
    return last["content"]


def of_opencode(raw: bytes) -> Any:
    events = stream(raw)
    assert_that(all(each.get("type") != "error" for each in events))
    end = [each for each in events if each.get("type") == "step_finish"][-1]["part"]
    assert_that(end["reason"] == "stop")
    message = end.get("messageID") if isinstance(end.get("messageID"), str) else ""
    parts = [each.get("part") for each in events if each.get("type") == "text"]
    texts = [part for part in parts if isinstance(part, dict)]
    return "".join(
        part["text"]
        for part in texts
        if (part.get("messageID") if isinstance(part.get("messageID"), str) else "") == message
        and isinstance(part.get("text"), str)
    )


def assert_that(holds: bool) -> None:
    if not holds:
        raise ValueError


HEARD: dict[str, Callable[[bytes], Any]] = {
    "claude": lambda raw: of_result(raw, "structured_output"),
    "cursor": lambda raw: of_result(raw, "result"),
    "codex": of_codex,
    "copilot": of_copilot,
    "gemini": of_gemini,
    "opencode": of_opencode,
    "qwen": of_qwen,
}


# -- what is done to them


def mutated(name: str, dice: random.Random) -> bytes:
    """The client's output for an answer that passed, changed in one to three ways."""
    answer = json.loads(json.dumps(PASSING))
    if dice.random() < 0.45:
        change_value(answer, dice)
    raw = samples.answering(name, answer)
    for _ in range(dice.choice((0, 1, 1, 2))):
        raw = dice.choice(WAYS)(raw, dice)
    return raw


def change_value(value: Any, dice: random.Random) -> None:
    """One value somewhere in it is another, gone, twice there, or under another name."""
    places = list(spots(value))
    holder, key = dice.choice(places)
    match dice.randrange(5):
        case 0:
            holder[key] = dice.choice(VALUES)
        case 1:
            del holder[key]
        case 2 if isinstance(holder, list):
            holder.append(holder[key])
        case 2:
            holder[f"{key}_"] = holder.pop(key)
        case 3 if isinstance(holder[key], str):
            holder[key] = holder[key][: dice.randrange(len(holder[key]) + 1)]
        case _:
            holder[key] = [holder[key]]


def spots(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in list(items):
        yield value, key
        yield from spots(below)


def cut(raw: bytes, dice: random.Random) -> bytes:
    return raw[: dice.randrange(len(raw) + 1)] + dice.choice(CUTS)


def behead(raw: bytes, dice: random.Random) -> bytes:
    return raw[dice.randrange(len(raw) + 1) :]


def flip(raw: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(max(1, len(raw)))
    return raw[:at] + bytes((dice.randrange(256),)) + raw[at + 1 :]


def drop(raw: bytes, dice: random.Random) -> bytes:
    start = dice.randrange(len(raw) + 1)
    return raw[:start] + raw[start + dice.randrange(1, 40) :]


def double(raw: bytes, dice: random.Random) -> bytes:
    start = dice.randrange(len(raw) + 1)
    end = start + dice.randrange(1, 200)
    return raw[:end] + raw[start:end] + raw[end:]


def wrap(raw: bytes, dice: random.Random) -> bytes:
    before, after = dice.choice(AROUND)
    return before + raw + after


def swap_lines(raw: bytes, dice: random.Random) -> bytes:
    lines = raw.splitlines(keepends=True)
    if len(lines) > 1:
        one, other = dice.randrange(len(lines)), dice.randrange(len(lines))
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def lose_line(raw: bytes, dice: random.Random) -> bytes:
    lines = raw.splitlines(keepends=True)
    if lines:
        lines.pop(dice.randrange(len(lines)))
    return b"".join(lines)


def in_client(raw: bytes, dice: random.Random) -> bytes:
    """A value of the client's own output is another."""
    try:
        lines = [json.loads(line) for line in raw.splitlines() if line.strip()]
    except ValueError:
        try:
            lines = [json.loads(raw)]
        except ValueError:
            return raw
    target = dice.choice(lines) if lines else None
    if target and list(spots(target)):
        change_value(target, dice)
    return b"\n".join(json.dumps(line).encode() for line in lines) + b"\n"


WAYS = (cut, behead, flip, drop, double, wrap, swap_lines, lose_line, in_client, in_client, in_client)


def passes(name: str, raw: bytes) -> bool:
    settings = ReviewerSettings(name=name)
    reply = agents.read(agents.client(name), settings, Output(stdout=raw), Exited(code=0), REQUEST)
    review = verdict.of_reviewer(settings, Exited(code=0), reply.answer)
    assert (review.verdict == "pass") <= (set(review.reviewed) == set(TOKENS))
    return review.verdict == "pass"


@pytest.mark.parametrize("name", AGENTS)
def test_no_mutation_is_a_false_pass(name: str) -> None:
    assert passes(name, samples.answering(name, PASSING))
    assert says_pass(name, samples.answering(name, PASSING))
    dice = random.Random(name)
    told = {True: 0, False: 0}
    for _ in range(MUTATIONS):
        raw = mutated(name, dice)
        passed = passes(name, raw)
        assert not passed or says_pass(name, raw), raw
        told[passed] += 1
    # The mutations are neither all fatal nor all harmless, or this would prove nothing.
    assert told[True] > MUTATIONS // 20
    assert told[False] > MUTATIONS // 3
