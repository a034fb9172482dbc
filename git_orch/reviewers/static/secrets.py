"""Keys in added lines. A key on a line that the difference leaves alone was there before, and is not told again."""

from __future__ import annotations

import re
from itertools import pairwise

from git_orch.reviewers.static import key_blocks
from git_orch.reviewers.static.detectors import DETECTORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from git_orch.model import Finding
    from git_orch.reviewers.static.detectors import Detector
    from git_orch.reviewers.static.source import Source

# Some of the library's expressions take quadratic time, so a line is looked at in pieces of this many characters;
# they overlap by more than the longest key that has to be seen whole.
_PIECE = 4096
_OVERLAP = 512
_WORD = re.compile(r"[A-Za-z0-9]+")
_MADE_UP = re.compile(
    r"example|placeholder|dummy|fake|sample|redact|changeme|notreal|insert|your|test|xxxx|0000|[${}<>*]", re.IGNORECASE
)
_FEW_CHARACTERS = 5
_SHORTEST_KEY = 16
# Published by their providers, for everyone to use or to look at.
_PUBLISHED = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq",  # the Azure storage emulator
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGy",  # the Azure Cosmos DB emulator
    "16C7e42F292c6912E7710c838347Ae178B4a",  # GitHub's documentation
    "eyJzdWIiOiIxMjM0NTY3ODkwIiwi",  # jwt.io's example: "sub": "1234567890"
)


def check(source: Source) -> Iterator[Finding]:
    """A finding for each key in an added line and for each private key of which the difference adds a part."""
    yield from key_blocks.check(source)
    text = source.content.decode("utf-8", "replace")
    detectors = [detector for detector in DETECTORS if detector.may_match(text)]
    if not detectors:
        return
    for number, line in source.added():
        yield from _in_line(source, number, line.decode("utf-8", "replace"), detectors)


def _in_line(source: Source, number: int, line: str, detectors: list[Detector]) -> Iterator[Finding]:
    """A finding for each key in the line; what two detectors see at one place is one key."""
    end_of_last = 0
    for start, end, detector, value in sorted(_keys(line, detectors), key=lambda key: key[:2]):
        if start < end_of_last:
            continue
        end_of_last = end
        yield source.finding(
            detector.rule,
            f"{detector.what} `{value[:4]}…` ({len(value)} characters)",
            detector.severity,
            line=number,
            start_column=start + 1,
            end_column=end + 1,
            fails_when="anyone who can read the repository uses it",
            suggestion="revoke it: it stays in the history; read the new one from the environment",
        )


def _keys(line: str, detectors: list[Detector]) -> Iterator[tuple[int, int, Detector, str]]:
    """Start, end, detector and value of all that is no placeholder."""
    for offset in range(0, max(len(line) - _OVERLAP, 1), _PIECE - _OVERLAP):
        piece = line[offset : offset + _PIECE]
        for detector in detectors:
            if not detector.may_match(piece):
                continue
            for match in detector.matches(piece):
                value = _value(match)
                if not is_placeholder(value):
                    start = offset + match.start()
                    yield start, start + len(match[0].rstrip()), detector, value


def _value(match: re.Match[str]) -> str:
    """The key itself: a group that is long enough (some are only a prefix), else the whole match."""
    longest = max((group for group in match.groups() if group), key=len, default="")
    return (longest if len(longest) >= _SHORTEST_KEY else match[0].removeprefix("AccountKey=")).rstrip()


def is_placeholder(value: str) -> bool:
    """True for what has the shape of a key and is none: published, made up, of few characters, or counting up."""
    if _MADE_UP.search(value) or any(key in value for key in _PUBLISHED):
        return True
    run = max(_WORD.findall(value), key=len, default="")
    return len(set(run.lower())) <= _FEW_CHARACTERS or is_counting(run)


def is_counting(run: str) -> bool:
    """True for `abcdefgh12345678` and its kind: at least half of the characters follow upon the one before."""
    steps = sum(ord(after) - ord(before) == 1 for before, after in pairwise(run))
    return 2 * steps >= len(run)
