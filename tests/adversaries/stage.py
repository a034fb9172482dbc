"""A lean supervisor with its jobs, started by a test, and what a test asks of them."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from git_orch.containment import Containment, View
from tests.seal import MARKER
from tests.waiting import wait_until

ADVERSARIES = Path(__file__).parent
PACKAGE = ADVERSARIES.parents[1] / "git_orch"
EVENT_TIMEOUT_S = 30.0
CAGE_TIMEOUT_S = 30.0
NOBODY = 65534
OUTSIDE_TMP = os.environ.get("TMPDIR", "/tmp")  # before the seal: nobody cannot enter the folders of a test
ROOT = os.geteuid() == 0

USERS = ("me", "nobody") if ROOT else ("me",)
TIERS = (1, 2)


def prefix(user: str) -> list[str]:
    """What a command line begins with so that it runs as the user, without the rights that setpriv keeps till exec."""
    if user == "me":
        return []
    setpriv = shutil.which("setpriv")
    if not setpriv:
        pytest.skip("setpriv is not installed")
    return [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "sh", "-c", 'exec "$0" "$@"']


@cache
def interpreter(user: str) -> str:
    """A Python that the user may execute."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        if os.path.exists(python):
            check = [*prefix(user), python, "-I", "-S", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
            try:
                if subprocess.run(check, cwd="/", capture_output=True, timeout=30, check=False).returncode == 0:
                    return python
            except OSError:
                pass
    pytest.skip(f"no Python 3.11 that {user} may execute")


@contextmanager
def grounds(user: str, tmp_path: Path, base: str = OUTSIDE_TMP) -> Iterator[Path]:
    """A folder of the user's that can be entered, gone afterwards."""
    if user == "me" and base == OUTSIDE_TMP:
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="git-orch-test-", dir=base))
    try:
        if user != "me":
            os.chown(folder, NOBODY, NOBODY)
        yield folder
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", folder], check=False, capture_output=True)
        shutil.rmtree(folder)


@cache
def readable_copies() -> Path:
    """The package and the adversaries where every user can read them; removed when the interpreter exits."""
    import atexit

    folder = Path(tempfile.mkdtemp(prefix="git-orch-test-", dir=OUTSIDE_TMP))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder / "git_orch", ignore=ignored)
    shutil.copytree(ADVERSARIES, folder / "adversaries", ignore=ignored)
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    return folder


def evil_path(user: str) -> str:
    return str((ADVERSARIES if user == "me" else readable_copies() / "adversaries") / "evil.py")


def run_as(user: str, body: str, *arguments: str) -> str:
    """What a piece of Python, which finds the package and has the arguments as `argv`, prints as that user."""
    copies = PACKAGE.parent if user == "me" else readable_copies()
    script = f"import sys; sys.path.insert(0, sys.argv[1]); argv = sys.argv[2:]\n{body}"
    command = [*prefix(user), interpreter(user), "-I", "-S", "-c", script, str(copies), *arguments]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def containment_here(user: str) -> Containment:
    """What the probe says of this machine, for that user."""
    body = """from git_orch.containment.probe import probe
answer = probe(argv[0])
print(answer.tier, int(answer.overlay), answer.degraded_reason)"""
    folder = tempfile.mkdtemp(prefix="git-orch-test-", dir=OUTSIDE_TMP)
    try:
        if user != "me":
            os.chown(folder, NOBODY, NOBODY)
        tier, overlay, reason = run_as(user, body, folder).strip("\n").split(" ", 2)
    finally:
        os.rmdir(folder)
    return Containment(tier=1 if tier == "1" else 2, overlay=overlay == "1", degraded_reason=reason)


@cache
def has_namespaces(user: str) -> bool:
    """Whether another program can make the namespaces of tier 1 here: then ours has to."""
    unshare = shutil.which("unshare")
    if not unshare:
        return False
    as_root = ROOT and user == "me"
    command = [*prefix(user), unshare, *(() if as_root else ("--user", "--map-root-user")), "--pid", "--fork"]
    mounts = ["sh", "-c", "mount -t tmpfs none /mnt && umount /mnt"]
    done = subprocess.run([*command, "--mount-proc", *mounts], cwd="/", capture_output=True, timeout=60, check=False)
    return done.returncode == 0


def need_tier(tier: int, user: str = "me") -> None:
    """The test is skipped where the machine does not give that tier, and fails where it does and our probe does not."""
    here = containment_here(user)
    if tier < here.tier:
        assert not has_namespaces(user), f"unshare makes namespaces here, the probe does not: {here.degraded_reason}"
        pytest.skip(f"tier {tier} is not to be had here: {here.degraded_reason}")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the supervisor tells of one guard."""

    outcome: str
    gone: bool
    cpu_s: float
    peak_rss_bytes: int
    fault: str
    denied: bool


class Stage:
    """A lean supervisor in its cage. Leaving the block ends all of it; a cage that could not is a failure."""

    def __init__(
        self,
        ground: Path,
        argv: Sequence[str],
        *,
        tier: int = 2,
        user: str = "me",
        grace_s: float = 0.2,
        view: View | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | str | None = None,
        more: Sequence[Mapping[str, Any]] = (),
        lock: Path | None = None,
        settings: Mapping[str, float] | None = None,
        wrapper: Sequence[str] = (),
    ) -> None:
        self._ground = ground
        self._user = user
        job: dict[str, Any] = {
            "argv": list(argv),
            "env": {"PATH": os.environ["PATH"], MARKER: os.environ.get(MARKER, ""), **(env or {})},
            "cwd": str(cwd or ground),
            "stdout_path": str(ground / "out"),
            "stderr_path": str(ground / "err"),
            "containment": tier,
            "grace_s": grace_s,
            "view": view.fields() if view else None,
        }
        self._setting = json.dumps(
            {
                "jobs": [job, *({**job, **changes} for changes in more)],
                "lock": str(lock) if lock else None,
                "settings": dict(settings or {}),
            }
        )
        self._wrapper = wrapper
        self._heard = b""

    def __enter__(self) -> Self:
        copies = PACKAGE.parent if self._user == "me" else readable_copies()
        supervisor = (ADVERSARIES if self._user == "me" else copies / "adversaries") / "lean_supervisor.py"
        leash_r, self._leash = os.pipe()
        command = [*self._wrapper, *prefix(self._user), interpreter(self._user), "-I", "-S", str(supervisor)]
        with (self._ground / "stage-errors").open("ab") as errors:
            self._cage = subprocess.Popen(
                [*command, str(copies), str(leash_r), self._setting],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=[leash_r],
                cwd=self._ground,
            )
        os.close(leash_r)
        self.supervisor_pid = 0
        self.started: list[tuple[int, int]] = []
        self.facts: dict[int, Facts] = {}
        self.lost: list[int] = []
        self._cpu_s: dict[int, float] = {}
        self._await(lambda: self.supervisor_pid, "supervisor")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        os.close(self._leash)
        for pipe in (self._cage.stdin, self._cage.stdout):
            if pipe:
                pipe.close()
        status = self._cage.wait(CAGE_TIMEOUT_S)
        if kind is None:
            assert status == 0, f"the cage was not empty; {(self._ground / 'stage-errors').read_text()}"

    def await_start(self, number: int = 1) -> None:
        """So many jobs have been started, or were found not to start."""
        self._await(lambda: len(self.started) >= number, "started")

    @property
    def guardian_pid(self) -> int:
        self.await_start()
        return self.started[0][0]

    @property
    def job_pid(self) -> int:
        self.await_start()
        return self.started[0][1]

    def order(self, order: str) -> None:
        assert self._cage.stdin
        self._cage.stdin.write(order.encode() + b"\n")
        self._cage.stdin.flush()

    def outcome(self, number: int = 0) -> str:
        """The last outcome of the job, as soon as its guard is gone."""
        self._await(lambda: number in self.facts and self.facts[number].gone, f"outcome {number}")
        return self.facts[number].outcome

    def await_outcome(self, outcome: str, number: int = 0) -> None:
        """The job has that outcome for now."""
        self._await(lambda: number in self.facts and self.facts[number].outcome == outcome, outcome)

    def await_loss(self, number: int = 0) -> None:
        """The supervisor has found the guardian dead."""
        self._await(lambda: number in self.lost, f"lost {number}")

    def cpu_s(self, number: int = 0) -> float:
        """What the guard says of CPU use at this moment."""
        self._cpu_s.pop(number, None)
        self.order(f"cpu {number}")
        self._await(lambda: number in self._cpu_s, "cpu")
        return self._cpu_s[number]

    def _await(self, condition: Callable[[], object], what: str) -> None:
        assert self._cage.stdout
        while not condition():
            ready, _, _ = select.select([self._cage.stdout], [], [], EVENT_TIMEOUT_S)
            part = os.read(self._cage.stdout.fileno(), 1 << 16) if ready else b""
            assert part, f"no event {what}; {self.facts} {(self._ground / 'stage-errors').read_text()}"
            *lines, self._heard = (self._heard + part).split(b"\n")
            for line in lines:
                self._take(*json.loads(line))

    def _take(self, event: str, *about: Any) -> None:
        match event, about:
            case "supervisor", [pid]:
                self.supervisor_pid = pid
            case "started", [guardian, job, *facts]:
                self.facts[len(self.started)] = Facts(*facts)
                self.started.append((guardian, job))
            case "outcome", [number, *facts]:
                self.facts[number] = Facts(*facts)
            case "lost", [number]:
                self.lost.append(number)
            case "cpu", [number, seconds]:
                self._cpu_s[number] = seconds

    def output(self) -> str:
        return read_if_there(self._ground / "out")


def run_job(ground: Path, argv: Sequence[str], **options: Any) -> tuple[str, str, str]:
    """The outcome of a job, and what it wrote to its two streams."""
    with Stage(ground, argv, **options) as stage:
        outcome = stage.outcome()
    return outcome, read_if_there(ground / "out"), read_if_there(ground / "err")


def read_if_there(path: Path) -> str:
    return path.read_text(errors="surrogateescape") if path.exists() else ""


def survivors(name: str) -> list[int]:
    """The processes, zombies not counted, that go by that name."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                stat = Path(f"/proc/{entry}/stat").read_bytes()
            except OSError:
                continue
            comm, _, rest = stat.partition(b"(")[2].rpartition(b")")
            if comm == name.encode() and rest.split()[0] not in (b"Z", b"X"):
                found.append(int(entry))
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def stop(pid: int) -> None:
    """The process is stopped, and has come to rest."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state_of(pid) == "T", 10)
