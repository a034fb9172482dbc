"""`git orch doctor`: what is installed, what of it works, and what to do about the rest."""

from __future__ import annotations

import os
import sys

from git_orch.commands import speaking
from git_orch.formats.terminal import Terminal, mark_style, wrap
from git_orch.install import diagnosis
from git_orch.model import SCHEMA_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.formats.terminal import Mark
    from git_orch.install.diagnosis import Check, State

_MARKS: dict[State, Mark] = {"fine": "pass", "better": "warning", "broken": "no", "absent": "skipped"}
_INDENT = "    "


def doctor(env: dict[str, str], *, as_json: bool) -> int:
    """All is told that was looked at; 0 where nothing is broken, else 1."""
    checks: list[Check] = []
    terminal = Terminal.of(sys.stdout, env)
    for check in diagnosis.examine(os.getcwd(), env):
        checks.append(check)
        if not as_json:
            speaking.say(_lines(check, terminal))
    counts = {state: sum(check.state == state for check in checks) for state in ("broken", "better", "fine")}
    if as_json:
        from git_orch.formats import json_

        told = [{**check.fields(), "more": list(check.more)} for check in checks]
        speaking.say(json_.document({"schema_version": SCHEMA_VERSION, **counts, "checks": told}))
    else:
        speaking.line(f"{counts['broken']} broken, {counts['better']} could be better, {counts['fine']} fine")
    return 1 if counts["broken"] else 0


def _lines(check: Check, terminal: Terminal) -> str:
    mark = _MARKS[check.state]
    first, *rest = wrap(terminal.sentence(check.text), terminal.width, first=f"{terminal.mark(mark)} ", rest="  ")
    first = terminal.paint_at(first, 0, 1, mark_style(mark))
    more = [
        line
        for text in check.more
        for line in wrap(terminal.sentence(text), terminal.width, first=_INDENT, rest=_INDENT)
    ]
    return "".join(f"{line}\n" for line in (first, *rest, *more))
