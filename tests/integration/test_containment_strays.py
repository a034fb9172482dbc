"""The hunt for what outlived its run: the stray goes, the innocent stay (cases 17, 61 and 62)."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from git_orch.containment import strays
from git_orch.containment.strays import clear, find, kill
from tests.adversaries.stage import ROOT, interpreter, is_alive, prefix, run_as
from tests.waiting import wait_until

RUN = "20261130T201500123-9f3a61c2"
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """A function that starts a process with variables added to its environment; all are ended and reaped."""
    started: list[subprocess.Popen[bytes]] = []

    def run(env: Mapping[str, str], *argv: str, cwd: Path | None = None, user: str = "me") -> subprocess.Popen[bytes]:
        command = [*prefix(user), *(argv or ("sleep", "60"))]
        process = subprocess.Popen(command, env={**os.environ, **env}, cwd=cwd, stdin=subprocess.DEVNULL)
        started.append(process)
        name = os.path.basename(command[0] if user == "me" else (argv or ("sleep",))[0])
        wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text().strip() == name, 10)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def mac() -> str:
    return secrets.token_hex(16)


def cookie_of(mac: str) -> bytes:
    return f"ORCH_TASK={RUN}.{mac}".encode()


def test_the_stray_goes_and_those_that_merely_look_like_it_stay(start: Start, mac: str, tmp_path: Path) -> None:
    stray = start({"ORCH_TASK": f"{RUN}.{mac}"})
    innocent = [
        start({"ORCH_TASK": f"{RUN}.{secrets.token_hex(16)}"}),  # forged
        start({"ORCH_TASK": f"{RUN}."}),
        start({"ORCH_TASK": f"{RUN}.{mac}0"}),
        start({"ORCH_TASK": f"{RUN}.{mac[:-1]}"}),
        start({"XORCH_TASK": f"{RUN}.{mac}"}),
        start({"NOTE": f"a line\nORCH_TASK={RUN}.{mac}"}),
        start({}, interpreter("me"), "-c", "import signal; signal.pause()", f"ORCH_TASK={RUN}.{mac}"),
        start({}, cwd=tmp_path),
    ]
    assert [found.pid for found in find(cookie_of(mac), cwd_under=None)] == [stray.pid]
    assert clear(cookie_of(mac), budget_s=10) == ()
    assert stray.wait(10) == -9
    assert [process.poll() for process in innocent] == [None] * len(innocent)


def test_a_place_is_told_of_and_no_reason_to_kill(start: Start, mac: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tmp_path / "tree-of-another").mkdir()
    looking = start({}, cwd=tree / "sub")
    stray = start({"ORCH_TASK": f"{RUN}.{mac}"}, cwd=tree)
    elsewhere = start({}, cwd=tmp_path / "tree-of-another")
    found = find(cookie_of(mac), cwd_under=str(tree))
    assert [(each.pid, each.cookie) for each in found] == [(stray.pid, cookie_of(mac)), (looking.pid, b"")]
    assert [kill(each) for each in found] == [True, False]
    assert clear(cookie_of(mac), budget_s=10) == ()
    assert stray.wait(10) == -9
    assert (looking.poll(), elsewhere.poll()) == (None, None)


def test_a_number_that_became_another_process_is_not_killed(start: Start, mac: str) -> None:
    start({"ORCH_TASK": f"{RUN}.{mac}"})
    (found,) = find(cookie_of(mac), cwd_under=None)
    for change in ({"started": found.started + 1}, {"pidfd_inode": found.pidfd_inode + 1}, {"pid": os.getpid()}):
        assert not kill(found.replace(**change))
    innocent = start({})
    assert not kill(found.replace(pid=innocent.pid))
    assert innocent.poll() is None
    assert kill(found)


def test_where_pidfds_have_no_inode_the_start_time_is_what_tells(
    start: Start, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strays, "_has_pidfs", lambda _: False)
    process = start({"ORCH_TASK": f"{RUN}.{mac}"})
    (found,) = find(cookie_of(mac), cwd_under=None)
    assert found.pidfd_inode == 0
    assert not kill(found.replace(started=found.started - 1))
    assert kill(found)
    assert process.wait(10) == -9


def test_a_zombie_is_no_stray(start: Start, mac: str) -> None:
    process = start({"ORCH_TASK": f"{RUN}.{mac}"})
    process.kill()
    wait_until(lambda: not is_alive(process.pid), 10)
    assert process.pid not in [found.pid for found in find(cookie_of(mac), cwd_under="/")]


def test_the_hunter_and_its_ancestors_are_spared(mac: str) -> None:
    body = f"""
import os
from git_orch.containment import strays
cookie = {cookie_of(mac)!r}
name, _, value = cookie.decode().partition("=")
if os.environ.get(name) != value:
    script = sys.orig_argv[sys.orig_argv.index("-c") + 1]
    command = [sys.executable, "-I", "-S", "-c", script, sys.argv[1]]
    os.execve("/bin/sh", ["sh", "-c", '"$@"; true', "sh", *command], {{**os.environ, name: value}})
print(strays.clear(cookie, budget_s=5), [found.pid for found in strays.find(cookie, cwd_under="/")].count(os.getppid()))
"""
    assert run_as("me", body) == "() 0\n"


@pytest.mark.skipif(not ROOT, reason="only root can be somebody else")
def test_what_belongs_to_another_user_is_not_ours_to_end(start: Start, mac: str) -> None:
    others = start({"ORCH_TASK": f"{RUN}.{mac}"}, user="nobody")
    assert others.pid not in [found.pid for found in find(cookie_of(mac), cwd_under="/")]
    assert clear(cookie_of(mac), budget_s=5) == ()
    assert others.poll() is None


@pytest.mark.parametrize("cookie", [b"", b"ORCH_TASK", b"ORCH_TASK=", b"PATH=/usr/bin", b"ORCH_TASK=a\0PATH=b"])
def test_what_is_no_cookie_is_refused(cookie: bytes) -> None:
    with pytest.raises(ValueError, match="not a cookie"):
        find(cookie, cwd_under=None)


def test_one_that_keeps_forking_is_found_in_a_later_round(mac: str) -> None:
    # Each generation lives for some 20 ms, which is longer than a look takes; the last would end in 10 s.
    script = "n=0; while [ $n -lt 500 ]; do sleep 0.02; n=$((n+1)); done & exit 0"
    subprocess.run(["sh", "-c", script], env={**os.environ, "ORCH_TASK": f"{RUN}.{mac}"}, check=True, timeout=30)
    assert find(cookie_of(mac), cwd_under=None) != []
    assert clear(cookie_of(mac), budget_s=10) == ()
    assert find(cookie_of(mac), cwd_under=None) == []
