"""What kind of fault kept a client from answering, by the HTTP status and the words of its own error.

Only errors are looked at, never an answer: a rate limit that a review talks about is none.
"""

from __future__ import annotations

import time

from git_orch.reviewers.client import Said
from git_orch.reviewers.reading import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Fault

_RATE = (
    "rate limit",
    "rate-limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "usage limit",
    "session limit",
    "weekly limit",
    "limit reached",
    "hit your limit",
    "resource_exhausted",
    "resource exhausted",
)
_QUOTA = ("quota", "billing", "credit balance", "insufficient credit", "insufficient_", "out of credits", "payment")
_OVERLOADED = ("overloaded", "high demand", "temporarily unavailable", "service unavailable", "unavailable", "capacity")
_SIGNED_OUT = (
    "not logged in",
    "not signed in",
    "/login",
    "log in",
    "sign in",
    "login required",
    "api key",
    "api_key",
    "unauthorized",
    "authentication",
    "authenticate",
    "no authentication",
    "credentials",
)
_TOO_LONG = (
    "too long",
    "context length",
    "context_length",
    "context window",
    "maximum context",
    "too large",
    "too many tokens",
)
_CUT = ("stream disconnected", "stream ended", "finish reason", "connection reset", "socket hang up", "stream closed")
_BY_STATUS: dict[int, Fault] = {
    401: "signed-out",
    403: "signed-out",
    402: "quota",
    413: "too-long",
    429: "rate-limited",
}
_STATUSES = ("401", "402", "403", "413", "429", "500", "502", "503", "504", "529")
_BY_WORDS: tuple[tuple[Fault, tuple[str, ...]], ...] = (
    ("too-long", _TOO_LONG),
    ("rate-limited", _RATE),
    ("quota", _QUOTA),
    ("overloaded", _OVERLOADED),
    ("signed-out", _SIGNED_OUT),
    ("cut", _CUT),
)
_SENTENCES: dict[Fault, str] = {
    "rate-limited": "rate limited",
    "quota": "its quota is used up",
    "overloaded": "its provider is overloaded",
    "signed-out": "not signed in",
    "too-long": "too long for its model",
    "over-budget": "stopped at its budget",
    "cut": "its answer was cut off",
    "failed": "it failed",
}


def said(text: str, *, status: int = 0, now: float | None = None) -> Said:
    """What an error with these words and that HTTP status (0: none is known) is, and when it will be over."""
    fault = _kind(text.casefold(), status)
    resets_at = 0.0
    if fault in ("rate-limited", "quota", "overloaded"):
        from git_orch.reviewers import resets  # only on the way of a failure

        resets_at = resets.parse(text, time.time() if now is None else now)
        if fault == "quota" and resets_at and status in (0, 429):
            fault = "rate-limited"  # Google's word for both is quota; one that refills by itself is a limit
    return Said(fault=fault, text=text, resets_at=resets_at)


def reason(given: Said) -> str:
    """The same in a few words: `rate limited until 15:20`, `not signed in: "Not logged in · Please run /login"`."""
    sentence = _SENTENCES[given.fault]
    if given.resets_at:
        return until(given.fault, given.resets_at)
    quoted = shown(" ".join(given.text.split()), 120)
    return f'{sentence}: "{quoted}"' if quoted else sentence


def until(fault: Fault, at: float) -> str:
    """`rate limited until 15:20`."""
    return f"{_SENTENCES[fault]} until {clock(at)}"


def clock(at: float, now: float | None = None) -> str:
    """The local time of day, with the date where that is not today's: `15:20`, `1 Dec 03:20`."""
    local, today = time.localtime(at), time.localtime(time.time() if now is None else now)
    of_day = f"{local.tm_hour:02d}:{local.tm_min:02d}"
    if local[:3] == today[:3]:
        return of_day
    month = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")[local.tm_mon - 1]
    return f"{local.tm_mday} {month} {of_day}"


def _kind(text: str, status: int) -> Fault:
    status = status or _status_in(text)
    if status == 429 and any(word in text for word in _QUOTA):
        return "quota"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    for fault, signs in _BY_WORDS:
        if any(sign in text for sign in signs):
            return fault
    return "overloaded" if status >= 500 else "failed"


def _status_in(text: str) -> int:
    """The HTTP status that stands in the words, as in `API Error: 529 Overloaded`; 0 where none does."""
    numbers = "".join(char if char.isdigit() else " " for char in text).split()
    return next((int(number) for number in numbers if number in _STATUSES), 0)
