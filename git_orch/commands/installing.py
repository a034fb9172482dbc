"""`git orch install` and `git orch uninstall`: what they ask and what they say."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping

from git_orch import config, git, layout
from git_orch.commands import speaking
from git_orch.config import BUILT_IN
from git_orch.errors import EnvironmentProblem, UsageError
from git_orch.formats.terminal import Terminal, wrap
from git_orch.formats.words import plural
from git_orch.install import (
    allowing,
    clients,
    finding,
    firing,
    gitconfig,
    githooks,
    installation,
    launcher,
    receipts,
    removal,
)
from git_orch.install.changes import Change, Plan
from git_orch.install.clients import CLIENTS, Client, Scope
from git_orch.install.firing import Fired, Misfired
from git_orch.install.installation import Offer, Wish
from git_orch.install.removal import Leaving
from git_orch.layout import Layout
from git_orch.model import Record

ALLOW = "allow"
_WIDTH = 71


class Answers(Record):
    """The wish, and whether a push is to wait at the gate too."""

    wish: Wish
    gate: bool = False


class Asked(Record):
    """What was typed: a client or "" for the one in use, the scope, the reviewers; what may be done without asking."""

    client: str = ""
    scope: Scope = "user"
    reviewers: tuple[str, ...] = ()
    ask: bool = True
    dry_run: bool = False
    tracked: bool = False


def install(asked: Asked) -> None:
    """The hooks are in a client's settings, this repository is switched on, and both were tried.

    Raises:
        UsageError: a reviewer is not known, or a person would have to be asked and there is no terminal.
        EnvironmentProblem: a file cannot be written (nothing is changed), or the hook does not work here.
    """
    ask = asked.ask and not asked.dry_run
    if ask and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("install asks before it writes, and here is no terminal", "git orch install --yes")
    place = layout.locate(os.getcwd(), os.environ)
    found = finding.versions(os.environ)
    name = asked.client or finding.proposed(found, os.environ)
    wish = Wish(
        client=clients.known(name).name,
        scope=asked.scope,
        reviewers=_with_built_in(asked.reviewers),
        tracked=asked.tracked,
    )
    _print_found(place, found, name)
    answers = _ask(wish, place, found) if ask else Answers(wish=wish)
    if answers is None:
        speaking.line("nothing was written")
        return
    plan = installation.plan(answers.wish, place, os.environ)
    _print_plan(plan, place)
    if asked.dry_run:
        _print_notes(plan.notes)
        speaking.line("nothing was written (--dry-run)")
        return
    _carry_out(answers, place)


def uninstall(names: tuple[str, ...], scope: Scope | None, *, everywhere: bool, dry_run: bool) -> None:
    """The hooks of these clients are gone: from one scope, from all repositories, or (neither) from this one.

    Where no client is named, git's own hooks go as well.

    Raises:
        EnvironmentProblem: a file cannot be written; nothing is changed.
    """
    for name in names:
        clients.known(name)
    leaving = Leaving(scope=scope, everywhere=everywhere, clients=names)
    place = _place_or_none(leaving)
    of_git = [] if names or scope else _git_places(place, everywhere=everywhere)
    leave_git = githooks.removal_plan if dry_run else githooks.uninstall
    leave = removal.plan if dry_run else removal.uninstall
    plans = [*(leave_git(there, os.environ) for there in of_git), leave(leaving, place, os.environ)]
    changes = tuple(change for plan in plans for change in plan.changes)
    for change in changes:
        _say("would remove" if dry_run else "removed", _shown(change.path, place), change.what)
    if changes and any(plan.launcher for plan in plans) and not dry_run:
        _say("removed", _shown(launcher.path(os.environ), place), "the launcher")
    _print_notes(dict.fromkeys(note for plan in plans for note in plan.notes))
    speaking.line("nothing was changed (--dry-run)" if dry_run else _about_removal(changes))


def _git_places(place: Layout | None, *, everywhere: bool) -> list[Layout]:
    """The repositories whose own hooks are to be left: this one, or all in which we have put any."""
    found = {place.common_dir: place} if place else {}
    for receipt in receipts.load(os.environ).values() if everywhere else ():
        is_of_git = receipt.kind == "git-hook" or githooks.SETTING in receipt.settings
        if is_of_git and receipt.common_dir not in found and os.path.isdir(receipt.common_dir):
            top = receipt.common_dir.removesuffix("/.git")
            found[receipt.common_dir] = layout.locate(top, os.environ)
    return list(found.values())


def print_line(event: str, name: str) -> None:
    """The hook's command line for the event, on standard output; for `allow` the rules for the client's agent.

    Raises:
        UsageError: there is no such event, or the client has no such rules.
    """
    client = clients.known(name or "claude")
    if event == ALLOW:
        rules = allowing.rules(client)
        speaking.say(rules.text)
        speaking.tell(f"git-orch: for {rules.where}; nothing was written\n")
        return
    for known in launcher.EVENTS:
        if event in (known, *(theirs for theirs, ours in client.events.items() if ours == known)):
            speaking.line(client.line(known))
            return
    raise UsageError(f"no event `{event}` ({' '.join(launcher.EVENTS)}, or {ALLOW})")


def scope_of(*, user: bool, project: bool, local: bool) -> Scope | None:
    """The one scope that was named, or None.

    Raises:
        UsageError: more than one was.
    """
    chosen = [scope for scope, given in zip(clients.SCOPES, (user, project, local), strict=True) if given]
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


def _ask(wish: Wish, place: Layout, found: Mapping[str, str]) -> Answers | None:
    """The wish as a person at the terminal completes it; None where they want no hooks."""
    speaking.line("")
    if not _yes(f"1 Review after each turn of  {wish.client}"):
        return None
    if not wish.reviewers:
        settings = config.read(place.git(os.environ), os.environ)
        offers = installation.offers(settings, list(found), wish.client)
        wish = wish.replace(reviewers=_ask_reviewers(offers, settings.reviewers))
    return Answers(wish=wish, gate=_yes("3 Stop a push that has blocking findings?", usual=False))


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


def _yes(question: str, *, usual: bool = True) -> bool:
    while True:
        answer = _answer("Y/n" if usual else "y/N", question).casefold()
        if not answer:
            return usual
        if answer in ("y", "yes"):
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


def _carry_out(answers: Answers, place: Layout) -> None:
    wish, client = answers.wish, CLIENTS[answers.wish.client]
    plan = installation.install(wish, place, os.environ)
    made = githooks.install(githooks.EVENTS, place, os.environ) if answers.gate else Plan()
    for change in (*plan.changes, *made.changes):
        _say("wrote", _shown(change.path, place), change.what)
    if not plan.changes:
        speaking.line("there   all of it is installed already")
    stop = next(name for name, event in client.events.items() if event == "stop")
    outcome = firing.fire(os.environ, client=client)
    match outcome:
        case Fired(answer_ms=answer_ms):
            speaking.line(f"fired   {stop} in a scratch repository: back in {answer_ms} ms, found the planted fault")
        case Misfired(reason=reason):
            speaking.line(f"fired   {stop} in a scratch repository: {_clean(reason)}")
    _print_notes((*plan.notes, *made.notes, *installation.overruled(wish, place, os.environ)))
    target = "" if client.name == "claude" else f" {client.name}"
    if isinstance(outcome, Misfired):
        way_out = f"git orch uninstall{target} takes it out again"
        raise EnvironmentProblem("the hook is written, but does not work here", way_out)
    speaking.line(_about_sessions(client, wish.scope, plan, place))
    speaking.line("\n  git orch status        what it did last")
    if allowing.has_rules(client):
        speaking.line(f"  git orch install{target} --print {ALLOW}     rules by which its agent may ask for reviews")
    speaking.line("  git orch uninstall     takes it all back, byte for byte")


def _about_sessions(client: Client, scope: Scope, plan: Plan, place: Layout) -> str:
    # Claude Code watches its files; of the others it is not known.
    now = client.name == "claude"
    where = "that run now" if scope == "user" else "that run here"
    begin = f"Sessions {where} load it at once." if now else f"{client.title} loads it when it is started anew."
    if scope == "user":
        return f"{begin} Nothing was written into your work tree."
    written = [_shown(change.path, place) for change in plan.changes if change.kind == client.name]
    return begin + (f" Written into your work tree: {' '.join(written)}" if written else "")


def _about_removal(changes: tuple[Change, ...]) -> str:
    if not changes:
        return "nothing of git-orch is installed here"
    if all(change.exact for change in changes):
        return "Each file is byte for byte what it was."
    return "What is yours in these files, and what you changed since, is as you left it."


# -- showing it


def _print_found(place: Layout, found: Mapping[str, str], name: str) -> None:
    tracked = git.split_z(place.git(os.environ).attempt("ls-files", "-z").stdout) if place.worktree else []
    there = ", ".join(f"{each} {_clean(version)}".strip() for each, version in found.items())
    missing = "" if name in found else f"no {name} on PATH; the hooks wait for it"
    beside = finding.hook_managers(place)
    managers = f"{', '.join(beside)} here" if beside else "no husky, lefthook or pre-commit"
    speaking.line("Found   " + "; ".join(filter(None, (there, missing, managers))))
    speaking.line(f"Here    {_shown(place.worktree or place.common_dir, None)}, {plural(len(tracked), 'file')}")


def _print_plan(plan: Plan, place: Layout) -> None:
    """Each file, and word for word what comes into it."""
    for change in plan.changes:
        speaking.line(f"writes  {_shown(change.path, place)}")
        if change.kind in CLIENTS:
            for name, groups in CLIENTS[change.kind].entries().items():
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
