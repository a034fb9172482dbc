"""A repository under git-orch as its user and a client see it: settings, hooks, reviews, and what became of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from git_orch import key as keys
from git_orch import registry
from git_orch.registry import Registry
from tests.adversaries.stage import is_alive
from tests.fakes import fake_reviewer
from tests.repo import Repo, init_repo
from tests.waiting import wait_until

PROJECT = Path(__file__).parents[1]
HOOK = [sys.executable, "-I", "-S", str(PROJECT / "git_orch" / "hook.py")]
END_S = 30.0
Json = dict[str, Any]


class Project:
    """A repository with one commit, in which git-orch is enabled; `a.py` differs from that commit."""

    def __init__(self, path: Path) -> None:
        self.repo: Repo = init_repo(path)
        self.path = path
        self.repo.write("a.py", "one = 1\n")
        self.repo.write("docs/b.txt", "text\n")
        self.repo.commit("first")
        self.set("orch.enabled", "true")
        self.set("orch.settle", "1ms")  # agents are not waited with; a test of that sets it
        self.repo.write("a.py", "one = 1\ntwo = 2\n")

    @classmethod
    def of(cls, path: Path) -> Self:
        """A worktree that is there already, as it is."""
        project = cls.__new__(cls)
        project.repo, project.path = Repo(path), path
        return project

    # -- settings

    def set(self, key: str, *values: str) -> None:
        """The setting has exactly these values."""
        subprocess.run(["git", "config", "--unset-all", key], cwd=self.path, check=False, capture_output=True)
        for value in values:
            self.repo.git("config", "--add", key, value)

    def reviewer(self, name: str, *steps: str | Path, **settings: str) -> None:
        """A reviewer of that name takes these steps (tests.fakes.fake_reviewer)."""
        self.command(name, fake_reviewer(*steps), **settings)

    def command(self, name: str, command: str, **settings: str) -> None:
        """A reviewer of that name runs that command line."""
        for key, value in {"command": command, **settings}.items():
            self.set(f"orch.reviewer.{name}.{key}", value)

    def only(self, *names: str) -> None:
        """These are the reviewers that a hook has."""
        self.set("orch.reviewers", *names)

    # -- what a client does

    def fire(
        self,
        event: str = "stop",
        session: str = "s1",
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        client: str = "",
        said: Mapping[str, object] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """The hook has returned; `client` is named by its line, `said` is in the client's JSON beside the usual."""
        payload = {**json.loads(self.payload(event, session, cwd)), **(said or {})}
        done = subprocess.run(
            [*HOOK, event, *filter(None, [client])],
            input=json.dumps(payload),
            cwd=cwd or self.path,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=END_S,
            check=False,
        )
        assert done.returncode == 0
        return done

    def payload(self, event: str = "stop", session: str = "s1", cwd: Path | None = None) -> str:
        """What the client writes to the hook."""
        known = {"session_id": session, "cwd": str(cwd or self.path), "hook_event_name": event, "transcript_path": "x"}
        return json.dumps(known)

    def edit(self, text: str, path: str = "a.py") -> None:
        """The file holds the text now."""
        self.repo.write(path, text)

    def rewrite(self) -> None:
        """What was not committed is, on a branch, with an amended message, rebased onto a commit of another file."""
        git = self.repo.git
        git("switch", "--quiet", "--create", "topic")
        git("add", "--all")
        git("commit", "--quiet", "--message", "c")
        git("commit", "--quiet", "--amend", "--message", "other words")
        git("switch", "--quiet", "main")
        self.edit("upstream\n", "upstream.txt")
        git("add", "--all")
        git("commit", "--quiet", "--message", "upstream")
        git("switch", "--quiet", "topic")
        git("rebase", "--quiet", "main")

    # -- what became of it

    @property
    def pending(self) -> Path:
        return self.path / ".orch" / "pending"

    @property
    def live(self) -> list[str]:
        """The runs that have an entry, oldest first."""
        return sorted(path.stem for path in self.pending.glob("*.json"))

    @property
    def runs(self) -> list[str]:
        """All runs that there were, oldest first."""
        return sorted(path.name for path in self._runs.glob("2*"))

    @property
    def last(self) -> str:
        return self.runs[-1]

    @property
    def _runs(self) -> Path:
        return self.path / ".git" / "orch" / "runs"

    def settle(self, timeout_s: float = END_S) -> None:
        """No run is alive."""
        wait_until(lambda: not self.live, timeout_s, what="every run has ended")

    def ended(self, run_id: str = "") -> Json:
        """The record of the run (the last one), once it has ended."""
        self.settle()
        return self.record(run_id or self.last)

    def record(self, run_id: str) -> Json:
        return self.read(run_id, "record.json")

    def read(self, run_id: str, name: str) -> Json:
        value: Json = json.loads((self._runs / run_id / name).read_bytes())
        return value

    def file(self, run_id: str, name: str) -> Path:
        return self._runs / run_id / name

    def events(self, run_id: str = "") -> list[Json]:
        """What the run's journal tells."""
        path = self._runs / (run_id or self.last) / "events.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines() if line]

    def state(self, run_id: str) -> str:
        """The status of a live run, by its entry; "" where there is none."""
        state = self._book().state(run_id)
        return state.status if state else ""

    def supervisor(self, run_id: str) -> int:
        """The pid of the live supervisor, by the kernel's word; 0 where there is none."""
        return self._book().supervisor_pid(run_id)

    def guardian(self, run_id: str) -> int:
        """The pid of the run's first guardian, by the kernel's word; 0 where there is none."""
        return self._book().guardian_pid(run_id)

    def _book(self) -> Registry:
        live = str(self.path / ".orch")
        return Registry(live, keys.load(os.environ), registry.instance_of(live))

    def processes(self, run_id: str = "") -> list[int]:
        """The processes that carry the cookie of the run (the last one), zombies not counted."""
        cookie = f"ORCH_TASK={run_id or self.last}.".encode()
        return [int(name) for name in os.listdir("/proc") if name.isdecimal() and _carries(int(name), cookie)]

    def trees(self) -> list[str]:
        """The runs that have a folder in $TEMP."""
        return sorted(path.name for path in Path(os.environ["TMPDIR"]).glob("git-orch-*/2*"))


def _carries(pid: int, cookie: bytes) -> bool:
    try:
        return cookie in Path(f"/proc/{pid}/environ").read_bytes() and is_alive(pid)
    except OSError:
        return False


def reviewer_of(record: Json, name: str) -> Json:
    """What the record says of one reviewer."""
    found: Json = next(each for each in record["reviewers"] if each["name"] == name)
    return found


def outcomes(record: Json) -> dict[str, str]:
    """How each reviewer of the record ended."""
    return {each["name"]: each["outcome"] for each in record["reviewers"]}


def appears(path: Path, timeout_s: float = END_S) -> None:
    """The path is there."""
    wait_until(path.exists, timeout_s, what=f"{path.name} is there")
