"""What differs from system to system in `os` itself, settled once: a flag that a system lacks is 0 here.

`at` is `os` where folders have descriptors, and its namesakes by path (`by_path`) where they have not: whoever walks a
tree asks `at`, with `dir_fd`, and need not know.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os as at
    from collections.abc import Mapping
    from typing import Final
elif os.name == "nt":
    from git_orch import by_path as at
else:
    at = os

__all__ = ["at"]  # and every name below; this one is imported

# Windows hands no descriptor down by itself, but changes the ends of lines where it is not told otherwise.
CLOEXEC: Final[int] = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
NOFOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)
DIRECTORY: Final[int] = getattr(os, "O_DIRECTORY", 1 << 28)
"""For `at.open` alone where the system has no such flag: a number that means nothing to Windows' own open."""
FOLDER: Final[int] = os.O_RDONLY | CLOEXEC | DIRECTORY | NOFOLLOW
"""How a folder is opened, by `at`."""
PLAIN: Final[int] = CLOEXEC | NOFOLLOW | NONBLOCK
"""How a file is opened that may be anything, a link or a FIFO, by who looks at it afterwards."""
TEMP_NAMES: Final[tuple[str, ...]] = ("TMPDIR",) if os.name != "nt" else ("TMPDIR", "TEMP", "TMP")
"""The variables that say where temporary files go."""
HAS_MODES: Final[bool] = os.name != "nt"
"""Whether a file has an exec bit, a link a size, and an owner a number; where not, they are not compared."""


def without_waiting(path: str, flags: int) -> int:
    """The `opener` of `open` for a file that a person names, which may be a FIFO: a plain open waits for its writer."""
    return os.open(path, flags | NONBLOCK)


def uid() -> int:
    """The number of the user that we act as; 0 where users have none, and every file says 0 too (Windows)."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


def temp_folder(env: Mapping[str, str]) -> str:
    """Where temporary files lie if TMPDIR does not say; whoever uses it checks its mode and owner."""
    return "/tmp" if HAS_MODES else env.get("TEMP") or env.get("TMP") or ""  # noqa: S108


def home(env: Mapping[str, str]) -> str:
    """The user's own folder, "" where nothing says. On Windows git sets HOME, and a hook may come without git."""
    return env.get("HOME", "") or ("" if HAS_MODES else env.get("USERPROFILE", ""))


def is_private(status: os.stat_result, path: str) -> bool:
    """Whether it is this user's and closed to all others.

    By mode and owner; on Windows, where a mode tells nothing, by where it lies: in the user's profile.
    """
    if not hasattr(os, "geteuid"):
        from git_orch import windows

        return windows.is_in_profile(path, os.environ)
    return status.st_uid == uid() and not status.st_mode & 0o077
