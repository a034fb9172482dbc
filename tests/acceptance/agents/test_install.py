"""What `git orch install CLIENT` writes is what the real client runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from git_orch import layout
from git_orch.install import codex, installation, launcher
from git_orch.install.installation import Wish
from tests.acceptance.agents.conftest import Scene
from tests.acceptance.agents.provider import Reply
from tests.acceptance.agents.test_delivery import shell, words

pytestmark = pytest.mark.real_client

CLIENTS = ("claude", "codex", "gemini", "qwen", "copilot", "opencode")
END_S = 100.0


def work(scene: Scene) -> str:
    """The client has done its work; what it said."""
    is_opencode = scene.client.name == "opencode"
    argv = [str(scene.client.program), "run", "work"] if is_opencode else words(scene, "work")
    process = subprocess.Popen(
        argv,
        cwd=scene.project.path,
        env=scene.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=END_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the programs of npm have a child
        pytest.fail(f"it went on for ever\n{process.communicate()[0]}")


def install(scene: Scene) -> None:
    place = layout.locate(str(scene.project.path), os.environ)
    installation.install(Wish(client=scene.client.name), place, scene.env)


@pytest.mark.clients(*CLIENTS)
def test_the_installed_hooks_fire(scene: Scene) -> None:
    scene.project.repo.git("checkout", "--quiet", "a.py")
    scene.project.only("static")
    install(scene)
    write = shell(scene.client.name, "printf 'one = 1\\ntwo = 2\\n' > a.py")
    scene.provider.author = (Reply(text="writing", tools=(write,)), Reply(text="done"))
    said = work(scene)
    fired = {event for client, event in launcher.last_fired(os.environ) if client == scene.client.name}
    assert fired >= {"stop", "session-start"}, said
    assert scene.project.ended()["client"] == scene.client.name, said


@pytest.mark.clients("copilot")
def test_copilot_that_reads_claudes_project_settings_too_is_reviewed_once(scene: Scene) -> None:
    scene.project.repo.git("checkout", "--quiet", "a.py")
    scene.project.only("static")
    place = layout.locate(str(scene.project.path), os.environ)
    installation.install(Wish(client="claude", scope="project"), place, scene.env)
    install(scene)
    write = shell("copilot", "printf 'one = 1\\ntwo = 2\\n' > a.py")
    scene.provider.author = (Reply(text="writing", tools=(write,)), Reply(text="done"))
    said = work(scene)
    assert scene.project.ended()["client"] == "copilot", said
    assert len(scene.project.runs) == 1


def rules(client: str) -> str:
    """What is printed of them."""
    done = subprocess.run(
        ["git", "orch", "install", client, "--print", "allow"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "nothing was written" in done.stderr
    return done.stdout


def asked(scene: Scene, command: str) -> str:
    """All that the model was told once its agent had wanted to run the command; only rules allow anything."""
    client, program = scene.client.name, str(scene.client.program)
    scene.provider.author = (Reply(text="asking", tools=(shell(client, command),)), Reply(text="done"))
    options = ["run", "work"] if client == "opencode" else ["-p", "work", "--permission-mode", "default"]
    before = len(scene.provider.requests)
    subprocess.run(
        [program, *options],
        cwd=scene.project.path,
        env=scene.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=END_S,
        check=False,
    )
    return "\n".join(each.whole for each in scene.provider.requests[before:])


PLACES = {
    "claude": ".claude/settings.json",
    "opencode": ".config/opencode/opencode.json",
}


@pytest.mark.clients(*PLACES)  # gemini and qwen have no shell at all where no person is
def test_by_the_rules_its_agent_asks_for_reviews_and_does_nothing_else(scene: Scene) -> None:
    client = scene.client.name
    path = Path(os.environ["HOME"], PLACES[client])
    path.parent.mkdir(parents=True, exist_ok=True)
    given = json.loads(rules(client))
    if client == "opencode":  # it runs every command where nothing is said
        given["permission"]["bash"] = {"*": "deny", **given["permission"]["bash"]}
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **given}))
    scene.project.only("static")
    asked(scene, "git orch mute --for 1h")
    assert not (scene.project.path / ".git/orch/decisions.jsonl").exists()
    asked(scene, "git orch sweep && touch swept")
    assert not (scene.project.path / "swept").exists()
    told = asked(scene, "git orch review")
    assert len(scene.project.runs) == 1, told[told.find("git orch review") :][:1500]
    assert "pass" in told


@pytest.mark.clients("codex")
def test_codex_takes_the_rules(scene: Scene, tmp_path: Path) -> None:
    path = tmp_path / "git-orch.rules"
    path.write_text(rules("codex"))

    def decided(command: str) -> str:
        words = [str(scene.client.program), "execpolicy", "check", "--rules", str(path), *command.split()]
        return subprocess.run(words, env=scene.env, capture_output=True, text=True, timeout=60, check=True).stdout

    assert json.loads(decided("git orch review --staged"))["decision"] == "allow"
    for command in ("git orch mute", "git orch stop --all", "git orch", "git push"):
        assert "decision" not in json.loads(decided(command))


@pytest.mark.clients("codex")
def test_codex_has_the_same_digest_of_a_hook(scene: Scene) -> None:
    """By its app server, which tells each hook's `currentHash`."""
    install(scene)
    hooks = Path(os.environ["HOME"], ".codex/hooks.json")
    asked = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(scene.project.path)]}},
    ]
    with subprocess.Popen(
        [str(scene.client.program), "app-server"],
        env=scene.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write("".join(json.dumps(each) + "\n" for each in asked))
        process.stdin.flush()
        answer = next(value for value in map(json.loads, process.stdout) if value.get("id") == 2)
        os.killpg(process.pid, signal.SIGKILL)  # the program of npm has a child
    told = {each["key"]: each["currentHash"] for each in answer["result"]["data"][0]["hooks"]}
    assert told == codex.digests(str(hooks), hooks.read_bytes())
    assert len(told) == 3
