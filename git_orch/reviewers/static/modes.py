"""Whether what is executable says by what, and the other way round."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from git_orch.model import Finding
    from git_orch.reviewers.static.source import Source

# Windows runs these by their suffix.
_BY_SUFFIX = frozenset((".bat", ".cmd", ".ps1", ".exe"))
_HAS_EXEC_BIT = os.name != "nt"


def check(source: Source) -> Iterator[Finding]:
    """A nit where the difference sets an exec bit without a first line, or a first line without an exec bit."""
    if not _HAS_EXEC_BIT or source.suffix in _BY_SUFFIX or not source.content:
        return
    change = source.change
    is_executable = bool(source.mode & 0o100)
    # `#![...]` is an attribute of Rust.
    has_shebang = source.content.startswith(b"#!") and not source.content.startswith(b"#![")
    if is_executable and not has_shebang and (change.is_new or change.mode_changed):
        yield source.finding("no-shebang", "executable, and its first line names no interpreter", "nit", line=1)
    if has_shebang and not is_executable and (change.mode_changed or change.adds(1)):
        message = "its first line names an interpreter, and it is not executable"
        yield source.finding("not-executable", message, "nit", line=1)
