"""The registry's files: what is written, what is believed, and what a crash or a stranger leaves in them."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from git_orch import atomic, registry
from git_orch.errors import EnvironmentProblem
from git_orch.layout import Layout
from git_orch.model import ReviewerSettings
from git_orch.registry import Gone, Held, Intent, Lock, Refused, Registry, State
from tests.entries import INSTANCE, KEY, dead_run, intent_of, layout_at, make_registry

HOUR_S = 3600.0
RUN_ID = "20261130T201500123-9f3a61c2"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return layout_at(tmp_path / "repo")


@pytest.fixture
def book(layout: Layout) -> Registry:
    return make_registry(layout)


@pytest.fixture
def run(layout: Layout, book: Registry) -> Intent:
    """A dead run with an entry."""
    return dead_run(layout, book, run_id=RUN_ID)


def entry(book: Registry, kind: str = "json", run_id: str = RUN_ID) -> Path:
    return Path(book.path(run_id, kind))


def names(book: Registry) -> list[str]:
    return sorted(os.listdir(book.pending))


def refusal(found: object) -> str:
    assert isinstance(found, Refused), found
    return found.reason


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then), follow_symlinks=False)


# -- run-ids


def test_a_run_id_is_a_utc_stamp_to_the_millisecond_and_eight_hex_digits() -> None:
    assert re.fullmatch(r"20261130T201500123-[0-9a-f]{8}", registry.make_run_id(1796069700.1239))
    assert re.fullmatch(r"20261130T201500000-[0-9a-f]{8}", registry.make_run_id(1796069700.0))
    assert registry.make_run_id(1796069700.9999).startswith("20261130T201500999-")


def test_run_ids_sort_by_time_also_when_the_clock_is_set_back() -> None:
    now = 1796069700.5
    ids = [registry.make_run_id(now + offset) for offset in (-3600, -1, -0.001, 0, 0.001, 1, 3600)]
    assert ids == sorted(ids)
    assert all(map(registry.is_run_id, ids))


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x",
        "20261130T201500123-9f3a61c",
        "20261130T201500123-9f3a61c2a",
        "20261130T201500123-9F3A61C2",
        "20261130T201500123_9f3a61c2",
        "20261130 201500123-9f3a61c2",
        "2026113\u0660T201500123-9f3a61c2",
        "../../../../../../etc/passwd",
        "20261130T201500123-../../..",
        "20261130T20150012\n-9f3a61c2",
        "20261130T201500123-9f3a61c2\n",
    ],
)
def test_nothing_else_is_a_run_id(name: str) -> None:
    assert not registry.is_run_id(name)


# -- the intent


def test_an_entry_is_a_line_of_ascii_json_and_a_line_with_its_mac(layout: Layout, book: Registry) -> None:
    given = intent_of(layout, book, RUN_ID, subject="grüße", worktree_path="/no\udcff utf8")
    os.close(book.publish(given).fd)
    raw = entry(book).read_bytes()
    body, mac, end = raw.split(b"\n")
    assert raw.isascii()
    assert end == b""
    assert re.fullmatch(rb"mac [0-9a-f]{32}", mac)
    assert json.loads(body)["run_id"] == RUN_ID
    assert json.loads(body)["host"] == json.loads(body)["client"]
    assert entry(book).stat().st_mode & 0o777 == 0o600
    assert book.intent(RUN_ID) == given


@pytest.mark.usefixtures("run")
def test_every_field_of_design_2_that_is_known_from_the_start_is_in_it(book: Registry) -> None:
    wanted = """run_id task_kind access disposition tree_id base_tree_id head commit_oid run_dir status_path result_path
        client host session_id machine_id boot_id pid_ns instance temp_root started_at deadline attempt worktree_path
        schema_version"""
    assert set(wanted.split()) <= json.loads(entry(book).read_bytes().split(b"\n")[0]).keys()


def test_an_entry_of_a_newer_version_is_read_as_far_as_it_is_known(run: Intent) -> None:
    value = run.to_json() | {"novel": 1, "reviewers": [{"name": "static", "novel": 2}]}
    assert Intent.from_json(value) == run.replace(reviewers=(ReviewerSettings(name="static"),))


def seal(book: Registry, body: bytes, run_id: str = RUN_ID) -> None:
    """The entry is that text, with the right MAC: what another version of ours might have written."""
    mac = book._mac_of_entry(run_id, body).encode()
    entry(book, run_id=run_id).write_bytes(body + b"\nmac " + mac + b"\n")


@pytest.mark.parametrize("body", [b"{}", b"[]", b"1", b"not json", b'{"run_id": 1, "reviewers": "static"}', b"{\xff}"])
@pytest.mark.usefixtures("run")
def test_an_entry_of_another_version_is_refused_and_told(book: Registry, body: bytes) -> None:
    seal(book, body)
    assert refusal(book.intent(RUN_ID)) == "of another version of git-orch"


@pytest.mark.parametrize("over", [0, 1])
def test_an_entry_takes_64_kib_at_most(layout: Layout, book: Registry, over: int) -> None:
    plain = intent_of(layout, book, RUN_ID)
    room = registry.ENTRY_LIMIT - len(book._sealed(plain))
    given = plain.replace(subject=plain.subject + "x" * (room + over))
    if over:
        with pytest.raises(EnvironmentProblem, match="65537 bytes"):
            book.publish(given)
        assert names(book) == []
    else:
        os.close(book.publish(given).fd)
        assert entry(book).stat().st_size == registry.ENTRY_LIMIT
        assert book.intent(RUN_ID) == given


# -- what is not believed (cases 17, 18, 61)


def replaced_by_symlink(path: Path) -> None:
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def replaced_by_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replaced_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def altered(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"task_kind":"review"', b'"task_kind":"revise"'))


def innocent(path: Path) -> None:
    """What a clone might bring: someone's pid, and a home directory to delete."""
    body = json.dumps({"run_id": RUN_ID, "supervisor_pid": os.getppid(), "temp_root": os.environ["HOME"]})
    path.write_text(f"{body}\nmac {'0' * 32}\n")


HOSTILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "symlink": (replaced_by_symlink, "cannot be read: Too many levels of symbolic links"),
    "fifo": (replaced_by_fifo, "not a plain file of ours"),
    "folder": (replaced_by_folder, "not a plain file of ours"),
    "hard link": (lambda path: os.link(path, path.with_suffix(".twin")), "not a plain file of ours"),
    "70 kB": (lambda path: path.write_bytes(path.read_bytes() + b"\n" * 70_000), "too large"),
    "empty": (lambda path: path.write_bytes(b""), "torn: it is empty or cut off"),
    "cut in the body": (lambda path: path.write_bytes(path.read_bytes()[:100]), "torn: it is empty or cut off"),
    "cut in the mac": (lambda path: path.write_bytes(path.read_bytes()[:-9]), "copied from another clone"),
    "altered": (altered, "copied from another clone"),
    "innocent": (innocent, "copied from another clone"),
    "not ascii": (lambda path: path.write_bytes(path.read_bytes()[:-5] + "é".encode()), "copied from another clone"),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.usefixtures("run")
def test_a_hostile_entry_is_refused_and_left_as_it_is(book: Registry, case: str) -> None:
    spoil, reason = HOSTILE[case]
    spoil(entry(book))
    before = names(book)
    assert refusal(book.intent(RUN_ID)).startswith(reason)
    assert names(book) == before


def test_an_entry_under_another_name_is_refused(book: Registry, run: Intent) -> None:
    other = "20261130T201500123-00000000"
    shutil.copy(entry(book), entry(book, run_id=other))
    assert refusal(book.intent(other)).startswith("copied from another clone")
    assert book.intent(RUN_ID) == run


@pytest.mark.usefixtures("run")
def test_an_entry_of_another_key_or_another_instance_is_refused(book: Registry) -> None:
    for other in (Registry(book.live, b"K" * 32, INSTANCE), Registry(book.live, KEY, "f" * 16)):
        assert refusal(other.intent(RUN_ID)).startswith("copied from another clone")


def test_the_entries_of_a_copied_folder_are_refused_as_copied(book: Registry, run: Intent, tmp_path: Path) -> None:
    shutil.copytree(book.live, tmp_path / "copy", symlinks=True)
    copy = Registry(str(tmp_path / "copy"), KEY, INSTANCE)
    assert copy.run_ids() == [RUN_ID]
    assert refusal(copy.intent(RUN_ID)) == "copied from another clone, or not made by git-orch"
    assert book.intent(RUN_ID) == run


def test_a_folder_that_is_moved_keeps_its_entries(book: Registry, run: Intent, tmp_path: Path) -> None:
    os.rename(book.live, tmp_path / "moved")
    assert Registry(str(tmp_path / "moved"), KEY, INSTANCE).intent(RUN_ID) == run


@pytest.mark.usefixtures("run")
def test_names_that_are_no_runs_are_strangers(book: Registry) -> None:
    strange = ["x.json", "README", ".hidden", f"{RUN_ID}.bak", "20261130T201500123-9F3A61C2.json"]
    for name in strange:
        (Path(book.pending) / name).write_text("{}")
    (Path(book.pending) / f".{RUN_ID}.json.77-0a1b2c3d.tmp").write_text("")
    assert book.run_ids() == [RUN_ID]
    assert [found.run_id for found in book.strangers()] == sorted(strange)


# -- publishing


def is_locked(path: Path) -> bool:
    fd = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def test_the_lock_is_held_before_it_has_its_name_and_all_is_there_before_the_entry(
    layout: Layout, book: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, bool, list[str]]] = []

    def watch(rename: Callable[..., None]) -> Callable[..., None]:
        def watched(source: str, target: str, **options: Any) -> None:
            kind = target.rpartition(".")[2]
            lock = Path(source) if kind == "lock" else entry(book, "lock")
            visible = [name.rpartition(".")[2] for name in names(book) if not name.startswith(".")]
            seen.append((kind, is_locked(lock), visible))
            rename(source, target, **options)

        return watched

    monkeypatch.setattr(os, "rename", watch(os.rename))
    monkeypatch.setattr(os, "replace", watch(os.replace))
    lock = book.publish(intent_of(layout, book, RUN_ID))
    assert seen == [("lock", True, []), ("json", True, ["lock", "state"])]
    assert is_locked(entry(book, "lock"))
    os.close(lock.fd)
    assert not is_locked(entry(book, "lock"))


@pytest.mark.parametrize("step", ["rename", "write_all", "write"])
def test_an_entry_that_cannot_be_written_leaves_nothing(
    layout: Layout, book: Registry, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os if step == "rename" else atomic, step, full)
    with pytest.raises(EnvironmentProblem, match="No space left on device") as caught:
        book.publish(intent_of(layout, book, RUN_ID))
    assert caught.value.hint == "free some space there"
    monkeypatch.undo()
    assert names(book) == []


def test_a_launcher_that_is_interrupted_leaves_nothing(
    layout: Layout, book: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        book.publish(intent_of(layout, book, RUN_ID))
    assert names(book) == []


# -- the state


STARTED = State(status="starting", supervisor_pid=7)
RUNNING = State(status="running", supervisor_pid=7, jobs=({"reviewer": "static", "child_pid": 8},))


def halves(book: Registry) -> list[bytes]:
    raw = entry(book, "state").read_bytes()
    assert len(raw) == 4096
    return [raw[:2048], raw[2048:]]


@pytest.mark.usefixtures("run")
def test_a_fresh_run_is_queued(book: Registry) -> None:
    assert book.state(RUN_ID) == State(status="queued")


@pytest.mark.usefixtures("run")
def test_states_are_written_in_turn_into_the_two_halves(book: Registry) -> None:
    before = halves(book)
    assert book.write_state(RUN_ID, STARTED)
    first = halves(book)
    assert book.write_state(RUN_ID, RUNNING)
    second = halves(book)
    assert first[0] != before[0]
    assert first[1] == before[1]
    assert second[0] == first[0]
    assert second[1] != first[1]
    assert book.state(RUN_ID) == RUNNING


def tear(book: Registry, *which: int) -> None:
    with entry(book, "state").open("r+b") as file:
        for half in which:
            file.seek(half * 2048 + 30)
            file.write(b"\0" * 40)


@pytest.mark.parametrize(("torn", "left"), [((1,), STARTED), ((0,), RUNNING), ((0, 1), None)])
@pytest.mark.usefixtures("run")
def test_a_torn_half_is_passed_over(book: Registry, torn: tuple[int, ...], left: State | None) -> None:
    book.write_state(RUN_ID, STARTED)  # into half 0
    book.write_state(RUN_ID, RUNNING)  # into half 1
    tear(book, *torn)
    assert book.state(RUN_ID) == left
    assert book.write_state(RUN_ID, STARTED)
    assert book.state(RUN_ID) == STARTED


@pytest.mark.usefixtures("run")
def test_the_newer_half_is_never_the_one_that_is_overwritten(book: Registry) -> None:
    """Also after the newest was torn: the one that is whole stays until the next is."""
    book.write_state(RUN_ID, STARTED)
    book.write_state(RUN_ID, RUNNING)
    tear(book, 1)
    whole = halves(book)[0]
    book.write_state(RUN_ID, RUNNING)
    assert halves(book)[0] == whole


@pytest.mark.usefixtures("run")
def test_a_half_of_another_run_is_not_believed(layout: Layout, book: Registry) -> None:
    other = dead_run(layout, book)
    book.write_state(other.run_id, RUNNING)
    shutil.copy(book.path(other.run_id, "state"), book.path(RUN_ID, "state"))
    assert book.state(RUN_ID) is None


@pytest.mark.usefixtures("run")
def test_what_does_not_fit_into_a_half_is_left_out(book: Registry) -> None:
    job = {"reviewer": "r", "tree_path": "/tmp/" + "x" * 700}
    assert book.write_state(RUN_ID, RUNNING.replace(jobs=(job,) * 5, terminal_reason="é" * 5000))
    state = book.state(RUN_ID)
    assert state is not None
    assert state.status == "running"
    assert state.terminal_reason == "é" * 200
    assert state.jobs == (job,) * len(state.jobs) != (job,) * 5


@pytest.mark.parametrize("spoil", [Path.unlink, replaced_by_symlink, replaced_by_folder])
@pytest.mark.usefixtures("run")
def test_a_state_that_cannot_be_written_is_not_worth_a_run(book: Registry, spoil: Callable[[Path], None]) -> None:
    spoil(entry(book, "state"))
    real = entry(book, "state").with_suffix(".real")
    before = real.read_bytes() if real.exists() else b""
    assert not book.write_state(RUN_ID, RUNNING)
    assert book.state(RUN_ID) is None
    assert not real.exists() or real.read_bytes() == before


# -- asking


@pytest.mark.usefixtures("run")
def test_one_may_ask_once(book: Registry) -> None:
    assert book.asked(RUN_ID) == ""
    assert book.ask(RUN_ID, "cancel")
    assert not book.ask(RUN_ID, f"superseded-by {RUN_ID}")
    assert book.asked(RUN_ID) == "cancel"
    assert entry(book, "ask").stat().st_nlink == 1


@pytest.mark.usefixtures("run")
def test_asking_of_a_run_that_is_gone_leaves_nothing(book: Registry) -> None:
    book.remove(RUN_ID)
    assert not book.ask(RUN_ID, "cancel")
    assert names(book) == []
    shutil.rmtree(book.pending)
    assert not book.ask(RUN_ID, "cancel")


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("is_before", [True, False])
def test_asking_of_a_run_that_ends_meanwhile_leaves_nothing(
    book: Registry, monkeypatch: pytest.MonkeyPatch, is_before: bool
) -> None:
    create = atomic.create

    def create_slowly(path: str, data: bytes) -> bool:
        if is_before:
            book.remove(RUN_ID)
        made = create(path, data)
        if not is_before:
            book.remove(RUN_ID)
        return made

    monkeypatch.setattr(atomic, "create", create_slowly)
    assert not book.ask(RUN_ID, "cancel")
    assert names(book) == []


@pytest.mark.usefixtures("run")
def test_a_word_is_heard_although_its_asker_died_before_it_had_put_its_scratch_file_away(book: Registry) -> None:
    book.ask(RUN_ID, "cancel")
    os.link(entry(book, "ask"), Path(book.pending) / f".{RUN_ID}.ask.77-0a1b2c3d.tmp")
    assert book.asked(RUN_ID) == "cancel"


@pytest.mark.usefixtures("run")
def test_on_a_full_disk_a_link_says_the_word(book: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic, "create", full)
    word = "superseded-by 20261130T201500124-00000000"
    assert len(word) < 60  # what ext4 keeps in the inode
    assert book.ask(RUN_ID, word)
    assert not book.ask(RUN_ID, "cancel")
    assert book.asked(RUN_ID) == word
    entry(book, "ask").unlink()
    entry(book, "ask").symlink_to("/etc/hostname")
    assert book.asked(RUN_ID) == ""


@pytest.mark.parametrize(
    "word", ["", "kill", "cancel all", "superseded-by x", "superseded-by ../x", "\x1b[2J", "x" * 9999]
)
@pytest.mark.usefixtures("run")
def test_other_words_are_not_heard(book: Registry, word: str) -> None:
    entry(book, "ask").write_text(word)
    assert book.asked(RUN_ID) == ""


@pytest.mark.usefixtures("run")
def test_superseding_names_the_newer_run(book: Registry) -> None:
    book.ask(RUN_ID, "superseded-by 20261130T201500124-00000000")
    assert book.asked(RUN_ID) == "superseded-by 20261130T201500124-00000000"


# -- who lives


def test_a_lock_that_is_held_is_held_and_a_free_one_is_ours(layout: Layout, book: Registry) -> None:
    lock = book.publish(intent_of(layout, book, RUN_ID))
    assert book.is_held(RUN_ID)
    assert book.try_lock(RUN_ID) == Held()
    os.close(lock.fd)
    assert not book.is_held(RUN_ID)
    ours = book.try_lock(RUN_ID)
    assert isinstance(ours, Lock)
    assert book.still_there(ours)
    assert book.try_lock(RUN_ID) == Held()
    os.close(ours.fd)


@pytest.mark.usefixtures("run")
def test_a_missing_lock_is_gone_which_is_not_dead(book: Registry) -> None:
    entry(book, "lock").unlink()
    assert book.try_lock(RUN_ID) == Gone()
    assert not book.is_held(RUN_ID)


@pytest.mark.parametrize("spoil", [replaced_by_symlink, replaced_by_fifo, replaced_by_folder])
@pytest.mark.usefixtures("run")
def test_a_lock_that_is_no_plain_file_is_gone(book: Registry, spoil: Callable[[Path], None]) -> None:
    spoil(entry(book, "lock"))
    assert book.try_lock(RUN_ID) == Gone()


@pytest.mark.usefixtures("run")
def test_an_unlinked_lock_is_not_mistaken_for_the_one_at_its_path(
    book: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between our open and our flock another reaper has taken the run away, and its supervisor's successor is there."""
    real = fcntl.flock

    def late(fd: int, how: int) -> None:
        monkeypatch.undo()
        book.remove(RUN_ID)
        entry(book, "lock").write_text("")
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert book.try_lock(RUN_ID) == Gone()
    assert entry(book, "lock").exists()


def test_where_no_locks_are_kept_nobody_is_known_to_be_dead(
    book: Registry, run: Intent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    assert book.try_lock(RUN_ID) == Held()
    with pytest.raises(EnvironmentProblem, match="No locks available"):
        book.publish(run)


def test_nobody_is_named_where_nobody_holds_a_record_lock(layout: Layout, book: Registry) -> None:
    lock = book.publish(intent_of(layout, book, RUN_ID))
    assert book.supervisor_pid(RUN_ID) == 0
    assert book.guardian_pid(RUN_ID) == 0
    os.close(lock.fd)
    book.remove(RUN_ID)
    assert book.supervisor_pid(RUN_ID) == 0


# -- removing


@pytest.mark.usefixtures("run")
def test_what_is_removed_leaves_nothing_and_may_be_removed_twice(book: Registry) -> None:
    book.ask(RUN_ID, "cancel")
    book.remove(RUN_ID)
    book.remove(RUN_ID)
    assert names(book) == []
    shutil.rmtree(book.live)
    book.remove(RUN_ID)


@pytest.mark.usefixtures("run")
def test_the_entry_goes_before_its_lock(book: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[str] = []
    real = os.unlink

    def watched(path: str) -> None:
        gone.append(path.rpartition(".")[2])
        real(path)

    monkeypatch.setattr(os, "unlink", watched)
    book.remove(RUN_ID)
    assert gone[0] == "json"
    assert gone[-1] == "lock"


# -- litter


def test_a_lock_without_an_entry_is_a_dead_launchers_where_nobody_holds_it(layout: Layout, book: Registry) -> None:
    lock = book.publish(intent_of(layout, book, RUN_ID))
    entry(book).unlink()
    book.clear_litter()
    assert names(book) == [f"{RUN_ID}.lock", f"{RUN_ID}.state"]  # it is still at work
    os.close(lock.fd)
    book.clear_litter()
    assert names(book) == []


def test_an_entry_that_appears_meanwhile_is_kept(book: Registry, run: Intent, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [f"{RUN_ID}.lock", f"{RUN_ID}.state"]  # as the folder was a moment ago
    monkeypatch.setattr(Registry, "_names", lambda _: listed)
    book.clear_litter()
    assert book.intent(RUN_ID) == run
    assert entry(book, "lock").exists()


@pytest.mark.usefixtures("run")
def test_scratch_files_and_late_words_go_once_they_are_old(book: Registry) -> None:
    late = "20261130T201500123-00000000.ask"
    litter = [f".{RUN_ID}.json.77-0a1b2c3d.tmp", f".{RUN_ID}.lock.0a1b2c3d.tmp", late]
    for name in litter:
        (Path(book.pending) / name).write_text("")
    young = names(book)
    book.clear_litter()
    assert names(book) == young
    for name in litter:
        age(Path(book.pending) / name, HOUR_S + 60)
    book.clear_litter()
    assert names(book) == [f"{RUN_ID}.{kind}" for kind in ("json", "lock", "state")]


def test_a_strangers_file_is_never_litter(book: Registry) -> None:
    for name in ("x.json", "notes", ".keep"):
        (Path(book.pending) / name).write_text("")
        age(Path(book.pending) / name, 30 * 24 * HOUR_S)
    before = names(book)
    book.clear_litter()
    assert names(book) == before


# -- a search instead of a parse


@pytest.mark.parametrize("value", ["", "/tmp/x", 'a"b', "\\", "grüße", '","temp_root":"/etc', "\udcff", "\n"])
def test_a_text_is_found_as_parsing_finds_it(layout: Layout, book: Registry, value: str) -> None:
    decoy = ReviewerSettings(name="x", command='"temp_root":"/decoy","machine_id":"decoy"')
    given = intent_of(layout, book, RUN_ID, subject=f'"temp_root":"{value}"', reviewers=(decoy,), temp_root=value)
    os.close(book.publish(given).fd)
    body = book.sealed(RUN_ID)
    assert isinstance(body, bytes)
    assert registry.text_of(body, "temp_root") == value
    assert registry.text_of(body, "machine_id") == given.machine_id
    assert registry.text_of(body, "nonesuch") == ""


def test_a_field_that_is_no_text_is_no_text() -> None:
    assert registry.text_of(b'{"attempt":1,"deadline":"cut', "attempt") == ""
    assert registry.text_of(b'{"attempt":1,"deadline":"cut', "deadline") == ""
