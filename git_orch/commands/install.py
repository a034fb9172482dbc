"""`git orch install` and `git orch uninstall`: their options. What they do is loaded once it is known that they run."""

from __future__ import annotations

from typing import Annotated

import typer

from git_orch.errors import UsageError

_TARGETS = "Whose hooks: claude, codex, gemini, copilot, qwen, opencode, cursor; git for git's own."
Client = Annotated[str, typer.Argument(metavar="[TARGET]", help=_TARGETS)]
User = Annotated[bool, typer.Option("--user", help="In your own settings: for every folder (the default).")]
Project = Annotated[
    bool, typer.Option("--project", help="In the client's settings in this work tree, for all to share.")
]
Local = Annotated[bool, typer.Option("--local", help="In .claude/settings.local.json of this work tree.")]
Tracked = Annotated[bool, typer.Option("--tracked", help="Edit the settings even where git tracks them.")]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Show what would be written, and write nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")]
Reviewers = Annotated[
    list[str] | None, typer.Option("--reviewer", metavar="NAME", help="Who reads the changes; may be repeated.")
]
Print = Annotated[
    str,
    typer.Option(
        "--print",
        metavar="WHAT",
        help="Print the command line of a hook, or with allow the rules for its agent; no more.",
    ),
]
Gate = Annotated[bool, typer.Option("--gate", help="With `git`: stop a push of what is not reviewed, too.")]
Everywhere = Annotated[bool, typer.Option("--all", help="In all repositories of yours on this machine.")]


def install(
    client: Client = "",
    user: User = False,
    project: Project = False,
    local: Local = False,
    yes: Yes = False,
    reviewer: Reviewers = None,
    dry_run: DryRun = False,
    print_event: Print = "",
    gate: Gate = False,
    tracked: Tracked = False,
) -> None:
    """Have each turn of an agent, or with `git` each commit, in this repository reviewed.

    Without TARGET the client in use is proposed, or the first one found on PATH.
    """
    from git_orch.commands import installing, installing_git

    if client == installing_git.TARGET:
        installing_git.install(gate=gate, ask=not yes, dry_run=dry_run, print_event=print_event)
        return
    if gate:
        raise UsageError("--gate is for git's own hooks", "git orch install git --gate")
    if print_event:
        installing.print_line(print_event, client)
        return
    installing.install(
        installing.Asked(
            client=client,
            scope=installing.scope_of(user=user, project=project, local=local) or "user",
            reviewers=tuple(reviewer or ()),
            ask=not yes,
            dry_run=dry_run,
            tracked=tracked,
        )
    )


def uninstall(
    client: Client = "",
    user: User = False,
    project: Project = False,
    local: Local = False,
    everywhere: Everywhere = False,
    dry_run: DryRun = False,
) -> None:
    """Take the hooks out again: each file is as it was, but for what you changed in it since.

    Without TARGET those of every client, and git's own, in this repository; with --all in every one.
    """
    from git_orch.commands import installing, installing_git

    if client == installing_git.TARGET:
        installing_git.uninstall(dry_run=dry_run)
        return
    scope = installing.scope_of(user=user, project=project, local=local)
    installing.uninstall((client,) if client else (), scope, everywhere=everywhere, dry_run=dry_run)
