"""What a session did lies between two snapshots: commits included, and not what was there before it began."""

from __future__ import annotations

import pytest

from git_orch import sessions
from git_orch.sessions import Session
from git_orch.snapshot import Limits
from tests.repo import Repo
from tests.scratch import layout_of, store_of
from tests.snapshots import content, take

HOOK = Limits(files=2000, size_bytes=64 << 20, seconds=600.0)


@pytest.fixture
def begun(repo: Repo) -> tuple[Repo, Session]:
    """A session that began in a work tree with an edit and an untracked file of before."""
    repo.write("a.txt", "one\nsame\n")
    repo.write("b.txt", "two\n")
    repo.commit()
    repo.write("a.txt", "dirty before\nsame\n")
    repo.write("scratch.txt", "of before\n")
    durable = layout_of(repo).durable
    session = Session(
        client="claude", session_id="s1", worktree=str(repo.path), base_tree_id=take(repo, limits=HOOK).tree_id
    )
    sessions.write(durable, session)
    known = sessions.read(durable, "claude", "s1", str(repo.path))
    assert known == session
    return repo, session


def changed(repo: Repo, session: Session) -> list[str]:
    """The paths between the session's base and the work tree of now."""
    return [change.path for change in store_of(repo).changed(session.base_tree_id, take(repo, limits=HOOK).tree_id)]


def test_nothing_done_is_nothing_changed(begun: tuple[Repo, Session]) -> None:
    assert changed(*begun) == []


def test_what_was_committed_before_the_stop_is_still_to_be_reviewed(begun: tuple[Repo, Session]) -> None:
    repo, session = begun
    repo.write("b.txt", "by the agent\n")
    repo.commit("all of it, as agents do")
    assert take(repo).tree_id == repo.git("rev-parse", "HEAD^{tree}")  # against HEAD there is nothing to review
    assert changed(repo, session) == ["b.txt"]


def test_what_was_dirty_before_is_not_the_sessions(begun: tuple[Repo, Session]) -> None:
    repo, session = begun
    repo.write("a.txt", "dirty before\nby the agent\n")
    assert changed(repo, session) == ["a.txt"]
    patch = store_of(repo).patch(session.base_tree_id, take(repo).tree_id).decode()
    assert [line for line in patch.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")] == [
        "-same",
        "+by the agent",
    ]
    head = repo.git("rev-parse", "HEAD^{tree}")
    assert "+dirty before" in store_of(repo).patch(head, take(repo).tree_id).decode().splitlines()


@pytest.mark.parametrize(
    "command", [["add", "-A"], ["stash"], ["commit", "-qam", "x"], ["gc", "--quiet", "--prune=now"]]
)
def test_what_git_does_to_the_index_is_no_change(begun: tuple[Repo, Session], command: list[str]) -> None:
    repo, session = begun
    repo.git(*command)
    if command == ["stash"]:
        repo.git("stash", "pop", "--quiet")
    assert changed(repo, session) == []


def test_a_flood_of_before_is_not_the_sessions(repo: Repo) -> None:
    """However often a hook looks, the same work tree gives the same tree: else the rest would come in bit by bit."""
    for number in range(300):
        repo.write(f"node_modules/{number}.js", f"{number}\n")
    repo.write("a.txt", "of before\n")
    limits = Limits(files=200, seconds=600.0)
    base = take(repo, limits=limits).tree_id
    take(repo)  # by hand, so all of them are in the kept index
    assert take(repo, limits=limits).tree_id == base
    repo.write("zz.py", "by the agent\n")
    taken = take(repo, limits=limits)
    assert content(repo, taken.tree_id, "zz.py") == b"by the agent\n"
    assert [change.path for change in store_of(repo).changed(base, taken.tree_id)] == ["zz.py"]
