"""The seats of the machine, and the stamp by which a session's prompts are known."""

from __future__ import annotations

import os
from pathlib import Path

from git_orch import quiet, seats


def test_there_are_as_many_seats_as_are_allowed(tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path)}
    first, second = seats.take(env, 2), seats.take(env, 2)
    assert min(first, second) >= 0
    assert (seats.take(env, 2), seats.taken(env, 2)) == (seats.NO_SEAT, 2)
    third = seats.take(env, 3)  # another repository allows more
    assert third >= 0
    seats.give_back(first)
    assert seats.taken(env, 2) == 1
    again = seats.take(env, 2)
    assert again >= 0
    for seat in (second, third, again):
        seats.give_back(seat)
    assert seats.taken(env, 3) == 0


def test_where_seats_cannot_be_counted_nobody_waits_for_one(tmp_path: Path) -> None:
    (tmp_path / "git-orch").write_text("a file")
    for env in ({"XDG_STATE_HOME": str(tmp_path)}, {}):
        assert seats.take(env, 1) == seats.UNCOUNTED
        assert seats.taken(env, 1) == 0
    seats.give_back(seats.UNCOUNTED)


def test_a_seat_is_not_handed_on_to_a_program(tmp_path: Path) -> None:
    seat = seats.take({"XDG_STATE_HOME": str(tmp_path)}, 1)
    assert not os.get_inheritable(seat)
    seats.give_back(seat)


def test_a_prompt_is_seen_by_its_session_alone(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    assert quiet.disturbed_at(str(tmp_path), "a.json") == 0.0
    quiet.disturb(str(tmp_path), "a.json")
    os.utime(quiet.path(str(tmp_path), "a.json"), (1.0, 1.0))
    assert quiet.disturbed_at(str(tmp_path), "a.json") == 1.0
    quiet.disturb(str(tmp_path), "a.json")
    assert quiet.disturbed_at(str(tmp_path), "a.json") > 1.0
    assert quiet.disturbed_at(str(tmp_path), "b.json") == 0.0


def test_a_prompt_where_no_session_was_ever_seen_leaves_nothing(tmp_path: Path) -> None:
    quiet.disturb(str(tmp_path / "orch"), "a.json")
    assert not (tmp_path / "orch").exists()
