"""The registry of live runs, `.orch/pending`: the intent, the state, how others ask, and who is alive.

The launcher writes the intent before its supervisor exists; everything after that is the supervisor's alone, or, once
that is dead, the reaper's that holds the lock. Nothing in here is believed without a MAC by this user's key, and nothing
is ever signalled or deleted because a file names it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from _stat import S_ISDIR, S_ISREG

from git_orch import atomic, jsontext
from git_orch import key as keys
from git_orch.errors import EnvironmentProblem, ForeignDirectory
from git_orch.model import LIVE, SCHEMA_VERSION, Record, ReviewerSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.layout import Layout
    from git_orch.model import Access, Disposition, Json, Status, Threshold

BY_HAND = "you"
"""The client of a run that a person started: such runs do not wait for a turn."""
ENTRY_LIMIT = 64 << 10
_HALF = 2048
SUPERVISOR_BYTE, GUARDIAN_BYTE = 0, 1
_FLOCK_LAYOUT = "hhqqi4x"  # struct flock of Linux on 64-bit machines: type, whence, start, length, pid
_HEX = frozenset("0123456789abcdef")
_NOFOLLOW = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC if os.name != "nt" else 0


class Intent(Record):
    """What a run was asked to do. Written once, before anyone works on it; never changed."""

    run_id: str
    tree_id: str
    base_tree_id: str
    subject: str
    base_name: str
    temp_root: str
    run_dir: str
    durable: str
    common_dir: str
    git_dir: str
    objects: str
    object_format: str
    worktree_path: str
    started_at: str
    reviewers: tuple[ReviewerSettings, ...]
    schema_version: str = SCHEMA_VERSION
    task_kind: str = "review"
    kind: str = "code"
    access: Access = "read-only"
    disposition: Disposition = "discard"
    base_commit: str = ""
    head: str = ""
    commit_oid: str = ""
    status_path: str = ""
    result_path: str = ""
    client: str = "unknown"
    session_id: str = "unknown"
    machine_id: str = ""
    boot_id: str = ""
    pid_ns: str = ""
    instance: str = ""
    attempt: int = 1
    deadline: str = ""
    dedup_key: str = ""
    fail_on: Threshold = "blocking"
    sandbox: bool = True
    provide: tuple[str, ...] = ()
    pathspec: tuple[str, ...] = ()
    settle_s: float = 0.0
    snapshot_ms: int = 0
    keep_runs: int = 200
    keep_days: int = 30
    keep_bytes: int = 1 << 30

    def to_json(self) -> Json:
        """The record as JSON has it; `host` is the older name of `client`."""
        reviewers = [reviewer.fields() for reviewer in self.reviewers]
        return {**self.fields(), "reviewers": reviewers, "host": self.client}

    @classmethod
    def from_json(cls, value: Json) -> Intent:
        """The record that `to_json` gave.

        Raises:
            TypeError: a field is missing; unknown ones (of a newer version) are passed over.
        """
        known = {name: value[name] for name in cls._fields if name in value}
        known["reviewers"] = tuple(
            ReviewerSettings(**{name: given for name, given in reviewer.items() if name in ReviewerSettings._fields})
            for reviewer in known.get("reviewers", ())
        )
        for name in ("provide", "pathspec"):
            known[name] = tuple(known.get(name, ()))
        return cls(**known)


class State(Record):
    """How far a run is. `jobs` are objects with the keys of design 2, for people to read."""

    status: Status
    terminal_reason: str = ""
    supervisor_pid: int = 0
    finished_at: str = ""
    jobs: tuple[Json, ...] = ()


class Refused(Record):
    """An entry that is not acted upon, and why."""

    run_id: str
    reason: str


class Lock(Record):
    """A run's lock, held by this process through `fd`."""

    run_id: str
    fd: int


class Held(Record):
    """Somebody lives: the supervisor or the guardian of the run."""


class Gone(Record):
    """There is no lock file: the run has ended and was taken away; that is not the same as dead."""


class Registry:
    """`.orch/pending` of one repository, opened by its user."""

    def __init__(self, live: str, key: bytes, instance: str) -> None:
        self.live = live
        self.pending = os.path.join(live, "pending")
        self.inbox = os.path.join(live, "inbox")
        self.instance = instance
        self._key = key
        self._inode = str(os.stat(self.pending).st_ino)

    # -- entries

    def publish(self, intent: Intent) -> Lock:
        """The entry is there, complete, and its lock was held before anyone could see it.

        Raises:
            EnvironmentProblem: the disk is full or the entry too large; nothing is left.
        """
        lock_path = self.path(intent.run_id, "lock")
        fd = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._create_state(intent.run_id)
            atomic.write(self.path(intent.run_id, "json"), self._sealed(intent), durable=False)
        except OSError as error:
            self.remove(intent.run_id)
            os.close(fd)
            raise EnvironmentProblem(f"cannot write {self.pending}: {error.strerror}", "free some space there") from error
        except BaseException:
            self.remove(intent.run_id)
            os.close(fd)
            raise
        return Lock(run_id=intent.run_id, fd=fd)

    def run_ids(self) -> list[str]:
        """All runs that have an entry, oldest first; names that are no run-id are left out."""
        try:
            names = os.listdir(self.pending)
        except OSError:
            return []
        return sorted(name[:-5] for name in names if name.endswith(".json") and is_run_id(name[:-5]))

    def intent(self, run_id: str) -> Intent | Refused:
        """The run's intent, or why it is not believed."""
        raw = self._plain_file(run_id, "json")
        if isinstance(raw, Refused):
            return raw
        body, _, tail = raw.rstrip(b"\n").rpartition(b"\n")
        word, _, given = tail.partition(b" ")
        expected = keys.mac(self._key, self.instance, self._inode, run_id, body)
        if word != b"mac" or not keys.same(given.decode("latin-1"), expected):
            return Refused(run_id=run_id, reason="copied or not ours: its MAC does not fit this folder")
        try:
            return Intent.from_json(jsontext.loads(body))
        except (jsontext.JsonTextError, TypeError, AttributeError):
            return Refused(run_id=run_id, reason="of another version of git-orch")

    def remove(self, run_id: str) -> None:
        """Nothing of the run is left in the registry. The caller holds its lock."""
        for kind in ("json", "state", "ask", "lock"):
            try:
                os.unlink(self.path(run_id, kind))
            except FileNotFoundError:
                continue

    def path(self, run_id: str, kind: str) -> str:
        """The path of one of the run's files: json, state, ask or lock."""
        return os.path.join(self.pending, f"{run_id}.{kind}")

    # -- state

    def write_state(self, run_id: str, state: State) -> None:
        """The state is the one given: written into the older half of preallocated space, so that it works on a full
        disk and a crash in the middle leaves the other half."""
        fd = os.open(self.path(run_id, "state"), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            seq = max((number for number, _ in self._halves(run_id, os.pread(fd, 2 * _HALF, 0))), default=0) + 1
            os.pwrite(fd, self._half(run_id, seq, state), seq % 2 * _HALF)
        finally:
            os.close(fd)

    def state(self, run_id: str) -> State | None:
        """The newest state that is whole, or None."""
        raw = self._plain_file(run_id, "state")
        if isinstance(raw, Refused):
            return None
        halves = self._halves(run_id, raw)
        return max(halves, key=lambda half: half[0])[1] if halves else None

    # -- asking

    def ask(self, run_id: str, word: str) -> bool:
        """The supervisor will see the word within a second; False where somebody asked before."""
        try:
            return atomic.create(self.path(run_id, "ask"), word.encode("ascii"))
        except FileNotFoundError:
            return False

    def asked(self, run_id: str) -> str:
        """What somebody asked of the run: "", "cancel" or "superseded-by RUN"."""
        raw = self._plain_file(run_id, "ask")
        return "" if isinstance(raw, Refused) else raw.decode("ascii", "replace").strip()

    # -- who lives

    def try_lock(self, run_id: str) -> Lock | Held | Gone:
        """The run's lock is ours, where nobody lives that held it."""
        path = self.path(run_id, "lock")
        try:
            fd = os.open(path, os.O_RDWR | _NOFOLLOW)
        except OSError:
            return Gone()
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self.still_there(Lock(run_id=run_id, fd=fd)):
                return Lock(run_id=run_id, fd=fd)
        except OSError as error:
            os.close(fd)
            return Held() if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else Gone()
        os.close(fd)
        return Gone()

    def still_there(self, lock: Lock) -> bool:
        """Whether the lock's path still names the file that we hold: an unlinked one keeps nobody out."""
        try:
            there = os.stat(self.path(lock.run_id, "lock"), follow_symlinks=False)
        except OSError:
            return False
        ours = os.fstat(lock.fd)
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino) and S_ISREG(there.st_mode)

    def supervisor_pid(self, run_id: str) -> int:
        """The pid of the live supervisor, by the kernel's word; 0 where there is none.

        The flock does not tell: it goes on naming the launcher, whose pid may be an innocent's by now. Never called by
        the holder itself: closing any descriptor of a file gives up the record locks that a process has on it.
        """
        return self._holder(run_id, SUPERVISOR_BYTE)

    def guardian_pid(self, run_id: str) -> int:
        """The pid of the run's live guardian, by the kernel's word; 0 where there is none."""
        return self._holder(run_id, GUARDIAN_BYTE)

    def _holder(self, run_id: str, byte: int) -> int:
        try:
            fd = os.open(self.path(run_id, "lock"), os.O_RDWR | _NOFOLLOW)
        except OSError:
            return 0
        try:
            question = struct.pack(_FLOCK_LAYOUT, fcntl.F_WRLCK, 0, byte, 1, 0)
            kind, _, _, _, pid = struct.unpack(_FLOCK_LAYOUT, fcntl.fcntl(fd, fcntl.F_GETLK, question))
        except OSError:
            return 0
        finally:
            os.close(fd)
        return pid if kind != fcntl.F_UNLCK else 0

    # -- a folder that was wiped under a live run

    def restore(self, intent: Intent, state: State) -> Lock:
        """Folder, lock and entry of a live run are there again, after `git clean -fdx` took them. The supervisor's own."""
        make_folder(self.live, self.instance)
        self._inode = str(os.stat(self.pending).st_ino)
        self.remove(intent.run_id)
        lock = self.publish(intent)
        self.write_state(intent.run_id, state)
        return lock

    # -- files

    def _plain_file(self, run_id: str, kind: str) -> bytes | Refused:
        """The content of a file that can only be ours: no link, no FIFO, no second name, not too large."""
        try:
            fd = os.open(self.path(run_id, kind), os.O_RDONLY | _NOFOLLOW)
        except OSError as error:
            return Refused(run_id=run_id, reason=f"cannot be read: {errno.errorcode.get(error.errno or 0, 'error')}")
        try:
            status = os.fstat(fd)
            if not S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_nlink > 1:
                return Refused(run_id=run_id, reason="not a plain file of ours")
            if status.st_size > ENTRY_LIMIT:
                return Refused(run_id=run_id, reason="too large")
            return atomic.read_all(fd)
        finally:
            os.close(fd)

    def _sealed(self, intent: Intent) -> bytes:
        body = jsontext.dumps(intent.to_json()).encode("ascii")
        sealed = body + b"\nmac " + keys.mac(self._key, self.instance, self._inode, intent.run_id, body).encode() + b"\n"
        if len(sealed) > ENTRY_LIMIT:
            raise EnvironmentProblem(f"the entry of the run is {len(sealed)} bytes", "fewer or shorter paths and commands")
        return sealed

    def _create_state(self, run_id: str) -> None:
        fd = os.open(self.path(run_id, "state"), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            first = self._half(run_id, 1, State(status="queued"))
            atomic.write_all(fd, b" " * _HALF + first)  # both halves are on the disk from now on
        finally:
            os.close(fd)

    def _half(self, run_id: str, seq: int, state: State) -> bytes:
        jobs = list(state.jobs)
        while True:
            body = jsontext.dumps({"seq": seq, **state.fields(), "jobs": jobs}).encode("ascii")
            if len(body) <= _HALF - 64 or not jobs:
                break
            jobs.pop()
        if len(body) > _HALF - 64:
            body = jsontext.dumps({"seq": seq, "status": state.status, "terminal_reason": "too long to keep"}).encode()
        mac = keys.mac(self._key, self.instance, run_id, "state", body)
        return (body + b"\n" + mac.encode() + b"\n").ljust(_HALF)

    def _halves(self, run_id: str, raw: bytes) -> list[tuple[int, State]]:
        found = []
        for half in (raw[:_HALF], raw[_HALF:]):
            body, _, mac = half.rstrip().rpartition(b"\n")
            expected = keys.mac(self._key, self.instance, run_id, "state", body)
            if not keys.same(mac.decode("latin-1"), expected):
                continue
            value = jsontext.loads(body)
            known = {name: value[name] for name in State._fields if name in value}
            found.append((value["seq"], State(**{**known, "jobs": tuple(known.get("jobs", ()))})))
        return found


def open_registry(layout: Layout, key: bytes) -> Registry | None:
    """The registry of the repository, or None where there is none yet.

    Raises:
        ForeignDirectory: `.orch` is something else.
    """
    if not os.path.lexists(layout.live):
        return None
    _check_folder(layout.live)
    instance = instance_of(layout.live)
    if not instance:
        raise _foreign(layout.live)
    for name in ("pending", "inbox"):
        os.makedirs(os.path.join(layout.live, name), mode=0o700, exist_ok=True)
    return Registry(layout.live, key, instance)


def ensure(layout: Layout, key: bytes, env: Mapping[str, str]) -> Registry:
    """The registry of the repository, made where there was none; of many that make it at once, one wins.

    Raises:
        ForeignDirectory: `.orch` is something else, or git tracks it.
        EnvironmentProblem: it cannot be written.
    """
    try:
        found = open_registry(layout, key)
        if found is None:
            os.makedirs(layout.durable, mode=0o755, exist_ok=True)
            make_folder(layout.live, os.urandom(8).hex())
            found = open_registry(layout, key)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {layout.live}: {error.strerror}") from error
    if found is None:
        raise EnvironmentProblem(f"{layout.live} was taken away while it was made", "try again")
    _refuse_tracked(layout, found.instance, env)
    return found


def _refuse_tracked(layout: Layout, instance: str, env: Mapping[str, str]) -> None:
    """A clone may bring an `.orch` of its own. What we made is known by its id beside git's own files, where no clone
    reaches; for any other, git is asked once whether it tracks it."""
    known = os.path.join(layout.durable, "instance")
    if (atomic.read(known, limit=64) or b"").decode("latin-1").strip() == instance:
        return
    if layout.worktree:
        git = layout.git(env).replace(git_dir="", work_tree="", cwd=os.path.dirname(layout.live))
        if git.attempt("ls-files", "-z", "--", layout.live).stdout:
            raise ForeignDirectory(
                f"{os.path.basename(layout.live)}/ is tracked by git, so it is not ours.", "git config orch.dir .git-orch"
            )
    atomic.write(known, instance.encode("ascii") + b"\n")


def make_folder(live: str, instance: str) -> None:
    """`.orch` is there, complete: built under another name and renamed, so that nobody sees half of it."""
    scratch = f"{live}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    os.makedirs(os.path.dirname(live), exist_ok=True)
    os.mkdir(scratch, 0o700)
    atomic.write(os.path.join(scratch, ".gitignore"), b"*\n", mode=0o644)
    atomic.write(os.path.join(scratch, "instance"), instance.encode("ascii") + b"\n", mode=0o644)
    for name in ("pending", "inbox"):
        os.mkdir(os.path.join(scratch, name), 0o700)
    try:
        os.rename(scratch, live)
    except OSError as error:
        for name in ("pending", "inbox"):
            os.rmdir(os.path.join(scratch, name))
        for name in (".gitignore", "instance"):
            os.unlink(os.path.join(scratch, name))
        os.rmdir(scratch)
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise


def make_run_id(now_s: float | None = None) -> str:
    """A run-id that sorts by time: UTC to the millisecond, dash, 8 random hex digits."""
    now_s = time.time() if now_s is None else now_s
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now_s))
    return f"{stamp}{int(now_s * 1000) % 1000:03d}-{os.urandom(4).hex()}"


def is_run_id(text: str) -> bool:
    """Whether the text has the form of a run-id, and so can be part of a path."""
    stamp, dash, tail = text.partition("-")
    return (
        bool(dash)
        and len(stamp) == 18
        and stamp[8] == "T"
        and (stamp[:8] + stamp[9:]).isdigit()
        and stamp.isascii()
        and len(tail) == 8
        and _HEX.issuperset(tail)
    )


def is_live(status: str) -> bool:
    """Whether a run of that status is still going on."""
    return status in LIVE


def _check_folder(live: str) -> None:
    status = os.lstat(live)
    if not S_ISDIR(status.st_mode) or (os.name != "nt" and status.st_uid != os.geteuid()):
        raise _foreign(live)


def instance_of(live: str) -> str:
    """The random id of an `.orch` of ours, "" where there is none."""
    raw = (atomic.read(os.path.join(live, "instance"), limit=64) or b"").strip().decode("latin-1")
    return raw if len(raw) == 16 and _HEX.issuperset(raw) else ""


def _foreign(live: str) -> ForeignDirectory:
    name = os.path.basename(live)
    try:
        names = sorted(os.listdir(live))[:2]
    except OSError:
        names = []
    holds = f" (it holds {' and '.join(names)})" if names else ""
    return ForeignDirectory(f"{name}/ exists and is not ours{holds}.", "git config orch.dir .git-orch")
