"""Folders reached by path, as on Windows, on Linux: never through a link, and after every rename the same folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from git_orch import by_path, cursor, listing, system, windows
from git_orch.removal import remove_path
from git_orch.system import FOLDER, PLAIN
from tests.folders_by_path import reach_by_path

OID = "1" * 40
SHARING_VIOLATION, ACCESS_DENIED = 32, 5


@pytest.fixture(autouse=True)
def as_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    reach_by_path(monkeypatch)


@pytest.fixture
def top(tmp_path: Path) -> Iterator[int]:
    fd = by_path.open(str(tmp_path), FOLDER)
    yield fd
    os.close(fd)


def test_a_folder_that_is_renamed_is_the_same_to_who_has_it_open(tmp_path: Path, top: int) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_text("x")
    fd = by_path.open("a", FOLDER, dir_fd=top)
    by_path.rename("a", "b", src_dir_fd=top, dst_dir_fd=top)
    assert by_path.stat(b"file", dir_fd=fd, follow_symlinks=False).st_size == 1
    with by_path.scandir(fd) as entries:
        assert [entry.name for entry in entries] == ["file"]
    os.close(fd)


def test_dots_are_resolved(tmp_path: Path, top: int) -> None:
    (tmp_path / "a").mkdir()
    below = by_path.open("a", FOLDER, dir_fd=top)
    for name, fd in ((".", top), ("..", below)):
        again = by_path.open(name, FOLDER, dir_fd=fd)
        assert windows.path_of(again) == str(tmp_path)
        os.close(again)
    os.close(below)


def test_neither_a_folder_nor_a_file_is_opened_through_a_link(tmp_path: Path, top: int) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "to-folder").symlink_to("a")
    (tmp_path / "to-file").symlink_to("file")
    for name, flags in (("to-folder", FOLDER), ("to-file", os.O_RDONLY | PLAIN)):
        with pytest.raises(OSError, match=r"symbolic|directory"):
            by_path.open(name, flags, dir_fd=top)


def test_what_a_link_holds_has_git_s_slashes(tmp_path: Path, top: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to("\\\\?\\a\\b")
    assert by_path.readlink("link", dir_fd=top) == "a\\b"
    monkeypatch.setattr(os, "sep", "\\")
    monkeypatch.setattr(by_path, "_whole", lambda _name, _fd: str(tmp_path / "link"))
    assert by_path.readlink("link", dir_fd=top) == "a/b"


def test_a_file_that_may_not_be_written_goes(tmp_path: Path, top: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows removes no read-only file; Linux asks the folder."""
    plain = tmp_path / "object"
    plain.touch()
    plain.chmod(0o444)
    real = os.unlink

    def as_windows_does(path: str) -> None:
        if not os.stat(path).st_mode & 0o200:
            raise PermissionError(ACCESS_DENIED, "read-only", path)
        real(path)

    monkeypatch.setattr(os, "unlink", as_windows_does)
    by_path.unlink("object", dir_fd=top)
    assert not plain.exists()


def test_a_folder_that_cannot_be_unlinked_is_not_touched(tmp_path: Path, top: int) -> None:
    (tmp_path / "a").mkdir(mode=0o500)
    with pytest.raises(OSError, match=r"directory|permitted"):
        by_path.unlink("a", dir_fd=top)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o500


def test_a_tree_goes_and_what_its_links_lead_to_stays(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    deep = tmp_path / "tree" / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    (deep / "link").symlink_to(tmp_path / "kept")
    assert remove_path(str(tmp_path / "tree"))
    assert not (tmp_path / "tree").exists()
    assert os.listdir(tmp_path / "kept") == ["file"]


def test_a_folder_swapped_for_a_link_ends_the_walk(tmp_path: Path, top: int) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "other" / "b").mkdir(parents=True)
    with cursor.Cursor(top) as here:
        here.enter("a")
        here.enter("b")
        inner.rename(tmp_path / "other" / "moved")
        with pytest.raises(cursor.Elsewhere):
            here.leave()


def test_a_name_with_nul_is_none(top: int) -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        by_path.stat("a\0b", dir_fd=top)


def test_a_place_in_a_file_is_read_and_written(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    assert by_path.pwrite(fd, b"abc", 2) == 3
    assert by_path.pread(fd, 2, 3) == b"bc"
    assert by_path.pread(fd, 9, 9) == b""
    os.close(fd)


def test_the_rest_is_os_s_own() -> None:
    assert by_path.fstat is os.fstat
    assert by_path.statvfs("/").f_bavail > 0


# -- modes, links and names, of which Windows has others


def listed(tmp_path: Path, *, mode: str, size: int) -> bytes:
    (tmp_path / "tree").mkdir()
    return f"{mode} blob {OID} {size:>7}\tname\0".encode()


def test_an_exec_bit_and_the_size_of_a_link_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = listed(tmp_path, mode="120000", size=99)
    (tmp_path / "tree" / "name").symlink_to("x")
    with pytest.raises(OSError, match="another type"):
        listing.index_of(raw, str(tmp_path / "tree"), "sha1")
    monkeypatch.setattr(listing, "HAS_MODES", False)
    assert listing.index_of(raw, str(tmp_path / "tree"), "sha1")


@pytest.mark.parametrize("name", ["a", "a.b", ".git-x", "con2", "aux-file", "common", "ünï", "COM", "lpt10"])
def test_names_that_windows_has(name: str) -> None:
    assert windows.is_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "con",
        "CON.txt",
        "aux .c",
        "nul",
        "COM1",
        "lpt9.x",
        "com\u00b9",
        "a:b",
        "a.",
        "a ",
        "a\\b",
        "a|b",
        "a\x01",
        "GIT~1",
        os.fsdecode(b"\xff"),
    ],
)
def test_names_that_windows_does_not_have(name: str) -> None:
    assert not windows.is_name(name)


def test_a_tree_with_such_a_name_is_refused() -> None:
    entry = f"100644 blob {OID} {1:>7}\t"
    listing.refuse_unnameable(f"{entry}dir/a\0".encode())
    with pytest.raises(listing.TreeUnusable, match="dir/aux"):
        listing.refuse_unnameable(f"{entry}dir/a\0{entry}dir/aux.c\0".encode())


# -- what lies in the profile is closed to others


@pytest.mark.parametrize(
    ("path", "is_inside"),
    [("u/key", True), ("u/a/../key", True), ("u", False), ("user2/key", False), ("u/../key", False)],
)
def test_only_the_profile_is_closed(tmp_path: Path, path: str, is_inside: bool) -> None:
    env = {"USERPROFILE": str(tmp_path / "u")}
    assert windows.is_in_profile(f"{tmp_path}/{path}", env) is is_inside
    assert not windows.is_in_profile(f"{tmp_path}/{path}", {})
    assert not windows.is_in_profile(f"{tmp_path}/{path}", {"USERPROFILE": "u"})


def test_a_link_out_of_the_profile_is_outside(tmp_path: Path) -> None:
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "link").symlink_to(tmp_path)
    assert not windows.is_in_profile(str(tmp_path / "u" / "link" / "key"), {"USERPROFILE": str(tmp_path / "u")})


def test_without_users_the_profile_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.delattr(os, "geteuid")
    assert system.is_private(os.stat(tmp_path), str(tmp_path / "key"))
    assert not system.is_private(os.stat(tmp_path), "/key")


def test_where_temporary_files_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"TEMP": "C:\\T", "USERPROFILE": "C:\\U"}
    assert (system.temp_folder(env), system.home(env)) == ("/tmp", "")
    monkeypatch.setattr(system, "HAS_MODES", False)
    assert (system.temp_folder(env), system.home(env)) == ("C:\\T", "C:\\U")
    assert system.home({**env, "HOME": "C:\\H"}) == "C:\\H"


# -- a lock of two bytes, handed over


class Locked:
    """LockFileEx and UnlockFileEx on a table: who has which byte."""

    def __init__(self) -> None:
        self.holder: dict[int, int] = {}

    def lock(self, fd: int, _how: int, byte: int, _high: int) -> bool:
        return self.holder.setdefault(byte, fd) == fd

    def unlock(self, fd: int, byte: int, _high: int) -> None:
        if self.holder.get(byte) == fd:
            del self.holder[byte]


def test_a_lock_goes_from_launcher_to_supervisor_without_an_instant_of_freedom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Locked()
    monkeypatch.setattr(windows, "_lock_region", table.lock)
    monkeypatch.setattr(windows, "_unlock_region", table.unlock)
    (tmp_path / "lock").touch()
    launcher, supervisor, sweep = (os.open(tmp_path / "lock", os.O_RDWR) for _ in range(3))

    def is_free() -> bool:
        return windows.lock(sweep, exclusive=True, wait=False)

    assert windows.lock(launcher, exclusive=True, wait=False)
    assert not is_free()
    assert not windows.take_over(supervisor)
    windows.let_take(launcher)
    assert not is_free()
    assert windows.take_over(supervisor)
    assert not is_free()
    table.unlock(launcher, 0, 0)  # its descriptor is closed
    assert not is_free()
    table.unlock(supervisor, 1, 0)
    assert is_free()
    for fd in (launcher, supervisor, sweep):
        os.close(fd)


def test_of_a_folder_it_is_asked_whether_it_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "attributes_of", lambda _: windows.IS_FOLDER)
    for answer in (True, False):
        monkeypatch.setattr(windows, "_is_free", lambda _, answer=answer: answer)
        assert windows.lock(7, exclusive=True, wait=False) is answer


def test_a_folder_is_held_by_another_descriptor_or_by_none(
    tmp_path: Path, top: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: str, *, pin: bool) -> int:
        assert pin
        raise PermissionError(SHARING_VIOLATION, "in use")

    monkeypatch.setattr(windows, "open_folder", lambda path, *, pin: os.open(path, FOLDER) if pin else -1)
    held = windows.pinned(os.dup(top))
    assert windows.path_of(held) == str(tmp_path)
    monkeypatch.setattr(windows, "open_folder", refuse)
    assert windows.pinned(held) == held
    os.close(held)


@pytest.mark.parametrize(
    ("attributes", "folder", "error"),
    [
        (windows.IS_FOLDER, True, None),
        (0, False, None),
        (windows.IS_FOLDER | windows.IS_REPARSE_POINT, True, OSError),
        (windows.IS_REPARSE_POINT, False, OSError),
        (0, True, NotADirectoryError),
        (windows.IS_FOLDER, False, IsADirectoryError),
    ],
)
def test_a_reparse_point_is_refused_whatever_it_is(
    attributes: int, folder: bool, error: type[OSError] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "attributes_of", lambda _: attributes)
    fd = os.open(os.devnull, os.O_RDONLY)
    if error is None:
        assert windows._unless_linked(fd, "p", folder=folder) == fd
        os.close(fd)
    else:
        with pytest.raises(error):
            windows._unless_linked(fd, "p", folder=folder)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
