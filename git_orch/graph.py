"""The order of tasks: Kahn's waves, a cycle by its members, the longest way through. Pure; tasks are numbers from 0.

Linear in tasks and edges.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def waves(depends: Sequence[Collection[int]], *, without: Collection[int] = ()) -> list[list[int]]:
    """The tasks in waves: each task right after the last wave that it waits for, in the order of their numbers.

    A task on a cycle, or behind one, is in no wave.

    Args:
        depends: of each task those that it waits for.
        without: tasks that are left out, and that nobody waits for.
    """
    left_out = frozenset(without)
    waiting = [len(frozenset(before) - left_out) for before in depends]
    after = _after(depends)
    found = []
    wave = [task for task, count in enumerate(waiting) if not count and task not in left_out]
    while wave:
        found.append(wave)
        following = []
        for task in wave:
            for other in after[task]:
                waiting[other] -= 1
                if not waiting[other] and other not in left_out:
                    following.append(other)
        wave = sorted(following)
    return found


def cycle(depends: Sequence[Collection[int]]) -> list[int]:
    """The members of one cycle, each followed by one that it waits for, the smallest first; [] where there is none."""
    placed = {task for wave in waves(depends) for task in wave}
    stuck = [task for task in range(len(depends)) if task not in placed]
    if not stuck:
        return []
    way: dict[int, int] = {}  # each stuck task waits for a stuck one, so that the way must come back to itself
    task = stuck[0]
    while task not in way:
        way[task] = len(way)
        task = min(other for other in depends[task] if other not in placed)
    members = list(way)[way[task] :]
    first = members.index(min(members))
    return members[first:] + members[:first]


def longest_path(depends: Sequence[Collection[int]], lengths: Sequence[float]) -> list[int]:
    """The tasks, first to last, whose lengths come to the most one after the other; of equal ways one with a small end.

    There must be no cycle.
    """
    total = [0.0] * len(depends)
    before = [-1] * len(depends)
    for wave in waves(depends):
        for task in wave:
            latest = max(sorted(depends[task]), key=lambda other: total[other], default=-1)
            before[task] = latest
            total[task] = lengths[task] + (total[latest] if latest >= 0 else 0.0)
    task = max(range(len(depends)), key=lambda each: total[each], default=-1)
    path = []
    while task >= 0:
        path.append(task)
        task = before[task]
    return path[::-1]


def _after(depends: Sequence[Collection[int]]) -> list[list[int]]:
    """Of each task those that wait for it."""
    after: list[list[int]] = [[] for _ in depends]
    for task, before in enumerate(depends):
        for other in frozenset(before):
            after[other].append(task)
    return after
