"""What stays out of a snapshot by its size, its name or its number, and the budget of a hook."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import pytest

from git_orch import index, snapshot
from git_orch.index import LATE, PrivateIndex
from git_orch.model import Skipped
from git_orch.snapshot import HOOK_BYTES, HOOK_FILES, Limits
from tests.repo import Repo
from tests.scratch import store_of
from tests.snapshots import content, names, plain, take

MIB = 1 << 20
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----\n"


@pytest.fixture
def started(repo: Repo) -> Repo:
    repo.write("a.txt", "one\n")
    repo.commit()
    repo.write("a.txt", "edited\n")
    return repo


def by_hook(
    repo: Repo, *, files: int = HOOK_FILES, size_bytes: int = HOOK_BYTES, seconds: float = 600.0
) -> snapshot.Snapshot:
    """A snapshot within the limits of a hook, but (unless told) with time enough for any machine."""
    return take(repo, limits=Limits(files=files, size_bytes=size_bytes, seconds=seconds))


def sparse(repo: Repo, name: str, size_bytes: int) -> None:
    """A file of that size, which costs no disk."""
    repo.write(name, f"{name}\n")
    os.truncate(repo.path / name, size_bytes)


# -- size


def test_one_large_file_beside_small_ones(started: Repo) -> None:
    sparse(started, "data/events.jsonl", 17 * MIB)
    for number in range(27):
        started.write(f"src/{number}.py", f"x = {number}\n")
    taken = take(started)
    assert len(names(started, taken.tree_id)) == 28
    assert taken.skipped == (
        Skipped(path="data/events.jsonl", reason="17.0 MiB, over the 10.0 MiB of orch.maxUntrackedBytes"),
    )
    assert "data/events.jsonl" in names(started, take(started, max_untracked_bytes=18 * MIB).tree_id)


def test_a_large_file_that_is_tracked_is_in(started: Repo) -> None:
    sparse(started, "data.bin", 11 * MIB)
    started.commit()
    started.write("data.bin", b"\1" * (11 * MIB))
    taken = take(started)
    assert taken.skipped == ()
    assert len(content(started, taken.tree_id, "data.bin")) == 11 * MIB


def test_a_file_that_grows_too_large_leaves(started: Repo) -> None:
    started.write("new.bin", "small\n")
    assert "new.bin" in names(started, take(started).tree_id)
    sparse(started, "new.bin", 11 * MIB)
    taken = take(started)
    assert names(started, taken.tree_id) == ["a.txt"]
    assert [left_out.path for left_out in taken.skipped] == ["new.bin"]


def test_odd_contents_are_content(started: Repo) -> None:
    started.write("minified.js", "x" * 140_000)
    started.write("image.png", bytes(range(256)) * 100)
    started.write("empty.txt", "")
    taken = take(started)
    assert (taken.skipped, taken.tree_id) == ((), plain(started).tree_id)


def test_three_thousand_changed_files(started: Repo) -> None:
    for number in range(3000):
        started.write(f"src/{number}.txt", f"{number}\n")
    started.commit()
    for number in range(3000):
        started.write(f"src/{number}.txt", f"{number} edited\n")
    taken = by_hook(started)
    assert (taken.skipped, taken.tree_id) == ((), plain(started).tree_id)


# -- secrets


def test_secrets_that_are_not_tracked_stay_out(started: Repo) -> None:
    for name in (".env", "server.pem", "deploy/.env.production", "sub/Server.PEM"):
        started.write(name, "PASSWORD=x\n")
    for name in ("id_rsa", "key-of-mine", "notes.txt"):
        started.write(name, KEY)
    started.write(".env.example", "PASSWORD=\n")
    (started.path / "link.txt").symlink_to(".env")
    taken = take(started)
    assert names(started, taken.tree_id) == [".env.example", "a.txt", "link.txt"]
    assert {left_out.reason for left_out in taken.skipped} == {"looks like a secret, never copied"}
    assert len(taken.skipped) == 7
    objects = store_of(started).git().run("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    stored = [store_of(started).git().run("cat-file", "-p", oid.decode()) for oid in objects]
    assert not [data for data in stored if b"PASSWORD=x" in data or b"PRIVATE KEY" in data]


def test_a_secret_in_a_tracked_file_is_in_the_tree_for_static_to_find(started: Repo) -> None:
    started.write("a.txt", KEY)
    started.write("config/.env", "tracked\n")
    started.git("add", "config/.env")
    started.write("config/.env", "tracked, and edited\n")
    taken = take(started)
    assert content(started, taken.tree_id, "a.txt") == KEY.encode()
    assert content(started, taken.tree_id, "config/.env") == b"tracked, and edited\n"


def test_a_file_that_becomes_a_secret_leaves(started: Repo) -> None:
    started.write("notes.txt", "nothing\n")
    assert "notes.txt" in names(started, take(started).tree_id)
    started.write("notes.txt", KEY)
    taken = take(started)
    assert names(started, taken.tree_id) == ["a.txt"]
    assert [left_out.path for left_out in taken.skipped] == ["notes.txt"]


# -- number


def test_twenty_thousand_new_files_twice_in_a_row(started: Repo) -> None:
    for number in range(20_000):
        if number % 200 == 0:
            (started.path / f"node_modules/p{number // 200}").mkdir(parents=True)
        (started.path / f"node_modules/p{number // 200}/{number}.js").write_text(f"{number}\n")
    for number in range(30):
        started.write(f"zz/{number}.py", f"{number}\n")
    for _ in range(2):
        taken = by_hook(started)
        listed = names(started, taken.tree_id)
        assert len(listed) == 1 + 30 + 1900  # of the folder that is cut, in steps of a hundred
        # What an agent wrote does not wait behind the packages, whatever the alphabet says.
        assert len([name for name in listed if name.startswith("zz/")]) == 30
        assert taken.skipped == (
            Skipped(path="node_modules/", reason="18,100 new files, over the 2,000 that a hook takes in"),
        )
    first = taken
    assert len(names(started, take(started).tree_id)) == 20_031  # by hand all of them are taken
    assert by_hook(started).tree_id == first.tree_id  # and a hook's tree is that of the work tree alone


def test_sixty_files_of_nine_megabytes_twice_in_a_row(started: Repo) -> None:
    for number in range(60):
        sparse(started, f"big/{number:02}.bin", 9 * MIB)
    started.write("new.txt", "new\n")
    for _ in range(2):
        taken = by_hook(started)
        assert names(started, taken.tree_id) == ["a.txt", *(f"big/{number:02}.bin" for number in range(7)), "new.txt"]
        assert [left_out.path for left_out in taken.skipped] == [f"big/{number:02}.bin" for number in range(7, 60)]
        assert {left_out.reason for left_out in taken.skipped} == {
            "over the 64.0 MiB of new files that a hook takes in"
        }


# -- time


class Clock:
    """A clock that stands still but for what a git call is said to cost."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, call_s: float) -> None:
        self.now = 1000.0
        self.calls: list[int] = []
        original = PrivateIndex._try

        def costly(private: PrivateIndex, paths: Sequence[bytes], until: float) -> dict[bytes, str]:
            if until and self.now >= until:
                return dict.fromkeys(paths, LATE)
            self.calls.append(len(paths))
            self.now += call_s
            return original(private, paths, 0.0)

        monkeypatch.setattr(PrivateIndex, "_try", costly)
        monkeypatch.setattr("time.monotonic", lambda: self.now)


def test_untracked_files_are_hashed_for_seven_tenths_of_the_budget(
    started: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1800):
        started.write(f"{number:04}.txt", f"{number}\n")
    clock = Clock(monkeypatch, call_s=0.3)
    taken = by_hook(started, seconds=1.0)
    assert clock.calls == [501, 500, 500]  # at 0, 0.3 and 0.6 s; the fourth would begin at 0.9
    assert len(names(started, taken.tree_id)) == 1 + 1500
    assert len(taken.skipped) == 300
    assert {left_out.reason for left_out in taken.skipped} == {LATE}
    assert not any(left_out.tracked for left_out in taken.skipped)
    taken = by_hook(started, seconds=1.0)
    assert (len(names(started, taken.tree_id)), taken.skipped) == (1801, ())
    assert clock.calls[3:] == [300]  # the rest, and nothing twice


def test_tracked_files_have_four_times_the_budget(started: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_TRACKED_BATCH", 20)
    for number in range(200):
        started.write(f"d/{number}.txt", f"{number}\n")
    started.commit()
    for number in range(200):
        started.write(f"d/{number}.txt", "edited\n")
    clock = Clock(monkeypatch, call_s=1.5)
    taken = by_hook(started, seconds=1.0)
    assert clock.calls == [20, 40, 80]  # at 0, 1.5 and 3 s; the fourth would begin at 4.5
    assert len(taken.skipped) == 60
    assert all(left_out.tracked and left_out.reason == LATE for left_out in taken.skipped)
    clock.calls.clear()
    taken = by_hook(started, seconds=1.0)
    assert (clock.calls, taken.skipped) == ([20, 40], ())


def test_a_filter_that_hangs_is_ended_and_its_files_are_named(started: Repo) -> None:
    started.write("slow.bin", "one\n")
    started.commit()
    started.write(".gitattributes", "*.bin filter=slow\n")
    started.git("config", "filter.slow.clean", "exec sleep 1000")
    started.write("slow.bin", "edited\n")
    started.write("new.bin", "new\n")
    started.write("new.txt", "new\n")
    began = time.monotonic()
    taken = by_hook(started, seconds=0.2)
    assert time.monotonic() - began < 30
    assert {left_out.path for left_out in taken.skipped if left_out.tracked} == {"slow.bin"}
    assert LATE in {left_out.reason for left_out in taken.skipped}
    assert content(started, taken.tree_id, "slow.bin") == b"one\n"


def test_no_limit_by_hand(started: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, call_s=1000.0)
    for number in range(1200):
        started.write(f"{number:04}.txt", f"{number}\n")
    assert take(started).skipped == ()
    assert clock.calls == [501, 500, 200]
    assert index.GIT_TIMEOUT_S == 600.0
