from __future__ import annotations

import errno
import os
import resource
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from git_orch import atomic


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "folder"
    place.mkdir()
    return place


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow beyond 1,000 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("durable", [True, False])
def test_write(folder: Path, durable: bool) -> None:
    path = folder / "file"
    for data in (b"first", b"", b"x" * 3_000_000):
        atomic.write(str(path), data, durable=durable)
        assert path.read_bytes() == data
        assert entries(folder) == ["file"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_write_with_a_mode(folder: Path) -> None:
    atomic.write(str(folder / "file"), b"", mode=0o700)
    assert stat.S_IMODE((folder / "file").stat().st_mode) == 0o700


def test_write_replaces_a_link_and_not_what_it_points_to(folder: Path) -> None:
    (folder / "other").write_bytes(b"theirs")
    (folder / "file").symlink_to("other")
    atomic.write(str(folder / "file"), b"ours")
    assert not (folder / "file").is_symlink()
    assert (folder / "other").read_bytes() == b"theirs"


def test_write_that_fails_leaves_the_old_content_and_nothing_else(folder: Path) -> None:
    atomic.write(str(folder / "file"), b"old")
    with full_disk(), pytest.raises(OSError, match="File too large"):
        atomic.write(str(folder / "file"), b"x" * 5000)
    assert (folder / "file").read_bytes() == b"old"
    assert entries(folder) == ["file"]
    (folder / "taken" / "by a folder").mkdir(parents=True)
    with pytest.raises(OSError, match=r"directory|exists"):
        atomic.write(str(folder / "taken"), b"x")
    assert entries(folder) == ["file", "taken"]


def test_write_into_a_folder_that_is_not_there(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        atomic.write(str(folder / "no" / "file"), b"x")


def test_write_beside_us(folder: Path) -> None:
    os.chdir(folder)
    atomic.write("file", b"here", durable=True)
    assert (folder / "file").read_bytes() == b"here"


def test_a_reader_never_sees_a_part(folder: Path) -> None:
    path = str(folder / "file")
    atomic.write(path, b"a" * 100_000)
    stop = threading.Event()

    def turn() -> None:
        for number in range(100_000):
            if stop.is_set():
                return
            atomic.write(path, (b"a", b"b")[number % 2] * 100_000)

    writer = threading.Thread(target=turn)
    writer.start()
    try:
        seen = {atomic.read(path) for _ in range(300)}
    finally:
        stop.set()
        writer.join(30)
    assert seen <= {b"a" * 100_000, b"b" * 100_000}


@pytest.mark.parametrize("durable", [True, False])
def test_create_never_overwrites(folder: Path, durable: bool) -> None:
    path = str(folder / "file")
    assert atomic.create(path, b"first", durable=durable)
    assert not atomic.create(path, b"second", durable=durable)
    assert atomic.read(path) == b"first"
    assert entries(folder) == ["file"]


def test_create_where_a_dangling_link_is(folder: Path) -> None:
    (folder / "file").symlink_to("nowhere")
    assert not atomic.create(str(folder / "file"), b"x")
    assert entries(folder) == ["file"]


def test_of_many_that_create_at_once_one_wins(folder: Path) -> None:
    path = str(folder / "file")
    gate = threading.Barrier(8)
    won: list[bytes] = []

    def turn(number: int) -> None:
        gate.wait(30)
        if atomic.create(path, b"%d" % number):
            won.append(b"%d" % number)

    threads = [threading.Thread(target=turn, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert won == [atomic.read(path)]
    assert entries(folder) == ["file"]


def test_append(folder: Path) -> None:
    path = folder / "file"
    for line in (b"one\n", b"two\n"):
        atomic.append(str(path), line)
    assert path.read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_append_does_not_follow_a_link(folder: Path) -> None:
    (folder / "other").write_bytes(b"theirs")
    (folder / "file").symlink_to("other")
    with pytest.raises(OSError, match="symbolic links") as refused:
        atomic.append(str(folder / "file"), b"ours")
    assert refused.value.errno == errno.ELOOP


def test_append_of_which_the_disk_takes_a_part(folder: Path) -> None:
    path = folder / "file"
    path.write_bytes(b"x" * 990)
    with full_disk(), pytest.raises(OSError, match="No space left") as refused:
        atomic.append(str(path), b"y" * 100)
    assert refused.value.errno == errno.ENOSPC


def test_lines_of_many_writers_do_not_mix(folder: Path) -> None:
    path = folder / "file"
    lines = [bytes([letter]) * 3000 + b"\n" for letter in b"abcdefgh"]
    threads = [
        threading.Thread(target=lambda line=line: [atomic.append(str(path), line) for _ in range(50)]) for line in lines
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    written = path.read_bytes().splitlines(keepends=True)
    assert len(written) == 400
    assert set(written) == set(lines)


def test_read_takes_plain_files_alone(folder: Path) -> None:
    (folder / "file").write_bytes(b"content")
    (folder / "link").symlink_to("file")
    os.mkfifo(folder / "fifo")
    (folder / "sub").mkdir()
    assert atomic.read(str(folder / "file")) == b"content"
    for name in ("link", "fifo", "sub", "none", "file/below"):
        assert atomic.read(str(folder / name)) is None


def test_read_has_a_limit(folder: Path) -> None:
    (folder / "file").write_bytes(b"12345")
    assert atomic.read(str(folder / "file"), limit=5) == b"12345"
    assert atomic.read(str(folder / "file"), limit=4) is None
    (folder / "empty").write_bytes(b"")
    assert atomic.read(str(folder / "empty"), limit=0) == b""


def test_read_of_what_grows_meanwhile_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").write_bytes(b"x" * 10)
    original = os.fstat

    def then_it_grows(fd: int) -> os.stat_result:
        status = original(fd)
        with (folder / "file").open("ab") as more:
            more.write(b"y" * 5000)
        return status

    monkeypatch.setattr(os, "fstat", then_it_grows)
    assert atomic.read(str(folder / "file"), limit=100) is None


def test_write_all_of_it() -> None:
    read_end, write_end = os.pipe()
    data = os.urandom(300_000)
    writer = threading.Thread(target=lambda: (atomic.write_all(write_end, data), os.close(write_end)))
    writer.start()
    with os.fdopen(read_end, "rb") as file:
        assert file.read() == data
    writer.join(30)
