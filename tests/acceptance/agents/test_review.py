"""Each real client as a reviewer: a pass, findings, and everything that is neither."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from git_orch import withheld
from tests.acceptance.agents.conftest import Scene
from tests.acceptance.agents.provider import Reply

pytestmark = pytest.mark.real_client

FAULT = {
    "path": "a.py",
    "start_line": 2,
    "end_line": 2,
    "severity": "blocking",
    "rule": "planted",
    "message": "two is wrong",
    "fails_when": "it is three",
    "suggestion": None,
}
STEER = "STEER-THE-REVIEWER"
# What each client calls its tools; `{}` is the tree.
READ = {
    "claude": ("Read", {"file_path": "{}/docs/b.txt"}),
    "codex": ("exec_command", {"cmd": "cat docs/b.txt"}),
    "gemini": ("read_file", {"file_path": "docs/b.txt"}),
    "qwen": ("read_file", {"file_path": "{}/docs/b.txt"}),
    "copilot": ("view", {"path": "{}/docs/b.txt"}),
    "opencode": ("read", {"filePath": "{}/docs/b.txt"}),
}
WRITE = {
    "claude": [("Write", {"file_path": "{}/made", "content": "x"}), ("Bash", {"command": "touch made"})],
    "codex": [("exec_command", {"cmd": "touch made; touch {}/../request/made"})],
    "gemini": [("write_file", {"file_path": "made", "content": "x"}), ("run_shell_command", {"command": "touch made"})],
    "qwen": [
        ("write_file", {"file_path": "{}/made", "content": "x"}),
        ("run_shell_command", {"command": "touch made"}),
    ],
    "copilot": [
        ("create", {"path": "{}/made", "file_text": "x"}),
        ("bash", {"command": "touch made", "description": "x"}),
    ],
    "opencode": [
        ("write", {"filePath": "{}/made", "content": "x"}),
        ("bash", {"command": "touch made", "description": "x"}),
    ],
}


def calling(calls: list[tuple[str, dict[str, str]]]) -> list[Reply]:
    """Replies that call these tools, one after the other, then pass."""
    return [*(Reply(text="looking", tools=(call,)) for call in calls), Reply(answer={})]


def test_a_pass_is_a_pass(scene: Scene) -> None:
    told = scene.review(code=0)
    assert told["verdict"] == "pass"
    judged = scene.judged()
    assert judged["verdict"] == "pass"
    assert judged["session_id"]
    assert judged["usage"]["tokens"] > 0
    assert judged["client"].startswith(f"{scene.client.name} ")
    assert judged["adjusted"] == []
    assert len(scene.provider.reviews) == 1


def test_findings_come_back(scene: Scene) -> None:
    found = {"status": "findings", "findings": [FAULT]}
    told = scene.review(reviewer=[Reply(answer=found)], code=1)
    (finding,) = told["findings"]
    assert (finding["path"], finding["start_line"], finding["severity"]) == ("a.py", 2, "blocking")
    assert finding["reviewer"] == scene.client.name


def test_it_can_look_around_in_its_tree(scene: Scene) -> None:
    name, given = READ[scene.client.name]
    scene.project.repo.write("docs/b.txt", "LOOKED-AT\n")
    scene.project.repo.commit("more")
    scene.project.edit("one = 1\nthree = 3\n")
    told = scene.review(reviewer=calling([(name, given)]), code=0)
    assert told["verdict"] == "pass"
    assert "LOOKED-AT" not in scene.provider.reviews[0].whole
    assert "LOOKED-AT" in scene.provider.reviews[-1].whole


def test_it_cannot_write(scene: Scene) -> None:
    told = scene.review(reviewer=calling(WRITE[scene.client.name]))
    judged = scene.judged()
    assert told["verdict"] == "pass"
    assert judged["littered"] == []
    assert not (scene.project.path / "made").exists()
    assert len(scene.provider.reviews) == 1 + len(WRITE[scene.client.name])  # it was asked to, each time


def test_a_wrong_answer_is_no_pass(scene: Scene) -> None:
    told = scene.review(reviewer=[Reply(answer={"nonce": "0" * 32})], code=5)
    assert "nonce" in told["reason"]


def test_prose_is_no_pass(scene: Scene) -> None:
    told = scene.review(reviewer=[Reply(text="No issues found.")], code=5)
    assert told["verdict"] == "unreviewed"


def test_a_file_without_its_token_is_no_pass(scene: Scene) -> None:
    files = [{"path": "a.py", "token": "0000000000"}]
    told = scene.review(reviewer=[Reply(answer={"files": files})], code=5)
    assert "without its token" in told["reason"]


REFUSED = {"type": "error", "error": {"type": "authentication_error", "message": "invalid api key", "code": 401}}


@pytest.mark.clients("claude", "codex", "copilot", "opencode", "qwen")
def test_one_that_is_not_signed_in_says_so(scene: Scene) -> None:
    scene.review(reviewer=[Reply(status=401, body=REFUSED)], code=5)
    judged = scene.judged()
    assert judged["fault"] == "signed-out", judged
    assert judged["reason"].startswith("not signed in")


LIMITED = {"type": "error", "error": {"type": "rate_limit_error", "message": "rate limited, try again in 3 hours"}}


@pytest.mark.clients("claude", "codex", "copilot", "opencode")
def test_a_rate_limit_is_one(scene: Scene) -> None:
    scene.review(reviewer=[Reply(status=429, body=LIMITED, headers={"retry-after": "1"})], code=5)
    judged = scene.judged()
    assert judged["fault"] == "rate-limited", judged
    # codex keeps its provider's sentence to itself.
    assert bool(judged["resets_at"]) == (scene.client.name != "codex")


@pytest.mark.clients("claude", "codex", "gemini", "copilot")
def test_a_stream_that_is_cut_is_no_pass(scene: Scene) -> None:
    text = "I have found nothing wrong in this change, as far as I could see, and so on and so forth"
    told = scene.review(reviewer=[Reply(text=text, cut=True)])
    assert told["verdict"] == "unreviewed", scene.said()


# -- case 25, and hooks


STEERING = {
    "CLAUDE.md": STEER,
    "AGENTS.md": STEER,
    "GEMINI.md": STEER,
    "QWEN.md": STEER,
    ".github/copilot-instructions.md": STEER,
    ".cursorrules": STEER,
    "opencode.json": json.dumps({"instructions": [STEER]}),
    ".opencode/AGENTS.md": STEER,
}


def test_the_tree_does_not_steer_it(scene: Scene, tmp_path: Path) -> None:
    fired = tmp_path / "fired"
    project = scene.project
    for path, text in {**STEERING, **hooks(f"touch {fired}")}.items():
        assert withheld.steers(path)
        project.edit(text, path)
    told = scene.review(code=0)
    assert told["verdict"] == "pass"
    assert not fired.exists()
    (asked,) = scene.provider.reviews
    # It stands in the difference, and nowhere else.
    difference = asked.prompt.partition("BEGIN difference")[2]
    assert STEER in difference
    assert asked.whole.replace(difference, "").count(STEER) == 0


def test_the_bases_instructions_are_no_hooks(scene: Scene, tmp_path: Path) -> None:
    """What the base itself has of hooks does not run in a reviewer either."""
    fired = tmp_path / "fired"
    for path, text in hooks(f"touch {fired}").items():
        scene.project.repo.write(path, text)
    scene.project.repo.commit("hooks")
    scene.project.edit("one = 1\nthree = 3\n")
    scene.review(code=0)
    assert not fired.exists()


def test_its_users_hooks_do_not_run_in_it(scene: Scene, tmp_path: Path) -> None:
    fired = tmp_path / "fired"
    home = tmp_path / "home"
    for path, text in user_hooks(scene.client.name, f"touch {fired}").items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        old = json.loads((home / path).read_text()) if (home / path).exists() else {}
        (home / path).write_text(json.dumps({**old, **json.loads(text)}))
    scene.review(code=0)
    assert not fired.exists()


def hooks(command: str) -> dict[str, str]:
    """Hooks of every client that run the command, as a repository brings them."""
    plain = {"hooks": [{"type": "command", "command": command, "timeout": 10}]}
    events = ("Stop", "SessionStart", "UserPromptSubmit", "SessionEnd", "AfterAgent")
    claude = json.dumps({"hooks": {event: [plain] for event in events}})
    copilot = {"type": "command", "bash": command, "timeoutSec": 10}
    of_copilot = json.dumps({"version": 1, "hooks": {"agentStop": [copilot], "sessionStart": [copilot]}})
    plugin = f"export const P = async ({{$}}) => {{ await $`{command}`; return {{}} }}"
    return {
        ".claude/settings.json": claude,
        ".codex/hooks.json": claude,
        ".gemini/settings.json": claude,
        ".qwen/settings.json": claude,
        ".github/hooks/x.json": of_copilot,
        ".opencode/plugin/x.js": plugin,
    }


def user_hooks(name: str, command: str) -> dict[str, str]:
    """The same of one client, as its user has them."""
    given = hooks(command)
    if name == "copilot":
        return {".copilot/hooks/x.json": given[".github/hooks/x.json"]}
    folder = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json"}
    path = folder.get(name, f".{name}/settings.json")
    return {path: given[path]} if path in given else {}
