"""`git orch mcp`, by the protocol's own client: what an agent may do, and no more."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.project import Json, Project

ALIVE = ("queued", "starting", "running")
TOOLS = ["dispute", "finding", "findings", "gate", "review", "wait"]


def with_client(project: Project, work: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    """The work is done with a server that stands in the repository; it has ended afterwards."""

    async def run() -> None:
        server = StdioServerParameters(command="git", args=["orch", "mcp"], cwd=project.path, env=None)
        with anyio.fail_after(60):
            async with Client(server) as client:
                await work(client)

    anyio.run(run)


async def call(client: Client, tool: str, **given: Any) -> Json:
    """What the tool answered."""
    answer = await client.call_tool(tool, given)
    assert not answer.is_error, answer.content
    told: Json = answer.structured_content or {}
    return told


async def refused(client: Client, tool: str, **given: Any) -> str:
    """The sentence of a tool that said no."""
    answer = await client.call_tool(tool, given)
    assert answer.is_error
    return " ".join(getattr(part, "text", "") for part in answer.content)


def test_it_has_these_tools_and_no_other(project: Project) -> None:
    async def work(client: Client) -> None:
        listed = await client.list_tools()
        assert sorted(tool.name for tool in listed.tools) == TOOLS
        review = next(tool for tool in listed.tools if tool.name == "review")
        assert sorted(review.input_schema["properties"]) == ["fresh", "rev"]  # no reviewer: that is a person's choice

    with_client(project, work)


def test_a_review_is_started_followed_and_read(project: Project) -> None:
    project.edit("def broken(:\n")

    async def work(client: Client) -> None:
        started = await call(client, "review")
        assert started["status"] in ALIVE
        told = await call(client, "wait", run=started["run_id"])
        assert (told["verdict"], told["run_id"]) == ("findings", started["run_id"])
        listed = await call(client, "findings")
        (found,) = listed["findings"]
        one = await call(client, "finding", name=found["id"])
        assert one["finding"]["message"] == found["message"]
        judged = await call(client, "gate")
        assert judged["gates"][0]["state"] == "unreviewed"

    with_client(project, work)
    project.settle()


def test_a_dispute_goes_to_the_inbox_and_closes_nothing(project: Project) -> None:
    project.edit("def broken(:\n")
    subprocess.run(["git", "orch", "review"], cwd=project.path, check=False, capture_output=True, timeout=60)
    inbox = project.path / ".orch" / "inbox"

    async def work(client: Client) -> None:
        listed = await call(client, "findings")
        finding_id = listed["findings"][0]["id"]
        assert "wants a reason" in await refused(client, "dispute", name=finding_id, why=" ")
        await call(client, "dispute", name=finding_id, why="generated")
        (wish,) = [json.loads(path.read_text()) for path in inbox.glob("*.json")]
        assert (wish["do"], wish["finding"], wish["why"]) == ("dispute", finding_id, "generated")
        assert not (project.path / ".git/orch/decisions.jsonl").exists()

    with_client(project, work)
    subprocess.run(["git", "orch", "review", "-n"], cwd=project.path, check=False, capture_output=True, timeout=60)
    subprocess.run(["git", "orch", "gate"], cwd=project.path, check=False, capture_output=True, timeout=60)
    taken = (project.path / ".git/orch/decisions.jsonl").read_text()
    assert '"dispute"' in taken
    assert '"dismiss"' not in taken


def test_what_is_wrong_is_said_in_a_sentence(project: Project) -> None:
    async def work(client: Client) -> None:
        assert "no finding `zzzz` here" in await refused(client, "finding", name="zzzz")
        assert "`nosuch` is no revision here" in await refused(client, "review", rev="nosuch")
        assert "`--fail-on=never` is an option, not a name" in await refused(client, "review", rev="--fail-on=never")

    with_client(project, work)
    assert project.runs == []


def test_modules_of_the_repository_are_not_imported(project: Project) -> None:
    (project.path / "typer.py").write_text("raise SystemExit('imported')\n")
    (project.path / "git_orch").mkdir()
    (project.path / "git_orch/__init__.py").write_text("raise SystemExit('imported')\n")

    async def work(client: Client) -> None:
        assert (await call(client, "review"))["status"] in ALIVE

    with_client(project, work)
    project.settle()


def test_without_the_extra_it_says_how_to_get_it(project: Project, tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ImportError\n")
    done = subprocess.run(
        ["git", "orch", "mcp"],
        cwd=project.path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, "git orch mcp needs the extra `mcp`" in done.stderr) == (4, True)


@pytest.mark.parametrize("close", [b"", b"not json\n"])
def test_it_ends_when_its_client_is_gone(project: Project, close: bytes) -> None:
    done = subprocess.run(
        ["git", "orch", "mcp"], cwd=project.path, input=close, capture_output=True, timeout=30, check=False
    )
    assert done.returncode == 0
