"""A run followed to its end: what it says on the way, and what an interrupt means."""

from __future__ import annotations

import os
import signal
import sys
import time

from git_orch import journal, registry, report
from git_orch.commands import speaking
from git_orch.errors import EXIT_INTERRUPTED, NoSuchRun
from git_orch.formats import rows, text
from git_orch.formats.rows import Progress
from git_orch.formats.terminal import Terminal
from git_orch.model import Base, Change, Record, Report, Review
from git_orch.runs import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from git_orch.model import Json
    from git_orch.workspace import Workspace

POLL_S = 0.05
FRAME_S = 0.12
LIFE_S = 1.0
STILL_S = 30.0
TWICE_S = 2.0


class Left(Record):
    """The person went away; the run goes on."""

    exit_code: int = EXIT_INTERRUPTED


class Late(Record):
    """The time to wait was up; the run goes on."""


class Run:
    """A run seen from outside: what it has said so far, and whether it lives."""

    def __init__(self, workspace: Workspace, run_id: str) -> None:
        self.workspace = workspace
        self.run_id = run_id
        self.run_dir = workspace.layout.run_dir(run_id)
        self.names: tuple[str, ...] = ()
        self.change: Change | None = None
        self.started: dict[str, float] = {}
        self.reviews: dict[str, Review] = {}
        self._journal = journal.Journal(self.run_dir)
        self._heard = 0
        self._looked = time.monotonic()
        intent = workspace.book.intent(run_id)
        self.intent = None if isinstance(intent, registry.Refused) else intent
        if self.intent is not None:
            self.names = tuple(reviewer.name for reviewer in self.intent.reviewers)

    def listen(self) -> None:
        """Everything that the run has said by now is taken in."""
        events = self._journal.read()
        for event in events[self._heard :]:
            self._hear(event)
        self._heard = len(events)

    def ended(self) -> Report | None:
        """The report, once the run has ended and its entry is gone. A run whose supervisor died is recorded here."""
        found = report.load(self.run_dir)
        if found is not None and not os.path.exists(self.workspace.book.path(self.run_id, "json")):
            return found
        if time.monotonic() - self._looked > LIFE_S:
            self._looked = time.monotonic()
            self._reap_if_dead()
        return None

    def outline(self) -> Report:
        """What is known of the run before it ends: enough for the line that begins its output."""
        intent = self.intent
        assert intent is not None
        base = Base(tree_id=intent.base_tree_id, name=intent.base_name, commit=intent.base_commit)
        return Report(
            run_id=self.run_id,
            tree_id=intent.tree_id,
            base=base,
            subject=intent.subject,
            verdict="unreviewed",
            change=self.change or Change(),
        )

    def _hear(self, event: Json) -> None:
        name = event.get("reviewer", "")
        match event["event"]:
            case "review.change":
                self.change = Change(**{key: event[key] for key in Change._fields})
            case "reviewer.started" | "reviewer.materializing":
                self.started.setdefault(name, time.monotonic())
            case "reviewer.ended":
                known = {key: event[key] for key in ("outcome", "verdict", "reason", "note", "duration_ms")}
                # Only their number is known here: what they say comes with the report.
                self.reviews[name] = Review(name=name, **known, findings=(None,) * event.get("findings", 0))

    def _reap_if_dead(self) -> None:
        from git_orch import reaper

        if os.path.exists(self.workspace.book.path(self.run_id, "json")):
            reaper.sweep_one(self.workspace, self.run_id)  # does nothing to a run that lives


class Interrupts:
    """SIGINT and SIGTERM, counted instead of obeyed, while a run is followed."""

    def __init__(self) -> None:
        self.count = 0
        self.last = 0.0
        self._before: dict[int, object] = {}

    def __enter__(self) -> Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.last = time.monotonic()


def follow(run: Run, show: Display, *, timeout_s: float | None = None) -> Report | Left | Late:
    """The run's report once it has ended; or the person left, or the time was up, and the run goes on.

    On a terminal one interrupt leaves the run going, a second within two seconds cancels it; elsewhere the first
    cancels. A cancelled run is waited for: nothing of it is left when this returns.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    with Interrupts() as interrupts:
        asked = False
        while True:
            run.listen()
            show.update(run)
            ended = run.ended()
            if ended is not None:
                run.listen()
                show.update(run)
                show.close()
                return ended
            if run.intent is None and report.load(run.run_dir) is None:
                show.close()
                raise NoSuchRun(f"run {short(run.run_id)} is gone", "git orch status lists what is there")
            if interrupts.count and not asked:
                if show.interactive and interrupts.count == 1:
                    if time.monotonic() - interrupts.last > TWICE_S:
                        show.close()
                        return Left()
                    show.left(run)
                else:
                    asked = run.workspace.book.ask(run.run_id, "cancel") or True
                    show.cancelling()
            if deadline is not None and time.monotonic() > deadline:
                show.close()
                return Late()
            time.sleep(POLL_S)


class Display:
    """Follows in silence: `--format json` and `wait`. The others say what happens."""

    interactive = False

    def __init__(self, terminal: Terminal | None = None) -> None:
        self.terminal = terminal or Terminal()

    def update(self, run: Run) -> None:
        """What is new is shown."""

    def left(self, run: Run) -> None:
        """The person was told that the run goes on."""

    def cancelling(self) -> None:
        """The person was told that the run is being cancelled."""

    def close(self) -> None:
        """Nothing more moves."""


class Log(Display):
    """Lines for a log, where standard error is no terminal or standard output is for a program."""

    def __init__(self, terminal: Terminal | None = None) -> None:
        super().__init__(terminal)
        self._began = False
        self._told: set[str] = set()
        self._still: dict[str, float] = {}
        self.interactive = sys.stderr.isatty() and sys.stdin.isatty()

    def update(self, run: Run) -> None:
        """A line for the beginning, for each reviewer that ended, and every 30 s for each that goes on."""
        if not self._began and run.change is not None and run.intent is not None:
            self._began = True
            speaking.tell(rows.log_start(run.outline()) + "\n")
        for name, review in run.reviews.items():
            if name not in self._told:
                self._told.add(name)
                speaking.tell(rows.log_row(review) + "\n")
        now = time.monotonic()
        for name, started in run.started.items():
            if name not in self._told and now - self._still.get(name, started) >= STILL_S:
                self._still[name] = now
                speaking.tell(rows.log_still(name, now - started) + "\n")

    def left(self, run: Run) -> None:
        """Once: how to come back to it, or to end it."""
        if "" not in self._told:
            self._told.add("")
            speaking.tell(_left_text(run))

    def cancelling(self) -> None:
        """Said once, by the caller's own count."""
        speaking.tell("git-orch: cancelling\n")


class Live(Display):
    """Rows that move, on a terminal; the header stays, and each reviewer's row when it has ended."""

    interactive = True

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(terminal)
        self._headed = False
        self._drawn = 0
        self._frame = 0
        self._next = 0.0
        self._left = False

    def update(self, run: Run) -> None:
        """The rows are as things are, a few times a second."""
        if run.change is None or run.intent is None:
            return
        if not self._headed:
            self._headed = True
            speaking.say(rows.header(run.outline(), self.terminal) + "\n")
        if time.monotonic() < self._next or self._left:
            return
        self._next = time.monotonic() + FRAME_S
        self._frame += 1
        self._draw(rows.live_rows(self._states(run), self.terminal, self._frame))

    def left(self, run: Run) -> None:
        """The rows are gone; how to come back to the run stands in their place."""
        if not self._left:
            self._erase()
            self._left = True
            speaking.say(_left_text(run))

    def cancelling(self) -> None:
        """The rows are gone, and a word says why it takes a moment."""
        self._erase()
        self._left = True
        speaking.say("cancelling\n")

    def close(self) -> None:
        """The moving rows are gone: the report prints the reviewers' rows for good."""
        self._erase()

    def _states(self, run: Run) -> list[Progress]:
        now = time.monotonic()
        states = []
        for name in run.names:
            review = run.reviews.get(name)
            doing = "" if name in run.started else "waiting"
            states.append(
                Progress(name=name, elapsed_s=now - run.started.get(name, now), doing=doing, review=review)
            )
        return states

    def _draw(self, lines: list[str]) -> None:
        self._erase()
        speaking.say("".join(line + "\n" for line in lines))
        self._drawn = len(lines)

    def _erase(self) -> None:
        if self._drawn:
            speaking.say(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0


def _left_text(run: Run) -> str:
    name = short(run.run_id)
    return f"git-orch: left running; git orch wait {name} follows it, Ctrl-C again cancels it\n"


def chosen(name: str, terminal: Terminal) -> Display:
    """How a run is shown on the way, for a format and a terminal."""
    if name == "text" and terminal.live:
        return Live(terminal)
    return Log(terminal)


def printed(found: Report, name: str, show: Display, source: Callable[[str, int, int], list[str] | None]) -> str:
    """The report in its format; without its first lines where they have been shown already."""
    from git_orch import formats

    if isinstance(show, Live):
        names = rows.name_width([review.name for review in found.reviews])
        done = "".join(rows.reviewer_row(review, show.terminal, names) + "\n" for review in found.reviews)
        return done + text.body(found, show.terminal, source)
    return formats.render(found, name, terminal=show.terminal, source=source)
