"""Where `git orch` begins: every error becomes one sentence here, and three verbs go round typer.

A prompt calls `status --line` at each of its lines, a script calls `wait`, a push `gate`: none should pay for loading
typer. `gate` reads its words itself; of the others only the plain forms are known here; all else (help, a wrong option)
is the business of `cli`.
"""

from __future__ import annotations

import os
import sys

from git_orch import request
from git_orch.commands import speaking
from git_orch.errors import EXIT_BUG, EXIT_INTERRUPTED, OrchError
from git_orch.install import launcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_FOR_PROGRAMS = ("json", "jsonl")
_VALUES_OF_WAIT = ("--timeout", "--format")


class Interrupted(OrchError):
    """A person, or whoever ran the command, wanted it to end; nothing was started that goes on."""

    code = "interrupted"
    exit_code = EXIT_INTERRUPTED


def main() -> None:
    """Run the command line and exit. Never shows a traceback but for a bug."""
    status = run(sys.argv[1:], dict(os.environ))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # taking the interpreter apart would cost a tenth of what `status --line` takes


def run(argv: list[str], env: dict[str, str]) -> int:
    """The command has run; gives the exit status of docs/output.md."""
    env = request.without_ours(env)
    os.environ.clear()
    os.environ.update(env)
    try:
        launcher.refresh(env)
        return _dispatch(argv, env)
    except OrchError as error:
        return speaking.fail(error, as_json=wants_json(argv))
    except KeyboardInterrupt:
        return speaking.fail(Interrupted("interrupted"), as_json=True) if wants_json(argv) else EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the one place: a bug is told as a report that can be sent as it is
        return _bug(error, argv)


def _dispatch(argv: list[str], env: dict[str, str]) -> int:
    match argv:
        case ["status", "--line"]:
            from git_orch.commands import status_line

            return status_line.line(env)
        case ["wait", *words] if (plain := plain_words(words, _VALUES_OF_WAIT)) is not None:
            from git_orch.commands import wait

            names, values = plain
            return wait.wait(
                names[0] if names else "",
                env,
                timeout=values.get("--timeout", ""),
                format_name=values.get("--format", ""),
            )
        case ["gate", *words] if not {"-h", "--help"}.intersection(words):
            from git_orch.commands import gate

            return gate.main(words, env)
    from git_orch import cli

    return cli.call(argv)


def plain_words(words: Sequence[str], valued: Sequence[str]) -> tuple[list[str], dict[str, str]] | None:
    """At most one name, and options in their plain forms (`--timeout 5`, `--timeout=5`, `--json`) with their values.

    None where there is anything else.
    """
    names: list[str] = []
    values: dict[str, str] = {}
    rest = list(reversed(words))
    while rest:
        option, equals, value = rest.pop().partition("=")
        if option == "--json" and not equals:
            values["--format"] = "json"
        elif option in valued and (equals or rest):
            values[option] = value if equals else rest.pop()
        elif not option.startswith("-") and not names:
            names.append(option + equals + value)
        else:
            return None
    return names, values


def wants_json(argv: Sequence[str]) -> bool:
    """Whether whoever called reads JSON, as far as it shows before the words are understood."""
    words = list(argv[: argv.index("--")] if "--" in argv else argv)
    formats = [words[at] for at in range(1, len(words)) if words[at - 1] == "--format"]
    formats += [word.removeprefix("--format=") for word in words if word.startswith("--format=")]
    return "--json" in words or any(name in _FOR_PROGRAMS for name in formats)


def _bug(error: Exception, argv: Sequence[str]) -> int:
    import platform
    import traceback

    from git_orch import __version__
    from git_orch.formats.terminal import shown

    trace = "".join(traceback.format_exception(error))
    speaking.tell(
        "git-orch: this is a bug in git-orch; nothing of yours was changed. Please report it with what follows:\n\n"
        f"git-orch {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"git orch {shown(' '.join(argv))}\n" + "".join(f"{shown(line)}\n" for line in trace.splitlines())
    )
    return speaking.fail(Bug(f"{type(error).__name__}: {error}"), as_json=True) if wants_json(argv) else EXIT_BUG


class Bug(OrchError):
    """Something that only a change of git-orch can put right."""

    code = "bug"
    exit_code = EXIT_BUG
