"""Which untracked files may enter a snapshot: no secret, nothing large, nothing that is no file, and no flood."""

from __future__ import annotations

import os
from _stat import S_ISLNK, S_ISREG

from git_orch import system
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SECRET_NAMES = frozenset(
    (
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
_SECRET_ENDINGS = (b".env", b".pem", b".p12", b".pfx", b".jks", b".keystore", b".ppk", b".kdbx")
# `.env.example` and its kin are made to be shared.
_SAMPLE_ENDINGS = (b".example", b".sample", b".template", b".dist", b".pub")
EMBEDDED = "embedded repository"
_KEY_OR_SO = "looks like a secret, never copied"
_HEAD_BYTES = 128


class Selection(Record):
    """`entering`: the paths that may enter, each with its size in bytes; `left_out`: the others, each with the reason.

    Of a flood, a whole folder is left out under one name that ends with a slash.
    """

    entering: dict[bytes, int]
    left_out: dict[bytes, str]


def select(root_fd: int, listed: Sequence[bytes], *, max_bytes: int, files: int = 0, size_bytes: int = 0) -> Selection:
    """What may enter of the untracked paths of a work tree; the same work tree gives the same answer.

    Args:
        root_fd: the top of the work tree.
        max_bytes: the most that one file may have.
        files: how many files may enter (0: any number). The smallest folders of the top come first: what an agent
            wrote must not wait behind a folder of packages that nobody ignores.
        size_bytes: how many bytes may enter (0: any number).
    """
    inside, over = _within(listed, files)
    entering: dict[bytes, int] = {}
    left_out = _folded(over, files)
    total = 0
    for path in inside:
        try:
            why, size = objection(root_fd, path, max_bytes=max_bytes)
        except (FileNotFoundError, NotADirectoryError):
            continue  # gone, or its folder is: it is not part of the work tree any more
        if why is None and size_bytes and total + size > size_bytes:
            why = f"over the {size_text(size_bytes)} of new files that a hook takes in"
        if why is None:
            entering[path] = size
            total += size
        else:
            left_out[path] = why
    return Selection(entering=entering, left_out=left_out)


def objection(root_fd: int, path: bytes, *, max_bytes: int) -> tuple[str | None, int]:
    """Why the file stays out (None: it may enter), and its size in bytes.

    Raises:
        FileNotFoundError: it is not there any more.
        NotADirectoryError: its folder is not.
    """
    if path.endswith(b"/"):
        return EMBEDDED, 0
    try:
        status = system.at.lstat(path, dir_fd=root_fd)
        if S_ISLNK(status.st_mode):
            return None, 0
        if not S_ISREG(status.st_mode):
            return "not a file (FIFO, socket or device)", 0
        return _of_file(root_fd, path, status.st_size, max_bytes), status.st_size
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        return f"unreadable: {error.strerror}", 0


def secret_name(path: bytes) -> bool:
    """Whether a file of that name holds a secret as a rule."""
    name = path.rpartition(b"/")[2].lower()
    if name.endswith(_SAMPLE_ENDINGS):
        return False
    return name in _SECRET_NAMES or name.startswith(b".env.") or name.endswith(_SECRET_ENDINGS)


def secret_head(head: bytes) -> bool:
    """Whether a file that begins like this is a private key."""
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return (first.startswith(b"-----BEGIN ") and b"PRIVATE KEY" in first) or first.startswith(b"PuTTY-User-Key-File-")


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


def _of_file(root_fd: int, path: bytes, size: int, max_bytes: int) -> str | None:
    if size > max_bytes:
        return f"{size_text(size)}, over the {size_text(max_bytes)} of orch.maxUntrackedBytes"
    if secret_name(path):
        return _KEY_OR_SO
    fd = system.at.open(path, os.O_RDONLY | system.PLAIN, dir_fd=root_fd)
    try:
        return _KEY_OR_SO if secret_head(os.read(fd, _HEAD_BYTES)) else None
    finally:
        os.close(fd)


def _within(listed: Sequence[bytes], files: int) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """The paths that a limit on their number lets in, and those that it does not."""
    if not files or len(listed) <= files:
        return listed, ()
    sizes: dict[bytes, int] = {}
    for path in listed:
        sizes[_top(path)] = sizes.get(_top(path), 0) + 1
    ranked = sorted(listed, key=lambda path: (sizes[_top(path)], path))
    first = files
    while first and _top(ranked[first - 1]) == _top(ranked[files]):
        first -= 1  # where the folder begins that is cut in two
    # In steps: one new file elsewhere must not push one out here, which would look as if it had been removed.
    step = max(files // 20, 1)
    cut = first + (files - first) // step * step
    return ranked[:cut], ranked[cut:]


def _top(path: bytes) -> bytes:
    return path.partition(b"/")[0]


def _folded(paths: Iterable[bytes], files: int) -> dict[bytes, str]:
    """The paths over the limit, by folder of the top: a flood of 100,000 would fill every record of the run."""
    folders: dict[bytes, list[bytes]] = {}
    for path in paths:
        top, slash, _ = path.partition(b"/")
        folders.setdefault(top + b"/" if slash else b"./", []).append(path)
    left_out = {}
    for folder, inside in folders.items():
        if len(inside) == 1:
            left_out[inside[0]] = f"over the {files:,} new files that a hook takes in"
        else:
            left_out[folder] = f"{len(inside):,} new files, over the {files:,} that a hook takes in"
    return left_out
