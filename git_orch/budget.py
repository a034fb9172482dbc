"""What agent reviews of a repository may cost, asked before each call, and what they have cost.

`<git common dir>/orch/budget.jsonl`, shared by all worktrees and written under `budget.lock`: one line before a call,
with the most that it may cost, and one after it with what it did cost. A line before without one after belongs to a
review that goes on, or to one whose supervisor died: it counts with all that it was given, for what it has spent
nobody knows any more.
"""

from __future__ import annotations

import os
import time

from git_orch import atomic, jsontext, locks
from git_orch.model import UNLIMITED, Budget, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from git_orch.model import Json

FILE, LOCK = "budget.jsonl", "budget.lock"
HOUR_S = 3600.0
LEAST_USD = 0.05
"""A call that may cost less than this would be cut off before it had an answer."""
KEPT = "budget: "
"""How the reason begins of an agent that the budget has kept from a review."""
_KEPT_S = 8 * 86_400.0
_LIMIT = 4 << 20
_LARGE = 256 << 10


class Spending(Record):
    """One agent review: when it was asked for, by which session; `usd` is reserved while it is open, else the price."""

    at: float
    session: str = ""
    usd: float = 0.0
    tokens: int = 0
    is_open: bool = True


class Granted(Record):
    """The call may be made, and cost that much (`UNLIMITED`: nobody minds) where its client can keep to it."""

    usd: float


class Denied(Record):
    """The call is not to be made, and why, in a few words."""

    reason: str


class Ledger(Record):
    """What was spent, oldest first, as of the second `now`."""

    spendings: tuple[Spending, ...]
    now: float

    def hour(self) -> list[Spending]:
        """The reviews of the last sixty minutes."""
        return [each for each in self.spendings if each.at > self.now - HOUR_S]

    def day(self) -> list[Spending]:
        """The reviews since midnight, local time."""
        begin = midnight(self.now)
        return [each for each in self.spendings if each.at >= begin]

    def session(self, name: str) -> list[Spending]:
        """The reviews of one session."""
        return [each for each in self.spendings if name and each.session == name]

    def why_not(self, limits: Budget, session: str) -> str:
        """The limit because of which no agent is to be called now; "" where there is none."""
        hour, day = self.hour(), self.day()
        if _is_reached(len(hour), limits.hour):
            again = min((each.at for each in hour), default=self.now) + HOUR_S
            return f"{len(hour)} of {limits.hour} agent reviews this hour; next at {_clock(again)}"
        if _is_reached(len(day), limits.day):
            return f"{len(day)} of {limits.day} agent reviews today"
        if _is_reached(len(self.session(session)), limits.session):
            return f"{len(self.session(session))} of {limits.session} agent reviews of this session"
        if _is_reached(tokens(day), limits.tokens):
            return f"{tokens(day)} of {limits.tokens} tokens today"
        if limits.usd != UNLIMITED and limits.usd - usd(day) < LEAST_USD:
            return f"${usd(day):.2f} of ${limits.usd:.2f} today"
        return ""

    def most(self, limits: Budget, wanted_usd: float) -> float:
        """The most that the next call may cost."""
        if limits.usd == UNLIMITED:
            return wanted_usd
        left = max(LEAST_USD, limits.usd - usd(self.day()))
        return left if wanted_usd == UNLIMITED else min(wanted_usd, left)


def usd(spendings: Iterable[Spending]) -> float:
    """What they cost together, or were given."""
    return sum(each.usd for each in spendings)


def paid(spendings: Iterable[Spending]) -> float:
    """What those of them that have ended cost together."""
    return sum(each.usd for each in spendings if not each.is_open)


def tokens(spendings: Iterable[Spending]) -> int:
    """How many tokens their providers counted."""
    return sum(each.tokens for each in spendings)


def midnight(now: float) -> float:
    """When the local day began."""
    local = time.localtime(now)
    return time.mktime((*local[:3], 0, 0, 0, 0, 0, -1))


def read(durable: str, now: float | None = None) -> Ledger:
    """The ledger as it is; lines that are torn, or of a newer version, are passed over."""
    raw = atomic.read(os.path.join(durable, FILE), limit=_LIMIT) or b""
    found = _spendings(_lines(raw))
    ordered = sorted(found.values(), key=lambda each: each.at)
    return Ledger(spendings=tuple(ordered), now=time.time() if now is None else now)


def reserve(
    durable: str,
    name: str,
    limits: Budget,
    *,
    session: str,
    wanted_usd: float,
    is_kept_to: bool,
    bound: bool = True,
    now: float | None = None,
) -> Granted | Denied:
    """The call that has this name (run and reviewer) is in the ledger, or it is not to be made.

    Of several that ask for the last place at once, one gets it.

    Args:
        is_kept_to: whether the client can be told a price that it keeps to; else nothing is set aside for it.
        bound: whether the limits hold; what a person asks for is entered and never denied.

    Raises:
        OSError: the ledger cannot be written: then nobody knows what was spent, and no call is to be made.
    """
    fd = _locked(durable)
    try:
        ledger = read(durable, now)
        reason = ledger.why_not(limits, session) if bound else ""
        if reason:
            return Denied(reason=reason)
        most = ledger.most(limits, wanted_usd) if bound else wanted_usd
        aside = most if is_kept_to and most != UNLIMITED else 0.0
        _append(durable, {"id": name, "at": round(ledger.now, 3), "session": session, "usd": round(aside, 4)})
        return Granted(usd=most)
    finally:
        os.close(fd)


def settle(durable: str, name: str, *, usd: float, tokens: int) -> None:
    """The ledger has what the call cost in place of what it was given.

    Raises:
        OSError: it cannot be written; the call goes on to count with what it was given.
    """
    _close(durable, {"id": name, "usd": round(usd, 6), "tokens": tokens})


def release(durable: str, name: str) -> None:
    """The call that was in the ledger was never made, and does not count.

    Raises:
        OSError: it cannot be written; the call counts.
    """
    _close(durable, {"id": name, "released": True})


def _close(durable: str, line: Json) -> None:
    fd = _locked(durable)
    try:
        _append(durable, line)
    finally:
        os.close(fd)


def _locked(durable: str) -> int:
    os.makedirs(durable, mode=0o755, exist_ok=True)
    fd = locks.open_lockable(os.path.join(durable, LOCK), os.O_CREAT)
    try:
        locks.exclusive(fd, wait=True)
    except OSError:  # the file system keeps no locks: single lines are whole all the same
        pass
    return fd


def _append(durable: str, line: Json) -> None:
    """The line stands in the file; where that has grown large, without what is old."""
    path = os.path.join(durable, FILE)
    raw = atomic.read(path, limit=_LIMIT) or b""
    text = jsontext.dumps({"schema_version": "1", **line}).encode("ascii") + b"\n"
    if len(raw) > _LARGE:
        atomic.write(path, _recent(raw, time.time() - _KEPT_S) + text)
    else:
        atomic.append(path, b"\n" + text if raw and not raw.endswith(b"\n") else text)


def _recent(raw: bytes, oldest: float) -> bytes:
    """The lines of what was asked for since then."""
    lines = _lines(raw)
    recent = {name for name, each in _spendings(lines).items() if each.at >= oldest}
    return b"".join(jsontext.dumps(line).encode("ascii") + b"\n" for line in lines if line["id"] in recent)


def _lines(raw: bytes) -> list[Json]:
    found = []
    for line in raw.split(b"\n"):
        try:
            value = jsontext.loads(line) if line else None
        except jsontext.JsonTextError:
            continue
        if isinstance(value, dict) and isinstance(value.get("id"), str):
            found.append(value)
    return found


def _spendings(lines: Iterable[Json]) -> dict[str, Spending]:
    found: dict[str, Spending] = {}
    for line in lines:
        name = line["id"]
        if _is_number(line.get("at")):
            found[name] = Spending(at=line["at"], session=str(line.get("session", "")), usd=_number(line, "usd"))
        elif name in found and line.get("released"):
            del found[name]
        elif name in found:
            found[name] = found[name].replace(
                usd=_number(line, "usd"), tokens=int(_number(line, "tokens")), is_open=False
            )
    return found


def _number(line: Json, key: str) -> float:
    value = line.get(key)
    return value if _is_number(value) else 0.0  # type: ignore[return-value]


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < 1e12  # type: ignore[operator]


def _is_reached(count: int, limit: int) -> bool:
    return limit != UNLIMITED and count >= limit


def _clock(at: float) -> str:
    local = time.localtime(at)
    return f"{local.tm_hour:02d}:{local.tm_min:02d}"
