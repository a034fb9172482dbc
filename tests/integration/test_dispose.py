"""Trees go: all of ours, nothing else, never under the hands of somebody who holds them."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from git_orch import disposal, place
from git_orch.disposal import dispose, leftovers, sweep_abandoned, sweep_trash
from git_orch.inspection import inspect
from git_orch.parking import park
from git_orch.place import Place, make_place, temp_root
from git_orch.registry import make_run_id
from git_orch.removal import remove_path
from git_orch.tree import materialize
from tests.folders_by_path import reach_by_path
from tests.mounting import bind, in_child, mount_tmpfs
from tests.ordinary_user import as_ordinary_user, open_folder
from tests.repo import Repo
from tests.scratch import KEY, clear_places, new_place, store_of, tree_of
from tests.seal import Seal

TRY_LOCK = "import fcntl,os,sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)"


@pytest.fixture(params=["by descriptor", "by path"])
def root(seal: Seal, request: pytest.FixtureRequest) -> Iterator[str]:  # noqa: ARG001 - it is set up first and looks last
    with pytest.MonkeyPatch.context() as world:
        if request.param == "by path":
            reach_by_path(world)
        yield temp_root(os.environ)
        clear_places()


def filled(run_id: str = "") -> Place:
    made = new_place(run_id)
    os.makedirs(os.path.join(made.tree, "dir", "sub"))
    Path(made.tree, "dir", "file").write_text("x")
    return made


def abandoned(folder: str) -> None:
    """The process that made the place has died without disposing."""
    place.let_go(folder)


def is_locked(folder: str) -> bool:
    done = subprocess.run([sys.executable, "-c", TRY_LOCK, folder], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0 or b"BlockingIOError" in done.stderr, done.stderr
    return done.returncode != 0


def test_nothing_is_left(root: str) -> None:
    made = filled()
    assert dispose(root, made.run_id, KEY) == "disposed"
    assert os.listdir(root) == []
    assert dispose(root, made.run_id, KEY) == "absent"
    assert dispose(f"{root}-nowhere", made.run_id, KEY) == "absent"


def test_the_lock_that_keeps_temp_cleaners_away_is_held_while_the_tree_lives(root: str) -> None:
    """Case 16: systemd-tmpfiles passes over a folder that it cannot lock, as another process here."""
    made = filled()
    other = make_place(root, made.run_id, "second", KEY)
    assert is_locked(made.run_folder)
    assert other.run_folder == made.run_folder
    abandoned(made.run_folder)
    assert not is_locked(made.run_folder)


@pytest.mark.usefixtures("root")
def test_the_lock_is_held_from_the_first_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    held = []
    real = os.rename

    def rename(source: str, target: str) -> None:
        held.append(is_locked(source))
        real(source, target)

    monkeypatch.setattr("git_orch.place.os.rename", rename)
    new_place()
    assert True in held


def test_what_another_process_holds_is_in_use(root: str) -> None:
    made = filled()
    holder = os.open(made.run_folder, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_SH)
    abandoned(made.run_folder)
    assert dispose(root, made.run_id, KEY) == "in-use"
    assert os.path.exists(os.path.join(made.tree, "dir", "file"))
    os.close(holder)
    assert dispose(root, made.run_id, KEY) == "disposed"


def test_what_has_no_marker_of_ours_is_not_touched(root: str) -> None:
    run_id = make_run_id()
    foreign = Path(root, run_id)
    (foreign / "precious").mkdir(parents=True)
    for marker in (None, "0" * 32, "", "x" * 1000):
        if marker is not None:
            (foreign / place.MARKER).write_text(marker)
        assert dispose(root, run_id, KEY) == "foreign"
    assert (foreign / "precious").is_dir()
    (foreign / place.MARKER).unlink()
    os.mkfifo(foreign / place.MARKER)
    assert dispose(root, run_id, KEY) == "foreign"
    for path in (foreign / place.MARKER,):
        path.unlink()
    (foreign / "precious").rmdir()
    foreign.rmdir()


def test_a_marker_of_another_run_or_key_is_not_ours(root: str) -> None:
    made = filled()
    abandoned(made.run_folder)
    assert dispose(root, made.run_id, b"x" * 32) == "foreign"
    other = make_run_id()
    os.rename(made.run_folder, os.path.join(root, other))
    assert dispose(root, other, KEY) == "foreign"
    os.rename(os.path.join(root, other), made.run_folder)
    assert dispose(root, made.run_id, KEY) == "disposed"


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "../../etc", "20261130T201500123-9f3a61c2/../x", "warm"])
def test_a_name_that_is_no_run_id_is_foreign(root: str, name: str) -> None:
    assert dispose(root, name, KEY) in ("foreign", "absent")
    assert os.path.isdir(root)


def test_a_link_in_the_place_of_a_run_is_foreign(root: str, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    run_id = make_run_id()
    os.symlink(tmp_path / "precious", os.path.join(root, run_id))
    assert dispose(root, run_id, KEY) == "foreign"
    assert (tmp_path / "precious" / "file").exists()
    os.unlink(os.path.join(root, run_id))


def test_who_made_it_knows_it_without_a_marker(root: str) -> None:
    """A job of the same user may remove the marker; its supervisor still knows the folder by the lock that it holds."""
    made = filled()
    os.unlink(made.marker)
    assert dispose(root, made.run_id, KEY) == "disposed"
    assert os.listdir(root) == []


def test_who_made_it_does_not_take_another_folder_for_it(root: str) -> None:
    made = filled()
    os.rename(made.run_folder, f"{root}/moved")
    os.makedirs(os.path.join(made.run_folder, "precious"))
    assert dispose(root, made.run_id, KEY) == "foreign"
    assert os.path.isdir(os.path.join(made.run_folder, "precious"))
    os.rmdir(os.path.join(made.run_folder, "precious"))
    os.rmdir(made.run_folder)
    os.rename(f"{root}/moved", made.run_folder)


def test_closed_folders_and_three_thousand_levels_go_as_an_ordinary_user(tmp_path: Path) -> None:
    """Case 15."""
    with open_folder(tmp_path) as folder:

        def action() -> None:
            os.environ["TMPDIR"] = str(folder)
            root = temp_root(os.environ)
            made = filled()
            fd = os.open(made.tree, os.O_RDONLY)
            for _ in range(3000):
                os.mkdir("d", dir_fd=fd)
                below = os.open("d", os.O_RDONLY, dir_fd=fd)
                os.close(fd)
                fd = below
            os.close(fd)
            for name, mode in (("go-cache", 0o555), ("closed", 0o000)):
                os.makedirs(os.path.join(made.tree, name, "inner"))
                Path(made.tree, name, "inner", "file").touch()
                os.chmod(os.path.join(made.tree, name, "inner"), mode)
                os.chmod(os.path.join(made.tree, name), mode)
            os.chmod(made.tree, 0o000)
            os.chmod(made.root, 0o000)
            os.chmod(made.run_folder, 0o000)
            assert dispose(root, made.run_id, KEY) == "disposed"
            assert os.listdir(root) == []

        as_ordinary_user(action)


SURVIVOR = """
import os
while os.read(0, 1):
    try:
        open("late", "w").close()
    except OSError:
        pass
    print(flush=True)
"""


def test_a_tree_that_is_being_written_to_does_not_come_back(root: str) -> None:
    """A survivor goes on by its working directory; what it makes afterwards has no name any more."""
    made = filled()
    with subprocess.Popen(
        [sys.executable, "-c", SURVIVOR],
        cwd=os.path.join(made.tree, "dir"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as survivor:
        assert survivor.stdin is not None
        assert survivor.stdout is not None
        for step in range(2):
            survivor.stdin.write(b"x")
            survivor.stdin.flush()
            survivor.stdout.readline()
            if step == 0:
                assert os.path.exists(os.path.join(made.tree, "dir", "late"))
                assert dispose(root, made.run_id, KEY) == "disposed"
        assert os.listdir(root) == []


def test_what_an_earlier_disposal_died_over_is_swept(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = filled()
    monkeypatch.setattr(disposal, "remove", lambda *_: False)
    assert dispose(root, made.run_id, KEY) == "left"
    (trash,) = os.listdir(root)
    assert trash.startswith(f".trash-{made.run_id}_")
    assert leftovers(root) == []
    assert sweep_trash(root, KEY) == [trash]
    monkeypatch.undo()
    os.unlink(os.path.join(root, trash, place.MARKER))  # the first thing to go, perhaps
    assert sweep_trash(root, b"x" * 32) == [trash]
    assert sweep_trash(root, KEY) == []
    assert os.listdir(root) == []


def test_trash_that_is_not_ours_or_under_somebodys_hands_stays(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = os.path.join(root, f".trash-{make_run_id()}_1234_{'0' * 32}")
    os.mkdir(foreign)
    assert sweep_trash(root, KEY) == [os.path.basename(foreign)]
    os.rmdir(foreign)
    made = filled()
    monkeypatch.setattr(disposal, "remove", lambda *_: False)
    dispose(root, made.run_id, KEY)
    monkeypatch.undo()
    (trash,) = os.listdir(root)
    holder = os.open(os.path.join(root, trash), os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    assert sweep_trash(root, KEY) == [trash]
    os.close(holder)
    assert sweep_trash(root, KEY) == []


def test_a_folder_that_a_dead_process_never_finished_goes_with_its_run(root: str) -> None:
    run_id, alive = make_run_id(), make_run_id()
    for name in (f".new-{run_id}-1234", f".new-{alive}-1234"):
        Path(root, name).mkdir()
        Path(root, name, "half").touch()
    assert dispose(root, run_id, KEY) == "absent"
    assert os.listdir(root) == [f".new-{alive}-1234"]
    foreign = Path(root, alive)
    foreign.mkdir()
    assert dispose(root, alive, KEY) == "foreign"
    assert sorted(os.listdir(root)) == [f".new-{alive}-1234", alive]
    foreign.rmdir()
    assert dispose(root, alive, KEY) == "absent"
    assert os.listdir(root) == []


def test_abandoned_trees_go_when_they_are_old_and_nobody_holds_them(root: str) -> None:
    old, young, held = filled(), filled(), filled()
    for each in (old, held):
        os.utime(each.run_folder, (0, 0))
    for each in (old, young):
        abandoned(each.run_folder)
    half_made = Path(root, f".new-{make_run_id()}-1234")
    half_made.mkdir()
    os.utime(half_made, (0, 0))
    other = subprocess.run(
        [sys.executable, "-c", SWEEP, root, KEY.decode()], capture_output=True, text=True, timeout=60, check=False
    )
    assert other.stdout.split() == [old.run_id], other.stderr
    assert sorted(os.listdir(root)) == sorted([young.run_id, held.run_id])


SWEEP = (
    "import sys; from git_orch.disposal import sweep_abandoned;"
    "print(*sweep_abandoned(sys.argv[1], sys.argv[2].encode(), older_than_s=3600))"
)


def test_a_sweep_takes_parked_trees_too(root: str, repo: Repo) -> None:
    repo.write("a", "x\n")
    tree_id, store, made = tree_of(repo), store_of(repo), new_place()
    materialize(store, tree_id, made)
    assert park(made, store, inspect(made, store, tree_id))
    (parked,) = Path(root).glob("warm/*/0/parked")
    os.utime(parked, (0, 0))
    assert sweep_abandoned(root, KEY, older_than_s=3600) == ()
    assert list(Path(root).glob("warm/*")) == []


def test_what_is_mounted_in_a_tree_is_not_removed(root: str, tmp_path: Path) -> None:
    """A bind mount has the same device number as the tree: only the table of mounts tells it."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    made = filled()

    def action() -> None:
        bind(precious, Path(made.tree, "dir", "sub"))
        assert dispose(root, made.run_id, KEY) == "in-use"

    in_child(action)
    assert (precious / "file").exists()
    assert os.path.isdir(made.run_folder)


@pytest.mark.usefixtures("root")
def test_another_file_system_in_a_tree_is_left_alone() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    made = filled()

    def action() -> None:
        target = Path(made.tree, "dir", "sub")
        mount_tmpfs(target)
        (target / "precious").touch()
        assert not remove_path(made.tree)
        assert os.listdir(target) == ["precious"]
        assert os.listdir(os.path.join(made.tree, "dir")) == ["sub"]

    in_child(action)
