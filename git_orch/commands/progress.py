"""What is shown while a run is followed: nothing, lines for a log, or rows that move."""

from __future__ import annotations

import os
import sys
import time

from git_orch.commands import speaking
from git_orch.formats import rows, text
from git_orch.formats.rows import Progress
from git_orch.formats.terminal import Terminal, cells
from git_orch.runs import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.commands.following import Run
    from git_orch.formats.excerpt import Source
    from git_orch.model import Report

FRAME_S = 0.12
CALM_S = 0.25  # a review that is over by then shows no moving rows: they would only flicker
STILL_S = 30.0


class Display:
    """Follows in silence."""

    is_interactive = False

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal

    def update(self, run: Run) -> None:
        """What is new is shown."""

    def left(self, run: Run) -> None:
        """The person was told that the run goes on."""

    def cancelling(self) -> None:
        """The person was told that the run is being cancelled."""

    def close(self) -> None:
        """Nothing more moves."""

    def printed(self, found: Report, name: str, source: Source) -> str:
        """The report in the format of that name, without what has been shown already."""
        from git_orch import formats

        return formats.render(found, name, terminal=self.terminal, source=source)


class Log(Display):
    """Lines on standard error, where that is no terminal or standard output is for a program."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(terminal)
        self.is_interactive = sys.stderr.isatty() and sys.stdin.isatty()
        self._has_begun = self._has_left = False
        self._told: set[str] = set()
        self._waits: set[str] = set()
        self._still: dict[str, float] = {}

    def update(self, run: Run) -> None:
        """A line for the beginning, for each reviewer that waits or ended, and every 30 s for each that goes on."""
        if run.intent is None:  # it had ended before anyone looked: its report says it all
            return
        if not self._has_begun and run.change is not None:
            self._has_begun = True
            speaking.tell(rows.log_start(run.outline()) + "\n")
        for name, reason in run.waiting.items():
            if name not in self._waits and name not in run.reviews:
                self._waits.add(name)
                speaking.tell(rows.log_waits(name, reason) + "\n")
        for name, review in run.reviews.items():
            if name not in self._told:
                self._told.add(name)
                speaking.tell(rows.log_row(review) + "\n")
        now = time.monotonic()
        for name, begun in run.begun.items():
            if name not in self._told and now - self._still.get(name, begun) >= STILL_S:
                self._still[name] = now
                speaking.tell(rows.log_still(name, now - begun) + "\n")

    def left(self, run: Run) -> None:
        """Once: how to come back to it, or to end it."""
        if not self._has_left:
            self._has_left = True
            speaking.tell(_left_text(run))

    def cancelling(self) -> None:
        """A word says why it takes a moment."""
        speaking.tell(_CANCELLING)


class Live(Display):
    """Rows that move, on a terminal. The header stays; the reviewers' rows are printed for good with the report."""

    is_interactive = True

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(terminal)
        self._is_headed = self._is_still = False
        self._drawn: list[str] = []
        self._frame = 0
        self._next_s = time.monotonic() + CALM_S

    def update(self, run: Run) -> None:
        """The rows are as things are, a few times a second."""
        if run.change is None or run.intent is None:
            return
        if not self._is_headed:
            self._is_headed = True
            speaking.say(rows.header(run.outline(), self.terminal) + "\n")
        now = time.monotonic()
        if now >= self._next_s and not self._is_still:
            self._next_s = now + FRAME_S
            self._frame += 1
            self._draw(rows.live_rows(_states(run), _of_now(self.terminal), self._frame))

    def left(self, run: Run) -> None:
        """The rows are gone; how to come back to the run stands in their place."""
        self._stand_still(_left_text(run))

    def cancelling(self) -> None:
        """The rows are gone; a word says why it takes a moment."""
        self._is_still = False
        self._stand_still(_CANCELLING)

    def close(self) -> None:
        """The moving rows are gone."""
        self._draw([])
        self._is_still = True

    def printed(self, found: Report, name: str, source: Source) -> str:
        """The report, without its header where that was shown."""
        if not self._is_headed or found.reused:
            return super().printed(found, name, source)
        names = rows.name_width([review.name for review in found.reviews])
        done = "".join(rows.reviewer_row(review, self.terminal, names) + "\n" for review in found.reviews)
        return done + text.body(found, self.terminal, source)

    def _stand_still(self, said: str) -> None:
        if not self._is_still:
            self._draw([])
            self._is_still = True
            speaking.say(said)

    def _draw(self, lines: list[str]) -> None:
        """These lines are in the place of those drawn before, in one write, so that nothing flickers."""
        erased = ""
        if self._drawn:
            # The terminal may be narrower than when they were drawn, and a press of Ctrl-C has left `^C` in the last.
            width = _of_now(self.terminal).width
            height = sum(max(1, -(-cells(_bare(line)) // width)) for line in self._drawn)
            erased = f"\r\x1b[{height}A\x1b[J"
        self._drawn = lines
        if erased or lines:
            speaking.say(erased + "".join(line + "\n" for line in lines))


_CANCELLING = "git-orch: cancelling\n"


def chosen(name: str, env: dict[str, str]) -> Display:
    """How a run is shown on the way to a report in the format of that name."""
    terminal = Terminal.of(sys.stdout, env)
    return Live(terminal) if name == "text" and terminal.live else Log(terminal)


def _left_text(run: Run) -> str:
    name = short(run.run_id)
    return f"git-orch: left running: git orch wait {name} follows it; Ctrl-C now cancels it\n"


def _states(run: Run) -> list[Progress]:
    now = time.monotonic()
    return [
        Progress(
            name=name,
            elapsed_s=now - run.begun.get(name, now),
            doing="reviewing" if name in run.begun else run.waiting.get(name) or "waiting",
            review=run.reviews.get(name),
        )
        for name in run.names
    ]


def _of_now(terminal: Terminal) -> Terminal:
    """The terminal as wide as it is now."""
    return terminal.replace(width=Terminal.of(sys.stdout, os.environ).width)


def _bare(line: str) -> str:
    """The line without its colours."""
    while "\x1b[" in line:
        before, _, rest = line.partition("\x1b[")
        line = before + rest.partition("m")[2]
    return line
