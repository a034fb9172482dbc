"""Trees of folders that resist their removal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from git_orch.cursor import Cursor, Elsewhere
from git_orch.removal import remove_path
from git_orch.system import FOLDER
from tests.ordinary_user import as_ordinary_user, open_folder

LEVELS = 3000


def nest(top: Path, levels: int, mode: int = 0o755) -> None:
    """A chain of folders of that depth, each with a file, made without a path that grows; closed on the way back."""
    top.mkdir()
    descriptors = [os.open(top, FOLDER)]
    for _ in range(levels):
        os.mkdir("d", dir_fd=descriptors[-1])
        below = os.open("d", FOLDER, dir_fd=descriptors[-1])
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=below))
        os.fchmod(descriptors[-1], mode)
        os.close(descriptors.pop())
        descriptors.append(below)
    os.close(descriptors.pop())


def test_three_thousand_levels_go(tmp_path: Path) -> None:
    nest(tmp_path / "deep", LEVELS)
    assert remove_path(str(tmp_path / "deep"))
    assert list(tmp_path.glob("deep*")) == []


def test_closed_folders_go_as_an_ordinary_user(tmp_path: Path) -> None:
    """Go's module cache has 0555; `rm -rf` and `shutil.rmtree` fail on it, as on 000."""
    with open_folder(tmp_path) as folder:
        top = folder / "closed"

        def action() -> None:
            for mode in (0o555, 0o000, 0o444, 0o111, 0o222):
                inner = top / f"m{mode:o}" / "inner"
                inner.mkdir(parents=True)
                (inner / "file").write_text("x")
                (inner / "empty").mkdir()
                inner.chmod(mode)
                inner.parent.chmod(mode)
            top.chmod(0o000)
            assert remove_path(str(top))
            assert not os.path.lexists(top)

        as_ordinary_user(action)


def test_a_closed_chain_of_three_thousand_levels_goes_as_an_ordinary_user(tmp_path: Path) -> None:
    with open_folder(tmp_path) as folder:

        def action() -> None:
            nest(folder / "chain", LEVELS, 0o555)
            assert remove_path(str(folder / "chain"))
            assert not os.path.lexists(folder / "chain")

        as_ordinary_user(action)


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(outside)
    (tree / "dangling").symlink_to("nowhere")
    os.mkfifo(tree / "fifo")
    assert remove_path(str(tree))
    (tmp_path / "itself").symlink_to(outside)
    assert remove_path(str(tmp_path / "itself"))
    assert [path.name for path in outside.iterdir()] == ["precious"]
    assert not (tmp_path / "tree").exists()


def test_what_is_not_there_is_gone(tmp_path: Path) -> None:
    assert remove_path(str(tmp_path / "nothing"))
    assert remove_path(str(tmp_path / "nothing" / "below"))


def test_a_plain_file_goes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert remove_path(str(tmp_path / "file"))
    assert not (tmp_path / "file").exists()


def test_a_folder_of_another_user_stays_and_that_is_told(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to make a folder of another user's")
    with open_folder(tmp_path) as folder:
        foreign = folder / "tree" / "foreign"
        foreign.mkdir(parents=True)
        (foreign / "file").write_text("x")
        os.chown(folder / "tree", 65534, 65534)

        def action() -> None:
            assert not remove_path(str(folder / "tree"))

        as_ordinary_user(action)
        assert (foreign / "file").exists()


def test_ten_thousand_files_in_one_folder_go(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(10_000):
        os.close(os.open(tree / str(number), os.O_CREAT | os.O_WRONLY))
    assert remove_path(str(tree))
    assert not tree.exists()


def test_the_way_back_is_not_taken_from_a_folder_that_was_moved(tmp_path: Path) -> None:
    """A survivor that moves the folder under our hands would have us remove what lies beside its new place."""
    (tmp_path / "top" / "inner").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    top = os.open(tmp_path / "top", FOLDER)
    try:
        with Cursor(top) as cursor:
            cursor.enter("inner")
            (tmp_path / "top" / "inner").rename(tmp_path / "elsewhere" / "inner")
            with pytest.raises(Elsewhere):
                cursor.leave()
    finally:
        os.close(top)


def test_a_folder_that_may_be_read_but_not_searched_is_left_all_the_same(tmp_path: Path) -> None:
    with open_folder(tmp_path) as folder:

        def action() -> None:
            (folder / "top" / "a" / "b").mkdir(parents=True)
            (folder / "top" / "a" / "b").chmod(0o444)
            top = os.open(folder / "top", FOLDER)
            with Cursor(top) as cursor:
                cursor.enter("a")
                cursor.enter("b")
                assert cursor.leave() == "b"
                assert os.listdir(cursor.fd) == ["b"]
            (folder / "top" / "a" / "b").chmod(0o755)

        as_ordinary_user(action)
