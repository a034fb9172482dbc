"""A run followed to its end, and what an interrupt means on the way."""

from __future__ import annotations

import os
import time

from git_orch import journal, registry, report
from git_orch.commands import history
from git_orch.errors import NoSuchRun
from git_orch.model import Base, Change, Record, Report, Review
from git_orch.runs import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal

    from git_orch.commands.looking import Look
    from git_orch.commands.progress import Display
    from git_orch.model import Json
else:
    import _signal  # `signal` would cost an import of enum

POLL_S, LATER_POLL_S = 0.02, 0.1
SOON_S = 3.0  # for that long a run is looked at often: most reviews by the built-in checks are over by then
LIFE_S = 1.0
LOST_S = 3.0
TWICE_S = 2.0
ECHO_S = 1.0
_FROM_KERNEL, _FROM_PROCESS = 128, 0  # si_code: SI_KERNEL, SI_USER


class Left(Record):
    """The person went away; the run goes on."""


class Late(Record):
    """The time to wait was up; the run goes on."""


class Run:
    """A run seen from outside: what it has said so far, and whether it lives."""

    def __init__(self, seen: Look, run_id: str) -> None:
        self.run_id = run_id
        self.run_dir = seen.layout.run_dir(run_id)
        self.names: tuple[str, ...] = ()
        self.change: Change | None = None
        self.begun: dict[str, float] = {}
        self.waiting: dict[str, str] = {}
        self.reviews: dict[str, Review] = {}
        self._seen = seen
        self._events = os.path.join(self.run_dir, "events.jsonl")
        self._heard = 0
        self._size = -1
        self._is_cancelled = False
        self._looked = self._was_there = time.monotonic()
        intent = seen.book.intent(run_id) if seen.book is not None else None
        self.intent = None if isinstance(intent, registry.Refused) else intent
        if self.intent is not None:
            self.names = tuple(reviewer.name for reviewer in self.intent.reviewers)

    def listen(self) -> None:
        """Everything that the run has said by now is taken in."""
        size = _size(self._events)
        if size == self._size:
            return
        self._size = size
        events = journal.Journal(self.run_dir).read()
        for event in events[self._heard :]:
            self._hear(event)
        self._heard = len(events)

    def ended(self) -> Report | None:
        """The report, once the run has ended and its entry is gone. A run whose supervisor died is recorded here.

        Raises:
            NoSuchRun: it left neither an entry nor a record.
        """
        there = history.is_there(self.run_id, self._seen.book)
        found = None if there else report.load(self.run_dir)
        if found is None and time.monotonic() - self._looked > LIFE_S:
            self._looked = time.monotonic()
            self._look_after(there)
        return found

    def cancel(self) -> None:
        """The run is asked to end, and asked again where somebody wipes `.orch` and the word with it."""
        self._is_cancelled = True
        if self._seen.book is not None:
            self._seen.book.ask(self.run_id, "cancel")

    def outline(self) -> Report:
        """What is known of the run before it ends: enough for the line that begins its output."""
        intent = self.intent
        assert intent is not None
        return Report(
            run_id=self.run_id,
            tree_id=intent.tree_id,
            base=Base(tree_id=intent.base_tree_id, name=intent.base_name, commit=intent.base_commit),
            subject=intent.subject,
            verdict="unreviewed",
            change=self.change or Change(),
        )

    def _look_after(self, there: bool) -> None:
        """A dead run is reaped. One that is nowhere may be coming back, where somebody wiped `.orch` under it."""
        layout, book = self._seen.layout, self._seen.book
        if history.is_alive(self.run_id, layout, book):
            self._was_there = time.monotonic()
            if self._is_cancelled:
                self.cancel()
        elif there:
            from git_orch import reaper
            from git_orch.workspace import open_at

            reaper.sweep_one(open_at(os.getcwd(), self._seen.env, self._seen.settings, layout), self.run_id)
        elif time.monotonic() - self._was_there > LOST_S:
            raise NoSuchRun(
                f"run {short(self.run_id)} is gone and left no record", "git orch status lists what is there"
            )

    def _hear(self, event: Json) -> None:
        name = event.get("reviewer", "")
        match event["event"]:
            case "review.change":
                self.change = Change(**{key: event[key] for key in Change._fields})
            case "reviewer.waiting":
                self.waiting.update(dict.fromkeys(event.get("reviewers", ()), event.get("reason", "")))
            case "reviewer.started" | "reviewer.materializing":
                self.begun.setdefault(name, time.monotonic())
            case "reviewer.ended":
                known = {key: event[key] for key in ("outcome", "verdict", "reason", "note", "duration_ms")}
                # Only their number is known here: what they say comes with the report.
                self.reviews[name] = Review(name=name, **known, findings=(None,) * event.get("findings", 0))


class Interrupts:
    """SIGINT and SIGTERM, counted instead of obeyed. Outside Linux they end the command, and the run goes on.

    A terminal's Ctrl-C reaches git as well, which hands it on to us: one press must not count twice, so who sent a
    signal is looked at. What this process was told to ignore (`nohup`, `&` of a shell script) stays ignored.
    """

    def __init__(self, *, watch: bool = True) -> None:
        self.count = 0
        self.last_s = 0.0
        self._from_terminal_s = -ECHO_S
        self._watch = watch and hasattr(_signal, "sigtimedwait")
        self._watched: tuple[int, ...] = ()

    def __enter__(self) -> Interrupts:
        if self._watch:
            numbers = (_signal.SIGINT, _signal.SIGTERM)
            self._watched = tuple(number for number in numbers if _signal.getsignal(number) != _signal.SIG_IGN)
            _signal.pthread_sigmask(_signal.SIG_BLOCK, self._watched)
        return self

    def __exit__(self, *_: object) -> None:
        self.pause(0)  # one that came at the last moment must not end the command before it has told the verdict
        if self._watched:
            _signal.pthread_sigmask(_signal.SIG_UNBLOCK, self._watched)

    def pause(self, seconds: float) -> None:
        """That time has passed, or a signal came."""
        if not self._watched:
            time.sleep(seconds)
            return
        came = _signal.sigtimedwait(self._watched, seconds)
        if came is None:
            return
        now = time.monotonic()
        if came.si_code == _FROM_KERNEL:
            self._from_terminal_s = now
        elif came.si_pid == os.getppid() and now - self._from_terminal_s < ECHO_S:
            return
        self.count += 1
        self.last_s = now


def follow(
    run: Run, show: Display, interrupts: Interrupts, *, timeout_s: float | None = None, is_ours: bool = True
) -> Report | Left | Late:
    """The run's report once it has ended; or the person left, or the time was up, and the run goes on.

    On a terminal one interrupt leaves the run going, a second within two seconds cancels it. Elsewhere the first
    cancels, if this command has started the run (`is_ours`), else it leaves. A cancelled run is waited for: nothing of
    it is left when this returns.
    """
    begun = time.monotonic()
    cancelled_at = 0
    while True:
        run.listen()
        show.update(run)
        ended = run.ended()
        if ended is not None:
            run.listen()
            show.update(run)
            show.close()
            return ended
        waited_s = time.monotonic() - begun
        if timeout_s is not None and waited_s > timeout_s:
            show.close()
            return Late()
        wish = _wish(show, interrupts, cancelled_at, is_ours)
        if wish == "leave":
            show.close()
            return Left()
        if wish == "cancel":
            cancelled_at = interrupts.count
            run.cancel()
            show.cancelling()
        elif wish == "left":
            show.left(run)
        interrupts.pause(POLL_S if waited_s < SOON_S else LATER_POLL_S)


def _wish(show: Display, interrupts: Interrupts, cancelled_at: int, is_ours: bool) -> str:
    """What the interrupts up to now mean: nothing, `left` (it may become a cancel), `leave` or `cancel`."""
    if interrupts.count <= cancelled_at:
        return ""
    if not show.is_interactive:
        return ("" if cancelled_at else "cancel") if is_ours else "leave"
    if cancelled_at:
        return "leave"  # whoever is too impatient for the ladder of signals need not watch it
    if interrupts.count > 1:
        return "cancel"
    return "leave" if time.monotonic() - interrupts.last_s > TWICE_S else "left"


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1
