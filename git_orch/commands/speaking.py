"""How a command speaks: results on standard output, everything else on standard error, and a closed pipe ends quietly."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.errors import OrchError


def say(text: str) -> None:
    """The text is on standard output."""
    _write(sys.stdout, text)


def tell(text: str) -> None:
    """The text is on standard error."""
    _write(sys.stderr, text)


def line(text: str) -> None:
    """The text is on standard output, as a line."""
    say(text + "\n")


def fail(error: OrchError, *, as_json: bool) -> int:
    """The error is told, as an object on standard output or in words on standard error; gives the exit status."""
    from git_orch import formats

    (say if as_json else tell)(formats.error(error, as_json))
    return error.exit_code


def quiet_end() -> None:
    """Standard output goes nowhere from now on: its reader (`head -1`) is gone, and Python would complain at its exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _write(stream: object, text: str) -> None:
    buffer = stream.buffer  # type: ignore[attr-defined]
    encoding = getattr(stream, "encoding", None) or "utf-8"
    buffer.write(text.encode(encoding, "backslashreplace"))
    buffer.flush()
