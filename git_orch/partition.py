"""Tasks that share no file go together: greedy colouring of the conflict graph, without ever making that graph.

Two tasks conflict where a path of one is a path of the other or lies below it. Pure; near linear in tasks and paths:
what batches a path is taken in is one number, a bit a batch.
"""

from __future__ import annotations

from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence


class Split(Record):
    """Why a task is not in the batch before its own: the path, and the task there that has it (or lies below it)."""

    task: int
    path: str
    other: int


class Conflict(Record):
    """A path that these tasks have, and others that have something below it: each of these is kept from all."""

    path: str
    tasks: tuple[int, ...]
    below: tuple[int, ...] = ()


class Batches(Record):
    """The batches in their order, each of task numbers, and a reason for every task that is not in the first."""

    batches: tuple[tuple[int, ...], ...]
    splits: tuple[Split, ...] = ()


def batches(tasks: Sequence[int], files: Mapping[int, Collection[str]]) -> Batches:
    """The tasks, in their order, each in the first batch in which nobody has a path of its own.

    A task without files is in the first.
    """
    taken = _Taken({path for task in tasks for path in files.get(task, ())})
    found: list[list[int]] = []
    splits = []
    for task in tasks:
        paths = sorted(files.get(task, ()))
        number = taken.first_free(paths)
        if number == len(found):
            found.append([])
        found[number].append(task)
        if number:
            splits.append(taken.why(task, paths, number - 1))
        taken.take(task, paths, number)
    return Batches(batches=tuple(map(tuple, found)), splits=tuple(splits))


def conflicts(files: Mapping[int, Collection[str]]) -> list[Conflict]:
    """Each path that keeps tasks from each other, in order."""
    declared = {path for paths in files.values() for path in paths}
    owners: dict[str, set[int]] = {}
    below: dict[str, set[int]] = {}
    for task, paths in files.items():
        for path in paths:
            owners.setdefault(path, set()).add(task)
            for above in _above(path):
                if above in declared:
                    below.setdefault(above, set()).add(task)
    found = ((path, sorted(owners[path]), sorted(below.get(path, set()) - owners[path])) for path in sorted(owners))
    return [
        Conflict(path=path, tasks=tuple(tasks), below=tuple(within))
        for path, tasks, within in found
        if len(tasks) > 1 or within
    ]


class _Taken:
    """Which batches have which of the declared paths, and who in them."""

    def __init__(self, declared: Collection[str]) -> None:
        self._declared = declared
        self._exact: dict[str, int] = {}
        self._below: dict[str, int] = {}
        self._holder: dict[tuple[str, int], int] = {}

    def first_free(self, paths: Sequence[str]) -> int:
        """The number of the first batch that has none of them."""
        bits = 0
        for path in paths:
            bits |= self._exact.get(path, 0) | self._below.get(path, 0)
            for above in self._folders(path):
                bits |= self._exact.get(above, 0)
        return (~bits & (bits + 1)).bit_length() - 1

    def take(self, task: int, paths: Sequence[str], batch: int) -> None:
        """The task has the paths, in that batch."""
        bit = 1 << batch
        for path in paths:
            self._exact[path] = self._exact.get(path, 0) | bit
            self._holder.setdefault((path, batch), task)
            for above in self._folders(path):
                self._below[above] = self._below.get(above, 0) | bit
                self._holder.setdefault((above, batch), task)

    def why(self, task: int, paths: Sequence[str], batch: int) -> Split:
        """What keeps the task out of that batch."""
        bit = 1 << batch
        for path in paths:
            if (self._exact.get(path, 0) | self._below.get(path, 0)) & bit:
                return Split(task=task, path=path, other=self._holder[path, batch])
            for above in self._folders(path):
                if self._exact.get(above, 0) & bit:
                    return Split(task=task, path=above, other=self._holder[above, batch])
        raise AssertionError("a task is kept out of a batch by one of its paths")

    def _folders(self, path: str) -> Iterator[str]:
        return (above for above in _above(path) if above in self._declared)


def _above(path: str) -> Iterator[str]:
    """The folders of a path, the nearest first."""
    end = path.rfind("/")
    while end > 0:
        path = path[:end]
        yield path
        end = path.rfind("/")
