"""The proof that an installed hook works: a session played in a scratch repository, whose review must find a fault.

The lines are the very ones that the client will run, run as it does: by `sh -c`, with its JSON on standard input, and
with all three pipes waited for.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from git_orch import jsontext, key, layout, proc, registry, runs
from git_orch.errors import OrchError
from git_orch.git import Git
from git_orch.install import claude, launcher
from git_orch.install.clients import Client
from git_orch.key import state_dir
from git_orch.layout import Layout
from git_orch.model import Record

if TYPE_CHECKING:
    from git_orch.model import Json

REVIEW_TIMEOUT_S = 30.0
_HOOK_TIMEOUT_S = 20.0
_CANCEL_TIMEOUT_S = 15.0
_PAUSE_S = 0.02
_SESSION = "00000000-0000-4000-8000-000000000000"
_FILE = "planted.py"
_CLEAN = b"answer = 42\n"
_FAULT = b"<<<<<<< ours\nanswer = 42\n=======\nanswer = 43\n>>>>>>> theirs\n"
# What steers git, git-orch or a client outside has no say in here; GIT_* is dropped by `Git` as well.
_DROPPED = ("GIT_", "ORCH", "CLAUDE", "XDG_", "GEMINI_")
_STOPPED = {"permission_mode": "default", "stop_hook_active": False, "last_assistant_message": "planted"}
_SIGNS = {"claude": "CLAUDECODE", "gemini": "GEMINI_SESSION_ID"}
_INTO = 'cd "$0" && exec sh -c "$1"'  # a client starts its hooks in the folder that it works in


class Fired(Record):
    """The hook answered after this time, and its review found the planted fault."""

    answer_ms: int


class Misfired(Record):
    """The hook or its review did not do what it should; `reason` in words."""

    reason: str


if TYPE_CHECKING:
    Lines = Callable[[launcher.Event], str]


def fire(
    env: Mapping[str, str],
    *,
    client: Client = claude.CLIENT,
    line: Lines | None = None,
    timeout_s: float = REVIEW_TIMEOUT_S,
) -> Fired | Misfired:
    """A session was played with the client's hook lines in a scratch repository, of which nothing is left; how it went.

    When the hooks last fired (`launcher.last_fired`) is as it was: this was no real one.
    """
    fired = launcher.last_fired(env)
    try:
        with _scratch(env) as scratch:
            return _play(scratch, env, client, line or client.line, timeout_s)
    except (OSError, OrchError) as error:
        return Misfired(reason=str(error))
    finally:
        launcher.set_fired(env, fired)


def fire_git(
    hooks: Mapping[str, str], env: Mapping[str, str], *, timeout_s: float = REVIEW_TIMEOUT_S
) -> dict[str, Fired | Misfired]:
    """In a scratch repository with these hooks of git's a fault was committed, and pushed where there is a pre-push.

    The commit's review has to find the fault, and the push has to stop. Nothing is left of it.
    """
    try:
        with _scratch(env) as scratch:
            repository, sealed = os.path.join(scratch, "repository"), _sealed(scratch, env, "")
            git = _make_repository(repository, sealed)
            git.run("config", "orch.gitHooks", " ".join(hooks))
            for event, text in hooks.items():
                _write_hook(os.path.join(repository, ".git", "hooks", event), text)
            committed = _commit(repository, sealed, timeout_s)
            found: dict[str, Fired | Misfired] = {"post-commit": committed}
            if "pre-push" in hooks:
                found["pre-push"] = _push(repository, scratch, sealed) if isinstance(committed, Fired) else committed
            return found
    except (OSError, OrchError) as error:
        return {event: Misfired(reason=str(error)) for event in hooks}


def _write_hook(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    _write(path, text.encode())
    os.chmod(path, 0o700)


def _with_hooks(repository: str, env: Mapping[str, str], *words: str) -> proc.Finished:
    """Git as a person runs it: `Git` runs no hooks."""
    own = {**env, "GIT_AUTHOR_NAME": "git-orch", "GIT_AUTHOR_EMAIL": "git-orch@localhost"}
    own |= {"GIT_COMMITTER_NAME": "git-orch", "GIT_COMMITTER_EMAIL": "git-orch@localhost"}
    return proc.run(["git", "-C", repository, *words], env=own, timeout_s=REVIEW_TIMEOUT_S)


def _commit(repository: str, env: Mapping[str, str], timeout_s: float) -> Fired | Misfired:
    _write(os.path.join(repository, _FILE), _FAULT)
    start = time.monotonic()
    done = _with_hooks(repository, env, "commit", "--quiet", "--all", "--message", "planted")
    if done.code != 0 or done.timed_out:
        return Misfired(reason=f"a commit ended with status {done.code}")
    took_ms = round((time.monotonic() - start) * 1000)
    return _verdict(layout.locate(repository, env), env, timeout_s) or Fired(answer_ms=took_ms)


def _push(repository: str, scratch: str, env: Mapping[str, str]) -> Fired | Misfired:
    """Whether a push of the fault is stopped."""
    remote = os.path.join(scratch, "remote.git")
    Git(env=dict(env), cwd=scratch).run("init", "--quiet", "--bare", "--template=", remote)
    start = time.monotonic()
    done = _with_hooks(repository, env, "push", "--quiet", remote, "HEAD:refs/heads/main")
    if done.timed_out:
        return Misfired(reason=f"a push was not back after {REVIEW_TIMEOUT_S:.0f} s")
    if done.code == 0:
        return Misfired(reason="a push of a blocking finding went out")
    return Fired(answer_ms=round((time.monotonic() - start) * 1000))


def _play(scratch: str, env: Mapping[str, str], client: Client, line: Lines, timeout_s: float) -> Fired | Misfired:
    repository = os.path.join(scratch, "repository")
    sealed = _sealed(scratch, env, client.name)
    _make_repository(repository, sealed)
    names = {ours: theirs for theirs, ours in client.events.items()}
    start = _answer(line("session-start"), client, names["session-start"], repository, sealed)
    if isinstance(start, Misfired):
        return start
    _write(os.path.join(repository, _FILE), _FAULT)
    stop = _answer(line("stop"), client, names["stop"], repository, sealed)
    if isinstance(stop, Misfired):
        return stop
    return _verdict(layout.locate(repository, sealed), sealed, timeout_s) or Fired(answer_ms=stop)


def _answer(line: str, client: Client, event: str, repository: str, env: Mapping[str, str]) -> int | Misfired:
    """How many milliseconds the client would have waited: for the end of the hook and of all three pipes."""
    start = time.monotonic()
    argv = ["sh", "-c", _INTO, repository, line]
    command = proc.Command(argv=argv, env=env, stdin=_payload(client.name, event, repository), to_the_end=True)
    done = proc.run_together([command], timeout_s=_HOOK_TIMEOUT_S)[0]
    took_s = time.monotonic() - start
    if done.timed_out:
        return Misfired(reason=f"{event} was not back after {_HOOK_TIMEOUT_S:.0f} s")
    if done.code != 0:
        return Misfired(reason=f"{event} ended with status {done.code}, which has to be 0")
    said = done.stderr.decode("utf-8", "replace").strip()
    return Misfired(reason=f"{event} said: {said.splitlines()[-1]}") if said else round(took_s * 1000)


def _payload(client: str, event: str, repository: str) -> bytes:
    """What the client writes to a hook of that event; Claude Code's form where it has none of its own."""
    told: Json
    match client:
        case "copilot":
            told = {"sessionId": _SESSION, "timestamp": 0, "cwd": repository, "source": "startup"}
        case "cursor":
            told = {"conversation_id": _SESSION, "hook_event_name": event, "workspace_roots": [repository]}
        case _:
            told = {"session_id": _SESSION, "transcript_path": "", "cwd": repository, "hook_event_name": event}
            told |= {"source": "startup"} if event == "SessionStart" else _STOPPED
    return jsontext.dumps(told).encode("ascii")


def _verdict(place: Layout, env: Mapping[str, str], timeout_s: float) -> Misfired | None:
    """None where the review of the stop found the fault."""
    if not runs.run_ids(place.runs) and not _pending(place):
        return Misfired(reason=_why_silent(env))
    if not _wait(lambda: not _pending(place), timeout_s):
        return Misfired(reason=f"its review was not done after {timeout_s:.0f} s")
    records = [runs.final_record(place.run_dir(run_id)) for run_id in runs.run_ids(place.runs)]
    verdicts = [str(record.get("verdict")) for record in records if record]
    if "findings" in verdicts:
        return None
    reasons = [str(record.get("reason") or record.get("terminal_reason")) for record in records if record]
    return Misfired(reason=f"its review ended as {', '.join(verdicts) or 'nothing'}: {', '.join(reasons)}")


def _why_silent(env: Mapping[str, str]) -> str:
    hook = launcher.path(env)
    if not os.path.exists(hook):
        return f"there is no {hook}"
    if not os.access(hook, os.X_OK):
        return f"{hook} cannot be executed (is that file system mounted noexec?)"
    return "it came back without beginning a review"


def _pending(place: Layout) -> list[str]:
    try:
        return [name for name in os.listdir(place.pending) if not name.startswith(".")]
    except OSError:
        return []


def _wait(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


# -- the scene


@contextlib.contextmanager
def _scratch(env: Mapping[str, str]) -> Iterator[str]:
    """A folder, gone afterwards, for the repository, HOME and TMPDIR of the session.

    Whoever ends us ends the session first: a run that lives keeps what it works on.
    """
    with _unwinding():
        folder = os.path.realpath(tempfile.mkdtemp(prefix="orch-install-", dir=env.get("TMPDIR") or None))
        try:
            for name in ("repository", "home", "tmp"):
                os.mkdir(os.path.join(folder, name), 0o700)
            yield folder
        finally:
            if _end_runs(folder, env):
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _unwinding() -> Iterator[None]:
    """The first signal that would end us raises KeyboardInterrupt instead, and the others do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def unwind(number: int, frame: object) -> None:
        del number, frame
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    wanted = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]  # Windows has no SIGHUP
    before = {each: signal.getsignal(each) for each in wanted if each is not None}
    for each, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(each, unwind)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _end_runs(scratch: str, env: Mapping[str, str]) -> bool:
    """Whether no run of the session lives any more; those that did were cancelled."""
    sealed = _sealed(scratch, env, "")
    try:
        place = layout.locate(os.path.join(scratch, "repository"), sealed)
        book = registry.open_registry(place, key.load(sealed))
    except (OrchError, OSError):
        return True  # it did not come to a run
    if book is None:
        return True
    for run_id in filter(book.is_held, book.run_ids()):
        book.ask(run_id, "cancel")
    return _wait(lambda: not any(map(book.is_held, book.run_ids())), _CANCEL_TIMEOUT_S)


def _sealed(scratch: str, env: Mapping[str, str], client: str) -> dict[str, str]:
    """The environment of the session: a client's, with nothing of this user's but the state folder and PATH."""
    kept = {name: value for name, value in env.items() if not name.startswith(_DROPPED)}
    return {
        **kept,
        "HOME": os.path.join(scratch, "home"),
        "TMPDIR": os.path.join(scratch, "tmp"),
        "XDG_STATE_HOME": os.path.dirname(state_dir(env)),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **({_SIGNS[client]: "1"} if client in _SIGNS else {}),
        **({"CLAUDE_PROJECT_DIR": os.path.join(scratch, "repository")} if client == "claude" else {}),
    }


def _make_repository(folder: str, env: Mapping[str, str]) -> Git:
    """A repository with a commit, in which the hooks act."""
    git = Git(env=dict(env), cwd=folder, config=("user.name=git-orch", "user.email=git-orch@localhost"))
    git.run("init", "--quiet", "--template=")
    _write(os.path.join(folder, _FILE), _CLEAN)
    git.run("add", _FILE)
    git.run("commit", "--quiet", "--message", "clean")
    git.run("config", "orch.enabled", "true")
    return git


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
