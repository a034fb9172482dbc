"""Chaos, bounded, seeded and sealed: whatever is killed, wiped, copied or done at once, one sweep later all is well.

Each trial does its harm to a run in a repository of its own world (HOME, TMPDIR and all), waits until nobody holds a
run's lock any more, calls `git orch sweep` once, and counts what must be zero:

    processes   that carry the world's marker or a run's cookie, are in its folders, or go by an adversary's name
    trees       of runs below $TMPDIR, and what is left of removed ones
    locks       of runs that somebody holds
    entries     in .orch/pending
    lost        runs that were started and have no record with a final status
    innocents   processes that are not ours and are gone: with a forged cookie, in a tree, with a launcher's old pid
    changed     the user's repository is not bit for bit as it was

One hole is known and told apart: in tier 2, where supervisor and guardian are killed at the same moment, a process that
has emptied its environment is not found (docs/threat-model.md).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from git_orch.model import ENDED  # noqa: E402
from tests import seal as sealing  # noqa: E402
from tests.adversaries.stage import is_alive, survivors  # noqa: E402
from tests.project import HOOK, Project  # noqa: E402
from tests.untouched import Fingerprint, fingerprint  # noqa: E402
from tests.waiting import wait_until  # noqa: E402

COLUMNS = ("processes", "trees", "locks", "entries", "lost", "innocents", "changed")
# How many processes of each adversary are up once it has done its worst (tests/adversaries/evil.py).
ADVERSARIES = {"ignorer": 1, "session": 2, "daemon": 2, "scrubbed": 2, "hydra": 2, "walker": 1, "bomb": 41}
HIDDEN = ("scrubbed", "walker")  # those that no reaper finds once nobody is their parent
ENDINGS = ("normal", "time-out", "stop", "supervisor", "guardian", "both")
LIFE_S = 60
EVIL = PROJECT / "tests" / "adversaries" / "evil.py"
LONG_S = 30.0
FILES = 200


@dataclass(kw_only=True)
class Row:
    """One line of the table."""

    name: str
    trials: int = 0
    known: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COLUMNS, 0))
    told: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        numbers = " ".join(f"{self.counts[column]:>{len(column)}}" for column in COLUMNS)
        known = f"  ({self.known} by the known hole)" if self.known else ""
        return f"{self.name:<44} {self.trials:>6} {numbers}{known}"


class World:
    """A sealed place for everything, and the table of what was found in it."""

    def __init__(self, root: Path, seed: int, deadline: float) -> None:
        self.random = random.Random(seed)
        self.deadline = deadline
        self.rows: dict[str, Row] = {}
        self.moments: dict[str, int] = {}
        self.innocents: list[Innocent] = []
        self.unpublished: set[str] = set()
        self.seal = sealing.make_seal(root)
        environment = sealing.sealed_environment(self.seal, os.environ, Path(sys.executable).parent)
        os.environ.clear()
        os.environ.update(environment)
        self._count = 0

    def project(self, files: int = 20) -> Project:
        """A new repository with an edit in it."""
        self._count += 1
        project = Project(self.seal.root / f"repo{self._count}")
        for number in range(files):
            project.repo.write(f"d{number % 7}/f{number}.py", f"value = {number}\n")
        project.repo.commit("more")
        project.edit("first = 1\n")
        return project

    def has_time(self) -> bool:
        return time.monotonic() < self.deadline

    @contextmanager
    def trial(
        self, name: str, project: Project, *, names: Sequence[str] = (), hidden: Sequence[str] = ()
    ) -> Iterator[Row]:
        """The harm is done in the block; then comes the sweep, and what it left is counted.

        `names` are those of the adversaries; of the `hidden` ones it is known that they are not always found.
        """
        row = self.rows.setdefault(name, Row(name=name))
        row.trials += 1
        before = fingerprint(project.repo)
        yield row
        try:
            wait_until(lambda: not self._held(project), LONG_S, what="nobody holds a lock")
        except AssertionError as error:
            row.told.append(str(error))
        self.innocents += forged(project)
        swept = sweep(project)
        if self._end_hidden(row, hidden) and project.live:  # told by the sweep as not to be killed
            swept = sweep(project)
        self._count_left(row, before, project, names, swept)

    def _held(self, project: Project) -> list[Path]:
        return [path for path in project.pending.glob("*.lock") if sealing._is_held(path)]

    def _count_left(self, row: Row, before: Fingerprint, project: Project, names: Sequence[str], swept: str) -> None:
        named = [f"{name} {pid}" for name in names for pid in survivors(name)]
        found = {
            "processes": [*map(str, self._processes()), *named],
            "trees": [str(path) for path in self.seal.tmp.glob("git-orch-*/[.0-9]*")],
            "locks": [str(path) for path in self._held(project)],
            "entries": [path.name for path in project.pending.glob("*")] if project.pending.exists() else [],
            "lost": self._lost(project),
            "innocents": [str(innocent) for innocent in self.innocents if not innocent.is_well()],
            "changed": differences(before, fingerprint(project.repo)),
        }
        for column, what in found.items():
            row.counts[column] += len(what)
            row.told += [f"{column}: {each}" for each in what[:5]]
        if any(found.values()):
            row.told.append(f"sweep said: {swept}")
        self._clear_away(names)

    def _lost(self, project: Project) -> list[str]:
        """The runs that have no final record; each is told once."""
        found = {run_id: status for run_id, status in lost(project).items() if run_id not in self.unpublished}
        self.unpublished |= found.keys()
        return [f"{run_id} {status}" for run_id, status in found.items()]

    def _processes(self) -> list[sealing.Leftover]:
        ours = {innocent.pid for innocent in self.innocents}
        return [each for each in sealing.leftover_processes(self.seal) if each.pid not in ours]

    def _end_hidden(self, row: Row, hidden: Sequence[str]) -> int:
        """How many of the adversaries that nobody can find were left; they are gone then."""
        left = sum(len(survivors(name)) for name in hidden)
        row.known += left
        for name in hidden:
            end_all_named(name)
        return left

    def _clear_away(self, names: Sequence[str]) -> None:
        """What a trial has left is ended, so that the next one begins with nothing; and so are the innocents."""
        for process in self._processes():
            sealing.end(process, self.seal)
        for name in names:
            end_all_named(name)
        for innocent in self.innocents:
            innocent.end()
        self.innocents.clear()


class Innocent:
    """A process that only looks as if it were a run's."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.pid = process.pid
        self._process = process

    def is_well(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})"


def innocent(name: str, *, cwd: Path | str = "/", **env: str) -> Innocent:
    plain = {"PATH": os.environ["PATH"], **env}
    return Innocent(name, subprocess.Popen(["sleep", str(LIFE_S)], cwd=cwd, env=plain))


def forged(project: Project) -> list[Innocent]:
    """For each run with an entry: one with a cookie that is nearly right, and one that looks around in its tree."""
    found = []
    for run_id in project.live:
        found.append(innocent("forged cookie", ORCH_TASK=f"{run_id}.{secrets.token_hex(16)}"))
        trees = list(Path(os.environ["TMPDIR"]).glob(f"git-orch-*/{run_id}"))
        if trees:
            found.append(innocent("in the tree", cwd=trees[0]))
    return found


def sweep(project: Project, *words: str) -> str:
    done = subprocess.run(
        ["git", "orch", "sweep", "--json", *words], cwd=project.path, capture_output=True, text=True, check=False
    )
    return (done.stdout + done.stderr).strip()


def lost(project: Project) -> dict[str, str]:
    """The runs that have no final record, and what they have instead."""
    found = {}
    for run_id in project.runs:
        try:
            status = project.record(run_id)["status"]
        except (OSError, ValueError, KeyError):
            status = "no record"
        if status not in ENDED:
            found[run_id] = status
    return found


def is_unpublished(project: Project, run_id: str) -> bool:
    """Whether a launcher was killed before there was an entry: then nobody was told of a run.

    Its folder is empty by then, or has what the snapshot left out, whole or half written.
    """
    names = os.listdir(project.file(run_id, ""))
    return run_id not in project.live and all(name.lstrip(".").startswith("snapshot.json") for name in names)


def differences(before: Fingerprint, after: Fingerprint) -> list[str]:
    fields = Fingerprint.__dataclass_fields__
    return [name for name in fields if getattr(before, name) != getattr(after, name)]


def end_all_named(name: str) -> None:
    """No process goes by that name any more."""
    while left := survivors(name):
        for pid in left:
            end_named(pid, name)


def end_named(pid: int, name: str) -> None:
    """The process was killed, if it still goes by the name that only our adversaries have."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if Path(f"/proc/{pid}/comm").read_text().strip() == name:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except OSError:
        return
    finally:
        os.close(pidfd)


# -- the seven adversaries, against six endings


def adversaries(world: World, tier: int, endings: tuple[str, ...]) -> None:
    """All seven at once are the reviewers of one run."""
    project = world.project()
    project.set("orch.review.sandbox", "true" if tier == 1 else "false")
    for ending in endings:
        if not world.has_time():
            return
        names = {mode: f"ev{number}-{secrets.token_hex(5)}" for number, mode in enumerate(ADVERSARIES)}
        for mode, name in names.items():
            command = [sys.executable, "-I", "-S", str(EVIL), mode, name, str(LIFE_S)]
            then = "leave" if ending == "normal" else "stay"
            timeout = "1500ms" if ending == "time-out" else "60s"
            project.command(mode, " ".join([*command, then]), timeout=timeout)
        project.only(*ADVERSARIES)
        project.edit(f"ending = {ending!r}\n")
        hidden = [names[mode] for mode in HIDDEN] if tier == 2 and ending == "both" else []
        title = f"tier {tier}: seven adversaries, {ending}"
        with world.trial(title, project, names=[*names.values()], hidden=hidden):
            project.fire()
            if ending != "normal":
                for mode, name in names.items():
                    wait_until(lambda: len(survivors(name)) >= ADVERSARIES[mode], LONG_S, what=mode)  # noqa: B023
            bring_to_end(project, ending)


def bring_to_end(project: Project, ending: str) -> None:
    if ending in ("normal", "time-out"):
        return
    if ending == "stop":
        subprocess.run(["git", "orch", "stop", "--all"], cwd=project.path, capture_output=True, check=True)
        return
    supervisor = project.supervisor(project.last)
    guardians = children(supervisor)
    if ending == "both":  # stopped first, or a guardian would see that its supervisor has gone
        for pid in guardians:
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: all(state(pid) == "T" for pid in guardians), LONG_S, what="the guardians have stopped")
    if ending in ("supervisor", "both"):
        os.kill(supervisor, signal.SIGKILL)
    if ending in ("guardian", "both"):
        for pid in guardians:
            kill(pid)


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "T"


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


# -- killed at any moment


def random_kills(world: World, times: int) -> None:
    """Ordinary runs, killed at a moment that is drawn: anywhere, or right after an event of the run's journal."""
    project = world.project(FILES)
    project.reviewer("quick", "--pass")
    project.reviewer("litters", "--litter", "--findings", '[{"path": "a.py"}]')
    typical_s = typical(project)
    for number in range(times):
        if not world.has_time():
            return
        project.only(*world.random.choice([("static",), ("quick",), ("static", "quick", "litters")]))
        project.edit(f"number = {number}\n", f"new{number % 5}.py")
        victim = world.random.choices(("supervisor", "both", "guardian", "hook"), (6, 2, 1, 1))[0]
        with world.trial(f"SIGKILL at a random moment: {victim}", project) as row:
            if victim == "hook":
                known = set(project.runs)
                kill_hook(world, project)
                world.unpublished |= {run_id for run_id in set(project.runs) - known if is_unpublished(project, run_id)}
            else:
                moment = kill_run(world, project, victim, typical_s)
                world.moments[moment] = world.moments.get(moment, 0) + 1
                row.counts["lost"] += moment == NO_RUN


def typical(project: Project) -> float:
    """Seconds that an undisturbed run takes."""
    taken = []
    for number in range(3):
        project.edit(f"typical = {number}\n")
        began = time.monotonic()
        project.fire()
        project.settle()
        taken.append(time.monotonic() - began)
    return sorted(taken)[1]


def kill_hook(world: World, project: Project) -> None:
    """The hook itself is killed, with all of its process group."""
    hook = subprocess.Popen(
        [*HOOK, "stop"],
        cwd=project.path,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert hook.stdin
    hook.stdin.write(project.payload().encode())
    hook.stdin.close()
    pause(world.random.uniform(0, 0.15))
    os.killpg(hook.pid, signal.SIGKILL)
    hook.wait()


NO_RUN = "a hook that fired nothing"
EVENTS = (
    "fork",
    "run.starting",
    "review.change",
    "reviewer.materializing",
    "run.running",
    "reviewer.ended",
    "anywhere",
)
SPREAD = {"anywhere": 1.0, "reviewer.ended": 0.04}  # of the time that a run takes


def kill_run(world: World, project: Project, victim: str, typical_s: float) -> str:
    """The last event of the run before it was killed."""
    known = set(project.runs)
    project.fire()
    new = set(project.runs) - known
    if not new:
        return NO_RUN
    run_id = new.pop()
    supervisor = pinned(project.supervisor(run_id))
    journal = project.file(run_id, "events.jsonl")
    after = world.random.choice(EVENTS)
    if after not in ("fork", "anywhere"):
        spin(lambda: after in happened(journal) or project.file(run_id, "record.json").exists())
    pause(world.random.uniform(0, typical_s * SPREAD.get(after, 0.12)))
    guardian = pinned(next(iter(children(project.supervisor(run_id))), 0)) if victim != "supervisor" else -1
    if victim != "guardian":
        strike(supervisor)
    if victim != "supervisor":
        strike(guardian)
    for pidfd in (supervisor, guardian):
        if pidfd >= 0:
            os.close(pidfd)
    last = happened(journal) or ["before its beginning"]
    is_recorded = project.file(run_id, "record.json").exists() and last[-1] != "run.ended"
    return "its record" if is_recorded else last[-1]


def happened(journal: Path) -> list[str]:
    try:
        lines = journal.read_bytes().splitlines()
    except OSError:
        return []
    return [json.loads(line)["event"] for line in lines if line.endswith(b"}")]


def spin(condition: Callable[[], bool]) -> None:
    """The condition came true just now: no nap that would miss the moment."""
    deadline = time.monotonic() + LONG_S
    while not condition() and time.monotonic() < deadline:
        pass


def pinned(pid: int) -> int:
    """A descriptor of the process, or -1 where it is gone."""
    try:
        return os.pidfd_open(pid) if pid else -1
    except OSError:
        return -1


def strike(pidfd: int) -> None:
    try:
        if pidfd >= 0:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return


def pause(seconds: float) -> None:
    time.sleep(seconds)


# -- the repository under a live run


def waiting(world: World) -> tuple[Project, Path]:
    """A project with a run whose reviewer waits until the path exists."""
    project = world.project()
    go = project.path.with_suffix(".go")
    up = project.path.with_suffix(".up")
    project.reviewer("waits", "--touch", up, "--wait-for", go, "--pass")
    project.only("waits")
    project.fire()
    wait_until(up.exists, LONG_S)
    return project, go


def copied_clone(world: World) -> None:
    """`cp -a` of a repository with a live run, swept beside the original: the original's run goes on (case 61)."""
    project, go = waiting(world)
    with world.trial("cp -a of a live clone, swept", project) as row:
        copy = project.path.with_suffix(".copy")
        subprocess.run(["cp", "-a", str(project.path), str(copy)], check=True)
        said = subprocess.run(["git", "orch", "sweep", "--json"], cwd=copy, capture_output=True, text=True, check=False)
        if not json.loads(said.stdout)["refused"]:
            row.counts["innocents"] += 1
            row.told.append(f"the copy was believed: {said.stdout}")
        finish(project, go, row)
        shutil.rmtree(copy)


def finish(project: Project, go: Path, row: Row) -> None:
    """The run is let go, and must end as if nothing had been."""
    go.touch()
    record = project.ended()
    if (record["status"], record["verdict"]) != ("done", "pass"):
        row.counts["lost"] += 1
        row.told.append(f"{record['run_id']} {record['status']} {record['verdict']}: {record['reason']}")


def wiped(world: World) -> None:
    """`git clean -fdx`; `rm -rf .orch`, with the supervisor killed once it has put it back, and before (case 50)."""
    project, go = waiting(world)
    with world.trial(".orch wiped by git clean -fdx, mid-run", project) as row:
        project.repo.git("clean", "-fdxq")
        wait_until(lambda: project.live, LONG_S, what="the entry is back")
        finish(project, go, row)
    project, go = waiting(world)
    with world.trial(".orch wiped, put back, supervisor killed", project):
        shutil.rmtree(project.path / ".orch")
        wait_until(lambda: project.live, LONG_S, what="the entry is back")
        kill(project.supervisor(project.last))

    project, go = waiting(world)
    with world.trial(".orch wiped and the supervisor killed at once", project):
        supervisor = pinned(project.supervisor(project.last))
        shutil.rmtree(project.path / ".orch")
        strike(supervisor)
        os.close(supervisor)


def garbage_collected(world: World) -> None:
    """The user amends and prunes everything that nothing names, mid-run and afterwards (case 67)."""
    project, go = waiting(world)
    project.repo.git("commit", "--quiet", "--amend", "--all", "--message", "amended")
    project.repo.git("reflog", "expire", "--expire=now", "--all")
    project.repo.git("gc", "--quiet", "--prune=now")
    with world.trial("git gc --prune=now after an amend, mid-run", project) as row:
        finish(project, go, row)
    run_id = project.last
    project.repo.git("reflog", "expire", "--expire=now", "--all")
    project.repo.git("gc", "--quiet", "--prune=now")
    with world.trial("the same afterwards: evidence and gc", project) as row:
        store = project.path / ".git/orch/store.git"
        sweep(project)
        for words in (["rev-list", "--objects", f"refs/runs/{run_id}"], ["gc", "--quiet", "--prune=now"]):
            done = subprocess.run(["git", *words], cwd=store, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                row.counts["lost"] += 1
                row.told.append(f"git {words[0]} in the store: {done.stderr.strip()}")


# -- many at once


def first_hooks(world: World, number: int) -> None:
    """So many first hooks at once in a repository that has no `.orch`, store or key yet (case 68)."""
    project = world.project()
    shutil.rmtree(world.seal.home / ".local", ignore_errors=True)
    with world.trial(f"{number} first hooks at once", project) as row:
        at_once(row, [(project, f"s{each}") for each in range(number)])
        if len(project.runs) != 1:
            row.counts["lost"] += abs(len(project.runs) - 1)
            row.told.append(f"{len(project.runs)} runs of one tree")


def many_hooks(world: World, number: int, trees: int) -> None:
    """So many hooks at once in so many worktrees of one repository (case 18)."""
    main = world.project()
    worktrees = [main]
    for each in range(1, trees):
        path = main.path.with_name(f"{main.path.name}-{each}")
        main.repo.git("worktree", "add", "--quiet", "--detach", path)
        worktrees.append(Project.of(path))
        worktrees[-1].edit(f"tree = {each}\n")
    with world.trial(f"{number} hooks at once with {trees} trees", main) as row:
        at_once(row, [(worktrees[each % trees], f"s{each}") for each in range(number)])
        if len(main.runs) != trees:
            row.counts["lost"] += abs(len(main.runs) - trees)
            row.told.append(f"{len(main.runs)} runs of {trees} trees")


def at_once(row: Row, fired: list[tuple[Project, str]]) -> None:
    hooks = []
    for project, session in fired:
        with tempfile.TemporaryFile() as payload:  # no hook has to wait until all have been started
            payload.write(project.payload(session=session).encode())
            payload.seek(0)
            command = [*HOOK, "stop"]
            hooks.append(subprocess.Popen(command, cwd=project.path, stdin=payload, stderr=subprocess.PIPE))
    for hook in hooks:
        assert hook.stderr
        said = hook.stderr.read().decode()
        if hook.wait() or said:
            row.counts["lost"] += 1
            row.told.append(f"a hook ended with {hook.returncode}: {said}")
    for project, _ in fired:
        project.settle(2 * LONG_S)


# -- a number that belongs to somebody else by now


def reused_pid(world: World) -> None:
    """The launcher's pid, which /proc/locks goes on naming, is an innocent's; it is swept by force (case 62)."""
    if os.geteuid() != 0:
        return
    project = world.project()
    project.reviewer("hangs", "--touch", project.path.with_suffix(".up"), "--hang")
    project.only("hangs")
    for number in range(5):  # on a busy machine somebody else may be faster
        project.edit(f"number = {number}\n")
        with world.trial("launcher's pid reused, swept by force", project):
            launcher = fire_and_tell_pid(project)
            wait_until(project.path.with_suffix(".up").exists, LONG_S)
            project.path.with_suffix(".up").unlink()
            taken = take_pid(launcher)
            world.innocents += [taken] if taken else []
            sweep(project, "--force", project.last)
        if taken:
            return
    print("the launcher's pid was not to be had")


def fire_and_tell_pid(project: Project) -> int:
    hook = subprocess.Popen([*HOOK, "stop"], cwd=project.path, stdin=subprocess.PIPE)
    hook.communicate(project.payload().encode())
    return hook.pid


def take_pid(number: int) -> Innocent | None:
    """A process that has that number, which belongs to nobody just now; None where another is faster every time."""
    for _ in range(200):
        if is_alive(number):
            return None
        try:
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(number - 1))
        except OSError:
            return None
        found = innocent("launcher's pid")
        if found.pid == number:
            return found
        found.end()
    return None


# -- all of it


def all_adversaries(world: World, is_short: bool) -> None:
    for tier, some in ((1, ("supervisor", "both")), (2, ("supervisor", "guardian"))):
        adversaries(world, tier, some if is_short else ENDINGS)


def hooks(world: World, is_short: bool) -> None:
    first_hooks(world, 24)
    if not is_short:
        many_hooks(world, 64, 8)


def parts(options: argparse.Namespace) -> dict[str, Callable[[World], None]]:
    """What there is to be done, by name."""
    kills = options.kills or (8 if options.short else 100)
    return {
        "adversaries": lambda world: all_adversaries(world, options.short),
        "hooks": lambda world: hooks(world, options.short),
        "clone": copied_clone,
        "wipe": wiped,
        "gc": garbage_collected,
        "pid": reused_pid,
        "kills": lambda world: random_kills(world, kills),
    }


def show(world: World) -> bool:
    print(f"{'':<44} {'trials':>6} {' '.join(COLUMNS)}")
    for row in world.rows.values():
        print(row)
    if world.moments:
        print("killed after: " + ", ".join(f"{name} {count}" for name, count in sorted(world.moments.items())))
    faults = [line for row in world.rows.values() for line in [f"{row.name}: {told}" for told in row.told]]
    print("\n".join(faults[:100]) if faults else "nothing left, nothing lost, nobody else touched")
    return not faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="less of everything: under 40 s")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 31), help="draw the same moments again")
    parser.add_argument("--kills", type=int, default=0, help="how many ordinary runs are killed (100; short: 8)")
    parser.add_argument("--time", type=float, help="seconds after which no new trial begins (600; short: 35)")
    parser.add_argument("names", nargs="*", help="only these: adversaries hooks clone wipe gc pid kills")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    began = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="orch-chaos-")).resolve()
    world = World(root, options.seed, began + (options.time or (35.0 if options.short else 600.0)))
    try:
        for name, part in parts(options).items():
            if name not in (options.names or [name]):
                continue
            if world.has_time():
                part(world)
            else:
                print(f"the time is up: {name} was left out")
    finally:
        is_well = show(world)
        subprocess.run(["chmod", "-R", "u+rwX", str(root)], check=False)
        shutil.rmtree(root, ignore_errors=True)
    print(f"{sum(row.trials for row in world.rows.values())} trials in {time.monotonic() - began:.0f} s")
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
