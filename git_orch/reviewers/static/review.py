"""All checks over all changed paths, one file in memory at a time, each path accounted for."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

from git_orch.model import SEVERITIES, Finding, Record
from git_orch.reviewers.static import hidden, links, markers, modes, secrets, sizes, suppressions, syntax, whitespace
from git_orch.reviewers.static.names import Names
from git_orch.reviewers.static.patch import Change
from git_orch.reviewers.static.request import Told
from git_orch.reviewers.static.source import load
from git_orch.reviewers.static.syntax import GaveUp, Parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from git_orch.reviewers.static.lint import Target
    from git_orch.reviewers.static.request import Request
    from git_orch.reviewers.static.source import Source

    Check = Callable[[Source], Iterator[Finding]]

# More of a kind in one file tell nothing new; the rest becomes one line that says how many.
MOST_A_RULE = 50
# What hostile bytes make a parser or an expression raise. Anything else is a fault of ours: it ends the process, and a
# review that ended is no pass.
FAULTS = (ArithmeticError, LookupError, MemoryError, OSError, RecursionError, ValueError)
_TEXT_CHECKS: tuple[tuple[str, Check], ...] = (
    ("secrets", secrets.check),
    ("hidden characters", hidden.check),
    ("suppressions", suppressions.check),
    ("modes", modes.check),
    ("white space", whitespace.check),
)


class Reviewed(Record):
    """What became of each path, in the order of the request, and the words for the progress row."""

    told: tuple[Told, ...]
    note: str


class _Examined(Record):
    """One path, looked at: what is told, whether a parser accepted it, and what is left for ruff."""

    told: Told
    parsed: bool = False
    target: Target | None = None


def review(request: Request, environ: Mapping[str, str]) -> Reviewed:
    """All paths of the request, as they are below the current folder, have been looked at."""
    names = Names()
    examined = [_examine(load(path, request.changes.get(path, Change())), names, request) for path in request.paths]
    linted, missing = _lint([one.target for one in examined if one.target], environ)
    told = tuple(
        one.told.replace(findings=tuple(fold([*one.told.findings, *linted.get(one.told.path, ())]))) for one in examined
    )
    return Reviewed(told=told, note=_note(examined, missing))


def _examine(source: Source, names: Names, request: Request) -> _Examined:
    notes = _Notes()
    notes.take("sizes", sizes.check(source))
    notes.take("names", names.check(source))
    if source.path not in request.changes:
        # Without it no line counts as added, and a key in the file would go by.
        notes.skip("the patch does not tell what changed in it")
    if source.unread:
        notes.skip(source.unread)
        return _Examined(told=notes.told(source))
    if source.is_link:
        notes.take("links", links.check(source))
        return _Examined(told=notes.told(source))
    parsed = _parse(source, notes)
    for name, check in _TEXT_CHECKS:
        notes.take(name, check(source))
    return _Examined(told=notes.told(source), parsed=parsed, target=_target(source))


class _Notes:
    """What is found in one file. A check that stumbles leaves what the others found, and its reason."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._reasons: list[str] = []

    def take(self, name: str, findings: Iterator[Finding]) -> None:
        """What the check of that name yields is taken down; the check runs in here."""
        try:
            self.findings.extend(findings)
        except FAULTS as fault:
            self.skip(f"check of {name} failed: {type(fault).__name__}")

    def skip(self, reason: str) -> None:
        """The file will not count as checked."""
        self._reasons.append(reason)

    def told(self, source: Source) -> Told:
        """All of it."""
        return Told(path=source.path, findings=tuple(self.findings), reason="; ".join(self._reasons))


def _parse(source: Source, notes: _Notes) -> bool:
    """Whether a parser read the file to its end or to a fault; what it and the look for conflicts told is noted.

    A fault on the lines of a conflict is that conflict, and told once.
    """
    try:
        outcome = syntax.parse(source)
    except FAULTS as fault:
        outcome = GaveUp(reason=f"parser failed: {type(fault).__name__}")
    if isinstance(outcome, GaveUp):
        notes.skip(outcome.reason)
    broken = outcome.broken if isinstance(outcome, Parsed) else None
    notes.take("markers", markers.check(source, parses=isinstance(outcome, Parsed) and broken is None))
    conflicts = [(one.start_line, one.end_line) for one in notes.findings if one.rule == markers.RULE]
    if broken and not any(first <= broken.start_line <= last for first, last in conflicts):
        notes.findings.append(broken)
    if isinstance(outcome, Parsed):
        notes.findings.extend(outcome.remarks)
    return isinstance(outcome, Parsed)


def _target(source: Source) -> Target | None:
    """The file as something for ruff, if it is Python."""
    if syntax.language_of(source) != "python":
        return None
    from git_orch.reviewers.static.lint import target_of

    return target_of(source)


def _lint(targets: Sequence[Target], environ: Mapping[str, str]) -> tuple[dict[bytes, list[Finding]], str]:
    """What ruff finds by path, and why there are none if it did not look."""
    if not targets:
        return {}, ""
    from git_orch.reviewers.static.lint import lint

    linted = lint(targets, environ)
    paths = {target.source.name: target.source.path for target in targets}
    by_path: dict[bytes, list[Finding]] = {}
    for finding in linted.findings:
        by_path.setdefault(paths[finding.path], []).append(finding)
    return by_path, linted.missing


def fold(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings of one file in the order of its lines; of each rule the first 50, then one that counts the rest."""
    ordered = sorted(findings, key=attrgetter("rule", "start_line", "start_column"))
    kept: list[Finding] = []
    for _, group in groupby(ordered, attrgetter("rule")):
        same = list(group)
        kept.extend(same[:MOST_A_RULE])
        if len(same) > MOST_A_RULE:
            kept.append(_rest(same[MOST_A_RULE:]))
    yield from sorted(kept, key=attrgetter("start_line", "start_column"))


def _rest(findings: list[Finding]) -> Finding:
    """One finding for many of a kind; it weighs as much as the gravest of them."""
    gravest = min(findings, key=lambda finding: SEVERITIES.index(finding.severity))
    return Finding(
        path=gravest.path,
        rule=gravest.rule,
        severity=gravest.severity,
        message=f"{len(findings)} more of this kind in the file",
    )


def _note(examined: Sequence[_Examined], missing: str) -> str:
    checked = sum(not one.told.reason for one in examined)
    parsed = sum(one.parsed for one in examined)
    words = f"{checked} {'file' if checked == 1 else 'files'} checked, {parsed} of them parsed"
    return f"{words}, {missing}" if missing else words
