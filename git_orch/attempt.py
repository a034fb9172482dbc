"""One reviewer at work on one tree: started, watched, ended by its guardian, and its output read."""

from __future__ import annotations

import os
import time

from git_orch import atomic, earlier, findings, integrity, parking, request, runs, sight, tree, verdict
from git_orch.config import BUILT_IN, is_agent
from git_orch.containment import Containment, Job
from git_orch.containment.descendants import stat_fields
from git_orch.errors import OrchError
from git_orch.guardian import Guard
from git_orch.inspection import Inspection, inspect
from git_orch.model import Cancelled, Exited, NotStarted, Record, Stalled, TimedOut, Unkillable, Usage
from git_orch.place import make_place
from git_orch.request import Request
from git_orch.reviewers import answers, protocol
from git_orch.reviewers.answers import Unusable
from git_orch.system import FOLDER, at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from git_orch.briefing import Briefing
    from git_orch.earlier import Earlier
    from git_orch.model import Finding, Json, Outcome, Review, ReviewerSettings
    from git_orch.patch import Lines
    from git_orch.place import Place
    from git_orch.registry import Intent
    from git_orch.reviewers.answers import Answer
    from git_orch.store import Store

OUTPUT_LIMIT = 64 << 20
_STREAMS = ("result.out", "result.err")
_TOLD_OF_STDERR = 4096


class Subject(Record):
    """What all reviewers of a run look at: the difference, once as a patch and once as the paths that it offers.

    `foreign` is a configuration above the trees that tools in them would obey, "" where there is none.
    """

    intent: Intent
    store: Store
    key: bytes
    env: dict[str, str]
    patch: bytes
    offered: tuple[str, ...]
    containment: Containment
    earlier: tuple[Earlier, ...] = ()
    foreign: str = ""


class Attempt:
    """One reviewer's part of a run: `materialize`, `launch`, then `listen` and `tick` until it has `ended`.

    `fault` is the code of the error for which it did not start. An agent's attempt has a `briefing`.
    """

    def __init__(
        self,
        settings: ReviewerSettings,
        subject: Subject,
        clock: Callable[[], float] = time.monotonic,
        briefing: Briefing | None = None,
    ) -> None:
        self.settings = settings
        self.materialized = ""
        self.materialize_ms = 0
        self.fault = ""
        self.guard: Guard | None = None
        self.folder = os.path.join(subject.intent.run_dir, settings.name, briefing.label if briefing else "").rstrip(
            "/"
        )
        self._subject = subject
        self._briefing = briefing
        self._clock = clock
        self._containment = subject.containment
        self._because: Outcome | None = None
        self._answer: Answer | Unusable | None = None
        self._inspection: Inspection | None = None
        self._review: Review | None = None
        self._place: Place | None = None
        self._request: Request | None = None
        self._before: tuple[integrity.Look, integrity.Look] | None = None
        self._change = integrity.Change()
        self._job_started = 0
        self._spent = Usage()
        self._tries = 0
        self._started = self._active = clock()
        self._seen: tuple[int, float] = (0, 0.0)

    # -- start

    def materialize(self) -> None:
        """The tree lies on the disk with the request beside it, or the attempt has ended with the reason why not."""
        begun = self._clock()
        try:
            runs.make_folder(self.folder)
            if self._subject.foreign and not self._is_built_in():  # the built-in checks obey no file
                self.refuse(f"foreign configuration {self._subject.foreign}", "foreign-configuration")
            else:
                self._make()
        except OrchError as error:
            self.refuse(error.message, error.code)
        except OSError as error:
            self.refuse(": ".join(filter(None, (error.strerror, error.filename))), "environment")
        self.materialize_ms = int((self._clock() - begun) * 1000)
        self._started = self._active = self._clock()

    def launch(self, lock_fd: int) -> None:
        """The reviewer runs, or the attempt has ended with the reason why it does not."""
        if self._because is not None:
            return
        try:
            self._hold(lock_fd)
        except OrchError as error:
            self.refuse(error.message, error.code)
        if self._tries == 1:
            self._started = self._active = self._clock()

    def refuse(self, reason: str, fault: str = "") -> None:
        """The reviewer is not started at all."""
        self._because = NotStarted(reason=reason)
        self.fault = fault

    def may_cost(self, usd: float) -> None:
        """The call, with its second try, costs no more than that, where the client keeps to it."""
        if self._briefing is not None:
            self._briefing.may_cost(usd)

    @property
    def paid_usd(self) -> float:
        """What the call has cost so far, with its second try."""
        return self._briefing.paid_usd if self._briefing is not None else 0.0

    def retry(self, lock_fd: int) -> bool:
        """Whether the reviewer was started once more, within the same time: it had ended well and said nothing."""
        assert self._request is not None
        if self._tries > 1 or not self._said_nothing() or self._is_tampered():
            return False
        try:
            os.unlink(self._request.result_path)
        except OSError:
            pass
        self._spent = self._usage()
        self._answer = self._inspection = None
        self._request = self._request.replace(nonce=os.urandom(16).hex())
        self.launch(lock_fd)
        return True

    def _make(self) -> None:
        subject, intent = self._subject, self._subject.intent
        name = ".".join(filter(None, (self.settings.name, self._briefing.label if self._briefing else "")))
        self._place = place = make_place(intent.temp_root, intent.run_id, name, subject.key)
        self.materialized = tree.materialize(subject.store, self._tree_id, place)
        self._request = Request(
            folder=place.request,
            tree=place.tree,
            run_id=intent.run_id,
            tree_id=intent.tree_id,
            base_tree_id=intent.base_tree_id,
            nonce=os.urandom(16).hex(),
            cookie=request.cookie_of(intent.run_id, subject.key),
            temp=os.path.join(place.root, "tmp"),
            ceiling=intent.temp_root,
        )
        self._request.write(subject.patch, subject.offered)
        earlier.hand_over(intent.run_dir, place.request, subject.earlier)

    @property
    def _tree_id(self) -> str:
        """The tree that the reviewer works in: an agent's has the base's version of what steers agents."""
        return self._briefing.tree_id if self._briefing else self._subject.intent.tree_id

    def _hold(self, lock_fd: int) -> None:
        """A guardian holds the job: with the view of tier 1, or, where that cannot be made, without it and told."""
        self._tries += 1
        self.guard = self._guard(lock_fd)
        if self.guard.denied and isinstance(self.guard.outcome, NotStarted):
            reason = f"checkout-writable: {self.guard.outcome.reason}"
            self._containment = Containment(tier=2, degraded_reason=reason)
            self.guard = self._guard(lock_fd)
        self._job_started = _start_time(self.guard.job_pid)

    def _guard(self, lock_fd: int) -> Guard:
        if self._containment.tier != 1 and self._before is None:
            self._before = integrity.look(self._subject.intent)
        return Guard.start(self._job(), lock_fd=lock_fd)

    def _job(self) -> Job:
        assert self._place is not None
        assert self._request is not None
        subject = self._subject
        view = sight.view(subject.intent, self._place, subject.env) if self._containment.tier == 1 else None
        if self._briefing is not None:
            call = self._briefing.command(self._request, self.folder, subject.env)
            argv, env, stdin_path = call.argv, call.env, call.stdin_path
            view = self._briefing.seen(view, subject.env) if view else None
        else:
            env = self._request.environment(subject.env)
            argv, stdin_path = protocol.of(self.settings).argv(self.settings, env), ""
        return Job(
            argv=argv,
            env=env,
            cwd=self._place.tree,
            stdin_path=stdin_path,
            stdout_path=os.path.join(self.folder, "result.out"),
            stderr_path=os.path.join(self.folder, "result.err"),
            containment=self._containment,
            view=view,
        )

    def _is_built_in(self) -> bool:
        return self.settings.name == BUILT_IN and not self.settings.command

    # -- while it runs

    @property
    def ended(self) -> bool:
        """Whether nothing of the reviewer is left and its outcome is known."""
        return self._because is not None if self.guard is None else self.guard.gone

    @property
    def unkillable(self) -> bool:
        """Whether processes of it are still there after SIGKILL."""
        return self.guard is not None and not self.guard.gone and isinstance(self.guard.outcome, Unkillable)

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
        if self.unkillable:
            return "unkillable"
        if self.ended:
            return "done"
        return "starting" if self.guard is None else "stopping" if self._because else "running"

    def cancel(self, because: Cancelled) -> None:
        """The reviewer is being ended, or will not be started."""
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
        now = self._clock()
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
        return max(0.0, self._started + self.settings.timeout_s - self._clock())

    def _end(self, because: Outcome) -> None:
        if self._because is None:
            self._because = because
            if self.guard is not None and not self.guard.gone:
                self.guard.terminate()

    def _written(self) -> int:
        total = 0
        for name in _STREAMS:
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

    @property
    def offered(self) -> tuple[str, ...]:
        """The paths that the reviewer has to account for."""
        return self._subject.offered

    @property
    def moved(self) -> tuple[str, ...]:
        """What of the user's git directory changed meanwhile as it does when one works, where that was looked at."""
        return self._change.moved

    def review(self) -> Review:
        """What the reviewer made of the tree. Nothing of it runs any more; its tree is inspected, once."""
        if self._review is None:
            self._review = self._judge()
        return self._review

    def park(self) -> None:
        """The tree waits for the next run where it is as it was made; else for its disposal."""
        if self._place is not None and self._inspection is not None:
            parking.park(self._place, self._subject.store, self._inspection)

    def _judge(self) -> Review:
        duration_ms = int((self._clock() - self._started) * 1000)
        self._shorten()
        tampered = self._inspected().tampered if self._was_held() else ()
        if self._before is not None:
            self._change = integrity.change(self._before, integrity.look(self._subject.intent))
        review = verdict.of_reviewer(
            self.settings,
            self.outcome,
            self.answer,
            tampered=(*self._change.settings, *tampered),
            littered=self._inspected().littered if self._was_held() else (),
            duration_ms=duration_ms,
            usage=self._usage(),
        )
        return self._briefing.dressed(review) if self._briefing else review

    def _was_held(self) -> bool:
        return self._place is not None and self.guard is not None

    def _is_tampered(self) -> bool:
        return bool(self._inspected().tampered)

    def _said_nothing(self) -> bool:
        is_well = self._because is None and isinstance(self.outcome, Exited) and self.outcome.code == 0
        return is_well and isinstance(self.answer, Unusable) and self.answer.empty

    def _usage(self) -> Usage:
        """What all tries have cost."""
        now = (self.guard.usage if self.guard else Usage()) + self._spent
        return now + self._briefing.spent if self._briefing else now

    def _inspected(self) -> Inspection:
        """What became of the tree; the places that were made in it for what it was lent are gone again."""
        if self._inspection is None:
            assert self._place is not None
            _remove_places(self._place.tree, [place for _, place in sight.provided(self._subject.intent)])
            try:
                self._inspection = inspect(self._place, self._subject.store, self._tree_id)
            except OrchError as error:
                self._inspection = Inspection(tampered=(f"its tree cannot be compared: {error.message}",))
        return self._inspection

    def _shorten(self) -> None:
        """A flood is not kept beyond the limit."""
        for name in _STREAMS:
            path = os.path.join(self.folder, name)
            try:
                if os.stat(path).st_size > OUTPUT_LIMIT:
                    os.truncate(path, OUTPUT_LIMIT)
            except OSError:
                continue

    def _read_answer(self) -> Answer | Unusable:
        root = self._place.tree if self._place else ""
        if self._briefing is not None:
            streams = (self._output("result.out"), self._output("result.err")[-_TOLD_OF_STDERR:])
            return self._briefing.read(self._request, self.outcome, *streams, root)
        asked = answers.Request(
            nonce=self._request.nonce if self._request else "",
            offered=self._subject.offered,
            tokens={},
            root=root,
        )
        return answers.read(
            self.settings,
            raw_result=self._request.result() if self._request else None,
            raw_stdout=self._output("result.out"),
            raw_stderr=self._output("result.err")[-_TOLD_OF_STDERR:],
            outcome=self.outcome,
            request=asked,
        )

    def _output(self, name: str) -> bytes:
        return atomic.read(os.path.join(self.folder, name), limit=OUTPUT_LIMIT) or b""


def settled(review: Review, subject: Subject, changed_lines: Mapping[str, Lines]) -> tuple[Finding, ...]:
    """The review's findings with the severity that its reviewer may give them."""
    settings = next(each for each in subject.intent.reviewers if each.name == review.name)
    return findings.settle(review.findings, changed_lines=changed_lines, from_agent=is_agent(settings))


def _remove_places(top: str, places: list[str]) -> None:
    """What was made in the tree for a mount to lie on is gone, where it is empty; no link is followed on the way."""
    for place in places:
        *folders, name = place.split("/")
        fds = []
        try:
            fds.append(at.open(top, FOLDER))
            for folder in folders:
                fds.append(at.open(folder, FOLDER, dir_fd=fds[-1]))
            at.rmdir(name, dir_fd=fds[-1])
        except OSError:  # the tree's own, or not there
            pass
        finally:
            for fd in fds:
                os.close(fd)


def _start_time(pid: int) -> int:
    """When the process began, in clock ticks since boot; 0 where it is gone already. For people to read."""
    try:
        return int(stat_fields(pid)[19])
    except (OSError, IndexError):
        return 0
