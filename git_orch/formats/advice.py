"""What to type next: a command, whole, and what for. Only verbs that there are."""

from __future__ import annotations

from git_orch.formats.terminal import Terminal, cells, pad, wrap
from git_orch.formats.words import by_weight
from git_orch.model import Record
from git_orch.runs import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.model import Report

_GAP = 5  # cells between a command and its purpose


class Advice(Record):
    """A command to type next, and what for."""

    command: str
    purpose: str


def usual_advice(report: Report) -> tuple[Advice, ...]:
    """What a person mostly does next."""
    run = short(report.run_id)
    match report.verdict:
        case "findings":
            worst = by_weight(report.findings)[0].id if report.findings else ""
            return (Advice(command=f"git orch show {worst or run}", purpose="the whole argument"),)
        case "unreviewed":
            return (
                Advice(command=f"git orch logs {run}", purpose="what its reviewers wrote"),
                Advice(command="git orch review", purpose="ask again"),
            )
        case _:
            return ()


def where_one_is(*, has_runs: bool, has_hooks: bool) -> tuple[Advice, ...]:
    """What there is to do in a repository."""
    review = Advice(command="git orch review", purpose="review what is not committed")
    show = Advice(command="git orch show", purpose="the last run in full")
    install = Advice(command="git orch install", purpose="review each turn of an agent")
    more = Advice(command="git orch help", purpose="what else there is")
    return (review, *([show] if has_runs else []), *([] if has_runs or has_hooks else [install]), more)


def outside() -> tuple[Advice, ...]:
    """What there is to do where there is no repository."""
    return (Advice(command="git orch help", purpose="what git-orch does"),)


def next_steps(advice: Sequence[Advice], terminal: Terminal) -> list[str]:
    """A command a line, whole, with its purpose beside it, or below it where the terminal is narrow."""
    column = 2 + max((cells(step.command) for step in advice), default=0) + _GAP
    lines: list[str] = []
    for step in advice:
        command, purpose = f"  {terminal.shown(step.command)}", terminal.sentence(step.purpose)
        if column + cells(purpose) <= terminal.width:
            lines.append(pad(command, column) + purpose)
        else:
            lines += [command, *wrap(purpose, terminal.width, first="      ", rest="      ")]
    return lines
