"""What `git orch install` and `uninstall` ask and say."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from git_orch.commands.install import install, uninstall
from git_orch.errors import EnvironmentProblem, UsageError
from git_orch.install import claude, firing, hooksfile, launcher
from git_orch.install.firing import Fired, Misfired
from tests.acceptance.agents.clients import installed
from tests.repo import Repo
from tests.seal import Seal


def has_ours(raw: bytes) -> bool:
    return hooksfile.has_ours(raw, claude.CLIENT)


QUIET = dict.fromkeys(("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER"), "1")
FOUND = Fired(answer_ms=41)
# A terminal's child: the functions as the command line calls them, the firing left out.
ASKING = """
import sys
from git_orch.commands import installing
from git_orch.errors import OrchError
from git_orch.install import firing


def has_ours(raw: bytes) -> bool:
    return hooksfile.has_ours(raw, claude.CLIENT)

firing.fire = lambda env, client: firing.Fired(answer_ms=41)
try:
    installing.install(installing.Asked(client="claude", reviewers=tuple(sys.argv[1:])))
except OrchError as error:
    print(error.message)
    sys.exit(error.exit_code)
"""


@pytest.fixture
def here(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """The repository, as the current folder; hooks are taken to work."""
    monkeypatch.chdir(repo.path)
    monkeypatch.setattr(firing, "fire", lambda _env, **_: FOUND)
    return repo


def on_a_terminal(repo: Repo, answers: str, *reviewers: str) -> tuple[int, str]:
    """The exit status and all that a person saw who typed the answers."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", ASKING, *reviewers],
            cwd=repo.path,
            env={**os.environ, "PYTHONPATH": str(Path(launcher.__file__).parents[2])},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        os.write(ours, answers.encode())
        seen = b""
        while part := read_some(ours):
            seen += part
        return process.wait(timeout=60), seen.decode().replace("\r\n", "\n")
    finally:
        os.close(ours)


def read_some(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # EIO: the other side is closed
        return b""


# -- options


@pytest.mark.parametrize("event", launcher.EVENTS)
def test_print_gives_the_exact_line_and_no_more(
    event: launcher.Event, capsys: pytest.CaptureFixture[str], seal: Seal
) -> None:
    install(print_event=event)
    assert capsys.readouterr().out == launcher.line(event) + "\n"
    assert not (seal.home / ".claude").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"print_event": "begin"}, r"no event `begin` \(stop session-start user-prompt-submit, or allow\)"),
        ({"client": "emacs", "yes": True}, "no client `emacs` here"),
        ({"user": True, "local": True, "yes": True}, "--user and --local are two places"),
        ({}, "install asks before it writes, and here is no terminal"),
        ({"yes": True, "reviewer": ["statik"]}, "no reviewer `statik` here; did you mean static?"),
    ],
)
def test_what_makes_no_sense_is_refused(here: Repo, seal: Seal, arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        install(**arguments)  # type: ignore[arg-type]
    assert here.git("config", "--list", "--local").count("orch.") == 0
    assert not (seal.home / ".claude").exists()


def test_outside_a_repository_there_is_nothing_to_switch_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EnvironmentProblem, match="not in a git repository"):
        install(yes=True)
    with pytest.raises(EnvironmentProblem, match="not in a git repository"):
        uninstall(local=True)


# -- words


def test_install_tells_what_it_writes_and_what_it_wrote(here: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    here.git("config", "orch.reviewer.lint.command", "make lint")
    install(yes=True, reviewer=["lint"])
    said = capsys.readouterr().out.splitlines()

    assert said[1] == f"Here    {here.path}, 0 files"
    assert said[2] == "writes  ~/.claude/settings.json"
    assert [line.split(":")[0].strip() for line in said[3:6]] == ['"Stop"', '"SessionStart"', '"UserPromptSubmit"']
    assert said[6:] == [
        "writes  .git/config",
        "          orch.enabled = true",
        "          orch.reviewers = static lint",
        "wrote   ~/.claude/settings.json     Stop, SessionStart, UserPromptSubmit",
        "wrote   .git/config                 orch.enabled, orch.reviewers = static lint",
        "fired   Stop in a scratch repository: back in 41 ms, found the planted fault",
        "Sessions that run now load it at once. Nothing was written into your work tree.",
        "",
        "  git orch status        what it did last",
        "  git orch install --print allow     rules by which its agent may ask for reviews",
        "  git orch uninstall     takes it all back, byte for byte",
    ]


@pytest.mark.usefixtures("here")
def test_a_second_install_says_that_all_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    install(yes=True)
    capsys.readouterr()
    install(yes=True)
    said = capsys.readouterr().out
    assert "installed already" in said
    assert "wrote" not in said
    assert "fired   Stop" in said


def test_a_dry_run_shows_the_same_and_writes_nothing(
    here: Repo, seal: Seal, capsys: pytest.CaptureFixture[str]
) -> None:
    install(dry_run=True, project=True)
    said = capsys.readouterr().out
    assert "writes  .claude/settings.json" in said
    assert launcher.line("stop").replace('"', '\\"') in said
    assert "commit it" in said
    assert said.endswith("nothing was written (--dry-run)\n")
    assert not (here.path / ".claude").exists()
    assert os.listdir(seal.home) == [".gitconfig"]


@pytest.mark.usefixtures("here")
def test_a_file_in_the_work_tree_is_named_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    install(yes=True, local=True)
    said = capsys.readouterr().out
    assert "Written into your work tree: .claude/settings.local.json" in said
    assert "Nothing was written" not in said
    assert "not in a folder below" in " ".join(said.split())


def test_a_hook_that_does_not_work_is_an_error_with_a_way_out(
    here: Repo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(firing, "fire", lambda _env, **_: Misfired(reason="it said: \x1b[31mno"))
    with pytest.raises(EnvironmentProblem, match="does not work here") as caught:
        install(yes=True)
    assert "git orch uninstall" in caught.value.hint
    said = capsys.readouterr().out
    assert "fired   Stop in a scratch repository: it said: " in said
    assert "\x1b" not in said
    assert here.git("config", "orch.enabled") == "true"


@pytest.mark.usefixtures("here")
def test_uninstall_tells_what_it_took_out(seal: Seal, capsys: pytest.CaptureFixture[str]) -> None:
    launcher.refresh(os.environ)
    install(yes=True)
    capsys.readouterr()

    uninstall(dry_run=True)
    assert capsys.readouterr().out.splitlines() == [
        "would remove ~/.claude/settings.json     Stop, SessionStart, UserPromptSubmit",
        "would remove .git/config                 orch.enabled",
        "nothing was changed (--dry-run)",
    ]
    uninstall()
    assert capsys.readouterr().out.splitlines() == [
        "removed ~/.claude/settings.json     Stop, SessionStart, UserPromptSubmit",
        "removed .git/config                 orch.enabled",
        "removed ~/.local/state/git-orch/hook the launcher",
        "Each file is byte for byte what it was.",
    ]
    assert not (seal.home / ".claude").exists()
    uninstall()
    assert capsys.readouterr().out == "nothing of git-orch is installed here\n"


@pytest.mark.usefixtures("here")
def test_uninstall_tells_where_an_edit_was_kept(seal: Seal, capsys: pytest.CaptureFixture[str]) -> None:
    install(yes=True)
    path = seal.home / ".claude/settings.json"
    path.write_bytes(path.read_bytes().replace(b"{", b'{\n  "model": "opus",', 1))
    capsys.readouterr()
    uninstall()
    assert "what you changed since, is as you left it" in capsys.readouterr().out
    assert path.read_bytes() == b'{\n  "model": "opus"\n}\n'


@pytest.mark.usefixtures("here")
def test_the_client_on_path_is_named_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "bin/claude"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "9.8.7 (Claude Code)"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    install(dry_run=True)
    assert capsys.readouterr().out.startswith("Found   claude 9.8.7; no husky, lefthook or pre-commit\n")

    program.write_text("not a program")
    install(dry_run=True)
    assert capsys.readouterr().out.startswith("Found   claude; no husky")


@pytest.mark.real_client
@pytest.mark.skipif(not installed("claude"), reason="claude is not installed: scripts/clients, AGENT_CLIS, or PATH")
@pytest.mark.parametrize("manifest", ["", ".claude-plugin/plugin.json"])
def test_the_client_takes_the_plugin(seal: Seal, manifest: str) -> None:
    done = subprocess.run(
        [installed("claude")[-1].program, "plugin", "validate", Path(__file__).parents[2] / manifest],
        env={**os.environ, "CLAUDE_CONFIG_DIR": str(seal.home / ".claude"), **QUIET},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# -- a terminal


def test_return_is_yes_and_nothing_leaves_the_machine(repo: Repo, seal: Seal) -> None:
    status, seen = on_a_terminal(repo, "\n\n")
    assert status == 0, seen
    assert "1 Review after each turn of  claude" in seen
    assert "0  built-in checks only" in seen
    assert has_ours((seal.home / ".claude/settings.json").read_bytes())
    assert repo.git("config", "--get-regexp", r"^orch\.") == "orch.enabled true"


def test_no_is_no(repo: Repo, seal: Seal) -> None:
    status, seen = on_a_terminal(repo, "perhaps\nn\n")
    assert status == 0
    assert seen.count("1 Review after each turn") == 2
    assert seen.endswith("nothing was written\n")
    assert not (seal.home / ".claude").exists()


def test_the_end_of_the_input_is_no_consent(repo: Repo, seal: Seal) -> None:
    status, seen = on_a_terminal(repo, "\x04")
    assert (status, "nothing was written" in seen) == (2, True)
    assert not (seal.home / ".claude").exists()


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ("\n", "static"),
        ("0\n", "static"),
        ("2\n", "static far"),
        ("1, 2\n", "static near far"),
        ("3\nx\n1\n", "static near"),
    ],
)
def test_a_person_chooses_who_reads_the_changes(repo: Repo, answer: str, chosen: str) -> None:
    for name in ("near", "far"):
        repo.git("config", f"orch.reviewer.{name}.command", f"run {name}")
    repo.git("config", "orch.reviewer.far.network", "true")
    status, seen = on_a_terminal(repo, "y\n" + answer + "\n")
    assert status == 0, seen
    assert "1  and near   your command: run near" in seen
    assert "2  and far   your command, which uses the network: run far" in seen
    assert repo.git("config", "orch.reviewers") == chosen


def test_what_was_chosen_before_is_the_default(repo: Repo) -> None:
    repo.git("config", "orch.reviewer.near.command", "run near")
    repo.git("config", "orch.reviewers", "static near")
    status, seen = on_a_terminal(repo, "\n\n\n")
    assert status == 0
    assert "default 1" in seen
    assert repo.git("config", "orch.reviewers") == "static near"


def test_reviewers_named_as_options_are_not_asked_for(repo: Repo) -> None:
    repo.git("config", "orch.reviewer.near.command", "run near")
    status, seen = on_a_terminal(repo, "y\n\n", "near")
    assert status == 0
    assert "Who reads" not in seen
    assert repo.git("config", "orch.reviewers") == "static near"


def test_the_commands_are_those_that_typer_calls() -> None:
    import typer
    from typer.testing import CliRunner

    app = typer.Typer(rich_markup_mode=None)
    app.command()(install)
    app.command()(uninstall)
    done = CliRunner().invoke(app, ["install", "--print", "stop"])
    assert (done.exit_code, done.output) == (0, launcher.line("stop") + "\n")
    said = CliRunner().invoke(app, ["uninstall", "--user", "--project"])
    assert isinstance(said.exception, UsageError)
