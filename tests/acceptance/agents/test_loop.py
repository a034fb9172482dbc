"""The whole loop, a real client on both ends: it edits, stops, another one of it reviews, the session hears of it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.acceptance.agents.conftest import REVIEW_S, Scene
from tests.acceptance.agents.provider import Reply
from tests.waiting import wait_until

FAULT = {
    "path": "a.py",
    "start_line": 2,
    "end_line": 2,
    "severity": "blocking",
    "rule": "off-by-one",
    "message": "two is three here",
    "fails_when": "two is added up",
    "suggestion": None,
}
FAULTY = "one = 1\ntwo = 3\n"
FIXED = "one = 1\ntwo = 2\n"
FOUND = Reply(answer={"status": "findings", "findings": [FAULT]})


def write(text: str) -> Reply:
    """The client writes the file."""
    return Reply(text="Writing.", tools=(("Write", {"file_path": "{}/a.py", "content": text}),))


def work(scene: Scene, *author: Reply, words: str = "go on") -> dict[str, Any]:
    """What `claude -p` told at its end; nothing that the hook started is alive after it."""
    scene.provider.author = author
    argv = [scene.client.program, "-p", words, "--output-format", "json", "--permission-mode", "acceptEdits"]
    done = subprocess.run(
        argv,
        cwd=scene.project.path,
        env=scene.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=REVIEW_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def install(scene: Scene, *settings: tuple[str, str]) -> None:
    """The hooks are in the user's settings, and `a.py` is as it was committed."""
    scene.project.repo.git("checkout", "--quiet", "a.py")
    words = ["git", "orch", "install", "claude", "--yes", "--reviewer", "static", "--reviewer", "claude"]
    done = subprocess.run(
        words, cwd=scene.project.path, env=scene.env, capture_output=True, text=True, timeout=REVIEW_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for key, value in (("orch.settle", "1ms"), *settings):
        scene.project.set(key, value)


def reviewed(scene: Scene, times: int = 1) -> dict[str, Any]:
    """The last record, once that many reviews have ended: a client need not wait for its Stop hook to return."""
    wait_until(lambda: len(scene.project.runs) >= times, REVIEW_S, what="the Stop hook has fired a review")
    return scene.project.ended()


def sessions(scene: Scene) -> list[str]:
    """What was said in each request of the sessions at work, with all that came in by hooks."""
    return [asked.whole for asked in scene.provider.requests if asked.tools and not asked.is_review]


@pytest.mark.clients("claude")
def test_what_a_session_left_is_reviewed_and_the_next_one_hears_of_it(scene: Scene) -> None:
    install(scene)
    scene.provider.reviewer = [FOUND]
    told = work(scene, write(FAULTY), Reply(text="done"))
    assert told["result"] == "done", told
    assert (scene.project.path / "a.py").read_text() == FAULTY, sessions(scene)[-1][-3000:]
    record = reviewed(scene)
    assert (record["verdict"], record["client"]) == ("findings", "claude")
    assert len(scene.provider.reviews) == 1  # the reviewer's own Stop fired nothing
    assert len(scene.project.runs) == 1
    asked = len(sessions(scene))
    work(scene, Reply(text="seen"))
    assert "two is three here" in sessions(scene)[asked]
    scene.project.settle()


@pytest.mark.clients("claude")
def test_what_blocks_comes_back_at_the_next_stop_and_a_fix_ends_it(scene: Scene) -> None:
    install(scene, ("orch.unattended", "block"))
    scene.provider.reviewer = [FOUND]
    work(scene, write(FAULTY), Reply(text="done"))
    reviewed(scene)
    scene.provider.reviewer = [Reply(answer={})]
    asked = len(sessions(scene))
    told = work(scene, Reply(text="nothing to do"), write(FIXED), Reply(text="fixed"))
    assert reviewed(scene, 2)["verdict"] == "pass"
    assert told["result"] == "fixed"
    heard = sessions(scene)[asked:]
    assert any("off-by-one" in each and "Round 1 of 2" in each for each in heard)
    assert (scene.project.path / "a.py").read_text() == FIXED


@pytest.mark.clients("claude")
def test_a_reviewer_that_always_objects_and_a_client_that_always_fixes_come_to_an_end(scene: Scene) -> None:
    install(scene, ("orch.unattended", "block"))
    scene.provider.reviewer = [FOUND]
    for number in range(4):
        work(scene, write(f"one = 1\ntwo = 3{number}\n"), Reply(text="done"))
        reviewed(scene, number + 1)
    blocked = [each for each in sessions(scene) if "Round 3 of" in each]
    assert blocked == []
    assert scene.project.live == []
