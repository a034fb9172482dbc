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


def test_a_free_seat_is_for_who_came_first(tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path)}
    sitting = [seats.take(env, 2), seats.take(env, 2)]
    first, second = seats.stand_in_line(env), seats.stand_in_line(env)
    seats.give_back(sitting.pop())
    assert seats.take(env, 2) == seats.NO_SEAT  # a newcomer
    assert seats.take(env, 2, second) == seats.NO_SEAT
    sitting.append(seats.take(env, 2, first))
    assert sitting[-1] >= 0
    seats.leave_line(first)
    seats.give_back(sitting.pop())
    sitting.append(seats.take(env, 2, second))
    assert sitting[-1] >= 0
    seats.leave_line(second)
    assert os.listdir(tmp_path / "git-orch/seats/line") == []
    for seat in sitting:
        seats.give_back(seat)


def test_who_is_dead_or_asks_no_more_keeps_nobody_waiting(tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path)}
    line = tmp_path / "git-orch/seats/line"
    dead, silent = seats.stand_in_line(env), seats.stand_in_line(env)
    assert dead
    assert silent
    os.close(dead.fd)
    assert seats.take(env, 1) == seats.NO_SEAT
    assert [str(path) for path in line.iterdir()] == [silent.path]
    os.utime(silent.path, (1.0, 1.0))
    seat = seats.take(env, 1)
    assert seat >= 0
    assert [str(path) for path in line.iterdir()] == [silent.path]  # it lives, and may ask again
    seats.give_back(seat)
    seat = seats.take(env, 1, silent)
    assert seat >= 0
    seats.give_back(seat)
    seats.leave_line(silent)


def test_where_seats_cannot_be_counted_nobody_waits_for_one(tmp_path: Path) -> None:
    (tmp_path / "git-orch").write_text("a file")
    for env in ({"XDG_STATE_HOME": str(tmp_path)}, {}):
        assert seats.take(env, 1) == seats.UNCOUNTED
        assert seats.taken(env, 1) == 0
        assert seats.stand_in_line(env) is None
    seats.give_back(seats.UNCOUNTED)
    seats.leave_line(None)


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
