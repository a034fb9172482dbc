"""Waves, cycles and the longest way, on any graph."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from git_orch import graph


@st.composite
def acyclic(draw: st.DrawFn) -> list[list[int]]:
    """Of each task those that it waits for, in any numbering."""
    count = draw(st.integers(0, 12))
    order = draw(st.permutations(range(count)))
    depends: list[list[int]] = [[] for _ in range(count)]
    for place, task in enumerate(order):
        depends[task] = draw(st.lists(st.sampled_from(order[:place]), max_size=4)) if place else []
    return depends


@st.composite
def any_graph(draw: st.DrawFn) -> list[list[int]]:
    count = draw(st.integers(1, 9))
    return [draw(st.lists(st.integers(0, count - 1), max_size=3)) for _ in range(count)]


@given(acyclic())
def test_each_task_is_in_the_wave_right_after_the_last_that_it_waits_for(depends: list[list[int]]) -> None:
    found = graph.waves(depends)
    wave_of = {task: number for number, wave in enumerate(found) for task in wave}
    assert sorted(wave_of) == list(range(len(depends)))
    assert [len(wave) for wave in found if wave != sorted(wave)] == []
    for task, before in enumerate(depends):
        assert wave_of[task] == max((wave_of[other] + 1 for other in before), default=0)


@given(acyclic(), st.sets(st.integers(0, 11)))
def test_nobody_waits_for_what_is_left_out(depends: list[list[int]], without: set[int]) -> None:
    kept = [[other for other in before if other not in without] for before in depends]
    placed = {task for wave in graph.waves(depends, without=without) for task in wave}
    assert placed == set(range(len(depends))) - without
    wave_of = {task: n for n, wave in enumerate(graph.waves(depends, without=without)) for task in wave}
    assert all(wave_of[task] > wave_of[other] for task in placed for other in kept[task])


@given(any_graph())
def test_a_cycle_is_one_and_is_found_wherever_there_is_one(depends: list[list[int]]) -> None:
    members = graph.cycle(depends)
    placed = sum(map(len, graph.waves(depends)))
    assert bool(members) == (placed < len(depends))
    for task, following in zip(members, members[1:] + members[:1], strict=True):
        assert following in depends[task]
    assert len(set(members)) == len(members)
    assert not members or members[0] == min(members)


@given(acyclic(), st.data())
def test_no_way_through_is_longer_than_the_longest(depends: list[list[int]], data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(0, 9), min_size=len(depends), max_size=len(depends)))

    def longest_to(task: int) -> int:
        return lengths[task] + max(map(longest_to, depends[task]), default=0)

    path = graph.longest_path(depends, lengths)
    assert sum(lengths[task] for task in path) == max(map(longest_to, range(len(depends))), default=0)
    assert all(before in depends[task] for before, task in itertools.pairwise(path))
