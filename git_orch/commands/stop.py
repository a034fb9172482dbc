"""`git orch stop`: a run is ended, all that it started with it. Twice is as good as once."""

from __future__ import annotations

import os
import time

from git_orch import reaper
from git_orch.commands import history, speaking
from git_orch.commands.looking import look
from git_orch.errors import EnvironmentProblem, UsageError
from git_orch.runs import short
from git_orch.workspace import open_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.workspace import Workspace

WAIT_S = 20.0
POLL_S = 0.05


def stop(name: str, env: dict[str, str], *, everything: bool) -> int:
    """The run, or every live one of the repository, has ended; nothing of it is left.

    Raises:
        EnvironmentProblem: one of them does not end.
    """
    if bool(name) == everything:
        raise UsageError(
            "which run?" if not name else "a run and --all exclude each other", "git orch stop RUN, or --all"
        )
    seen = look(env)
    live = seen.book.run_ids() if seen.book is not None else []
    wanted = live if everything else [history.resolve(name, seen.layout, seen.book)]
    if not set(wanted) & set(live):
        speaking.line("nothing is running" if everything else f"run {short(wanted[0])} has ended already")
        return 0
    workspace = open_at(os.getcwd(), env, seen.settings, seen.layout)
    for run_id in wanted:
        workspace.book.ask(run_id, "cancel")
    stuck = [short(run_id) for run_id in wanted if not _has_ended(workspace, run_id)]
    if stuck:
        raise EnvironmentProblem(
            f"{' '.join(stuck)}: still there after {WAIT_S:.0f} s", f"git orch sweep --force {stuck[0]}"
        )
    return 0


def _has_ended(workspace: Workspace, run_id: str) -> bool:
    deadline = time.monotonic() + WAIT_S
    while os.path.exists(workspace.book.path(run_id, "json")):
        reaper.sweep_one(workspace, run_id)  # does nothing to a run that lives
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    speaking.line(f"stopped {short(run_id)}")
    return True
