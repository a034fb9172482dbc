"""Processes that are run to their end, whatever they do with their streams, their children and their time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from git_orch import proc, windows
from git_orch.containment import windows as job_objects
from git_orch.proc import Command, Finished
from tests.waiting import wait_until

PROJECT = Path(__file__).parents[2]
MARGIN_S = 20.0  # far less than what a test waits for in vain


def python(code: str, *, stdin: bytes = b"", timeout_s: float = 60.0) -> Finished:
    return proc.run([sys.executable, "-I", "-S", "-c", code], env=os.environ, stdin=stdin, timeout_s=timeout_s)


def test_what_it_wrote_and_how_it_ended() -> None:
    done = python("import sys; sys.stdout.write('out'); sys.stderr.write('err'); sys.exit(3)")
    assert done == Finished(code=3, stdout=b"out", stderr=b"err")
    assert python("import os; os.kill(os.getpid(), 9)").code == -signal.SIGKILL


@pytest.mark.parametrize("size", [0, 1, 65_536, 5_000_000])
def test_much_in_and_much_out_at_once(size: int) -> None:
    sent = b"x" * size
    echo = "import os\nwhile part := os.read(0, 4096): os.write(1, part); os.write(2, part)"
    assert python(echo, stdin=sent) == Finished(code=0, stdout=sent, stderr=sent)


def test_without_bytes_standard_input_is_at_its_end() -> None:
    assert python("import sys; print(repr(sys.stdin.read()))").stdout == b"''\n"


def test_a_program_that_does_not_read_its_input() -> None:
    assert python("print('done')", stdin=b"x" * 5_000_000) == Finished(code=0, stdout=b"done\n", stderr=b"")


def test_output_to_a_descriptor(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        done = proc.run(["echo", "there"], env=os.environ, stdout_fd=file.fileno())
        assert file.fileno() > 2
    assert (done.stdout, (tmp_path / "out").read_bytes()) == (b"", b"there\n")


def test_only_the_given_environment() -> None:
    done = proc.run(["env"], env={"PATH": os.environ["PATH"], "ONLY": "this"})
    assert set(done.stdout.decode().split()) == {f"PATH={os.environ['PATH']}", "ONLY=this"}


def test_words_arrive_as_they_are() -> None:
    words = ["a b", "$(x)", "new\nline", "'\"", "", "ü", "\udcff"]
    code = "import os, sys; os.write(1, b'|'.join(map(os.fsencode, sys.argv[1:])))"
    done = proc.run([sys.executable, "-I", "-c", code, *words, b"\xfe"], env=os.environ)
    assert done.stdout == b"|".join([*(os.fsencode(word) for word in words), b"\xfe"])


def test_no_such_program() -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        proc.run(["no-such-program-anywhere"], env=os.environ, stdin=b"x")
    assert set(os.listdir("/proc/self/fd")) == before


def test_no_descriptor_is_left_open_and_none_of_ours_is_inherited() -> None:
    before = set(os.listdir("/proc/self/fd"))
    with Path(os.devnull).open("rb") as other:
        done = proc.run(["ls", "/proc/self/fd"], env=os.environ)
        assert not os.get_inheritable(other.fileno())
    assert set(os.listdir("/proc/self/fd")) == before
    assert len(done.stdout.split()) == 3 + 1 + len(strays())  # the streams, and the one that lists


def strays() -> list[int]:
    """Descriptors that whoever started the tests left open for all the world."""
    return [fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2 and is_inheritable(fd)]


def is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:  # the one that listed
        return False


# -- time


def test_a_program_that_takes_too_long_is_ended() -> None:
    began = time.monotonic()
    done = python("import time; print('begun', flush=True); time.sleep(1000)", timeout_s=0.5)
    assert (done.code, done.timed_out, done.stdout) == (-signal.SIGTERM, True, b"begun\n")
    assert time.monotonic() - began < MARGIN_S


def test_one_that_does_not_heed_term_is_killed() -> None:
    stubborn = "import signal, time; signal.signal(15, 1); print('begun', flush=True); time.sleep(1000)"
    done = python(stubborn, timeout_s=0.5)
    assert (done.code, done.timed_out) == (-signal.SIGKILL, True)


def test_what_it_started_ends_with_it(tmp_path: Path) -> None:
    """Git ends when told to, but not the filter that it waits for."""
    child = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', {child!r}])"
    assert python(code, timeout_s=1.0).timed_out
    pid = int((tmp_path / "pid").read_text())
    assert wait_until(
        lambda: not Path(f"/proc/{pid}/stat").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text(), 5
    )


DAEMON = """
import os, time
r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    print(os.getpid(), flush=True)
    os.write(w, b"x")
    time.sleep(1000)
os.read(r, 1)
"""


def test_a_daemon_that_it_leaves_behind_delays_nothing() -> None:
    """As git's gc, fsmonitor and credential cache: they hold the streams for as long as they live."""
    began = time.monotonic()
    done = python(DAEMON)
    assert done.code == 0
    assert time.monotonic() - began < MARGIN_S
    os.kill(int(done.stdout), signal.SIGKILL)


def test_an_interrupt_leaves_no_process() -> None:
    code = (
        "import os, signal, threading\n"
        "from git_orch import proc\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try: proc.run(['sleep', '1000'], env=os.environ)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "try: os.waitpid(-1, 0)\n"
        "except ChildProcessError: print('none left')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split("\n")[:2] == ["interrupted", "none left"], done.stderr


# -- several


WAIT_FOR_THE_OTHER = """
import os, sys, time
open(sys.argv[1], "w").close()
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
print(sys.argv[1])
"""


def test_several_run_side_by_side() -> None:
    """Each waits for the other's file: one after the other they would never end."""
    one, other = (f"{os.environ['TMPDIR']}/{name}" for name in "ab")
    start = [sys.executable, "-I", "-S", "-c", WAIT_FOR_THE_OTHER]
    commands = [Command(argv=[*start, *paths], env=os.environ) for paths in ((one, other), (other, one))]
    done = proc.run_together(commands, timeout_s=30)
    assert [finished.stdout.decode() for finished in done] == [f"{one}\n", f"{other}\n"]


def test_of_several_the_late_one_is_ended() -> None:
    commands = [
        Command(argv=["echo", "quick"], env=os.environ),
        Command(argv=["sleep", "1000"], env=os.environ),
    ]
    quick, late = proc.run_together(commands, timeout_s=0.5)
    assert quick == Finished(code=0, stdout=b"quick\n", stderr=b"")
    assert (late.timed_out, late.code) == (True, -signal.SIGTERM)


def test_none_of_several_runs_where_one_does_not_exist() -> None:
    began = time.monotonic()
    with pytest.raises(FileNotFoundError):
        proc.run_together(
            [Command(argv=["sleep", "1000"], env=os.environ), Command(argv=["no-such-program"], env=os.environ)]
        )
    assert time.monotonic() - began < MARGIN_S


# -- odd parents


ODD = """
import os, signal, sys
sys.path.insert(0, {project!r})
from git_orch import proc
{oddity}
done = proc.run([sys.executable, '-I', '-S', '-c',
    "import sys; sys.stdout.write(sys.stdin.read() + 'out'); sys.stderr.write('err'); sys.exit(5)"],
    env=os.environ, stdin=b'in ')
open({report!r}, 'w').write(repr((done.code, done.stdout, done.stderr)))
"""


@pytest.mark.parametrize(
    "oddity",
    [
        "os.closerange(0, 3)",
        "os.close(0)",
        "os.close(1)",
        "os.close(2)",
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))",
        "del os.pidfd_open",
        "del os.pidfd_open, os.waitid",
    ],
)
def test_a_parent_with(oddity: str, tmp_path: Path) -> None:
    code = ODD.format(project=str(PROJECT), oddity=oddity, report=str(tmp_path / "report"))
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)
    assert (tmp_path / "report").read_text() == "(5, b'in out', b'err')"


def test_signals_are_as_a_program_expects_them() -> None:
    """Python ignores SIGPIPE, which a child would inherit, and so would write on into a closed pipe."""
    done = proc.run(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"], env=os.environ)
    blocked, ignored = (int(line.split()[1], 16) for line in done.stdout.decode().splitlines())
    assert blocked == 0
    assert not [number for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD) if ignored >> number - 1 & 1]


def test_without_pidfds_a_late_program_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert python("import time; time.sleep(1000)", timeout_s=0.3).timed_out
    monkeypatch.delattr(os, "waitid")
    assert python("import time; time.sleep(1000)", timeout_s=0.3).timed_out


def test_from_a_thread() -> None:
    said: list[Finished] = []
    thread = threading.Thread(target=lambda: said.append(python("print(1)")))
    thread.start()
    thread.join(30)
    assert said == [Finished(code=0, stdout=b"1\n", stderr=b"")]


# -- programs


def test_a_program_is_found_on_the_path(tmp_path: Path) -> None:
    folder, plain = tmp_path / "bin", tmp_path / "plain"
    for place, mode in ((folder, 0o755), (plain, 0o644)):
        place.mkdir()
        (place / "tool").write_text("#!/bin/sh\n")
        (place / "tool").chmod(mode)
    (tmp_path / "folders" / "tool").mkdir(parents=True)
    path = f"{tmp_path / 'none'}:{tmp_path / 'folders'}:{plain}:{folder}"
    assert proc.find_program("tool", path) == str(folder / "tool")
    assert proc.find_program("no-tool", path) is None
    assert proc.find_program(str(folder / "tool"), "") == str(folder / "tool")
    assert proc.find_program(str(tmp_path / "folders/tool"), "") is None
    os.chdir(folder)
    assert proc.find_program("./tool", "") == str(folder / "tool")
    assert proc.find_program("tool", "") == str(folder / "tool")  # an empty entry means here, as for a shell


REPORT = """
import os, sys
said = os.getsid(0) == os.getpid(), os.listdir("/proc/self/fd")
os.write(int(sys.argv[1]), repr(said).encode())
"""


def test_a_detached_program_has_a_session_and_what_it_inherits() -> None:
    read_end, write_end = os.pipe()
    start = [sys.executable, "-I", "-S", "-c", REPORT, str(write_end)]
    pid = proc.spawn_detached(start, env=dict(os.environ), inherit=[write_end])
    assert not os.get_inheritable(write_end)
    os.close(write_end)
    os.waitpid(pid, 0)
    is_leader, descriptors = eval(os.read(read_end, 1000))
    os.close(read_end)
    assert is_leader
    assert {"0", "1", "2", str(write_end)} < set(descriptors)
    assert len(descriptors) == 5 + len(strays())


# -- how it is done on Windows, as far as it is plain Python


class Group:
    """A job object of which the test says what its end does."""

    made: ClassVar[list[str]] = []
    on_kill: ClassVar[Callable[[], None]] = staticmethod(lambda: None)

    def __init__(self, _process: int) -> None:
        self.made.append("made")

    def kill(self) -> None:
        self.made.append("killed")
        type(self).on_kill()

    def close(self) -> None:
        self.made.append("closed")


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> type[Group]:
    Group.made.clear()
    monkeypatch.setattr(job_objects, "Group", Group)
    monkeypatch.setattr(windows, "find_program", lambda name, _path: name)
    return Group


def test_a_program_of_windows_is_read_to_its_end(group: type[Group], tmp_path: Path) -> None:
    words = ("/bin/sh", "-c", "cat; echo said >&2; exit 3")
    done = proc._run_windows(proc.Command(argv=words, env=dict(os.environ), stdin=b"given"), 60.0)
    assert (done.code, done.stdout, done.stderr, done.timed_out) == (3, b"given", b"said\n", False)
    with open(tmp_path / "out", "wb") as out:
        done = proc._run_windows(proc.Command(argv=words, env=dict(os.environ), stdout_fd=out.fileno()), 60.0)
    assert (done.code, done.stdout) == (3, b"")
    assert group.made == ["made", "closed"] * 2


def test_at_its_deadline_all_that_it_started_is_ended(
    group: type[Group], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    monkeypatch.setattr(group, "on_kill", staticmethod(lambda: fifo.write_bytes(b"")))
    words = ("/bin/sh", "-c", f"echo first; cat {fifo}")
    done = proc._run_windows(proc.Command(argv=words, env=dict(os.environ)), 0.2)
    assert (done.code, done.stdout, done.timed_out) == (-9, b"first\n", True)
    assert group.made == ["made", "killed", "closed"]
