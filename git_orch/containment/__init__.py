"""What keeps a job's processes together, and what it may see: the words that supervisor and guardian share.

Start with `guardian`: it runs a `Job` inside a `Containment`. `descendants` ends every process of it and proves that by
the kernel's own word, `namespaces` and `mounts` shut it in (tier 1), `probe` finds out what this machine allows,
`strays` finds what outlived both supervisor and guardian (tier 2 only).
"""

from __future__ import annotations

from git_orch.errors import OrchError
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Tier = Literal[1, 2, 3, 4]

TIER_NAMESPACE: Tier = 1
TIER_SUBREAPER: Tier = 2
TIER_DARWIN: Tier = 3
TIER_WINDOWS: Tier = 4


class Denied(OrchError):
    """The machine does not let a job be contained as it was asked for; the message is in words a person can use."""

    code = "containment"


class Containment(Record):
    """How a job is held: 1 PID namespace, 2 child subreaper, 3 macOS, 4 Windows; why not better, in words.

    `overlay` tells whether an overlay can be mounted for it (tier 1 only).
    """

    tier: Tier
    degraded_reason: str = ""
    overlay: bool = False


class View(Record):
    """What a job in tier 1 sees of the file system; every path absolute, and real where it is the user's.

    The fields are applied in this order, so that a later one wins where two meet: overlay, empty with keep, read_only,
    writable, provide, hidden.
    """

    overlay: tuple[str, str, str] | None = None  # (tree, upper, work): writes to tree go to upper, a new folder
    empty: tuple[str, ...] = ()  # folders in whose place an empty one is seen, but for
    keep: tuple[str, ...] = ()  # these paths below them
    read_only: tuple[str, ...] = ()  # with everything mounted below
    writable: tuple[str, ...] = ()  # below read_only ones; a missing one is passed over
    provide: tuple[tuple[str, str], ...] = ()  # (source, where: relative to the tree), read-only
    hidden: tuple[str, ...] = ()  # folders seen empty, files and sockets as /dev/null; a missing one is passed over


class Job(Record):
    """A command to run under a guardian.

    `argv[0]` is absolute or is looked up on the absolute folders of the environment's PATH; `env` is complete. Standard
    input is the file at `stdin_path`, or /dev/null; the two files of the output are made (0600) or appended to. None of
    them is opened through a symbolic link. The umask is the supervisor's. `grace_s` lies between SIGTERM and SIGKILL.
    `view` counts in tier 1 only.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    stdout_path: str
    stderr_path: str
    containment: Containment
    view: View | None = None
    stdin_path: str = ""
    grace_s: float = 5.0
