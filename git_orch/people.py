"""Who types: a person at a terminal, or an agent in its session. What only a person may decide is asked of here.

No proof is possible between processes of one user. An agent's tools run with its client's variables and, in most
clients, without a controlling terminal; taking the variables away does not help, for its shell still has them. Who goes
to greater lengths than that writes into `.git` just as well (docs/threat-model.md).
"""

from __future__ import annotations

import os

from git_orch import system
from git_orch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# What the clients set for the commands that they run. Cursor's CURSOR_TRACE_ID is set in a person's terminal as well.
MARKS = (
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_CI",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "COPILOT_AGENT_SESSION_ID",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "GEMINI_SESSION_ID",
    "OPENCODE",
    "ORCH_TASK",
    "QWEN_CODE",
)
_MOST_ANCESTORS = 64


def is_person(env: Mapping[str, str]) -> bool:
    """Whether a person types: there is a terminal, and no agent's session around it."""
    return has_terminal() and not in_agent_session(env)


def refuse_others(env: Mapping[str, str], verb: str) -> None:
    """A person types.

    Raises:
        UsageError: it is an agent, or a script.
    """
    if not is_person(env):
        raise UsageError(f"{verb} is a person's", "type it in a terminal, outside an agent's session")


def in_agent_session(env: Mapping[str, str]) -> bool:
    """Whether an agent's client has started this command, by its variables or by those of the shell that it gave us."""
    return any(env.get(name) for name in MARKS) or any(_is_marked(pid) for pid in _ancestors_in_session())


def has_terminal() -> bool:
    """Whether this process has a controlling terminal, whatever its streams are."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | system.CLOEXEC))
    except OSError:
        return False
    return True


def session_of(env: Mapping[str, str]) -> str:
    """The agent's session as its client names it, "" where it does not."""
    names = ("CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_SESSION_ID", "COPILOT_AGENT_SESSION_ID")
    return next((env[name] for name in names if env.get(name)), "")


def _ancestors_in_session() -> list[int]:
    """Our ancestors up to the leader of our session: a person's shell at a terminal, or the one an agent was given."""
    found: list[int] = []
    try:
        leader, pid = os.getsid(0), os.getppid()
        while pid > 1 and os.getsid(pid) == leader and len(found) < _MOST_ANCESTORS:
            found.append(pid)
            if pid == leader:
                break
            pid = _parent(pid)
    except OSError:  # it is gone, or this system has no /proc
        pass
    return found


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b") ")[2].split()[1])


def _is_marked(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            names = {item.partition(b"=")[0] for item in file.read().split(b"\0")}
    except OSError:
        return False
    return any(name.encode("ascii") in names for name in MARKS)
