"""How a command speaks: results on standard output, everything else on standard error.

Where the reader is gone (`git orch status | head -1`) the rest goes nowhere, quietly: the command goes on to its end,
and its exit status is what it would have been.
"""

from __future__ import annotations

import os
import select
import sys

from git_orch.errors import EnvironmentProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from git_orch.errors import OrchError

_silenced: set[int] = set()


def say(text: str) -> None:
    """The text is on standard output, or its reader is gone.

    Raises:
        EnvironmentProblem: it cannot be written: the disk is full.
    """
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        _silence(1)
    except OSError as error:
        _silence(1)
        raise EnvironmentProblem(f"cannot write to standard output: {error.strerror}") from error


def tell(text: str) -> None:
    """The text is on standard error, where that can be written."""
    try:
        _write(sys.stderr, text)
    except OSError:
        _silence(2)


def line(text: str) -> None:
    """The text is on standard output, as a line."""
    say(text + "\n")


def is_heard() -> bool:
    """Whether standard output still has a reader; for whoever would else wait for more to say."""
    if 1 in _silenced:
        return False
    if not hasattr(select, "poll"):  # Windows tells it by the next write alone
        return True
    asked = select.poll()
    asked.register(1, 0)  # an end that is gone is told unasked
    return not asked.poll(0)


def fail(error: OrchError, *, as_json: bool) -> int:
    """The error is told, as an object on standard output or in words on standard error; gives the exit status."""
    from git_orch import formats

    (say if as_json else tell)(formats.error(error, as_json))
    return error.exit_code


def _silence(fd: int) -> None:
    """What is written to the descriptor goes nowhere from now on: Python would complain at its exit."""
    _silenced.add(fd)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, fd)
    os.close(null)


def _write(stream: TextIO, text: str) -> None:
    data = text.encode(stream.encoding or "utf-8", "backslashreplace")
    stream.flush()
    try:
        fd = stream.fileno()
    except (OSError, ValueError):  # a test's stream, which lies in memory
        stream.buffer.write(data)
        return
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:  # some programs give their children pipes that do not wait
            select.select([], [fd], [])
