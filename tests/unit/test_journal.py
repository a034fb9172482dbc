"""Events: appended, in order, and never worth the run."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from git_orch import atomic
from git_orch.journal import Journal


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def events(folder: Path) -> list[str]:
    return [event["event"] for event in Journal(str(folder)).read()]


def test_events_come_back_in_order_with_their_time(tmp_path: Path, file: Path) -> None:
    journal = Journal(str(tmp_path))
    journal.write("run.starting")
    journal.write("reviewer.ended", reviewer="static", findings=3)
    Journal(str(tmp_path)).write("run.ended")
    assert events(tmp_path) == ["run.starting", "reviewer.ended", "run.ended"]
    read = Journal(str(tmp_path)).read()[1]
    assert (read["reviewer"], read["findings"]) == ("static", 3)
    assert read["time"].endswith("Z")
    assert all(json.loads(line) for line in file.read_text().splitlines())


def test_where_nothing_happened_yet_there_are_none(tmp_path: Path) -> None:
    assert Journal(str(tmp_path)).read() == []
    assert Journal(str(tmp_path / "gone")).read() == []


@pytest.mark.parametrize(
    "torn", ['{"time":"x","event":"run.st', "[1]\n", '"event"\n', "\n\n", '{"no":"event"}\n', "\0\0\n"]
)
def test_what_is_no_event_costs_only_itself(tmp_path: Path, file: Path, torn: str) -> None:
    Journal(str(tmp_path)).write("first")
    with file.open("a") as end:
        end.write(torn)
    journal = Journal(str(tmp_path))
    journal.write("second")
    journal.write("third")
    assert events(tmp_path) == ["first", "second", "third"]


def test_a_full_disk_costs_only_the_event(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the line gets onto the disk, as it does there."""
    journal = Journal(str(tmp_path))
    journal.write("first")
    real = os.write

    def half(fd: int, data: bytes) -> int:
        real(fd, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", half)
    journal.write("lost")
    monkeypatch.undo()
    assert not file.read_text().endswith("\n")
    journal.write("second")
    assert events(tmp_path) == ["first", "second"]


@pytest.mark.usefixtures("file")
def test_a_short_write_is_a_full_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(str(tmp_path))
    journal.write("first")
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:20]))
    journal.write("lost")
    monkeypatch.undo()
    journal.write("second")
    assert events(tmp_path) == ["first", "second"]


def test_a_line_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the lines of several writers never mix."""
    written: list[bytes] = []
    real = atomic.append

    def watched(path: str, data: bytes) -> None:
        written.append(data)
        real(path, data)

    monkeypatch.setattr(atomic, "append", watched)
    journal = Journal(str(tmp_path))
    journal.write("one", text="a\nb\u2028")
    journal.write("two")
    assert [data.count(b"\n") for data in written] == [1, 1]


def test_a_link_in_its_place_is_not_followed(tmp_path: Path, file: Path) -> None:
    (tmp_path / "target").write_text("mine\n")
    file.symlink_to("target")
    Journal(str(tmp_path)).write("event")
    assert (tmp_path / "target").read_text() == "mine\n"
    assert events(tmp_path) == []
