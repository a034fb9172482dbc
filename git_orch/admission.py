"""Whether an agent may be called: not while it rests, only within the budget, and only where a seat is free.

In this order, so that a call that would be refused anyway takes nothing from others. What was taken is given back, and
what the call has cost is in the ledger, once it has ended.
"""

from __future__ import annotations

import time

from git_orch import budget, cooldown, quiet, seats, session_name
from git_orch.model import Record
from git_orch.registry import BY_HAND
from git_orch.reviewers import agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal

    from git_orch.model import Fault, Review
    from git_orch.registry import Intent

_ANSWERS = ("pass", "findings", "nothing-to-review")


class Admitted(Record):
    """The agent may be called, and cost that much."""

    usd: float


class Refused(Record):
    """The agent is not called in this run; `fault` and `until` where it is because it rests."""

    reason: str
    code: str
    fault: Fault | Literal[""] = ""
    until: float = 0.0


class Waits(Record):
    """The agent may be called later: others hold all seats."""


class Admission:
    """The door that a run's agents go through, one by one."""

    def __init__(self, intent: Intent, env: Mapping[str, str], clock: Callable[[], float] = time.time) -> None:
        self._intent = intent
        self._env = env
        self._clock = clock
        self._seats: dict[str, int] = {}
        self._places: dict[str, seats.Place | None] = {}
        self._entered: set[str] = set()

    # -- before

    def refusal(self, name: str) -> Refused | None:
        """Why the agent will not be called, as far as it can be told without taking anything."""
        resting = self._resting(name)
        if resting is not None:
            return resting
        if not self._intent.bound:
            return None
        reason = budget.read(self._intent.durable, self._clock()).why_not(self._intent.budget, self._session)
        return _over(reason) if reason else None

    def enter(self, name: str, wanted_usd: float) -> Admitted | Refused | Waits:
        """The agent may be called now, and is in the ledger with the most that it may cost; or why not."""
        if (refused := self.refusal(name)) is not None:  # others have called it since it was looked at
            self._leave_line(name)
            return refused
        seat = seats.take(self._env, self._intent.max_reviews, self._places.get(name))
        if seat == seats.NO_SEAT:
            if self._places.get(name) is None:
                self._places[name] = seats.stand_in_line(self._env)
            return Waits()
        self._leave_line(name)
        self._seats[name] = seat
        granted = self._reserve(name, wanted_usd)
        if isinstance(granted, budget.Granted):
            self._entered.add(name)
            return Admitted(usd=granted.usd)
        self._stand_up(name)
        return _over(granted.reason)

    def _leave_line(self, name: str) -> None:
        seats.leave_line(self._places.pop(name, None))

    def _reserve(self, name: str, wanted_usd: float) -> budget.Granted | budget.Denied:
        intent = self._intent
        try:
            return budget.reserve(
                intent.durable,
                self._id(name),
                intent.budget,
                session=self._session,
                wanted_usd=wanted_usd,
                is_kept_to=agents.keeps_to_a_price(name),
                bound=intent.bound,
                now=self._clock(),
            )
        except OSError as error:
            return budget.Denied(reason=f"the ledger cannot be written: {error.strerror}")

    def _resting(self, name: str) -> Refused | None:
        rests = None if self._intent.fresh else cooldown.of(self._intent.durable, name, self._clock())
        if rests is None:
            return None
        from git_orch.reviewers import faults

        reason = faults.until(rests.fault, rests.until)
        return Refused(reason=reason, code=rests.fault, fault=rests.fault, until=rests.until)

    # -- afterwards

    def leave(self, name: str, review: Review, *, was_called: bool) -> None:
        """The seat is free, the ledger has what the call cost, and a provider that said "later" is not asked before."""
        self._leave_line(name)
        if name not in self._entered:
            return
        self._entered.discard(name)
        self._stand_up(name)
        durable, usage = self._intent.durable, review.usage
        try:
            if was_called:
                budget.settle(durable, self._id(name), usd=usage.cost_usd, tokens=usage.tokens)
            else:
                budget.release(durable, self._id(name))
            if review.verdict in _ANSWERS:
                cooldown.clear(durable, name)
            elif review.fault:
                cooldown.note(durable, name, review.fault, until=seconds(review.resets_at), now=self._clock())
        except OSError:  # a full disk: what it was given goes on to count
            pass

    def _stand_up(self, name: str) -> None:
        seats.give_back(self._seats.pop(name, seats.NO_SEAT))

    # -- the session's quiet

    def quiet_in_s(self) -> float:
        """Seconds until the session has been quiet for long enough; 0 where it has, or where nobody fired the run."""
        intent = self._intent
        if intent.client == BY_HAND:
            return 0.0
        begun = seconds(intent.started_at)
        return min(intent.settle_s, max(0.0, begun + intent.settle_s - self._clock()))

    def why_wait(self) -> str:
        """What an agent that may not be called yet waits for, in a few words."""
        if self.quiet_in_s() > 0:
            return "waits for the session to be quiet"
        return f"waits: no more than {self._intent.max_reviews} agents review at once"

    def is_overtaken(self) -> bool:
        """Whether the session's person has typed something since the run was fired."""
        intent = self._intent
        if intent.client == BY_HAND:
            return False
        name = session_name.of(intent.client, intent.session_id, intent.worktree_path)
        return quiet.disturbed_at(intent.durable, name) > seconds(intent.started_at)

    @property
    def _session(self) -> str:
        return "" if self._intent.client == BY_HAND else self._intent.session_id

    def _id(self, name: str) -> str:
        return f"{self._intent.run_id}/{name}"


def seconds(stamp: str) -> float:
    """The instant that `model.utc_stamp` wrote, in seconds since 1970; 0 where it is none."""
    if len(stamp) != len("2026-11-30T20:15:00.123Z"):
        return 0.0
    year, month, day = int(stamp[:4]), int(stamp[5:7]), int(stamp[8:10])
    of_day = int(stamp[11:13]) * 3600 + int(stamp[14:16]) * 60 + int(stamp[17:19])
    # The year begins in March here, so that the leap day is its last (days_from_civil, as in commands/history).
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    days = year * 365 + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719_469
    return days * 86_400 + of_day + int(stamp[20:23]) / 1000


def _over(reason: str) -> Refused:
    return Refused(reason=f"{budget.KEPT}{reason}", code="over-budget")
