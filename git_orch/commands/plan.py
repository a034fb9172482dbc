"""`git orch plan FILE`: what a plan comes to, before anything is started. It writes nothing and wants no repository."""

from __future__ import annotations

import os
import sys

from git_orch import formats, planfile, planning
from git_orch.commands import speaking
from git_orch.formats import plan as printed
from git_orch.formats.terminal import Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.planning import Wishes


def plan(path: str, wishes: Wishes, format_name: str, env: dict[str, str]) -> int:
    """The plan is printed.

    Raises:
        UsageError: it cannot be read, anything in it is wrong, or there is no such format.
    """
    formats.known(format_name, printed.NAMES)
    outlook = planning.look(planfile.read(path), wishes, _cores())
    speaking.say(printed.render(outlook, format_name, Terminal.of(sys.stdout, env)))
    return 0


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
