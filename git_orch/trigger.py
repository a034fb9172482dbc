"""The fast path of a client's hooks: is there anything to do? The rest is loaded only then (`events`).

Felt at every stop and every prompt, so it imports next to nothing and starts one git at most. What it prints goes to
the client; its exit status is always 0, for 2 blocks in every client.
"""

from __future__ import annotations

import os
import sys
import time

from git_orch import jsontext, proc, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from git_orch.model import Json

EVENTS = ("stop", "session-start", "user-prompt-submit")
STDIN_S = 1.0
STDIN_LIMIT = 16 << 20
_ENABLED = b"orch.enabled\n"


def main(argv: list[str]) -> None:
    """The event is dealt with, or there was nothing to do."""
    env = dict(os.environ)
    event = argv[1] if len(argv) > 1 else ""
    if event not in EVENTS or env.get("ORCH") == "0" or "ORCH_TASK" in env:
        return
    payload = read_payload(0, STDIN_S)
    cwd = folder(payload)
    if not cwd or is_in_a_tree(cwd) or (event == "user-prompt-submit" and is_known(cwd, payload, env)):
        return
    listed = settings_listed(cwd, env)
    if _ENABLED not in listed:
        return
    from git_orch import events

    fired = events.Fired(event=event, client=client(payload, env), session_id=session_id(payload))
    events.fire(fired, cwd, env)


def leave() -> NoReturn:
    """The process ends with status 0, without the millisecond that taking the interpreter apart would cost."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def settings_listed(cwd: str, env: Mapping[str, str]) -> bytes:
    """Our settings as `git config -z` lists them; empty where there are none, no repository or no git."""
    try:
        done = proc.run(
            ("git", "-C", cwd, "config", "-z", "--get-regexp", r"^orch\.enabled$"),
            env={name: value for name, value in env.items() if not name.startswith("GIT_") or "CONFIG" in name},
            timeout_s=5.0,
        )
    except FileNotFoundError:
        return b""
    return done.stdout


def is_in_a_tree(cwd: str) -> bool:
    """Whether that is a tree of a review, and the client a reviewer, whatever it has made of its environment.

    Its hooks fire no reviews, or reviews would fire reviews.
    """
    return f"/git-orch-{system.uid()}/" in os.path.realpath(cwd).replace(os.sep, "/") + "/"


def is_known(cwd: str, payload: Json, env: Mapping[str, str]) -> bool:
    """Whether the session was seen before, in a plain repository: its prompt changes nothing, and git is not asked.

    Everywhere else (a linked worktree, a submodule) the slow way finds out.
    """
    top = os.path.realpath(cwd)
    while not os.path.isdir(os.path.join(top, ".git")):
        top, below = os.path.dirname(top), top
        if top == below:
            return False
    from git_orch import session_name

    name = session_name.of(client(payload, env), session_id(payload), top)
    return os.path.exists(os.path.join(top, ".git", "orch", "sessions", name))


def read_payload(fd: int, timeout_s: float) -> Json:
    """The client's JSON object; {} where none came in time.

    Some clients never close the pipe, so its end is not waited for once an object is complete.
    """
    deadline_ns = time.monotonic_ns() + int(timeout_s * 1e9)
    taken = b""
    while len(taken) < STDIN_LIMIT and proc.readable(fd, (deadline_ns - time.monotonic_ns()) / 1e9):
        part = os.read(fd, 1 << 20)
        taken += part
        if part and not part.rstrip().endswith(b"}"):
            continue
        try:
            value = jsontext.loads(taken.removeprefix(b"\xef\xbb\xbf"))
        except jsontext.JsonTextError:
            if part:
                continue
            break
        return value if isinstance(value, dict) else {}
    return {}


def folder(payload: Json) -> str:
    """Where the client works: its own word, else ours; "" where that folder is gone."""
    try:
        cwd = text(payload, "cwd") or os.getcwd()
    except FileNotFoundError:
        return ""
    return cwd if os.path.isdir(cwd) else ""


def client(payload: Json, env: Mapping[str, str]) -> str:
    """Which client fired the hook, as far as it shows."""
    if "GEMINI_SESSION_ID" in env:
        return "gemini"
    if "CLAUDECODE" in env or "CLAUDE_PROJECT_DIR" in env or "transcript_path" in payload:
        return "codex" if "turn_id" in payload else "claude"
    return "copilot" if "sessionId" in payload else "unknown"


def session_id(payload: Json) -> str:
    """The client's id of its session, or `unknown`."""
    return text(payload, "session_id") or text(payload, "sessionId") or "unknown"


def text(payload: Json, name: str) -> str:
    """A text of the payload, "" where it is none."""
    value = payload.get(name)
    return value if isinstance(value, str) and "\0" not in value else ""
