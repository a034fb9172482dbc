"""What each session was told, once a (session, finding): `<git common dir>/orch/told/<session>/<fingerprint>.json`.

An offer is *claimed* before it is said, by O_EXCL, *offered* once it stands on the client's standard input, and
*acknowledged* by the session's next event. One that never came so far (the hook was killed in between, or the client
was started anew) is made once more, and not a third time. The writer is the hook of that session that holds `lock`
there: a client that has our line twice runs both at once.
"""

from __future__ import annotations

import os

from git_orch import atomic, jsontext, locks
from git_orch.model import SCHEMA_VERSION, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal, Self

    from git_orch.model import Json

    State = Literal["claimed", "offered", "acknowledged"]
    Way = Literal["context", "stop", "wake"]

FOLDER = "told"
MOST_OFFERS = 2
_SUFFIX = ".json"
_STATES = ("claimed", "offered", "acknowledged")


class Offer(Record):
    """A finding that a session was told of: when (seconds since 1970), on whose report, and on which way.

    `round` counts the times that the session was asked for a fix, from 1; it is 0 for what was only told. `times` is
    how often it was said.
    """

    fingerprint: str
    finding_id: str
    run_id: str
    at: float
    way: Way = "context"
    round: int = 0
    times: int = 1
    state: State = "claimed"


class Offers:
    """All offers of one session, held by this process until `close`."""

    def __init__(self, folder: str, fd: int) -> None:
        self._folder = folder
        self._fd = fd
        self._known = {offer.fingerprint: offer for offer in _read_all(folder)}

    @classmethod
    def open(cls, durable: str, name: str) -> Self | None:
        """The offers of the session whose file has that name; None while another hook of that session has them."""
        folder = os.path.join(durable, FOLDER, name.removesuffix(_SUFFIX))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        fd = locks.open_lockable(os.path.join(folder, "lock"), os.O_CREAT)
        try:
            is_ours = locks.exclusive(fd)
        except OSError:  # a file system without locks: O_EXCL has to do
            is_ours = True
        if is_ours:
            return cls(folder, fd)
        os.close(fd)
        return None

    def close(self) -> None:
        """Another hook of the session may have them."""
        os.close(self._fd)

    @property
    def rounds(self) -> int:
        """How often the session was asked for a fix."""
        return max((offer.round for offer in self._known.values()), default=0)

    def is_told(self, fingerprint: str) -> bool:
        """Whether the session is not to be told of the finding any more."""
        offer = self._known.get(fingerprint)
        return offer is not None and (offer.state != "claimed" or offer.times >= MOST_OFFERS)

    def settle(self, *, restarted: bool) -> list[Offer]:
        """An event of the session has come: what was said before it has arrived; gives those offers.

        Unless the client was started anew meanwhile: then it may not have, and is to be said once more.
        """
        arrived = []
        for offer in [offer for offer in self._known.values() if offer.state == "offered"]:
            is_lost = restarted and offer.times < MOST_OFFERS
            self._write(offer.replace(state="claimed" if is_lost else "acknowledged"))
            arrived += [] if is_lost else [offer]
        return arrived

    def claim(self, offer: Offer) -> bool:
        """Whether it is for us, and nobody else, to make that offer now; it is on the disk then."""
        before = self._known.get(offer.fingerprint)
        if before is not None:
            if self.is_told(offer.fingerprint):
                return False
            self._write(offer.replace(times=before.times + 1))
            return True
        if not atomic.create(self._path(offer.fingerprint), _bytes(offer)):
            return False
        self._known[offer.fingerprint] = offer
        return True

    def said(self, fingerprints: Iterable[str]) -> None:
        """Those offers were written to the client."""
        for fingerprint in fingerprints:
            self._write(self._known[fingerprint].replace(state="offered"))

    def of(self, fingerprints: Iterable[str]) -> list[Offer]:
        """Those offers as they are now."""
        return [self._known[fingerprint] for fingerprint in fingerprints]

    def first_time(self, notice: str) -> bool:
        """Whether the session's person has not been told that yet; from now on it has."""
        from git_orch.key import digest

        return atomic.create(os.path.join(self._folder, f"notice-{digest(notice)[:16]}"), b"")

    def _write(self, offer: Offer) -> None:
        atomic.write(self._path(offer.fingerprint), _bytes(offer))
        self._known[offer.fingerprint] = offer

    def _path(self, fingerprint: str) -> str:
        return os.path.join(self._folder, fingerprint + _SUFFIX)


def _bytes(offer: Offer) -> bytes:
    return jsontext.dumps({"schema_version": SCHEMA_VERSION, **offer.fields()}).encode("ascii")


def _read_all(folder: str) -> list[Offer]:
    names = [name for name in os.listdir(folder) if name.endswith(_SUFFIX) and not name.startswith(".")]
    found = (_parse(atomic.read(os.path.join(folder, name), limit=1 << 16)) for name in names)
    return [offer for offer in found if offer is not None]


def _parse(raw: bytes | None) -> Offer | None:
    try:
        value: Json = jsontext.loads(raw or b"")
        known = {name: value[name] for name in Offer._fields if name in value}
        is_sound = known["state"] in _STATES and all(isinstance(known[name], int) for name in ("round", "times"))
        return Offer(**known) if is_sound else None
    except (jsontext.JsonTextError, KeyError, TypeError, AttributeError):
        return None
