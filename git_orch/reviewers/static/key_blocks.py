"""Private keys: a header and a body that looks like one.

The header alone is in every program that reads such keys, so it does not block. A new body below an old header (the
key was exchanged for another) is as bad as a new block.
"""

from __future__ import annotations

import re

from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from git_orch.model import Finding
    from git_orch.reviewers.static.source import Source

RULE = "secret-private-key"
# All that detect-secrets' PrivateKeyDetector and pre-commit-hooks' detect-private-key know, and PuTTY's version 3.
HEADER = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"|---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----"
    r"|PuTTY-User-Key-File-\d"
    r"|-----BEGIN OpenVPN Static key V1-----"
)
_HINTS = (b"PRIVATE KEY", b"PuTTY-User-Key-File-", b"OpenVPN Static key")
_END = ("-----END", "---- END", "Private-MAC:")
# Between header and body: `Proc-Type:` and its like, PuTTY's comment, the `Version:` of PGP.
_BODY_WITHIN_LINES = 12
_LONGEST_BLOCK_LINES = 400
_BODY = re.compile(r"[A-Za-z0-9+/]{32,}")
_FEWEST_CHARACTERS = 8
_ELIDED = re.compile(r"\.\.\.|…|EXAMPLE|REDACTED")
_PUBLISHED = ("MIIEogIBAAKCAQEA6NF8iallvQVp22WDkTkyrtvp9eWW6A8YVr+kz4TjGYe7gHzI",)  # Vagrant's, made to be known


class _Block(Record):
    """Where a key begins and ends, and what stands there."""

    first: int
    last: int
    text: str
    header: str
    is_bare: bool


def check(source: Source) -> Iterator[Finding]:
    """A finding for each private key of which the difference adds a line."""
    if not any(hint in source.content for hint in _HINTS):
        return
    for block in _blocks(source):
        if not source.change.adds_any(block.first, block.last):
            continue
        body = _body(block.text)
        if body and body not in _PUBLISHED:
            message = f"private key (`{block.header}`, {block.last - block.first + 1} lines)"
            yield source.finding(
                RULE,
                message,
                "blocking",
                line=block.first,
                end_line=block.last,
                fails_when="anyone who can read the repository uses it",
                suggestion="make a new key: this one stays in the history",
            )
        elif not body and block.is_bare:
            message = f"header of a private key (`{block.header}`) without a body that looks like one"
            yield source.finding(RULE, message, line=block.first)


def _blocks(source: Source) -> Iterator[_Block]:
    for number, raw in enumerate(source.lines, 1):
        if not any(hint in raw for hint in _HINTS):
            continue
        line = raw.decode("utf-8", "replace")
        for match in HEADER.finditer(line):
            last, text = _rest(source, number, line[match.end() :])
            header = match[0].strip("- ")
            is_bare = line.strip() == match[0]
            yield _Block(first=number, last=last, text=text, header=header, is_bare=is_bare)


def _rest(source: Source, number: int, rest: str) -> tuple[int, str]:
    """The last line of the block that begins in this line, and the text where its body has to begin."""
    text = [rest]
    if any(end in rest for end in _END):
        return number, rest
    for later, raw in enumerate(source.lines[number : number + _LONGEST_BLOCK_LINES], number + 1):
        line = raw.decode("utf-8", "replace")
        if any(end in line for end in _END):
            return later, "\n".join(text)
        if any(hint in raw for hint in _HINTS):  # the next one begins before this one has ended
            return later - 1, "\n".join(text)
        if later - number <= _BODY_WITHIN_LINES:
            text.append(line)
    return min(number + _BODY_WITHIN_LINES, len(source.lines)), "\n".join(text)


def _body(text: str) -> str:
    """The first line of what is encoded; nothing if there is none, or if it is cut out or marked as an example."""
    if _ELIDED.search(text):
        return ""
    return next((run for run in _BODY.findall(text) if len(set(run)) >= _FEWEST_CHARACTERS), "")
