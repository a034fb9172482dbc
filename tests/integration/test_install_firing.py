"""The line really runs: silent and well where something is missing, and tried out once after an install."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import git_orch
from git_orch.install import clients, firing, launcher
from git_orch.install.firing import Fired, Misfired
from tests.seal import Seal

SHELLS = [shell for shell in ("sh", "bash", "dash", "fish", "zsh", "ksh") if shutil.which(shell)]


@pytest.fixture
def hook(seal: Seal) -> Path:
    launcher.refresh(os.environ)
    return seal.home / ".local/state/git-orch/hook"


def run_line(event: launcher.Event = "stop", *, shell: str = "sh", **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [shell, "-c", launcher.line(event)],
        input=b'{"hook_event_name": "Stop"}',
        env={**os.environ, **env},
        capture_output=True,
        timeout=30,
        check=False,
    )


def nothing(done: subprocess.CompletedProcess[bytes]) -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def script(path: Path, text: str, mode: int = 0o755) -> None:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(mode)


# -- the line


def test_without_git_orch_the_line_does_nothing() -> None:
    for event in launcher.EVENTS:
        assert nothing(run_line(event))


def test_without_a_home_the_line_does_nothing(seal: Seal) -> None:
    done = subprocess.run(
        ["sh", "-c", launcher.line("stop")],
        env={"PATH": os.environ["PATH"]},
        cwd=seal.root,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert nothing(done)


@pytest.mark.parametrize("event", launcher.EVENTS)
def test_the_line_hands_over_the_event_and_standard_input(hook: Path, event: launcher.Event) -> None:
    script(hook, 'printf "%s " "$#" "$1"; cat')
    assert run_line(event).stdout == f'1 {event} {{"hook_event_name": "Stop"}}'.encode()


@pytest.mark.parametrize("status", [1, 2, 137])
def test_whatever_the_launcher_ends_with_the_line_ends_well(hook: Path, status: int) -> None:
    script(hook, f"exit {status}")
    assert nothing(run_line())


def test_a_launcher_that_may_not_run_is_passed_over(hook: Path) -> None:
    script(hook, "echo it ran", mode=0o644)
    assert nothing(run_line())


@pytest.mark.parametrize("shell", SHELLS)
def test_any_shell_understands_the_line(hook: Path, shell: str) -> None:
    script(hook, 'echo "$1"; exit 3')
    done = run_line(shell=shell)
    assert (done.returncode, done.stdout) == (0, b"stop\n")


def test_a_state_folder_of_ones_own_is_found_whatever_its_name(seal: Seal) -> None:
    state = seal.root / 'it\'s "my" $tate'
    launcher.refresh({**os.environ, "XDG_STATE_HOME": str(state)})
    script(state / "git-orch/hook", "echo found")
    assert run_line(XDG_STATE_HOME=str(state)).stdout == b"found\n"


# -- the launcher


def launch(hook: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([hook, "stop"], capture_output=True, stdin=subprocess.DEVNULL, timeout=30, check=False)


def pretend(monkeypatch: pytest.MonkeyPatch, *, python: Path | None = None, package: Path | None = None) -> None:
    """The launcher is written for this interpreter and this package."""
    if python:
        monkeypatch.setattr(sys, "executable", str(python))
    if package:
        monkeypatch.setattr(git_orch, "__file__", str(package / "__init__.py"))
    assert launcher.refresh(os.environ)


def test_the_launcher_runs_this_interpreter_alone_with_the_hook(
    hook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "it's $HOME"
    package.mkdir()
    (package / "hook.py").write_text(
        "import sys\nprint([sys.argv, sys.flags.isolated, sys.flags.no_site, sys.executable])\n"
    )
    pretend(monkeypatch, package=package)
    expected = [[str(package / "hook.py"), "stop"], 1, 1, os.path.abspath(sys.executable)]
    assert launch(hook).stdout.decode() == f"{expected}\n"


def test_an_interpreter_that_was_moved_by_an_upgrade_is_no_fault(
    hook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "python3.1").symlink_to("gone")
    pretend(monkeypatch, python=tmp_path / "python3.1")
    assert nothing(launch(hook))
    assert nothing(run_line())


def test_a_package_that_was_removed_is_no_fault(hook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, package=tmp_path / "gone")
    assert nothing(launch(hook))
    assert nothing(run_line())


def test_a_package_that_is_broken_never_blocks(hook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hook.py").write_text("import sys\nsys.exit(2)\n")
    pretend(monkeypatch, package=tmp_path)
    assert launch(hook).returncode == 2
    assert nothing(run_line())


def test_keeping_the_launcher_up_to_date_loads_nothing_dear() -> None:
    program = "import sys; sys.path.append(sys.argv[1]); import git_orch.install.launcher; print(*sorted(sys.modules))"
    root = str(Path(launcher.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, root], capture_output=True, text=True, timeout=30, check=True
    )
    dear = {"json", "re", "enum", "typing", "subprocess", "tempfile", "shutil", "contextlib", "dataclasses", "pathlib"}
    assert not dear & set(done.stdout.split())


# -- the firing

FAKE = """
import json, os, sys
event = json.load(sys.stdin)
with open({log!r}, "a") as log:
    planted = open(os.path.join(event["cwd"], "planted.py")).read()
    facts = [sys.argv[1], event["hook_event_name"], "<<<<<<<" in planted, os.getcwd() == event["cwd"], dict(os.environ)]
    print(json.dumps(facts), file=log)
if sys.argv[1] == "stop":
    folder = os.path.join(event["cwd"], ".git/orch/runs/20260102T030405678-0123abcd")
    os.makedirs(folder)
    record = {{"status": "done", "verdict": {verdict!r}, "reason": "because", "terminal_reason": "completed"}}
    with open(os.path.join(folder, "record.json"), "w") as file:
        json.dump(record, file)
"""


@pytest.fixture
def fake(hook: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A launcher whose review ends with the verdict; gives the log of what it was called with."""

    def make(verdict: str) -> Path:
        log = tmp_path / "log"
        (tmp_path / "fake.py").write_text(FAKE.format(log=str(log), verdict=verdict))
        script(hook, f'exec {shlex.quote(sys.executable)} {shlex.quote(str(tmp_path / "fake.py"))} "$@"\n')
        return log

    return make


def test_a_hook_that_works_is_told_with_its_time(fake: Callable[[str], Path], seal: Seal) -> None:
    log = fake("findings")
    outcome = firing.fire(os.environ)
    assert isinstance(outcome, Fired)
    assert 0 < outcome.answer_ms < 20_000
    facts = [json.loads(line)[:4] for line in log.read_text().splitlines()]
    assert facts == [["session-start", "SessionStart", False, True], ["stop", "Stop", True, True]]
    assert os.listdir(seal.tmp) == []


def test_the_session_knows_nothing_of_the_users_but_where_the_launcher_is(
    fake: Callable[[str], Path], seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = fake("findings")
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "ORCH", "ORCH_TASK", "CLAUDE_CODE_SESSION_ID", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, "/nonsense")
    assert isinstance(firing.fire(os.environ), Fired)
    seen = json.loads(log.read_text().splitlines()[-1])[4]
    assert not {"GIT_DIR", "GIT_INDEX_FILE", "ORCH", "ORCH_TASK", "CLAUDE_CODE_SESSION_ID"} & seen.keys()
    assert "XDG_CONFIG_HOME" not in seen
    assert seen["XDG_STATE_HOME"] == os.environ["XDG_STATE_HOME"]
    assert (seen["GIT_CONFIG_GLOBAL"], seen["CLAUDECODE"]) == (os.devnull, "1")
    assert seen["HOME"].startswith(str(seal.tmp))
    assert seen["TMPDIR"].startswith(str(seal.tmp))


def test_when_the_hooks_last_fired_is_as_it_was(fake: Callable[[str], Path], hook: Path) -> None:
    fake("findings")
    with hook.open("a"):
        script(hook, 'touch "$XDG_STATE_HOME/git-orch/fired-$1.claude"\n')
    launcher.note_fired(os.environ, "stop", "claude")
    os.utime(hook.with_name("fired-stop.claude"), (1e9, 1e9))
    firing.fire(os.environ)
    assert launcher.last_fired(os.environ) == {("claude", "stop"): 1e9}


@pytest.mark.parametrize("verdict", ["pass", "unreviewed", "nothing-to-review"])
def test_a_review_that_does_not_find_the_fault_is_told(fake: Callable[[str], Path], verdict: str) -> None:
    fake(verdict)
    outcome = firing.fire(os.environ)
    assert outcome == Misfired(reason=f"its review ended as {verdict}: because")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda hook: hook.unlink(), "there is no "),
        (lambda hook: hook.chmod(0o644), "cannot be executed"),
        (lambda hook: script(hook, "cat > /dev/null"), "without beginning a review"),
        (lambda hook: script(hook, "echo first >&2; echo why >&2"), "SessionStart said: why"),
    ],
    ids=["gone", "not executable", "does nothing", "complains"],
)
def test_a_hook_that_does_not_work_is_told_with_the_reason(
    hook: Path, seal: Seal, spoil: Callable[[Path], object], reason: str
) -> None:
    spoil(hook)
    outcome = firing.fire(os.environ)
    assert isinstance(outcome, Misfired)
    assert reason in outcome.reason
    assert os.listdir(seal.tmp) == []


def test_a_line_that_would_block_is_told(hook: Path) -> None:
    script(hook, "exit 2")
    outcome = firing.fire(os.environ, line=lambda event: f'"{hook}" {event}')
    assert outcome == Misfired(reason="SessionStart ended with status 2, which has to be 0")


def test_a_child_that_holds_the_pipes_is_waited_for_as_a_client_does(
    hook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(hook, "cat >/dev/null; sleep 2 &\n")
    monkeypatch.setattr(firing, "_HOOK_TIMEOUT_S", 0.5)
    outcome = firing.fire(os.environ)
    assert isinstance(outcome, Misfired)
    assert outcome.reason.startswith("SessionStart was not back after")


def test_a_review_that_does_not_end_is_not_waited_for_for_ever(
    hook: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(hook, "cat >/dev/null; test $1 = stop && mkdir -p .orch/pending && touch .orch/pending/x.json\n")
    monkeypatch.setattr(firing, "_CANCEL_TIMEOUT_S", 0.1)
    assert firing.fire(os.environ, timeout_s=1) == Misfired(reason="its review was not done after 1 s")
    assert os.listdir(seal.tmp) == []


def test_a_tmpdir_that_is_not_there_is_told(hook: Path, seal: Seal) -> None:
    outcome = firing.fire({**os.environ, "TMPDIR": str(seal.tmp / "gone")})
    assert hook.exists()
    assert isinstance(outcome, Misfired)
    assert "gone" in outcome.reason


def test_the_real_hook_finds_the_planted_fault(hook: Path, seal: Seal) -> None:
    outcome = firing.fire(os.environ)
    assert hook.exists()
    assert isinstance(outcome, Fired), outcome
    assert os.listdir(seal.tmp) == []
    assert launcher.last_fired(os.environ) == {}
    assert outcome.answer_ms < clients.TIMEOUT_S * 1000
