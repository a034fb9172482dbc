"""A supervisor with nothing but its guardians, for tests to order about and to kill; it sits in a cage.

    python -I -S lean_supervisor.py PACKAGE_PARENT LEASH_FD STAGE

STAGE is JSON: {jobs: [fields of Job], lock: path or null, settings: {constant of guardian.py: value}}. Orders come as
lines on standard input (`terminate 0`, `kill 0`, `rescue 0`, `cpu 0`), events go as JSON lines to standard output.

The cage is the process that this file is started as: a subreaper, which forks the supervisor and sleeps. When the leash
(a pipe of the test's) ends, it kills all that is left, so that no test leaves anything, however it ended.
"""

from __future__ import annotations

import os
import select
import sys

sys.path.insert(0, sys.argv[1])

from git_orch import guardian, jsontext
from git_orch.containment import Containment, Job, View
from git_orch.containment.descendants import kill_to_echild, subreaper
from git_orch.guardian import Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

CAGE_BUDGET_S = 20.0


def main() -> NoReturn:
    leash = int(sys.argv[2])
    subreaper()
    if not os.fork():
        os.close(leash)
        try:
            supervise(jsontext.loads(sys.argv[3]))
        except BaseException:  # noqa: BLE001 - it must be seen, and must not go on in the cage's code
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
        finally:
            os._exit(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)
    os.read(leash, 1)
    os._exit(1 if kill_to_echild(CAGE_BUDGET_S) else 0)


def supervise(stage: dict[str, Any]) -> NoReturn:
    for name, value in stage["settings"].items():
        setattr(guardian, name, value)
    lock_fd = open_lock(stage["lock"]) if stage["lock"] else None
    tell("supervisor", os.getpid())
    guards = []
    for fields in stage["jobs"]:
        guard = Guard.start(job_of(fields), lock_fd=lock_fd)
        guards.append(guard)
        tell("started", guard.guardian_pid, guard.job_pid, *facts(guard))
    attend(guards)
    tell("done")
    os._exit(0)


def attend(guards: list[Guard]) -> None:
    """Every guard is gone; orders were followed and events told."""
    orders = b""
    while not all(guard.gone for guard in guards):
        poll = select.poll()
        poll.register(0, select.POLLIN)
        watched = {guard.fileno(): guard for guard in guards if guard.fileno() >= 0}
        for fd in watched:
            poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll():
            if fd == 0:
                *lines, orders = (orders + os.read(0, 1024)).split(b"\n")
                for line in lines:
                    follow(line.decode(), guards)
            else:
                listen(watched[fd], guards.index(watched[fd]))


def listen(guard: Guard, number: int) -> None:
    before = guard.outcome, guard.gone
    guard.read()
    if guard.lost:
        tell("lost", number)
        guard.rescue()
    if (guard.outcome, guard.gone) != before:
        tell("outcome", number, *facts(guard))


def follow(order: str, guards: list[Guard]) -> None:
    verb, number = order.split()
    guard = guards[int(number)]
    match verb:
        case "terminate":
            guard.terminate()
        case "kill":
            guard.kill()
        case "rescue":
            guard.rescue()
            tell("outcome", int(number), *facts(guard))
        case "cpu":
            tell("cpu", int(number), guard.cpu_s())


def facts(guard: Guard) -> tuple[str, bool, float, int, str, bool]:
    return repr(guard.outcome), guard.gone, guard.usage.cpu_s, guard.usage.peak_rss_bytes, guard.fault, guard.denied


def job_of(fields: dict[str, Any]) -> Job:
    view = fields["view"]
    return Job(
        **{
            **fields,
            "argv": tuple(fields["argv"]),
            "containment": Containment(tier=fields["containment"]),
            "view": View(**{name: tuples(value) for name, value in view.items()}) if view else None,
        }
    )


def tuples(value: Any) -> Any:
    """JSON has lists only."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def open_lock(path: str) -> int:
    import fcntl

    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.set_inheritable(fd, True)  # as one that came over by exec is
    return fd


def tell(*event: object) -> None:
    os.write(1, jsontext.dumps(event).encode() + b"\n")


if __name__ == "__main__":
    main()
