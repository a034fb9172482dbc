"""Whether a person attends a session, or a script has started its client and reads what it prints.

Claude Code tells the first by a variable, from which its kind of start shows as well. Of the others it is seen by the
command line of the client, which is the nearest ancestor of the hook that is called so; where processes cannot be
looked at (no /proc), a session counts as attended unless `CI` is set.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# By client: the words of a command line by which it runs without a terminal.
_HEADLESS: dict[str, tuple[str, ...]] = {
    "claude": ("-p", "--print"),
    "codex": ("exec", "e"),
    "copilot": ("-p", "--prompt"),
    "cursor": ("-p", "--print"),
    "gemini": ("-p", "--prompt"),
    "opencode": ("run",),
    "qwen": ("-p", "--prompt"),
}
_PROGRAMS = {"cursor": ("cursor-agent", "agent")}
_MOST_ANCESTORS = 8
_NAMED_WITHIN = 3  # `node .../bin/gemini ...`


def is_attended(
    client: str, env: Mapping[str, str], command_lines: Callable[[], Sequence[Sequence[str]]] | None = None
) -> bool:
    """Whether somebody is there to see what the session does.

    `command_lines` gives those of our ancestors, nearest first.
    """
    if client == "claude":  # the variables of one that started another client are not that one's
        said = env.get("CLAUDE_CODE_SESSION_ATTENDED", "")
        if said in ("0", "1"):
            return said == "1"
        if env.get("CLAUDE_CODE_ENTRYPOINT"):
            return not env["CLAUDE_CODE_ENTRYPOINT"].startswith("sdk")
    if env.get("CI", "").casefold() not in ("", "0", "false"):
        return False
    words = next((w for w in (command_lines or _ancestors)() if _is_called(w, client)), ())
    return not _is_headless(words, client)


def _is_called(words: Sequence[str], client: str) -> bool:
    names = _PROGRAMS.get(client, (client,))
    heads = (os.path.basename(word).partition(".")[0] for word in words[:_NAMED_WITHIN])
    return any(head in names for head in heads)


def _is_headless(words: Sequence[str], client: str) -> bool:
    signs = _HEADLESS.get(client, ())
    options = [sign for sign in signs if sign.startswith("-")]
    if any(word in options or word.partition("=")[0] in options for word in words):
        return True
    verbs = [sign for sign in signs if not sign.startswith("-")]
    return any(word in verbs for word in words[1 : _NAMED_WITHIN + 1])


def _ancestors() -> list[list[str]]:
    found: list[list[str]] = []
    pid = os.getppid()
    try:
        while pid > 1 and len(found) < _MOST_ANCESTORS:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                found.append([os.fsdecode(word) for word in file.read(1 << 16).split(b"\0")[:-1]])
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b") ")[2].split()[1])
    except (OSError, ValueError, IndexError):  # it is gone, or this system has no /proc
        pass
    return found
