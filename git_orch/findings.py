"""Findings: who each of them is, how grave it may be, and where it stands after the file has changed."""

from __future__ import annotations

from _blake2 import blake2b

from git_orch.model import SEVERITIES, Record
from git_orch.patch import FileChange, Hunk, Lines, added_lines, changed_lines, parse_hunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from git_orch.model import Finding

__all__ = (
    "FileChange",
    "Gone",
    "Hunk",
    "Lines",
    "Moved",
    "Still",
    "added_lines",
    "changed_lines",
    "identify",
    "in_order",
    "letters",
    "parse_hunks",
    "reanchor",
    "settle",
    "unhex",
)

SHORTEST_ID = 4
_DIGITS, _LETTERS = "0123456789abcdef", "zyxwvutsrqponmlk"  # jj's: an id can be no commit, tree or run
_TO_LETTERS = str.maketrans(_DIGITS, _LETTERS)
_TO_DIGITS = str.maketrans(_LETTERS, _DIGITS)


class Still(Record):
    """The finding stands where it stood."""

    line: int


class Moved(Record):
    """The finding stands at another line, or in a file of another name."""

    line: int
    path: str


class Gone(Record):
    """The lines of the finding are no more, or no longer to be told from others."""


if TYPE_CHECKING:
    Anchor = Still | Moved | Gone


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, gravest first, then by path, line, rule and message; the same for any order that they came in."""
    return tuple(sorted(findings, key=_rank))


def identify(
    findings: Iterable[Finding], line_of: Callable[[str, int], str | None], known: Iterable[str] = ()
) -> tuple[Finding, ...]:
    """The findings in order, each with its fingerprint and an id that no other of them, or of `known`, starts with.

    A fingerprint is made of the path, the lines with their white space folded, how many equal lines come before them in
    the file, the reviewer, and, where that one has several findings on the very same lines, which of these it is. So it
    lives through edits elsewhere and through another wording, and to dismiss what one reviewer says closes nothing that
    another says. `line_of` gives a line of the reviewed tree by path and number, None behind the last; `known` are
    fingerprints of other runs.
    """
    texts = _Texts(line_of)
    twins: dict[tuple[str, str, str, int], int] = {}
    marked = []
    for finding in sorted(findings, key=_place):
        place = (finding.reviewer, finding.path, *texts.locate(finding))
        twins[place] = twins.get(place, 0) + 1
        marked.append(finding.replace(fingerprint=_fingerprint(*place, twins[place])))
    ids = _shortest([*(finding.fingerprint for finding in marked), *known])
    return in_order(finding.replace(id=ids[finding.fingerprint]) for finding in marked)


def letters(digits: str) -> str:
    """Hex digits as the letters z to k, as ids are written."""
    return digits.translate(_TO_LETTERS)


def unhex(word: str) -> str:
    """The hex digits that the letters of an id stand for.

    Raises:
        ValueError: the word holds another letter.
    """
    word = word.lower()
    if not set(word) <= set(_LETTERS):
        raise ValueError(f"an id is made of the letters k to z, not {word!r}")
    return word.translate(_TO_DIGITS)


def settle(findings: Iterable[Finding], *, changed_lines: Mapping[str, Lines], from_agent: bool) -> tuple[Finding, ...]:
    """The findings with the severity that counts.

    An agent's is blocking only if it touches a line inside the difference and says when it fails; else it is advisory.
    A program's stays as it is.
    """
    return tuple(
        finding.replace(severity="advisory")
        if from_agent and finding.severity == "blocking" and not _proven(finding, changed_lines)
        else finding
        for finding in findings
    )


def reanchor(finding: Finding, change: FileChange | None, old_text: str, new_text: str) -> Anchor:
    """Where the finding stands now, by what became of its file since it was reviewed (None: nothing).

    The texts are those of the file on both sides. Lines that no hunk touches shift with what was put in or taken out
    above. Lines inside a hunk have moved if their text, white space folded, stands exactly once in the new file and
    was put there by a hunk; a twin that was there before is not them.
    """
    if change is None or change.added:
        return Still(line=finding.start_line)
    if change.deleted:
        return Gone()
    line = _shifted(finding, change.hunks)
    if line is None:
        line = _found_again(finding, change.hunks, _folded_lines(old_text), _folded_lines(new_text))
    if line is None:
        return Gone()
    if line == finding.start_line and change.new_path == finding.path:
        return Still(line=line)
    return Moved(line=line, path=change.new_path)


def _rank(finding: Finding) -> tuple[int, str, int, str, str, int, int, str]:
    return (
        SEVERITIES.index(finding.severity),
        finding.path,
        finding.start_line,
        finding.rule,
        finding.message,
        finding.start_column,
        finding.end_line,
        finding.reviewer,
    )


def _place(finding: Finding) -> tuple[str, int, int, int, str, int, str]:
    """What tells findings on the same lines apart: what varies least between two runs comes first."""
    lines = (finding.path, finding.start_line, finding.end_line, finding.start_column)
    return (*lines, finding.rule, SEVERITIES.index(finding.severity), finding.message)


def _proven(finding: Finding, changed: Mapping[str, Lines]) -> bool:
    inside = changed.get(finding.path, Lines()).touch(finding.start_line, finding.end_line or finding.start_line)
    return inside and bool(finding.fails_when.strip())


def _fingerprint(reviewer: str, path: str, text: str, ordinal: int, twin: int) -> str:
    """64 hex digits. Half surrogates, which stand for bytes that are not UTF-8, count as themselves."""
    digest = blake2b(digest_size=32)
    for part in (reviewer, path, text, str(ordinal), str(twin)):
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:%b" % (len(raw), raw))
    return digest.hexdigest()


def _shortest(fingerprints: Iterable[str]) -> dict[str, str]:
    """For each fingerprint, in letters, the shortest prefix of four or more that begins no other."""
    ordered = sorted(set(fingerprints))
    shared = [_common_length(ordered[i], ordered[i + 1]) for i in range(len(ordered) - 1)]
    needed = map(max, [0, *shared], [*shared, 0])  # a prefix must be longer than what either neighbour shares
    lengths = (max(SHORTEST_ID, most + 1) for most in needed)
    return {digits: letters(digits[:length]) for digits, length in zip(ordered, lengths, strict=False)}


def _common_length(one: str, other: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _folded(line: str) -> str:
    return " ".join(line.split())


def _folded_lines(text: str) -> list[str]:
    """The lines of a file, white space folded; only a newline ends one, as git counts."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [_folded(line) for line in lines]


def _positions(window: Sequence[str], lines: Sequence[str]) -> list[int]:
    """The indices at which the lines hold the window."""
    found, start, stop = [], -1, len(lines) - len(window) + 1
    try:
        while True:
            start = lines.index(window[0], start + 1, max(stop, 0))
            if lines[start : start + len(window)] == window:
                found.append(start)
    except ValueError:
        return found


class _Texts:
    """The folded lines of files, each read once and only as far as it is asked for."""

    def __init__(self, line_of: Callable[[str, int], str | None]) -> None:
        self.line_of = line_of
        self.read: dict[str, list[str]] = {}

    def locate(self, finding: Finding) -> tuple[str, int]:
        """The finding's lines as one text, and how many equal ones come before; ("", 0) for a whole file."""
        first, last = finding.start_line, max(finding.start_line, finding.end_line)
        lines = self._lines(finding.path, last)
        window = lines[first - 1 : last] if first else []
        before = lines[: first - 1 + len(window) - 1]
        return "\n".join(window), len(_positions(window, before)) if window else 0

    def _lines(self, path: str, last: int) -> list[str]:
        """The lines of the file up to `last`, or all where it has fewer."""
        lines = self.read.setdefault(path, [])
        while len(lines) < last and (line := self.line_of(path, len(lines) + 1)) is not None:
            lines.append(_folded(line))
        return lines


def _shifted(finding: Finding, hunks: Sequence[Hunk]) -> int | None:
    """The finding's first line on the new side, or None where a hunk changed or split its lines; 0 stays 0."""
    first, last = finding.start_line, max(finding.start_line, finding.end_line)
    if first == 0:
        return 0
    shift = 0
    for hunk in hunks:
        # The first old line that the hunk takes, and the first one after it: for an insertion both are the same.
        below = hunk.old_start + max(hunk.old_count, 1)
        above = below - hunk.old_count
        if above > last:
            break
        if below > first:
            return None
        shift += hunk.new_count - hunk.old_count
    return first + shift


def _found_again(
    finding: Finding, hunks: Sequence[Hunk], old_lines: Sequence[str], new_lines: Sequence[str]
) -> int | None:
    """The line at which the hunks put the finding's lines back, if they did so at one place."""
    window = old_lines[finding.start_line - 1 : max(finding.start_line, finding.end_line)]
    if not any(window):
        return None
    places = _positions(window, new_lines)
    put_in = Lines(spans=tuple(range(h.new_start, h.new_start + h.new_count) for h in hunks if h.new_count))
    if len(places) != 1 or not put_in.touch(places[0] + 1, places[0] + len(window)):
        return None
    return places[0] + 1
