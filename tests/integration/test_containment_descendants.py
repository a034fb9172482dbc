"""What a process has started: listing it, and ending it with proof."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from git_orch.containment import descendants
from tests.adversaries.stage import interpreter, run_as
from tests.waiting import wait_until


@pytest.fixture
def family() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child, a child of a second thread, a grandchild, and a name that is meant to confuse."""
    body = """
import ctypes, os, threading
ctypes.CDLL(None).prctl(15, b") S 1 (", 0, 0, 0)
def fork(then=lambda: None):
    if not os.fork():
        then()
        os.read(0, 1)
        os._exit(0)
fork(fork)
thread = threading.Thread(target=lambda: (fork(), print("up", flush=True), os.read(0, 1)))
thread.start()
thread.join()
"""
    # All of them read from one pipe, and all end with it.
    process = subprocess.Popen(
        [interpreter("me"), "-I", "-S", "-W", "ignore", "-c", body], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline() == b"up\n"
    yield process
    process.stdin.close()
    process.stdout.close()
    process.wait(10)


def test_children_of_all_threads_are_listed(family: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: len(descendants.descendants(family.pid)) == 3, 10)
    children = descendants.children(family.pid)
    assert len(children) == 2
    assert {*descendants.descendants(family.pid)} > {*children}
    assert family.pid in descendants.children(os.getpid())


def test_without_lists_of_children_the_process_table_is_searched(
    family: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_until(lambda: len(descendants.descendants(family.pid)) == 3, 10)
    listed = {*descendants.descendants(family.pid)}
    read, exists = descendants.read_whole, os.path.exists

    def read_no_lists(path: str) -> bytes:
        if path.endswith("/children"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return read(path)

    monkeypatch.setattr(descendants, "read_whole", read_no_lists)
    monkeypatch.setattr(os.path, "exists", lambda path: not str(path).endswith("/children") and exists(path))
    assert {*descendants.descendants(family.pid)} == listed


def test_what_is_gone_has_no_children() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert descendants.children(process.pid) == []
    assert descendants.cpu_seconds(process.pid) == 0


def test_kill_to_echild_has_proof_or_names_who_is_left() -> None:
    body = """
import os, time
from git_orch.containment import descendants
descendants.subreaper()
if not os.fork():
    if not os.fork():
        os.setsid()
        time.sleep(60)
    os._exit(3)
reaped = []
nobody_hit = descendants.kill_to_echild(0.05, strike=lambda: None, reaped=lambda *about: reaped.append(about))
assert nobody_hit == tuple(descendants.children(os.getpid())) and len(nobody_hit) == 1, nobody_hit
assert descendants.kill_to_echild(5, reaped=lambda *about: reaped.append(about)) == ()
print([os.waitstatus_to_exitcode(status) for _, status, _, _ in reaped], descendants.kill_to_echild(5))
"""
    assert run_as("me", body) == "[3, -9] ()\n"


def test_orphans_are_ended_and_the_spared_are_not() -> None:
    body = """
import os, time
from git_orch.containment import descendants
descendants.subreaper()
def family():
    pid = os.fork()
    if not pid:
        if not os.fork():
            time.sleep(60)
        time.sleep(60)
    return pid
spared, other = family(), family()
while len(descendants.descendants(os.getpid())) < 4: time.sleep(0.001)
reaped = []
assert descendants.kill_orphans(5, {spared}, lambda pid, *_: reaped.append(pid)) == ()
assert other in reaped and len(reaped) == 2 and spared not in reaped
print(len(descendants.descendants(os.getpid())), descendants.kill_to_echild(5))
"""
    assert run_as("me", body) == "2 ()\n"


def test_a_number_that_now_has_another_parent_is_not_signalled() -> None:
    body = """
import os, time
from git_orch.containment import descendants
pid = os.fork()
if not pid:
    time.sleep(60)
descendants._signal_grandchild(pid, pid, (1, 2), (9,))  # ours is neither: the number would have been given away
time.sleep(0.05)
print(os.waitpid(pid, os.WNOHANG))
descendants._signal_grandchild(pid, pid, (os.getpid(), 2), (9,))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert run_as("me", body) == "(0, 0)\n-9\n"


def test_cpu_seconds_counts_the_living_and_the_reaped() -> None:
    body = """
import os, time
from git_orch.containment import descendants
def burn():
    while time.process_time() < 0.15: pass
if not os.fork():
    burn()
    os._exit(0)
os.wait()
reaped = descendants.cpu_seconds(os.getpid())
ready_r, ready_w = os.pipe()
child = os.fork()
if not child:
    burn()
    os.write(ready_w, b"x")
    time.sleep(60)
os.read(ready_r, 1)
both = descendants.cpu_seconds(os.getpid())
os.kill(child, 9)
print(0.1 <= reaped < 1, 0.25 <= both < 2)
"""
    assert run_as("me", body) == "True True\n"
