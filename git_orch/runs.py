"""The lasting records of runs, `<git common dir>/orch/runs`: who wrote them, how they are found by a short name."""

from __future__ import annotations

import os

from git_orch import atomic, jsontext
from git_orch.errors import NoSuchRun
from git_orch.model import ENDED
from git_orch.registry import is_run_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Json

RECORD = "record.json"


def make_folder(run_dir: str) -> None:
    """The run's lasting folder is there."""
    os.makedirs(run_dir, mode=0o700, exist_ok=True)


def write(run_dir: str, name: str, value: Json) -> None:
    """The file of that name holds the value, whole, and is on the disk."""
    atomic.write(os.path.join(run_dir, name), jsontext.dumps(value).encode("ascii") + b"\n", durable=name == RECORD)


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
    if is_run_id(name) and name in candidates:
        return name
    wanted = name.casefold()
    hits = [run_id for run_id in candidates if run_id.partition("-")[2].startswith(wanted)] if len(wanted) >= 4 else []
    if len(hits) == 1:
        return hits[0]
    if hits:
        raise NoSuchRun(f"`{name}` is the beginning of {len(hits)} runs", "type more of its digits")
    raise NoSuchRun(f"no run `{name}` here", "git orch status lists them; four hex digits or `last` are enough")


def remove(run_dir: str) -> None:
    """The run's lasting folder is gone. Only ever a folder of that name and form: plain files, one level of folders."""
    for parent, folders, files in os.walk(run_dir, topdown=False):
        for name in files:
            os.unlink(os.path.join(parent, name))
        for name in folders:
            os.rmdir(os.path.join(parent, name))
    if os.path.isdir(run_dir):
        os.rmdir(run_dir)


def short(run_id: str) -> str:
    """The four hex digits by which people call the run."""
    return run_id.partition("-")[2][:4]
