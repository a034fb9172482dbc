"""Performance as ratios: each thing beside its plain counterpart, in turns, in one run; the medians are compared.

The machines are shared and noisy, so a number of seconds says nothing; a ratio of two medians taken in turns does.
Everything lies on tmpfs where there is one, and no tree is deleted between two measurements: on some file systems a
tree made right after one was deleted takes up to six times as long.
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
HOOK = PROJECT / "git_orch" / "hook.py"
BARE = [sys.executable, "-I", "-S"]
FOLDER_FILES = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """One line of the table: what was measured, against what, and the most that it may be."""

    name: str
    ours: list[float]
    plain: list[float]
    most: float
    unit: str = "ms"
    detail: str = ""

    @property
    def value(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.plain)

    def __str__(self) -> str:
        mark = "ok    " if self.value <= self.most else "MISSED"
        ours, plain = statistics.median(self.ours), statistics.median(self.plain)
        return (
            f"{mark} {self.name:<52} {self.value:6.2f} x  (at most {self.most:g})"
            f"  {ours:9.1f} / {plain:9.1f} {self.unit}{'  ' + self.detail if self.detail else ''}"
        )


@dataclass(kw_only=True, slots=True)
class World:
    """A sealed place for all measurements."""

    root: Path
    rounds: int
    env: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def fresh(self, name: str) -> Path:
        """A folder that was not there before, and is not deleted until the end."""
        self.count += 1
        folder = self.root / f"{name}-{self.count}"
        folder.mkdir()
        return folder

    def git(self, repo: Path, *words: str, **env: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=repo, env={**self.env, **env}, capture_output=True, text=True, check=True, timeout=600
        )
        return done.stdout.strip()

    def orch(self, repo: Path, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", "orch", *words], cwd=repo, env=self.env, capture_output=True, text=True, check=False, timeout=600
        )

    def run(self, argv: list[str], *, cwd: Path, stdin: bytes = b"", **env: str) -> None:
        subprocess.run(
            argv,
            cwd=cwd,
            env={**self.env, **env},
            input=stdin,
            capture_output=True,
            check=True,
        )


def make_world(rounds: int) -> World:
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    root = Path(tempfile.mkdtemp(prefix="orch-bench-", dir=place))
    home, tmp = root / "home", root / "tmp"
    home.mkdir()
    tmp.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = A U Thor\n\temail = author@example.com\n[gc]\n\tauto = 0\n")
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "TMPDIR": str(tmp),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
        "XDG_STATE_HOME": str(home / "state"),
    }
    return World(root=root, rounds=rounds, env=env)


def make_repo(world: World, files: int) -> Path:
    """A repository of that many small files, in folders of a hundred, all committed."""
    repo = world.fresh(f"repo{files}")
    world.git(repo, "init", "-q", "-b", "main")
    for number in range(files):
        path = repo / f"d{number // FOLDER_FILES:04d}" / f"f{number:05d}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# file {number}\n" + "value = 1\n" * 20)
    world.git(repo, "add", "-A")
    world.git(repo, "commit", "-qm", "made")
    world.git(repo, "config", "orch.enabled", "true")
    return repo


def edit(repo: Path, number: int, files: int) -> None:
    """That many files differ from what they ever were."""
    stamp = time.monotonic_ns()
    for index in range(number):
        path = (
            repo
            / f"d{index % (files // FOLDER_FILES):04d}"
            / f"f{index % (files // FOLDER_FILES) * FOLDER_FILES:05d}.py"
        )
        path.write_text(f"# edited {stamp} {index}\n")


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def in_turns(rounds: int, *actions: Callable[[], object]) -> list[list[float]]:
    """Milliseconds of each action, one after the other in each round; the first round warms up and does not count."""
    taken: list[list[float]] = [[] for _ in actions]
    for number in range(rounds + 1):
        for times, action in zip(taken, actions, strict=True):
            spent = timed(action)
            if number:
                times.append(spent)
    return taken


def payload(repo: Path, session: str) -> bytes:
    return f'{{"session_id":"{session}","cwd":"{repo}","hook_event_name":"Stop","transcript_path":"x"}}'.encode()


def fire(world: World, repo: Path, event: str, session: str = "bench") -> None:
    """The hook as a client runs it: three pipes, waited for to their ends."""
    world.run([*BARE, str(HOOK), event], cwd=repo, stdin=payload(repo, session))


def settle(repo: Path) -> None:
    """No run of the repository is alive any more, so that none is measured along."""
    while any((repo / ".orch" / "pending").glob("*.json")):
        time.sleep(0.05)


def stop_hook(world: World, files: int) -> list[Ratio]:
    """A stop after five edits, against the interpreter's start, `git add -A` on a copied index and `write-tree`."""
    repo = make_repo(world, files)
    index = world.root / f"index-{files}"
    fire(world, repo, "session-start")

    def plain() -> None:
        world.run([*BARE, "-c", "pass"], cwd=repo)
        shutil.copyfile(repo / ".git" / "index", index)
        world.git(repo, "add", "-A", GIT_INDEX_FILE=str(index))
        world.git(repo, "write-tree", GIT_INDEX_FILE=str(index))

    ours: list[float] = []
    theirs: list[float] = []
    for number in range(world.rounds + 1):
        edit(repo, 5, files)
        spent_plain = timed(plain)
        edit(repo, 5, files)
        spent = timed(lambda: fire(world, repo, "stop"))
        settle(repo)
        if number:
            ours.append(spent)
            theirs.append(spent_plain)
    return [Ratio(name=f"Stop hook, {files} files, 5 edited", ours=ours, plain=theirs, most=2.0)]


def idle_hooks(world: World) -> list[Ratio]:
    """Hooks that have nothing to do, against the interpreter's start."""
    repo = make_repo(world, 500)
    other = make_repo(world, 500)
    world.git(other, "config", "orch.enabled", "false")
    fire(world, repo, "session-start")
    rows = in_turns(
        4 * world.rounds,
        lambda: world.run([*BARE, "-c", "pass"], cwd=repo, stdin=b"{}"),
        lambda: fire(world, other, "stop"),
        lambda: fire(world, other, "user-prompt-submit"),
        lambda: fire(world, repo, "user-prompt-submit"),
        lambda: fire(world, repo, "stop"),
    )
    names = ("Stop, not enabled", "UserPromptSubmit, not enabled", "UserPromptSubmit, enabled", "Stop, tree unchanged")
    return [
        Ratio(name=f"{name}: nothing to do", ours=ours, plain=rows[0], most=1.5)
        for name, ours in zip(names, rows[1:], strict=True)
    ]


def many_untracked(world: World) -> list[Ratio]:
    """A stop on 20,000 new files, against its budget (orch.hookBudget, 1 s)."""
    repo = make_repo(world, 500)
    fire(world, repo, "session-start")
    for number in range(20_000):
        path = repo / "new" / f"{number // 500}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n")
    spent = timed(lambda: fire(world, repo, "stop"))
    settle(repo)
    again = timed(lambda: fire(world, repo, "stop"))
    settle(repo)
    return [
        Ratio(name="Stop on 20,000 new files / its budget", ours=[spent], plain=[1000.0], most=1.0),
        Ratio(name="the same once more / its budget", ours=[again], plain=[1000.0], most=1.0),
    ]


def trees(world: World, files: int) -> list[Ratio]:
    """A tree on disk: cold against archive and tar, warm against `git worktree add`."""
    from git_orch import place, tree, workspace

    repo = make_repo(world, files)
    opened = workspace.open_at(str(repo), world.env)
    root = place.temp_root(world.env)
    head = world.git(repo, "rev-parse", "HEAD^{tree}")

    def cold() -> None:
        made = place.make_place(root, _run_id(), "bench", opened.key)
        assert tree.materialize(opened.store, head, made, warm=False) == "cold"

    def plain() -> None:
        folder = world.fresh("plain")
        archive = world.root / "plain.tar"
        world.git(repo, "archive", "-o", str(archive), head)
        world.run(["tar", "-xf", str(archive), "-C", str(folder)], cwd=folder)

    ours, theirs = in_turns(2 * world.rounds, cold, plain)
    rows = [Ratio(name=f"cold tree, {files} files / archive + tar", ours=ours, plain=theirs, most=1.2)]
    warm, added = warm_trees(world, repo, files)
    rows.append(Ratio(name=f"warm tree, 50 of {files} changed / worktree add", ours=warm, plain=added, most=0.15))
    return rows


def warm_trees(world: World, repo: Path, files: int) -> tuple[list[float], list[float]]:
    from git_orch import inspection, parking, place, tree, workspace

    opened = workspace.open_at(str(repo), world.env)
    root = place.temp_root(world.env)
    warm: list[float] = []
    added: list[float] = []
    current = world.git(repo, "rev-parse", "HEAD^{tree}")
    made = place.make_place(root, _run_id(), "bench", opened.key)
    tree.materialize(opened.store, current, made, warm=False)
    for _ in range(world.rounds):
        assert parking.park(made, opened.store, inspection.inspect(made, opened.store, current))
        edit(repo, 50, files)
        world.git(repo, "commit", "-qam", "fifty")
        current = world.git(repo, "rev-parse", "HEAD^{tree}")
        made = place.make_place(root, _run_id(), "bench", opened.key)
        start = time.perf_counter()
        assert tree.materialize(opened.store, current, made) == "warm"
        warm.append((time.perf_counter() - start) * 1000)
        folder = world.fresh("worktree") / "tree"
        added.append(timed(lambda folder=folder: world.git(repo, "worktree", "add", "-q", "--detach", str(folder))))  # type: ignore[misc]
    return warm, added


def _run_id() -> str:
    from git_orch import registry

    return registry.make_run_id()


def claude(world: World) -> list[Ratio]:
    """A session of the real Claude Code that edits a file and stops, with our hooks and without: what they add."""
    from tests.acceptance.agents.clients import installed, setting
    from tests.acceptance.agents.provider import Provider, Reply

    rows: list[Ratio] = []
    for client in installed("claude"):
        repo = make_repo(world, 500)
        homes = [world.fresh("with"), world.fresh("without")]
        write = ("Bash", {"command": "date +%N >d0000/f00000.py", "description": "work"})
        with Provider(author=(Reply(text="writing", tools=(write,)), Reply(text="done"))) as provider:
            envs = [{**world.env, **setting("claude", provider.url, home).env} for home in homes]
            words = ["git", "orch", "install", "claude", "--yes", "--reviewer", "static"]
            subprocess.run(words, cwd=repo, env=envs[0], capture_output=True, check=True, timeout=100)

            program = [str(client.program), "-p", "work", "--allowedTools", "Bash", "--permission-mode", "acceptEdits"]
            taken: list[list[float]] = [[], []]
            for _ in range(world.rounds):
                for times, env in zip(taken, envs, strict=True):
                    times.append(timed(functools.partial(world.run, program, cwd=repo, **env)))
                    settle(repo)
            asked = len(provider.requests)
        reviewed = len(list((repo / ".git" / "orch" / "runs").iterdir()))
        ours, plain = map(statistics.median, taken)
        detail = f"{ours:.0f} - {plain:.0f} ms, {asked} requests, {reviewed} reviews"
        rows.append(
            Ratio(
                name=f"{client.label}, longer by our hooks / 1 s",
                ours=[ours - plain],
                plain=[1000.0],
                most=1.0,
                detail=detail,
            )
        )
    if not rows:
        print("not run: no Claude Code here (scripts/clients, AGENT_CLIS)")
    return rows


def plan(world: World, tasks: int) -> list[Ratio]:
    """A plan looked at, against reading its TOML; batches of files, against networkx's greedy colouring."""
    import tomllib

    import networkx as nx

    from git_orch import partition, planfile, planning

    text = "".join(_planned(number, tasks) for number in range(tasks))
    path = world.fresh("plan") / "work.toml"
    path.write_text(text)
    reading = timed(lambda: tomllib.loads(text))
    looking = timed(lambda: planning.look(planfile.read(str(path)), planning.Wishes(), 8))

    few = {number: _files(number, tasks // 1000) for number in range(tasks // 50)}

    def coloured() -> int:
        graph = nx.Graph()
        graph.add_nodes_from(few)
        holders: dict[str, list[int]] = {}
        for number, files in few.items():
            for name in files:
                graph.add_edges_from((number, other) for other in holders.get(name, ()))
                holders.setdefault(name, []).append(number)
        return max(nx.greedy_color(graph, "largest_first").values()) + 1

    ours, theirs = in_turns(world.rounds, lambda: partition.batches(list(few), few), coloured)
    found = len(partition.batches(list(few), few).batches)
    return [
        Ratio(name=f"plan of {tasks:,} tasks / reading its file", ours=[looking], plain=[reading], most=10.0),
        Ratio(
            name=f"batches of {len(few):,} tasks / networkx",
            ours=ours,
            plain=theirs,
            most=1.0,
            detail=f"{found} batches, {coloured()} colours",
        ),
    ]


def _planned(number: int, tasks: int) -> str:
    after = [f"t{number - step}" for step in (1 + number % 700, 1 + number % 900) if number >= step]
    words = ", ".join(f'"{name}"' for name in _files(number, tasks // 10 + 1))
    before = ", ".join(f'"{name}"' for name in after)
    return f'[[task]]\nid = "t{number}"\nprompt = "do it"\ndepends_on = [{before}]\nfiles = [{words}]\n'


def _files(number: int, spread: int) -> list[str]:
    """Five paths; the fewer folders there are, the more of them are others' as well."""
    return [f"d{(number * 7919 + step * 104729) % max(spread, 1)}/f{step * 31 % 17}.py" for step in range(5)]


def memory(world: World) -> list[Ratio]:
    """PSS of the processes of one run while its reviewer waits, against a bare interpreter."""
    repo = make_repo(world, 500)
    fifo = world.root / "fifo"
    os.mkfifo(fifo)
    world.git(repo, "config", "orch.reviewer.waits.command", f"read x <{fifo}")
    world.git(repo, "config", "orch.reviewers", "waits")
    fire(world, repo, "session-start")
    edit(repo, 1, 500)
    bare = subprocess.Popen([*BARE, "-c", "input()"], stdin=subprocess.PIPE, env=world.env)
    fire(world, repo, "stop")
    try:
        supervisor = wait_for(lambda: _supervisor(world, repo))
        guardian = wait_for(lambda: _child(supervisor))
        return [
            Ratio(
                name="memory of a supervisor / bare interpreter",
                ours=[pss(supervisor)],
                plain=[pss(bare.pid)],
                most=2.0,
                unit="MiB",
            ),
            Ratio(
                name="memory of its guardian / bare interpreter",
                ours=[pss(guardian)],
                plain=[pss(bare.pid)],
                most=2.0,
                unit="MiB",
            ),
        ]
    finally:
        world.orch(repo, "stop", "--all")
        bare.communicate(b"\n")


def _supervisor(world: World, repo: Path) -> int:
    from git_orch import workspace

    book = workspace.open_at(str(repo), world.env).book
    return next((book.supervisor_pid(run_id) for run_id in book.run_ids() if book.guardian_pid(run_id)), 0)


def _child(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else 0


def wait_for(question: Callable[[], int]) -> int:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if found := question():
            return found
        time.sleep(0.02)
    raise TimeoutError("the run did not come up")


def pss(pid: int) -> float:
    """Proportional set size in MiB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def sweep(world: World, entries: int) -> list[Ratio]:
    """A sweep over entries whose runs have ended, against reading the same files."""
    from git_orch import launch, reaper, registry, runs, workspace
    from git_orch.model import Base, ReviewerSettings
    from git_orch.target import Target

    repo = make_repo(world, 100)
    opened = workspace.open_at(str(repo), world.env)
    tree_id = world.git(repo, "rev-parse", "HEAD^{tree}")
    order = launch.Order(reviewers=(ReviewerSettings(name="static"),))
    target = Target(tree_id=tree_id, base=Base(tree_id=tree_id, name="HEAD"), subject="working tree")

    def make() -> None:
        for _ in range(entries):
            intent = launch.prepare(
                opened.layout, opened.settings, target, order, str(world.root), opened.book.instance
            )
            os.close(opened.book.publish(intent).fd)
            runs.write(intent.run_dir, runs.RECORD, {**intent.to_json(), "status": "done", "verdict": "pass"})

    def read() -> None:
        for run_id in opened.book.run_ids():
            for kind in ("json", "state", "lock"):
                Path(opened.book.path(run_id, kind)).read_bytes()
            (Path(opened.layout.run_dir(run_id)) / runs.RECORD).read_bytes()

    make()
    plain = timed(read)
    ours = timed(lambda: reaper.sweep(opened))
    left = len(registry.Registry(opened.book.live, opened.key, opened.book.instance).run_ids())
    return [
        Ratio(
            name=f"sweep of {entries} ended entries / reading them",
            ours=[ours],
            plain=[plain],
            most=3.0,
            detail=f"{left} left",
        )
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--quick", action="store_true", help="few rounds and small repositories, to see that it runs")
    parser.add_argument("names", nargs="*", help="only these: hook idle untracked trees memory sweep claude plan")
    options = parser.parse_args()
    sizes = (1_000,) if options.quick else (5_000, 50_000)
    benches: dict[str, Callable[[World], list[Ratio]]] = {
        "hook": lambda world: [row for files in sizes for row in stop_hook(world, files)],
        "idle": idle_hooks,
        "untracked": many_untracked,
        "trees": lambda world: trees(world, sizes[0]),
        "memory": memory,
        "claude": claude,
        "plan": lambda world: plan(world, 10_000 if options.quick else 100_000),
        "sweep": lambda world: sweep(world, 500 if options.quick else 10_000),
    }
    sys.path.insert(0, str(PROJECT))
    world = make_world(rounds=3 if options.quick else 9)
    os.environ.update(world.env)
    missed = 0
    try:
        for name in options.names or benches:
            for row in benches[name](world):
                print(row, flush=True)
                missed += row.value > row.most
    finally:
        shutil.rmtree(world.root, ignore_errors=True)
    print(f"{missed} missed" if missed else "all within their bounds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
