"""White space at ends of lines and of files, in added lines only; one finding a file and kind, with a count.

The rules are those of pre-commit-hooks (trailing-whitespace, end-of-file-fixer, mixed-line-ending), whose functions
write to the file that they judge and import argparse; that the answers agree is a test.
"""

from __future__ import annotations

from git_orch.reviewers.static import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from git_orch.model import Finding
    from git_orch.reviewers.static.source import Source


_SPACE = (b" ", b"\t")  # not the form feed, which parts pages in GNU sources
_HINTS = (b" \n", b"\t\n", b" \r\n", b"\t\r\n")


def check(source: Source) -> Iterator[Finding]:
    """Nits about white space that the difference adds; none where it is data or a program writes the file."""
    if kinds.is_verbatim(source) or kinds.is_generated(source):
        return
    yield from _trailing(source)
    yield from _final_newline(source)
    yield from _mixed_endings(source)


def has_trailing(line: bytes, *, is_markdown: bool) -> bool:
    """True if white space ends the line; in Markdown two spaces after text are a line break."""
    line = line.removesuffix(b"\r")
    if is_markdown and line.endswith(b"  ") and not line.isspace():
        line = line[:-2]
    return line.endswith(_SPACE)


def _trailing(source: Source) -> Iterator[Finding]:
    if not source.content.endswith(_SPACE) and not any(hint in source.content for hint in _HINTS):
        return
    is_markdown = source.suffix in kinds.MARKDOWN
    found = [number for number, line in source.added() if has_trailing(line, is_markdown=is_markdown)]
    if found:
        where = f"{len(found)} added lines" if len(found) > 1 else "an added line"
        yield source.finding("trailing-whitespace", f"white space at the end of {where}", "nit", line=found[0])


def _final_newline(source: Source) -> Iterator[Finding]:
    last = len(source.lines)
    if source.content and not source.content.endswith(b"\n") and source.change.adds(last):
        yield source.finding("final-newline", "no newline at the end of the file", "nit", line=last)


def _mixed_endings(source: Source) -> Iterator[Finding]:
    """Nothing where the file was mixed before: then the difference did not do it."""
    crlf = source.content.count(b"\r\n")
    complete = source.content.count(b"\n")
    if crlf in (0, complete):
        return
    new = [(number, line.endswith(b"\r")) for number, line in source.added() if number <= complete]
    old_crlf = crlf - sum(is_crlf for _, is_crlf in new)
    old = complete - len(new)
    if 0 < old_crlf < old:
        return
    usual = old_crlf > 0 if old else 2 * crlf > complete
    first = next((number for number, is_crlf in new if is_crlf is not usual), 0)
    if first:
        told = "LF in a file of CRLF" if usual else "CRLF in a file of LF"
        yield source.finding("mixed-line-endings", f"line endings are mixed: {told}", "nit", line=first)
