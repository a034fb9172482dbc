"""The parked tree: the next run's, if it is as it was left; nobody's otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from git_orch import parking
from git_orch.inspection import Inspection, inspect
from git_orch.parking import expire, park, take
from git_orch.place import Place, temp_root
from git_orch.store import Store
from git_orch.tree import materialize
from tests.conftest import MakeRepo
from tests.repo import Repo
from tests.scratch import clear_places, content, listed, new_place, store_of, tree_of
from tests.seal import Seal


@pytest.fixture(autouse=True)
def cleared(seal: Seal) -> Iterator[None]:  # noqa: ARG001 - it is set up first and looks last
    yield
    clear_places()


def slots() -> list[Path]:
    return sorted(Path(temp_root(os.environ)).glob("warm/*/*"))


def parked(store: Store, tree_id: str) -> Place:
    """The place of a run that has materialized the tree and parked it."""
    place = new_place()
    materialize(store, tree_id, place)
    assert park(place, store, inspect(place, store, tree_id))
    return place


def test_the_difference_alone_is_written(repo: Repo) -> None:
    for name in ("same", "edited", "gone", "dir/a", "dir/b", "script", "was-file", "was-dir/x", "was-link"):
        repo.write(name, f"{name}\n")
    (repo.path / "was-link").unlink()
    (repo.path / "was-link").symlink_to("same")
    repo.git("add", "-A")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    first = repo.git("write-tree")
    (repo.path / "gone").unlink()
    repo.write("edited", "changed\n")
    (repo.path / "script").chmod(0o755)
    (repo.path / "was-file").unlink()
    repo.write("was-file/now/a/folder", "x\n")
    shutil.rmtree(repo.path / "was-dir")
    repo.write("was-dir", "now a file\n")
    (repo.path / "was-link").unlink()
    repo.write("was-link", "now a file\n")
    (repo.path / "dir/a").rename(repo.path / "dir/c")
    repo.write("new", "new\n")
    repo.git("rm", "-q", "--cached", "module")
    repo.git("add", "-A")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},other/module")
    second = repo.git("write-tree")
    store = store_of(repo)
    inode = os.stat(f"{new_tree(store, first).tree}/same").st_ino
    place = new_place()
    assert materialize(store, second, place) == "warm"
    assert content(Path(place.tree)) == listed(repo, second)
    assert os.stat(f"{place.tree}/same").st_ino == inode
    assert inspect(place, store, second).clean
    assert park(place, store, inspect(place, store, second))
    place = new_place()
    assert materialize(store, first, place) == "warm"
    assert content(Path(place.tree)) == listed(repo, first)


def new_tree(store: Store, tree_id: str) -> Place:
    """A tree that is parked and can still be looked at: as the slot's."""
    parked(store, tree_id)
    (slot,) = slots()
    place = Place("", "", str(slot), b"")
    assert os.path.isdir(place.tree)
    return place


def test_cold_is_cold_even_where_a_tree_waits(repo: Repo) -> None:
    repo.write("a", "x\n")
    tree_id, store = tree_of(repo), store_of(repo)
    parked(store, tree_id)
    assert materialize(store, tree_id, new_place(), warm=False) == "cold"
    assert len(slots()) == 1


def test_another_repositorys_tree_is_not_taken(repo: Repo, make_repo: MakeRepo) -> None:
    other = make_repo("other")
    for each in (repo, other):
        each.write("a", "x\n")
    tree_id = tree_of(repo)
    assert tree_of(other) == tree_id
    parked(store_of(repo), tree_id)
    assert materialize(store_of(other), tree_id, new_place()) == "cold"


def test_a_tree_is_taken_once(repo: Repo) -> None:
    repo.write("a", "x\n")
    tree_id, store = tree_of(repo), store_of(repo)
    parked(store, tree_id)
    places = [new_place(reviewer=name) for name in ("a", "b", "c")]
    assert [materialize(store, tree_id, place) for place in places] == ["warm", "cold", "cold"]
    assert [park(place, store, inspect(place, store, tree_id)) for place in places] == [True, False, False]
    assert len(slots()) == 1


def test_one_that_is_not_clean_or_not_inspected_is_not_parked(repo: Repo) -> None:
    repo.write("a", "x\n")
    tree_id, store, place = tree_of(repo), store_of(repo), new_place()
    materialize(store, tree_id, place)
    assert not park(place, store, Inspection(tampered=("a",)))
    assert not park(place, store, Inspection(littered=("b",)))
    os.unlink(place.index)
    assert not park(place, store, Inspection())
    assert slots() == []


def test_one_whose_index_the_job_has_rewritten_is_not_parked(repo: Repo) -> None:
    """An index that lies would make `read-tree` leave on the disk what the job wants there."""
    repo.write("a", "x\n")
    tree_id, store, place = tree_of(repo), store_of(repo), new_place()
    materialize(store, tree_id, place)
    store.git(index=place.index, work_tree=place.tree).run("update-index", "--assume-unchanged", "a")
    Path(place.tree, "a").write_text("y\n")
    inspection = inspect(place, store, tree_id)
    assert inspection.tampered == ("a",)
    Path(place.tree, "a").write_text("x\n")
    inspection = inspect(place, store, tree_id)
    assert inspection.clean
    assert not park(place, store, inspection)


def test_one_that_takes_more_than_a_tenth_of_what_is_free_is_not_parked(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.write("a", "x\n")
    tree_id, store, place = tree_of(repo), store_of(repo), new_place()
    materialize(store, tree_id, place)
    inspection = inspect(place, store, tree_id)
    free = 10 * (inspection.size_bytes + 4096)
    real = os.statvfs(place.root)
    for left, parks in ((free - 10, False), (free, True)):
        status = os.statvfs_result((1, 1, *real[2:4], left, *real[5:]))
        monkeypatch.setattr(os, "statvfs", lambda _, status=status: status)
        assert park(place, store, inspection) is parks


# -- what happens to it while it waits


HARMLESS = {
    "edited": "echo edited >dir/a",
    "removed": "rm dir/a",
    "folder removed": "rm -r dir",
    "made executable": "chmod +x dir/a",
    "link in its place": "ln -sf b dir/a",
}
FOREIGN = {
    "a conftest.py": "touch tree/conftest.py",
    "a file in a folder": "touch tree/dir/extra",
    "a .git": "mkdir tree/.git; echo '[core]fsmonitor=evil' >tree/.git/config",
    "a node_modules": "mkdir tree/node_modules; touch tree/node_modules/x",
    "a link": "ln -s / tree/dir/link",
    "another index": "echo >>index",
    "no index": "rm index",
    "another seal": "printf %032d 0 >parked",
    "no seal": "rm parked",
    "a copy of the tree": "cp -a tree copy; rm -r tree; mv copy tree",
    "no tree": "rm -r tree",
    "a link for the tree": "mv tree x; ln -s x tree",
}


def shell(command: str, folder: Path) -> None:
    subprocess.run(["sh", "-euc", command], cwd=folder, check=True, timeout=60)


@pytest.mark.parametrize("what", HARMLESS)
def test_an_edit_of_a_parked_tree_is_put_right(repo: Repo, what: str) -> None:
    for name in ("dir/a", "dir/b", "c"):
        repo.write(name, "x\n")
    tree_id, store = tree_of(repo), store_of(repo)
    parked(store, tree_id)
    shell(HARMLESS[what], slots()[0] / "tree")
    place = new_place()
    materialize(store, tree_id, place)
    assert content(Path(place.tree)) == listed(repo, tree_id)
    assert inspect(place, store, tree_id).clean


@pytest.mark.parametrize("what", FOREIGN)
def test_a_parked_tree_that_somebody_was_at_is_given_up(repo: Repo, what: str) -> None:
    for name in ("dir/a", "dir/b", "c"):
        repo.write(name, "x\n")
    tree_id, store = tree_of(repo), store_of(repo)
    parked(store, tree_id)
    shell(FOREIGN[what], slots()[0])
    place = new_place()
    assert materialize(store, tree_id, place) == "cold"
    assert content(Path(place.tree)) == listed(repo, tree_id)
    assert sorted(os.listdir(place.root)) == ["index", "request", "tree"]
    assert slots() == []


def test_an_edit_that_keeps_size_and_times_never_passes_for_the_tree(repo: Repo) -> None:
    """Case 66. Some gits see times by the second: within that of the making the inspection alone sees the edit."""
    for name in ("dir/a", "b"):
        repo.write(name, "x\n")
    tree_id, store = tree_of(repo), store_of(repo)
    parked(store, tree_id)
    shell("touch -r dir/a ../times; echo y >dir/a; touch -r ../times dir/a", slots()[0] / "tree")
    place = new_place()
    materialize(store, tree_id, place)
    is_right = content(Path(place.tree)) == listed(repo, tree_id)
    assert inspect(place, store, tree_id).tampered == (() if is_right else ("dir/a",))


def test_another_users_key_takes_nothing(repo: Repo) -> None:
    repo.write("a", "x\n")
    tree_id, store = tree_of(repo), store_of(repo)
    parked(store, tree_id)
    assert materialize(store, tree_id, new_place()) == "warm"
    place = new_place()
    clear_places()
    parked(store, tree_id)
    stranger = new_place()
    stranger.key = b"x" * 32
    assert not take(stranger, store)
    assert place.run_id != stranger.run_id


def test_a_day_is_the_longest(repo: Repo) -> None:
    repo.write("a", "x\n")
    tree_id, store = tree_of(repo), store_of(repo)
    parked(store, tree_id)
    os.utime(slots()[0] / "parked", (0, 0))
    assert materialize(store, tree_id, new_place()) == "cold"
    assert slots() == []


def test_one_that_has_had_its_time_makes_room_for_the_next(repo: Repo) -> None:
    repo.write("a", "x\n")
    tree_id, store = tree_of(repo), store_of(repo)
    parked(store, tree_id)
    os.utime(slots()[0] / "parked", (0, 0))
    inode = (slots()[0] / "tree").stat().st_ino
    place = new_place()
    materialize(store, tree_id, place, warm=False)
    assert park(place, store, inspect(place, store, tree_id))
    assert (slots()[0] / "tree").stat().st_ino != inode


def test_a_sweep_takes_those_whose_time_is_up(repo: Repo, make_repo: MakeRepo) -> None:
    other = make_repo("other")
    for each in (repo, other):
        each.write("a", "x\n")
        parked(store_of(each), tree_of(each))
    root = temp_root(os.environ)
    expire(root)
    assert len(slots()) == 2
    os.utime(slots()[0] / "parked", (0, 0))
    (slots()[0].parent / "0.crashed").mkdir()
    expire(root)
    assert len(slots()) == 1
    expire(root, longest_s=-1)
    assert os.listdir(os.path.join(root, parking.WARM)) == []


def test_a_tree_that_cannot_be_brought_up_to_date_is_made_anew(repo: Repo) -> None:
    repo.write("a", "x\n")
    tree_id, store = tree_of(repo), store_of(repo)
    parked(store, tree_id)
    place = new_place()
    Path(f"{place.index}.lock").touch()  # as a crashed read-tree leaves it
    assert materialize(store, tree_id, place) == "cold"
    assert content(Path(place.tree)) == listed(repo, tree_id)


def test_files_that_were_just_made_are_older_than_their_index(repo: Repo) -> None:
    """By the second, as some gits compare: they would read all of them again in a warm start that follows at once."""
    repo.write("a", "x\n")
    tree_id, store = tree_of(repo), store_of(repo)
    parked(store, tree_id)
    (slot,) = slots()
    assert int((slot / "tree/a").stat().st_mtime) < int((slot / "index").stat().st_mtime)
