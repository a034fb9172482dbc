"""What of a git directory steers git, and what only moves: told apart without git."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from git_orch import integrity
from git_orch.integrity import Change
from git_orch.registry import Intent
from tests.entries import intent_of, layout_at, make_registry

CONFIG = '[core]\n\tbare = false\n[branch "main"]\n\tremote = origin\n[user]\n\tname = me\n'


@pytest.fixture
def common(tmp_path: Path) -> Path:
    common = tmp_path / ".git"
    for folder in ("hooks", "refs/heads", "info", "worktrees/wt"):
        (common / folder).mkdir(parents=True)
    (common / "config").write_text(CONFIG)
    (common / "HEAD").write_text("ref: refs/heads/main\n")
    (common / "refs/heads/main").write_text("0" * 40)
    (common / "hooks/pre-commit.sample").write_text("#!/bin/sh\n")
    return common


@pytest.fixture
def run(common: Path) -> Intent:
    layout = layout_at(common.parent)
    return intent_of(layout, make_registry(layout), common_dir=str(common), git_dir=str(common / "worktrees/wt"))


def after(run: Intent, act: Callable[[], object]) -> Change:
    """What differs after the act."""
    before = integrity.look(run)
    act()
    return integrity.change(before, integrity.look(run))


def test_nothing_done_nothing_told(run: Intent) -> None:
    assert after(run, lambda: None) == Change()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("config", CONFIG + "\tsigningKey = x\n"),
        ("config", CONFIG.replace("bare = false", "fsmonitor = evil")),
        ("config", CONFIG + '[branch "x"] [core]\n\tfsmonitor = evil\n'),
        ("config.worktree", "[core]\n\thooksPath = /tmp/evil\n"),
        ("worktrees/wt/config.worktree", "[core]\n\thooksPath = /tmp/evil\n"),
        ("hooks/post-checkout", "#!/bin/sh\n"),
        ("hooks/pre-commit.sample", "#!/bin/sh\nexit 1\n"),
        ("info/attributes", "* filter=evil\n"),
    ],
)
def test_settings_and_hooks_are_told_as_such(run: Intent, common: Path, path: str, text: str) -> None:
    target = common / path
    assert after(run, lambda: target.write_text(text)) == Change(settings=(str(target),))


def test_a_hook_that_becomes_executable_or_a_link_is_told(run: Intent, common: Path) -> None:
    hook = common / "hooks/pre-commit.sample"
    assert after(run, lambda: hook.chmod(0o755)).settings == (str(hook),)

    def replace() -> None:
        hook.unlink()
        hook.symlink_to("/tmp/evil")

    assert after(run, replace).settings == (str(hook),)


@pytest.mark.parametrize("path", ["HEAD", "refs/heads/new", "refs/heads/main", "index", "worktrees/wt/index"])
def test_what_moves_as_one_works_is_no_fault(run: Intent, common: Path, path: str) -> None:
    target = common / path
    assert after(run, lambda: target.write_text("1" * 41)) == Change(moved=(str(target),))


def test_a_branch_that_is_tracked_now_is_no_change_of_settings(run: Intent, common: Path) -> None:
    added = CONFIG + '[branch "topic"]\n\tremote = origin\n\tmerge = refs/heads/topic\n'
    assert after(run, lambda: (common / "config").write_text(added)) == Change()


def test_a_lock_of_a_moment_is_no_change(run: Intent, common: Path) -> None:
    assert after(run, (common / "refs/heads/main.lock").touch) == Change()
