"""What a plan comes to before anything starts: waves and batches, shared files, the longest way, how many at once."""

from __future__ import annotations

from git_orch import graph, partition
from git_orch.model import Record
from git_orch.plan import MAX_PARALLEL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.partition import Batches, Conflict
    from git_orch.plan import Plan, Schedule


class Wishes(Record):
    """What was asked of the run: 0 jobs where no number was given."""

    jobs: int = 0
    serial: bool = False
    schedule: Schedule = "ready"
    strict_files: bool = False


class Outlook(Record):
    """A plan looked at. Tasks are their places in the plan; those that are done are in no wave.

    `path` is the longest way by the tasks' time limits. `at_once` is how many run at a time, and `bound` what says so.
    `serial_reason` is "" where they run side by side.
    """

    plan: Plan
    waves: tuple[Batches, ...]
    conflicts: tuple[Conflict, ...]
    path: tuple[int, ...]
    at_once: int
    bound: str
    serial_reason: str


def look(plan: Plan, wishes: Wishes, cores: int) -> Outlook:
    """The plan as a run with these wishes on a machine with so many cores would take it."""
    tasks, depends = plan.tasks, plan.depends()
    done = {number for number, task in enumerate(tasks) if task.done}
    files = {number: task.files for number, task in enumerate(tasks) if task.files and number not in done}
    waves = tuple(partition.batches(wave, files) for wave in graph.waves(depends, without=done))
    lengths = [0.0 if task.done else task.timeout_s for task in tasks]
    at_once, bound = _at_once(plan, wishes, cores)
    reason = _serial_reason(plan, wishes, at_once, bound, waves)
    return Outlook(
        plan=plan,
        waves=waves,
        conflicts=tuple(partition.conflicts(files)),
        path=tuple(number for number in graph.longest_path(depends, lengths) if number not in done),
        at_once=1 if reason else at_once,
        bound=bound,
        serial_reason=reason,
    )


def _at_once(plan: Plan, wishes: Wishes, cores: int) -> tuple[int, str]:
    if wishes.jobs:
        return wishes.jobs, f"-j {wishes.jobs}"
    if plan.max_parallel:
        return plan.max_parallel, f"max_parallel of {plan.name}"
    if cores < MAX_PARALLEL:
        return cores, "the machine's one core" if cores == 1 else f"the machine's {cores} cores"
    return MAX_PARALLEL, "the default"


def _serial_reason(plan: Plan, wishes: Wishes, at_once: int, bound: str, waves: tuple[Batches, ...]) -> str:
    if wishes.serial:
        return "--serial"
    if at_once == 1:
        return bound
    undeclared = [task.id for task in plan.tasks if task.files is None and not task.done]
    if undeclared and (wishes.strict_files or wishes.schedule == "waves"):
        why = "--strict-files" if wishes.strict_files else "--schedule waves"
        return f"{undeclared[0]} does not declare its files ({why})"
    is_narrow = all(len(batch) == 1 for wave in waves for batch in wave.batches)
    is_chain = all(len(wave.batches) == 1 for wave in waves)
    if is_narrow and (wishes.schedule == "waves" or is_chain or len(waves) == 1):
        return "no two tasks could run side by side"
    return ""
