"""What a guardian promises the supervisor, the job, and everybody else."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import signal
import struct
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.adversaries.stage import (
    PACKAGE,
    ROOT,
    TIERS,
    USERS,
    Stage,
    evil_path,
    grounds,
    interpreter,
    is_alive,
    need_tier,
    run_job,
    state_of,
    stop,
    survivors,
)
from tests.waiting import wait_until

in_both_tiers = pytest.mark.parametrize("tier", TIERS)
for_each_user = pytest.mark.parametrize("user", USERS)
FLOCK = "hhqqi4x"


def python(body: str) -> list[str]:
    return [interpreter("me"), "-I", "-S", "-c", textwrap.dedent(body)]


@in_both_tiers
@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("exit 0", "Exited(code=0)"),
        ("exit 3", "Exited(code=3)"),
        ("kill -9 $$", "Signalled(signal=9)"),
        ("kill -SEGV $$", "Signalled(signal=11)"),
        # What it left is ended with it, and does not change how it ended (cases 13 and 14).
        ("setsid sleep 60 & sleep 60 & exit 4", "Exited(code=4)"),
    ],
)
def test_the_outcome_is_how_the_job_itself_ended(tier: int, command: str, outcome: str, tmp_path: Path) -> None:
    need_tier(tier)
    assert run_job(tmp_path, ["sh", "-c", command], tier=tier)[0] == outcome


@in_both_tiers
def test_a_job_that_cannot_start_says_why(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    (tmp_path / "plain").write_text("not a program")
    (tmp_path / "plain").chmod(0o755)
    (tmp_path / "secret").symlink_to("elsewhere")

    def reason(argv: list[str], **changes: object) -> str:
        with Stage(tmp_path, ["true"], tier=tier, more=[{"argv": argv, **changes}]) as stage:
            assert stage.outcome(0) == "Exited(code=0)"
            outcome = stage.outcome(1)
            assert not stage.facts[1].denied
            return re.sub(r"^NotStarted\(reason='(.*)'\)$", r"\1", outcome)

    assert reason(["nonesuch"]) == "nonesuch: No such file or directory"
    assert reason(["/nonesuch"]) == "/nonesuch: No such file or directory"
    assert reason(["bin/tool"]) == "bin/tool: neither an absolute path nor a name"
    assert reason([str(tmp_path / "plain")]) == f"{tmp_path}/plain: Exec format error"
    assert reason([str(tmp_path)]) == f"{tmp_path}: Permission denied"
    assert reason(["true"], cwd=str(tmp_path / "gone")) == f"{tmp_path}/gone: No such file or directory"
    assert (
        reason(["true"], stdout_path=str(tmp_path / "secret"))
        == f"{tmp_path}/secret: Too many levels of symbolic links"
    )
    assert reason(["true", "a\0b"]) == "embedded null byte"
    assert not (tmp_path / "elsewhere").exists()


@in_both_tiers
def test_a_file_is_the_jobs_standard_input(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    (tmp_path / "prompt").write_bytes(b"x" * 300_000)
    (tmp_path / "link").symlink_to(tmp_path / "prompt")
    count = ["sh", "-c", "wc -c; readlink /proc/$$/fd/0"]
    with Stage(tmp_path, ["true"], tier=tier, more=[{"argv": count, "stdin_path": str(tmp_path / "prompt")}]) as stage:
        assert stage.outcome(1) == "Exited(code=0)"
    with Stage(tmp_path, ["true"], tier=tier, more=[{"argv": count, "stdin_path": str(tmp_path / "link")}]) as stage:
        assert "Too many levels of symbolic links" in stage.outcome(1)
    assert (tmp_path / "out").read_text() == f"300000\n{tmp_path}/prompt\n"


def test_a_program_in_the_tree_is_not_found_by_a_relative_path_entry(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho owned\n")
    tool.chmod(0o755)
    outcome, out, _ = run_job(tmp_path, ["tool"], env={"PATH": f"::.:{os.environ['PATH']}"})
    assert (outcome, out) == ("NotStarted(reason='tool: No such file or directory')", "")


IGNORE_SIGNALS = """
import os, signal, sys
for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
os.execv(sys.argv[1], sys.argv[1:])
"""


@in_both_tiers
def test_the_job_starts_from_a_clean_slate(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    # The supervisor ignores these, as under nohup or below a program that does not care for its children.
    body = """
        import os, signal
        import ctypes
        ignored = [n for n in signal.valid_signals() if signal.getsignal(n) == signal.SIG_IGN]
        import json
        print(json.dumps({
            "fds": sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")),
            "stdin": os.readlink("/proc/self/fd/0"),
            "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
            "ignored": [l.split()[1] for l in open("/proc/self/status") if l.startswith("SigIgn")],
            "session": os.getsid(0) == os.getpid(),
            "oom": int(open("/proc/self/oom_score_adj").read()),
            "env": sorted(os.environ), "cwd": os.getcwd(),
        }))
    """
    command = ["/usr/bin/env", *python(body)]
    before = int(Path("/proc/self/oom_score_adj").read_text())
    lock = tmp_path / "lock"
    outcome, out, err = run_job(tmp_path, command, tier=tier, lock=lock, wrapper=python(IGNORE_SIGNALS))
    assert (outcome, err) == ("Exited(code=0)", "")
    seen = json.loads(out)
    ignored_by_python = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1  # by the job's own interpreter
    assert seen == {
        "fds": [0, 1, 2],
        "stdin": "/dev/null",
        "blocked": [],
        "ignored": [f"{ignored_by_python:016x}"],
        "session": True,
        "oom": min(before + 500, 1000),
        "env": sorted({"PATH", "SEAL_OF_TEST", "LC_CTYPE"} & {*seen["env"]}),
        "cwd": str(tmp_path),
    }
    assert {"PATH", "SEAL_OF_TEST"} <= {*seen["env"]}
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600


@in_both_tiers
def test_output_is_appended(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    (tmp_path / "out").write_text("before\n")
    assert run_job(tmp_path, ["sh", "-c", "echo out; echo err >&2"], tier=tier) == (
        "Exited(code=0)",
        "before\nout\n",
        "err\n",
    )


def on_term(act: str) -> list[str]:
    """A program that says `up`, waits, and acts on every SIGTERM."""
    return python(
        f"""
        import os, signal, time
        signal.signal(signal.SIGTERM, lambda *_: ({act}))
        print("up", flush=True)
        while True: time.sleep(0.02)  # pause() would sleep on, had the signal come just before it
        """
    )


@in_both_tiers
def test_terminate_lets_the_job_finish_and_does_not_wait_out_the_grace(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    with Stage(tmp_path, on_term("print('bye', flush=True), os._exit(7)"), tier=tier, grace_s=60) as stage:
        wait_until(lambda: stage.output() == "up\n", 10)
        stage.order("terminate 0")
        assert stage.outcome() == "Exited(code=7)"
        assert stage.output() == "up\nbye\n"


@in_both_tiers
def test_each_is_asked_once_and_those_born_meanwhile_are_asked_too(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    script = """
        import os, signal, time
        def on_term(*_):
            print("term", flush=True)
            late = os.fork()
            if not late:
                signal.signal(signal.SIGTERM, lambda *_: (print("late term", flush=True), os._exit(0)))
                os.write(orphan_w, b"x")  # whose end makes the guardian look again
                while True: time.sleep(0.02)
            os.waitpid(late, 0)
            os._exit(7)
        orphan_r, orphan_w = os.pipe()
        middle = os.fork()
        if not middle:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # before the orphan is there to be asked
            if os.fork():
                os._exit(0)
            os.read(orphan_r, 1)
            os._exit(0)
        os.waitpid(middle, 0)
        signal.signal(signal.SIGTERM, on_term)
        print("up", flush=True)
        while True: time.sleep(0.02)
    """
    with Stage(tmp_path, python(script), tier=tier, grace_s=60) as stage:
        wait_until(lambda: stage.output() == "up\n", 10)
        stage.order("terminate 0")
        assert stage.outcome() == "Exited(code=7)"
        assert stage.output() == "up\nterm\nlate term\n"


@in_both_tiers
def test_kill_gives_no_grace_and_overtakes_a_terminate(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    with Stage(tmp_path, on_term("print('term', flush=True)"), tier=tier, grace_s=60) as stage:
        wait_until(lambda: stage.output() == "up\n", 10)
        stage.order("terminate 0")
        wait_until(lambda: stage.output() == "up\nterm\n", 10)
        stage.order("kill 0")
        assert stage.outcome() == "Signalled(signal=9)"


@in_both_tiers
def test_what_is_stopped_is_ended_too(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    with Stage(tmp_path, on_term("os._exit(5)"), tier=tier, grace_s=60) as stage:
        wait_until(lambda: stage.output() == "up\n", 10)
        stop(stage.job_pid)
        stop(stage.guardian_pid)
        stage.order("terminate 0")
        assert stage.outcome() == "Exited(code=5)"


@in_both_tiers
def test_the_pids_told_are_those_that_everybody_sees(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    with Stage(tmp_path, ["sleep", "60"], tier=tier) as stage:
        command = Path(f"/proc/{stage.job_pid}/cmdline")
        wait_until(lambda: command.read_bytes() == b"sleep\x0060\x00", 10)
        parents = re.search(r"^PPid:\t(\d+)$", Path(f"/proc/{stage.job_pid}/status").read_text(), re.MULTILINE)
        assert parents
        assert int(parents[1]) == stage.guardian_pid
        stage.order("kill 0")
        assert stage.outcome() == "Signalled(signal=9)"


@in_both_tiers
def test_a_guardian_ignores_what_a_terminal_or_a_process_group_gets(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    with Stage(tmp_path, ["sleep", "60"], tier=tier) as stage:
        guardian = stage.guardian_pid
        assert os.getsid(guardian) != os.getsid(stage.supervisor_pid)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            os.kill(guardian, number)
        stage.order("terminate 0")
        assert stage.outcome() == "Signalled(signal=15)"


@in_both_tiers
def test_use_is_that_of_all_descendants(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    script = """
        import os, time
        if not os.fork():
            if not os.fork():
                room = bytearray(80 << 20)
                while time.process_time() < 0.3: pass
                open("burnt", "w").close()
                os._exit(0)
            os._exit(0)
        os.wait()
        while not os.path.exists("enough"): time.sleep(0.01)
    """
    with Stage(tmp_path, python(script), tier=tier, grace_s=60) as stage:
        stage.await_start()
        earlier = wait_until(lambda: (used := stage.cpu_s()) > 0.2 and used, 20, what="CPU time is seen as it is used")
        assert stage.cpu_s() >= earlier
        wait_until((tmp_path / "burnt").exists, 20)
        (tmp_path / "enough").touch()
        assert stage.outcome() == "Exited(code=0)"
        assert 0.3 <= stage.facts[0].cpu_s < 3
        assert 80 << 20 <= stage.facts[0].peak_rss_bytes < 200 << 20


def test_the_use_of_a_job_is_known_when_its_guardian_was_killed(tmp_path: Path) -> None:
    script = """
        import os, time
        if not os.fork():
            while time.process_time() < 0.2: pass
            open("up", "w").close()
        time.sleep(60)
    """
    with Stage(tmp_path, python(script)) as stage:
        wait_until((tmp_path / "up").exists, 20)
        os.kill(stage.guardian_pid, signal.SIGKILL)
        stage.await_loss()
        assert stage.outcome() == "Signalled(signal=9)"
        assert stage.facts[0].cpu_s >= 0.2


@in_both_tiers
def test_an_idle_guardian_is_never_woken(tier: int, tmp_path: Path) -> None:
    need_tier(tier)

    def switches(pid: int) -> int:
        return sum(map(int, re.findall(r"ctxt_switches:\t(\d+)", Path(f"/proc/{pid}/status").read_text())))

    # The shell reaps its own children, so that nothing of theirs reaches the guardian.
    with Stage(tmp_path, ["sh", "-c", "sleep 0.5; : > rested; sleep 60"], tier=tier) as stage:
        guardian = stage.guardian_pid
        wait_until(lambda: state_of(guardian) == "S", 10)
        before = switches(guardian)
        wait_until((tmp_path / "rested").exists, 10)
        assert switches(guardian) == before
        stage.order("kill 0")
        assert stage.outcome() == "Signalled(signal=9)"


def holder(path: Path, byte: int) -> int:
    """Who holds a record lock on that byte of the file; 0 for nobody."""
    with path.open("r+b") as file:
        asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        kind, *_, pid = struct.unpack(FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
    return 0 if kind == fcntl.F_UNLCK else int(pid)


def is_locked(path: Path) -> bool:
    with path.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@in_both_tiers
def test_each_guardian_is_named_by_a_byte_of_the_lock(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    lock = tmp_path / "lock"
    with Stage(tmp_path, ["sleep", "60"], tier=tier, lock=lock, more=[{}]) as stage:
        stage.await_start(2)
        assert [holder(lock, byte) for byte in (1, 2, 3)] == [*(guardian for guardian, _ in stage.started), 0]
        stage.order("kill 0")
        stage.order("kill 1")
        stage.outcome(0)
        stage.outcome(1)
        assert [holder(lock, byte) for byte in (1, 2)] == [0, 0]


@in_both_tiers
def test_the_lock_is_held_until_the_last_of_supervisor_and_guardian_has_ended(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    lock = tmp_path / "lock"
    with Stage(tmp_path, ["sleep", "60"], tier=tier, lock=lock) as stage:
        guardian, job = stage.guardian_pid, stage.job_pid
        stop(guardian)
        os.kill(stage.supervisor_pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(stage.supervisor_pid), 10)
        assert is_locked(lock)
        assert holder(lock, 1) == guardian
        assert is_alive(job)
        os.kill(guardian, signal.SIGCONT)
        wait_until(lambda: not is_locked(lock), 10)
        assert not is_alive(job)


@in_both_tiers
def test_a_second_guardian_does_not_keep_the_lifeline_of_the_first_alive(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    with Stage(tmp_path, ["sleep", "60"], tier=tier, more=[{}]) as stage:
        stage.await_start(2)
        (first, first_job), (second, second_job) = stage.started
        stop(second)
        os.kill(stage.supervisor_pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(first), 10, what="the first guardian has ended")
        assert not is_alive(first_job)
        assert is_alive(second_job)
        os.kill(second, signal.SIGCONT)
        wait_until(lambda: not is_alive(second), 10)
        assert not is_alive(second_job)


@in_both_tiers
def test_a_rescue_spares_the_other_guardians(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    name = f"ev-{secrets.token_hex(5)}"
    evil = [interpreter("me"), "-I", "-S", evil_path("me"), "bomb", name, "10", "stay"]
    with Stage(
        tmp_path, evil, tier=tier, more=[{"argv": ["sh", "-c", "sleep 60 & wait"], "containment": 3 - tier}]
    ) as stage:
        if tier == 2:
            need_tier(1)
        stage.await_start(2)
        wait_until(lambda: len(survivors(name)) > 40, 10)
        os.kill(stage.guardian_pid, signal.SIGKILL)
        stage.await_loss()
        assert stage.outcome(0).startswith("Signalled(")
        assert survivors(name) == []
        assert is_alive(stage.started[1][1])
        stage.order("terminate 1")
        assert stage.outcome(1) == "Signalled(signal=15)"


@in_both_tiers
def test_a_guardian_that_does_not_answer_can_be_rescued_from(tier: int, tmp_path: Path) -> None:
    need_tier(tier)
    with Stage(tmp_path, ["sleep", "60"], tier=tier) as stage:
        job = stage.job_pid
        stop(stage.guardian_pid)
        stage.order("rescue 0")
        assert stage.outcome().startswith("Signalled(")
        assert not is_alive(job)
        assert not is_alive(stage.guardian_pid)


@pytest.mark.skipif(not ROOT, reason="only root can make a program that its caller may not kill")
def test_what_cannot_be_killed_is_told_and_the_guardian_stays_with_it(tmp_path: Path) -> None:
    setpriv = shutil.which("setpriv")
    if not setpriv:
        pytest.skip("setpriv is not installed")
    with grounds("nobody", tmp_path) as ground:
        become_root = ground / "become-root"
        shutil.copy(setpriv, become_root)
        become_root.chmod(0o4755)
        lock = ground / "lock"
        argv = [str(become_root), "--reuid=0", "--regid=0", "--clear-groups", "sleep", "60"]
        settings = {"UNKILLABLE_AFTER_S": 0.2, "RETRY_UNKILLABLE_S": 0.1}
        with Stage(ground, argv, user="nobody", lock=lock, settings=settings) as stage:
            job = stage.job_pid
            if os.stat(ground).st_dev and os.statvfs(ground).f_flag & os.ST_NOSUID:
                pytest.skip("set-user-ID programs do not work on that file system")
            wait_until(lambda: Path(f"/proc/{job}/comm").read_text() == "sleep\n", 10)
            stage.order("terminate 0")
            stage.await_outcome(f"Unkillable(pids=({job},))")
            assert not stage.facts[0].gone
            assert is_locked(lock)
            os.kill(job, signal.SIGKILL)
            assert stage.outcome() == "Signalled(signal=9)"


def test_a_job_with_closed_standard_streams_in_the_supervisor_runs(tmp_path: Path) -> None:
    body = f"""
        import os, select, sys
        sys.path.insert(0, {str(PACKAGE.parent)!r})
        from git_orch.guardian import Guard, Job
        from git_orch.containment import Containment
        guard = Guard.start(Job(argv=("sh", "-c", "echo hello; echo there >&2"), env={{"PATH": os.environ["PATH"]}},
            cwd={str(tmp_path)!r}, stdout_path={str(tmp_path / "out")!r}, stderr_path={str(tmp_path / "err")!r},
            containment=Containment(tier=2)), lock_fd=None)
        while not guard.gone:
            select.select([guard], [], [])
            guard.read()
        open({str(tmp_path / "outcome")!r}, "w").write(repr(guard.outcome))
    """
    subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *python(body)], check=True, timeout=60)
    assert (tmp_path / "outcome").read_text() == "Exited(code=0)"
    assert ((tmp_path / "out").read_text(), (tmp_path / "err").read_text()) == ("hello\n", "there\n")


@for_each_user
def test_a_job_of_tier_1_sees_itself_alone(user: str, tmp_path: Path) -> None:
    need_tier(1, user)
    with grounds(user, tmp_path) as ground:
        script = """
            echo $$; ls -d /proc/[0-9]*; kill -9 1; echo on
            grep -E '^(NoNewPrivs|CapEff|CapBnd|CapAmb)' /proc/self/status
        """
        outcome, out, _ = run_job(ground, ["sh", "-c", script], tier=1, user=user)
        pid, *rest = out.split("\n")
        assert outcome == "Exited(code=0)"
        assert int(pid) < 10
        assert "/proc/1" in rest
        assert "/proc/" + pid in rest
        assert len([line for line in rest if line.startswith("/proc/")]) == 2
        assert {"NoNewPrivs:\t1", "CapAmb:\t0000000000000000", "on"} <= {*rest}
        sets = [line.split()[1] for line in rest if line.startswith("Cap")]
        effective, bounding, _ = (int(digits, 16) for digits in sets)
        forbidden = sum(1 << capability for capability in (2, 16, 17, 18, 19, 21, 27))
        assert effective & forbidden == bounding & forbidden == 0
        assert user == "me" or effective == 0


def test_the_supervisor_loads_nothing_heavy() -> None:
    body = f"""
        import sys
        sys.path.insert(0, {str(PACKAGE.parent)!r})
        import git_orch.guardian, git_orch.containment.probe, git_orch.containment.strays
        print(*sorted(sys.modules))
    """
    done = subprocess.run(python(body), capture_output=True, text=True, check=True, timeout=60)
    loaded = {*done.stdout.split()}
    assert not loaded & {
        "dataclasses", "enum", "typing", "re", "json", "subprocess", "tempfile", "shutil", "signal", "contextlib",
        "collections", "functools", "hashlib", "logging", "pathlib", "ctypes", "threading", "warnings",
    }  # fmt: skip
