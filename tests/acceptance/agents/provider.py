"""A scripted model provider on loopback, for driving real agent clients in tests. The standard library alone.

It speaks four wire protocols, streaming and not:

    POST /v1/messages                      Anthropic Messages   (claude, opencode, copilot)
    POST /v1/responses                     OpenAI Responses     (codex)
    POST /v1/chat/completions              OpenAI Chat          (qwen)
    POST /v1beta/models/M:generateContent  Gemini               (gemini)

Which reply comes depends on the request alone: the number of turns that the model has had in it by now. So retries and
clients that run side by side share one server.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]
USAGE = {"input_tokens": 11, "output_tokens": 7}
TOKENS = 18
ANSWER_TOOLS = ("StructuredOutput", "structured_output")
_CWD = (
    r"[Ww]orking directory:\s*`?([^\s`<\"\\]+)",
    r"<cwd>([^<\"\\]+)</cwd>",
    r"currently working in the directory:\s*`?([^\s`<\"\\]+)",
    r"following directories:\s*-\s*([^\s`<\"\\]+)",
    r"[Dd]irectory:\s*`?(/[^\s`<\"\\]+)",
)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the model says: text, then calls of tools. Or an HTTP error, a stream that is cut, no answer at all."""

    text: str = ""
    tools: Sequence[tuple[str, Json]] = ()
    status: int = 200
    body: Json = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    hang: bool = False
    answer: Json | None = None  # laid over a passing answer to the review that the prompt asks for


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request, as far as a script goes by it."""

    protocol: str
    path: str
    body: Json
    system: str
    prompt: str
    turns: int
    tools: tuple[str, ...]

    @property
    def whole(self) -> str:
        """All text of it."""
        return flat(self.body)

    @property
    def is_review(self) -> bool:
        """Whether git-orch asks."""
        return "BEGIN difference" in self.prompt

    @property
    def cwd(self) -> str:
        """The working directory that the client told of."""
        found = (re.search(pattern, self.whole) for pattern in _CWD)
        return next((match[1].rstrip(".,") for match in found if match), "")


def flat(value: object) -> str:
    """All text in a JSON value, one after the other."""
    match value:
        case str():
            return value
        case dict():
            return "\n".join(map(flat, value.values()))
        case list():
            return "\n".join(map(flat, value))
    return ""


def passing(prompt: str) -> Json:
    """The answer that passes the review that the prompt asks for: its nonce, and each file with its token."""
    nonce = re.findall(r"^BEGIN difference ([0-9a-f]{32})$", prompt, re.MULTILINE)[-1]
    difference = prompt.rsplit(f"BEGIN difference {nonce}\n", maxsplit=1)[-1].split(f"\nEND {nonce}", maxsplit=1)[0]
    listed = re.findall(r'^- ("(?:[^"\\]|\\.)*") \((?:added|deleted|changed|changed in type)\)$', prompt, re.MULTILINE)
    tokens = re.findall(r"^orch:([0-9a-f]+)$", difference, re.MULTILINE)
    paths = [json.loads(path) for path in listed]
    files = [{"path": path, "token": token} for path, token in zip(paths, tokens, strict=True)]
    head = {"schema_version": "1", "nonce": nonce, "status": "no_findings", "reason": None}
    return {**head, "files": files, "findings": []}


class Provider:
    """The server; `author` and `reviewer` are the replies, turn by turn, to a client at work and to a reviewer."""

    def __init__(self, reviewer: Sequence[Reply] = (), author: Sequence[Reply] = ()) -> None:
        self.reviewer: Sequence[Reply] = reviewer or (Reply(answer={}),)
        self.author: Sequence[Reply] = author or (Reply(text="done"),)
        self.requests: list[Asked] = []
        self._stop = threading.Event()
        handler = type("Bound", (_Handler,), {"provider": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stop.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def reviews(self) -> list[Asked]:
        """The requests that git-orch's reviewers made."""
        return [asked for asked in self.requests if asked.is_review]

    def reply(self, asked: Asked) -> Reply:
        """What is answered to the request."""
        self.requests.append(asked)
        if not asked.tools:  # a title, a summary
            return Reply(text="ok")
        script = self.reviewer if asked.is_review else self.author
        chosen = script[min(asked.turns, len(script) - 1)]
        if chosen.answer is None:
            return replace(chosen, tools=tuple((name, _in_tree(given, asked.cwd)) for name, given in chosen.tools))
        return _answering(asked, passing(asked.prompt) | chosen.answer)

    def wait_for_end(self, longest_s: float) -> None:
        """The test is over, or that long has passed."""
        self._stop.wait(longest_s)


def _in_tree(given: Json, cwd: str) -> Json:
    """The arguments of a tool with the working directory for each `{}`."""
    return {key: value.replace("{}", cwd) if isinstance(value, str) else value for key, value in given.items()}


def _answering(asked: Asked, answer: Json) -> Reply:
    tool = next((name for name in ANSWER_TOOLS if name in asked.tools), "")
    if tool:
        return Reply(tools=((tool, answer),))
    return Reply(text=json.dumps(answer))


# -- reading a request


def describe(path: str, body: Json) -> Asked | None:
    """The request, or None where it asks no model."""
    protocol = _protocol(path)
    if protocol is None:
        return None
    system, messages = _messages(protocol, body)
    authors = [author for author, _ in messages]
    return Asked(
        protocol=protocol,
        path=path,
        body=body,
        system=system,
        prompt="\n".join(text for author, text in messages if author == "user"),
        turns=sum(
            author == "model" and (number == 0 or authors[number - 1] != "model")
            for number, author in enumerate(authors)
        ),
        tools=tuple(_tools(body)),
    )


def _protocol(path: str) -> str | None:
    plain = path.split("?", maxsplit=1)[0].rstrip("/")
    endings = {"/messages": "anthropic", "/responses": "responses", "/chat/completions": "chat"}
    if ":generateContent" in plain or ":streamGenerateContent" in plain:
        return "gemini"
    return next((protocol for ending, protocol in endings.items() if plain.endswith(ending)), None)


def _messages(protocol: str, body: Json) -> tuple[str, list[tuple[str, str]]]:
    """The system's text, and who said what; what a tool returned is nobody's prompt."""
    if protocol == "responses":
        return _of_responses(body)
    if protocol == "gemini":
        contents = body.get("contents", [])
        listed = [("model" if each.get("role") == "model" else "user", flat(each.get("parts"))) for each in contents]
        return flat(body.get("systemInstruction", "")), listed
    system = [flat(body.get("system", ""))]
    listed = []
    for each in body.get("messages", []):
        role, content = each.get("role"), flat(each.get("content"))
        if role in ("system", "developer"):
            system.append(content)
        else:
            listed.append(("model" if role == "assistant" else "user" if role == "user" else "tool", content))
    return "\n".join(system), listed


def _of_responses(body: Json) -> tuple[str, list[tuple[str, str]]]:
    system, listed = [flat(body.get("instructions", ""))], []
    given = body.get("input", [])
    for each in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        if each.get("role") in ("system", "developer"):
            system.append(flat(each.get("content")))
        elif each.get("role") == "assistant" or each.get("type", "message") in ("function_call", "reasoning"):
            listed.append(("model", ""))
        else:
            listed.append(("user" if each.get("role") == "user" else "tool", flat(each.get("content"))))
    return "\n".join(system), listed


def _tools(body: Json) -> Iterator[str]:
    for tool in body.get("tools") or []:
        for declared in tool.get("functionDeclarations") or [tool]:
            yield str(declared.get("name") or declared.get("function", {}).get("name") or declared.get("type"))


# -- writing a reply: the whole object, and the events of a stream, each with a name or none


def _anthropic(reply: Reply, model: str) -> Json:
    content: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{_id()}", "name": name, "input": given} for name, given in reply.tools
    ]
    usage = {**USAGE, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    stop = "tool_use" if reply.tools else "end_turn"
    head = {"id": f"msg_{_id()}", "type": "message", "role": "assistant", "model": model, "content": content}
    return {**head, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _anthropic_events(message: Json) -> Iterator[tuple[str, Json]]:
    head = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    yield "message_start", {"type": "message_start", "message": head}
    for index, block in enumerate(message["content"]):
        is_text = block["type"] == "text"
        begun = {"type": "text", "text": ""} if is_text else {**block, "input": {}}
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": begun}
        for piece in _pieces(block["text"] if is_text else json.dumps(block["input"])):
            delta = (
                {"type": "text_delta", "text": piece}
                if is_text
                else {"type": "input_json_delta", "partial_json": piece}
            )
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ended, "usage": {"output_tokens": USAGE["output_tokens"]}}
    yield "message_stop", {"type": "message_stop"}


def _responses(reply: Reply, model: str) -> Json:
    output: list[Json] = []
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        head = {"type": "message", "id": f"msg_{_id()}", "role": "assistant", "status": "completed"}
        output.append({**head, "content": content})
    for name, given in reply.tools:
        call = {"type": "function_call", "id": f"fc_{_id()}", "call_id": f"call_{_id()}", "name": name}
        output.append({**call, "arguments": json.dumps(given), "status": "completed"})
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole: Json = {"id": f"resp_{_id()}", "object": "response", "created_at": 1, "status": "completed", "model": model}
    return {**whole, "output": output, "usage": {**USAGE, "total_tokens": TOKENS, **details}}


def _responses_events(whole: Json) -> Iterator[tuple[str, Json]]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield "response.created", {"type": "response.created", "response": begun}
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index}
        start = {**item, "status": "in_progress", **({"content": []} if item["type"] == "message" else {})}
        yield "response.output_item.added", {"type": "response.output_item.added", **place, "item": start}
        if item["type"] == "message":
            for piece in _pieces(item["content"][0]["text"]):
                told = {"item_id": item["id"], **place, "content_index": 0, "delta": piece}
                yield "response.output_text.delta", {"type": "response.output_text.delta", **told}
        yield "response.output_item.done", {"type": "response.output_item.done", **place, "item": item}
    yield "response.completed", {"type": "response.completed", "response": whole}


def _chat(reply: Reply, model: str) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.tools:
        message["tool_calls"] = [
            {"id": f"call_{_id()}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for name, given in reply.tools
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.tools else "stop"}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": TOKENS}
    head = {"id": f"chatcmpl-{_id()}", "object": "chat.completion", "created": 1, "model": model}
    return {**head, "choices": [choice], "usage": usage}


def _chat_events(whole: Json) -> Iterator[tuple[str, Json]]:
    head = {"id": whole["id"], "object": "chat.completion.chunk", "created": 1, "model": whole["model"]}
    choice = whole["choices"][0]

    def chunk(delta: Json, finish: str | None = None) -> tuple[str, Json]:
        return "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(choice["message"]["content"] or ""):
        yield chunk({"content": piece})
    for index, call in enumerate(choice["message"].get("tool_calls", [])):
        name, given = call["function"]["name"], call["function"]["arguments"]
        begun = {"index": index, "id": call["id"], "type": "function", "function": {"name": name, "arguments": ""}}
        yield chunk({"tool_calls": [begun]})
        for piece in _pieces(given):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, choice["finish_reason"])
    yield "", {**head, "choices": [], "usage": whole["usage"]}
    yield "", {"done": True}


def _gemini(reply: Reply, model: str) -> Json:
    parts: list[Json] = [{"text": reply.text}] if reply.text else []
    parts += [{"functionCall": {"id": _id(), "name": name, "args": given}} for name, given in reply.tools]
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": TOKENS}
    return {"candidates": [candidate], "modelVersion": model, "responseId": _id(), "usageMetadata": usage}


def _gemini_events(whole: Json) -> Iterator[tuple[str, Json]]:
    yield "", whole


_WRITERS = {
    "anthropic": (_anthropic, _anthropic_events),
    "responses": (_responses, _responses_events),
    "chat": (_chat, _chat_events),
    "gemini": (_gemini, _gemini_events),
}


def _pieces(text: str, size: int = 40) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _id() -> str:
    return uuid.uuid4().hex[:20]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: Provider

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send({})

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [], "models": [], "has_more": False})

    def do_POST(self) -> None:
        raw = self._body()
        body = json.loads(raw) if raw else {}
        if self.path.split("?")[0].endswith(("/count_tokens", ":countTokens")):
            self._send({"input_tokens": 11, "totalTokens": 11})
            return
        asked = describe(self.path, body)
        if asked is None:
            self._send({})
            return
        try:
            self._answer(asked, self.provider.reply(asked))
        except OSError:  # the client has gone
            self.close_connection = True

    def _answer(self, asked: Asked, reply: Reply) -> None:
        if reply.hang:
            self.provider.wait_for_end(60)
            self.close_connection = True
            return
        if reply.status != 200:
            default = {"type": "error", "error": {"type": "overloaded_error", "message": "scripted error"}}
            self._send(reply.body or default, reply.status, reply.headers)
            return
        build, events = _WRITERS[asked.protocol]
        whole = build(reply, str(asked.body.get("model") or "fake-model"))
        if asked.body.get("stream") or ":streamGenerateContent" in asked.path:
            self._stream(list(events(whole)), reply)
        else:
            self._send(whole)

    def _stream(self, events: list[tuple[str, Json]], reply: Reply) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, data in events[: max(1, len(events) // 2)] if reply.cut else events:
            text = "[DONE]" if data.get("done") else json.dumps(data)
            self.wfile.write(((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode())
            self.wfile.flush()

    def _send(self, value: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _body(self) -> bytes:
        if "chunked" not in (self.headers.get("transfer-encoding") or "").lower():
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = b""
        while size := int(self.rfile.readline().split(b";")[0].strip() or b"0", 16):
            parts += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return parts
