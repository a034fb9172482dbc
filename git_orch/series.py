"""An agent at work on a difference that takes several calls: one attempt after the other, judged as one reviewer.

It behaves as an `Attempt` does. A difference of ordinary size is one call; one that is left out by rule is none.
"""

from __future__ import annotations

import time

from git_orch import briefing, verdict
from git_orch.attempt import Attempt
from git_orch.briefing import Briefing
from git_orch.budget import LEAST_USD
from git_orch.errors import OrchError
from git_orch.model import NotStarted, Skipped, Usage, utc_stamp
from git_orch.reviewers.reading import Answer, Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    from git_orch.attempt import Subject
    from git_orch.guardian import Guard
    from git_orch.model import Cancelled, Fault, Json, Outcome, Review, ReviewerSettings
    from git_orch.store import Changed

_LAST = "the calls before it were its last"


class Series:
    """The attempts of one agent. `withheld` are the changed paths of which its tree has the base's version."""

    def __init__(
        self,
        settings: ReviewerSettings,
        subject: Subject,
        changed: Sequence[Changed],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.withheld: tuple[str, ...] = ()
        self._subject = subject
        self._changed = changed
        self._clock = clock
        self._attempts: list[Attempt] = []
        self._next = 0
        self._skipped: tuple[Skipped, ...] = ()
        self._assigned = False
        self._because: Outcome | None = None
        self._fault = ""
        self._rests: tuple[Fault | Literal[""], float] = ("", 0.0)
        self._most_usd = settings.budget_usd
        self._is_spent = False
        self._assign_ms = 0
        self._review: Review | None = None

    # -- start

    def prepare(self) -> None:
        """It is known what the agent is to read, and in how many calls; or the series has ended with why it does not.

        Nothing is on the disk yet, and nothing costs.
        """
        if self._assigned or self._because is not None:
            return
        begun = self._clock()
        subject = self._subject
        try:
            work = briefing.assign(
                self.settings, subject.intent, subject.store, subject.env, subject.patch, self._changed
            )
        except OrchError as error:
            self.refuse(error.message, error.code)
            return
        finally:
            self._assign_ms = int((self._clock() - begun) * 1000)
        self._assigned = True
        self._skipped = tuple(Skipped(path=path, reason=reason) for path, reason in work.skipped.items())
        self.withheld = work.overlay.paths
        if work.refusal:
            self.refuse(work.refusal, "too-large")
            return
        for number, portion in enumerate(work.portions):
            own = subject.replace(patch=portion.patch, offered=portion.paths)
            self._attempts.append(Attempt(self.settings, own, self._clock, Briefing(work, number)))

    def materialize(self) -> None:
        """The first tree lies on the disk, or the series has ended with the reason why not."""
        self.prepare()
        if self._because is None and self._attempts:
            self._attempts[0].materialize()

    def may_cost(self, usd: float) -> None:
        """All calls together cost no more than that, where the client keeps to it."""
        self._most_usd = usd
        self._bound_next()

    def _bound_next(self) -> None:
        if self._attempts and self._most_usd >= 0:
            self._current.may_cost(max(0.0, self._most_usd - self._paid_usd))

    @property
    def _paid_usd(self) -> float:
        return sum(attempt.paid_usd for attempt in self._attempts)

    def launch(self, lock_fd: int) -> None:
        """The agent runs, or the series has ended."""
        if self._because is None and self._attempts:
            self._attempts[0].launch(lock_fd)

    def refuse(self, reason: str, fault: str = "") -> None:
        """The agent is not called at all."""
        self._because = NotStarted(reason=reason)
        self._fault = fault

    def rest(self, reason: str, fault: Fault, until: float) -> None:
        """The agent is not called, for its provider has said that it is no use before that time."""
        self.refuse(reason, fault)
        self._rests = (fault, until)

    def retry(self, lock_fd: int) -> bool:
        """Whether the agent runs once more: it had said nothing, or there is more for it to read."""
        if self._because is not None or not self._attempts:
            return False
        if self._current.retry(lock_fd):
            return True
        while self._next + 1 < len(self._attempts) and isinstance(self._current.answer, Answer):
            if 0 <= self._most_usd < self._paid_usd + LEAST_USD:
                self._is_spent = True
                return False
            self._next += 1
            self._bound_next()
            self._current.materialize()
            self._current.launch(lock_fd)
            if not self._current.ended:
                return True
        return False

    # -- while it runs

    @property
    def _current(self) -> Attempt:
        return self._attempts[self._next]

    @property
    def guard(self) -> Guard | None:
        """The guardian of the present call."""
        return self._current.guard if self._attempts else None

    @property
    def ended(self) -> bool:
        """Whether nothing of the agent is left; there may be more for it to read (`retry`)."""
        if self._attempts and self._because is None:
            return self._current.ended
        return self._because is not None or self._assigned

    @property
    def fault(self) -> str:
        """The code of the error for which it did not start; "" where it did."""
        return self._fault or (self._attempts[0].fault if self._attempts else "")

    @property
    def unkillable(self) -> bool:
        """Whether processes of it are still there after SIGKILL."""
        return bool(self._attempts) and self._current.unkillable

    @property
    def job(self) -> Json:
        """The present call as the run's state has it, for people to read."""
        if self._attempts:
            return self._current.job
        return Attempt(self.settings, self._subject, self._clock).job | {"status": "done" if self.ended else "starting"}

    @property
    def materialized(self) -> str:
        """How the first tree was made."""
        return self._attempts[0].materialized if self._attempts else ""

    @property
    def materialize_ms(self) -> int:
        """What the trees and the assignment took."""
        return self._assign_ms + sum(attempt.materialize_ms for attempt in self._attempts)

    def cancel(self, because: Cancelled) -> None:
        """The agent is being ended, or will not be called."""
        if self._attempts:
            self._current.cancel(because)
        else:
            self._because = because

    def kill(self) -> None:
        """The agent is being killed, without a grace."""
        for attempt in self._attempts:
            attempt.kill()

    def listen(self) -> None:
        """What the guardian has said is taken in."""
        if self._attempts:
            self._current.listen()

    def tick(self) -> None:
        """The agent is being ended where its time is up, where it is silent, or where it floods its output."""
        if self._attempts:
            self._current.tick()

    def due_s(self) -> float:
        """Seconds until the time of the present call is up."""
        return self._current.due_s() if self._attempts else self.settings.timeout_s

    # -- afterwards

    @property
    def outcome(self) -> Outcome:
        """How the last call ended."""
        if self._because is not None:
            return self._because
        return self._current.outcome if self._attempts else NotStarted(reason="all of it is left out by rule")

    @property
    def answer(self) -> Answer | Unusable:
        """What all calls together came to: one that failed leaves its files unread, and those after it."""
        if self._because is not None or not self._assigned:
            return Unusable(reason=getattr(self._because, "reason", "") or "it was not started")
        answers = [attempt.answer for attempt in self._done]
        if len(self._attempts) == 1 and isinstance(answers[0], Unusable):
            return answers[0]
        skipped = [
            *self._skipped,
            *(skip for answer in answers if isinstance(answer, Answer) for skip in answer.skipped),
        ]
        for attempt, answer in zip(self._attempts, [*answers, *self._attempts], strict=False):
            if not isinstance(answer, Answer):
                reason = answer.reason if isinstance(answer, Unusable) else self._why_unread
                skipped += [Skipped(path=path, reason=reason) for path in attempt.offered]
        return Answer(
            findings=tuple(finding for answer in answers for finding in answer.findings),
            reviewed=tuple(path for answer in answers if isinstance(answer, Answer) for path in answer.reviewed),
            skipped=tuple(skipped),
            note="; ".join(answer.note for answer in answers if isinstance(answer, Answer) and answer.note),
        )

    @property
    def _why_unread(self) -> str:
        return f"the ${self._most_usd:.2f} of a review are spent" if self._is_spent else _LAST

    @property
    def is_to_be_called(self) -> bool:
        """Whether there is something for the agent to read, and nothing against it."""
        return bool(self._attempts) and self._because is None

    @property
    def was_called(self) -> bool:
        """Whether the agent was started at all."""
        return any(attempt.guard is not None for attempt in self._attempts)

    @property
    def moved(self) -> tuple[str, ...]:
        """What of the user's git directory changed meanwhile."""
        return tuple(dict.fromkeys(path for attempt in self._done for path in attempt.moved))

    def review(self) -> Review:
        """What the agent made of the difference."""
        if self._review is None:
            self._review = self._judge()
        return self._review

    def park(self) -> None:
        """One clean tree waits for the next run."""
        for attempt in self._done:
            attempt.park()

    @property
    def _done(self) -> list[Attempt]:
        """The calls that were made."""
        return self._attempts[: self._next + 1] if self._because is None else []

    def _judge(self) -> Review:
        reviews = [attempt.review() for attempt in self._done]
        tampered = next((review.reason for review in reviews if review.reason.startswith("tampered:")), "")
        last = reviews[-1] if reviews else None
        judged = verdict.of_reviewer(
            self.settings,
            self.outcome,
            self.answer,
            littered=tuple(dict.fromkeys(path for review in reviews for path in review.littered)),
            duration_ms=sum(review.duration_ms for review in reviews),
            usage=sum((review.usage for review in reviews), Usage()),
        )
        if tampered:
            judged = judged.replace(verdict="unreviewed", reason=tampered, findings=(), reviewed=(), skipped=())
        if last is None:
            fault, until = self._rests
            return judged.replace(fault=fault, resets_at=utc_stamp(until) if until else "")
        return judged.replace(
            fault=last.fault,
            resets_at=last.resets_at,
            session_id=last.session_id,
            client=last.client,
            adjusted=tuple(dict.fromkeys(each for review in reviews for each in review.adjusted)),
        )
