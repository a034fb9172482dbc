"""Characters that a reader does not see, in added lines: text that runs backwards, and text that is not shown at all.

Bidirectional controls make code look like other code (CVE-2021-42574, "Trojan Source"). Invisible ones hide words from
a person that an agent reads, or make two names look like one.
"""

from __future__ import annotations

import re

from git_orch.reviewers.static import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from git_orch.model import Finding
    from git_orch.reviewers.static.source import Source

_BIDI = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
# Tags and the second set of variation selectors carry whole sentences unseen; of the tags only the flags of
# countries' parts are in use, behind a black flag; of the selectors one behind an ideograph.
_SMUGGLED = re.compile(r"(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0001-\U000e007f]|[\U000e0100-\U000e01ef]{2}")
# Not the joiners U+200C and U+200D: emoji and several scripts need them.
_INVISIBLE = re.compile(r"[\u115f\u1160\u180e\u200b\u2060-\u2064\u3164\uffa0]|(?<!^)\ufeff")


def check(source: Source) -> Iterator[Finding]:
    """A finding for each kind of hidden character in the added lines, at the first of them."""
    if source.content.isascii() or source.suffix in kinds.TRANSLATIONS:
        return
    try:
        source.content.decode("utf-8")
    except UnicodeDecodeError:  # in another encoding these bytes are other characters
        return
    lines = [(number, line.decode("utf-8")) for number, line in source.added() if not line.isascii()]
    yield from _first(source, lines, _BIDI, "bidi-control", "text may run in another order than it shows")
    yield from _first(source, lines, _SMUGGLED, "invisible-text", "it carries text that nobody sees")
    if source.suffix not in kinds.DOCUMENTS:
        yield from _first(source, lines, _INVISIBLE, "invisible-character", "two names may look like one")


def _first(
    source: Source, lines: list[tuple[int, str]], expression: re.Pattern[str], rule: str, effect: str
) -> Iterator[Finding]:
    """A finding at the first match, which tells how many lines have one."""
    found = [(number, match) for number, line in lines if (match := expression.search(line))]
    if not found:
        return
    number, match = found[0]
    more = f", and on {len(found) - 1} more added lines" if len(found) > 1 else ""
    message = f"hidden character U+{ord(match[0][0]):04X}{more}: {effect}"
    yield source.finding(rule, message, line=number, start_column=match.start() + 1, end_column=match.end() + 1)
