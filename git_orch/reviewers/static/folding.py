"""Of each rule a file gets so many findings; the rest becomes one that counts them, and costs no memory meanwhile."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter

from git_orch.model import SEVERITIES, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from git_orch.model import Severity

MOST_A_RULE = 50


class Folded:
    """The findings of one file, as they come in."""

    def __init__(self) -> None:
        self._kept: list[Finding] = []
        self._count: Counter[str] = Counter()
        self._gravest: dict[str, Severity] = {}

    def extend(self, findings: Iterable[Finding]) -> None:
        """The findings are in it, or counted."""
        for finding in findings:
            self._count[finding.rule] += 1
            if self._count[finding.rule] <= MOST_A_RULE:
                self._kept.append(finding)
            else:
                gravest = self._gravest.get(finding.rule, finding.severity)
                self._gravest[finding.rule] = min(gravest, finding.severity, key=SEVERITIES.index)

    def covers(self, line: int, rule: str) -> bool:
        """True if a finding of the rule spans the line."""
        return any(one.start_line <= line <= one.end_line for one in self._kept if one.rule == rule)

    def findings(self, path: str) -> tuple[Finding, ...]:
        """All in the order of their lines, what was only counted as one finding about the whole file."""
        rest = (self._rest(path, rule) for rule in self._gravest)
        return tuple(sorted((*self._kept, *rest), key=attrgetter("start_line", "start_column")))

    def _rest(self, path: str, rule: str) -> Finding:
        message = f"{self._count[rule] - MOST_A_RULE} more of this kind in the file"
        return Finding(path=path, rule=rule, severity=self._gravest[rule], message=message)
