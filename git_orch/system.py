"""What differs from system to system in `os` itself, settled once: a flag that a system lacks is 0 here."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

# Windows hands no descriptor down by itself, but changes the ends of lines where it is not told otherwise.
CLOEXEC: Final[int] = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
NOFOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)
DIRECTORY: Final[int] = getattr(os, "O_DIRECTORY", 0)
FOLDER: Final[int] = os.O_RDONLY | CLOEXEC | DIRECTORY | NOFOLLOW
"""How a folder is opened. Windows opens none so, and says EACCES."""
PLAIN: Final[int] = CLOEXEC | NOFOLLOW | NONBLOCK
"""How a file is opened that may be anything, a link or a FIFO, by who looks at it afterwards."""


def uid() -> int:
    """The number of the user that we act as; 0 where users have none, and every file says 0 too (Windows)."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


def is_private(status: os.stat_result) -> bool:
    """Whether it is this user's and closed to all others, as far as the mode tells: on Windows it tells nothing."""
    return status.st_uid == uid() and not (hasattr(os, "geteuid") and status.st_mode & 0o077)
