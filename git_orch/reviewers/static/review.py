"""All checks over all changed paths, one file in memory at a time, each path accounted for."""

from __future__ import annotations

from git_orch.model import Record
from git_orch.reviewers.static import hidden, links, markers, modes, secrets, sizes, suppressions, syntax, whitespace
from git_orch.reviewers.static.folding import Folded
from git_orch.reviewers.static.names import Names
from git_orch.reviewers.static.outcomes import GaveUp, Parsed
from git_orch.reviewers.static.patch import Change
from git_orch.reviewers.static.request import Told
from git_orch.reviewers.static.source import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from git_orch.model import Finding
    from git_orch.reviewers.static.lint import Target
    from git_orch.reviewers.static.request import Request
    from git_orch.reviewers.static.source import Source

    Check = Callable[[Source], Iterator[Finding]]

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
    """One path, looked at: what is noted, whether a parser accepted it, and what is left for ruff."""

    source: Source
    notes: _Notes
    parsed: bool = False
    target: Target | None = None


def review(request: Request, environ: Mapping[str, str]) -> Reviewed:
    """All paths of the request, as they are below the current folder, have been looked at."""
    names = Names()
    examined = [_examine(load(path, request.changes.get(path, Change())), names, request) for path in request.paths]
    linted, missing = _lint([one.target for one in examined if one.target], environ)
    for one in examined:
        one.notes.found.extend(linted.get(one.source.name, ()))
    told = tuple(one.notes.told(one.source) for one in examined)
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
        return _Examined(source=source, notes=notes)
    if source.is_link:
        notes.take("links", links.check(source))
        return _Examined(source=source, notes=notes)
    parsed = _parse(source, notes)
    for name, check in _TEXT_CHECKS:
        notes.take(name, check(source))
    target = _target(source)
    return _Examined(source=source.without_content(), notes=notes, parsed=parsed, target=target)


class _Notes:
    """What is found in one file. A check that stumbles leaves what the others found, and its reason."""

    def __init__(self) -> None:
        self.found = Folded()
        self._reasons: list[str] = []

    def take(self, name: str, findings: Iterator[Finding]) -> None:
        """What the check of that name yields is taken down; the check runs in here."""
        try:
            self.found.extend(findings)
        except FAULTS as fault:
            self.skip(f"check of {name} failed: {type(fault).__name__}")

    def skip(self, reason: str) -> None:
        """The file will not count as checked."""
        self._reasons.append(reason)

    @property
    def reason(self) -> str:
        """Why the file does not count as checked; nothing if it does."""
        return "; ".join(self._reasons)

    def told(self, source: Source) -> Told:
        """All of it."""
        return Told(path=source.path, findings=self.found.findings(source.name), reason=self.reason)


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
    if broken and not notes.found.covers(broken.start_line, markers.RULE):
        notes.found.extend([broken])
    if isinstance(outcome, Parsed):
        notes.found.extend(outcome.remarks)
    return isinstance(outcome, Parsed)


def _target(source: Source) -> Target | None:
    """The file as something for ruff, if it is Python."""
    if syntax.language_of(source) != "python":
        return None
    from git_orch.reviewers.static.lint import target_of

    return target_of(source)


def _lint(targets: Sequence[Target], environ: Mapping[str, str]) -> tuple[dict[str, list[Finding]], str]:
    """What ruff finds by path, and why there is nothing if it did not look."""
    if not targets:
        return {}, ""
    from git_orch.reviewers.static.lint import lint

    linted = lint(targets, environ)
    by_path: dict[str, list[Finding]] = {}
    for finding in linted.findings:
        by_path.setdefault(finding.path, []).append(finding)
    return by_path, linted.missing


def _note(examined: Sequence[_Examined], missing: str) -> str:
    checked = sum(not one.notes.reason for one in examined)
    parsed = sum(one.parsed for one in examined)
    words = f"{checked} {'file' if checked == 1 else 'files'} checked, {parsed} of them parsed"
    return f"{words}, {missing}" if missing else words
