"""Comments that tell a checker to look away, where the difference adds them. None of them is obeyed here.

Told are those that hide secrets or unsafe code, and those that switch a checker off for a whole file. A `noqa` on one
line, with its code, is a decision that stands beside what it is about; everyone sees it.
"""

from __future__ import annotations

import re

from git_orch.reviewers.static import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from git_orch.model import Finding
    from git_orch.reviewers.static.source import Source

RULE = "suppression"
# A checker that is off for the whole file, as ruff and flake8 spell it; `lint` asks for it as well.
WHOLE_FILE_NOQA = re.compile(rb"#\s*(?:ruff|flake8)\s*:\s*(?:noqa|disable|file-ignore)\b", re.IGNORECASE)
_SECRETS = rb"pragma: ?(?:allow|white)list[ -](?:nextline[ -])?secret|gitleaks:allow|trufflehog:ignore|\bggignore\b"
_CODE = rb"\bnosemgrep\b|#\s*nosec\b|//\s*nosec\b|#nosec\b"
_WHOLE_FILE = rb"@ts-nocheck\b|/\*\s*eslint-disable\s*\*/|mypy:\s*ignore-errors\b|pylint:\s*skip-file\b"
_ANY = re.compile(b"|".join((_SECRETS, _CODE, _WHOLE_FILE, WHOLE_FILE_NOQA.pattern)), re.IGNORECASE)


# All of the above contain one of these: most files are told apart without the expression, which is slow.
_HINTS = (
    *(b"pragma", b"noqa", b"ruff", b":allow", b":ignore", b"ggignore", b"nosem", b"nosec"),
    *(b"ts-nocheck", b"eslint-disable", b"ignore-errors", b"skip-file"),
)


def check(source: Source) -> Iterator[Finding]:
    """A finding for each added line that tells a checker to look away."""
    lowered = source.content.lower()
    if source.suffix in kinds.DOCUMENTS or not any(hint in lowered for hint in _HINTS):
        return
    for number, line in source.added():
        if match := _ANY.search(line):
            column = len(line[: match.start()].decode("utf-8", "replace")) + 1
            message = f"`{match[0].decode('utf-8', 'replace')}` is added: a checker will look away here"
            yield source.finding(RULE, message, line=number, start_column=column, suggestion="say beside it why")
