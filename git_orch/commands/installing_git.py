"""`git orch install git` and `git orch uninstall git`: what they ask and what they say."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from git_orch import layout
from git_orch.commands import speaking
from git_orch.errors import UsageError
from git_orch.formats.terminal import Terminal, shown, wrap
from git_orch.install import githooks
from git_orch.install.githooks import EVENTS, Event
from git_orch.layout import Layout

TARGET = "git"


def install(*, gate: bool, ask: bool, dry_run: bool, print_event: str) -> None:
    """After each commit, and with `gate` before each push, git starts us; what was written is told.

    Raises:
        UsageError: a person would have to be asked and there is no terminal, or there is no such event.
        EnvironmentProblem: a file cannot be written; nothing is changed.
    """
    if print_event:
        speaking.line(githooks.line(_event(print_event)))
        return
    place = layout.locate(os.getcwd(), os.environ)
    events: tuple[Event, ...] = EVENTS if gate else EVENTS[:1]
    plan = githooks.plan(events, place, os.environ)
    for change in plan.changes:
        _say("writes", change.path, change.what, place)
    if dry_run:
        _notes(plan.notes)
        speaking.line("nothing was written (--dry-run)")
        return
    if ask and plan.changes and not _agreed():
        speaking.line("nothing was written")
        return
    made = githooks.install(events, place, os.environ)
    speaking.line("wrote   it all" if made.changes else "there   all of it is installed already")
    _notes(made.notes)
    for event, path in githooks.running(place, os.environ).items():
        _say("runs" if path else "dead", path or "nothing starts it", event, place)
    speaking.line("\n  git orch status            what it did last")
    speaking.line("  git orch uninstall git     takes it all back, byte for byte")


def uninstall(*, dry_run: bool) -> None:
    """Nothing of ours is left in git's hooks here; what was changed is told.

    Raises:
        EnvironmentProblem: a file cannot be written; nothing is changed.
    """
    place = layout.locate(os.getcwd(), os.environ)
    plan = githooks.removal_plan(place, os.environ) if dry_run else githooks.uninstall(place, os.environ)
    for change in plan.changes:
        _say("would remove" if dry_run else "removed", change.path, change.what, place)
    _notes(plan.notes)
    if not plan.changes:
        speaking.line("nothing of git-orch is in git's hooks here")
    elif not dry_run:
        exact = all(change.exact for change in plan.changes)
        said = "Each file is byte for byte what it was." if exact else "What is yours in these files is as you left it."
        speaking.line(said)


def _event(name: str) -> Event:
    for event in EVENTS:
        if event == name:
            return event
    raise UsageError(f"no event `{shown(name)}` of git's ({' '.join(EVENTS)})")


def _agreed() -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("install asks before it writes, and here is no terminal", "git orch install git --yes")
    try:
        return input("Write this? [Y/n] ").strip().casefold() in ("", "y", "yes")
    except EOFError:
        return False


def _say(done: str, path: str, what: str, place: Layout) -> None:
    top = (place.worktree or place.common_dir) + "/"
    speaking.line(f"{done:<7} {shown(path.removeprefix(top)):<27} {shown(what)}")


def _notes(notes: Iterable[str]) -> None:
    width = Terminal.of(sys.stdout, os.environ).width
    for note in notes:
        for line in wrap(shown(note), width, first=f"{'note':<8}", rest=" " * 8):
            speaking.line(line)
