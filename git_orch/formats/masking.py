"""Source without the secrets that a review found in it: a verdict is printed, logged, and pasted into issues."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from git_orch.formats.excerpt import Source
    from git_orch.model import Finding

RULE = "secret"  # how the rules of all such findings begin
MASK = "*"


def masked(findings: Iterable[Finding], source: Source) -> Source:
    """The source, in which every place that a finding calls a secret is stars, whichever finding shows the line."""
    places: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.rule.startswith(RULE):
            places.setdefault(finding.path, []).append(finding)
    if not places:
        return source

    def lines(path: str, first: int, last: int) -> list[str] | None:
        found = source(path, first, last)
        if found is None or path not in places:
            return found
        return [_hide(line, number, places[path]) for number, line in enumerate(found, first)]

    return lines


def _hide(line: str, number: int, secrets: list[Finding]) -> str:
    for secret in secrets:
        if not secret.start_line <= number <= max(secret.start_line, secret.end_line):
            continue
        is_one_line = secret.end_line <= secret.start_line
        start = secret.start_column - 1 if secret.start_column > 0 and number == secret.start_line else 0
        end = secret.end_column - 1 if is_one_line and secret.end_column > secret.start_column else len(line)
        line = line[:start] + MASK * len(line[start:end]) + line[end:]
    return line
