"""`git orch mcp`, asked by the client of the package `mcp`, over standard input and output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

from git_orch import formats
from git_orch.commands.mcp_tools import TOOLS
from tests.adversaries.stage import is_alive
from tests.conftest import Orch
from tests.project import Project
from tests.waiting import wait_until

Json = dict[str, Any]
NAMES = ["review", "wait", "findings", "finding", "dispute", "gate"]
SESSION_S = 60.0


class Client:
    """A session with the server, in which each answer is looked at the same way."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def told(self, name: str, **arguments: object) -> Json:
        """The object that the tool told; its text is the same object."""
        result = await self._call(name, arguments)
        assert not result.is_error, result
        found: Json = result.structured_content
        assert json.loads(_text(result)) == found
        return found

    async def refused(self, name: str, **arguments: object) -> str:
        """The sentence in which the tool said no; the object beside it is the one of error.json."""
        result = await self._call(name, arguments)
        assert result.is_error, result
        jsonschema.validate(result.structured_content, json.loads(formats.schema("error")))
        return _text(result)

    async def _call(self, name: str, arguments: Json) -> types.CallToolResult:
        result = await self.session.call_tool(name, arguments)
        assert isinstance(result, types.CallToolResult)
        return result


def _text(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def with_server(folder: Path, ask: Callable[[Client], Awaitable[None]], **env: str) -> None:
    """What the test asks is answered by a server that was started in the folder."""
    words = StdioServerParameters(command="git-orch", args=["mcp"], cwd=folder, env={**os.environ, **env})

    async def run() -> None:
        with anyio.fail_after(SESSION_S):
            async with stdio_client(words) as (read, write), ClientSession(read, write) as session:
                await session.initialize()
                await ask(Client(session))

    anyio.run(run)


def inbox(project: Project) -> list[Json]:
    return [json.loads(path.read_bytes()) for path in sorted((project.path / ".orch/inbox").glob("*"))]


# -- what there is


def test_the_tools_are_these_and_no_other(project: Project) -> None:
    async def ask(client: Client) -> None:
        tools = (await client.session.list_tools()).tools
        assert [tool.name for tool in tools] == NAMES
        for tool in tools:
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            assert tool.description
        reading = {tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint}
        assert reading == {"wait", "findings", "finding", "gate"}

    with_server(project.path, ask)
    assert project.runs == []


def test_a_review_is_started_waited_for_and_read(project: Project, orch: Orch) -> None:
    project.edit("a = (\n")

    async def ask(client: Client) -> None:
        started = await client.told("review")
        assert set(started) == {"schema_version", "run_id", "tree_id", "status"}
        ended = await client.told("wait", run=started["run_id"])
        assert ended["verdict"] == "findings"
        assert ended["tree_id"] == started["tree_id"]
        jsonschema.validate(ended, json.loads(formats.schema("review")))
        assert await client.told("findings", run="last") == ended
        (first, *_) = ended["findings"]
        assert (await client.told("finding", finding=first["id"]))["finding"] == first

    with_server(project.path, ask)
    # By the verb it is the same object.
    said = orch("show", "--json", cwd=project.path).stdout
    assert json.loads(said)["run_id"] == project.last


def test_a_review_that_an_agent_asks_for_keeps_to_the_budget(project: Project) -> None:
    async def ask(client: Client) -> None:
        await client.told("wait", run=(await client.told("review"))["run_id"])

    with_server(project.path, ask)
    intents = [json.loads(path.read_bytes()) for path in project.path.glob(".git/orch/runs/*/record.json")]
    assert len(intents) == 1
    assert intents[0]["bound"] is True


def test_what_is_reviewed_is_what_the_arguments_name(project: Project) -> None:
    project.edit("b = (\n", "b.py")

    async def ask(client: Client) -> None:
        run = (await client.told("review", paths=["a.py"]))["run_id"]
        ended = await client.told("wait", run=run)
        assert (ended["verdict"], ended["coverage"]["offered"]) == ("pass", ["a.py"])
        assert (await client.told("review", paths=["a.py"]))["run_id"] == run
        again = (await client.told("review", paths=["a.py"], fresh=True))["run_id"]
        assert again != run
        await client.told("wait", run=again)
        run = (await client.told("review", revision="HEAD", base=""))["run_id"]
        assert (await client.told("wait", run=run))["coverage"]["offered"] == ["a.py", "docs/b.txt"]

    with_server(project.path, ask)


def test_another_folder_is_that_of_the_call(project: Project, tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        assert "not in a git repository" in await client.refused("review")
        started = await client.told("review", folder=str(project.path / "docs"))
        await client.told("wait", folder=str(project.path), run=started["run_id"])

    with_server(tmp_path, ask)
    assert len(project.runs) == 1


# -- what it decides


def test_a_dispute_lies_in_the_inbox_and_counts_as_an_agents_word(project: Project, orch: Orch) -> None:
    project.edit("a = (\n")
    project.repo.commit("broken")
    orch("review", "HEAD~1..HEAD", cwd=project.path)

    async def ask(client: Client) -> None:
        before = await client.told("gate", base="HEAD~1")
        assert (before["exit"], before["gates"][0]["state"]) == (1, "block")
        (open_,) = before["gates"][0]["findings"]
        told = await client.told("dispute", finding=open_["id"], why="  it is meant to be open  ")
        assert inbox(project) == [told]
        assert (told["do"], told["finding"], told["why"]) == ("dispute", open_["id"], "it is meant to be open")
        assert not (project.path / ".git/orch/decisions.jsonl").exists()
        # Still open for the gate: nobody but a person closes it.
        after = await client.told("gate", base="HEAD~1")
        assert (after["exit"], after["gates"][0]["findings"][0]["disputed"]) == (1, "it is meant to be open")

    with_server(project.path, ask)
    assert inbox(project) == []
    (line,) = (project.path / ".git/orch/decisions.jsonl").read_text().splitlines()
    assert (json.loads(line)["kind"], json.loads(line)["by"]) == ("dispute", "agent")


def test_the_gate_answers_at_once_while_a_run_lives(project: Project) -> None:
    project.reviewer("slow", "--wait-for", project.path / "never")
    project.only("slow")
    project.repo.commit("second")

    async def ask(client: Client) -> None:
        run = (await client.told("review", revision="HEAD~1..HEAD"))["run_id"]
        told = await client.told("gate", base="HEAD~1")
        assert (told["exit"], told["gates"][0]["state"]) == (5, "pending")
        late = await client.told("wait", run=run, timeout_s=1)
        assert (late["error"]["code"], late["error"]["exit"]) == ("still-running", 5)

    with_server(project.path, ask)
    subprocess.run(["git-orch", "stop", "--all"], cwd=project.path, check=True, timeout=60)


# -- what it refuses


REFUSED: list[tuple[str, Json, str]] = [
    ("stop", {}, "git-orch: no tool `stop`: one of: review wait findings finding dispute gate"),
    ("findings", {}, "git-orch: no run of this worktree yet\n          git orch review starts one"),
    ("wait", {"run": "abcd"}, "git-orch: no run `abcd` here"),
    ("wait", {"run": "--help"}, "git-orch: `--help` is no run"),
    ("wait", {"timeout_s": 601}, "git-orch: wait: timeout_s is from 1 to 600"),
    ("wait", {"timeout_s": True}, "git-orch: wait: timeout_s is no integer"),
    ("finding", {}, "git-orch: finding wants finding"),
    ("finding", {"finding": "last"}, "git-orch: `last` is no finding's id\n          it has four or more of"),
    ("finding", {"finding": "kmkm"}, "git-orch: no finding `kmkm` here"),
    ("dispute", {"finding": "kmkm", "why": ""}, "git-orch: dispute wants why"),
    ("dispute", {"finding": "kmkm", "why": "x"}, "git-orch: no finding `kmkm` here"),
    ("review", {"revision": "--foreground"}, "git-orch: `--foreground` is no revision"),
    ("review", {"revision": "nosuch"}, "git-orch: `nosuch` is no revision here"),
    ("review", {"base": "nosuch"}, "git-orch: --base: `nosuch` is no revision here"),
    ("review", {"reviewer": "x"}, "git-orch: review: no argument `reviewer`"),
    ("review", {"paths": "a.py"}, "git-orch: review: paths is no array"),
    ("review", {"paths": [1]}, "git-orch: review: paths is no array"),
    ("review", {"kind": "poem"}, "git-orch: no kind `poem`"),
    ("review", {"kind": "plan"}, "git-orch: --kind plan: which document?"),
    ("review", {"kind": "plan", "revision": "HEAD"}, "git-orch: a review of kind plan takes paths, and no revision"),
    ("review", {"paths": ["--foreground"]}, "git-orch: nothing to review: no changed file matches --foreground"),
    ("review", {"folder": "nosuch"}, "git-orch: no folder `"),
    ("gate", {"revisions": ["--allow"]}, "git-orch: `--allow` is no revision"),
    ("gate", {"allow": "unreviewed"}, "git-orch: gate: no argument `allow`"),
]


def test_what_is_wrong_is_said_in_a_sentence(project: Project) -> None:
    async def ask(client: Client) -> None:
        for name, arguments, said in REFUSED:
            told = await client.refused(name, **arguments)
            assert told.startswith(said), (name, arguments, told)
            assert len(told.splitlines()) <= 2
            assert told.isprintable() or "\n" in told

    with_server(project.path, ask)
    assert project.runs == []
    assert inbox(project) == []


def test_a_gate_that_is_switched_off_is_no_pass(project: Project) -> None:
    async def ask(client: Client) -> None:
        assert (
            await client.refused("gate") == "git-orch: git orch gate said nothing: ORCH=0 is set, and switches it off"
        )

    with_server(project.path, ask, ORCH="0")


def test_nothing_is_imported_from_the_folder(project: Project) -> None:
    project.edit("raise SystemExit('taken in')\n", "git_orch/__init__.py")
    project.edit("raise SystemExit('taken in')\n", "json.py")

    async def ask(client: Client) -> None:
        await client.told("wait", run=(await client.told("review"))["run_id"])

    with_server(project.path, ask)


# -- its end


def started(project: Project) -> subprocess.Popen[bytes]:
    """A server that waits for a run which does not end."""
    project.reviewer("slow", "--wait-for", project.path / "never")
    project.only("slow")
    subprocess.run(["git-orch", "review", "-d"], cwd=project.path, check=True, timeout=60, capture_output=True)
    process = subprocess.Popen(["git-orch", "mcp"], cwd=project.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    said = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages: list[Json] = [
        {"id": 1, "method": "initialize", "params": said},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "wait", "arguments": {"timeout_s": 600}}},
    ]
    assert process.stdin is not None
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
    return process


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are looked up in /proc")
@pytest.mark.parametrize("how", ["input", "signal"])
def test_the_server_ends_and_leaves_nothing(how: str, project: Project) -> None:
    with started(project) as process:
        waiting = wait_until(lambda: children(process.pid), 20, what="the server runs a verb")
        if how == "input":
            assert process.stdin is not None
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(20) == (0 if how == "input" else 128 + signal.SIGTERM)
        assert process.stdout is not None
        process.stdout.close()
    wait_until(lambda: not any(map(is_alive, waiting)), 10, what="the verb is gone")
    assert len(project.live) == 1  # the run itself is not the server's to end
    subprocess.run(["git-orch", "stop", "--all"], cwd=project.path, check=True, timeout=60)


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize("said", ["", "not json\n"])
def test_whatever_comes_before_its_input_ends_it_ends_well(said: str, orch: Orch) -> None:
    done = orch("mcp", stdin=said)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


# -- without the package


@pytest.mark.usefixtures("repo")
def test_without_the_package_one_sentence_says_how_to_get_it() -> None:
    code = (
        "import importlib.util as u, os, sys; found = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'mcp' else found(name, *rest)\n"
        "from git_orch import entry; sys.exit(entry.run(['mcp'], dict(os.environ)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == (
        "git-orch: git orch mcp wants the package mcp: pip install 'git-orch[mcp]' (or pipx inject git-orch mcp)\n"
    )


def test_the_package_is_loaded_by_that_verb_alone() -> None:
    code = (
        "import sys; from git_orch import cli, entry\n"
        "from git_orch.commands import deciding, gate, mcp, mcp_tools, review, show, wait\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "git_orch.commands.mcp" in done.stdout.split()
    assert {"mcp", "anyio", "pydantic", "asyncio"} & set(done.stdout.split()) == set()


def test_no_tool_has_a_word_for_what_is_a_persons() -> None:
    taken = {name for tool in TOOLS for name in tool.takes}
    assert taken & {"allow", "force", "reviewers", "disposition", "mute", "trust", "rubric"} == set()
