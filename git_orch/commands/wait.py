"""`git orch wait`: follow a run to its end, in silence, and exit as its verdict does."""

from __future__ import annotations

import os
import sys

from git_orch.commands import following, history, speaking
from git_orch.commands.review import exit_code
from git_orch.errors import EXIT_INTERRUPTED, EXIT_UNREVIEWED
from git_orch.formats.terminal import Terminal
from git_orch.model import Report
from git_orch.runs import short
from git_orch.source import Source
from git_orch.workspace import open_at


def wait(name: str | None, env: dict[str, str], *, timeout_s: float | None, format: str) -> int:
    """The run has ended and its report is printed; 5 where the time was up first, 130 where the person left."""
    workspace = open_at(os.getcwd(), env)
    run_id = history.resolve(name, workspace.layout, workspace.book)
    show = following.chosen(format, Terminal.of(sys.stdout, env))
    ended = following.follow(following.Run(workspace, run_id), show, timeout_s=timeout_s)
    if isinstance(ended, Report):
        source = Source(workspace.store, ended.tree_id)
        speaking.say(following.printed(ended, format, show, source))
        return exit_code(ended)
    if isinstance(ended, following.Late):
        speaking.tell(f"git-orch: run {short(run_id)} goes on; the time to wait is up\n")
        return EXIT_UNREVIEWED
    return EXIT_INTERRUPTED
