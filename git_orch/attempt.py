"""One reviewer at work on one tree: started, watched, ended by its guardian, and its output read."""

from __future__ import annotations

import os
import time

from git_orch import atomic, findings, parking, runs, sight, tree, verdict
from git_orch import key as keys
from git_orch.containment import Containment, Job
from git_orch.containment.descendants import stat_fields
from git_orch.errors import OrchError
from git_orch.guardian import Guard
from git_orch.inspection import inspect
from git_orch.model import Cancelled, NotStarted, Record, Stalled, TimedOut, Unkillable, Usage
from git_orch.place import make_place
from git_orch.request import Request
from git_orch.reviewers import answers, protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.model import Finding, Json, Outcome, Review, ReviewerSettings
    from git_orch.patch import Lines
    from git_orch.registry import Intent
    from git_orch.reviewers.answers import Answer, Unusable
    from git_orch.inspection import Inspection
    from git_orch.place import Place
    from git_orch.store import Store

OUTPUT_LIMIT = 64 << 20


class Subject(Record):
    """What all reviewers of a run look at: the difference, once as a patch and once as the paths that it offers."""

    intent: Intent
    store: Store
    key: bytes
    env: dict[str, str]
    patch: bytes
    offered: tuple[str, ...]
    containment: Containment


class Attempt:
    """One reviewer's part of a run. `review` is there once `ended` is true."""

    def __init__(self, settings: ReviewerSettings, subject: Subject, lock_fd: int) -> None:
        self.settings = settings
        self.materialized = ""
        self.materialize_ms = 0
        self.guard: Guard | None = None
        self._subject = subject
        self._lock_fd = lock_fd
        self._because: Outcome | None = None
        self._answer: Answer | Unusable | None = None
        self._inspection: Inspection | None = None
        self._review: Review | None = None
        self._place: Place | None = None
        self._request: Request | None = None
        self._started = time.monotonic()
        self._active = self._started
        self._seen: tuple[int, float] = (0, 0.0)
        self._job_started = 0
        self._containment = subject.containment
        self.folder = os.path.join(subject.intent.run_dir, settings.name)

    # -- start

    def start(self) -> None:
        """The reviewer runs, or the attempt has ended with the reason why it does not."""
        runs.make_folder(self.folder)
        try:
            self._materialize()
            self._guard()
        except OrchError as error:
            self._because = NotStarted(reason=error.message)
        self._started = self._active = time.monotonic()

    def refuse(self, reason: str) -> None:
        """The reviewer is not started at all."""
        self._because = NotStarted(reason=reason)

    def _materialize(self) -> None:
        begun = time.monotonic()
        intent = self._subject.intent
        self._place = make_place(intent.temp_root, intent.run_id, self.settings.name, self._subject.key)
        self.materialized = tree.materialize(self._subject.store, intent.tree_id, self._place)
        self._request = Request(
            folder=self._place.request,
            tree=self._place.tree,
            run_id=intent.run_id,
            tree_id=intent.tree_id,
            base_tree_id=intent.base_tree_id,
            nonce=os.urandom(16).hex(),
            cookie=f"{intent.run_id}.{keys.mac(self._subject.key, 'task', intent.run_id)}",
            temp=os.path.join(self._place.root, "tmp"),
            ceiling=intent.temp_root,
        )
        self._request.write(self._subject.patch, self._subject.offered)
        self.materialize_ms = int((time.monotonic() - begun) * 1000)

    def _guard(self) -> None:
        """A guardian holds the job: with the view of tier 1, or, where that cannot be made, without it and told."""
        assert self._place is not None and self._request is not None
        self.guard = Guard.start(self._job(), lock_fd=self._lock_fd)
        if isinstance(self.guard.outcome, NotStarted) and self._containment.tier == 1:
            self._containment = Containment(tier=2, degraded_reason=self.guard.outcome.reason)
            self.guard = Guard.start(self._job(), lock_fd=self._lock_fd)
        self._job_started = _start_time(self.guard.job_pid)

    def _job(self) -> Job:
        assert self._place is not None and self._request is not None
        subject = self._subject
        env = self._request.environment(subject.env)
        is_contained = self._containment.tier == 1
        return Job(
            argv=protocol.of(self.settings).argv(self.settings, env),
            env=env,
            cwd=self._place.tree,
            stdout_path=os.path.join(self.folder, "result.out"),
            stderr_path=os.path.join(self.folder, "result.err"),
            containment=self._containment,
            view=sight.view(subject.intent, self._place, subject.env, None) if is_contained else None,
        )

    # -- while it runs

    @property
    def ended(self) -> bool:
        """Whether nothing of the reviewer is left and its outcome is known."""
        return self._because is not None if self.guard is None else self.guard.gone

    @property
    def job(self) -> Json:
        """The attempt as the run's state has it, for people to read."""
        guard = self.guard
        return {
            "reviewer": self.settings.name,
            "tree_path": self._place.tree if self._place else "",
            "child_pid": guard.job_pid if guard else 0,
            "child_pgid": guard.job_pid if guard else 0,
            "child_starttime": self._job_started,
            "guardian_pid": guard.guardian_pid if guard else 0,
            "containment": self._containment.tier,
            "containment_degraded_reason": self._containment.degraded_reason,
            "status": self._status(),
        }

    def _status(self) -> str:
        if self.guard is not None and isinstance(self.guard.outcome, Unkillable):
            return "unkillable"
        return "done" if self.ended else "running"

    def cancel(self, because: Cancelled) -> None:
        """The reviewer is being ended."""
        self._end(because)

    def kill(self) -> None:
        """The reviewer is being killed, without a grace."""
        if self.guard is not None and not self.guard.gone:
            self.guard.kill()

    def listen(self) -> None:
        """What the guardian has said is taken in; where it was killed, all that it held is killed from here."""
        if self.guard is not None and not self.guard.gone:
            self.guard.read()
            if self.guard.lost and not self.guard.gone:
                self.guard.rescue()

    def tick(self) -> None:
        """The reviewer is being ended where its time is up, where it is silent, or where it floods its output."""
        if self.guard is None or self.ended or self._because is not None:
            return
        now = time.monotonic()
        written, cpu_s = self._written(), self.guard.cpu_s()
        if (written, round(cpu_s, 1)) != self._seen:
            self._seen, self._active = (written, round(cpu_s, 1)), now
        if now - self._started > self.settings.timeout_s:
            self._end(TimedOut(after_s=self.settings.timeout_s))
        elif now - self._active > self.settings.stall_s:
            self._end(Stalled(after_s=self.settings.stall_s))
        elif written > OUTPUT_LIMIT:
            self._end(Cancelled(reason=f"it wrote more than {OUTPUT_LIMIT >> 20} MiB"))

    def due_s(self) -> float:
        """Seconds until the reviewer's time is up."""
        return max(0.0, self._started + self.settings.timeout_s - time.monotonic())

    def _end(self, because: Outcome) -> None:
        if self._because is None:
            self._because = because
            if self.guard is not None and not self.guard.gone:
                self.guard.terminate()

    def _written(self) -> int:
        total = 0
        for name in ("result.out", "result.err"):
            try:
                total += os.stat(os.path.join(self.folder, name)).st_size
            except OSError:
                continue
        return total

    # -- afterwards

    @property
    def outcome(self) -> Outcome:
        """How the reviewer ended: our reason where we ended it, else its own."""
        if self._because is not None:
            return self._because
        return (self.guard.outcome if self.guard else None) or NotStarted(reason="it was not started")

    @property
    def answer(self) -> Answer | Unusable:
        """What the reviewer's output means."""
        if self._answer is None:
            self._answer = self._read_answer()
        return self._answer

    def review(self) -> Review:
        """What the reviewer made of the tree. Nothing of it runs any more; its tree is inspected, once."""
        if self._review is None:
            self._review = self._judge()
        return self._review

    def _judge(self) -> Review:
        duration_ms = int((time.monotonic() - self._started) * 1000)
        self._inspection = inspection = self._inspect()
        return verdict.of_reviewer(
            self.settings,
            self.outcome,
            self.answer,
            tampered=inspection.tampered if inspection else (),
            littered=inspection.littered if inspection else (),
            duration_ms=duration_ms,
            usage=self.guard.usage if self.guard else Usage(),
        )

    def _inspect(self) -> Inspection | None:
        if self._place is None or self.guard is None:
            return None
        return inspect(self._place, self._subject.store, self._subject.intent.tree_id)

    def _read_answer(self) -> Answer | Unusable:
        request = answers.Request(
            nonce=self._request.nonce if self._request else "",
            offered=self._subject.offered,
            tokens={},
            root=self._place.tree if self._place else "",
        )
        return answers.read(
            self.settings,
            raw_result=self._request.result() if self._request else None,
            raw_stdout=self._output("result.out"),
            raw_stderr=self._output("result.err")[-4096:],
            outcome=self.outcome,
            request=request,
        )

    def _output(self, name: str) -> bytes:
        return atomic.read(os.path.join(self.folder, name), limit=2 * OUTPUT_LIMIT) or b""

    def leave(self, *, park: bool) -> None:
        """The tree is parked for the next run where it is as it was made; else it waits for its disposal."""
        if park and self._place is not None and self._inspection is not None:
            parking.park(self._place, self._subject.store, self._inspection)


def _start_time(pid: int) -> int:
    """When the process began, in clock ticks since boot; 0 where it is gone already. For people to read."""
    try:
        return int(stat_fields(pid)[19])
    except (OSError, IndexError):
        return 0


def settled(review: Review, subject: Subject, changed_lines: Mapping[str, Lines]) -> tuple[Finding, ...]:
    """The review's findings with the severity that its reviewer may give them."""
    from_agent = protocol.of(_settings_of(review, subject)).from_agent
    return findings.settle(review.findings, changed_lines=changed_lines, from_agent=from_agent)


def _settings_of(review: Review, subject: Subject) -> ReviewerSettings:
    return next(settings for settings in subject.intent.reviewers if settings.name == review.name)
