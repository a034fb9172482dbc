"""Which untracked files may enter a snapshot: no secret, nothing large, nothing that is no file."""

from __future__ import annotations

import os
from _stat import S_ISLNK, S_ISREG

from git_orch.git import decode

_SECRET_NAMES = frozenset(
    (
        b".env",
        b".envrc",
        b".netrc",
        b".pgpass",
        b".pypirc",
        b".git-credentials",
        b".htpasswd",
        b"id_rsa",
        b"id_dsa",
        b"id_ecdsa",
        b"id_ed25519",
    )
)
_SECRET_ENDINGS = (b".pem", b".p12", b".pfx", b".jks", b".keystore", b".ppk", b".kdbx")
# `.env.example` and its kin are made to be shared.
_SAMPLE_ENDINGS = (b".example", b".sample", b".template", b".dist", b".pub")
_FIRST_LINE = b"-----BEGIN "
_SECRET = "looks like a secret, never copied"


def objection(root: bytes, path: bytes, *, max_bytes: int, known: bool = False) -> tuple[str | None, int]:
    """Why the file stays out (None: it may enter), and its size in bytes.

    Args:
        known: it was let in before, so its first line needs no second look.

    Raises:
        FileNotFoundError: it is not there any more.
    """
    if path.endswith(b"/"):
        return "embedded repository", 0
    full = os.path.join(root, path)
    status = os.lstat(full)
    if S_ISLNK(status.st_mode):
        return None, 0
    if not S_ISREG(status.st_mode):
        return "not a file (FIFO, socket or device)", 0
    if status.st_size > max_bytes:
        return f"{size_text(status.st_size)}, over the {size_text(max_bytes)} of orch.maxUntrackedBytes", status.st_size
    if secret_name(path):
        return _SECRET, status.st_size
    if not known:
        return _first_line(full), status.st_size
    return None, status.st_size


def secret_name(path: bytes) -> bool:
    """Whether a file of that name holds a secret as a rule."""
    name = path.rpartition(b"/")[2].lower()
    if name.endswith(_SAMPLE_ENDINGS):
        return False
    return name in _SECRET_NAMES or name.startswith(b".env.") or name.endswith(_SECRET_ENDINGS)


def size_text(size_bytes: int) -> str:
    """A size as people read it: 812 bytes, 64.0 KiB, 17.2 MiB."""
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    value = float(size_bytes)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024 or unit == "GiB":
            break
    return f"{value:.1f} {unit}"


def show(path: bytes) -> str:
    """The path as the records have it: text that turns back into the same bytes."""
    return decode(path)


def _first_line(full: bytes) -> str | None:
    try:
        fd = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        return "unreadable"
    try:
        head = os.read(fd, 64)
    except OSError:
        return "unreadable"
    finally:
        os.close(fd)
    return _SECRET if head.startswith(_FIRST_LINE) and b"PRIVATE KEY" in head else None
