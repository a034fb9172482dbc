from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from tests.seal import KEPT, MARKER, Seal, held_locks, leftover_entries, leftover_trees, make_seal, sealed_environment
from tests.waiting import wait_until

OUTSIDE = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/home/somebody",
    "GIT_DIR": "/elsewhere/.git",
    "GIT_INDEX_FILE": "/elsewhere/.git/index.lock",
    "ORCH": "0",
    "ORCH_DIR": "/elsewhere",
    "XDG_STATE_HOME": "/home/somebody/.state",
    "CLAUDECODE": "1",
    "SSH_AUTH_SOCK": "/run/agent",
    "PYTEST_XDIST_WORKER": "gw1",
}


@pytest.fixture
def world(tmp_path: Path) -> Seal:
    """A seal of another world inside the test's own."""
    root = tmp_path / "world"
    root.mkdir()
    return make_seal(root)


def test_nothing_of_the_outside_gets_in_but_path_and_the_runner(world: Seal) -> None:
    env = sealed_environment(world, OUTSIDE, Path("/venv/bin"))
    came_in = {name for name, value in env.items() if OUTSIDE.get(name) == value}
    assert came_in == {"PYTEST_XDIST_WORKER"}
    assert env["PATH"] == "/venv/bin:/usr/bin:/bin"
    assert not [name for name in env if name.startswith("ORCH") or name in ("GIT_DIR", "GIT_INDEX_FILE")]
    assert "HOME" not in KEPT


def test_every_folder_of_the_environment_lies_in_the_world(world: Seal) -> None:
    env = sealed_environment(world, OUTSIDE, Path("/venv/bin"))
    folders = [env[name] for name in env if name in ("HOME", "TMPDIR", "GIT_CONFIG_GLOBAL") or name.startswith("XDG_")]
    assert len(folders) == 8
    assert all(Path(folder).is_relative_to(world.root) for folder in folders)


def test_this_very_test_is_sealed(seal: Seal) -> None:
    assert os.environ["HOME"] == str(seal.home)
    assert os.environ[MARKER] == seal.marker
    assert Path.home() == seal.home
    assert seal.home.stat().st_mode & 0o777 == 0o700


def test_a_tree_of_a_run_is_found_and_a_parked_one_is_not(world: Seal) -> None:
    tree = world.tmp / "git-orch-1000" / "20261130T201500123-9f3a61c2"
    tree.mkdir(parents=True)
    (world.tmp / "git-orch-1000" / "warm").mkdir()
    assert leftover_trees(world) == [tree]


@pytest.mark.parametrize("pending", [".orch/pending", "bare.git/orch/live/pending"])
def test_an_entry_is_found_wherever_the_registry_may_lie(world: Seal, pending: str) -> None:
    entry = world.root / "repo" / pending / "20261130T201500123-9f3a61c2.json"
    entry.parent.mkdir(parents=True)
    assert leftover_entries(world) == []
    entry.touch()
    assert leftover_entries(world) == [entry]


def test_a_lock_is_told_while_it_is_held(world: Seal) -> None:
    lock = world.root / "repo/.orch/pending/20261130T201500123-9f3a61c2.lock"
    lock.parent.mkdir(parents=True)
    with lock.open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert held_locks(world) == [lock]
    assert held_locks(world) == []


def test_waiting_returns_the_first_true_value() -> None:
    values = iter([0, "", "there"])
    assert wait_until(lambda: next(values), timeout_s=10) == "there"


def test_waiting_ends_and_names_what_it_waited_for() -> None:
    with pytest.raises(AssertionError, match=r"not within 0\.01 s: the moon \(last value: 0\)"):
        wait_until(lambda: 0, timeout_s=0.01, what="the moon")
