"""The few cells that a prompt or a status bar has for git-orch. Loaded at each prompt, so apart from `status`."""

from __future__ import annotations

from git_orch.formats.terminal import VERDICT_MARKS, Terminal, mark_style
from git_orch.formats.words import age
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from git_orch.formats.terminal import Mark
    from git_orch.model import Verdict


class LineView(Record):
    """What `status --line` shows: open findings, how long the live run has gone on, the day's money as printed."""

    blocking: int = 0
    advisory: int = 0
    verdict: Verdict | Literal[""] = ""
    running_s: float | None = None
    cost: str = ""


def status_line(view: LineView, terminal: Terminal) -> str:
    """Few cells for a prompt, without a line end: `✗1 ▲1 ⠹14s $0.41`; a lone mark where nothing is open."""
    parts = [_counted("no", view.blocking, terminal), _counted("warning", view.advisory, terminal)]
    if not any(parts) and view.verdict and view.running_s is None:
        mark = VERDICT_MARKS[view.verdict]
        parts.append(terminal.paint(terminal.mark(mark), mark_style(mark)))
    if view.running_s is not None:
        parts.append(terminal.mark("running", int(view.running_s)) + age(view.running_s).replace(" ", ""))
    parts.append(terminal.sentence(view.cost))
    return " ".join(filter(None, parts))


def _counted(mark: Mark, count: int, terminal: Terminal) -> str:
    return terminal.paint(f"{terminal.mark(mark)}{count}", mark_style(mark)) if count else ""
