"""What is remembered of a client's session, whatever its id looks like."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from git_orch import sessions
from git_orch.sessions import Session

SESSION = Session(
    client="claude",
    session_id="5c1e7a02",
    worktree="/home/me/no\udcff utf8",
    base_tree_id="a" * 40,
    reviewed_tree_id="b" * 40,
    run_ids=("20261130T201500123-9f3a61c2",),
)


@pytest.fixture
def durable(tmp_path: Path) -> str:
    return str(tmp_path / "orch")


def read_back(durable: str, session: Session) -> Session | None:
    return sessions.read(durable, session.client, session.session_id, session.worktree)


def test_a_session_is_read_back_as_it_was(durable: str) -> None:
    assert read_back(durable, SESSION) is None
    sessions.write(durable, SESSION)
    assert read_back(durable, SESSION) == SESSION
    sessions.write(durable, SESSION.replace(run_ids=()))
    assert read_back(durable, SESSION) == SESSION.replace(run_ids=())


@pytest.mark.parametrize("field", ["client", "session_id", "worktree"])
def test_another_one_is_another_file(durable: str, field: str) -> None:
    sessions.write(durable, SESSION)
    assert read_back(durable, SESSION.replace(**{field: "other"})) is None


@pytest.mark.parametrize("session_id", ["../../../../etc/passwd", "a/b", "", "x" * 9999, "\n", "\udcff"])
def test_any_text_may_be_an_id(durable: str, session_id: str) -> None:
    odd = SESSION.replace(session_id=session_id)
    sessions.write(durable, odd)
    assert read_back(durable, odd) == odd
    assert os.listdir(durable) == ["sessions"]
    assert len(os.listdir(os.path.join(durable, "sessions"))) == 1


@pytest.mark.parametrize("raw", ["", "{", "[]", "1", '"client"', "{}", '{"client":"claude","run_ids":3}'])
def test_what_is_no_session_is_none(durable: str, raw: str) -> None:
    sessions.write(durable, SESSION)
    [file] = Path(durable, "sessions").iterdir()
    file.write_text(raw)
    assert read_back(durable, SESSION) is None
