"""The fake reviewer does what it is told; other tests rest on that."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.fakes import fake_reviewer
from tests.seal import Seal, end, leftover_processes
from tests.waiting import wait_until

NONCE = "c0ffee"
PATHS = ["src/a.py", "b c.txt"]
FINDING = '[{"path": "src/a.py", "start_line": 3}]'


@pytest.fixture
def request_env(tmp_path: Path) -> dict[str, str]:
    """The environment of a request with two files."""
    (tmp_path / "files").write_bytes(b"".join(path.encode() + b"\0" for path in PATHS))
    names = {"ORCH_NONCE": NONCE, "ORCH_FILES": str(tmp_path / "files"), "ORCH_RESULT": str(tmp_path / "result.json")}
    return {**os.environ, **names}


def run(command: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", command], env=env, capture_output=True, text=True, timeout=60, check=False, cwd=env["TMPDIR"]
    )


def test_a_pass_covers_every_file_and_carries_the_nonce(request_env: dict[str, str]) -> None:
    done = run(fake_reviewer("--pass"), request_env)
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["nonce"], answer["files"]) == ("no_findings", NONCE, PATHS)
    assert done.returncode == 0


def test_findings_may_go_to_the_result_file(request_env: dict[str, str]) -> None:
    done = run(fake_reviewer("--to-result", "--findings", FINDING, "--exit", "3"), request_env)
    (found,) = json.loads(Path(request_env["ORCH_RESULT"]).read_text())["findings"]
    assert (found["path"], found["start_line"], found["severity"]) == ("src/a.py", 3, "blocking")
    assert (done.stdout, done.returncode) == ("", 3)


@pytest.mark.parametrize("step", ["--truncated", "--two-objects", "--prose", "--not-logged-in", "--rate-limited"])
def test_what_is_no_answer_is_no_json(request_env: dict[str, str], step: str) -> None:
    done = run(fake_reviewer(step), request_env)
    assert done.returncode == 0
    assert done.stdout
    with pytest.raises(json.JSONDecodeError):
        json.loads(done.stdout)


@pytest.mark.parametrize(("step", "key"), [("--sarif", "runs"), ("--rdjson", "diagnostics")])
def test_linters_formats_name_the_file(request_env: dict[str, str], step: str, key: str) -> None:
    document = json.loads(run(fake_reviewer(step, FINDING), request_env).stdout)
    assert len(document[key]) == 1
    assert "src/a.py" in json.dumps(document)


def test_steps_are_taken_in_their_order(request_env: dict[str, str]) -> None:
    steps = ("--write", "a", "--delete", "a", "--write", "b", "--edit", "b", "--say", "1", "--say", "2")
    assert run(fake_reviewer(*steps), request_env).stdout == "12"
    folder = Path(request_env["TMPDIR"])
    assert sorted(path.name for path in folder.iterdir()) == ["b"]
    assert (folder / "b").read_text() == "written by the reviewer\nedited by the reviewer\n"


def test_a_flood_has_the_size_that_was_asked_for(request_env: dict[str, str]) -> None:
    assert len(run(fake_reviewer("--flood", "3"), request_env).stdout) == 3 << 20


def test_it_hangs_on_and_ignores_term(request_env: dict[str, str], tmp_path: Path) -> None:
    steps = fake_reviewer("--ignore-term", "--touch", tmp_path / "up", "--wait-for", tmp_path / "go", "--say", "went")
    with subprocess.Popen(
        ["sh", "-c", "exec " + steps], env=request_env, stdout=subprocess.PIPE, text=True
    ) as reviewer:
        wait_until((tmp_path / "up").exists, timeout_s=20)
        reviewer.send_signal(signal.SIGTERM)
        (tmp_path / "go").touch()
        assert reviewer.communicate(timeout=20)[0] == "went"
    assert reviewer.returncode == 0


def test_a_daemon_outlives_it_and_is_known_by_the_marker(
    request_env: dict[str, str], tmp_path: Path, seal: Seal
) -> None:
    run(fake_reviewer("--daemon", tmp_path / "pid"), request_env)
    wait_until((tmp_path / "pid").exists, timeout_s=20)
    pid = int((tmp_path / "pid").read_text())
    (daemon,) = leftover_processes(seal)
    assert (daemon.pid, daemon.ours) == (pid, True)
    assert end(daemon, seal)
    wait_until(lambda: not leftover_processes(seal), timeout_s=20)
