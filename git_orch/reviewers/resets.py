"""When a limit is over, read out of the sentence in which a client or provider tells it.

Nothing here is imported on the hook path or while a reviewer works: a sentence is looked at only once a call has
failed, and what `re` and `zoneinfo` cost does not count then.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from datetime import datetime, tzinfo

LONGEST_S = 35 * 86_400.0  # a monthly quota; what is farther off was misread
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CUE = r"\b(?:resets?(?:_at)?|reset[\w ]{0,12}time|try again|retry|wait|available|until|renews?)\b"
# The cue and the time may be a few words apart, but stand in one sentence.
_GAP = r"[^.!?\n]{0,60}?"
_AMOUNT = (
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?![a-z])"
)
_RELATIVE = rf"{_CUE}{_GAP}\b(?:in|after|for)[\s:]+((?:{_AMOUNT}[\s,]*(?:and\s+)?)+)"
_SECONDS = r"(?:retry[-_ ]?after|retrydelay)[\"'\s:=]+(\d+(?:\.\d+)?)(ms|s)?"
_EPOCH = rf"(?:{_CUE}[\"'\s:=at]*|\|)(1[5-9]\d{{8}}|2\d{{9}})(?:\d{{3}})?\b"
_ISO = r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s*(Z|UTC|[+-]\d\d:?\d\d)?"
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(\d{4}))?"
_CLOCK = r"(\d{1,2})(?::(\d\d))?(?::\d\d)?\s*([ap]\.?m\b\.?)?"
_ABSOLUTE = (
    rf"{_CUE}{_GAP}\b(?:{_MONTH}(?:,|\s|at\b)*)?(?<![\d.:])\b{_CLOCK}(?:\s*\(?(UTC|GMT|[A-Z][a-z]+/[\w/+-]+)\)?)?"
)


def parse(text: str, now: float) -> float:
    """When the limit ends, in seconds since 1970; 0 where the text does not say, or says what cannot be.

    Times of day without a zone are local; without a date, the next such time is meant.
    """
    for reader in (_epoch, _relative, _seconds, _iso, _absolute):
        found = reader(text, now)
        if now < found <= now + LONGEST_S:
            return found
    return 0.0


def _epoch(text: str, _now: float) -> float:
    found = _search(_EPOCH, text)
    return float(found[1]) if found else 0.0


def _relative(text: str, now: float) -> float:
    import re

    found = _search(_RELATIVE, text)
    if not found:
        return 0.0
    amounts = re.findall(_AMOUNT, found[1], re.IGNORECASE)
    return now + sum(float(number) * _unit_s(unit) for number, unit in amounts)


def _seconds(text: str, now: float) -> float:
    found = _search(_SECONDS, text)
    return now + float(found[1]) * _UNITS[(found[2] or "s").lower()] if found else 0.0


def _iso(text: str, _now: float) -> float:
    from datetime import datetime

    found = _search(_ISO, text)
    if not found:
        return 0.0
    zone = (found[3] or "").upper().replace("Z", "+00:00").replace("UTC", "+00:00")
    try:
        return datetime.fromisoformat(f"{found[1]}T{found[2]}{zone}").timestamp()
    except ValueError:
        return 0.0


def _absolute(text: str, now: float) -> float:
    found = _search(_ABSOLUTE, text)
    if not found or not (found[5] or found[6]):  # "3" alone is no time of day
        return 0.0
    hour, minute = _hour(int(found[4]), (found[6] or "").lower()), int(found[5] or 0)
    zone = _zone(found[7] or "")
    try:
        return _next(found, hour, minute, _at(now, zone)).timestamp()
    except ValueError:
        return 0.0


def _next(found: re.Match[str], hour: int, minute: int, now: datetime) -> datetime:
    """The date that is named, or the first on which that time is still to come."""
    from datetime import timedelta

    at = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if not found[1]:
        return at if at > now else at + timedelta(days=1)
    at = at.replace(month=_MONTHS.index(found[1].lower()) + 1, day=int(found[2]))
    if found[3]:
        return at.replace(year=int(found[3]))
    return at if at > now - timedelta(days=1) else at.replace(year=at.year + 1)


def _hour(hour: int, half: str) -> int:
    """The hour of the day; 24 and above are no hour, which `replace` then says."""
    if not half:
        return hour
    if not 1 <= hour <= 12:
        return 99
    return hour % 12 + (12 if half.startswith("p") else 0)


def _at(now: float, zone: tzinfo | None) -> datetime:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(now, UTC).astimezone(zone)


def _zone(name: str) -> tzinfo | None:
    """The zone of that name; the local one where there is none."""
    from datetime import UTC

    if name.upper() in ("UTC", "GMT"):
        return UTC
    if not name:
        return None
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # no such zone, or no data base of them
        return None


def _unit_s(unit: str) -> float:
    word = unit.lower()
    return _UNITS["ms"] if word.startswith(("ms", "milli")) else _UNITS[word[0]]


def _search(pattern: str, text: str) -> re.Match[str] | None:
    import re

    return re.search(pattern, text, re.IGNORECASE)
