"""What `git orch install CLIENT` writes is what the real client runs."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from git_orch import layout
from git_orch.install import installation, launcher
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
