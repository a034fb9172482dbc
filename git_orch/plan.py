"""A plan: tasks with what each waits for, what it may write and how it is done. Records alone; nothing is read here."""

from __future__ import annotations

from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    Schedule = Literal["ready", "waves"]

TIMEOUT_S = 3600.0
HEARTBEAT_S = 180.0
MAX_PARALLEL = 3


class Task(Record):
    """One task. Exactly one of `prompt`, `prompt_file` and `command` says what is to be done.

    `files` are the paths that it may write, from the top of the work tree, a folder's with all below it; None where
    they are not declared. `done`: its file says that it was done before. Times are in seconds.
    """

    id: str
    title: str = ""
    prompt: str = ""
    prompt_file: str = ""
    command: str = ""
    agent: str = ""
    depends_on: tuple[str, ...] = ()
    files: tuple[str, ...] | None = None
    gates: tuple[str, ...] = ()
    timeout_s: float = TIMEOUT_S
    heartbeat_s: float = HEARTBEAT_S
    retries: int = 0
    resources: Mapping[str, float] = {}
    phases: tuple[str, ...] = ()
    min_phases: int = 0
    expect: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    workdir: str = ""
    executor: str = "local"
    report_writes: bool = False
    done: bool = False

    @property
    def runner(self) -> str:
        """Who does it, in a word."""
        return "command" if self.command else self.agent


class Plan(Record):
    """The tasks of a file in their order there; every name in them is one of the file's.

    `gates` are command lines by name, `final_gates` the names of those that look once at the whole; `setup` are command
    lines for each working copy. `max_parallel` is 0 where the file says nothing.
    """

    name: str
    tasks: tuple[Task, ...]
    gates: Mapping[str, str] = {}
    final_gates: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    max_parallel: int = 0

    def depends(self) -> list[list[int]]:
        """Of each task those that it waits for, by their places; one that is done holds nobody up."""
        numbers = {task.id: number for number, task in enumerate(self.tasks)}
        return [
            [numbers[name] for name in task.depends_on if not self.tasks[numbers[name]].done] for task in self.tasks
        ]
