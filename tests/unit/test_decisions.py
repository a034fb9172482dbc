"""What people and agents decided, read back from its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from git_orch import decisions
from git_orch.decisions import Decision, Decisions


def dismiss(fingerprint: str = "f1", at: float = 1.0) -> Decision:
    return Decision(kind="dismiss", by="person", at=at, why="no", fingerprint=fingerprint)


def dispute(fingerprint: str = "f1", at: float = 1.0) -> Decision:
    return Decision(kind="dispute", by="agent", at=at, why="wrong", fingerprint=fingerprint, who="s1")


def mute(session: str = "", until: float = 0.0, at: float = 1.0) -> Decision:
    return Decision(kind="mute", by="person", at=at, session=session, until=until)


def unmute(session: str = "") -> Decision:
    return Decision(kind="unmute", by="person", at=2.0, session=session)


def kept(tmp_path: Path, *given: Decision) -> Decisions:
    for each in given:
        decisions.write(str(tmp_path), each)
    return decisions.read(str(tmp_path))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    given = (dismiss(), dispute("f2"), mute("s1", until=9.5), unmute())
    assert kept(tmp_path, *given).lines == given
    assert (tmp_path / decisions.FILE).stat().st_mode & 0o777 == 0o600


def test_nothing_is_decided_where_there_is_no_file(tmp_path: Path) -> None:
    assert decisions.read(str(tmp_path)) == Decisions()


def test_a_torn_line_takes_no_other_with_it(tmp_path: Path) -> None:
    kept(tmp_path, dismiss("f1"))
    path = tmp_path / decisions.FILE
    path.write_bytes(path.read_bytes() + b'{"kind":"dismiss","by":"per')
    found = kept(tmp_path, dismiss("f2"))
    assert [line.fingerprint for line in found.lines] == ["f1", "f2"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind":"dismiss","by":"agent","at":1,"fingerprint":"f1"}',
        b'{"kind":"allow","by":"agent","at":1,"commit":"c"}',
        b'{"kind":"mute","by":"agent","at":1}',
        b'{"kind":"grant","by":"person","at":1,"fingerprint":"f1"}',
        b'{"kind":"dismiss","by":"person","fingerprint":"f1"}',
        b'{"kind":"dismiss","by":"person","at":"soon","fingerprint":"f1"}',
        b'{"kind":"mute","by":"person","at":1,"until":"never"}',
        b'{"kind":"dismiss","by":"person","at":1,"fingerprint":["f1"]}',
        b'["dismiss"]',
        b"\xff",
    ],
)
def test_what_nobody_may_decide_or_nobody_can_read_is_passed_over(tmp_path: Path, line: bytes) -> None:
    (tmp_path / decisions.FILE).write_bytes(line + b"\n")
    found = kept(tmp_path, dismiss("f2"))
    assert [each.fingerprint for each in found.lines] == ["f2"]
    assert found.muted("s1", 2.0) is None


def test_a_dispute_ends_with_a_persons_word() -> None:
    assert Decisions(lines=(dispute(),)).disputed("f1") == dispute()
    assert Decisions(lines=(dispute(),)).dismissed("f1") is None
    assert Decisions(lines=(dispute(), dismiss(at=2.0))).disputed("f1") is None
    assert Decisions(lines=(dismiss(), dispute(at=2.0))).dismissed("f1") == dismiss()


@pytest.mark.parametrize(
    ("lines", "session", "is_muted"),
    [
        ((), "s1", False),
        ((mute(),), "s1", True),
        ((mute("s1"),), "s1", True),
        ((mute("s1"),), "s2", False),
        ((mute(until=5.0),), "s1", False),
        ((mute(until=50.0),), "s1", True),
        ((mute("s1"), unmute("s1")), "s1", False),
        ((mute("s1"), unmute("s2")), "s1", True),
        ((mute("s1"), unmute()), "s1", False),
        ((unmute(), mute("s1")), "s1", True),
        ((mute(until=50.0), mute("s1", until=5.0)), "s1", True),
    ],
)
def test_who_is_muted(lines: tuple[Decision, ...], session: str, is_muted: bool) -> None:
    assert (Decisions(lines=lines).muted(session, 10.0) is not None) == is_muted


def test_an_allowance_is_for_one_commit() -> None:
    allowed = Decision(kind="allow", by="person", at=1.0, why="hurry", commit="c1")
    assert Decisions(lines=(allowed,)).allowed("c1") == allowed
    assert Decisions(lines=(allowed,)).allowed("c2") is None
