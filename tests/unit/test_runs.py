"""Lasting records: whether a run has ended, who holds its folder, and what a person calls it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_orch import atomic, registry, report, runs
from git_orch.commands import history
from git_orch.errors import NoSuchRun
from git_orch.layout import Layout
from git_orch.model import ENDED, LIVE
from tests.entries import end_run, intent_of, layout_at, make_registry

ONE, TWO, THREE = "20261130T201500123-9f3a61c2", "20261130T201500124-9f3b0000", "20261130T201500125-00009f3a"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return layout_at(tmp_path / "repo")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return tmp_path / ONE


# -- has it ended?


@pytest.mark.parametrize("status", ENDED)
def test_a_final_record_is_an_end(layout: Layout, status: str) -> None:
    intent = intent_of(layout, make_registry(layout), ONE)
    record = end_run(intent, status=status)
    assert runs.has_ended(intent.run_dir)
    assert runs.final_record(intent.run_dir) == json.loads(json.dumps(record))


TEXT = st.text(max_size=30) | st.sampled_from(
    ['"status":"done","terminal_reason":"x"', '","terminal_reason":"', '\\","terminal_reason":"', "}\n", "\\"]
)
JOB = st.fixed_dictionaries({"status": st.sampled_from([*ENDED, *LIVE]), "reviewer": TEXT})


@given(
    st.sampled_from([*ENDED, *LIVE, "", "novel"]),
    TEXT,
    TEXT,
    st.lists(JOB, max_size=2),
    st.booleans(),
)
def test_a_search_says_what_parsing_says(
    status: str, terminal_reason: str, reason: str, jobs: list[Any], indented: bool
) -> None:
    record = {"jobs": jobs, "subject": reason, "status": status, "terminal_reason": terminal_reason, "reason": reason}
    folder = os.environ["TMPDIR"]
    if indented:
        atomic.write(os.path.join(folder, runs.RECORD), json.dumps(record, indent=1).encode())
    else:
        runs.write(folder, runs.RECORD, record)
    assert runs.has_ended(folder) == (runs.final_record(folder) is not None) == (status in ENDED)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'"status":"done","terminal_reason":"', b"\xff", b"null\n", b"}\n"])
def test_what_is_no_record_is_no_end(run_dir: Path, raw: bytes) -> None:
    run_dir.mkdir()
    (run_dir / runs.RECORD).write_bytes(raw)
    assert not runs.has_ended(str(run_dir))
    assert runs.final_record(str(run_dir)) is None


def test_a_record_larger_than_what_is_searched_is_parsed(run_dir: Path) -> None:
    run_dir.mkdir()
    record = {"note": "x" * (2 << 20), "status": "done", "terminal_reason": "completed"}
    runs.write(str(run_dir), runs.RECORD, record)
    assert runs.has_ended(str(run_dir))


def test_a_fifo_or_a_folder_in_its_place_does_not_hang(run_dir: Path) -> None:
    run_dir.mkdir()
    os.mkfifo(run_dir / runs.RECORD)
    assert not runs.has_ended(str(run_dir))
    (run_dir / runs.RECORD).unlink()
    (run_dir / runs.RECORD).mkdir()
    assert not runs.has_ended(str(run_dir))


def test_a_record_alone_is_synced_to_the_disk(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    runs.make_folder(str(run_dir))
    runs.write(str(run_dir), "findings.json", {})
    assert synced == []
    runs.write(str(run_dir), runs.RECORD, {})
    assert len(synced) == 2  # the file, and the folder that names it


# -- who holds it?


def test_a_run_is_held_for_as_long_as_its_supervisor_has_the_folder_open(run_dir: Path) -> None:
    runs.make_folder(str(run_dir))
    assert not runs.is_held(str(run_dir))
    fd = runs.hold(str(run_dir))
    assert fd >= 0
    assert not os.get_inheritable(fd)
    assert runs.is_held(str(run_dir))
    assert runs.hold(str(run_dir)) == -1
    os.close(fd)
    assert not runs.is_held(str(run_dir))


def test_a_folder_that_is_gone_is_held_by_nobody(run_dir: Path) -> None:
    assert runs.hold(str(run_dir)) == -1
    assert not runs.is_held(str(run_dir))


# -- its name


@pytest.mark.parametrize(
    ("name", "found"),
    [(ONE, ONE), ("9f3a", ONE), ("9F3A61", ONE), ("9f3b", TWO), ("0000", THREE), ("last", THREE)],
)
def test_four_digits_are_enough(name: str, found: str) -> None:
    assert runs.find(name, [ONE, TWO, THREE]) == found


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("9f3", "no run `9f3` here"),
        ("61c2", "no run `61c2` here"),
        ("", "no run"),
        ("2026", "no run"),
        ("20261130T201500199-9f3a61c2", "no run"),
    ],
)
def test_what_names_no_run_is_told(name: str, message: str) -> None:
    with pytest.raises(NoSuchRun, match=message):
        runs.find(name, [ONE, TWO])


def test_what_names_two_runs_is_told() -> None:
    with pytest.raises(NoSuchRun, match="is the beginning of 2 runs") as caught:
        runs.find("9f3a", [ONE, "20261130T201500126-9f3a0000"])
    assert caught.value.hint == "type more of its digits"


def test_there_is_no_last_run_where_there_is_none() -> None:
    with pytest.raises(NoSuchRun):
        runs.find("last", [])


def test_only_folders_with_a_run_id_are_runs(tmp_path: Path) -> None:
    for name in (TWO, ONE, "notes", runs.TRASH + THREE):
        (tmp_path / name).mkdir()
    assert runs.run_ids(str(tmp_path)) == [ONE, TWO]
    assert runs.run_ids(str(tmp_path / "gone")) == []


# -- its end


def test_a_run_goes_as_a_whole(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle, it is not a run without a record that seems to live."""
    (run_dir / "static").mkdir(parents=True)
    (run_dir / "record.json").write_text("{}")
    (run_dir / "static" / "result.out").write_text("")
    (run_dir / "link").symlink_to(run_dir.parent)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "remove_path", lambda _: False)
        assert not runs.remove(str(run_dir))
    assert os.listdir(run_dir.parent).count(ONE) == 0
    runs.sweep_trash(str(run_dir.parent))
    assert not (run_dir.parent / (runs.TRASH + ONE)).exists()
    assert run_dir.parent.exists()


def test_removing_twice_is_as_good_as_once(run_dir: Path) -> None:
    run_dir.mkdir()
    assert runs.remove(str(run_dir))
    assert runs.remove(str(run_dir))
    (run_dir.parent / (runs.TRASH + ONE) / "x").mkdir(parents=True)
    run_dir.mkdir()
    assert runs.remove(str(run_dir))
    assert not (run_dir.parent / (runs.TRASH + ONE)).exists()


def test_a_report_and_a_run_agree_on_the_record_that_is_written(layout: Layout) -> None:
    """`has_ended` relies on two keys that stand side by side."""
    record = report.record_json(
        intent_of(layout, make_registry(layout), ONE),
        report.Ended(status="done", terminal_reason="completed", verdict="pass"),
    )
    keys = list(record)
    assert keys.index("terminal_reason") == keys.index("status") + 1


def test_an_age_is_never_negative() -> None:
    """The clock was set back: the run began in what is the future now (case 20)."""
    assert history.age_s(registry.make_run_id(time.time() + 3600)) == 0.0
    assert 3599 < history.age_s(registry.make_run_id(time.time() - 3600)) < 3700
