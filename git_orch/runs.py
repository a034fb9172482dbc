"""The lasting records of runs, `<git common dir>/orch/runs`: written, looked at, found by a short name.

A run's folder is locked by its supervisor for as long as that lives. The lock of the entry says the same, but lies in
`.orch`, which `git stash -a` takes away and `git stash pop` brings back as another file, that nobody holds.
"""

from __future__ import annotations

import os

from git_orch import atomic, jsontext, locks, system
from git_orch.errors import NoSuchRun
from git_orch.model import ENDED
from git_orch.registry import is_run_id
from git_orch.removal import remove_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Json

RECORD = "record.json"
RUBRIC = "rubric.md"
"""The text by which a run's agents judge, as it was when the run was asked for."""
ROOM = ".room"
"""A file that only takes space, for what is to be recorded on a disk that is full by then."""
TRASH = ".trash-"
_MOST_OF_A_RECORD = 1 << 20
_STATUS = b'"status":"'
_AFTER_STATUS = b'","terminal_reason":"'


def make_folder(run_dir: str) -> None:
    """The run's lasting folder is there."""
    os.makedirs(run_dir, mode=0o700, exist_ok=True)


def write(run_dir: str, name: str, value: Json, *, durable: bool | None = None) -> None:
    """The file of that name holds the value, whole; a record is on the disk, unless it is said that it need not be."""
    is_kept = name == RECORD if durable is None else durable
    atomic.write(os.path.join(run_dir, name), jsontext.dumps(value).encode("ascii") + b"\n", durable=is_kept)


def read(run_dir: str, name: str) -> Json | None:
    """The object in a file of the run, or None where there is none or it is not whole."""
    raw = atomic.read(os.path.join(run_dir, name))
    if raw is None:
        return None
    try:
        value = jsontext.loads(raw)
    except jsontext.JsonTextError:
        return None
    return value if isinstance(value, dict) else None


def final_record(run_dir: str) -> Json | None:
    """The record of a run that has ended, or None while it has none with a final status."""
    record = read(run_dir, RECORD)
    return record if record is not None and record.get("status") in ENDED else None


def has_ended(run_dir: str) -> bool:
    """Whether there is a record with a final status: the same as `final_record`, but the record is only searched.

    A key of the record itself cannot be mistaken: inside a JSON string each quote has a backslash before it, and a job,
    which has a `status` too, has no `terminal_reason`.
    """
    try:
        fd = os.open(f"{run_dir}/{RECORD}", os.O_RDONLY | system.PLAIN)
    except OSError:
        return False
    try:
        raw = os.read(fd, _MOST_OF_A_RECORD)
    except OSError:  # a folder, which is no record of ours
        return False
    finally:
        os.close(fd)
    end = raw.find(_AFTER_STATUS)
    start = raw.rfind(_STATUS, 0, end) + len(_STATUS)
    if end > 0 and start >= len(_STATUS) and raw.endswith(b"}\n"):
        return raw[start:end].decode("ascii", "replace") in ENDED
    return final_record(run_dir) is not None


def hold(run_dir: str) -> int:
    """A descriptor by which this process holds the run's folder, until it is closed; -1 where that cannot be.

    The supervisor's, from its beginning to its end.
    """
    try:
        fd = system.at.open(run_dir, system.FOLDER)
    except OSError:
        return -1
    try:
        is_ours = locks.exclusive(fd)
    except OSError:  # a file system that locks no folders
        is_ours = False
    if is_ours:
        return locks.pinned(fd)
    os.close(fd)  # another supervisor of the same run has it
    return -1


def is_held(run_dir: str) -> bool:
    """Whether the run's supervisor lives."""
    try:
        fd = system.at.open(run_dir, system.FOLDER)
    except OSError:
        return False
    try:
        return not locks.shared(fd)
    except OSError:  # a file system that locks no folders: the entry's lock alone has to tell
        return False
    finally:
        os.close(fd)


def run_ids(runs: str) -> list[str]:
    """All runs that have a lasting folder, oldest first."""
    try:
        return sorted(name for name in os.listdir(runs) if is_run_id(name))
    except OSError:
        return []


def find(name: str, candidates: list[str]) -> str:
    """The run that a person means by a whole run-id, by at least four of its hex digits, or by `last`.

    Raises:
        NoSuchRun: none, or more than one.
    """
    if name == "last" and candidates:
        return candidates[-1]
    if name in candidates:
        return name
    wanted = name.casefold()
    hits = [run_id for run_id in candidates if run_id.partition("-")[2].startswith(wanted)] if len(wanted) >= 4 else []
    if len(hits) == 1:
        return hits[0]
    if hits:
        raise NoSuchRun(f"`{name}` is the beginning of {len(hits)} runs", "type more of its digits")
    raise NoSuchRun(f"no run `{name}` here", "git orch status lists them; four hex digits or `last` are enough")


def remove(run_dir: str) -> bool:
    """The run's lasting folder is gone, as a whole; False where something of it still waits under another name."""
    folder, name = os.path.split(run_dir)
    trash = os.path.join(folder, TRASH + name)
    try:
        os.rename(run_dir, trash)
    except FileNotFoundError:
        return True
    except OSError:  # an earlier removal of the same run has left something under that name
        return remove_path(trash) and remove_path(run_dir)
    return remove_path(trash)


def sweep_trash(runs: str) -> None:
    """What earlier removals died over is gone."""
    for name in os.listdir(runs) if os.path.isdir(runs) else ():
        if name.startswith(TRASH):
            remove_path(os.path.join(runs, name))


def short(run_id: str) -> str:
    """The four hex digits by which people call the run."""
    return run_id.partition("-")[2][:4]


def started(run_id: str) -> float:
    """When the run began, in seconds since 1970."""
    stamp = run_id.partition("-")[0]
    year, month, day = int(stamp[:4]), int(stamp[4:6]), int(stamp[6:8])
    seconds = int(stamp[9:11]) * 3600 + int(stamp[11:13]) * 60 + int(stamp[13:15])
    return _days(year, month, day) * 86_400 + seconds + int(stamp[15:]) / 1000


def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date; importing `calendar` costs as much as reading ten records does.

    The year begins in March here, so that the leap day is its last
    (https://howardhinnant.github.io/date_algorithms.html, days_from_civil).
    """
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return year * 365 + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719_469
