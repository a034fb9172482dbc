"""Sentences in lines, and parts with an empty line between them."""

from __future__ import annotations

from git_orch.formats.terminal import Terminal, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def joined(parts: Sequence[Sequence[str]]) -> str:
    """The parts that are not empty, an empty line between them."""
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def plain(text: str, terminal: Terminal) -> list[str]:
    """A sentence at the margin, broken where it must be."""
    return wrap(terminal.sentence(text), terminal.width, rest="  ")


def sentences(lines: Sequence[str], terminal: Terminal) -> list[str]:
    """Sentences below a title, each broken where it must be."""
    return [part for line in lines for part in wrap(terminal.sentence(line), terminal.width, first="  ", rest="    ")]
