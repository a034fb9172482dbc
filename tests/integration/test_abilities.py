"""What a client can do is read out of its help, once a program."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from git_orch.reviewers import abilities, claude

HELP = """\
Usage: claude [options] [command] [prompt]
  --add-dir <directories...>            More directories
  --allowedTools, --allowed-tools <tools...>
      Comma or space-separated list (e.g. "Bash(git *)")
  -c, --continue                        Continue
  --cloud [description|session_id|url]  Create (e.g., --debug=hooks,mcp)
      --deny-tool[=<tools...>]          Deny
  (default: --not-this.)
  -h, --help                            Display help
  a - b, --, ---
"""


def test_options_are_found_however_a_help_writes_them() -> None:
    assert abilities.options_in(HELP) == {
        "--add-dir", "--allowedTools", "--allowed-tools", "-c", "--continue", "--cloud", "--debug", "--deny-tool",
        "--not-this", "-h", "--help",
    }  # fmt: skip


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A client that counts how often it is asked."""
    (tmp_path / "help").write_text(HELP)
    path = tmp_path / "bin" / "claude"
    path.parent.mkdir()
    write(
        path, 'echo "$1" >> "$ASKED"; case $1 in --help) cat "$HELP";; --version) echo "2.1.332 (Claude Code)";; esac'
    )
    return path


def write(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def ask(program: Path, tmp_path: Path) -> abilities.Abilities:
    env = {**os.environ, "ASKED": str(tmp_path / "asked"), "HELP": str(tmp_path / "help")}
    found = abilities.find(claude, f"{program.parent}:{os.environ['PATH']}")
    assert found == str(program)
    return abilities.of(claude, found, env)


def asked(tmp_path: Path) -> list[str]:
    path = tmp_path / "asked"
    return sorted(path.read_text().split()) if path.exists() else []


def test_a_program_is_asked_once(program: Path, tmp_path: Path) -> None:
    first = ask(program, tmp_path)
    assert (first.version, first.options) == ("2.1.332", abilities.options_in(HELP))
    assert ask(program, tmp_path) == first
    assert asked(tmp_path) == ["--help", "--version"]


def test_another_version_is_asked_anew(program: Path, tmp_path: Path) -> None:
    ask(program, tmp_path)
    (tmp_path / "help").write_text("--help --fewer")
    write(program, program.read_text().split("\n", 1)[1].replace("2.1.332", "2.2.0") + "# new")
    second = ask(program, tmp_path)
    assert (second.version, second.options) == ("2.2.0", frozenset(("--help", "--fewer")))


def test_a_link_is_followed_to_the_program_that_changes(program: Path, tmp_path: Path) -> None:
    real = tmp_path / "real"
    program.rename(real)
    program.symlink_to(real)
    ask(program, tmp_path)
    real.write_bytes(real.read_bytes() + b"# new\n")
    ask(program, tmp_path)
    assert len(asked(tmp_path)) == 4


@pytest.mark.parametrize("body", ["exit 1", "echo no help here", "kill -9 $$", ":"])
def test_one_that_lists_nothing_is_not_known_and_asked_again(body: str, program: Path, tmp_path: Path) -> None:
    write(program, f'echo "$1" >> "$ASKED"; {body}')
    assert ask(program, tmp_path).options is None
    assert ask(program, tmp_path).options is None
    assert len(asked(tmp_path)) == 4


@pytest.mark.parametrize("spoilt", ["", "{", "[]", '{"stamp": 1}', '{"stamp": null, "asked_at": "x"}'])
def test_a_spoilt_memory_is_made_anew(spoilt: str, program: Path, tmp_path: Path) -> None:
    first = ask(program, tmp_path)
    (memory,) = (Path(os.environ["XDG_STATE_HOME"]) / "git-orch" / "clients").iterdir()
    memory.write_text(spoilt)
    assert ask(program, tmp_path) == first
    assert len(asked(tmp_path)) == 4


def test_after_a_week_it_is_asked_again(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(program, tmp_path)
    monkeypatch.setattr(abilities, "LONGEST_S", 0.0)
    ask(program, tmp_path)
    assert len(asked(tmp_path)) == 4


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    assert abilities.find(claude, str(tmp_path)) == ""
