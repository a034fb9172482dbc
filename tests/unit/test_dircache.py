"""The index as a record of the disk."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from git_orch import dircache

SHA1 = "ce013625030ba8dba906f756967f9e9ca394464a"
SHA256 = "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4"


@pytest.mark.parametrize(("object_format", "oid"), [("sha1", SHA1), ("sha256", SHA256)])
@pytest.mark.parametrize("length", [*range(1, 18), 4094, 4095, 4096, 5000])
def test_what_was_written_is_read_back_whatever_the_length_of_the_path(
    tmp_path: Path, length: int, object_format: str, oid: str
) -> None:
    status = tmp_path.stat()
    stat_data = dircache.stat_bytes(status, dircache.PLAIN)
    entries = [dircache.entry(status, dircache.PLAIN, oid.encode(), path) for path in (b"a" * length, b"b\xff\n")]
    raw = dircache.assemble(b"".join(entries), 2, object_format)
    assert dircache.count(raw) == 2
    assert list(dircache.entries(raw, object_format)) == [
        (b"a" * length, (dircache.PLAIN, oid, stat_data)),
        (b"b\xff\n", (dircache.PLAIN, oid, stat_data)),
    ]


def test_the_time_of_last_change_is_kept_to_the_nanosecond(tmp_path: Path) -> None:
    status = tmp_path.stat()
    assert dircache.ctime_ns(dircache.stat_bytes(status, dircache.PLAIN)) == status.st_ctime_ns


@pytest.mark.parametrize(
    ("st_mode", "mode"),
    [
        (stat.S_IFREG | 0o644, dircache.PLAIN),
        (stat.S_IFREG | 0o677, dircache.PLAIN),
        (stat.S_IFREG | 0o100, dircache.EXECUTABLE),
        (stat.S_IFLNK | 0o777, dircache.LINK),
        (stat.S_IFDIR | 0o755, dircache.GITLINK),
        (stat.S_IFIFO | 0o644, 0),
        (stat.S_IFSOCK | 0o644, 0),
    ],
)
def test_git_keeps_a_type_and_one_exec_bit(st_mode: int, mode: int) -> None:
    assert dircache.git_mode(st_mode) == mode


@pytest.mark.parametrize(
    "raw", [b"", b"DIRC", b"DIRC\0\0\0\4\0\0\0\1", b"XXXX\0\0\0\2\0\0\0\0", b"DIRC\0\0\0\2\0\0\0\1abc"]
)
def test_what_is_no_index_of_ours_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="index"):
        list(dircache.entries(raw, "sha1"))


@pytest.mark.parametrize("flag", [0x8000, 0x4000, 0x1000])
def test_an_entry_that_hides_edits_is_refused(tmp_path: Path, flag: int) -> None:
    """Assume-unchanged, an extended flag (skip-worktree), a stage: none of them is made by us or by `read-tree`."""
    entry = bytearray(dircache.entry(tmp_path.stat(), dircache.PLAIN, SHA1.encode(), b"name"))
    entry[60:62] = (flag | 4).to_bytes(2, "big")
    with pytest.raises(ValueError, match="flags"):
        list(dircache.entries(dircache.assemble(entry, 1, "sha1"), "sha1"))


@pytest.mark.parametrize(("object_format", "oid"), [("sha1", SHA1), ("sha256", SHA256)])
def test_the_hash_is_gits(object_format: str, oid: str) -> None:
    digest = dircache.algorithm(object_format)(b"blob 6\0")
    digest.update(b"hello\n")
    assert digest.hexdigest() == oid


def test_numbers_beyond_32_bits_are_cut_as_git_cuts_them(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(2**32 + 5)
    packed = dircache.stat_bytes(large.stat(), dircache.PLAIN)
    assert int.from_bytes(packed[36:40], "big") == 5
