"""What the command line says about itself: help, and what was perhaps meant."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from git_orch.errors import UsageError
from git_orch.formats.terminal import Terminal, cells, pad, wrap
from git_orch.formats.words import closest

_GROUPS = (
    ("Every day", ("review", "status", "show", "wait", "logs", "stop", "dismiss", "gate", "mute", "unmute", "trust")),
    ("Many agents on one repository", ("plan",)),
    ("To set up", ("install", "uninstall", "doctor")),
    ("For programs, and after a crash", ("sweep", "hook", "mcp", "schema", "help")),
)
_MOST_LEFT = 26  # cells of an option; a longer one has its help below
_WIDEST = 100


def of_all(group: Any, env: Mapping[str, str]) -> str:
    """The verbs, each with its sentence."""
    width = _width(env)
    lines = [*_usage("git orch VERB [OPTIONS]", width), "", *_paragraphs(group.help, width)]
    for title, names in _GROUPS:
        rows = [(f"  {name}", _first_sentence(group.commands[name].help)) for name in names]
        lines += ["", title, *_table(rows, width)]
    lines += ["", *wrap("git orch alone says where you are. git orch help VERB tells what a verb takes.", width)]
    return "\n".join(lines)


def of_verb(command: Any, name: str, env: Mapping[str, str]) -> str:
    """What the verb does, and each of its options."""
    width = _width(env)
    arguments = [_argument(param) for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option"]
    words = " ".join([f"git orch {name}", "[OPTIONS]", *arguments])
    rows = [(f"  {', '.join(sorted(param.opts, key=len))}{_value(param)}", param.help or "") for param in options]
    rows.append(("  -h, --help", "Print this."))
    return "\n".join([*_usage(words, width), "", *_paragraphs(command.help, width), "", *_table(rows, width)])


def perhaps(word: str, known: Iterable[str]) -> str:
    """`; perhaps you meant review`, where a known word is one slip away."""
    close = closest(word, known)
    return f"; perhaps you meant {close}" if close else ""


def usage_error(error: Any, argv: Sequence[str]) -> UsageError:
    """What typer has to say, as a sentence of ours."""
    where = "git orch" if not argv or argv[0].startswith("-") else f"git orch {argv[0]}"
    return UsageError(_said(error), f"{where} -h shows what it takes")


def _said(error: Any) -> str:
    message = str(error.format_message()).rstrip(".")
    option = getattr(error, "option_name", "")
    if option and hasattr(error, "possibilities"):
        params = error.ctx.command.params if error.ctx is not None else ()
        known = [name for param in params for name in param.opts if name.startswith("--")]
        return f"no option `{option}`{perhaps(option, known)}"
    if option and "requires" in message:
        return f"{option} wants a value"
    if message.startswith("Got unexpected extra"):
        return f"too many words: {message.partition('(')[2].partition('(')[2].rstrip(')') or message}"
    return message[:1].lower() + message[1:]


def is_json(name: str, as_json: bool) -> bool:
    """Whether JSON is asked for, where the choice is text or JSON.

    Raises:
        UsageError: neither is.
    """
    if name not in ("text", "json"):
        raise UsageError(f"no format `{name}` here", "one of: text json")
    return as_json or name == "json"


def _width(env: Mapping[str, str]) -> int:
    return min(_WIDEST, Terminal.of(sys.stdout, env).width)


def _usage(words: str, width: int) -> list[str]:
    return wrap(words, width, first="usage: ", rest=" " * 7)


def _paragraphs(text: str | None, width: int) -> list[str]:
    parts = [" ".join(part.split()) for part in (text or "").split("\n\n")]
    return [line for part in parts for line in ("", *wrap(part, width))][1:]


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def _argument(param: Any) -> str:
    return f"[{param.metavar}]" if param.default and not param.metavar.startswith("[") else str(param.metavar)


def _value(param: Any) -> str:
    return "" if param.is_flag else f" {param.metavar}"


def _table(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    column = min(_MOST_LEFT, max(cells(left) for left, _ in rows)) + 2
    lines: list[str] = []
    for left, right in rows:
        if cells(left) + 2 > column:
            lines += [left, *wrap(right, width, first=" " * column, rest=" " * column)]
        else:
            lines += wrap(right, width, first=pad(left, column), rest=" " * column)
    return lines
