"""`.orch` in real repositories: many that make it at once, what a clone brings along, and a disk that is full."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from git_orch import key, layout, orchdir, reaper, registry
from git_orch.errors import ForeignDirectory, GitError
from git_orch.layout import Layout
from git_orch.reaper import Swept
from tests.adversaries.stage import ROOT, is_alive
from tests.conftest import MakeRepo
from tests.integration.scene import PROJECT, Dying, open_scene
from tests.repo import Repo

TIMEOUT_S = 60


def place(repo: Repo) -> Layout:
    return layout.locate(str(repo.path), os.environ)


def everything(folder: Path) -> dict[str, bytes | str]:
    """Each path below the folder with its content, git's own files excepted."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not name.startswith(".git/") and name != ".git":
            found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
    return found


# -- at once (case 68)


def at_once(number: int, body: str, *arguments: str | Path) -> list[str]:
    """What so many processes print that all begin the body in the same instant."""
    code = f"import os, sys; sys.path.insert(0, sys.argv[1]); argv = sys.argv[2:]\nsys.stdin.read()\n{body}"
    command = [sys.executable, "-I", "-S", "-c", code, str(PROJECT), *map(str, arguments)]
    gate_r, gate_w = os.pipe()
    started = [subprocess.Popen(command, stdin=gate_r, stdout=subprocess.PIPE, text=True) for _ in range(number)]
    os.close(gate_r)
    os.close(gate_w)  # the end of the pipe is everybody's starting gun
    said = [process.communicate(timeout=TIMEOUT_S)[0] for process in started]
    assert [process.returncode for process in started] == [0] * number
    return said


def test_24_first_hooks_make_one_folder(repo: Repo) -> None:
    repo.commit("first")
    body = """
from git_orch import layout, registry
place = layout.locate(argv[0], os.environ)
book = registry.ensure(place, b"k" * 32, os.environ)
print(book.instance)"""
    instances = at_once(24, body, repo.path)
    assert len(set(instances)) == 1
    assert sorted(os.listdir(repo.path / ".orch")) == [".gitignore", "inbox", "instance", "pending"]
    assert (repo.path / ".orch" / "instance").read_text() == instances[0]
    assert sorted(os.listdir(repo.path)) == [".git", ".orch"]
    assert repo.git("status", "--porcelain") == ""


def test_24_first_hooks_lose_no_entry(repo: Repo) -> None:
    repo.commit("first")
    body = """
from git_orch import layout, registry
from tests.entries import dead_run
place = layout.locate(argv[0], os.environ)
book = registry.ensure(place, b"k" * 32, os.environ)
print(dead_run(place, book).run_id)"""
    run_ids = sorted(line.strip() for line in at_once(24, body, repo.path))
    book = registry.ensure(place(repo), b"k" * 32, os.environ)
    assert book.run_ids() == run_ids
    for run_id in run_ids:
        assert not isinstance(book.intent(run_id), registry.Refused)
        book.remove(run_id)
    assert os.listdir(book.pending) == []


def test_8_processes_make_one_key() -> None:
    made = at_once(8, "from git_orch import key\nprint(key.load(os.environ).hex())")
    assert len(set(made)) == 1
    assert made[0].strip() == key.load(os.environ).hex()
    assert os.listdir(key.state_dir(os.environ)) == ["key"]


# -- what a clone brings along (cases 17, 51)


@pytest.mark.leaves_entries("the clone's own, never touched")
@pytest.mark.usefixtures("make_repo")
def test_a_tracked_folder_is_refused_and_not_written_to(repo: Repo, tmp_path: Path) -> None:
    """One that looks just like ours: with an instance, and an entry."""
    assert orchdir.make(str(repo.path / ".orch"), "0" * 16)
    (repo.path / ".orch" / ".gitignore").unlink()
    repo.write(".orch/pending/20261130T201500123-9f3a61c2.json", "{}")
    repo.commit("hostile")
    subprocess.run(["git", "clone", "-q", repo.path, tmp_path / "clone"], check=True)
    clone = Repo(tmp_path / "clone")
    before = everything(clone.path)
    for cwd in (clone.path, clone.path / ".git"):
        with pytest.raises(ForeignDirectory) as caught:
            registry.ensure(layout.locate(str(cwd), os.environ), b"k" * 32, os.environ)
        assert caught.value.message == ".orch/ exists and is not ours (git tracks it)."
        assert caught.value.hint == "git config orch.dir .git-orch"
    assert everything(clone.path) == before
    assert not (clone.path / ".git" / "orch" / "instance").exists()


@pytest.mark.leaves_entries("the clone's own, never touched")
def test_a_part_that_git_tracks_is_refused_too(repo: Repo) -> None:
    repo.write(".orch/pending/x.json", "{}")
    repo.commit("hostile")
    with pytest.raises(ForeignDirectory, match="git tracks it"):
        registry.ensure(place(repo), b"k" * 32, os.environ)
    assert everything(repo.path) == {".orch": "", ".orch/pending": "", ".orch/pending/x.json": b"{}"}


def test_a_branch_that_brings_one_later_is_noticed(repo: Repo) -> None:
    repo.commit("first")
    registry.ensure(place(repo), b"k" * 32, os.environ)
    repo.git("switch", "-q", "-c", "hostile")
    instance = repo.write(".orch/instance", "f" * 16 + "\n")
    repo.git("add", "--force", str(instance))
    with pytest.raises(ForeignDirectory, match="git tracks it"):
        registry.ensure(place(repo), b"k" * 32, os.environ)


def test_another_name_gives_the_way_out(repo: Repo) -> None:
    repo.write(".orch/cli.js", "theirs")
    with pytest.raises(ForeignDirectory):
        registry.ensure(place(repo), b"k" * 32, os.environ)
    ours = layout.locate(str(repo.path), os.environ, orch_dir=".git-orch")
    registry.ensure(ours, b"k" * 32, os.environ)
    assert sorted(os.listdir(repo.path)) == [".git", ".git-orch", ".orch"]
    assert os.listdir(repo.path / ".orch") == ["cli.js"]


@pytest.mark.skipif(not ROOT, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(repo: Repo) -> None:
    book = registry.ensure(place(repo), b"k" * 32, os.environ)
    os.chown(book.pending, 65534, 65534)
    with pytest.raises(ForeignDirectory, match="its pending is no folder of yours"):
        registry.ensure(place(repo), b"k" * 32, os.environ)
    os.chown(book.live, 65534, 65534)
    with pytest.raises(ForeignDirectory, match="it belongs to user 65534"):
        registry.ensure(place(repo), b"k" * 32, os.environ)


def test_an_index_that_cannot_be_read_lets_nothing_pass(repo: Repo) -> None:
    """Whether git tracks the folder is then unknown."""
    repo.commit("first")
    (repo.path / ".git" / "index").write_bytes(b"DIRC torn")
    with pytest.raises(GitError, match="git ls-files failed"):
        registry.ensure(place(repo), b"k" * 32, os.environ)
    assert not (repo.path / ".orch").exists()


# -- one place for all (case 69)


def test_every_worktree_has_the_same_folder_and_registry(repo: Repo, tmp_path: Path) -> None:
    repo.commit("first")
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    first = registry.ensure(place(repo), b"k" * 32, os.environ)
    second = registry.ensure(place(Repo(tmp_path / "linked")), b"k" * 32, os.environ)
    assert first.live == second.live == str(repo.path / ".orch")
    assert first.instance == second.instance


def test_a_bare_repository_has_it_among_its_own_files(make_repo: MakeRepo) -> None:
    bare = make_repo("bare.git", bare=True)
    book = registry.ensure(place(bare), b"k" * 32, os.environ)
    assert book.live == str(bare.path / "orch" / "live")
    assert registry.ensure(place(bare), b"k" * 32, os.environ).instance == book.instance


# -- taken away and brought back (case 50)


@pytest.mark.parametrize("command", [("clean", "-fdx"), ("stash", "--all")])
def test_it_comes_back_with_the_same_instance(repo: Repo, command: tuple[str, ...]) -> None:
    repo.write("a", "")
    repo.commit("first")
    before = registry.ensure(place(repo), b"k" * 32, os.environ).instance
    repo.git(*command)
    assert not (repo.path / ".orch").exists()
    assert registry.open_registry(place(repo), b"k" * 32) is None
    assert registry.ensure(place(repo), b"k" * 32, os.environ).instance == before


@pytest.mark.leaves_entries("of a dead run, put back by a stash: swept or told")
def test_a_stash_with_a_live_run_in_it_may_be_popped_at_any_time(repo: Repo) -> None:
    """Its supervisor puts nothing back here, so that the popped entry stands alone, its lock held by nobody."""
    scene = open_scene(repo)
    with Dying(repo, "working") as run:
        repo.git("stash", "--all")
        assert reaper.sweep(scene) == Swept()
        repo.git("stash", "pop")
        swept = reaper.sweep(scene)
        assert swept.reaped == swept.trees == ()
        assert is_alive(run.job)
        assert run.tree.is_dir()
        os.kill(run.job, 9)
    # Now it is dead. If the folder's inode happens to be the old one again, it is reaped; else it is told as copied.
    swept = reaper.sweep(scene)
    assert (swept.reaped == (run.run_id,)) != (
        [refused.reason for refused in swept.refused] == ["copied from another clone, or not made by git-orch"]
    )
    shutil.rmtree(run.tree.parents[1], ignore_errors=True)


# -- a full disk (case 18)

FULL_DISK = """
import errno
from git_orch import orchdir, registry
from git_orch.errors import EnvironmentProblem
from git_orch.registry import State
from tests.entries import INSTANCE, dead_run, intent_of, layout_at, make_registry
from pathlib import Path

top = Path(argv[0])
place = layout_at(top)
book = make_registry(place)
run = dead_run(place, book)
ballast = os.open(top / "ballast", os.O_WRONLY | os.O_CREAT)
try:
    while True:
        os.write(ballast, b"x" * 4096)
except OSError as error:
    assert error.errno == errno.ENOSPC
os.close(ballast)
job = {"reviewer": "static", "child_pid": 7}
for status in ("starting", "running", "stopping"):
    state = State(status=status, supervisor_pid=7, jobs=(job,))
    assert book.write_state(run.run_id, state)
    assert book.state(run.run_id) == state
before = sorted(os.listdir(book.pending))
try:
    book.publish(intent_of(place, book))
except EnvironmentProblem as error:
    print(error.message.rpartition(": ")[2], "|", error.hint)
assert sorted(os.listdir(book.pending)) == before, os.listdir(book.pending)
assert book.intent(run.run_id) == run
assert book.ask(run.run_id, "cancel")  # a run can be ended on a full disk
assert not book.ask(run.run_id, "cancel")
assert book.asked(run.run_id) == "cancel"
book.remove(run.run_id)
assert os.listdir(book.pending) == []
print("done")
"""


def test_a_full_disk_takes_states_and_refuses_entries_whole(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    unshare = ["unshare", "--mount"] if ROOT else ["unshare", "--user", "--map-root-user", "--mount"]
    mount = 'mount -t tmpfs -o size=256k,mode=700 tmpfs "$1" && shift && exec "$@"'
    code = f"import os, sys; sys.path.insert(0, sys.argv[1]); argv = sys.argv[2:]\n{FULL_DISK}"
    words = [sys.executable, "-I", "-S", "-c", code, str(PROJECT), str(disk)]
    try:
        subprocess.run([*unshare, "sh", "-c", mount, "sh", disk, "true"], check=True, capture_output=True, timeout=30)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("no tmpfs can be mounted here, not even in a namespace of one's own")
    done = subprocess.run(
        [*unshare, "sh", "-c", mount, "sh", disk, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    assert done.stdout == "No space left on device | free some space there\ndone\n"


LIMITED = """
import resource, signal
from git_orch.errors import EnvironmentProblem
from git_orch.registry import State
from tests.entries import dead_run, intent_of, layout_at, make_registry
from pathlib import Path

place = layout_at(Path(argv[0]))
book = make_registry(place)
run = dead_run(place, book)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
assert book.write_state(run.run_id, State(status="running"))  # within what the file has already
before = sorted(os.listdir(book.pending))
resource.setrlimit(resource.RLIMIT_FSIZE, (512, 4096))
try:
    book.publish(intent_of(place, book))
except EnvironmentProblem as error:
    print(error.message.rpartition(": ")[2])
assert sorted(os.listdir(book.pending)) == before
assert book.state(run.run_id) == State(status="running")
book.remove(run.run_id)
"""


def test_a_limit_on_the_size_of_files_is_a_full_disk_too(tmp_path: Path) -> None:
    code = f"import os, sys; sys.path.insert(0, sys.argv[1]); argv = sys.argv[2:]\n{LIMITED}"
    command = [sys.executable, "-I", "-c", code, str(PROJECT), str(tmp_path / "repo")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert done.stdout == "File too large\n"
