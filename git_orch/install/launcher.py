"""The launcher that a hook line starts, `~/.local/state/git-orch/hook`, and when each hook last fired.

A line in a client's settings outlives the package: an upgrade moves the interpreter, an uninstall takes it away, and
python exits 2 ("block" in every client) where its script is gone. So the line names this small script, which every
command of ours writes anew, and which is silent and well where what it names is missing.

Loaded by every command and by the hook: cheap.
"""

from __future__ import annotations

import os
import sys

import git_orch
from git_orch import atomic, system
from git_orch.errors import EnvironmentProblem
from git_orch.key import state_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    Event = Literal["stop", "session-start", "user-prompt-submit"]

NAME = "hook"
_FIRED = "fired-"
MARK = "/git-orch/hook"  # by which a line of ours is known, whatever its version
EVENTS: tuple[Event, ...] = ("stop", "session-start", "user-prompt-submit")
# `sh -c '...'` although most clients hand a line to `sh -c` themselves: codex takes `$SHELL -lc`, and fish or nushell
# would not understand the assignment.
_LINE = """sh -c 'L="${XDG_STATE_HOME:-$HOME/.local/state}/git-orch/hook"; test -x "$L" || exit 0; "$L" %s; exit 0'"""
_SCRIPT = """\
#!/bin/sh
# git-orch's hook launcher. Every command of git-orch writes it anew; what is changed here is lost.
python=%s
hook=%s
test -x "$python" && test -f "$hook" || exit 0
exec "$python" -I -S "$hook" "$@"
"""


def line(event: Event, client: str = "") -> str:
    """The command line for an event, as it stands in a client's settings: it ends with status 0, come what may.

    Claude's names no client, the others' do (`dialects.CLIENTS`).
    """
    return _LINE % (f"{event} {client}" if client else event)


def wake_line() -> str:
    """The line of a second handler of a stop, with `asyncRewake`, for those who have set `orch.delivery` to wake.

    It ends with 2, by which Claude Code wakes the session, where ours ended with 10, and with 0 in any other case.
    """
    return _LINE.replace("; exit 0'", "; test $? -eq 10 && exit 2; exit 0'") % "wake"


def path(env: Mapping[str, str]) -> str:
    """Where the launcher is.

    Raises:
        EnvironmentProblem: neither XDG_STATE_HOME nor HOME says where.
    """
    return os.path.join(state_dir(env), NAME)


def refresh(env: Mapping[str, str]) -> bool:
    """The launcher starts the git-orch that calls this; says whether it had to be written.

    For every command: where it cannot be written it stays as it is, and the command goes on.
    """
    try:
        return write(env)
    except (OSError, EnvironmentProblem):
        return False


def write(env: Mapping[str, str]) -> bool:
    """The same, for those who need it.

    Raises:
        EnvironmentProblem: there is no HOME.
        OSError: the folder cannot be written.
    """
    target, wanted = path(env), _script()
    if not wanted or (_is_executable(target) and atomic.read(target, limit=1 << 16) == wanted):
        return False
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    atomic.write(target, wanted, mode=0o755)
    os.chmod(target, 0o755)  # noqa: S103 - it holds no secret, and a umask must not make it dead
    return True


def remove(env: Mapping[str, str]) -> None:
    """Neither the launcher nor its notes are there."""
    set_fired(env, {})
    try:
        os.unlink(path(env))
    except (OSError, EnvironmentProblem):
        pass


def note_fired(env: Mapping[str, str], event: str, client: str) -> None:
    """The hook of that event fired now, in that client. Never fails: a hook has better things to do."""
    try:
        mark = os.path.join(state_dir(env), f"{_FIRED}{event}.{client}")
        try:
            os.utime(mark)
        except FileNotFoundError:
            os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | system.CLOEXEC, 0o600))
    except (OSError, EnvironmentProblem):
        pass


def last_fired(env: Mapping[str, str]) -> dict[tuple[str, str], float]:
    """When each hook last fired, by client and event, in seconds since 1970; those that never did are not in it."""
    found: dict[tuple[str, str], float] = {}
    for name, path in _marks(env):
        event, _, client = name.partition(".")
        try:
            found[client, event] = os.stat(path).st_mtime
        except OSError:
            continue
    return found


def set_fired(env: Mapping[str, str], fired: Mapping[tuple[str, str], float]) -> None:
    """Each hook last fired as `last_fired` said; those that are not in it never did."""
    for name, path in _marks(env):
        event, _, client = name.partition(".")
        try:
            if (client, event) in fired:
                os.utime(path, (fired[client, event], fired[client, event]))
            else:
                os.unlink(path)
        except OSError:
            continue


def _marks(env: Mapping[str, str]) -> list[tuple[str, str]]:
    """The marks of what fired: `EVENT.CLIENT`, and the file."""
    try:
        folder = state_dir(env)
        names = os.listdir(folder)
    except (OSError, EnvironmentProblem):
        return []
    return [(name.removeprefix(_FIRED), os.path.join(folder, name)) for name in names if name.startswith(_FIRED)]


def _script() -> bytes:
    """The launcher's text; empty where the interpreter does not know its own path (it is embedded)."""
    if not sys.executable:
        return b""
    python = os.path.abspath(sys.executable)
    hook = os.path.join(os.path.dirname(os.path.abspath(git_orch.__file__)), "hook.py")
    return os.fsencode(_SCRIPT % (_quoted(python), _quoted(hook)))


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _is_executable(target: str) -> bool:
    try:
        return bool(os.stat(target).st_mode & 0o100)
    except OSError:
        return False
