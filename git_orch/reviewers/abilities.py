"""What a client's program can do, by its own `--help`: asked once a program, and remembered as long as that stays.

Flags come and go between versions, and a client that is given one that it does not know answers nothing at all.
"""

from __future__ import annotations

import os
import time

from git_orch import atomic, jsontext, proc
from git_orch import key as keys
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.model import Json
    from git_orch.reviewers.client import Client

ASK_S = 20.0
LONGEST_S = 7 * 86_400.0  # a shim (asdf, volta) stays as it is while what it runs does not
_VERSION_LENGTH = 40
_OF_AN_OPTION = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


class Abilities(Record):
    """A program found, with its version ("" where it does not say) and its options, None where it does not list any."""

    program: str
    version: str = ""
    options: frozenset[str] | None = None


def find(client: Client, path: str) -> str:
    """The client's program on PATH, absolute; "" where there is none."""
    return next(filter(None, (proc.find_program(name, path) for name in client.PROGRAMS)), None) or ""


def of(client: Client, program: str, env: Mapping[str, str]) -> Abilities:
    """What this program can do; it is asked, in an empty-handed way, where that is not known yet."""
    stamp = _stamp(program)
    path = os.path.join(keys.state_dir(env), "clients", f"{client.NAME}-{keys.digest(program)[:16]}.json")
    known = _remembered(path, stamp)
    if known is None:
        known = _asked(client, program, env)
        _remember(path, stamp, known)
    return known


def options_in(text: str) -> frozenset[str]:
    """Every `--option` (and `-o`) that the text of a help names."""
    found = set()
    for word in text.replace("[", " ").replace("<", " ").replace("=", " ").replace(",", " ").split():
        option = word.rstrip(".:;)]'\"`").lstrip("('\"`")
        if option.startswith("-") and len(option.strip("-")) > 0 and _OF_AN_OPTION.issuperset(option):
            found.add(option)
    return frozenset(found)


def _asked(client: Client, program: str, env: Mapping[str, str]) -> Abilities:
    own = {name: value for name, value in env.items() if not name.startswith(("GIT_", "ORCH_"))}
    commands = [
        proc.Command(argv=[program, *words], env=own, stdin=b"", stdout_fd=None)
        for words in (client.HELP, ("--version",))
    ]
    helped, told = proc.run_together(commands, timeout_s=ASK_S)
    options = options_in((helped.stdout + b"\n" + helped.stderr).decode("utf-8", "replace"))
    is_known = helped.code == 0 and not helped.timed_out and "--help" in options
    version = told.stdout.decode("utf-8", "replace").strip().partition("\n")[0] if told.code == 0 else ""
    return Abilities(program=program, version=_number(version), options=options if is_known else None)


def _number(line: str) -> str:
    """The word of the line that is the version: the first with a digit and a dot."""
    words = line.split()
    found = next((word for word in words if "." in word and any(char.isdigit() for char in word)), "")
    return found.strip("().,v")[:_VERSION_LENGTH]


def _stamp(program: str) -> Json:
    """What tells this program from the next version of it: where it really lies, its time of writing, its size."""
    real = os.path.realpath(program)
    try:
        status = os.stat(real)
    except OSError:
        return {"path": real}
    return {"path": real, "mtime_ns": status.st_mtime_ns, "size": status.st_size}


def _remembered(path: str, stamp: Json) -> Abilities | None:
    try:
        value = jsontext.loads(atomic.read(path, limit=1 << 20) or b"")
        is_fresh = value["stamp"] == stamp and 0 <= time.time() - value["asked_at"] < LONGEST_S
        if not is_fresh or "mtime_ns" not in stamp:
            return None
        return Abilities(program=value["program"], version=value["version"], options=frozenset(value["options"]))
    except (jsontext.JsonTextError, KeyError, TypeError):
        return None


def _remember(path: str, stamp: Json, known: Abilities) -> None:
    if known.options is None:  # asked again next time
        return
    value = {
        "stamp": stamp,
        "asked_at": int(time.time()),
        "program": known.program,
        "version": known.version,
        "options": sorted(known.options),
    }
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        atomic.write(path, jsontext.dumps(value).encode("ascii") + b"\n")
    except OSError:  # it is asked again next time
        pass
