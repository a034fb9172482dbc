"""The fast path of a client's hooks: is there anything to do? The rest is loaded only then (`events`).

Felt at every stop and every prompt, so it imports next to nothing and starts one git at most. What it prints goes to
the client; its exit status is 0, for 2 blocks in every client.
"""

from __future__ import annotations

import os
import select
import sys
import time

from git_orch import dialects, jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from git_orch.model import Json

EVENTS = ("stop", "session-start", "user-prompt-submit", "wake")
EVENTS_OF_GIT = ("post-commit", "pre-push")
STDIN_S = 1.0
STDIN_LIMIT = 16 << 20
_SIGPIPE = 13
_NO = (b"false", b"no", b"off", b"0", b"")


def main(argv: list[str]) -> int:
    """The event is dealt with, or there was nothing to do: EVENT, and the client where the line names it.

    The status is 0, but for a `wake` that has something to say.
    """
    env = dict(os.environ)
    event, named = (*argv[1:3], "", "")[:2]
    if event in EVENTS_OF_GIT:
        _main_of_git(event, argv[2:], env)
    if event not in EVENTS or env.get("ORCH") == "0" or "ORCH_TASK" in env:
        return 0
    # git looks while we read: most clients start their hooks in the folder that they work in.
    here = _here()
    question = Question(here, env) if here and event != "user-prompt-submit" else None
    payload = read_payload(0, STDIN_S)
    cwd = folder(payload, here)
    who = dialects.client(payload, env, named)
    if not cwd or is_in_a_tree(cwd) or (question is None and not has_news(cwd, who, payload)):
        return 0
    if question is None or cwd != here:
        question = Question(cwd, env)
    if not question.answer():
        return 0
    from git_orch import events

    return events.fire(events.fired(event, who, payload), cwd, env)


class Question:
    """Whether hooks may act in a folder, asked of git by the least that it takes: `proc` alone would cost as much."""

    def __init__(self, cwd: str, env: Mapping[str, str]) -> None:
        own = {name: value for name, value in env.items() if not name.startswith("GIT_") or "CONFIG" in name}
        self._read_end, write_end = os.pipe()
        self._pid = 0
        if os.name == "nt":
            os.write(write_end, _said_on_windows(cwd, own))
            os.close(write_end)
            return
        try:
            null = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
            words = ("git", "-C", cwd, "config", "-z", "--get-regexp", r"^orch\.enabled$")
            self._pid = os.posix_spawnp(
                "git", words, own, file_actions=((os.POSIX_SPAWN_DUP2, write_end, 1), null), setsigdef=(_SIGPIPE,)
            )
        except OSError:
            pass  # no git, no repository
        finally:
            os.close(write_end)

    def answer(self) -> bool:
        """Whether `orch.enabled` is set, and not to a word for no; whether that is a good word, `config` will say."""
        said = os.read(self._read_end, 4096)
        if self._pid:
            os.waitpid(self._pid, 0)
        key, newline, value = said.rstrip(b"\0").rpartition(b"\0")[2].partition(b"\n")
        return bool(key) and not (newline and value.lower() in _NO)


def _main_of_git(event: str, words: list[str], env: Mapping[str, str]) -> NoReturn:
    """What git's own hook does is done; a status other than 0 stops a push."""
    status = 0
    if env.get("ORCH") != "0" and "ORCH_TASK" not in env and not is_in_a_tree(os.getcwd()):
        from git_orch import gitevents

        status = gitevents.fire(event, words, env)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def leave(status: int) -> NoReturn:
    """The process ends, without the millisecond that taking the interpreter apart would cost."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # the client has gone, or keeps its output on a full disk
            pass
    os._exit(status)


def is_in_a_tree(cwd: str) -> bool:
    """Whether that is a tree of a review, and the client a reviewer, whatever it has made of its environment.

    Its hooks fire no reviews, or reviews would fire reviews.
    """
    uid = os.geteuid() if os.name != "nt" else 0
    return f"/git-orch-{uid}/" in os.path.realpath(cwd).replace(os.sep, "/") + "/"


def has_news(cwd: str, who: str, payload: Json) -> bool:
    """Whether a prompt could change anything; in a plain repository two stats tell, and git is not asked.

    Where nothing could, that the session is not quiet is noted all the same. Everywhere else (a linked worktree, a
    submodule) the slow way finds out.
    """
    top = os.path.realpath(cwd)
    while not os.path.isdir(os.path.join(top, ".git")):
        top, below = os.path.dirname(top), top
        if top == below:
            return True
    from git_orch import quiet, session_name

    name, durable = session_name.of(who, dialects.session_id(payload), top), os.path.join(top, ".git", "orch")
    if session_name.has_news(durable, name):
        return True
    quiet.disturb(durable, name)
    return False


def read_payload(fd: int, timeout_s: float) -> Json:
    """The client's JSON object; {} where none came in time.

    Some clients never close the pipe, so its end is not waited for once an object is complete.
    """
    deadline_ns = time.monotonic_ns() + int(timeout_s * 1e9)
    taken = b""
    while len(taken) < STDIN_LIMIT and _readable(fd, (deadline_ns - time.monotonic_ns()) / 1e9):
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


def folder(payload: Json, here: str) -> str:
    """Where the client works: its own word, else our folder; "" where that is gone."""
    cwd = dialects.folder(payload) or here
    return cwd if cwd and os.path.isdir(cwd) else ""


def _readable(fd: int, timeout_s: float) -> bool:
    if os.name == "nt":
        from git_orch import windows

        return timeout_s > 0 and windows.readable(fd, timeout_s)
    return timeout_s > 0 and bool(select.select([fd], [], [], timeout_s)[0])


def _said_on_windows(cwd: str, env: Mapping[str, str]) -> bytes:
    """What git says of `orch.enabled`, as much of it as a pipe takes without a reader. Written, not run."""
    from git_orch import proc

    try:
        done = proc.run(("git", "-C", cwd, "config", "-z", "--get-regexp", r"^orch\.enabled$"), env=env, timeout_s=5.0)
    except FileNotFoundError:
        return b""
    return done.stdout[:2048]


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""
