"""git's index as the record of what lay on the disk when a tree was made: version 2, the entries alone.

Format: https://git-scm.com/docs/index-format. An entry is ten 32-bit numbers (ctime s and ns, mtime s and ns, dev, ino,
mode, uid, gid, size), the object id, 16 bits of flags that end with the length of the path, the path, and 1 to 8 NULs
up to a multiple of 8 bytes. Written by us after a cold start, by `git read-tree` after a warm one.
"""

from __future__ import annotations

import os
import sys
from _stat import S_ISDIR, S_ISLNK, S_ISREG
from binascii import unhexlify
from struct import Struct

from git_orch.system import HAS_MODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    class Digest(Protocol):
        """What `hashlib` and its C modules make."""

        def update(self, data: bytes, /) -> None:
            """Take in more."""

        def digest(self) -> bytes:
            """The result."""

        def hexdigest(self) -> str:
            """The result in hex."""

    Known = tuple[int, str, bytes]  # git's mode, the object id in hex, the 40 bytes of stat data


GITLINK = 0o160000
LINK = 0o120000
EXECUTABLE = 0o100755
PLAIN = 0o100644
_FILES = (PLAIN, EXECUTABLE)

_HEADER = Struct(">4sII")
_STAT = Struct(">10I")
_CTIME = Struct(">2I")
_MODE_AT = 24
_PACK = {20: Struct(">10I20sH").pack, 32: Struct(">10I32sH").pack}
_NO_OID = b"0" * 40
_LOW = 0xFFFFFFFF
_NS = 1_000_000_000
_NULS = tuple(b"\0" * (8 - rest) for rest in range(8))
_NAME_LENGTH = 0x0FFF
_FLAGS_ALLOWED = _NAME_LENGTH  # any other flag (assume-unchanged, a stage, an extension) is none that we made


def algorithm(object_format: str) -> Callable[[bytes], Digest]:
    """The hash of a repository of that object format: OpenSSL's, seven times as fast as the interpreter's own.

    Not by way of `hashlib`, which costs as much again to import.
    """
    name = "sha1" if object_format == "sha1" else "sha256"
    own = "_sha1" if name == "sha1" else "_sha2" if sys.version_info >= (3, 12) else "_sha256"
    for module, function in (("_hashlib", f"openssl_{name}"), (own, name)):
        try:
            found: Callable[[bytes], Digest] = getattr(__import__(module), function)
        except ImportError:
            continue
        return found
    raise ImportError(f"this interpreter was built without {name}")


def git_mode(st_mode: int) -> int:
    """The mode that git gives something on the disk; 0 for what git cannot keep."""
    if S_ISREG(st_mode):
        return EXECUTABLE if st_mode & 0o100 else PLAIN
    if S_ISLNK(st_mode):
        return LINK
    return GITLINK if S_ISDIR(st_mode) else 0


def is_file_without_bit(st_mode: int, mode: int) -> bool:
    """Whether both are plain files, and the system keeps no exec bit that could tell them apart."""
    return not HAS_MODES and mode in _FILES and S_ISREG(st_mode)


def entry(status: os.stat_result, mode: int, oid: bytes, path: bytes) -> bytes:
    """One entry of an index, from the object id in hex; entries stand in the order of their paths' bytes.

    Written out for speed: it is the inner loop of a cold start.
    """
    name = unhexlify(oid)
    changed_ns, written_ns = status.st_ctime_ns, status.st_mtime_ns
    length = len(path)
    _, inode, device, _, owner, group, size, *_ = status
    changed, written = changed_ns // _NS, written_ns // _NS
    head = _PACK[len(name)](
        changed & _LOW,
        changed_ns - changed * _NS,
        written & _LOW,
        written_ns - written * _NS,
        device & _LOW,
        inode & _LOW,
        mode,
        owner & _LOW,
        group & _LOW,
        size & _LOW,
        name,
        min(_NAME_LENGTH, length),
    )
    return head + path + _NULS[(len(head) + length) % 8]


def stat_bytes(status: os.stat_result, mode: int) -> bytes:
    """The 40 bytes of stat data that an index would hold for a file of that status."""
    return entry(status, mode, _NO_OID, b"")[: _STAT.size]


def assemble(entries: bytes | bytearray, number: int, object_format: str) -> bytes:
    """The index of that many entries; its checksum is left zero, which git does not look at unless it is `fsck`."""
    return b"".join((_HEADER.pack(b"DIRC", 2, number), entries, bytes(_oid_bytes(object_format))))


def count(raw: bytes) -> int:
    """How many entries an index holds; -1 where it is none of version 2."""
    if len(raw) < _HEADER.size:
        return -1
    magic, version, number = _HEADER.unpack_from(raw)
    return number if magic == b"DIRC" and version == 2 else -1


def ctime_ns(stat: bytes) -> int:
    """The time of the last change that the 40 bytes of stat data hold."""
    seconds, rest = _CTIME.unpack_from(stat)
    return int(seconds) * _NS + int(rest)


def entries(raw: bytes, object_format: str) -> Iterator[tuple[bytes, Known]]:
    """The path of each entry and what is known of it, in order.

    Raises:
        ValueError: it is no index that we, or `read-tree` for us, can have made.
    """
    oid_bytes = _oid_bytes(object_format)
    start = _HEADER.size
    for _ in range(_checked_count(raw)):
        oid_at = start + _STAT.size
        path_at = oid_at + oid_bytes + 2
        flags = int.from_bytes(raw[path_at - 2 : path_at], "big")
        end = raw.find(b"\0", path_at)
        if end < 0:
            raise ValueError("the index is cut short")
        if flags & ~_FLAGS_ALLOWED or min(end - path_at, _NAME_LENGTH) != flags:
            raise ValueError("an entry with flags")
        stat = raw[start:oid_at]
        mode = int.from_bytes(stat[_MODE_AT : _MODE_AT + 4], "big")
        yield raw[path_at:end], (mode, raw[oid_at : path_at - 2].hex(), stat)
        start = end + 8 - (end - start) % 8


def _oid_bytes(object_format: str) -> int:
    return 20 if object_format == "sha1" else 32


def _checked_count(raw: bytes) -> int:
    number = count(raw)
    if number < 0:
        raise ValueError("no index of version 2")
    return number
