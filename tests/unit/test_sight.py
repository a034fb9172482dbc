"""What a job in tier 1 sees: computed from files alone, without a mount."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from git_orch import sight
from git_orch.layout import Layout
from git_orch.place import Place
from git_orch.registry import Intent
from tests.entries import KEY, intent_of, layout_at, make_registry


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = layout_at(tmp_path / "repo")
    for path in (layout.objects + "/info", layout.common_dir + "/worktrees"):
        os.makedirs(path)
    return layout


@pytest.fixture
def run(layout: Layout) -> Intent:
    return intent_of(layout, make_registry(layout))


def test_the_main_worktree_stands_for_all_that_lies_in_it(run: Intent, layout: Layout) -> None:
    assert sight.protected(run) == (layout.worktree,)


@pytest.mark.parametrize("is_relative", [False, True])
def test_every_linked_worktree_is_protected(run: Intent, layout: Layout, tmp_path: Path, is_relative: bool) -> None:
    worktree = tmp_path / "linked"
    worktree.mkdir()
    entry = Path(layout.common_dir, "worktrees/linked")
    entry.mkdir()
    link = os.path.relpath(worktree / ".git", entry) if is_relative else worktree / ".git"
    (entry / "gitdir").write_text(f"{link}\n")
    assert set(sight.protected(run)) == {layout.worktree, str(worktree)}


def test_stores_that_are_borrowed_from_are_protected_at_any_depth(run: Intent, layout: Layout, tmp_path: Path) -> None:
    near, far = tmp_path / "near/objects", tmp_path / "far/objects"
    for store in (near, far):
        (store / "info").mkdir(parents=True)
    Path(layout.objects, "info/alternates").write_text(f"# a comment\n{os.path.relpath(near, layout.objects)}\n")
    (near / "info/alternates").write_text(f"{far}\n")
    (far / "info/alternates").write_text(f"{near}\n")  # a circle ends
    assert set(sight.protected(run)) == {layout.worktree, str(near), str(far)}


def test_a_bare_repository_protects_itself(tmp_path: Path) -> None:
    layout = layout_at(tmp_path / "repo")
    bare = layout.replace(worktree="", common_dir=str(tmp_path / "bare.git"), git_dir=str(tmp_path / "bare.git"))
    os.makedirs(bare.common_dir)
    book = make_registry(layout)
    assert sight.protected(intent_of(bare, book)) == (bare.common_dir,)


def test_key_and_sockets_are_hidden(tmp_path: Path) -> None:
    state, runtime = tmp_path / "state/git-orch", tmp_path / "run"
    for folder in (state, runtime / "gnupg"):
        folder.mkdir(parents=True)
    agent = tmp_path / "agent"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(agent))
    env = {
        "XDG_STATE_HOME": str(state.parent),
        "XDG_RUNTIME_DIR": str(runtime),
        "SSH_AUTH_SOCK": str(agent),
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus,guid=1",
        "TMUX_TMPDIR": str(tmp_path),
    }
    hidden = sight.hidden(env)
    assert {str(state), str(runtime / "gnupg"), str(agent)} <= set(hidden)
    assert str(runtime / "bus") not in hidden  # not there


def test_only_what_lies_in_the_checkout_is_lent(run: Intent, layout: Layout) -> None:
    for path in ("node_modules", "deep/venv"):
        os.makedirs(os.path.join(layout.worktree, path))
    Path(layout.worktree, "file").touch()
    names = ("./node_modules", "deep//venv/", "node_modules", "file", "missing", "..", "../x", "/etc", ".git", ".", "")
    lent = sight.provided(run.replace(provide=names))
    assert lent == tuple((f"{layout.worktree}/{name}", name) for name in ("node_modules", "deep/venv", "file"))


def test_a_home_in_the_checkout_keeps_its_state_folders(run: Intent, layout: Layout, tmp_path: Path) -> None:
    home = Path(layout.worktree)
    (home / ".cache").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (home / ".claude").symlink_to(tmp_path / "elsewhere")
    place = Place(run.run_id, "fake", str(tmp_path / "place"), KEY)
    env = {"HOME": str(home), "XDG_STATE_HOME": str(tmp_path)}
    assert sight.view(run, place, env).writable == (str(home / ".cache"),)
    assert sight.view(run, place, {**env, "HOME": str(tmp_path / "elsewhere")}).writable == ()
