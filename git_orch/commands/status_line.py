"""`git orch status --line`, which a prompt calls at each of its lines: what it needs, and nothing more."""

from __future__ import annotations

import sys

from git_orch import budget, decisions, registry, report
from git_orch.commands import history, speaking
from git_orch.commands.looking import look
from git_orch.errors import OrchError
from git_orch.formats.line import LineView, status_line
from git_orch.formats.terminal import Terminal
from git_orch.formats.words import money

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.commands.looking import Look

_LOOKED_AT = 5  # runs of this worktree, newest first: one that was cancelled says nothing


def line(env: dict[str, str]) -> int:
    """One short line; an empty one where there is nothing to say, or no repository."""
    try:
        seen = look(env)
        view = _view(seen).replace(cost=_cost(seen))
    except OrchError:
        return 0
    speaking.line(status_line(view, Terminal.of(sys.stdout, env)))
    return 0


def _cost(seen: Look) -> str:
    """What the repository's agents have cost today, where they have."""
    usd = budget.paid(budget.read(seen.layout.durable).day())
    return money(usd) if usd > 0 else ""


def _view(seen: Look) -> LineView:
    running_s: float | None = None
    for number, facts in enumerate(history.here(seen.layout, seen.book)):
        run_id = str(facts["run_id"])
        if number >= _LOOKED_AT:
            break
        if registry.is_live(str(facts["status"])):
            running_s = history.age_s(run_id) if running_s is None else running_s
            continue
        found = report.load(seen.layout.run_dir(run_id))
        if found is None or found.status in ("cancelled", "superseded"):
            continue
        decided = decisions.read(seen.layout.durable)
        severities = [each.severity for each in found.findings if not decided.dismissed(each.fingerprint)]
        return LineView(
            blocking=severities.count("blocking"),
            advisory=severities.count("advisory"),
            verdict=found.verdict,
            running_s=running_s,
        )
    return LineView(running_s=running_s)
