"""The command line: options in, one call, an exit status out. Every error becomes one sentence here."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Optional

import click
import typer

from git_orch import __version__, request
from git_orch.commands import speaking
from git_orch.errors import EXIT_BUG, EXIT_INTERRUPTED, EXIT_USAGE, OrchError, UsageError
from git_orch.install import launcher

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
app = typer.Typer(
    name="git orch",
    help="Reviews the exact tree an agent left, off to the side.",
    add_completion=False,
    no_args_is_help=False,
    invoke_without_command=True,
    rich_markup_mode=None,
    context_settings=_CONTEXT,
)
FORMATS = "text, concise, json, jsonl, sarif, rdjson or github"

Format = Annotated[str, typer.Option("--format", metavar="FORMAT", help=f"{FORMATS}.")]
AsJson = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
RunName = Annotated[Optional[str], typer.Argument(metavar="[RUN]", help="Four or more hex digits of a run, or `last`.")]


def main() -> None:
    """Run the command line and exit. Never shows a traceback but for a bug."""
    sys.exit(run(sys.argv[1:], dict(os.environ)))


def run(argv: list[str], env: dict[str, str]) -> int:
    """The command has run; gives the exit status of design 10."""
    env = request.without_ours(env)
    os.environ.clear()
    os.environ.update(env)
    as_json = "--json" in argv or any(
        word == "--format=json" or (word == "--format" and following == "json")
        for word, following in zip(argv, [*argv[1:], ""], strict=True)
    )
    launcher.refresh(env)
    try:
        return int(app(argv, standalone_mode=False, obj=argv) or 0)
    except OrchError as error:
        return speaking.fail(error, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        return speaking.fail(_usage(error), as_json=as_json)
    except BrokenPipeError:
        speaking.quiet_end()
        return 0
    except Exception:  # the one place: a bug is told as a report that can be sent as it is
        return _bug(argv)


def _usage(error: click.ClickException) -> UsageError:
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "git orch"
    message = error.format_message().rstrip(".")
    return UsageError(message[:1].lower() + message[1:], f"{where} -h shows what it takes")


def _bug(argv: list[str]) -> int:
    import platform
    import traceback

    speaking.tell(
        "git-orch: this is a bug in git-orch; nothing of yours was changed. Please report it with what follows:\n\n"
        f"git-orch {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"git orch {' '.join(argv)}\n{traceback.format_exc()}"
    )
    return EXIT_BUG


@app.callback()
def overview(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Reviews the exact tree an agent left, off to the side. Without a verb: where you are and what to type next."""
    if version:
        speaking.line(f"git-orch {__version__}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        from git_orch.commands import status

        raise typer.Exit(status.overview(dict(os.environ)))


@app.command(context_settings={**_CONTEXT, "ignore_unknown_options": False})
def review(
    context: typer.Context,
    words: Annotated[Optional[list[str]], typer.Argument(metavar="[REV|A..B] [-- PATHSPEC...]")] = None,
    base: Annotated[str, typer.Option(metavar="REV", help="Compare with this revision.")] = "",
    staged: Annotated[bool, typer.Option(help="What is staged, instead of the work tree.")] = False,
    all_files: Annotated[bool, typer.Option("--all-files", help="Every file, as if all were new.")] = False,
    reviewer: Annotated[Optional[list[str]], typer.Option(metavar="NAME", help="Who reviews; may be repeated.")] = None,
    detach: Annotated[bool, typer.Option("-d", "--detach", help="Print the run-id and return at once.")] = False,
    foreground: Annotated[bool, typer.Option("--foreground", help="Supervise in this process; for debugging.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Review again what was reviewed already.")] = False,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="For each reviewer: 90, 90s, 10m.")] = "",
    format: Format = "text",
    json: AsJson = False,
    dry_run: Annotated[bool, typer.Option("-n", "--dry-run", help="Say what would be sent to whom; start nothing.")] = False,
    fail_on: Annotated[str, typer.Option(metavar="SEVERITY", help="blocking, advisory, nit or never.")] = "",
    disposition: Annotated[str, typer.Option(metavar="WHAT", help="What becomes of the tree: discard or preserve.")] = "discard",
) -> int:
    """Review the uncommitted work tree, a revision or a range."""
    from git_orch import config
    from git_orch.commands import review as command
    from git_orch.target import Question

    rev, pathspec = _rev_and_paths(words or [], context.obj)
    if disposition not in ("discard", "preserve"):
        raise UsageError(f"--disposition: `{disposition}` is neither discard nor preserve")
    return command.review(
        command.Options(
            question=Question(rev=rev, base=base, staged=staged, all_files=all_files),
            reviewers=tuple(reviewer or ()),
            detach=detach,
            foreground=foreground,
            timeout_s=config.seconds("--timeout", timeout) if timeout else None,
            format=_format(format, json),
            dry_run=dry_run,
            pathspec=pathspec,
            fail_on=config.threshold("--fail-on", fail_on) if fail_on else None,
            disposition="preserve" if disposition == "preserve" else "discard",
            fresh=fresh,
        ),
        dict(os.environ),
    )


def _rev_and_paths(words: list[str], typed: list[str]) -> tuple[str, tuple[str, ...]]:
    """The revision and the pathspecs; click has taken the `--` away, so it is looked up in what was typed."""
    paths = typed[typed.index("--") + 1 :] if "--" in typed else []
    revs = words[: len(words) - len(paths)] if paths else words
    if len(revs) > 1:
        raise UsageError(f"`{revs[1]}`: only one revision or range", "paths come after --")
    return (revs[0] if revs else ""), tuple(paths)


def _format(name: str, as_json: bool) -> str:
    from git_orch import formats

    name = "json" if as_json else name
    if name not in formats.NAMES:
        raise UsageError(f"no format `{name}`", f"one of: {' '.join(formats.NAMES)}")
    return name


@app.command()
def status(
    line: Annotated[bool, typer.Option("--line", help="One short line, for a prompt or a status bar.")] = False,
    format: Annotated[str, typer.Option(metavar="FORMAT", help="text or json.")] = "text",
    json: AsJson = False,
    session: Annotated[str, typer.Option(metavar="ID", help="Only the runs of that session.")] = "",
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="CPU time and memory as well.")] = False,
) -> int:
    """What ran here, what runs, and what it found."""
    from git_orch.commands import status as command

    if line:
        return command.line(dict(os.environ))
    return command.status(dict(os.environ), as_json=_is_json(format, json), session=session, verbose=verbose)


@app.command()
def show(
    run: RunName = None,
    format: Format = "text",
    json: AsJson = False,
    coverage: Annotated[bool, typer.Option("--coverage", help="Name every path that was left out.")] = False,
) -> int:
    """A run in full: what it looked at, what it found, what it cost."""
    from git_orch.commands import show as command

    return command.show(run, dict(os.environ), format=_format(format, json), coverage=coverage)


@app.command()
def wait(
    run: RunName = None,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="Give up waiting after that long.")] = "",
    format: Format = "text",
    json: AsJson = False,
) -> int:
    """Follow a run to its end and exit as its verdict does."""
    from git_orch import config
    from git_orch.commands import wait as command

    timeout_s = config.seconds("--timeout", timeout) if timeout else None
    return command.wait(run, dict(os.environ), timeout_s=timeout_s, format=_format(format, json))


@app.command()
def logs(
    run: RunName = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the run ends.")] = False,
    reviewer: Annotated[str, typer.Option(metavar="NAME", help="Only what this one wrote.")] = "",
    raw: Annotated[bool, typer.Option("--raw", help="Control characters as they are.")] = False,
) -> int:
    """What a run's reviewers wrote."""
    from git_orch.commands import logs as command

    return command.logs(run, dict(os.environ), follow=follow, reviewer=reviewer, raw=raw)


@app.command()
def stop(
    run: RunName = None,
    everything: Annotated[bool, typer.Option("--all", help="Every live run of this repository.")] = False,
) -> int:
    """End a run and all that it started."""
    from git_orch.commands import stop as command

    return command.stop(run, dict(os.environ), everything=everything)


@app.command()
def sweep(
    format: Annotated[str, typer.Option(metavar="FORMAT", help="text or json.")] = "text",
    json: AsJson = False,
    force: Annotated[str, typer.Option(metavar="RUN", help="Kill this run's supervisor, then take it away.")] = "",
) -> int:
    """Take away what dead supervisors left behind."""
    from git_orch.commands import sweep as command

    return command.sweep(dict(os.environ), as_json=_is_json(format, json), force=force)


@app.command()
def schema(name: Annotated[str, typer.Argument(metavar="NAME")]) -> int:
    """Print the JSON Schema of what a command prints or a reviewer answers."""
    from git_orch import formats

    speaking.say(formats.schema(name))
    return 0


@app.command(name="hook", context_settings={**_CONTEXT, "ignore_unknown_options": True})
def hook_event(event: Annotated[str, typer.Argument(metavar="EVENT")]) -> int:
    """Do what the hook EVENT does; clients run the launcher instead, which is faster."""
    from git_orch import trigger

    if event not in trigger.EVENTS:
        raise UsageError(f"no event `{event}`", f"one of: {' '.join(trigger.EVENTS)}")
    trigger.main(["hook", event])
    return 0


@app.command(name="help")
def help_text(verb: Annotated[Optional[str], typer.Argument(metavar="[VERB]")] = None) -> int:
    """Print what a verb does and takes."""
    app([verb, "-h"] if verb else ["-h"], standalone_mode=False)
    return 0


def _is_json(name: str, as_json: bool) -> bool:
    if name not in ("text", "json"):
        raise UsageError(f"no format `{name}`", "one of: text json")
    return as_json or name == "json"
