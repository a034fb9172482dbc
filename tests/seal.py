"""What a test may see of the machine, and what it may leave behind: nothing.

`sealed_environment` is the world of a test; `leftover_*` look at what remains of it afterwards. A process is known by
the marker in its environment, which it inherits and cannot lose except by an exec with another environment; those that
lost it are told by their working directory or command line, but never signalled: only the marker is proof.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MARKER = "SEAL_OF_TEST"
# Not ORCH_ or GIT_: git-orch strips those from what it starts, and the marker must be in all of it.
KEPT = ("PATH", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED")
KEPT_PREFIXES = ("PYTEST_", "COVERAGE_", "COV_")
AUTHOR_DATE = "2026-01-02T03:04:05+00:00"
COMMITTER_DATE = "2026-01-02T03:04:06+00:00"
GIT_CONFIG = """\
[user]
\tname = A U Thor
\temail = author@example.com
[init]
\tdefaultBranch = main
[gc]
\tautoDetach = false
[maintenance]
\tautoDetach = false
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seal:
    """The world of one test: `root` is its tmp_path, `tmp` its TMPDIR, `marker` what its processes carry."""

    root: Path
    marker: str

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"


@dataclass(frozen=True, kw_only=True, slots=True)
class Leftover:
    """A process that a test left; `ours` where it carries the marker and so may be ended."""

    pid: int
    command: str
    ours: bool

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command or 'no command line'})" + (
            "" if self.ours else ", without the marker"
        )


def make_seal(root: Path) -> Seal:
    """The folders of a sealed world exist under root: home, tmp and run, closed to others."""
    seal = Seal(root=root, marker=secrets.token_hex(16))
    for folder in (seal.home, seal.tmp, root / "run"):
        folder.mkdir(mode=0o700)
    (seal.home / ".gitconfig").write_text(GIT_CONFIG, encoding="utf-8")
    return seal


def sealed_environment(seal: Seal, outside: Mapping[str, str], bin_folder: Path) -> dict[str, str]:
    """The whole environment of a test: nothing of the outside but PATH and what the test runner itself needs.

    `bin_folder`, where this interpreter's `git-orch` lies, comes first in PATH, so that `git orch` finds it.
    """
    kept = {name: value for name, value in outside.items() if name in KEPT or name.startswith(KEPT_PREFIXES)}
    return kept | {
        "PATH": os.pathsep.join([str(bin_folder), outside.get("PATH", os.defpath)]),
        "HOME": str(seal.home),
        "TMPDIR": str(seal.tmp),
        "XDG_CONFIG_HOME": str(seal.home / ".config"),
        "XDG_CACHE_HOME": str(seal.home / ".cache"),
        "XDG_DATA_HOME": str(seal.home / ".local/share"),
        "XDG_STATE_HOME": str(seal.home / ".local/state"),
        "XDG_RUNTIME_DIR": str(seal.root / "run"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(seal.home / ".gitconfig"),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_DATE": AUTHOR_DATE,
        "GIT_COMMITTER_DATE": COMMITTER_DATE,
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "COLUMNS": "80",
        MARKER: seal.marker,
    }


def leftover_processes(seal: Seal) -> list[Leftover]:
    """The processes that the test started and that still run, other than the test's own; zombies do not count."""
    found = (
        _leftover(int(name), seal) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()
    )
    return [process for process in found if process]


def _leftover(pid: int, seal: Seal) -> Leftover | None:
    """The process, if it is the test's: by marker, by working directory or by command line."""
    command = _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
    ours = f"{MARKER}={seal.marker}".encode() in _read(f"/proc/{pid}/environ").split(b"\0")
    root = str(seal.root)
    if ours or _within(root, _link(f"/proc/{pid}/cwd")) or root in command:
        return Leftover(pid=pid, command=command[:200], ours=ours) if _alive(pid) else None
    return None


def _within(root: str, path: str) -> bool:
    return path == root or path.startswith(root + "/")


def _read(path: str) -> bytes:
    """The file's bytes; none where it is gone or somebody else's."""
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _alive(pid: int) -> bool:
    """Whether the process is there and no zombie; the state follows the last parenthesis (proc(5))."""
    state = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return bool(state) and state[0] not in (b"Z", b"X")


def end(process: Leftover, seal: Seal) -> bool:
    """The process was sent SIGKILL, by a pidfd and only because it carries this very marker."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        # Looked at once more through the open pidfd: the pid may have been given to somebody else since.
        now = _leftover(process.pid, seal)
        if now is None or not now.ours:
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)
    return True


def leftover_trees(seal: Seal) -> list[Path]:
    """The folders of runs that are still under the test's TMPDIR; parked trees (`warm`) are no run's."""
    return sorted(seal.tmp.glob("git-orch-*/[0-9]*"))


def leftover_entries(seal: Seal) -> list[Path]:
    """What is left in `.orch/pending` (or `orch/live/pending` in a git directory) of the repositories of the test."""
    return sorted(path for pending in _pending_folders(seal.root) for path in pending.iterdir())


def held_locks(seal: Seal) -> list[Path]:
    """The locks of runs that somebody holds."""
    return [path for path in leftover_entries(seal) if path.suffix == ".lock" and _is_held(path)]


def _pending_folders(root: Path) -> Iterator[Path]:
    for folder, names, _ in os.walk(root):
        here = Path(folder)
        if here.name == "pending" and here.parent.name in (".orch", "live"):
            yield here
        # Loose objects are many and hold no registry; folders that a test closed to itself are skipped by walk.
        names[:] = [name for name in names if name not in ("objects", "refs", "hooks")]


def _is_held(path: Path) -> bool:
    """Whether somebody holds an flock or a record lock on the file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EAGAIN, errno.EACCES)
    finally:
        os.close(descriptor)
    return False
