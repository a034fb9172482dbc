"""`git orch status --budget`, and the line of it that `status` ends with."""

from __future__ import annotations

import sys

from git_orch import budget, cooldown, seats
from git_orch.commands import speaking
from git_orch.commands.looking import look
from git_orch.formats import spending as printed
from git_orch.formats.spending import BudgetView, Spent
from git_orch.formats.terminal import Terminal
from git_orch.model import UNLIMITED, utc_stamp
from git_orch.reviewers import faults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.budget import Ledger, Spending
    from git_orch.commands.looking import Look
    from git_orch.model import Json

_MOST_SESSIONS = 10
_SHORT = 8


def show(env: dict[str, str]) -> int:
    """The budget is told. Always 0: it is an answer, not a judgement."""
    speaking.say(printed.budget_text(view(look(env)), Terminal.of(sys.stdout, env)))
    return 0


def view(seen: Look) -> BudgetView:
    """What the repository's agents have cost, against what they may."""
    settings, ledger = seen.settings, budget.read(seen.layout.durable)
    resting = cooldown.resting(seen.layout.durable)
    return BudgetView(
        limits=settings.budget,
        review_usd=settings.budget_review_usd,
        hour=_spent(ledger.hour()),
        day=_spent(ledger.day()),
        sessions=tuple((name[:_SHORT], _spent(ledger.session(name))) for name in _sessions(ledger)),
        resting=tuple(f"{name}: {faults.until(each.fault, each.until)}" for name, each in resting.items()),
        seats_taken=seats.taken(seen.env, settings.max_reviews),
        seats=settings.max_reviews,
    )


def facts(seen: Look) -> Json:
    """The same for programs, as status.json describes it; no limit is null."""
    settings, ledger = seen.settings, budget.read(seen.layout.durable)
    limits = {**settings.budget.fields(), "review_usd": settings.budget_review_usd}
    resting = cooldown.resting(seen.layout.durable)
    return {
        "limits": {name: None if limit == UNLIMITED else limit for name, limit in limits.items()},
        "hour": _spent(ledger.hour()).fields(),
        "day": _spent(ledger.day()).fields(),
        "sessions": [{"session_id": name, **_spent(ledger.session(name)).fields()} for name in _sessions(ledger)],
        "resting": [
            {"reviewer": name, "fault": each.fault, "until": utc_stamp(each.until)} for name, each in resting.items()
        ],
        "machine": {"reviews": seats.taken(seen.env, settings.max_reviews), "limit": settings.max_reviews},
    }


def _spent(spendings: Sequence[Spending]) -> Spent:
    return Spent(reviews=len(spendings), usd=round(budget.paid(spendings), 6), tokens=budget.tokens(spendings))


def _sessions(ledger: Ledger) -> list[str]:
    """The sessions that were heard of last, the last one first."""
    named = dict.fromkeys(each.session for each in reversed(ledger.spendings) if each.session)
    return list(named)[:_MOST_SESSIONS]
