"""`git orch gate`: may these commits go out?

Asked before every push, so it goes round typer: its options are read here.
"""

from __future__ import annotations

import os
import sys

from git_orch import config, decisions, gating, inbox, people, tips
from git_orch.commands import speaking
from git_orch.errors import EXIT_PASS, UsageError
from git_orch.formats import gate as printed
from git_orch.formats.terminal import Terminal
from git_orch.model import Record
from git_orch.workspace import open_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.gate import Tip
    from git_orch.workspace import Workspace


class Options(Record):
    """What was typed."""

    revs: tuple[str, ...] = ()
    each: bool = False
    base: str = ""
    wait_s: float | None = None
    allow: str = "nothing"
    by_word: bool = False
    why: str = ""
    format: str = "text"


def main(words: Sequence[str], env: dict[str, str]) -> int:
    """The answers are printed; gives the exit status.

    Raises:
        OrchError: they cannot be had, or the words make no sense.
    """
    return run(parse(words), env)


def parse(words: Sequence[str]) -> Options:
    """The options that were typed.

    Raises:
        UsageError: one is unknown, or lacks its value.
    """
    return _Words(words).options()


def run(options: Options, env: dict[str, str]) -> int:
    """The answers are printed; gives the exit status.

    Raises:
        OrchError: they cannot be had.
    """
    if env.get("ORCH") == "0":
        return EXIT_PASS
    workspace = open_at(os.getcwd(), env)
    inbox.take_in(workspace)
    asked = gating.policy(workspace.settings)
    chosen = [tips.of_revision(workspace, rev, options.base) for rev in options.revs or ("",)]
    if options.by_word:
        return _allow(workspace, chosen, options)
    if options.each:
        chosen = [commit for tip in chosen for commit in (tips.each(workspace, tip) or [tip])]
    wait_s = gating.usual_wait_s(env) if options.wait_s is None else options.wait_s
    answers = gating.answers(workspace, chosen, asked, wait_s, allow=options.allow, at_push=False)
    speaking.say(printed.render(answers, options.format, Terminal.of(sys.stdout, env)))
    return printed.exit_code(answers)


def _allow(workspace: Workspace, chosen: Sequence[Tip], options: Options) -> int:
    """A person's word is on record.

    Raises:
        UsageError: it is no person who types, or no reason was given.
    """
    if people.in_agent_session(workspace.env):
        raise UsageError("gate --allow is a person's, and this is an agent's session", "ask the person to type it")
    if not people.has_terminal():
        raise UsageError("gate --allow is a person's, and here is no terminal", "type it in a terminal")
    if not options.why.strip():
        raise UsageError("gate --allow wants a reason", 'git orch gate REV --allow --why "..."')
    for tip in chosen:
        allowed = decisions.Decision(
            kind="allow",
            by="person",
            at=decisions.now(),
            why=options.why.strip()[: decisions.WHY_LIMIT],
            commit=tip.commit,
            base_tree_id=tip.base.tree_id,
        )
        decisions.write(workspace.layout.durable, allowed)
        speaking.say(f"allowed {tip.name} {tip.commit[:7]} as it is: {allowed.why}\n")
    return EXIT_PASS


class _Words:
    """The words of a command line, taken one after the other."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = list(words)
        self._found: dict[str, object] = {}
        self._revs: list[str] = []

    def options(self) -> Options:
        """All of them, read."""
        while self._words:
            word = self._words.pop(0)
            if word == "--":
                self._revs += self._words
                break
            if word.startswith("-") and word != "-":
                self._option(*word.partition("="))
            else:
                self._revs.append(word)
        return Options(revs=tuple(self._revs)).replace(**self._found)

    def _option(self, name: str, equals: str, value: str) -> None:
        match name:
            case "--each":
                self._found["each"] = True
            case "--json":
                self._found["format"] = "json"
            case "--base" | "--why" | "--format":
                self._found[name[2:]] = self._checked(name, value if equals else self._next(name))
            case "--wait":
                self._found["wait_s"] = seconds(value if equals else self._next(name))
            case "--allow":
                self._allow(value if equals else None)
            case _:
                raise UsageError(f"no such option: {name}", "git orch gate -h shows what it takes")

    def _allow(self, value: str | None) -> None:
        if value is None and self._words[:1] and self._words[0] in ("unreviewed", "nothing"):
            value = self._words.pop(0)
        if value is None:
            self._found["by_word"] = True
        elif value in ("unreviewed", "nothing"):
            self._found["allow"] = value
        else:
            said = f"--allow: `{value}` is neither unreviewed nor nothing"
            raise UsageError(said, "a person's word: --allow --why TEXT")

    def _checked(self, name: str, value: str) -> str:
        if name == "--format" and value not in printed.NAMES:
            raise UsageError(f"no format `{value}`", f"one of: {' '.join(printed.NAMES)}")
        return value

    def _next(self, name: str) -> str:
        if not self._words:
            raise UsageError(f"option {name} wants a value", "git orch gate -h shows what it takes")
        return self._words.pop(0)


def seconds(text: str) -> float:
    """The value of `--wait`: a duration, or 0.

    Raises:
        UsageError: it is neither.
    """
    return 0.0 if text.strip() in ("0", "0s") else config.seconds("--wait", text)
