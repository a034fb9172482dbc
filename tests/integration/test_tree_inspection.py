"""After a review: what was tampered with, what was littered, and that nothing hides from it."""

from __future__ import annotations

import mmap
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from git_orch import inspection as inspections
from git_orch import store as stores
from git_orch.errors import GitError
from git_orch.inspection import Inspection, inspect
from git_orch.place import Place
from git_orch.store import Store
from git_orch.tree import materialize
from tests.folders_by_path import reach_by_path
from tests.ordinary_user import as_ordinary_user, open_folder
from tests.repo import Repo, init_repo
from tests.scratch import clear_places, layout_of, new_place, store_of, tree_of
from tests.seal import Seal


@pytest.fixture(autouse=True)
def cleared(seal: Seal) -> Iterator[None]:  # noqa: ARG001 - it is set up first and looks last
    yield
    clear_places()


class Made:
    """A tree that was materialized, and what is needed to look at it again."""

    def __init__(self, repo: Repo) -> None:
        repo.write("a.py", "content of a\n")
        repo.write("dir/b.py", "content of b\n")
        repo.write("dir/sub/c.py", "content of c\n")
        repo.write("script", "#!/bin/sh\n", mode=0o755)
        (repo.path / "link").symlink_to("a.py")
        repo.git("add", "-A")
        repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
        self.tree_id = repo.git("write-tree")
        self.store: Store = store_of(repo)
        self.place: Place = new_place()
        materialize(self.store, self.tree_id, self.place)
        self.tree = Path(self.place.tree)

    def inspect(self) -> Inspection:
        return inspect(self.place, self.store, self.tree_id)


@pytest.fixture
def made(repo: Repo) -> Made:
    return Made(repo)


@pytest.fixture(params=["recorded", "clock in doubt", "as the reaper sees it", "by path"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, made: Made) -> str:
    """The ways to look: by the times of change, by content alone, without the record of the making; and as Windows."""
    monkeypatch.setattr(inspections, "_clock_can_be_set", lambda: request.param == "clock in doubt")
    assert made.place.made is not None
    if request.param == "by path":
        reach_by_path(monkeypatch)
    if request.param.startswith("as the reaper"):
        made.place.made = None
    else:
        made.place.made.written_ns += 60_000_000_000  # as if the tree had been made a while ago
    return str(request.param)


def shell(command: str, folder: Path) -> None:
    subprocess.run(["sh", "-euc", command], cwd=folder, check=True, timeout=60)


# What a job does in its tree, as a shell has it, and the paths that are no longer the tree's.
TAMPERED = {
    "edited": ("echo edited >a.py", "a.py"),
    "edited, size kept": ("echo CONTENT OF A >a.py", "a.py"),
    "edited, size and times kept": (
        "touch -r a.py ../times; echo CONTENT OF A >a.py; touch -r ../times a.py; rm ../times",
        "a.py",
    ),
    "grown": ("echo more >>a.py", "a.py"),
    "emptied": (": >a.py", "a.py"),
    "removed": ("rm a.py", "a.py"),
    "folder removed": ("rm -r dir", "dir/b.py dir/sub/c.py"),
    "exec bit set": ("chmod +x a.py", "a.py"),
    "exec bit cleared": ("chmod -x script", "script"),
    "link elsewhere": ("ln -sfn b.py link", "link"),
    "link become file": ("rm link; printf a.py >link", "link"),
    "file become link": ("ln -sf dir/b.py a.py", "a.py"),
    "file become FIFO": ("rm a.py; mkfifo a.py", "a.py"),
    "file become folder": ("rm a.py; mkdir a.py", "a.py"),
    "module become file": ("rmdir module; touch module", "module"),
    "module removed": ("rmdir module", "module"),
    "two files swapped": ("mv a.py x; mv dir/b.py a.py; mv x dir/b.py", "a.py dir/b.py"),
    "another folder in its place": (
        "cp -a dir/sub other; rm -r dir/sub; echo CONTENT OF C >other/c.py; mv other dir/sub",
        "dir/sub/c.py",
    ),
    "the whole tree removed": ("rm -r ../tree", "a.py dir/b.py dir/sub/c.py link module script"),
}


@pytest.mark.parametrize("what", TAMPERED)
@pytest.mark.usefixtures("way")
def test_tampering_is_seen(made: Made, what: str) -> None:
    assert made.inspect().clean
    command, tampered = TAMPERED[what]
    shell(command, made.tree)
    found = made.inspect()
    assert found.tampered == tuple(tampered.split())
    assert found.littered == ()
    assert not found.clean


@pytest.mark.usefixtures("way")
def test_an_edit_through_a_mapping_is_seen(made: Made) -> None:
    """On tmpfs it moves no time at all, where the page was read before it was written."""
    assert made.inspect().clean
    with (made.tree / "a.py").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:7] = mapped[0:7].upper()
    assert made.inspect().tampered == ("a.py",)


def test_a_folder_that_became_a_link_is_both(made: Made, way: str) -> None:
    (made.tree / "dir").rename(made.tree.parent / "dir")
    (made.tree / "dir").symlink_to(made.tree.parent / "dir")
    assert made.inspect() == Inspection(
        tampered=("dir/b.py", "dir/sub/c.py"), littered=("dir",), size_bytes=made.inspect().size_bytes
    ), way


LITTERED = {
    "caches": ("mkdir .ruff_cache dir/__pycache__", ".ruff_cache/ dir/__pycache__/"),
    "a file": ("touch dir/sub/report.xml", "dir/sub/report.xml"),
    "in a module": ("mkdir module/x; touch module/x/y", "module/x/"),
    "a link": ("ln -s / out", "out"),
    "a FIFO": ("mkfifo fifo", "fifo"),
    "a name that is no text": ("touch \"$(printf '\\377')\"", "\udcff"),
    "what git would ignore": ("mkdir .git; mkdir .git/info; echo '*' >.git/info/exclude; touch x", ".git/ x"),
}


@pytest.mark.parametrize("what", LITTERED)
@pytest.mark.usefixtures("way")
def test_litter_is_named_and_is_no_tampering(made: Made, what: str) -> None:
    """Case 52: a linter's caches."""
    command, littered = LITTERED[what]
    shell(command, made.tree)
    found = made.inspect()
    assert (found.tampered, found.littered) == ((), tuple(littered.split()))


def test_a_planted_repository_is_seen_and_nothing_of_it_runs(made: Made, tmp_path: Path) -> None:
    """Case 66: `git init` in the tree, with a program as its fsmonitor, and one in the submodule's folder."""
    witness = tmp_path / "ran"
    for folder in (made.tree, made.tree / "module"):
        subprocess.run(["git", "init", "-q", folder], check=True, timeout=60)
        hook = folder / ".git" / "watch"
        hook.write_text(f"#!/bin/sh\ntouch {witness}\n")
        hook.chmod(0o755)
        subprocess.run(["git", "-C", folder, "config", "core.fsmonitor", hook], check=True, timeout=60)
    found = made.inspect()
    assert (found.tampered, found.littered) == ((), (".git/", "module/.git/"))
    assert not witness.exists()
    subprocess.run(["git", "status"], cwd=made.tree, check=True, capture_output=True, timeout=60)
    assert witness.exists()  # the plain way runs it


def test_a_flood_of_litter_is_named_up_to_a_limit(made: Made) -> None:
    for number in range(inspections.MOST_LITTERED + 50):
        (made.tree / f"litter-{number:05d}").touch()
    assert len(made.inspect().littered) == inspections.MOST_LITTERED


def test_litter_of_any_depth_is_not_walked(made: Made) -> None:
    os.mkdir(made.tree / "deep")
    fd = os.open(made.tree / "deep", os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    assert made.inspect().littered == ("deep/",)


def test_a_socket_in_the_place_of_a_file(made: Made) -> None:
    (made.tree / "a.py").unlink()
    os.chdir(made.tree)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("a.py")
    assert made.inspect().tampered == ("a.py",)


def test_what_was_changed_and_changed_back_is_as_it_was(made: Made) -> None:
    (made.tree / "a.py").write_text("edited\n")
    (made.tree / "a.py").write_text("content of a\n")
    (made.tree / "a.py").chmod(0o600)
    assert made.inspect().clean


@pytest.mark.parametrize("harm", ["removed", "cut", "of another tree"])
def test_the_record_of_the_making_is_not_believed_once_it_was_touched(repo: Repo, made: Made, harm: str) -> None:
    """A job of the same user can write it: then the tree is compared with what git has, content by content."""
    index = Path(made.place.index)
    (made.tree / "a.py").write_text("CONTENT OF A\n")
    if harm == "removed":
        index.unlink()
    elif harm == "cut":
        index.write_bytes(index.read_bytes()[:-30])
    else:
        git = made.store.git(index=made.place.index, work_tree=made.place.tree)
        git.run("update-index", "a.py")
    assert repo.git("cat-file", "-t", made.tree_id) == "tree"
    assert made.inspect().tampered == ("a.py",)


def test_only_what_may_have_changed_is_read_again(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = inspections._Walk._hash

    def counted(self: inspections._Walk, name: str, dir_fd: int, status: os.stat_result, mode: int) -> str:
        read.append(name)
        return real(self, name, dir_fd, status, mode)

    monkeypatch.setattr(inspections._Walk, "_hash", counted)
    monkeypatch.setattr(inspections, "_clock_can_be_set", lambda: False)
    assert made.place.made is not None
    made.place.made.written_ns += 60_000_000_000  # as if the files had been old when they were recorded
    if not inspections._notes_every_write(made.place):
        pytest.skip("this file system does not note a write through a mapping")
    assert made.inspect().clean
    assert read == []
    (made.tree / "dir/b.py").chmod(0o600)
    assert made.inspect().clean
    assert read == ["b.py"]
    made.place.made.written_ns = 1
    assert made.inspect().clean
    assert len(read) == 1 + 5


@pytest.mark.parametrize("doubt", ["_clock_can_be_set", "_notes_every_write"])
def test_where_the_time_of_change_proves_nothing_all_is_read(
    made: Made, monkeypatch: pytest.MonkeyPatch, doubt: str
) -> None:
    monkeypatch.setattr(inspections, "_clock_can_be_set", lambda: doubt == "_clock_can_be_set")
    monkeypatch.setattr(inspections, "_notes_every_write", lambda _: doubt != "_notes_every_write")
    assert inspections._trusted_until(made.place) == 0


def test_a_marker_that_is_gone_proves_nothing(made: Made) -> None:
    os.unlink(made.place.marker)
    assert not inspections._notes_every_write(made.place)
    Path(made.place.marker).symlink_to("/etc/passwd")
    assert not inspections._notes_every_write(made.place)
    os.unlink(made.place.marker)


def test_as_an_ordinary_user(tmp_path: Path) -> None:
    with open_folder(tmp_path) as folder:

        def action() -> None:
            os.environ.update(HOME=str(folder), TMPDIR=str(folder), GIT_CONFIG_GLOBAL="/dev/null")
            os.chdir(folder)
            repo = init_repo(folder / "repo")
            for key in ("user.name", "user.email"):
                repo.git("config", key, "a")
            repo.write("closed/a", "x\n")
            repo.write("half/b", "x\n")
            repo.write("unreadable", "x\n")
            repo.write("fine", "x\n")
            tree_id, store, place = tree_of(repo), store_of(repo), new_place()
            materialize(store, tree_id, place)
            assert inspect(place, store, tree_id).clean
            tree = Path(place.tree)
            (tree / "closed").chmod(0o000)
            (tree / "half").chmod(0o444)
            (tree / "unreadable").chmod(0o000)
            assert inspect(place, store, tree_id).tampered == ("closed/a", "half/b", "unreadable")
            assert not inspections._clock_can_be_set()
            clear_places()

        as_ordinary_user(action)


def test_a_tree_that_git_no_longer_has_cannot_be_inspected_without_its_record(repo: Repo, made: Made) -> None:
    made.place.made = None
    shutil.rmtree(repo.path / ".git" / "objects")
    (repo.path / ".git" / "objects").mkdir()
    with pytest.raises(GitError):
        inspect(made.place, stores.ensure(layout_of(repo), os.environ), made.tree_id)
