"""`git orch trust`: a person lets the settings that a repository shares count, as they are now."""

from __future__ import annotations

import os

from git_orch import people, shared
from git_orch.commands import speaking
from git_orch.config import Settings, with_shared
from git_orch.errors import EXIT_NO, EXIT_PASS, UsageError
from git_orch.formats.terminal import shown
from git_orch.git import decode


def trust(env: dict[str, str], *, show: bool, revoke: bool, yes: bool) -> int:
    """What the file holds is printed, and it counts from now on, where a person said so; or no more, with `revoke`.

    Raises:
        UsageError: there is no such file, it is no settings file, or it is no person who types.
    """
    found = shared.find(os.getcwd(), env)
    if found is None:
        raise UsageError(f"no {shared.FILE} at the top of this work tree", "settings of your own: git config orch.NAME")
    if found.problem:
        raise UsageError(f"{found.path} {found.problem}: it cannot be trusted", "a plain file at the top is")
    if revoke:
        was = shared.revoke(found, env)
        speaking.line(f"{shown(found.path)}: {'trusted no more' if was else 'was not trusted'}")
        return EXIT_PASS
    items = shared.items_of(found.raw)
    _refuse_unknown(items)
    is_trusted = shared.trusted_items(found, env, ()) is not None
    speaking.line(f"{shown(found.path)}, sha256 {found.sha256}{', trusted' if is_trusted else ''}")
    for item in items:
        key, _, value = decode(item).partition("\n")
        speaking.line(f"  {shown(key)} = {shown(value)}{'     a command' if key.endswith('.command') else ''}")
    if show or is_trusted:
        return EXIT_PASS
    people.refuse_others(env, "trust")
    if not yes and not _agreed():
        speaking.line("not trusted: nothing of it counts")
        return EXIT_NO
    shared.trust(found, items, env)
    speaking.line("trusted, until a byte of it changes")
    return EXIT_PASS


def heed(settings: Settings) -> None:
    """A person is told that a shared file counts for nothing; where nobody is there to be told, nothing goes on.

    Raises:
        UsageError: it is not trusted, and no person is at a terminal.
    """
    if not settings.untrusted:
        return
    if not people.has_terminal():
        raise shared.refusal(settings.untrusted)
    speaking.tell(f"git-orch: {shown(settings.untrusted)} is not trusted and counts for nothing: git orch trust\n")


def _refuse_unknown(items: list[bytes]) -> None:
    """Every key is one that git-orch knows, and every value one that its key takes."""
    unknown = with_shared(items, {}, None).unknown
    if unknown:
        listed = ", ".join(key.removeprefix("orch.") for key in unknown)
        raise UsageError(f"{shared.FILE}: not known: {listed}", "docs/settings.md has them all; tables nest: [review]")


def _agreed() -> bool:
    try:
        with open("/dev/tty", "r+b", buffering=0) as terminal:
            terminal.write(b"Trust these settings? [y/N] ")
            return terminal.readline().strip().lower() in (b"y", b"yes")
    except OSError:
        return False
