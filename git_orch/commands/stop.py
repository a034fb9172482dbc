"""`git orch stop`: a run is ended, all that it started with it. Twice is as good as once."""

from __future__ import annotations

import os
import time

from git_orch import reaper
from git_orch.commands import history, speaking
from git_orch.errors import EXIT_ENVIRONMENT, EXIT_PASS, UsageError
from git_orch.runs import short
from git_orch.workspace import open_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.workspace import Workspace

WAIT_S = 20.0
POLL_S = 0.05


def stop(name: str | None, env: dict[str, str], *, everything: bool) -> int:
    """The run, or every live one of the repository, has ended; nothing of it is left."""
    workspace = open_at(os.getcwd(), env)
    if not name and not everything:
        raise UsageError("which run?", "git orch stop RUN, or --all; git orch status lists them")
    wanted = workspace.book.run_ids() if everything else [history.resolve(name, workspace.layout, workspace.book)]
    live = [run_id for run_id in wanted if _lives(workspace, run_id)]
    for run_id in live:
        workspace.book.ask(run_id, "cancel")
    ended = all([_wait(workspace, run_id) for run_id in live])
    if not live:
        speaking.line("nothing is running" if everything else f"run {short(wanted[0])} has ended already")
    return EXIT_PASS if ended else EXIT_ENVIRONMENT


def _wait(workspace: Workspace, run_id: str) -> bool:
    deadline = time.monotonic() + WAIT_S
    while _lives(workspace, run_id):
        reaper.sweep_one(workspace, run_id)  # does nothing to a run that lives
        if time.monotonic() > deadline:
            speaking.line(f"run {short(run_id)} does not end; git orch sweep --force {short(run_id)} kills it")
            return False
        time.sleep(POLL_S)
    speaking.line(f"stopped {short(run_id)}")
    return True


def _lives(workspace: Workspace, run_id: str) -> bool:
    return os.path.exists(workspace.book.path(run_id, "json"))
