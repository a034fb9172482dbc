"""Who is taken for a person: real processes, with and without a terminal, in and out of an agent's session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from git_orch import people
from tests.acceptance.terminal import Terminal

PROJECT = Path(__file__).parents[2]
ASK = (
    f"import os, sys; sys.path.insert(0, {str(PROJECT)!r}); from git_orch import people; "
    "print('person' if people.is_person(os.environ) else 'agent')"
)


def told(folder: Path, *before: str, env: dict[str, str] | None = None) -> str:
    """What is said at a terminal of its own, started by these words."""
    with Terminal(*before, sys.executable, "-c", ASK, cwd=folder, env=env) as terminal:
        assert terminal.end() == 0, terminal.screen()
        return terminal.screen().split()[-1]


def test_a_person_sits_at_a_terminal(tmp_path: Path) -> None:
    assert told(tmp_path) == "person"


@pytest.mark.parametrize("mark", people.MARKS)
def test_a_clients_variable_makes_it_an_agents_session(tmp_path: Path, mark: str) -> None:
    assert told(tmp_path, env={mark: "1"}) == "agent"


def test_to_drop_the_variable_does_not_make_a_person(tmp_path: Path) -> None:
    """The shell that the client gave its agent a terminal with still has it."""
    shell = f'env -u CLAUDECODE {sys.executable} -c "$ASK"; true'
    with Terminal("sh", "-c", shell, cwd=tmp_path, env={"CLAUDECODE": "1", "ASK": ASK}) as terminal:
        assert terminal.end() == 0
        assert terminal.screen().split()[-1] == "agent"


def test_without_a_terminal_it_is_nobody_who_may_decide(tmp_path: Path) -> None:
    words = ["setsid", "--wait", sys.executable, "-c", ASK]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == ["agent"]
