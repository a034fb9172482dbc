"""A job in a job object, on Linux: the layouts that Windows reads, and what the supervisor makes of what it is told."""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Any

import pytest

from git_orch import guardian
from git_orch.containment import Containment, Job
from git_orch.containment import windows as job_objects
from git_orch.guardian import Guard, JobGuard
from git_orch.model import Exited, NotStarted, Signalled, Unkillable

JOB = Job(
    argv=("reviewer",),
    env={},
    cwd="/",
    stdout_path="/dev/null",
    stderr_path="/dev/null",
    containment=Containment(tier=4),
)


class Program:
    """What `Running` tells of a program, by what a test says: its exit code, and for how many looks others live on."""

    def __init__(self, *, code: int | None = None, lingers: int = 0) -> None:
        self.pid, self.handle = 4711, 12
        self.code = code
        self.lingers = lingers
        self.killed = self.closed = 0

    def exit_code(self) -> int | None:
        return self.code

    def kill(self) -> None:
        self.killed += 1
        if self.code is None:
            self.code = job_objects.ENDED_BY_US

    def active(self) -> int:
        self.lingers -= 1
        return int(self.lingers >= 0)

    def pids(self) -> tuple[int, ...]:
        return (4712,)

    def cpu_s(self) -> float:
        return 1.5

    def peak_bytes(self) -> int:
        return 4096

    def close(self) -> None:
        self.closed += 1


def held(monkeypatch: pytest.MonkeyPatch, program: Program) -> Guard:
    monkeypatch.setattr(job_objects.Running, "start", classmethod(lambda _cls, _job: program))
    monkeypatch.setattr(guardian, "EMPTY_NAP_S", 0.0)
    monkeypatch.delattr("os.fork")
    return Guard.start(JOB, lock_fd=None)


def told(guard: Guard) -> tuple[object, bool]:
    return guard.outcome, guard.gone


def test_a_job_that_runs_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program()
    guard = held(monkeypatch, program)
    guard.read()
    assert isinstance(guard, JobGuard)
    assert (guard.job_pid, guard.fileno(), guard.outcome, guard.gone) == (4711, 12, None, False)
    assert (program.killed, guard.cpu_s()) == (0, 1.5)


@pytest.mark.parametrize("code", [0, 1, 3, 0xC0000005])
def test_what_a_job_leaves_behind_is_ended_before_its_end_is_told(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(code=code, lingers=3)
    guard = held(monkeypatch, program)
    guard.read()
    assert (guard.outcome, guard.gone, guard.fileno()) == (Exited(code=code), True, -1)
    assert (program.killed, program.closed) == (1, 1)
    assert (guard.usage.cpu_s, guard.usage.peak_rss_bytes, guard.cpu_s()) == (1.5, 4096, 1.5)
    guard.read()
    guard.kill()
    assert program.closed == 1


@pytest.mark.parametrize("ask", ["terminate", "kill", "rescue"])
def test_a_job_that_is_asked_to_end_is_killed(ask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(lingers=guardian.EMPTY_LOOKS + 5)
    guard = held(monkeypatch, program)
    getattr(guard, ask)()
    assert not guard.gone
    guard.read()
    assert (guard.outcome, guard.gone) == (Signalled(signal=9), True)


def test_a_job_that_ended_before_it_was_asked_to_keeps_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = held(monkeypatch, Program(code=7))
    guard.terminate()
    assert guard.outcome == Exited(code=7)


def test_what_cannot_be_ended_is_told_of_and_goes_on_being_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(code=0, lingers=1000)
    guard = held(monkeypatch, program)
    guard.read()
    assert told(guard) == (None, False)
    now = time.monotonic()
    monkeypatch.setattr("git_orch.guardian.time.monotonic", lambda: now + guardian.UNKILLABLE_AFTER_S + 1)
    guard.read()
    assert told(guard) == (Unkillable(pids=(4712,)), False)
    program.lingers = 0
    guard.read()
    assert told(guard) == (Exited(code=0), True)


def test_a_program_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_cls: object, _job: Job) -> None:
        raise FileNotFoundError(2, "not found on PATH, as an .exe", "reviewer")

    monkeypatch.setattr(job_objects.Running, "start", classmethod(refuse))
    monkeypatch.delattr("os.fork")
    guard = Guard.start(JOB, lock_fd=None)
    assert guard.outcome == NotStarted(reason="reviewer: not found on PATH, as an .exe")
    assert guard.gone
    assert not guard.denied


# -- what Windows reads and writes


@pytest.mark.skipif(sys.maxsize < 2**32, reason="the sizes are those of 64 bits")
@pytest.mark.parametrize(
    ("structure", "size", "offsets"),
    [
        (job_objects._limits, 144, {"flags": 16, "affinity": 48, "io_counters": 64, "peak_job_memory": 136}),
        (job_objects._accounting, 48, {"kernel_time": 8, "page_faults": 32, "active_processes": 40}),
        (job_objects._process_list, 8 + 8 * job_objects.MOST_LISTED, {"listed": 4, "pids": 8}),
    ],
)
def test_the_layouts_are_those_of_winnt_h(structure: Any, size: int, offsets: dict[str, int]) -> None:
    kind = structure()
    assert ctypes.sizeof(kind) == size
    assert {name: getattr(kind, name).offset for name in offsets} == offsets


class Kernel32:
    """The one question of a job object, answered."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def QueryInformationJobObject(self, job: object, kind: int, answer: Any, size: int, _: None) -> int:  # noqa: N802
        self.asked.append((job, kind, size))
        told = answer._obj
        if kind == job_objects.BASIC_ACCOUNTING_INFORMATION:
            told.user_time, told.kernel_time, told.active_processes = 20_000_000, 5_000_000, 2
        elif kind == job_objects.BASIC_PROCESS_ID_LIST:
            told.assigned, told.listed = 400, 2
            told.pids[0], told.pids[1] = 11, 12
        else:
            told.peak_job_memory = 99
        return 1


def test_a_job_object_is_asked_for_time_memory_and_members(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel32()
    monkeypatch.setattr(job_objects, "_kernel32", lambda: kernel)
    running = job_objects.Running(1, 2, "job")
    assert (running.cpu_s(), running.active(), running.pids(), running.peak_bytes()) == (2.5, 2, (11, 12), 99)
    assert kernel.asked == [("job", 1, 48), ("job", 1, 48), ("job", 3, 2408), ("job", 9, 144)]


class Jobs:
    """The kernel's job objects by their names."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.said: list[tuple[object, ...]] = []

    def OpenJobObjectW(self, access: int, _inherit: int, name: str) -> int | None:  # noqa: N802
        assert access == job_objects.TO_TERMINATE
        return self.names.index(name) + 1 if name in self.names else None

    def TerminateJobObject(self, job: int, code: int) -> int:  # noqa: N802
        self.said.append(("end", job, code))
        return 1

    def CloseHandle(self, job: int) -> int:  # noqa: N802
        self.said.append(("close", job))
        return 1


def test_a_run_is_ended_by_the_name_of_its_job_object(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs("Global\\git-orch-run.mac")
    monkeypatch.setattr(job_objects, "_kernel32", lambda: jobs)
    assert not job_objects.end("run.mac")  # elsewhere there are none
    monkeypatch.setattr("os.name", "nt")
    assert not job_objects.end("run.other")
    assert jobs.said == []
    assert job_objects.end("run.mac")
    assert jobs.said == [("end", 1, job_objects.ENDED_BY_US), ("close", 1)]


def test_with_nothing_to_wait_for_the_time_passes() -> None:
    begun = time.monotonic()
    assert job_objects.Poll().poll(10) == []
    assert time.monotonic() - begun >= 0.01
