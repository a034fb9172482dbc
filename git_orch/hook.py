"""The fast path of a client's hooks, run as `PYTHON -I -S hook.py EVENT` with the client's JSON on standard input.

It is felt at every stop, so it finds out first whether there is anything to do, and loads the rest only then. What it
prints goes to the client; its exit status is always 0, for 2 blocks in every client.
"""

from __future__ import annotations

import os
import sys
import time

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from git_orch import config, jsontext
from git_orch.errors import OrchError
from git_orch.git import Git
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.config import Settings
    from git_orch.model import Json

EVENTS = ("stop", "session-start", "user-prompt-submit")
STDIN_S = 1.0
STDIN_LIMIT = 16 << 20


class Fired(Record):
    """A hook that was fired: by whom, where, and with what."""

    event: str
    client: str
    session_id: str
    cwd: str
    payload: Json
    settings: Settings
    env: dict[str, str]
    started: float


def main(argv: list[str], env: Mapping[str, str]) -> None:
    """The event is dealt with, or there was nothing to do."""
    started = time.monotonic()
    event = argv[1] if len(argv) > 1 else ""
    if event not in EVENTS or env.get("ORCH") == "0" or "ORCH_TASK" in env:
        return
    payload = read_payload(0, STDIN_S)
    cwd = folder(payload)
    try:
        settings = config.read(Git(env=dict(env), cwd=cwd), env) if cwd else config.Settings()
        if not settings.enabled:
            return
        from git_orch import events

        events.handle(
            Fired(
                event=event,
                client=client(payload, env),
                session_id=text(payload, "session_id") or text(payload, "sessionId") or "unknown",
                cwd=cwd,
                payload=payload,
                settings=settings,
                env=dict(env),
                started=started,
            )
        )
    except OrchError as error:
        sys.stderr.write(f"git-orch: {error.message}" + (f": {error.hint}\n" if error.hint else "\n"))


def read_payload(fd: int, timeout_s: float) -> Json:
    """The client's JSON object; {} where none came in time. Some clients never close the pipe, so its end is not
    waited for once an object is complete."""
    import select

    deadline = time.monotonic() + timeout_s
    taken = b""
    while len(taken) < STDIN_LIMIT:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            break
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


def text(payload: Json, name: str) -> str:
    """A text of the payload, "" where it is none."""
    value = payload.get(name)
    return value if isinstance(value, str) and "\0" not in value else ""


if __name__ == "__main__":
    main(sys.argv, os.environ)
