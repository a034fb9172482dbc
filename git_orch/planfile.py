"""Plan files, TOML and Markdown, read strictly: everything that is wrong with one is told at once, and nothing starts.

TOML: `[[task]]` tables; `[defaults]` for what they leave out; `[vars]`, whose `{{name}}` in prompts and commands stands
for the value; `[gates]`, a command line each; `final_gates`, `setup` and `max_parallel` at the top.

Markdown: see `plan_markdown`.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from typing import TYPE_CHECKING, Any

from git_orch import config, graph, plan_markdown, system
from git_orch.errors import UsageError
from git_orch.formats.words import closest
from git_orch.plan import Plan, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from git_orch.model import Json

LIMIT_BYTES = 64 << 20
PROMPT_LIMIT_BYTES = 1 << 20
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_TOP = ("task", "defaults", "vars", "gates", "final_gates", "setup", "max_parallel")
_TEXTS = ("title", "prompt", "prompt_file", "command", "agent", "workdir", "executor")
_LISTS = ("depends_on", "files", "gates", "phases", "expect")
_TIMES = {"timeout": "timeout_s", "heartbeat": "heartbeat_s"}
_COUNTS = ("retries", "min_phases")
_TABLES = ("env", "resources")
_KEYS = (*_TEXTS, *_LISTS, *_TIMES, *_COUNTS, *_TABLES, "report_writes")
_NOT_SHARED = ("title", "prompt", "prompt_file", "command", "depends_on", "expect")  # one task's own
_WAYS = ("prompt", "prompt_file", "command")
_PATTERN = frozenset("*?[")
_NONE = ", which there is none of"


def read(path: str) -> Plan:
    """The plan that a file holds; a prompt file's text is in it.

    Raises:
        UsageError: it cannot be read, or anything in it is wrong; the message has a line for each fault.
    """
    raw = _read(path, LIMIT_BYTES, "a plan")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: byte {error.start}") from None
    return parse(text, path)


def parse(text: str, path: str) -> Plan:
    """The plan of that text, as a file of that path would hold it.

    Raises:
        UsageError: anything in it is wrong.
    """
    reading = _Reading(os.path.dirname(path))
    name = os.path.basename(path)
    way = reading.markdown if name.casefold().endswith((".md", ".markdown")) else reading.toml
    plan = way(text, name)
    faults = [*reading.faults, *(_faults_between(plan) if plan else ())]
    if plan and not plan.tasks and not faults:
        faults = ["it has no task"]
    if faults or plan is None:
        count = "" if len(faults) == 1 else f"{len(faults)} faults; "
        raise UsageError("\n".join(f"{name}: {fault}" for fault in faults), f"{count}nothing was started")
    return plan


class _Reading:
    """One file being read: what is wrong so far, and where its prompt files lie."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.faults: list[str] = []

    # -- TOML

    def toml(self, text: str, name: str) -> Plan | None:
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            self.faults.append(f"not TOML: {error}")
            return None
        self._unknown("", document, _TOP)
        variables = self._strings("vars", document.get("vars", {}))
        gates = self._strings("gates", document.get("gates", {}))
        defaults = self._table("defaults", document.get("defaults", {}))
        for key in _NOT_SHARED:
            if defaults.pop(key, None) is not None:
                self.faults.append(f"defaults: `{key}` is a task's own")
        self._unknown("defaults: ", defaults, _KEYS)
        common = self._values("defaults", defaults)
        common.setdefault("gates", tuple(gates))
        tables = document.get("task", [])
        if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
            self.faults.append("`task` is not a list of tables: write [[task]]")
            tables = []
        tasks = [self._task(table, number, common, variables) for number, table in enumerate(tables, start=1)]
        return Plan(
            name=name,
            tasks=tuple(task for task in tasks if task is not None),
            gates={gate: _filled(line, variables) for gate, line in gates.items()},
            final_gates=self._list("", "final_gates", document.get("final_gates", [])),
            setup=self._list("", "setup", document.get("setup", [])),
            max_parallel=self._count("", "max_parallel", document.get("max_parallel", 0)),
        )

    def _task(self, table: Json, number: int, common: Json, variables: Mapping[str, str]) -> Task | None:
        name = table.get("id")
        if not isinstance(name, str) or not _ID.fullmatch(name):
            told = f"`{name}`" if isinstance(name, str) else "none"
            self.faults.append(f"task {number}: its id is {told}; letters, digits, - and _ make one, at most 64")
            return None
        where = f"task {name}"
        self._unknown(f"{where}: ", table, ("id", *_KEYS))
        values = {**common, **self._values(where, table)}
        ways = [way for way in _WAYS if values.get(way)]
        if len(ways) != 1:
            told = " and ".join(ways) or "none"
            self.faults.append(f"{where}: it wants one of prompt, prompt_file and command, and has {told}")
        if values.get("prompt_file"):
            values["prompt"] = self._prompt(where, values["prompt_file"])
        for way in ("prompt", "command"):
            if values.get(way):
                values[way] = _filled(values[way], variables)
        return Task(id=name, **values)

    def _values(self, where: str, table: Json) -> Json:
        """The known keys of a task's table as a task has them."""
        found: Json = {}
        for key in _KEYS:
            if key not in table:
                continue
            value = table[key]
            if key == "files":
                found[key] = tuple(self._paths(where, self._list(where, key, value)))
            elif key in _LISTS:
                found[key] = self._list(where, key, value)
            elif key in _TIMES:
                found[_TIMES[key]] = self._time(where, key, value)
            elif key in _COUNTS:
                found[key] = self._count(where, key, value)
            elif key in _TABLES:
                found[key] = (
                    self._numbers(where, value) if key == "resources" else self._strings(f"{where}: {key}", value)
                )
            elif key == "report_writes":
                found[key] = self._typed(where, key, value, bool, "true or false", default=False)
            else:
                found[key] = self._typed(where, key, value, str, "a text", default="")
        if found.get("workdir"):
            found["workdir"] = next(self._paths(where, (found["workdir"],)), "")
        return found

    def markdown(self, text: str, name: str) -> Plan | None:
        tables = plan_markdown.tables(text)
        if tables is None:
            self.faults.append("no table with a column `id`")
            return None
        tasks = []
        for number, table in enumerate(tables, start=1):
            done = table.pop("done")
            given = {"prompt": "done before", **table} if done else table
            task = self._task(given, number, {}, {})
            if task is not None:
                tasks.append(task.replace(done=done))
        return Plan(name=name, tasks=tuple(tasks))

    # -- values

    def _unknown(self, where: str, table: Mapping[str, object], known: Sequence[str]) -> None:
        for key in table:
            if key not in known:
                self.faults.append(f"{where}no key {_perhaps(key, known)}")

    def _typed(self, where: str, key: str, value: object, kind: type, what: str, *, default: Any) -> Any:
        if isinstance(value, kind):
            return value
        self._fault(where, f"`{key}` is not {what}")
        return default

    def _table(self, where: str, value: object) -> Json:
        if isinstance(value, dict):
            return dict(value)
        self.faults.append(f"`{where}` is not a table")
        return {}

    def _strings(self, where: str, value: object) -> dict[str, str]:
        found = self._table(where, value)
        for key in [key for key, each in found.items() if not isinstance(each, str)]:
            self.faults.append(f"{where}: `{key}` is not a text")
            del found[key]
        return found

    def _numbers(self, where: str, value: object) -> dict[str, float]:
        found = self._table(f"{where}: resources", value)
        for key in [key for key, each in found.items() if isinstance(each, bool) or not isinstance(each, int | float)]:
            self._fault(where, f"resources: `{key}` is not a number")
            del found[key]
        return {key: float(each) for key, each in found.items()}

    def _list(self, where: str, key: str, value: object) -> tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(dict.fromkeys(value))
        self._fault(where, f"`{key}` is not a list of texts")
        return ()

    def _count(self, where: str, key: str, value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1000:
            return value
        self._fault(where, f"`{key}` is not a number from 0 to 1000")
        return 0

    def _time(self, where: str, key: str, value: object) -> float:
        try:
            return config.seconds(key, str(value))
        except UsageError as error:
            self._fault(where, f"{error.message}: {error.hint}")
            return 1.0

    def _paths(self, where: str, given: Sequence[str]) -> Iterator[str]:
        for path in given:
            plain, fault = normal(path)
            if fault:
                self._fault(where, f"`{path}` {fault}")
            else:
                yield plain

    def _prompt(self, where: str, name: str) -> str:
        try:
            return _read(os.path.join(self._folder, name), PROMPT_LIMIT_BYTES, "a prompt").decode()
        except UnicodeDecodeError:
            self._fault(where, f"prompt_file {name} is not UTF-8")
        except UsageError as error:
            self._fault(where, error.message)
        return " "

    def _fault(self, where: str, fault: str) -> None:
        self.faults.append(f"{where}: {fault}" if where else fault)


def _filled(text: str, variables: Mapping[str, str]) -> str:
    """The text with the value in the place of each `{{name}}` that is a variable; any other is text."""
    return _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), text) if variables else text


def normal(path: str) -> tuple[str, str]:
    """A declared path as it is compared, and what is wrong with it, if anything is."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or path.startswith("/"):
        return "", "is no path below the top of the work tree"
    if ".." in parts:
        return "", "leads through `..`: write it from the top of the work tree"
    if any(part.casefold() in (".git", ".orch") for part in parts):
        return "", "is git's, or ours"
    if any(ord(letter) < ord(" ") for letter in path):
        return "", "holds a control character"
    if _PATTERN.intersection(path):
        return "", "is a pattern: name the files, or their folder"
    return "/".join(parts), ""


def _read(path: str, limit: int, what: str) -> bytes:
    try:
        with open(path, "rb", opener=system.without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path} is no file")
            raw = file.read(limit + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if len(raw) > limit:
        raise UsageError(f"{path} is too large for {what}: more than {limit >> 20} MiB")
    return raw


def _faults_between(plan: Plan) -> Iterator[str]:
    """What is wrong between tasks: names twice, unknown ones, cycles."""
    seen: dict[str, str] = {}
    for task in plan.tasks:
        folded = task.id.casefold()  # a ref and a folder each: some file systems do not tell case
        if folded in seen:
            yield f"two tasks are called {task.id}" + (f" and {seen[folded]}" if seen[folded] != task.id else "")
        seen.setdefault(folded, task.id)
    known = {task.id for task in plan.tasks}
    names_are_known = True
    for task in plan.tasks:
        for name in task.depends_on:
            if name not in known:
                names_are_known = False
                yield f"task {task.id}: it depends on {_perhaps(name, known, _NONE)}"
        for gate in task.gates:
            if gate not in plan.gates:
                yield f"task {task.id}: no gate {_perhaps(gate, plan.gates, _NONE)}"
    for gate in plan.final_gates:
        if gate not in plan.gates:
            yield f"final_gates: no gate {_perhaps(gate, plan.gates, _NONE)}"
    if names_are_known and len(seen) == len(plan.tasks):
        members = graph.cycle(plan.depends())
        if members:
            names = [plan.tasks[number].id for number in (*members, members[0])]
            yield f"these wait for each other: {' → '.join(names)}"


def _perhaps(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The name, and the one that was perhaps meant; where none is close, what else there is to say."""
    close = closest(name, known)
    return f"`{name}`" + (f", perhaps you meant {close}" if close else otherwise)
