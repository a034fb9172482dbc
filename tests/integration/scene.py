"""A repository with two commits, opened as git-orch opens it, and supervisors that die in it."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from git_orch import key as keys
from git_orch import launch, runs, workspace
from git_orch.launch import Order
from git_orch.model import Base, ReviewerSettings
from git_orch.place import temp_root
from git_orch.target import Target
from git_orch.workspace import Workspace
from tests.repo import Repo
from tests.waiting import wait_until

PROJECT = Path(__file__).parents[2]
FAKE_REVIEWER = PROJECT / "tests" / "fakes" / "fake_reviewer.py"
SUPERVISOR = PROJECT / "tests" / "adversaries" / "dying_supervisor.py"
READY_S = 30.0
END_S = 20.0


def open_scene(repo: Repo) -> Workspace:
    """The repository with a difference between its last two commits."""
    repo.write("a.py", "base\n")
    repo.commit("base")
    repo.write("a.py", "reviewed\n")
    repo.commit("reviewed")
    return workspace.open_at(str(repo.path), dict(os.environ))


def trees(repo: Repo) -> dict[str, str]:
    """What an intent has to say of that difference."""
    return {
        "tree_id": repo.git("rev-parse", "HEAD^{tree}"),
        "base_tree_id": repo.git("rev-parse", "HEAD~^{tree}"),
    }


def cookie(scene: Workspace, run_id: str) -> str:
    """What the environment of the run's jobs holds."""
    return f"{run_id}.{keys.mac(scene.key, 'task', run_id)}"


class Dying:
    """A supervisor that has got as far as a stage. Leaving the block kills it, if nobody has yet."""

    def __init__(self, repo: Repo, stage: str, **fields: Any) -> None:
        given = json.dumps({**trees(repo), **fields})
        command = [sys.executable, "-I", "-S", *map(str, (SUPERVISOR, PROJECT, repo.path, stage, given))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", env=dict(os.environ)
        )
        assert self._process.stdout
        ready, _, _ = select.select([self._process.stdout], [], [], READY_S)
        line = self._process.stdout.readline() if ready else b""
        assert line, f"no word of the supervisor at {stage}"
        facts = json.loads(line)
        self.run_id: str = facts["run_id"]
        self.job: int = facts["job"]
        self.tree = Path(facts["tree"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """It was sent SIGKILL, and is gone."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait(END_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()


def dead(repo: Repo, stage: str, **fields: Any) -> Dying:
    """A supervisor that was killed at that stage."""
    with Dying(repo, stage, **fields) as supervisor:
        return supervisor


# -- supervisors that live


class Rehearsal:
    """A real run with one reviewer, which has begun and waits until it is told to go on."""

    def __init__(self, scene: Workspace, repo: Repo, tmp_path: Path, *, client: str = "you") -> None:
        self.scene = scene
        self.started, self.go = tmp_path / "started", tmp_path / "go"
        words = [sys.executable, str(FAKE_REVIEWER), "--touch", str(self.started), "--wait-for", str(self.go), "--pass"]
        reviewer = ReviewerSettings(name="fake", command=shlex.join(words), timeout_s=120, stall_s=120)
        target = Target(
            base=Base(tree_id=trees(repo)["base_tree_id"], name="HEAD~"),
            tree_id=trees(repo)["tree_id"],
            subject="main~..main",
        )
        order = Order(reviewers=(reviewer,), client=client)
        root = temp_root(scene.env)
        self.intent = launch.prepare(scene.layout, scene.settings, target, order, root, scene.book.instance)
        self.run_id = self.intent.run_id

    def fire(self) -> int:
        """The pid of its supervisor, which has been started and is a child of this process."""
        lock = self.scene.book.publish(self.intent)
        return launch.by_exec(self.scene.book, self.intent, lock, self.scene.env)

    def await_reviewer(self) -> None:
        wait_until(self.started.exists, READY_S)

    def release(self) -> None:
        self.go.touch()

    @property
    def record(self) -> dict[str, Any] | None:
        return runs.final_record(self.intent.run_dir)


def has_exited(pid: int) -> bool:
    """Whether a child of this process has ended; it is reaped then."""
    return os.waitpid(pid, os.WNOHANG)[0] == pid
