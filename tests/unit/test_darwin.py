"""What macOS tells of processes, on Linux: a libSystem that answers in its layouts, and what is made of the answers."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import sys
from typing import Any

import pytest

from git_orch import guardian, reaper, registry
from git_orch.containment import Containment, Job, darwin, descendants, strays

COOKIE = b"ORCH_TASK=20261130T201500123-9f3a61c2.00112233"
ME = os.getpid()
ARGMAX = 4096

Words = tuple[bytes, ...]


class Process:
    """A process of the fake: its numbers, and what KERN_PROCARGS2 tells of it."""

    def __init__(
        self,
        own: int,
        forked_by: int,
        *,
        parent: int = 1,
        env: tuple[bytes, ...] = (),
        argv: tuple[bytes, ...] = (b"a",),
    ) -> None:
        self.own = own
        self.forked_by = forked_by
        self.parent = parent
        self.env = env
        self.argv = argv
        self.uid = os.geteuid()
        self.is_zombie = False
        self.times = (0, 0, 0, 0)
        self.files: dict[int, tuple[int, int]] = {}


def procargs(argv: tuple[bytes, ...], env: tuple[bytes, ...], path: bytes = b"/bin/sh") -> bytes:
    padded = path + b"\0" * (8 - len(path) % 8)
    strings = b"".join(word + b"\0" for word in (*argv, *env))
    return struct.pack("i", len(argv)) + padded + strings + b"\0ptr_munge=\0stack_guard=\0"


class System:
    """libSystem, as far as it is asked."""

    def __init__(self) -> None:
        self.processes: dict[int, Process] = {}
        self.killed: list[int] = []
        self.timebase = (1, 1)

    def proc_listallpids(self, room: Any, size: int) -> int:
        most = size // 4
        for index, pid in enumerate(sorted(self.processes)[:most]):
            room[index] = pid
        return min(len(self.processes), most)

    def proc_listchildpids(self, pid: int, room: Any, size: int) -> int:
        found = [each for each, process in self.processes.items() if process.parent == pid][: size // 4]
        for index, each in enumerate(found):
            room[index] = each
        return len(found)

    def proc_pidinfo(self, pid: int, flavour: int, _: object, room: Any, size: int) -> int:
        process = self.processes.get(pid)
        if process is None:
            return 0
        if flavour == 17:
            raw = struct.pack("16sQQiiQQ", b"u" * 16, process.own, process.forked_by, 1, 2, 3, 4)
        elif flavour == 13:
            status = 5 if process.is_zombie else 2
            raw = struct.pack("IIII16s8I", pid, process.parent, pid, status, b"name", 0, process.uid, *range(6))
        else:
            raw = b"".join(struct.pack("iI", fd, 1) for fd in process.files) + struct.pack("iI", 99, 2)
            raw = raw[:size]
        assert len(raw) <= size
        ctypes.memmove(room, raw, len(raw))
        return len(raw)

    def proc_pidfdinfo(self, pid: int, fd: int, flavour: int, room: Any, size: int) -> int:
        assert (flavour, size) == (1, 176)
        device, inode = self.processes[pid].files[fd]
        raw = struct.pack("IIqiI", 0, 0, 0, 0, 0) + struct.pack("IHHQ", device, 0o100644, 1, inode)
        ctypes.memmove(room, raw.ljust(size, b"\0"), size)
        return size

    def proc_pid_rusage(self, pid: int, flavour: int, room: Any) -> int:
        if pid not in self.processes:
            return -1
        assert flavour == 1
        user, system, reaped_user, reaped_system = self.processes[pid].times
        raw = struct.pack("16s10Q6Q", b"u", user, system, *[7] * 8, reaped_user, reaped_system, *[7] * 4)
        ctypes.memmove(room, raw, len(raw))
        return 0

    def mach_timebase_info(self, room: Any) -> int:
        room[0], room[1] = self.timebase
        return 0

    def sysctl(self, names: Any, count: int, room: Any, size: Any, _new: object, _length: object) -> int:
        if list(names)[:count] == [1, 8]:
            room._obj.value = ARGMAX
            return 0
        process = self.processes.get(names[2])
        if process is None or process.uid != os.geteuid():
            return -1
        raw = procargs(process.argv, process.env)
        ctypes.memmove(room, raw, len(raw))
        size._obj.value = len(raw)
        return 0

    def sysctlbyname(self, name: bytes, room: Any, size: Any, _new: object, _length: object) -> int:
        if name != b"kern.bootsessionuuid":
            return -1
        raw = b"9F3A61C2-0000\0"
        ctypes.memmove(room, raw, len(raw))
        size._obj.value = len(raw)
        return 0

    def kill(self, pid: int, number: int) -> None:
        assert number == 9
        if pid not in self.processes:
            raise ProcessLookupError
        self.killed.append(pid)
        del self.processes[pid]


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    """MacOS with launchd, a shell, and this process."""
    made = System()
    made.processes = {1: Process(1, 0, parent=0), 50: Process(500, 1), ME: Process(600, 500, parent=50)}
    monkeypatch.setattr(darwin, "_libproc", lambda: made)
    monkeypatch.setattr(darwin, "_tick_s", 0.0)
    monkeypatch.setattr(os, "kill", made.kill)
    return made


@pytest.fixture
def macos(system: System, monkeypatch: pytest.MonkeyPatch) -> System:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    return system


# -- layouts


@pytest.mark.parametrize(
    ("layout", "size"),
    [(darwin.UNIQUE, 56), (darwin.SHORT, 64), (darwin.FD, 8), (darwin.VNODE, 176), (darwin.RUSAGE, 144)],
)
def test_the_layouts_are_as_long_as_the_kernel_wants_them(layout: struct.Struct, size: int) -> None:
    assert layout.size == size


ENV = (b"A=1", COOKIE, b"B=")


@pytest.mark.parametrize(
    ("argv", "env", "expected"),
    [
        ((b"sh", b"-c", b"true"), ENV, [*ENV]),
        ((b"sh", b"", b""), ENV, [*ENV]),
        ((), ENV, [*ENV]),
        ((b"sh",), (), []),
        ((b"grep", COOKIE), (b"A=1",), [b"A=1"]),
        ((b"", COOKIE), (b"A=1", b"B=2"), [b"B=2"]),  # the first entry is missed; the argument is none of them
    ],
)
def test_the_environment_begins_behind_the_last_argument(
    argv: tuple[bytes, ...], env: tuple[bytes, ...], expected: list[bytes]
) -> None:
    assert darwin.environment_of(procargs(argv, env)) == expected


@pytest.mark.parametrize("raw", [b"", b"\1\0", b"\1\0\0\0", b"\1\0\0\0/bin/sh", b"\1\0\0\0/bin/sh\0", b"\xff" * 40])
def test_what_is_cut_short_has_no_environment(raw: bytes) -> None:
    assert darwin.environment_of(raw) == []


@pytest.mark.parametrize("length", range(1, 20))
def test_any_length_of_path_is_padded_over(length: int) -> None:
    assert darwin.environment_of(procargs((b"x",), (b"A=1",), b"p" * length)) == [b"A=1"]


def test_a_process_is_told_apart(system: System) -> None:
    assert darwin.identity(ME) == (600, 500)
    assert darwin.identity(4) is None
    seen = darwin.short(ME)
    assert seen is not None
    assert (seen.parent, seen.group, seen.uid, seen.name, seen.is_zombie) == (50, ME, os.geteuid(), "name", False)
    system.processes[ME].is_zombie = True
    assert (again := darwin.short(ME)) is not None
    assert again.is_zombie
    assert darwin.short(4) is None


def test_every_process_is_listed_however_many_there_are(system: System) -> None:
    system.processes = {pid: Process(pid, 1) for pid in range(1, 5000)}
    assert darwin.all_pids() == list(range(1, 5000))
    assert len(darwin.children(1)) == 4999


def test_the_boot_has_a_name(system: System) -> None:
    assert system.processes
    assert darwin.text_of("kern.bootsessionuuid") == "9F3A61C2-0000"
    assert darwin.text_of("kern.nothing") == ""


def test_an_open_file_is_found_by_device_and_inode(system: System) -> None:
    system.processes[50].files = {fd: (1, fd) for fd in range(200)} | {250: (0xFFFFFFF0, 1 << 40)}
    assert darwin.has_open(50, 0xFFFFFFF0, 1 << 40)
    assert darwin.has_open(50, -16, 1 << 40)  # a device number has no sign in one place, and one in the other
    assert not darwin.has_open(50, 1, 1 << 40)
    assert not darwin.has_open(4, 1, 1)


def test_cpu_time_is_in_ticks_of_the_machine(system: System) -> None:
    system.processes[ME].times = (10**15, 10**15, 24_000_000, 0)  # its own is not the job's
    system.processes[700] = Process(700, 600, parent=ME)
    system.processes[700].times = (24_000_000, 0, 24_000_000, 0)
    system.timebase = (125, 3)
    assert darwin.cpu_seconds(ME) == pytest.approx(3.0)


# -- lineage


def test_what_was_orphaned_is_found_by_who_forked_it(system: System) -> None:
    """The one in the middle has ended: its child belongs to launchd, and has its number."""
    lineage = darwin.Lineage(ME)
    system.processes[700] = Process(700, 600, parent=ME)
    assert lineage.look() == {700: 700}
    system.processes[701] = Process(701, 700, parent=700)
    del system.processes[700]
    system.processes[701].parent = 1
    system.processes[9] = Process(702, 701)  # a lower pid than its parent's
    system.processes[800] = Process(800, 500)  # the shell's, not ours
    assert lineage.look() == {701: 701, 9: 702}
    assert lineage.kill(b"") == 2
    assert sorted(system.killed) == [9, 701]
    assert lineage.kill(b"") == 0


def test_a_number_that_is_another_s_by_now_is_not_signalled(system: System) -> None:
    system.processes[700] = Process(700, 600)
    assert not darwin.kill(700, 699)
    assert system.killed == []
    assert darwin.kill(700, 700)
    assert not darwin.kill(700, 700)


def test_zombies_are_left_to_who_reaps_them(system: System) -> None:
    lineage = darwin.Lineage(ME)
    system.processes[700] = Process(700, 600, parent=ME)
    system.processes[700].is_zombie = True
    assert lineage.kill(b"") == 0


class Queue:
    """A kqueue that notes what is watched, and refuses those that have ended."""

    def __init__(self) -> None:
        self.watched: list[tuple[int, int]] = []
        self.drained = 0
        self.is_closed = False
        self.refused: int | None = None

    def fileno(self) -> int:
        return 77

    def control(self, changes: list[tuple[int, int]] | None, most: int, _timeout: int | None = None) -> list[object]:
        if changes is None:
            self.drained += 1
            assert most
            return []
        if self.refused is not None:
            raise OSError(self.refused, "refused")
        self.watched += changes
        return []

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    made = Queue()
    words = {"KQ_FILTER_PROC": -5, "KQ_EV_ADD": 1, "KQ_EV_ONESHOT": 16, "KQ_EV_CLEAR": 32}
    for name, value in {**words, "KQ_NOTE_EXIT": 0x80000000, "KQ_NOTE_FORK": 0x40000000}.items():
        monkeypatch.setattr(select, name, value, raising=False)
    monkeypatch.setattr(select, "kqueue", lambda: made, raising=False)
    monkeypatch.setattr(select, "kevent", lambda pid, *, filter, flags, fflags: (pid, fflags), raising=False)  # noqa: A006, ARG005
    return made


def test_each_one_is_watched_once_for_forks_and_its_end(system: System, queue: Queue) -> None:
    both = 0x80000000 | 0x40000000
    lineage = darwin.Lineage(ME)
    assert (lineage.fileno(), queue.watched) == (77, [(ME, both)])
    system.processes[700] = Process(700, 600, parent=ME)
    lineage.heard()
    lineage.heard()
    assert queue.watched == [(ME, both), (700, both)]
    assert queue.drained == 2
    lineage.close()
    assert (queue.is_closed, lineage.fileno()) == (True, -1)


def test_one_that_has_just_ended_is_not_watched(system: System, queue: Queue) -> None:
    lineage = darwin.Lineage(ME)
    queue.refused = 3  # ESRCH
    system.processes[700] = Process(700, 600, parent=ME)
    assert lineage.look() == {700: 700}
    queue.refused = 24  # EMFILE
    system.processes[701] = Process(701, 600, parent=ME)
    with pytest.raises(OSError, match="refused"):
        lineage.look()


def test_the_end_of_a_child_is_waited_for_by_a_queue(queue: Queue) -> None:
    assert darwin.watch_end(700) is queue
    assert queue.watched == [(700, 0x80000000)]
    queue.refused = 3
    assert darwin.watch_end(701) is None
    assert queue.is_closed


def test_without_a_queue_one_looks_from_time_to_time() -> None:
    assert darwin.watch_end(700) is None


# -- the cookie


def test_who_carries_the_cookie_is_found_and_killed(macos: System) -> None:
    macos.processes[700] = Process(700, 1, env=(b"A=1", COOKIE))
    macos.processes[701] = Process(701, 1, env=(COOKIE + b"0",))
    macos.processes[702] = Process(702, 1, env=(b"A=1",), argv=(b"grep", COOKIE))
    macos.processes[703] = Process(703, 1, env=(COOKIE,))
    macos.processes[703].uid += 1
    macos.processes[704] = Process(704, 1, env=(COOKIE,))
    macos.processes[704].is_zombie = True
    for spared in (ME, 50):
        macos.processes[spared].env = (COOKIE,)
    assert [(stray.pid, stray.started) for stray in strays.find(COOKIE, cwd_under=None)] == [(700, 700)]
    assert strays.clear(COOKIE, budget_s=5) == ()
    assert macos.killed == [700]


def test_a_stray_whose_pid_is_another_s_by_now_is_left(macos: System) -> None:
    macos.processes[700] = Process(700, 1, env=(COOKIE,))
    (stray,) = strays.find(COOKIE, cwd_under=None)
    macos.processes[700] = Process(705, 1, env=(COOKIE,))
    assert not strays.kill(stray)
    assert macos.killed == []


def test_on_windows_nobody_is_hunted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "name", "nt")
    assert strays.clear(COOKIE, budget_s=0) == ()


# -- what is made of it elsewhere


def test_the_kernel_s_word_on_a_holder_counts_where_it_has_the_file_open(macos: System) -> None:
    there = os.stat(__file__)
    macos.processes[50].files = {3: (there.st_dev & 0xFFFFFFFF, there.st_ino)}
    assert registry._has_open(50, there)
    assert not registry._has_open(ME, there)


def test_a_holder_is_killed_if_it_is_named_twice(macos: System) -> None:
    macos.processes[700] = Process(700, 1)
    macos.processes[701] = Process(701, 1)
    reaper._kill_holder(lambda _: 700, "run")
    answers = iter((701, 0))
    reaper._kill_holder(lambda _: next(answers), "run")
    assert macos.killed == [700]


def test_cpu_time_of_a_job_is_asked_of_the_kernel(macos: System) -> None:
    macos.processes[700] = Process(700, 600, parent=ME)
    macos.processes[700].times = (2_000_000_000, 0, 0, 0)
    assert descendants.cpu_seconds(ME) == pytest.approx(2.0)


def test_a_guardian_ends_what_was_orphaned_and_what_has_its_job_s_nonce(
    macos: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(
        argv=("x",),
        env={"ORCH_NONCE": "abc"},
        cwd="/",
        stdout_path="",
        stderr_path="",
        containment=Containment(tier=3),
    )
    held = guardian._Guardian(job, -1, -1, None)
    monkeypatch.setattr(guardian, "reap", lambda _: True)
    lineage = darwin.Lineage(ME)
    macos.processes[700] = Process(700, 600)
    macos.processes[701] = Process(701, 1, env=(b"ORCH_NONCE=abc",))
    macos.processes[702] = Process(702, 1, env=(b"ORCH_NONCE=abcd",))
    held._kill_orphans(lineage)
    assert sorted(macos.killed) == [700, 701]
