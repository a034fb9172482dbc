"""The launcher is kept up to date by every command, and no command fails because of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from git_orch.errors import EnvironmentProblem
from git_orch.install import launcher

HOUR = 3600.0


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "XDG_STATE_HOME": str(tmp_path / "state")}


def test_it_is_written_once_and_names_this_very_git_orch(env: dict[str, str]) -> None:
    assert launcher.refresh(env)
    assert not launcher.refresh(env)

    path = Path(launcher.path(env))
    text = path.read_text()
    assert f"python='{sys.executable}'" in text
    assert str(Path(launcher.__file__).parent.parent / "hook.py") in text
    assert path.stat().st_mode & 0o777 == 0o755
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(path.parent) == ["hook"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text("#!/bin/sh\nexec /old/python -I -S /old/hook.py\n"),
        lambda path: path.chmod(0o644),
        lambda path: path.unlink(),
        lambda path: (path.rename(path.with_name("moved")), path.symlink_to("moved")),
    ],
    ids=["another text", "not executable", "gone", "a link"],
)
def test_what_was_spoilt_is_put_right(env: dict[str, str], spoil: Callable[[Path], object]) -> None:
    launcher.refresh(env)
    path = Path(launcher.path(env))
    good = path.read_bytes()
    spoil(path)

    assert launcher.refresh(env)

    assert (path.read_bytes(), path.stat().st_mode & 0o777, path.is_symlink()) == (good, 0o755, False)


def test_a_tight_umask_does_not_make_it_dead(env: dict[str, str]) -> None:
    os.makedirs(os.path.dirname(launcher.path(env)))
    before = os.umask(0o177)
    try:
        assert launcher.refresh(env)
    finally:
        os.umask(before)
    assert os.stat(launcher.path(env)).st_mode & 0o777 == 0o755


def test_where_it_cannot_be_written_nothing_happens(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    assert not launcher.refresh(env)
    launcher.note_fired(env, "stop", "claude")
    assert launcher.last_fired(env) == {}


def test_without_a_home_nothing_happens() -> None:
    assert not launcher.refresh({})
    launcher.note_fired({}, "stop", "claude")
    launcher.remove({})
    assert launcher.last_fired({}) == {}
    with pytest.raises(EnvironmentProblem, match="HOME is not set"):
        launcher.write({})


def test_an_embedded_interpreter_without_a_path_writes_nothing(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    assert not launcher.refresh(env)
    assert not os.path.exists(launcher.path(env))


def test_when_a_hook_fired_is_known(env: dict[str, str]) -> None:
    launcher.refresh(env)
    assert launcher.last_fired(env) == {}
    launcher.note_fired(env, "stop", "claude")
    mark = Path(launcher.path(env)).with_name("fired-stop.claude")
    first = launcher.last_fired(env)
    assert first == {("claude", "stop"): mark.stat().st_mtime}

    os.utime(mark, (first["claude", "stop"] - HOUR, first["claude", "stop"] - HOUR))
    launcher.note_fired(env, "stop", "claude")
    launcher.note_fired(env, "session-start", "claude")

    again = launcher.last_fired(env)
    assert set(again) == {("claude", "stop"), ("claude", "session-start")}
    assert again["claude", "stop"] > first["claude", "stop"] - HOUR / 2


def test_a_firing_that_was_none_can_be_forgotten(env: dict[str, str]) -> None:
    launcher.refresh(env)
    launcher.note_fired(env, "stop", "claude")
    before = launcher.last_fired(env)
    launcher.note_fired(env, "stop", "claude")
    launcher.note_fired(env, "session-start", "claude")
    launcher.set_fired(env, before)
    assert launcher.last_fired(env) == before


def test_removing_leaves_the_key(env: dict[str, str]) -> None:
    launcher.refresh(env)
    launcher.note_fired(env, "stop", "claude")
    key = Path(launcher.path(env)).with_name("key")
    key.write_bytes(b"k" * 32)
    launcher.remove(env)
    assert os.listdir(key.parent) == ["key"]


@pytest.mark.parametrize("event", launcher.EVENTS)
def test_the_line_is_the_one_that_the_documents_promise(event: launcher.Event) -> None:
    assert launcher.line(event) == (
        """sh -c 'L="${XDG_STATE_HOME:-$HOME/.local/state}/git-orch/hook"; test -x "$L" || exit 0; "$L" """
        f"""{event}; exit 0'"""
    )
    assert launcher.MARK in launcher.line(event)
