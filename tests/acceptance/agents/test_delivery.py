"""Real clients as who is reviewed: what their sessions are told, and that a script reads what it read before."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from git_orch.install import launcher
from tests.acceptance.agents.conftest import Scene
from tests.acceptance.agents.provider import Asked, Reply
from tests.project import Json
from tests.waiting import wait_until

if TYPE_CHECKING:
    from git_orch.install.launcher import Event

pytestmark = pytest.mark.real_client

AUTHORS = ("claude", "codex", "gemini", "qwen", "copilot")
FAULT = '[{"path": "a.py", "start_line": 2, "message": "two is wrong", "fails_when": "it is three"}]'
EVENTS: dict[str, dict[str, Event]] = {
    "gemini": {"AfterAgent": "stop", "SessionStart": "session-start", "BeforeAgent": "user-prompt-submit"},
    "copilot": {"agentStop": "stop", "sessionStart": "session-start", "userPromptSubmitted": "user-prompt-submit"},
}
USUAL: dict[str, Event] = {
    "Stop": "stop",
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
}
END_S = 100.0
FINISH = """\
touch .git/go
for i in $(seq 100); do ls .orch/pending/*.json >/dev/null 2>&1 || break; sleep 0.1; done
"""
# The agent's own commands; `{}` is the work tree.
SHELL = {"claude": "Bash", "codex": "exec_command", "gemini": "run_shell_command", "qwen": "run_shell_command"}


def shell(client: str, command: str) -> tuple[str, Json]:
    """The call by which the agent runs a command."""
    name = SHELL.get(client, "bash")
    if client == "codex":
        return name, {"cmd": command, "yield_time_ms": 20_000}
    more = {"is_background": False} if client == "qwen" else {}
    return name, {"command": command, "description": "work", **more}


def install(scene: Scene) -> None:
    """Our hooks stand in the client's settings."""
    name = scene.client.name
    events = EVENTS.get(name, USUAL)
    lines = {theirs: launcher.line(ours, "" if name == "claude" else name) for theirs, ours in events.items()}
    launcher.write(os.environ)
    home = Path(os.environ["HOME"])
    limit = {"gemini": 20_000, "qwen": 20_000}.get(name, 20)
    groups = {
        theirs: [{"hooks": [{"type": "command", "command": line, "timeout": limit}]}] for theirs, line in lines.items()
    }
    match name:
        case "claude":
            _merge(home / ".claude/settings.json", {"hooks": groups})
        case "codex":
            _merge(home / ".codex/hooks.json", {"hooks": groups})
        case "gemini" | "qwen":
            _merge(home / f".{name}/settings.json", {"hooks": groups, "hooksConfig": {"enabled": True}})
        case "copilot":
            plain = {t: [{"type": "command", "bash": line, "timeoutSec": 20}] for t, line in lines.items()}
            _merge(home / ".copilot/hooks/git-orch.json", {"version": 1, "hooks": plain})


def _merge(path: Path, more: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, **more}))


def words(scene: Scene, prompt: str, session: str = "") -> list[str]:
    """The command line of a session without a terminal; `session` is gone on with where one is given."""
    program = str(scene.client.program)
    match scene.client.name:
        case "claude":
            tools = ["--allowedTools", "Bash", "Write", "--permission-mode", "acceptEdits"]
            return [program, "-p", prompt, *(["--resume", session] if session else []), *tools]
        case "codex":
            options = ["--skip-git-repo-check", "--dangerously-bypass-hook-trust", "--sandbox", "danger-full-access"]
            return [program, "exec", *options, *(["resume", session] if session else []), prompt]
        case "gemini":
            return [program, "-p", prompt, "--approval-mode", "yolo", *(["--resume", "latest"] if session else [])]
        case "qwen":
            return [program, "-p", prompt, "--approval-mode", "yolo", *(["--resume", session] if session else [])]
        case name:
            assert name == "copilot"
            resumed = [f"--resume={session}"] if session else []
            return [program, "-p", prompt, "-s", "--no-auto-update", "--allow-all-tools", *resumed]


def work(scene: Scene, prompt: str, session: str = "") -> subprocess.CompletedProcess[str]:
    """The client has come to its end."""
    process = subprocess.Popen(
        words(scene, prompt, session),
        cwd=scene.project.path,
        env=scene.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the programs of npm have a child
        out, err = process.communicate()
        pytest.fail(f"it went on for ever\n{out}\n{err}")
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def authored(scene: Scene) -> list[Asked]:
    """The requests of the session's own agent."""
    return [asked for asked in scene.provider.requests if not asked.is_review and asked.tools]


def session_id(scene: Scene) -> str:
    newest = max((scene.project.path / ".git/orch/sessions").glob("*.json"), key=lambda path: path.stat().st_mtime)
    known: Json = json.loads(newest.read_text())
    assert known["client"] == scene.client.name
    name: str = known["session_id"]
    return name


@pytest.fixture
def hooked(scene: Scene) -> Scene:
    """Our hooks fire in the client; the reviewer finds a fault in what the agent writes."""
    install(scene)
    scene.project.repo.git("checkout", "--quiet", "a.py")
    scene.project.only("fake")
    scene.project.reviewer("fake", "--findings", FAULT)
    write = shell(scene.client.name, "printf 'one = 1\\ntwo = 2\\n' > a.py")
    scene.provider.author = (Reply(text="writing", tools=(write,)), Reply(text="done"))
    return scene


@pytest.mark.clients(*AUTHORS)
def test_the_verdict_is_in_the_next_sessions_first_request(hooked: Scene) -> None:
    first = work(hooked, "work")
    assert first.returncode == 0, f"{first.stdout}\n{first.stderr}"
    assert hooked.project.ended()["verdict"] == "findings"
    assert len(hooked.project.runs) == 1
    before = len(authored(hooked))
    hooked.provider.author = (Reply(text="nothing to do"),)
    second = work(hooked, "next")
    assert second.returncode == 0
    request = authored(hooked)[before]
    assert "For information only" in request.whole
    assert "two is wrong" in request.whole
    assert not any("Round 1" in asked.whole for asked in authored(hooked))  # informed, and not kept from its end
    [told] = [event for event in hooked.project.events() if event["event"] == "finding.told"]
    assert (told["way"], told["client"]) == ("context", hooked.client.name)


@pytest.mark.clients(*AUTHORS)
def test_what_is_blocking_comes_back_at_the_next_stop(hooked: Scene) -> None:
    """Where that is wanted of a script: the review ends while the session is at work on something else."""
    project, client = hooked.project, hooked.client.name
    project.set("orch.unattended", "block")
    project.reviewer("fake", "--wait-for", project.path / ".git/go", "--findings", FAULT)
    (project.path / ".git/finish").write_text(FINISH)  # some clients refuse loops, and paths outside
    hooked.provider.author = (
        *hooked.provider.author,
        Reply(text="more", tools=(shell(client, "sh .git/finish"),)),
        Reply(text="done with that"),
        Reply(text="so be it"),
    )
    assert work(hooked, "work").returncode == 0
    before = len(authored(hooked))
    done = work(hooked, "go on", session_id(hooked))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    project.settle()
    asked = authored(hooked)[before:]
    [told] = [event for event in project.events(project.runs[0]) if event["event"] == "finding.told"]
    assert told["client"] == client
    if client == "qwen":  # its prompt hook fires for what a tool returns as well, which is before the stop
        assert told["way"] == "context"
        assert "two is wrong" in asked[1].whole
        return
    assert (told["way"], told["round"]) == ("stop", 1)
    assert [("two is wrong" in each.whole) for each in asked] == [False, False, True]
    assert "Round 1 of 2" in asked[-1].whole


@pytest.mark.clients("claude")
@pytest.mark.parametrize("format_name", ["text", "json"])
def test_what_a_script_reads_is_as_without_our_hooks(hooked: Scene, format_name: str) -> None:
    """Case 57: a finding and a fault are waiting to be told."""
    work(hooked, "work")
    hooked.project.settle()
    hooked.provider.author = (Reply(text="the answer"),)
    read = []
    for enabled in ("true", "false"):
        hooked.project.set("orch.enabled", enabled)
        done = subprocess.run(
            [*words(hooked, "next"), "--output-format", format_name],
            cwd=hooked.project.path,
            env=hooked.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=END_S,
            check=False,
        )
        assert done.returncode == 0
        read.append((done.stdout if format_name == "text" else _lasting(done.stdout), done.stderr))
    assert read[0] == read[1]


def _lasting(text: str) -> Json:
    """What of the client's result does not change from run to run."""
    value: Json = json.loads(text)
    names = ("type", "subtype", "is_error", "result", "num_turns", "terminal_reason")
    return {**{name: value.get(name) for name in names}, "keys": sorted(value)}


@pytest.mark.clients("claude")
def test_a_second_claude_reviews_and_nothing_recurs(hooked: Scene) -> None:
    """One session, one review by a second client in the frozen tree, its verdict in the next session."""
    project = hooked.project
    project.only("claude")
    project.set("orch.settle", "10ms")
    answer = {"status": "findings", "findings": [{**json.loads(FAULT)[0], "end_line": 2, "severity": "blocking",
                                                  "rule": "planted", "suggestion": None}]}  # fmt: skip
    hooked.provider.reviewer = (Reply(answer=answer),)
    assert work(hooked, "work").returncode == 0
    wait_until(lambda: project.runs and not project.live, END_S, what="the review has ended")
    record = project.record(project.last)
    assert record["verdict"] == "findings", record
    assert len(project.runs) == 1
    assert {asked.cwd != str(project.path) for asked in hooked.provider.reviews} == {True}
    assert project.trees() == []
    hooked.provider.author = (Reply(text="nothing to do"),)
    before = len(authored(hooked))
    assert work(hooked, "next").returncode == 0
    assert "two is wrong" in authored(hooked)[before].whole
