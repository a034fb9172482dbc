"""Tasks that share no file, together: no two of a batch ever share one, and none could go earlier."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from git_orch import partition

PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join)
FILES = st.lists(st.sets(PATHS, max_size=4), max_size=12)


def overlap(one: set[str], other: set[str]) -> bool:
    return any(a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/") for a in one for b in other)


@given(FILES)
def test_no_two_of_a_batch_share_a_file_and_none_could_go_earlier(files: list[set[str]]) -> None:
    found = partition.batches(range(len(files)), dict(enumerate(files)))
    assert sorted(itertools.chain(*found.batches)) == list(range(len(files)))
    for batch in found.batches:
        assert not any(overlap(files[a], files[b]) for a, b in itertools.combinations(batch, 2))
    for number, batch in enumerate(found.batches):
        for task in batch:
            for earlier in found.batches[:number]:
                assert any(overlap(files[task], files[other]) for other in earlier if other < task)


@given(FILES)
def test_whatever_is_not_in_the_first_batch_has_a_true_reason(files: list[set[str]]) -> None:
    found = partition.batches(range(len(files)), dict(enumerate(files)))
    place = {task: number for number, batch in enumerate(found.batches) for task in batch}
    assert {split.task for split in found.splits} == {task for task, number in place.items() if number}
    for split in found.splits:
        assert place[split.other] == place[split.task] - 1
        assert overlap({split.path}, files[split.task])
        assert overlap({split.path}, files[split.other])


@given(FILES)
def test_every_pair_that_is_kept_apart_is_told_and_no_other(files: list[set[str]]) -> None:
    told = partition.conflicts(dict(enumerate(files)))
    assert [each.path for each in told] == sorted({each.path for each in told})
    apart = set()
    for each in told:
        assert all(each.path in files[task] for task in each.tasks)
        assert all(overlap({each.path}, files[task]) for task in each.below)
        pairs = [*itertools.combinations(each.tasks, 2), *itertools.product(each.tasks, each.below)]
        assert pairs
        apart |= {tuple(sorted(pair)) for pair in pairs}
    pairs_of_all = itertools.combinations(range(len(files)), 2)
    assert apart == {(one, other) for one, other in pairs_of_all if overlap(files[one], files[other])}


def test_a_folder_and_a_file_in_it() -> None:
    files = {0: ["src/api"], 1: ["src/api/routes.py"], 2: ["src/api.py"], 3: ["src"]}
    found = partition.batches([0, 1, 2, 3], files)
    assert found.batches == ((0, 2), (1,), (3,))
    assert [(split.path, split.other) for split in found.splits] == [("src/api", 0), ("src", 1)]
