"""What agents may cost and have cost: the day in one line, and `git orch status --budget`."""

from __future__ import annotations

from git_orch.formats.paragraphs import joined, sentences
from git_orch.formats.terminal import Terminal, pad, wrap
from git_orch.formats.words import money, plural, tokens
from git_orch.model import UNLIMITED, Budget, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LABELS = 9  # cells: "this hour"


class Spent(Record):
    """Agent reviews of one stretch of time, or of one session: how many, for how much, as far as clients tell."""

    reviews: int = 0
    usd: float = 0.0
    tokens: int = 0


class BudgetView(Record):
    """What `status --budget` shows. `sessions` have their short names; `resting` are whole sentences."""

    limits: Budget = Budget()
    review_usd: float = 1.0
    hour: Spent = Spent()
    day: Spent = Spent()
    sessions: tuple[tuple[str, Spent], ...] = ()
    resting: tuple[str, ...] = ()
    seats_taken: int = 0
    seats: int = 2


def today(view: BudgetView) -> str:
    """`today: 7 agent reviews, $0.41 of $5.00; this hour 3 of 12`; "" on a day without any."""
    if not view.day.reviews:
        return ""
    reviews = plural(view.day.reviews, "agent review")
    return f"today: {reviews}, {of_money(view.day.usd, view.limits.usd)}; this hour {_hour(view)}"


def of_money(usd: float, limit: float) -> str:
    """`$0.41 of $5.00`, or what was spent alone where there is no limit."""
    spent = money(usd) if usd > 0 else "$0.00"
    return spent if limit == UNLIMITED else f"{spent} of ${limit:.2f}"


def budget_text(view: BudgetView, terminal: Terminal) -> str:
    """The limits with what is used of them, the sessions, who rests, and what runs on the machine."""
    reviews = _of(view.day.reviews, view.limits.day)
    used = [f"{reviews} agent reviews", of_money(view.day.usd, view.limits.usd)]
    counted = tokens(view.day.tokens) if view.limits.tokens == UNLIMITED else ""
    used.append(counted or f"{view.day.tokens} of {view.limits.tokens} tokens")
    rows = [
        ("this hour", f"{_hour(view)} agent reviews"),
        ("today", ", ".join(used)),
        ("a review", _of_a_review(view.review_usd)),
        ("machine", f"{view.seats_taken} of {view.seats} agent reviews at once, over all repositories"),
    ]
    per_session = [(name, _of_a_session(spent, view.limits.session)) for name, spent in view.sessions]
    parts = [["Budget of this repository", *_rows(rows, terminal)]]
    if per_session:
        parts.append(["Sessions", *_rows(per_session, terminal)])
    if view.resting:
        parts.append(["Not called for now", *sentences(view.resting, terminal)])
    return joined(parts)


def _hour(view: BudgetView) -> str:
    return _of(view.hour.reviews, view.limits.hour)


def _of(count: int, limit: int) -> str:
    return str(count) if limit == UNLIMITED else f"{count} of {limit}"


def _of_a_review(usd: float) -> str:
    return "no limit" if usd == UNLIMITED else f"at most ${usd:.2f}, where the client can keep to it (claude)"


def _of_a_session(spent: Spent, limit: int) -> str:
    told = [
        f"{_of(spent.reviews, limit)} agent reviews" if limit != UNLIMITED else plural(spent.reviews, "agent review")
    ]
    return ", ".join([*told, money(spent.usd)] if spent.usd > 0 else told)


def _rows(rows: Sequence[tuple[str, str]], terminal: Terminal) -> list[str]:
    lines: list[str] = []
    for label, text in rows:
        first = f"  {pad(terminal.shown(label), _LABELS)}  "
        lines += wrap(text, terminal.width, first=first, rest=" " * len(first))
    return lines
