"""`git orch review` while it is followed: on a terminal, without one, and what an interrupt means."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.terminal import CTRL_C, Terminal
from tests.conftest import Orch
from tests.fakes import fake_reviewer
from tests.repo import Repo
from tests.waiting import wait_until

WAIT_S = 20.0


class Slow:
    """A repository with a change, and a reviewer `slow` that goes on when it is told."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.started = repo.path.parent / "started"
        self.go = repo.path.parent / "go"
        repo.write("a.py", "a = 1\n")
        repo.commit()
        repo.write("a.py", "a = 2\n")
        command = fake_reviewer("--touch", self.started, "--wait-for", self.go, "--pass")
        repo.git("config", "orch.reviewer.slow.command", command)
        repo.git("config", "orch.reviewers", "slow")

    def has_started(self) -> bool:
        return self.started.exists()

    def release(self) -> None:
        self.go.touch()

    def pending(self) -> list[Path]:
        return list((self.repo.path / ".orch/pending").glob("*.json"))

    def record(self) -> dict[str, object]:
        (run,) = (self.repo.path / ".git/orch/runs").iterdir()
        return dict(json.loads((run / "record.json").read_text()))


@pytest.fixture
def slow(repo: Repo) -> Slow:
    return Slow(repo)


@pytest.fixture
def following(slow: Slow) -> Terminal:
    """`git orch review` on a terminal, its reviewer at work."""
    return Terminal("git", "orch", "review", cwd=slow.repo.path)


def is_interrupted(code: int) -> bool:
    """Git itself dies by the Ctrl-C that it has handed on; a shell tells that as 130 too."""
    return code in (130, -signal.SIGINT)


def test_rows_move_and_are_gone_at_the_end(slow: Slow, following: Terminal) -> None:
    with following:
        seen = following.until("slow").splitlines()
        assert seen[0].startswith("Reviewing 1 file, +1 -1: working tree (tree ")
        assert seen[2] == "Ctrl-C: leave it running; twice: cancel it"
        wait_until(slow.has_started, WAIT_S)
        slow.release()
        assert following.end() == 0
        lines = following.screen().splitlines()
    assert lines[0] == seen[0]
    assert lines[1].startswith("  ✓ slow")
    assert lines[2].startswith("✓ pass: 1 of 1 file reviewed by slow in ")
    assert len(lines) == 3


def test_one_ctrl_c_leaves_the_run_going_and_says_so(slow: Slow, following: Terminal, orch: Orch) -> None:
    with following:
        following.until("Ctrl-C: leave it")
        wait_until(slow.has_started, WAIT_S)
        following.press(CTRL_C)
        seen = following.until("left running")
        assert is_interrupted(following.end())
    assert "Ctrl-C: leave it" not in seen
    assert slow.pending()
    run = seen.partition("git orch wait ")[2].split()[0]
    slow.release()
    waited = orch("wait", run)
    assert (waited.returncode, slow.pending()) == (0, [])
    assert "✓ pass" in waited.stdout


def test_ctrl_c_twice_cancels(slow: Slow, following: Terminal) -> None:
    with following:
        following.until("Ctrl-C: leave it")
        wait_until(slow.has_started, WAIT_S)
        following.press(CTRL_C)
        following.until("left running")
        following.press(CTRL_C)
        following.until("cancelling")
        assert is_interrupted(following.end())
        assert "unreviewed: cancel" in following.screen()
    assert slow.pending() == []
    assert slow.record()["status"] == "cancelled"


def test_a_run_that_ends_within_the_two_seconds_is_told_all_the_same(slow: Slow) -> None:
    with Terminal("git-orch", "review", cwd=slow.repo.path) as following:
        following.until("Ctrl-C: leave it")
        wait_until(slow.has_started, WAIT_S)
        following.press(CTRL_C)
        following.until("left running")
        slow.release()
        assert following.end() == 0
        assert "✓ pass" in following.screen()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_without_a_terminal_the_first_signal_cancels(slow: Slow, number: signal.Signals) -> None:
    with started(slow, "review") as process:
        wait_until(slow.has_started, WAIT_S)
        os.killpg(process.pid, number)
        out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode in (130, -number)  # git ends by the signal that it was sent itself
    assert "git-orch: cancelling\n" in err
    assert "cancel" in out
    assert slow.pending() == []
    assert slow.record()["status"] == "cancelled"


def test_the_command_itself_says_130(slow: Slow) -> None:
    with started(slow, "review", "--json") as process:
        wait_until(slow.has_started, WAIT_S)
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGTERM)
        out, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130
    assert json.loads(out)["verdict"] == "unreviewed"


def test_whoever_waits_for_a_run_does_not_cancel_it(slow: Slow, orch: Orch) -> None:
    run = orch("review", "-d").stdout.strip()
    with started(slow, "wait", run) as process:
        wait_until(slow.has_started, WAIT_S)
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=WAIT_S)
    assert slow.pending()
    slow.release()
    assert orch("wait", run).returncode == 0


def test_what_a_shell_script_puts_into_the_background_ignores_ctrl_c(slow: Slow) -> None:
    script = "trap '' INT; exec git-orch review"
    process = subprocess.Popen(
        ["sh", "-c", script], cwd=slow.repo.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    with process:
        wait_until(slow.has_started, WAIT_S)
        os.killpg(process.pid, signal.SIGINT)
        slow.release()
        out, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    assert "✓ pass" in out.decode()


def test_wait_gives_up_when_the_time_is_up(slow: Slow, orch: Orch) -> None:
    run = orch("review", "-d").stdout.strip()
    late = orch("wait", "--timeout", "0.2", run)
    assert (late.returncode, late.stdout) == (5, "")
    assert "goes on; the time to wait is up" in late.stderr
    failure = json.loads(orch("wait", "--timeout=200ms", "--json", run).stdout)["error"]
    assert (failure["code"], failure["exit"]) == ("still-running", 5)
    slow.release()
    assert orch("wait", "--timeout", "1m", "last").returncode == 0


def test_a_run_whose_supervisor_died_is_told_by_whoever_follows_it(slow: Slow, orch: Orch) -> None:
    run = orch("review", "-d").stdout.strip()
    wait_until(slow.has_started, WAIT_S)
    status = json.loads(orch("status", "--json").stdout)["runs"][0]
    os.kill(status["supervisor_pid"], signal.SIGKILL)
    waited = orch("wait", run)
    assert waited.returncode == 5
    assert "supervisor died" in waited.stdout
    assert slow.pending() == []


def started(slow: Slow, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["git", "orch", *words],
        cwd=slow.repo.path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
