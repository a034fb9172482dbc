"""The seal catches what a test leaves behind: small suites are run by a pytest of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import MakeRepo, Orch
from tests.repo import Repo
from tests.seal import GIT_CONFIG, Seal, end, leftover_processes
from tests.waiting import wait_until

PROJECT = Path(__file__).parents[2]
SLEEPER = "import subprocess\nsubprocess.Popen(['sleep', '60'], start_new_session=True, {})\n"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a suite under the seal, with a short grace."""
    for name in [name for name in os.environ if name.startswith("PYTEST_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "conftest.py").write_text(
        "from tests import conftest\nfrom tests.conftest import *\nconftest.GRACE_S = 0.1\n"
    )
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {PROJECT}\nmarkers = leaves_entries\n leaves_trees\n")
    return folder


def run_suite(folder: Path, body: str) -> tuple[int, str]:
    """The exit code and the output of a suite with one test of this body."""
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    (folder / "test_it.py").write_text("import pytest\n\ndef test_it(seal, tmp_path, request):\n" + lines)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_test_that_leaves_nothing_passes(suite: Path) -> None:
    code, output = run_suite(suite, "assert 1 + 1 == 2")
    assert (code, "1 passed" in output) == (0, True), output


def test_a_process_that_is_left_fails_the_test_and_is_ended(suite: Path, seal: Seal) -> None:
    code, output = run_suite(suite, SLEEPER.format("cwd='/'"))
    assert code == 1
    assert "left behind:" in output
    assert "(sleep 60)\n" in output
    # It carried the marker of the inner seal only, so what ended it was the inner seal.
    assert not [process for process in leftover_processes(seal) if "sleep" in process.command]


def test_a_process_without_the_marker_is_told_and_left_alone(suite: Path, seal: Seal) -> None:
    body = SLEEPER.format(f"cwd=tmp_path, env={{'SEAL_OF_TEST': '{seal.marker}'}}")
    code, output = run_suite(suite, body)
    assert code == 1
    assert "(sleep 60), without the marker" in output
    (sleeper,) = [process for process in leftover_processes(seal) if process.command == "sleep 60"]
    assert end(sleeper, seal)
    wait_until(lambda: not leftover_processes(seal), timeout_s=10)


def test_a_tree_that_is_left_fails_the_test(suite: Path) -> None:
    code, output = run_suite(suite, "(seal.tmp / 'git-orch-0/20261130T201500123-9f3a61c2/tree').mkdir(parents=True)")
    assert code == 1
    assert "tree " in output
    assert "/git-orch-0/20261130T201500123-9f3a61c2" in output


LEFT_ENTRY = """
entry = tmp_path / 'repo/.orch/pending/20261130T201500123-9f3a61c2.json'
entry.parent.mkdir(parents=True)
entry.touch()
"""


@pytest.mark.leaves_entries("the inner suite's, in this test's folder")
def test_an_entry_that_is_left_fails_the_test(suite: Path) -> None:
    code, output = run_suite(suite, LEFT_ENTRY)
    assert code == 1
    assert "/repo/.orch/pending/20261130T201500123-9f3a61c2.json" in output


@pytest.mark.leaves_entries("the inner suite's, in this test's folder")
def test_an_entry_that_is_left_on_purpose_is_excused(suite: Path) -> None:
    code, output = run_suite(suite, LEFT_ENTRY + "request.node.add_marker(pytest.mark.leaves_entries('on purpose'))")
    assert code == 0, output


@pytest.mark.leaves_entries("the inner suite's, in this test's folder")
def test_a_held_lock_is_never_excused(suite: Path) -> None:
    body = """
import fcntl, os
lock = tmp_path / 'repo/.orch/pending/20261130T201500123-9f3a61c2.lock'
lock.parent.mkdir(parents=True)
fcntl.flock(os.open(lock, os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
request.node.add_marker(pytest.mark.leaves_entries('on purpose'))
"""
    code, output = run_suite(suite, body)
    assert code == 1
    assert "held lock " in output


def test_git_is_sealed_off_from_the_machine(repo: Repo, seal: Seal) -> None:
    origins = {line.split("\t")[0] for line in repo.git("config", "--list", "--show-origin").splitlines()}
    assert origins == {f"file:{seal.home}/.gitconfig", "file:.git/config"}
    assert (seal.home / ".gitconfig").read_text() == GIT_CONFIG


def test_two_commits_of_the_same_content_are_the_same_commit(make_repo: MakeRepo) -> None:
    commits = set()
    for name in ("one", "two"):
        repo = make_repo(name)
        repo.write("a/b.txt", "text\n")
        commits.add(repo.commit("first"))
    assert len(commits) == 1


@pytest.mark.parametrize(("object_format", "length"), [("sha1", 40), ("sha256", 64)])
def test_a_repository_has_the_object_format_that_was_asked_for(
    make_repo: MakeRepo, object_format: str, length: int
) -> None:
    assert len(make_repo("other", object_format=object_format).commit()) == length


def test_git_that_fails_is_told_with_what_it_said(repo: Repo) -> None:
    with pytest.raises(AssertionError, match="fatal: Not a valid object name"):
        repo.git("cat-file", "-p", "no-such-name")


def test_orch_is_run_by_git_in_the_repository(repo: Repo, orch: Orch, tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    stand_in = bin_folder / "git-orch"
    stand_in.write_text('#!/bin/sh\nprintf "%s|" "$PWD" "$X" "$@"; cat; exit 5\n')
    stand_in.chmod(0o755)
    done = orch("a b", "*", env={"PATH": f"{bin_folder}:{os.environ['PATH']}", "X": "y"}, stdin="typed")
    assert (done.returncode, done.stdout) == (5, f"{repo.path}|y|a b|*|typed")
