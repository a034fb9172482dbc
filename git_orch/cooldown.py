"""Which reviewers are not to be called before a certain time, because their providers said so.

`<git common dir>/orch/cooldown/<reviewer>.json`, written whole by rename by the supervisor that was told. Where the
provider did not say until when, the pause grows with each time in a row, up to a most.
"""

from __future__ import annotations

import os
import time

from git_orch import atomic, jsontext
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Fault, Json

FOLDER = "cooldown"
# The first pause and the longest, in seconds, where nothing says when it is over.
_PAUSES: dict[str, tuple[float, float]] = {
    "rate-limited": (300.0, 3600.0),
    "quota": (3600.0, 6 * 3600.0),
    "overloaded": (60.0, 900.0),
}
_LONGEST_S = 35 * 86_400.0


class Cooldown(Record):
    """A reviewer that rests: why, until when (seconds since 1970), and how many times in a row it has been so."""

    fault: Fault
    until: float
    times: int = 1


def read(durable: str, name: str) -> Cooldown | None:
    """The last one of that reviewer, over or not; None where its last call was none of these faults."""
    try:
        value: Json = jsontext.loads(atomic.read(_path(durable, name), limit=4096) or b"")
        found = Cooldown(**{field: value[field] for field in Cooldown._fields})
    except (jsontext.JsonTextError, KeyError, TypeError):
        return None
    is_sound = found.fault in _PAUSES and type(found.until) in (int, float) and type(found.times) is int
    return found if is_sound else None


def of(durable: str, name: str, now: float | None = None) -> Cooldown | None:
    """Why the reviewer is not to be called now; None where nothing speaks against it."""
    at = time.time() if now is None else now
    found = read(durable, name)
    # A clock that was set back must not make a pause out of years.
    return found if found is not None and at < found.until <= at + _LONGEST_S else None


def resting(durable: str, now: float | None = None) -> dict[str, Cooldown]:
    """All reviewers that rest now, by name."""
    try:
        names = sorted(os.listdir(os.path.join(durable, FOLDER)))
    except OSError:
        return {}
    found = {name[:-5]: of(durable, name[:-5], now) for name in names if name.endswith(".json")}
    return {name: each for name, each in found.items() if each is not None}


def note(durable: str, name: str, fault: str, *, until: float = 0.0, now: float | None = None) -> None:
    """The reviewer rests, if that is a fault that passes with time; 0: nobody said until when.

    Raises:
        OSError: it cannot be written.
    """
    if fault not in _PAUSES:
        return
    at = time.time() if now is None else now
    before = read(durable, name)
    times = before.times + 1 if before is not None and before.fault == fault else 1
    first, longest = _PAUSES[fault]
    pause_s = min(longest, first * 2 ** min(times - 1, 10))
    path = _path(durable, name)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    found = {"fault": fault, "until": until if until > at else at + pause_s, "times": times}
    atomic.write(path, jsontext.dumps(found).encode("ascii"))


def clear(durable: str, name: str) -> None:
    """The reviewer has given an answer: the next pause begins anew."""
    try:
        os.unlink(_path(durable, name))
    except OSError:
        pass


def _path(durable: str, name: str) -> str:
    return os.path.join(durable, FOLDER, f"{name}.json")
