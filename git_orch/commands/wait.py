"""`git orch wait`: follow a run to its end and exit as its verdict does."""

from __future__ import annotations

from git_orch import config, formats, verdict
from git_orch.commands import following, history, progress, speaking
from git_orch.commands.looking import look, source
from git_orch.errors import EXIT_INTERRUPTED, EXIT_UNREVIEWED, NoSuchRun, OrchError
from git_orch.model import Report
from git_orch.runs import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.commands.looking import Look


class StillRunning(OrchError):
    """The run goes on: there is no verdict yet."""

    code = "still-running"
    exit_code = EXIT_UNREVIEWED


def wait(name: str, env: dict[str, str], *, timeout: str, format_name: str) -> int:
    """The run has ended and its report is printed; 130 where the person left.

    Raises:
        NoSuchRun: none has that name, and none reviewed that revision.
        StillRunning: the time was up first.
    """
    format_name = formats.known(format_name or "text")
    timeout_s = config.seconds("--timeout", timeout) if timeout else None
    seen = look(env)
    run_id = _resolve(name, seen)
    show = progress.chosen(format_name, env)
    with following.Interrupts() as interrupts:
        ended = following.follow(
            following.Run(seen, run_id), show, interrupts, timeout_s=timeout_s, is_ours=show.is_interactive
        )
    if isinstance(ended, Report):
        speaking.say(show.printed(ended, format_name, source(seen, ended)))
        return exit_code(ended)
    if isinstance(ended, following.Late):
        raise StillRunning(f"run {short(run_id)} goes on; the time to wait is up", f"git orch wait {short(run_id)}")
    return EXIT_INTERRUPTED


def exit_code(found: Report) -> int:
    """The exit status that tells a report's verdict; of a cancelled run, that it was interrupted."""
    return EXIT_INTERRUPTED if found.status == "cancelled" else verdict.exit_code(found.verdict)


def _resolve(name: str, seen: Look) -> str:
    """The run of that name, or the newest that reviewed what the revision of that name has."""
    try:
        return history.resolve(name, seen.layout, seen.book)
    except NoSuchRun:
        from git_orch import target  # only where the name is no run's

        tree = target.tree_of(seen.layout.git(seen.env), name) if name else ""
        for run_id in reversed(history.known(seen.layout, seen.book)) if tree else ():
            facts = history.record(run_id, seen.layout, seen.book)
            if facts is not None and facts.get("tree_id") == tree:
                return run_id
        if tree:
            raise NoSuchRun(f"no run has reviewed `{name}`", f"git orch review {name}") from None
        raise
