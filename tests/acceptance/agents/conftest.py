"""The scene of a real client: a repository with a change, a provider, and the client on PATH."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.agents.clients import REVIEWERS, Installed, installed, setting
from tests.acceptance.agents.provider import Provider, Reply
from tests.project import Json, Project

REVIEW_S = 100.0


@dataclass(kw_only=True)
class Scene:
    """A project that a client reviews; every request that it makes is in the provider."""

    project: Project
    provider: Provider
    client: Installed
    env: dict[str, str]

    def review(self, *args: str, reviewer: Sequence[Reply] = (), code: int | None = None) -> Json:
        """What `git orch review --json` told; its exit status is the given one, if one is."""
        if reviewer:
            self.provider.reviewer = reviewer
        words = ["git", "orch", "review", "--json", "--reviewer", "static", "--reviewer", self.client.name, *args]
        done = subprocess.run(
            words, cwd=self.project.path, env=self.env, capture_output=True, text=True, timeout=REVIEW_S, check=False
        )
        assert code in (None, done.returncode), f"{done.returncode}\n{done.stdout}\n{done.stderr}\n{self.said()}"
        told: Json = json.loads(done.stdout)
        return told

    def said(self) -> str:
        """What the client itself wrote in the last run, for the message of a failed test."""
        if not self.project.runs:
            return ""
        folder = self.project.file(self.project.last, self.client.name)
        return "".join(
            f"{path.name}: {path.read_text(errors='replace')[:3000]}\n" for path in sorted(folder.glob("result.*"))
        )

    def judged(self) -> Json:
        """What the last record says of the client."""
        record = self.project.record(self.project.last)
        found: Json = next(each for each in record["reviewers"] if each["name"] == self.client.name)
        return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with the fixture `scene` runs with every version of every client, or of those that its mark names."""
    if "scene" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker("clients")
    names = mark.args if mark else REVIEWERS
    params: list[Any] = []
    for name in names:
        found = installed(name)
        absent = pytest.mark.skip(reason=f"{name} is not installed: scripts/clients, AGENT_CLIS, or PATH")
        params += [pytest.param(each, id=each.label) for each in found] or [pytest.param(None, id=name, marks=absent)]
    metafunc.parametrize("client", params)


@pytest.fixture
def scene(client: Installed, tmp_path: Path) -> Iterator[Scene]:
    project = Project(tmp_path / "repo")
    home = Path(os.environ["HOME"])
    with Provider() as provider:
        given = setting(client.name, provider.url, home)
        for path, text in given.files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text)
        env = {**os.environ, **given.env, "PATH": f"{client.program.parent}:{os.environ['PATH']}"}
        yield Scene(project=project, provider=provider, client=client, env=env)
