"""One way to call git: no variable of the caller's steers it, nothing is asked, nothing is written."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from git_orch import git
from git_orch.errors import EnvironmentProblem, GitError
from git_orch.git import Git
from tests.repo import Repo
from tests.untouched import fingerprint


def at(repo: Repo, **fields: Any) -> Git:
    return Git(**{"env": dict(os.environ), "cwd": str(repo.path), **fields})


@pytest.fixture
def started(repo: Repo) -> Repo:
    repo.write("a.txt", "one\n")
    repo.commit()
    return repo


def test_what_it_prints(started: Repo) -> None:
    assert at(started).run("ls-files", "-z") == b"a.txt\0"
    assert at(started).line("rev-parse", "HEAD") == started.git("rev-parse", "HEAD")
    assert at(started).run("hash-object", "--stdin", stdin=b"one\n").split() == [
        b"5626abf0f72e58d7a153368ba57db4c673c0e171"
    ]


def test_a_failure_says_what_git_said(started: Repo) -> None:
    with pytest.raises(GitError) as failed:
        at(started).run("rev-parse", "--verify", "no-such-thing")
    assert failed.value.returncode == 128
    assert failed.value.message == "git rev-parse failed: fatal: Needed a single revision"
    assert failed.value.argv == ("rev-parse", "--verify", "no-such-thing")
    assert at(started).attempt("rev-parse", "--verify", "no-such-thing").code == 128


def test_a_failure_without_a_word() -> None:
    assert GitError(("x",), 1, "").message == "git x failed: exit status 1"


def test_one_that_is_not_done_in_time(started: Repo) -> None:
    began = time.monotonic()
    with pytest.raises(GitError) as failed:
        at(started).run("-c", "alias.wait=!exec sleep 1000", "wait", timeout_s=1.0)
    assert "not done after 1 s" in failed.value.message
    assert time.monotonic() - began < 30


def test_no_git(started: Repo) -> None:
    with pytest.raises(EnvironmentProblem) as refused:
        at(started, env={"PATH": "/nowhere"}).run("version")
    assert refused.value.hint == "install git 2.38 or newer"


@pytest.mark.parametrize(
    "name",
    [
        "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_LITERAL_PATHSPECS", "GIT_TRACE", "GIT_EXTERNAL_DIFF",
        "GIT_ASKPASS", "GIT_EDITOR", "GIT_PAGER", "GIT_QUARANTINE_PATH", "GIT_DEFAULT_HASH",
    ],
)  # fmt: skip
def test_a_callers_variable_does_not_steer(started: Repo, name: str) -> None:
    steered = at(started, env={**os.environ, name: "/nowhere"})
    assert steered.run("status", "--porcelain", "-z", "--branch") == b"## main\0"
    assert name not in git.environment({name: "x"})
    assert name not in git.without_git({name: "x"})


@pytest.mark.parametrize(
    "name", ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_COUNT", "GIT_EXEC_PATH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO"]
)
def test_what_says_where_settings_and_remotes_are_is_kept(name: str) -> None:
    assert git.environment({name: "x"})[name] == "x"
    assert name not in git.without_git({name: "x"})


def test_settings_of_the_command_line_are_seen(started: Repo) -> None:
    env = {**os.environ, "GIT_CONFIG_PARAMETERS": "'orch.x'='y'"}
    assert at(started, env=env).line("config", "orch.x") == "y"
    assert at(started, config=("orch.x=z",)).line("config", "orch.x") == "z"


def test_its_own_places(started: Repo, tmp_path: object) -> None:
    looked = at(started, cwd="/", git_dir=str(started.path / ".git"), work_tree=str(started.path))
    assert looked.line("rev-parse", "--show-toplevel") == str(started.path)
    index = f"{tmp_path}/index"
    looked = at(started, index=index)
    assert looked.run("ls-files", "-z") == b""
    assert started.git("ls-files") == "a.txt"


def test_looking_writes_nothing(started: Repo) -> None:
    """A plain `git status` writes the index anew once stat data differ."""
    (started.path / "a.txt").touch()
    started.write(".git/hooks/post-index-change", "#!/bin/sh\necho ran >> ran.txt\n", mode=0o755)
    before = fingerprint(started)
    for words in (("status", "--porcelain"), ("diff", "--stat"), ("log", "-1"), ("describe", "--always", "--dirty")):
        at(started).run(*words)
    assert fingerprint(started) == before
    started.git("status", "--porcelain")
    assert fingerprint(started) != before


def test_no_hook_of_the_configuration_runs(started: Repo, tmp_path: Path) -> None:
    if tuple(map(int, re.findall(r"\d+", started.git("version"))[:2])) < (2, 55):
        pytest.skip("git before 2.55 switches no event's hooks off")
    ran = tmp_path / "ran.txt"
    started.git("config", "hook.theirs.command", f"echo ran >>{ran}; :")
    for event in ("post-index-change", "reference-transaction", "pre-auto-gc"):
        started.git("config", "--add", "hook.theirs.event", event)

    def work(run: Callable[..., object]) -> None:
        started.write("b.txt", f"{run}\n")
        run("add", "-A")
        run("update-ref", "refs/heads/other", "HEAD")
        run("update-ref", "-d", "refs/heads/other")

    work(at(started, index=f"{tmp_path}/index").run)
    assert not ran.exists()
    work(started.git)
    assert set(ran.read_text().splitlines()) == {"ran"}


def test_two_at_once(started: Repo) -> None:
    one, other = git.run_both((at(started), ("ls-files",)), (at(started), ("rev-parse", "HEAD")))
    assert one.stdout == b"a.txt\n"
    assert other.stdout.decode().strip() == started.git("rev-parse", "HEAD")
    with pytest.raises(GitError, match="git rev-parse failed"):
        git.run_both((at(started), ("ls-files",)), (at(started), ("rev-parse", "no-such")))
    with pytest.raises(EnvironmentProblem):
        git.run_both((at(started, env={}), ("ls-files",)), (at(started, env={"PATH": "/nowhere"}), ("ls-files",)))


def test_any_bytes_are_text_and_back() -> None:
    every = bytes(range(1, 256))
    assert git.encode(git.decode(every)) == every


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", []),
        (b"a\0", [b"a"]),
        (b"a\0b\0", [b"a", b"b"]),
        (b"a\0b", [b"a", b"b"]),
        (b"a\nb\0", [b"a\nb"]),
        (b"\0", [b""]),
    ],
)
def test_lists(raw: bytes, expected: list[bytes]) -> None:
    assert git.split_z(raw) == expected
