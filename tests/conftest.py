"""The seal: every test has a world of its own, and fails if it leaves anything in it that lives or binds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

import hypothesis
import pytest

from tests import seal as sealing
from tests.repo import Repo, init_repo
from tests.seal import Seal
from tests.waiting import wait_until

GRACE_S = 5.0  # detached supervisors may still be ending when the test has seen what it wanted
KILL_GRACE_S = 10.0
UNIT_TESTS = Path(__file__).parent / "unit"

# No example database: it would be a file in the checkout. Derandomized: what fails in CI fails here.
hypothesis.settings.register_profile("sealed", database=None, deadline=None, derandomize=True)
hypothesis.settings.load_profile("sealed")

# Under nohup it is ignored, and would be so in all that the tests start.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def seal(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Seal]:
    """The test runs in its own HOME, TMPDIR and environment; afterwards none of its processes, trees or locks is left.

    `@pytest.mark.leaves_entries(why)` and `leaves_trees(why)` excuse what a test leaves on purpose; in tests/unit,
    where nothing runs, entries are only files and need no excuse. Nothing excuses a process or a held lock.
    """
    outside = dict(os.environ)
    cwd = Path.cwd()
    seal = sealing.make_seal(tmp_path)
    replace_environment(sealing.sealed_environment(seal, outside, Path(sys.executable).parent))
    try:
        yield seal
    finally:
        os.chdir(cwd)
        replace_environment(outside)
        faults = left_behind(seal, partial(is_excused, request.node))
    if faults:
        pytest.fail("left behind:\n  " + "\n  ".join(faults), pytrace=False)


def replace_environment(new: Mapping[str, str]) -> None:
    """The process has exactly this environment, and pytest's own variable of the present phase."""
    current = os.environ.get("PYTEST_CURRENT_TEST")
    os.environ.clear()
    os.environ.update(new)
    if current is not None:
        os.environ["PYTEST_CURRENT_TEST"] = current


def is_excused(item: pytest.Item, name: str) -> bool:
    in_unit = item.path.is_relative_to(UNIT_TESTS)
    return item.get_closest_marker(name) is not None or (name == "leaves_entries" and in_unit)


def left_behind(seal: Seal, excused: Callable[[str], bool]) -> list[str]:
    """A line for each process, tree, lock and entry left after a grace; processes with the marker were ended."""
    faults: list[str] = []
    if not settles(lambda: not sealing.leftover_processes(seal), GRACE_S):
        faults += [str(process) for process in end_all(seal)]
    grace_s = 0.0 if faults else GRACE_S
    if not excused("leaves_trees") and not settles(lambda: not sealing.leftover_trees(seal), grace_s):
        faults += [f"tree {path}" for path in sealing.leftover_trees(seal)]
    if not settles(lambda: not sealing.held_locks(seal), grace_s):
        faults += [f"held lock {path}" for path in sealing.held_locks(seal)]
    if not excused("leaves_entries"):
        faults += [f"entry {path}" for path in sealing.leftover_entries(seal)]
    return faults


def settles(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Whether the condition came true in time."""
    try:
        return wait_until(condition, timeout_s)
    except AssertionError:
        return False


def end_all(seal: Seal) -> list[sealing.Leftover]:
    """What was left; those that carry the marker are ended, again and again until no new one appears."""
    seen: dict[int, sealing.Leftover] = {}

    def none_of_ours() -> bool:
        left = sealing.leftover_processes(seal)
        seen.update((process.pid, process) for process in left)
        return not [process for process in left if process.ours and sealing.end(process, seal)]

    settles(none_of_ours, KILL_GRACE_S)
    return list(seen.values())


class MakeRepo(Protocol):
    """The fixture `make_repo`."""

    def __call__(self, name: str, *, object_format: str = "sha1", bare: bool = False, branch: str = "main") -> Repo: ...


@pytest.fixture
def make_repo(tmp_path: Path) -> MakeRepo:
    """A function that makes a repository of that name, without a commit, in the test's folder."""

    def make(name: str, *, object_format: str = "sha1", bare: bool = False, branch: str = "main") -> Repo:
        return init_repo(tmp_path / name, object_format=object_format, bare=bare, branch=branch)

    return make


@pytest.fixture
def repo(make_repo: MakeRepo) -> Repo:
    """A repository named `repo` on branch main, without a commit."""
    return make_repo("repo")


class Orch(Protocol):
    """The fixture `orch`."""

    def __call__(
        self,
        *args: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        timeout_s: float = 60,
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def orch(tmp_path: Path) -> Orch:
    """A function that runs `git orch ARGS`, in the fixture `repo` where the test has one, else in the test's folder.

    `env` is laid over the sealed environment. The exit status is the caller's to look at.
    """

    def run(
        *args: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        timeout_s: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        here = cwd or (tmp_path / "repo" if (tmp_path / "repo").is_dir() else tmp_path)
        return subprocess.run(
            ["git", "orch", *map(str, args)],
            cwd=here,
            env={**os.environ, **(env or {})},
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=timeout_s,
            check=False,
        )

    return run
