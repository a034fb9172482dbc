"""Names that other machines cannot tell apart: macOS and Windows keep one of `Readme` and `README`."""

from __future__ import annotations

import os
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from git_orch.model import Finding
    from git_orch.reviewers.static.source import Source

RULE = "case-conflict"


class Names:
    """Looks at the folders of changed paths; each is listed once, each conflict told once."""

    def __init__(self) -> None:
        self._folders: dict[bytes, dict[str, list[bytes]]] = {}
        self._told: set[tuple[bytes, str]] = set()

    def check(self, source: Source) -> Iterator[Finding]:
        """A finding if a part of a new path differs from its neighbour by case or by Unicode's form alone."""
        if not source.change.is_new:
            return
        folder = b""
        for part in source.path.split(b"/"):
            folded = _fold(part)
            others = [name for name in self._neighbours(folder).get(folded, ()) if name != part]
            if others and (folder, folded) not in self._told:
                self._told.add((folder, folded))
                prefix = folder + b"/" if folder else b""
                other = (prefix + others[0]).decode("utf-8", "replace")
                message = f"`{other}` is there as well: where case does not count, one of the two is lost"
                yield source.finding(RULE, message)
            folder = os.path.join(folder, part)

    def _neighbours(self, folder: bytes) -> dict[str, list[bytes]]:
        if folder not in self._folders:
            names: dict[str, list[bytes]] = {}
            for name in os.listdir(folder or b"."):
                names.setdefault(_fold(name), []).append(name)
            self._folders[folder] = names
        return self._folders[folder]


def _fold(name: bytes) -> str:
    """The name as a file system that ignores case compares it."""
    if name.isascii():
        return name.decode("ascii").lower()
    return unicodedata.normalize("NFC", name.decode("utf-8", "surrogateescape")).casefold()
