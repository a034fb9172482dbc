"""A supervisor that gets as far as it is told, says so, and then waits for its end.

    python -I -S dying_supervisor.py PROJECT REPOSITORY STAGE [FIELDS OF THE INTENT, AS JSON]

Stages: `published` (the entry is there, nobody works on it yet), `working` (a tree, and a job that has the run's cookie
and outlives us), `recorded` (results and record are written), `disposed` (the tree is gone, the entry is not). It
prints one JSON object, {run_id, job, tree}, and ends when its standard input does.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # tests import the constants
    sys.path.insert(0, sys.argv[1])

from git_orch import dedup, jsontext, place, report, runs, workspace
from git_orch import key as keys
from git_orch.disposal import dispose
from git_orch.registry import SUPERVISOR_BYTE, State
from tests.entries import intent_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.registry import Intent
    from git_orch.workspace import Workspace

STAGES = ("published", "working", "recorded", "disposed")
KEY_OF_VERDICT = "c" * 32
RESULT = b'{"findings": "half"}'
MARKER = "SEAL_OF_TEST"


def main() -> None:
    import fcntl

    stage = STAGES.index(sys.argv[3])
    fields = jsontext.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
    scene = workspace.open_at(sys.argv[2], dict(os.environ))
    intent = intent_of(scene.layout, scene.book, dedup_key=KEY_OF_VERDICT, **fields)
    # Before there is a lock: the kernel wakes us up a moment before it closes our descriptors in what we have spawned.
    job_pid = start_job(scene, intent) if stage == 1 else 0
    runs.make_folder(intent.run_dir)
    lock = scene.book.publish(intent)
    dedup.claim(scene.layout, KEY_OF_VERDICT, intent.run_id)
    facts = {"run_id": intent.run_id, "job": job_pid, "tree": ""}
    if stage >= 1:
        fcntl.lockf(lock.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, SUPERVISOR_BYTE)
        runs.hold(intent.run_dir)
        facts["tree"] = make_tree(scene, intent)
        job = {"reviewer": "claude", "child_pid": job_pid, "status": "running"}
        scene.book.write_state(intent.run_id, State(status="running", supervisor_pid=os.getpid(), jobs=(job,)))
    if stage >= 2:
        record(intent)
    if stage >= 3:
        dispose(intent.temp_root, intent.run_id, scene.key)
    os.write(1, jsontext.dumps(facts).encode() + b"\n")
    os.read(0, 1)
    os._exit(0)


def make_tree(scene: Workspace, intent: Intent) -> str:
    place.temp_root(scene.env)
    made = place.make_place(intent.temp_root, intent.run_id, "claude", scene.key)
    os.mkdir(made.tree)
    with open(os.path.join(made.tree, "a.py"), "w", encoding="ascii") as file:
        file.write("reviewed\n")
    with open(os.path.join(made.request, "result"), "wb") as result:
        result.write(RESULT)
    scene.store.hold(intent.run_id, intent.tree_id)
    return made.tree


def start_job(scene: Workspace, intent: Intent) -> int:
    """A job that supervisor and guardian have left behind; it holds nothing of theirs."""
    cookie = f"{intent.run_id}.{keys.mac(scene.key, 'task', intent.run_id)}"
    env = {"PATH": os.environ["PATH"], MARKER: os.environ[MARKER], "ORCH_TASK": cookie}
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    streams = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
    return os.posix_spawnp("sleep", ["sleep", "300"], env, file_actions=streams, setsid=True)


def record(intent: Intent) -> None:
    ended = report.Ended(status="done", terminal_reason="completed", verdict="findings", reason="1 blocking")
    runs.write(intent.run_dir, "findings.json", {"schema_version": "1", "findings": []})
    runs.write(intent.run_dir, runs.RECORD, report.record_json(intent, ended))


if __name__ == "__main__":
    main()
