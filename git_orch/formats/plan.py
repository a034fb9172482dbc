"""A plan in words, as one object, and as a picture for Graphviz."""

from __future__ import annotations

import itertools

from git_orch.formats import json_
from git_orch.formats.columns import Cell, Column, table
from git_orch.formats.terminal import Terminal, wrap
from git_orch.formats.words import listed, plural
from git_orch.model import SCHEMA_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from git_orch.model import Json
    from git_orch.plan import Task
    from git_orch.planning import Outlook

NAMES = ("text", "json", "dot")
MOST_LINES = 12
_INDENT = 7
_COLUMNS = (
    Column(title="TASK", least=8),
    Column(title="AFTER", rank=2, least=6),
    Column(title="FILES", rank=3, least=12, cut="middle"),
    Column(title="LIMIT", rank=4),
    Column(title="BY", rank=1, least=4),
)


def render(outlook: Outlook, name: str, terminal: Terminal) -> str:
    """The plan in the format of that name."""
    match name:
        case "json":
            return json_.document(document(outlook))
        case "dot":
            return dot(outlook)
    return "".join(f"{line}\n" for line in _text(outlook, terminal))


# -- for people


def _text(outlook: Outlook, terminal: Terminal) -> Iterator[str]:
    plan = outlook.plan
    open_tasks = sum(not task.done for task in plan.tasks)
    done = f", {len(plan.tasks) - open_tasks} done before" if open_tasks < len(plan.tasks) else ""
    how = "one after the other" if outlook.at_once == 1 else f"{outlook.at_once} at a time ({outlook.bound})"
    told = f"{terminal.shown(plan.name)}: {plural(open_tasks, 'task')}{done}, {how}"
    yield from wrap(told, terminal.width, rest="  ")
    if not plan.tasks:
        return
    yield ""
    yield from table(_COLUMNS, [_row(task, terminal) for task in plan.tasks], terminal)
    yield ""
    yield from _paragraphs("Waves", list(_waves(outlook, terminal)), terminal)
    yield from _paragraphs("Order", list(_order(outlook, terminal)), terminal)
    yield from _paragraphs("Note", list(_notes(outlook, terminal)), terminal)
    yield from _paragraphs("Gate", list(_gates(outlook, terminal)), terminal)


def _row(task: Task, terminal: Terminal) -> list[Cell]:
    nothing = terminal.mark("skipped")
    files = "not declared" if task.files is None else terminal.shown(" ".join(task.files)) or "none"
    after = " ".join(task.depends_on) or nothing
    return [
        Cell(text=task.id),
        Cell(text=after),
        Cell(text=files),
        Cell(text="done" if task.done else span(task.timeout_s)),
        Cell(text=terminal.shown(task.runner) or nothing),
    ]


def span(seconds: float) -> str:
    """`45 s`, `20 m`, `1 h 30 m`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h" if hours else "", f"{minutes} m" if minutes else "", f"{rest} s" if rest else ""]
    return " ".join(filter(None, parts)) or f"{seconds:g} s"


def _waves(outlook: Outlook, terminal: Terminal) -> Iterator[str]:
    """A line a wave; a bar stands between its batches."""
    tasks = outlook.plan.tasks
    digits = len(str(len(outlook.waves)))
    for number, wave in enumerate(outlook.waves, start=1):
        batches = (" ".join(tasks[task].id for task in batch) for batch in wave.batches)
        yield f"{number:>{digits}}  {terminal.shown(' | '.join(batches))}"


def _order(outlook: Outlook, terminal: Terminal) -> Iterator[str]:
    tasks = outlook.plan.tasks
    if outlook.serial_reason:
        yield f"one after the other: {terminal.shown(outlook.serial_reason)}"
    if len(outlook.path) > 1:
        arrow = f" {terminal.arrow} "
        most = span(sum(tasks[task].timeout_s for task in outlook.path))
        yield f"longest path {arrow.join(tasks[task].id for task in outlook.path)}, {most} at most"
    for each in outlook.conflicts:
        names, within = (_few([tasks[task].id for task in group]) for group in (each.tasks, each.below))
        path = terminal.shown(each.path)
        verb = "writes" if len(each.tasks) == 1 else "both write" if len(each.tasks) == 2 else "all write"
        if within:
            yield f"{listed(names)} {verb} {path}, in which {listed(within)} {'write' if each.below[1:] else 'writes'}"
        else:
            yield f"{listed(names)} {verb} {path}: one after the other"


def _few(names: Sequence[str]) -> list[str]:
    return [*names[:4], f"{len(names) - 4} more"] if len(names) > 5 else list(names)


def _notes(outlook: Outlook, terminal: Terminal) -> Iterator[str]:
    names = [task.id for task in outlook.plan.tasks if task.files is None and not task.done]
    if names:
        do, their = ("does", "its") if len(names) == 1 else ("do", "their")
        yield (
            f"{terminal.shown(listed(_few(names)))} {do} not declare files, so that nobody is kept off {their} files "
            "beforehand; `files = [...]` lets git-orch check what is written"
        )


def _gates(outlook: Outlook, terminal: Terminal) -> Iterator[str]:
    plan = outlook.plan
    used = {gate for task in plan.tasks for gate in task.gates}
    for name, command in plan.gates.items():
        where = ["each task that names it"] if name in used else []
        where += ["the whole at the end"] if name in plan.final_gates else []
        yield f"{name}: {terminal.sentence(command)}, on {listed(where) or 'nothing: no task names it'}"


def _paragraphs(title: str, texts: Sequence[str], terminal: Terminal) -> Iterator[str]:
    """The texts below each other, the title before the first; only so many of them."""
    left = len(texts) - MOST_LINES
    shown = [*texts[:MOST_LINES], f"and {left} more (--format json has all)"] if left > 1 else texts
    for number, text in enumerate(shown):
        indent = " " * _INDENT
        yield from wrap(text, terminal.width, first=f"{title:<{_INDENT}}" if not number else indent, rest=f"{indent}  ")


# -- for programs


def document(outlook: Outlook) -> Json:
    """The plan as the object of formats/schema/plan.json."""
    tasks, plan = outlook.plan.tasks, outlook.plan
    place = {
        task: (number, batch)
        for number, wave in enumerate(outlook.waves)
        for batch, members in enumerate(wave.batches)
        for task in members
    }
    splits = [split for wave in outlook.waves for split in wave.splits]
    return {
        "schema_version": SCHEMA_VERSION,
        "name": plan.name,
        "waves": [[[tasks[task].id for task in batch] for batch in wave.batches] for wave in outlook.waves],
        "splits": [{"task": tasks[each.task].id, "path": each.path, "other": tasks[each.other].id} for each in splits],
        "conflicts": [
            {
                "path": each.path,
                "tasks": [tasks[task].id for task in each.tasks],
                "below": [tasks[task].id for task in each.below],
            }
            for each in outlook.conflicts
        ],
        "critical_path": [tasks[task].id for task in outlook.path],
        "at_once": outlook.at_once,
        "bound": outlook.bound,
        "serial_reason": outlook.serial_reason or None,
        "gates": dict(plan.gates),
        "final_gates": list(plan.final_gates),
        "tasks": [_task(task, *place.get(number, (None, None))) for number, task in enumerate(tasks)],
    }


def _task(task: Task, wave: int | None, batch: int | None) -> Json:
    return {
        "id": task.id,
        "title": task.title,
        "by": task.runner,
        "depends_on": list(task.depends_on),
        "files": None if task.files is None else list(task.files),
        "gates": list(task.gates),
        "timeout_s": task.timeout_s,
        "done": task.done,
        "wave": wave,
        "batch": batch,
    }


def dot(outlook: Outlook) -> str:
    """The plan for Graphviz: an arrow to each task from what it waits for, a dashed line where a file is shared."""
    tasks = outlook.plan.tasks
    critical = set(outlook.path)
    lines = ["digraph plan {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    for number, task in enumerate(tasks):
        style = ", style=dotted" if task.done else ", penwidth=2" if number in critical else ""
        lines.append(f"  {_quoted(task.id)} [tooltip={_quoted(task.title or task.id)}{style}];")
    lines += [f"  {_quoted(name)} -> {_quoted(task.id)};" for task in tasks for name in task.depends_on]
    for each in outlook.conflicts:
        pairs = [*itertools.pairwise(each.tasks), *((each.tasks[0], other) for other in each.below)]
        for one, other in pairs:
            ends = f"{_quoted(tasks[one].id)} -> {_quoted(tasks[other].id)}"
            lines.append(f"  {ends} [dir=none, style=dashed, constraint=false, label={_quoted(each.path)}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = json_.replaced(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
