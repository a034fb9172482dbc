"""The registry of live runs, `.orch/pending`: the intent, the state, how others ask, and who is alive.

The launcher writes the intent before its supervisor exists; everything after that is the supervisor's alone, or, once
that is dead, the reaper's that holds the lock. Nothing in here is believed without a MAC by this user's key, and
nothing is ever signalled or deleted because a file names it.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from _stat import S_ISREG

from git_orch import atomic, jsontext, locks, orchdir, system
from git_orch import key as keys
from git_orch.errors import EnvironmentProblem
from git_orch.model import LIVE, SCHEMA_VERSION, Budget, Record, ReviewerSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.layout import Layout
    from git_orch.model import Access, Disposition, Json, Status, Threshold

BY_HAND = "you"
"""The client of a run that a person started: such runs do not wait for a turn."""
ENTRY_LIMIT = 64 << 10
SUPERVISOR_BYTE, GUARDIAN_BYTE = 0, 1  # each further guardian takes the next byte

_KINDS = ("json", "state", "ask", "lock")  # in the order in which they go: what has no entry is litter
_HALF = 2048
_LONGEST_REASON = 200
_ASK_LIMIT = 1024
_STALE_S = 3600.0
_TO_THE_END = 0
_HEX = frozenset("0123456789abcdef")


class Intent(Record):
    """What a run was asked to do. Written once, before anyone works on it; never changed.

    `bound`: whether the budget holds for it, which a person's own review only counts against. `fresh`: a person wants
    it whatever came of it before, so that a reviewer that rests is asked as well.
    """

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
    rubric: str = ""
    pathspec: tuple[str, ...] = ()
    settle_s: float = 0.0
    max_reviews: int = 2
    budget: Budget = Budget()
    bound: bool = True
    fresh: bool = False
    snapshot_ms: int = 0
    notes: bool = False
    keep_runs: int = 200
    keep_days: int = 30
    keep_bytes: int = 1 << 30

    def to_json(self) -> Json:
        """The record as JSON has it; `host` is the older name of `client`."""
        reviewers = [reviewer.fields() for reviewer in self.reviewers]
        return {**self.fields(), "reviewers": reviewers, "budget": self.budget.fields(), "host": self.client}

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
        known["budget"] = Budget(**{name: v for name, v in known.get("budget", {}).items() if name in Budget._fields})
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
    """Something in the registry that is not acted upon, and why. `run_id` is its name, whatever that looks like."""

    run_id: str
    reason: str


class Lock(Record):
    """A run's lock, held by this process through `fd` until that is closed."""

    run_id: str
    fd: int


class Held(Record):
    """Somebody lives: the supervisor or a guardian of the run."""


class Gone(Record):
    """There is no lock file: the run has ended and was taken away; that is not the same as dead."""


class Registry:
    """`.orch/pending` of one repository, opened by its user.

    Attributes:
        live: `.orch`; the folders in it are there.
        instance: the id of this `.orch`.
    """

    def __init__(self, live: str, key: bytes, instance: str) -> None:
        self.live = live
        self.instance = instance
        self.pending = os.path.join(live, "pending")
        self.inbox = os.path.join(live, "inbox")
        self._key = key

    # -- entries

    def publish(self, intent: Intent) -> Lock:
        """The entry is there, complete, and its lock was held before anyone could see either.

        It is not synced to the disk: that costs a hook up to seconds on a busy one, and a power cut that loses the
        entry ends all that it stands for.

        Raises:
            EnvironmentProblem: the disk is full or the entry too large; nothing is left.
        """
        try:
            sealed = self._sealed(intent)
            fd = self._new_lock(intent.run_id)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            self._create_state(intent.run_id)
            atomic.write(self.path(intent.run_id, "json"), sealed)
        except BaseException as error:
            self.remove(intent.run_id)
            os.close(fd)
            if isinstance(error, OSError):
                raise self._unwritable(error) from error
            raise
        return Lock(run_id=intent.run_id, fd=fd)

    def run_ids(self) -> list[str]:
        """All runs that have an entry, oldest first; names that are no run-id are left out (`strangers` has them)."""
        return sorted(name[:-5] for name in self._names() if name.endswith(".json") and is_run_id(name[:-5]))

    def strangers(self) -> list[Refused]:
        """Everything in the folder that no run of ours has put there."""
        reason = "git-orch makes no file of that name"
        return [Refused(run_id=name, reason=reason) for name in sorted(self._names()) if not _is_ours(name)]

    def sealed(self, run_id: str) -> bytes | Refused:
        """The entry's JSON text, which only this user can have written and only here; or why it is not believed."""
        raw = self._plain_file(run_id, "json")
        if isinstance(raw, Refused):
            return raw
        body, _, tail = raw.rstrip(b"\n").rpartition(b"\n")
        if not body or not tail.startswith(b"mac "):
            return Refused(run_id=run_id, reason="torn: it is empty or cut off")
        try:
            expected = self._mac_of_entry(run_id, body)
        except OSError:
            return Refused(run_id=run_id, reason="taken away while it was read")
        if not keys.same(tail[4:].decode("latin-1"), expected):
            return Refused(run_id=run_id, reason="copied from another clone, or not made by git-orch")
        return body

    def intent(self, run_id: str) -> Intent | Refused:
        """The run's intent, or why it is not believed."""
        body = self.sealed(run_id)
        if isinstance(body, Refused):
            return body
        try:
            return Intent.from_json(jsontext.loads(body))
        except (jsontext.JsonTextError, TypeError, AttributeError):
            return Refused(run_id=run_id, reason="of another version of git-orch")

    def remove(self, run_id: str) -> None:
        """Nothing of the run is left in the registry. The caller holds its lock."""
        for kind in _KINDS:
            try:
                os.unlink(f"{self.pending}/{run_id}.{kind}")
            except (FileNotFoundError, NotADirectoryError):
                continue

    def path(self, run_id: str, kind: str) -> str:
        """The path of one of the run's files: json, state, ask or lock."""
        return f"{self.pending}/{run_id}.{kind}"

    def clear_litter(self) -> None:
        """What launchers and askers that were killed have left without an entry is gone.

        A lock that nobody holds belongs to a launcher that died before its entry appeared; the rest is old enough.
        """
        names = frozenset(self._names())
        for name in sorted(filter(_is_ours, names)):
            run_id = name[:27]
            if name.startswith("."):
                self._unlink_if_old(name)
            elif f"{run_id}.json" not in names:
                self._clear_one(run_id, name)

    # -- state

    def write_state(self, run_id: str, state: State) -> bool:
        """The state is the one given; False where it cannot be written, which is never worth a run.

        Written into the older half of preallocated space, so that it works on a full disk, and a crash in the middle
        leaves the other half.
        """
        try:
            fd = os.open(self.path(run_id, "state"), os.O_RDWR | system.PLAIN)
        except OSError:
            return False
        try:
            seq = max((number for number, _ in self._halves(run_id, system.at.pread(fd, 2 * _HALF, 0))), default=0) + 1
            return system.at.pwrite(fd, self._half(run_id, seq, state), seq % 2 * _HALF) == _HALF
        except OSError:
            return False
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
        """The supervisor will see the word within a second; False where there is no such run, or somebody asked before.

        Args:
            word: `cancel`, or `superseded-by RUN-ID`.

        Raises:
            EnvironmentProblem: it cannot be written.
        """
        entry = self.path(run_id, "json")
        if not os.path.lexists(entry) or not self._ask(run_id, word):
            return False
        if os.path.lexists(entry):
            return True
        # It ended meanwhile. The entry goes before the word does, so one of us two has seen the other's.
        try:
            os.unlink(self.path(run_id, "ask"))
        except OSError:
            pass
        return False

    def _ask(self, run_id: str, word: str) -> bool:
        path = self.path(run_id, "ask")
        try:
            return atomic.create(path, word.encode("ascii"))
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise self._unwritable(error) from error
        # A run must end on a full disk too. There is still room for a short link: it lies in the inode itself.
        try:
            os.symlink(word, path)
        except FileExistsError:
            return False
        except OSError as error:
            raise self._unwritable(error) from error
        return True

    def asked(self, run_id: str) -> str:
        """What somebody asked of the run: "", "cancel" or "superseded-by RUN-ID"."""
        path = self.path(run_id, "ask")
        raw = atomic.read(path, limit=_ASK_LIMIT)
        word = _link(path) if raw is None else raw.decode("ascii", "replace").strip()
        return word if word == "cancel" or is_run_id(word.removeprefix("superseded-by ")) else ""

    # -- who lives

    def try_lock(self, run_id: str) -> Lock | Held | Gone:
        """The run's lock is ours, where nobody lives that held it. Whoever gets a `Lock` closes it."""
        try:
            fd = locks.open_lockable(self.path(run_id, "lock"), 0)
        except OSError:
            return Gone()
        lock = Lock(run_id=run_id, fd=fd)
        is_free = _taken(fd)
        if is_free and self.still_there(lock):
            return lock
        os.close(fd)
        return Gone() if is_free else Held()

    def is_held(self, run_id: str) -> bool:
        """Whether somebody lives: the run's supervisor or a guardian, or its launcher before them."""
        return is_held(self.path(run_id, "lock"))

    def still_there(self, lock: Lock) -> bool:
        """Whether the lock's path still names the file that we hold: an unlinked one keeps nobody out."""
        try:
            there = os.stat(self.path(lock.run_id, "lock"), follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(lock.fd)) and S_ISREG(there.st_mode)

    def supervisor_pid(self, run_id: str) -> int:
        """The pid of the live supervisor, by the kernel's word; 0 where there is none.

        The flock does not tell: it goes on naming the launcher, whose pid may be an innocent's by now. Never called by
        the holder itself: closing any descriptor of a file gives up the record locks that a process has on it.
        """
        return self._holder(run_id, SUPERVISOR_BYTE, 1)

    def guardian_pid(self, run_id: str) -> int:
        """The pid of one of the run's live guardians, by the kernel's word; 0 where there is none."""
        return self._holder(run_id, GUARDIAN_BYTE, _TO_THE_END)

    def _holder(self, run_id: str, first: int, length: int) -> int:
        try:
            fd = locks.open_lockable(self.path(run_id, "lock"), 0)
        except OSError:
            return 0
        try:
            pid = locks.holder(fd, first, length)
            # A file system that does not keep its locks on this machine may answer with another machine's pid.
            return pid if pid > 1 and _has_open(pid, os.fstat(fd)) else 0
        finally:
            os.close(fd)

    # -- a folder that was wiped under a live run

    def restore(self, intent: Intent, state: State) -> Lock | None:
        """Folder, lock and entry of a live run are there again, after `git clean -fdx` took them. The supervisor's own.

        Gives the new lock, or None where the repository itself is gone: then nothing is made in its place.

        Raises:
            OrchError: something else lies there now, or it cannot be written.
        """
        if not os.path.isdir(intent.common_dir) or not os.path.isdir(os.path.dirname(self.live)):
            return None
        try:
            self.instance = orchdir.mend(self.live, self.instance)
        except OSError as error:
            raise self._unwritable(error) from error
        self.remove(intent.run_id)
        lock = self.publish(intent)
        self.write_state(intent.run_id, state)
        return lock

    # -- files

    def _names(self) -> list[str]:
        try:
            return os.listdir(self.pending)
        except OSError:
            return []

    def _plain_file(self, run_id: str, kind: str) -> bytes | Refused:
        """The content of a file that can only be ours: no link, no FIFO, no second name, not too large."""
        try:
            fd = os.open(self.path(run_id, kind), os.O_RDONLY | system.PLAIN)
        except OSError as error:
            return Refused(run_id=run_id, reason=f"cannot be read: {error.strerror}")
        try:
            status = os.fstat(fd)
            if not S_ISREG(status.st_mode) or status.st_uid != system.uid() or status.st_nlink > 1:
                return Refused(run_id=run_id, reason="not a plain file of ours")
            if status.st_size > ENTRY_LIMIT:
                return Refused(run_id=run_id, reason="too large")
            return os.read(fd, ENTRY_LIMIT)
        finally:
            os.close(fd)

    def _mac_of_entry(self, run_id: str, body: bytes) -> str:
        inode = os.stat(self.pending, follow_symlinks=False).st_ino
        return keys.mac(self._key, self.instance, str(inode), run_id, body)

    def _sealed(self, intent: Intent) -> bytes:
        body = jsontext.dumps(intent.to_json()).encode("ascii")
        sealed = body + b"\nmac " + self._mac_of_entry(intent.run_id, body).encode() + b"\n"
        if len(sealed) > ENTRY_LIMIT:
            raise EnvironmentProblem(
                f"the entry of the run would take {len(sealed)} bytes, more than {ENTRY_LIMIT}",
                "name fewer paths, or shorten the reviewers' commands",
            )
        return sealed

    def _new_lock(self, run_id: str) -> int:
        """A descriptor of the run's new lock file, held before the file had its name."""
        scratch = f"{self.pending}/.{run_id}.lock.{os.urandom(4).hex()}.tmp"
        fd = locks.open_lockable(scratch, os.O_CREAT | os.O_EXCL)
        try:
            locks.exclusive(fd)  # nobody else knows the file yet
            os.rename(scratch, self.path(run_id, "lock"))
        except BaseException:
            os.unlink(scratch)
            os.close(fd)
            raise
        return fd

    def _create_state(self, run_id: str) -> None:
        fd = os.open(self.path(run_id, "state"), os.O_RDWR | os.O_CREAT | os.O_EXCL | system.PLAIN, 0o600)
        try:
            # Both halves are on the disk from now on.
            atomic.write_all(fd, b" " * _HALF + self._half(run_id, 1, State(status="queued")))
        finally:
            os.close(fd)

    def _half(self, run_id: str, seq: int, state: State) -> bytes:
        """One half of the state; jobs that do not fit are left out, the last ones first."""
        fields = {"seq": seq, **state.fields(), "terminal_reason": state.terminal_reason[:_LONGEST_REASON]}
        jobs = list(state.jobs)
        while True:
            body = jsontext.dumps({**fields, "jobs": jobs}).encode("ascii")
            if len(body) <= _HALF - 64 or not jobs:
                break
            jobs.pop()
        mac = keys.mac(self._key, self.instance, run_id, "state", body)
        return (body + b"\n" + mac.encode() + b"\n").ljust(_HALF)

    def _halves(self, run_id: str, raw: bytes) -> list[tuple[int, State]]:
        """The halves that are whole, each with its number."""
        found = []
        for half in (raw[:_HALF], raw[_HALF : 2 * _HALF]):
            body, _, mac = half.rstrip().rpartition(b"\n")
            expected = keys.mac(self._key, self.instance, run_id, "state", body)
            if not keys.same(mac.decode("latin-1"), expected):
                continue
            value = jsontext.loads(body)
            known = {name: value[name] for name in State._fields if name in value}
            found.append((value["seq"], State(**{**known, "jobs": tuple(known.get("jobs", ()))})))
        return found

    def _clear_one(self, run_id: str, name: str) -> None:
        lock = self.try_lock(run_id)
        match lock:
            case Held():
                return
            case Gone():
                self._unlink_if_old(name)
            case Lock():
                if not os.path.lexists(self.path(run_id, "json")):  # looked at again, under the lock
                    self.remove(run_id)
                os.close(lock.fd)

    def _unlink_if_old(self, name: str) -> None:
        path = f"{self.pending}/{name}"
        try:
            if time.time() - os.lstat(path).st_mtime > _STALE_S:
                os.unlink(path)
        except OSError:
            return

    def _unwritable(self, error: OSError) -> EnvironmentProblem:
        hint = "free some space there" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "see who owns it"
        return EnvironmentProblem(f"cannot write {self.pending}: {error.strerror}", hint)


def open_registry(layout: Layout, key: bytes) -> Registry | None:
    """The registry of the repository, or None where there is none yet. Nothing is written.

    Raises:
        ForeignDirectory: `.orch` is something else.
        EnvironmentProblem: it cannot be read.
    """
    try:
        instance = orchdir.instance_of(layout.live)
    except OSError as error:
        raise EnvironmentProblem(f"cannot read {layout.live}: {error.strerror}", "see who owns it") from error
    if not instance or not os.path.isdir(layout.pending):
        return None
    return Registry(layout.live, key, instance)


def ensure(layout: Layout, key: bytes, env: Mapping[str, str]) -> Registry:
    """The registry of the repository, made where there was none; of many that make it at once, one wins.

    Raises:
        ForeignDirectory: `.orch` is something else, or git tracks it.
        EnvironmentProblem: it cannot be written.
    """
    return Registry(layout.live, key, orchdir.establish(layout, env))


def text_of(body: bytes, name: str) -> str:
    """One of the texts in an entry, by its key, "" where it has none; ten times as fast as reading the whole of it.

    A key cannot be mistaken: inside a JSON string each quote has a backslash before it.
    """
    key = b'"%b":"' % name.encode("ascii")
    start = body.find(key) + len(key)
    end = body.find(b'"', start)
    if start < len(key) or end < 0:
        return ""
    if b"\\" not in body[start:end]:
        return body[start:end].decode("ascii")
    value = jsontext.loads(body).get(name)
    return value if isinstance(value, str) else ""


def is_held(lock_path: str) -> bool:
    """Whether somebody holds the lock of a run; it is let go again at once where nobody does."""
    try:
        fd = locks.open_lockable(lock_path, 0)
    except OSError:
        return False
    try:
        return not locks.shared(fd)
    except OSError:  # the file system keeps no locks, and then nobody is known to be dead
        return True
    finally:
        os.close(fd)


def instance_of(live: str) -> str:
    """The random id of an `.orch` of ours, "" where there is none."""
    return orchdir.instance_of(live)


def make_run_id(now_s: float | None = None) -> str:
    """A run-id that sorts by time: UTC to the millisecond, dash, 8 random hex digits."""
    now_ms = int((time.time() if now_s is None else now_s) * 1000)
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now_ms // 1000))
    return f"{stamp}{now_ms % 1000:03d}-{os.urandom(4).hex()}"


def is_run_id(text: str) -> bool:
    """Whether the text has the form of a run-id, and so can be part of a path."""
    return (
        len(text) == 27
        and text[8] == "T"
        and text[18] == "-"
        and (text[:8] + text[9:18]).isdigit()
        and text.isascii()
        and _HEX.issuperset(text[19:])
    )


def is_live(status: str) -> bool:
    """Whether a run of that status is still going on."""
    return status in LIVE


def _is_ours(name: str) -> bool:
    """Whether the name is one that a run's files, or their scratch files, have."""
    run_id, _, kind = name.removeprefix(".").partition(".")
    if name.startswith("."):
        return is_run_id(run_id) and name.endswith(".tmp")
    return is_run_id(run_id) and kind in _KINDS


def _link(path: str) -> str:
    """What a link says, "" where there is none."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _taken(fd: int) -> bool:
    """Whether the lock was to be had."""
    try:
        return locks.exclusive(fd)
    except OSError:  # the file system keeps no locks, and then nobody is known to be dead
        return False


def _has_open(pid: int, status: os.stat_result) -> bool:
    """Whether that process has that very file open."""
    if sys.platform == "darwin":
        from git_orch.containment import darwin

        return darwin.has_open(pid, status.st_dev, status.st_ino)
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            if os.path.samestat(os.stat(f"{folder}/{name}"), status):
                return True
        except OSError:
            continue
    return False
