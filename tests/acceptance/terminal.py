"""A command on a terminal: what a person sees on the screen, and keys that are pressed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.waiting import wait_until

CTRL_C = b"\x03"
WAIT_S = 20.0
_ESCAPE = re.compile(r"\x1b\[(?P<numbers>[0-9;]*)(?P<verb>[A-Za-z])")


class Terminal:
    """The command, as the leader of a session whose terminal this is."""

    def __init__(
        self, *argv: str | Path, cwd: Path, columns: int = 80, lines: int = 24, env: Mapping[str, str] | None = None
    ) -> None:
        self.columns = columns
        self.raw = ""
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        surroundings = {**os.environ, "TERM": "xterm", **(env or {})}
        surroundings.pop("COLUMNS", None)
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *map(str, argv)],
            cwd=cwd,
            env=surroundings,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def press(self, keys: bytes) -> None:
        """The keys were pressed."""
        os.write(self._ours, keys)

    def until(self, text: str, timeout_s: float = WAIT_S) -> str:
        """The screen, once it has the text."""
        try:
            wait_until(lambda: text in self.screen(), timeout_s, what=f"{text!r} on the screen")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen()}") from None
        return self.screen()

    def end(self, timeout_s: float = WAIT_S) -> int:
        """The exit status of the command, once it has ended and all that it wrote is read."""
        wait_until(self._has_ended, timeout_s, what="the command has ended")
        self._read()
        return self.process.wait()

    def screen(self) -> str:
        """What can be seen by now, lines without the spaces at their ends."""
        self._read()
        return screen(self.raw, self.columns)

    def _has_ended(self) -> bool:
        self._read()  # a terminal that nobody reads makes its writers wait
        return self.process.poll() is not None

    def _read(self) -> None:
        while select.select([self._ours], [], [], 0)[0]:
            try:
                part = os.read(self._ours, 1 << 16)
            except OSError:  # the last that had the terminal open is gone
                return
            self.raw += part.decode("utf-8", "replace")


def screen(raw: str, columns: int) -> str:
    """What stands on a terminal that was sent this: line ends, cursor up, erase below; colours are left out.

    Raises:
        AssertionError: something else was sent.
    """
    rows: list[list[str]] = [[]]
    row = column = 0
    at = 0
    while at < len(raw):
        character = raw[at]
        found = _ESCAPE.match(raw, at)
        if found:
            at = found.end()
            match found["verb"]:
                case "A":
                    row = max(0, row - int(found["numbers"] or 1))
                case "J":
                    assert found["numbers"] == ""
                    rows[row] = rows[row][:column]
                    del rows[row + 1 :]
                case "m":
                    pass
                case verb:
                    raise AssertionError(f"not expected on a terminal: ESC [ {verb}")
            continue
        at += 1
        if character == "\r":
            column = 0
        elif character == "\n":
            row += 1
        else:
            assert character.isprintable(), f"not expected on a terminal: {character!r}"
            if column >= columns:
                row, column = row + 1, 0
        while len(rows) <= row:
            rows.append([])
        if character not in "\r\n":
            line = rows[row]
            line += [" "] * (column + 1 - len(line))
            line[column] = character
            column += 1
    return "\n".join("".join(line).rstrip() for line in rows)
