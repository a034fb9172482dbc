"""`git orch install` and `git orch uninstall`: what they ask and what they say."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable

from git_orch import config, git, layout, proc
from git_orch.commands import speaking
from git_orch.config import BUILT_IN
from git_orch.errors import EnvironmentProblem, UsageError
from git_orch.formats.terminal import Terminal, wrap
from git_orch.formats.words import plural
from git_orch.install import claude, firing, gitconfig, installation, launcher, removal
from git_orch.install.changes import Change, Plan
from git_orch.install.claude import Scope
from git_orch.install.firing import Fired, Misfired
from git_orch.install.installation import Offer, Wish
from git_orch.install.removal import Leaving
from git_orch.layout import Layout

CLIENTS = (claude.NAME,)
_WIDTH = 71
_VERSION_TIMEOUT_S = 5.0


def install(scope: Scope, reviewers: tuple[str, ...], *, ask: bool, dry_run: bool) -> None:
    """The hooks are in the settings of that scope, this repository is switched on, and both were tried.

    Raises:
        UsageError: a reviewer is not known, or a person would have to be asked and there is no terminal.
        EnvironmentProblem: a file cannot be written (nothing is changed), or the hook does not work here.
    """
    if ask and not dry_run and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("install asks before it writes, and here is no terminal", "git orch install --yes")
    place = layout.locate(os.getcwd(), os.environ)
    wished = Wish(scope=scope, reviewers=_with_built_in(reviewers))
    _print_found(place)
    wish = _ask(wished, place) if ask and not dry_run else wished
    if wish is None:
        speaking.line("nothing was written")
        return
    plan = installation.plan(wish, place, os.environ)
    _print_plan(plan, place)
    if dry_run:
        _print_notes(plan.notes)
        speaking.line("nothing was written (--dry-run)")
        return
    _carry_out(wish, place)


def uninstall(scope: Scope | None, *, everywhere: bool, dry_run: bool) -> None:
    """The hooks are gone: from one scope, from all repositories, or (neither) from this repository.

    Raises:
        EnvironmentProblem: a file cannot be written; nothing is changed.
    """
    leaving = Leaving(scope=scope, everywhere=everywhere)
    place = _place_or_none(leaving)
    leave = removal.plan if dry_run else removal.uninstall
    plan = leave(leaving, place, os.environ)
    for change in plan.changes:
        _say("would remove" if dry_run else "removed", _shown(change.path, place), change.what)
    if plan.changes and plan.launcher and not dry_run:
        _say("removed", _shown(plan.launcher, place), "the launcher")
    _print_notes(plan.notes)
    speaking.line("nothing was changed (--dry-run)" if dry_run else _about_removal(plan.changes))


def print_line(event: str) -> None:
    """The hook's command line for the event, on standard output.

    Raises:
        UsageError: there is no such event.
    """
    for known in launcher.EVENTS:
        if known == event:
            speaking.line(launcher.line(known))
            return
    raise UsageError(f"no event `{event}` ({' '.join(launcher.EVENTS)})")


def check_client(client: str) -> None:
    """The client is one whose hooks we know.

    Raises:
        UsageError: it is not.
    """
    if client not in CLIENTS:
        raise UsageError(f"no client `{client}` here ({' '.join(CLIENTS)})")


def scope_of(*, user: bool, project: bool, local: bool) -> Scope | None:
    """The one scope that was named, or None.

    Raises:
        UsageError: more than one was.
    """
    chosen = [scope for scope, given in zip(claude.SCOPES, (user, project, local), strict=True) if given]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} are two places", "choose one of them")
    return chosen[0] if chosen else None


# -- what was asked for


def _with_built_in(names: Iterable[str]) -> tuple[str, ...]:
    """The reviewers as they are written down: the built-in one first, which always runs; none where none were named."""
    named = tuple(names)
    return tuple(dict.fromkeys((BUILT_IN, *named))) if named else ()


def _place_or_none(leaving: Leaving) -> Layout | None:
    """The repository here; None outside one, where only the user's own settings can be meant."""
    try:
        return layout.locate(os.getcwd(), os.environ)
    except EnvironmentProblem:
        if leaving.scope in ("project", "local"):
            raise
        return None


def _ask(wish: Wish, place: Layout) -> Wish | None:
    """The wish as a person at the terminal completes it; None where they want no hooks."""
    speaking.line("")
    if not _yes(f"1 Review after each turn of  {claude.NAME}"):
        return None
    if wish.reviewers:
        return wish
    settings = config.read(place.git(os.environ), os.environ)
    return wish.replace(reviewers=_ask_reviewers(installation.offers(settings), settings.reviewers))


def _ask_reviewers(offers: tuple[Offer, ...], present: tuple[str, ...]) -> tuple[str, ...]:
    """The reviewers chosen; where there is no choice, none are written down."""
    speaking.line("2 Who reads the changes?     they leave this machine only if you say so")
    speaking.line("    0  built-in checks only: syntax, conflict markers, keys. Free.")
    if not offers:
        return ()
    for number, offer in enumerate(offers, start=1):
        speaking.line(f"    {number}  and {offer.name}   {_clean(offer.meaning)}")
    numbers = [str(number) for number in range(len(offers) + 1)]
    usual = [number for number, offer in zip(numbers[1:], offers, strict=True) if offer.name in present] or ["0"]
    while True:
        words = _answer(f"{'/'.join(numbers)}, default {' '.join(usual)}", "").replace(",", " ").split() or usual
        if all(word in numbers for word in words):
            return _with_built_in([BUILT_IN, *(offers[int(word) - 1].name for word in words if word != "0")])
        speaking.line(f"    {' '.join(words)} is none of {' '.join(numbers)}")


def _yes(question: str) -> bool:
    while True:
        answer = _answer("Y/n", question).casefold()
        if answer in ("", "y", "yes"):
            return True
        if answer in ("n", "no"):
            return False


def _answer(choices: str, question: str) -> str:
    """What the person typed.

    Raises:
        UsageError: the input ended.
    """
    room = max(1, _WIDTH - len(question) - len(choices) - 2)
    try:
        return input(f"{question}{' ' * room}[{choices}] ").strip()
    except EOFError:
        speaking.line("")
        raise UsageError("no answer, so nothing was written", "git orch install --yes asks nothing") from None


# -- doing it


def _carry_out(wish: Wish, place: Layout) -> None:
    plan = installation.install(wish, place, os.environ)
    for change in plan.changes:
        _say("wrote", _shown(change.path, place), change.what)
    if not plan.changes:
        speaking.line("there   all of it is installed already")
    outcome = firing.fire(os.environ)
    match outcome:
        case Fired(answer_ms=answer_ms):
            speaking.line(f"fired   Stop in a scratch repository: back in {answer_ms} ms, found the planted fault")
        case Misfired(reason=reason):
            speaking.line(f"fired   Stop in a scratch repository: {_clean(reason)}")
    _print_notes((*plan.notes, *installation.overruled(wish, place, os.environ)))
    if isinstance(outcome, Misfired):
        raise EnvironmentProblem("the hook is written, but does not work here", "git orch uninstall takes it out again")
    speaking.line(_about_sessions(wish.scope, plan, place))
    speaking.line("\n  git orch status        what it did last")
    speaking.line("  git orch uninstall     takes it all back, byte for byte")


def _about_sessions(scope: Scope, plan: Plan, place: Layout) -> str:
    if scope == "user":
        return "Sessions that run now load it at once. Nothing was written into your work tree."
    written = [_shown(change.path, place) for change in plan.changes if change.kind == "claude"]
    return "Sessions that run here load it at once." + (
        f" Written into your work tree: {' '.join(written)}" if written else ""
    )


def _about_removal(changes: tuple[Change, ...]) -> str:
    if not changes:
        return "nothing of git-orch is installed here"
    if all(change.exact for change in changes):
        return "Each file is byte for byte what it was."
    return "What is yours in these files, and what you changed since, is as you left it."


# -- showing it


def _print_found(place: Layout) -> None:
    tracked = git.split_z(place.git(os.environ).attempt("ls-files", "-z").stdout) if place.worktree else []
    speaking.line(f"Found   {_client_found()}")
    speaking.line(f"Here    {_shown(place.worktree or place.common_dir, None)}, {plural(len(tracked), 'file')}")


def _client_found() -> str:
    """The client with its version, as it says itself."""
    program = proc.find_program(claude.NAME, os.environ.get("PATH", os.defpath))
    if program is None:
        return f"no {claude.NAME} on PATH; the hooks wait for it"
    try:
        done = proc.run([program, "--version"], env=git.without_git(os.environ), timeout_s=_VERSION_TIMEOUT_S)
    except OSError:
        return claude.NAME
    words = done.stdout.decode("utf-8", "replace").split()
    return f"{claude.NAME} {_clean(words[0])}" if words and done.code == 0 else claude.NAME


def _print_plan(plan: Plan, place: Layout) -> None:
    """Each file, and word for word what comes into it."""
    for change in plan.changes:
        speaking.line(f"writes  {_shown(change.path, place)}")
        if change.kind == "claude":
            for name, groups in claude.entries().items():
                speaking.line(f'          "{name}": {json.dumps(groups)}')
        elif change.receipt:
            for key in (gitconfig.ENABLED, gitconfig.REVIEWERS):
                if key in change.what:
                    speaking.line(f"          {key} = {change.receipt.settings[key]}")


def _print_notes(notes: Iterable[str]) -> None:
    width = Terminal.of(sys.stdout, os.environ).width
    for note in notes:
        for line in wrap(_clean(note), width, first=f"{'note':<8}", rest=" " * 8):
            speaking.line(line)


def _say(done: str, what: str, more: str) -> None:
    speaking.line(f"{done:<7} {what:<27} {more}")


def _shown(path: str, place: Layout | None) -> str:
    """The path as a person writes it: from the work tree or from HOME where it lies in one."""
    home = os.environ.get("HOME", "")
    for folder, prefix in ((place.worktree if place else "", ""), (home, "~/")):
        if folder and path.startswith(folder.rstrip("/") + "/"):
            return _clean(prefix + os.path.relpath(path, folder))
    return _clean(path)


def _clean(text: str) -> str:
    return Terminal.of(sys.stdout, os.environ).shown(text)
