"""The command line: what each verb takes, and one call. `entry` begins here and tells the errors."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from git_orch import __version__, formats
from git_orch.commands import helping, install, speaking
from git_orch.errors import UsageError

FORMATS = "text, concise, json, jsonl, sarif, rdjson or github"

GATE_FORMATS = "text, json, github, gitlab or markdown"
ALLOW = "What passes beside what was reviewed: unreviewed or nothing. Alone, with --why: a person's word."

Format = Annotated[str, typer.Option("--format", metavar="FORMAT", help=f"{FORMATS}.")]
TextOrJson = Annotated[str, typer.Option("--format", metavar="FORMAT", help="text or json.")]
AsJson = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
Run = Annotated[str, typer.Argument(metavar="[RUN]")]


class Verb(TyperCommand):
    """A verb whose help is laid out as all of git-orch's text is."""

    def get_help(self, ctx: Any) -> str:
        """The help, without its last line end."""
        return helping.of_verb(self, ctx.info_name or "", dict(os.environ))


class Verbs(TyperGroup):
    """All verbs; a wrong one is answered with the one that was perhaps meant."""

    def get_help(self, ctx: Any) -> str:  # noqa: ARG002 - as typer calls it
        """The overview of the verbs, without its last line end."""
        return helping.of_all(self, dict(os.environ))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb, by its name.

        Raises:
            UsageError: there is none of that name.
        """
        if args[0] not in self.commands:
            raise UsageError(
                f"no verb `{args[0]}`{helping.perhaps(args[0], self.commands)}", "git orch help lists what there is"
            )
        return super().resolve_command(ctx, args)


_CONTEXT = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    cls=Verbs,
    add_completion=False,
    invoke_without_command=True,
    rich_markup_mode=None,
    context_settings=_CONTEXT,
)


def verb(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The function is what the verb of that name does."""
    return app.command(name, cls=Verb, context_settings=_CONTEXT)


def call(argv: list[str]) -> int:
    """The verb has done its work; gives its exit status.

    Raises:
        OrchError: it could not, or the words make no sense.
    """
    try:
        return int(app(argv, prog_name="git orch", standalone_mode=False, obj=argv) or 0)
    except typer.TyperException as error:
        raise helping.usage_error(error, argv) from error
    except typer.Abort:
        raise KeyboardInterrupt from None


@app.callback()
def overview(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Reviews the exact tree that you or an agent left, off to the side, and leaves nothing behind."""
    if version:
        speaking.line(f"git-orch {__version__}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        from git_orch.commands import status

        raise typer.Exit(status.overview(dict(os.environ)))


@verb("review")
def review(  # noqa: PLR0913, PLR0917 - the options are read from it
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[REV | A..B] [-- PATHSPEC...]")] = None,
    base: Annotated[str | None, typer.Option("--base", metavar="REV", help="Compare with this revision.")] = None,
    staged: Annotated[bool, typer.Option("--staged", help="What is staged, instead of the work tree.")] = False,
    all_files: Annotated[bool, typer.Option("--all-files", help="Every file, as if all were new.")] = False,
    reviewer: Annotated[
        list[str] | None, typer.Option("--reviewer", metavar="NAME", help="Who reviews; may be repeated.")
    ] = None,
    detach: Annotated[bool, typer.Option("-d", "--detach", help="Print the run-id and return at once.")] = False,
    dry_run: Annotated[
        bool, typer.Option("-n", "--dry-run", help="Say what would be sent to whom; start nothing.")
    ] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="For each reviewer: 90, 90s, 10m.")
    ] = "",
    format_name: Format = "text",
    as_json: AsJson = False,
    fail_on: Annotated[
        str,
        typer.Option("--fail-on", metavar="SEVERITY", help="Exit 1 from here on: blocking, advisory, nit or never."),
    ] = "",
    disposition: Annotated[
        str, typer.Option("--disposition", metavar="WHAT", help="What becomes of the trees: discard or preserve.")
    ] = "discard",
    kind: Annotated[
        str, typer.Option("--kind", metavar="KIND", help="What is judged: code, plan, spec or docs.")
    ] = "code",
    rubric: Annotated[
        str, typer.Option("--rubric", metavar="FILE", help="A design, or what matters here, for agents to judge by.")
    ] = "",
    fresh: Annotated[bool, typer.Option("--fresh", help="Also what was reviewed already.")] = False,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Supervise in this process; for finding faults in git-orch.")
    ] = False,
) -> int:
    """Review the uncommitted work tree, or what the arguments name, and tell the verdict.

    REV is a branch, compared with where it left the default branch, or any other commit, compared with its first
    parent. A..B is what B has changed since it left A. PATHSPEC is as git has it. With --kind plan, spec or docs the
    words are paths, and what lies there is judged as a whole.

    The command follows the run to its end: Ctrl-C leaves it running, twice within two seconds cancels it.

    It exits with 0 pass, 1 findings, 2 usage, 4 the machine does not allow it, 5 not reviewed, 6 nothing to review,
    130 interrupted.
    """
    from git_orch import config, kinds
    from git_orch.commands import review as command
    from git_orch.target import Question

    is_whole = kinds.of(kind).whole
    rev, pathspec = ("", tuple(words or ())) if is_whole else _rev_and_paths(words or [], context.obj)
    if base == "":
        raise UsageError("--base: an empty word is no revision", "is a variable empty?")
    everything = all_files or (is_whole and not base)
    return command.review(
        command.Options(
            question=Question(rev=rev, base=base or "", staged=staged, all_files=everything),
            kind=kind,
            rubric=rubric,
            reviewers=tuple(reviewer or ()),
            detach=detach,
            foreground=foreground,
            timeout_s=config.seconds("--timeout", timeout) if timeout else None,
            format_name=formats.known("json" if as_json else format_name),
            dry_run=dry_run,
            pathspec=pathspec,
            fail_on=config.threshold("--fail-on", fail_on) if fail_on else None,
            disposition=command.disposition(disposition),
            fresh=fresh,
        ),
        dict(os.environ),
    )


def _rev_and_paths(words: list[str], typed: list[str]) -> tuple[str, tuple[str, ...]]:
    """The revision and the pathspecs; typer has taken the `--` away, so it is looked up in what was typed."""
    paths = typed[typed.index("--") + 1 :] if "--" in typed else []
    revs = words[: len(words) - len(paths)] if paths else words
    if len(revs) > 1:
        raise UsageError(f"`{revs[1]}`: one revision or range at a time", "paths come after --")
    if revs == [""]:  # taken for no word, it would have the work tree reviewed, which nobody meant
        raise UsageError("an empty word is no revision", "is a variable empty?")
    return (revs[0] if revs else ""), tuple(paths)


@verb("status")
def status(
    line: Annotated[bool, typer.Option("--line", help="One short line, for a prompt or a status bar.")] = False,
    session: Annotated[str, typer.Option("--session", metavar="ID", help="Only the runs of that session.")] = "",
    budget: Annotated[bool, typer.Option("--budget", help="What agents may cost, and have cost.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="CPU time and memory as well.")] = False,
    format_name: TextOrJson = "text",
    as_json: AsJson = False,
) -> int:
    """Tell what ran here, what runs, and what it found."""
    from git_orch.commands import status as command

    if line:
        from git_orch.commands import status_line

        return status_line.line(dict(os.environ))
    as_json = helping.is_json(format_name, as_json)
    if budget and not as_json:
        from git_orch.commands import spending

        return spending.show(dict(os.environ))
    return command.status(dict(os.environ), as_json=as_json, session=session, verbose=verbose)


@verb("show")
def show(
    name: Annotated[str, typer.Argument(metavar="[RUN | FINDING]")] = "",
    coverage: Annotated[bool, typer.Option("--coverage", help="Name every path that was left out.")] = False,
    format_name: Format = "text",
    as_json: AsJson = False,
) -> int:
    """Show a run in full, or one of its findings.

    RUN is four or more hex digits of a run, or `last`; without it the newest of this worktree. FINDING is the word in
    the brackets of `blocking[kmzv]`.
    """
    from git_orch.commands import show as command

    return command.show(
        name, dict(os.environ), format_name=formats.known("json" if as_json else format_name), coverage=coverage
    )


@verb("wait")
def wait(
    run: Annotated[str, typer.Argument(metavar="[RUN | REV]")] = "",
    timeout: Annotated[str, typer.Option("--timeout", metavar="DURATION", help="Wait no longer than that.")] = "",
    format_name: Format = "text",
    as_json: AsJson = False,
) -> int:
    """Follow a run to its end and exit as its verdict does.

    With REV the newest run that reviewed it. When the time is up the run goes on, and the exit status is 5.
    """
    from git_orch.commands import wait as command

    return command.wait(run, dict(os.environ), timeout=timeout, format_name="json" if as_json else format_name)


@verb("logs")
def logs(
    run: Run = "",
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the run ends.")] = False,
    reviewer: Annotated[str, typer.Option("--reviewer", metavar="NAME", help="Only what this one wrote.")] = "",
    raw: Annotated[bool, typer.Option("--raw", help="Control characters as they are.")] = False,
) -> int:
    """Print what the reviewers of a run wrote."""
    from git_orch.commands import logs as command

    return command.logs(run, dict(os.environ), follow=follow, reviewer=reviewer, raw=raw)


@verb("stop")
def stop(
    run: Run = "",
    everything: Annotated[bool, typer.Option("--all", help="Every live run of this repository.")] = False,
) -> int:
    """End a run and all that it started; one that has ended is no error."""
    from git_orch.commands import stop as command

    return command.stop(run, dict(os.environ), everything=everything)


@verb("sweep")
def sweep(
    force: Annotated[str, typer.Option("--force", metavar="RUN", help="End a run that `stop` cannot end.")] = "",
    format_name: TextOrJson = "text",
    as_json: AsJson = False,
) -> int:
    """Take away what dead supervisors left behind, and old runs. A run that lives is left alone."""
    from git_orch.commands import sweep as command

    return command.sweep(dict(os.environ), as_json=helping.is_json(format_name, as_json), force=force)


@verb("dismiss")
def dismiss(
    finding: Annotated[str, typer.Argument(metavar="FINDING")],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="Why: kept, and told to the next review.")] = "",
) -> int:
    """Say that a finding is wrong: by a person's word it is closed, by an agent's disputed."""
    from git_orch.commands import deciding

    return deciding.dismiss(finding, why, dict(os.environ))


@verb("mute")
def mute(
    duration: Annotated[str, typer.Option("--for", metavar="DURATION", help="How long: 30m, 8h (the usual).")] = "",
    repo: Annotated[bool, typer.Option("--repo", help="Every session of this repository.")] = False,
    session: Annotated[str, typer.Option("--session", metavar="ID", help="That session alone.")] = "",
) -> int:
    """Tell this worktree's last session nothing for a while; reviews go on."""
    from git_orch.commands import deciding

    return deciding.mute(dict(os.environ), for_s=deciding.duration(duration), repo=repo, session=session)


@verb("unmute")
def unmute(
    session: Annotated[str, typer.Option("--session", metavar="ID", help="That session alone.")] = "",
) -> int:
    """Let sessions be told again."""
    from git_orch.commands import deciding

    return deciding.unmute(dict(os.environ), session=session)


@verb("trust")
def trust(
    show: Annotated[bool, typer.Option("--show", help="Print what it holds, and change nothing.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="It counts no more.")] = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Ask nothing.")] = False,
) -> int:
    """Let the settings count that this repository shares in orch.toml, as they are now."""
    from git_orch.commands import trusting

    return trusting.trust(dict(os.environ), show=show, revoke=revoke, yes=yes)


@verb("gate")
def gate(
    revs: Annotated[list[str] | None, typer.Argument(metavar="[REV...]")] = None,
    each: Annotated[bool, typer.Option("--each", help="Judge every commit, not the tip alone.")] = False,
    base: Annotated[str, typer.Option("--base", metavar="REV", help="Compare with this, not with the remote.")] = "",
    wait: Annotated[str, typer.Option("--wait", metavar="DURATION", help="For a run that lives: 0, 90s, 10m.")] = "",
    allow: Annotated[str, typer.Option("--allow", metavar="WHAT", help=ALLOW)] = "",
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The person's reason.")] = "",
    format_name: Annotated[str, typer.Option("--format", metavar="FORMAT", help=GATE_FORMATS + ".")] = "text",
    as_json: AsJson = False,
) -> int:
    """May these commits go out? The tip of each REV (HEAD) is judged by what was reviewed, content by content.

    Exit status: 0 allowed, 1 blocked, 5 pending, stale or unreviewed.
    """
    # `entry` reads the words of this verb itself, and comes here for the help alone.
    from git_orch.commands import gate as command

    options = command.Options(
        revs=tuple(revs or ()),
        each=each,
        base=base,
        wait_s=command.seconds(wait) if wait else None,
        allow=allow or "nothing",
        why=why,
        format="json" if as_json else format_name,
    )
    return command.run(options, dict(os.environ))


@verb("plan")
def plan(
    file: Annotated[str, typer.Argument(metavar="FILE", help="TOML, or Markdown with a table of tasks.")],
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", metavar="N", min=1, help="So many at a time.")] = None,
    serial: Annotated[bool, typer.Option("--serial", help="One after the other.")] = False,
    schedule: Annotated[str, typer.Option("--schedule", metavar="HOW", help="ready or waves.")] = "ready",
    strict_files: Annotated[
        bool, typer.Option("--strict-files", help="One after the other where a task declares no files.")
    ] = False,
    format_name: Annotated[str, typer.Option("--format", metavar="FORMAT", help="text, json or dot.")] = "text",
    as_json: AsJson = False,
) -> int:
    """What a plan of tasks comes to: waves, batches with the file that split them, the longest path. Nothing is run.

    Everything that is wrong with the file is told at once; exit status 2.
    """
    from git_orch.commands import plan as command
    from git_orch.planning import Wishes

    if schedule not in ("ready", "waves"):
        raise UsageError(f"no schedule `{schedule}`", "one of: ready waves")
    how: Literal["ready", "waves"] = "waves" if schedule == "waves" else "ready"
    wishes = Wishes(jobs=jobs or 0, serial=serial, schedule=how, strict_files=strict_files)
    return command.plan(file, wishes, "json" if as_json else format_name, dict(os.environ))


verb("install")(install.install)
verb("uninstall")(install.uninstall)


@verb("doctor")
def doctor(format_name: TextOrJson = "text", as_json: AsJson = False) -> int:
    """Fire each installed hook in a scratch repository; tell which file git runs, what is untrusted, what is missing.

    Exit status: 0 where nothing is broken, else 1. It repairs nothing and leaves nothing behind.
    """
    from git_orch.commands import doctor as command

    return command.doctor(dict(os.environ), as_json=helping.is_json(format_name, as_json))


@verb("hook")
def hook(
    event: Annotated[str, typer.Argument(metavar="EVENT")] = "",
    client: Annotated[str, typer.Argument(metavar="[CLIENT]")] = "",
) -> int:
    """Do what a client's hook does: stop, session-start, user-prompt-submit or wake.

    Reads the client's JSON from standard input; exits with 0 whatever comes, but for a wake that has something to say:
    10. Clients start the launcher instead, which is faster.
    """
    from git_orch import dialects, trigger

    if event not in trigger.EVENTS:
        raise UsageError(f"no event `{event}`" if event else "which event?", f"one of: {' '.join(trigger.EVENTS)}")
    if client and client not in dialects.CLIENTS:
        raise UsageError(f"no client `{client}`", f"one of: {' '.join(dialects.CLIENTS)}")
    return trigger.main(["hook", event, client])


@verb("mcp")
def mcp() -> int:
    """Serve what an agent may ask for over MCP, on standard input and output, until the input ends.

    Its tools are review, wait, findings, finding, dispute and gate; none of them stops, allows, trusts or mutes. Wants
    the package mcp: pip install 'git-orch[mcp]'.
    """
    from git_orch.commands import mcp as command

    return command.serve(dict(os.environ))


@verb("schema")
def schema(name: Annotated[str, typer.Argument(metavar="NAME")] = "") -> int:
    """Print a JSON Schema: review, finding, status, gate, doctor, plan, answer or error.

    `answer` is what a reviewer prints, the others what commands print with --format json.
    """
    speaking.say(formats.schema(name))
    return 0


@verb("help")
def help_on(name: Annotated[str, typer.Argument(metavar="[VERB]")] = "") -> int:
    """Print this overview, or what a verb does and takes."""
    if name in ("", "orch"):
        return call(["-h"])
    return call([name, "-h"])
