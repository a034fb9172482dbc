"""Files that make a repository heavy for ever."""

from __future__ import annotations

from git_orch.reviewers.static import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from git_orch.model import Finding
    from git_orch.reviewers.static.source import Source

# The default of pre-commit-hooks' check-added-large-files.
LARGE_BYTES = 500 * 1024


def check(source: Source) -> Iterator[Finding]:
    """A finding if a new file is large; a package manager's own are as large as they have to be."""
    if source.change.is_new and source.size > LARGE_BYTES and not kinds.is_lock(source):
        size = f"{source.size / 1024:.0f} KiB" if source.size < 1 << 20 else f"{source.size / (1 << 20):.1f} MiB"
        message = f"new file of {size} (over {LARGE_BYTES >> 10} KiB): it stays in the history of every clone"
        yield source.finding("large-file", message, suggestion="Git LFS, or keep it elsewhere")
