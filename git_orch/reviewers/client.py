"""What git-orch has to know of a client to have it review: how it is called, and how its own output is taken apart.

Each client is a module of this folder with the members of `Client`; `agents` finds them. A client is judged by the
object that it was asked for alone: its exit status and its prose are neither a pass nor a finding.
"""

from __future__ import annotations

from git_orch import jsontext
from git_orch.errors import OrchError
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Protocol

    from git_orch.model import Fault, Json

    class Client(Protocol):
        """The members of a client's module.

        `PROGRAMS`: the names of its program, the usual one first. `HELP`: the words that make it print its options.
        `KEPT`: variables that hold its sign-in or its configuration, and would be taken away with those of a session.
        `NEEDS_BUS`: whether its sign-in lies behind the session bus.
        """

        NAME: str
        TITLE: str
        PROGRAMS: tuple[str, ...]
        HELP: tuple[str, ...]
        KEPT: tuple[str, ...]
        NEEDS_BUS: bool

        def flags(self, call: Call, /) -> tuple[Flag, ...]:
            """Its command line without the program; the prompt comes on standard input."""

        def environment(self, call: Call, /) -> dict[str, str]:
            """Variables that switch off what no flag does."""

        def planted(self) -> Mapping[str, bytes | None]:
            """Files of its tree whatever the reviewed one holds: settings that no flag reaches; None: no such file."""

        def hear(self, output: Output, /) -> Heard:
            """What the client said, by the shape of its output alone."""


SCHEMA, USAGE, PROMPT = "schema.json", "usage.json", "prompt"


class Call(Record):
    """One call of a client: `folder` is `$ORCH_DIR`, `schema` the JSON Schema of the answer as text."""

    tree: str
    folder: str
    schema: str
    model: str = ""
    timeout_s: float = 600.0
    budget_usd: float = 1.0

    @property
    def schema_path(self) -> str:
        """The file that holds the schema."""
        return f"{self.folder}/{SCHEMA}"

    @property
    def usage_path(self) -> str:
        """The file for what the call has cost, where the client tells that in one."""
        return f"{self.folder}/{USAGE}"


class Flag(Record):
    """Some words of a command line, of which the first is the option.

    A client whose `--help` does not name the option gets `instead`; where there is nothing to be said instead, it is
    not called at all if the flag is `needed`, and else without, of which `lost` tells in a few words.
    """

    words: tuple[str, ...]
    instead: tuple[str, ...] = ()
    needed: bool = False
    lost: str = ""


class Output(Record):
    """What a client left: its two streams, and the file for its usage where it was asked for one."""

    stdout: bytes
    stderr: bytes = b""
    usage: bytes = b""


class Said(Record):
    """Why a client gave no answer: `fault` in one word, `text` in its own, `resets_at` when it may be asked again.

    That is in seconds since 1970; 0 where nothing says when.
    """

    fault: Fault
    text: str
    resets_at: float = 0.0


class Heard(Record):
    """A client's output taken apart: the `answer` as JSON text ("" for none at all), or `said`, why there is none."""

    answer: str = ""
    said: Said | None = None
    session_id: str = ""
    tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0


class TooOld(OrchError):
    """A client does not know an option without which it is not safe to call, or cannot give an answer."""

    code = "client-too-old"


def spelled(flags: Iterable[Flag], known: frozenset[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of the flags for a client that knows these options (None: not known which), and what was adjusted.

    Raises:
        TooOld: a needed one is missing.
    """
    words: list[str] = []
    adjusted = []
    for flag in flags:
        option = flag.words[0].partition("=")[0]
        if known is None or option in known or not option.strip("-") or not option.startswith("-"):
            words += flag.words
        elif flag.instead and (not flag.instead[0].startswith("--") or flag.instead[0] in known):
            words += flag.instead
            adjusted.append(f"{option}: said as {flag.instead[0]}")
        elif flag.needed:
            raise TooOld(f"this version knows no {option}", "install a newer one, or set orch.reviewer.NAME.command")
        else:
            adjusted.append(f"{option}: not known to this version{flag.lost and ', ' + flag.lost}")
    return tuple(words), tuple(adjusted)


def field(value: Any, *names: str) -> Any:
    """What lies in nested objects under these names in turn; None where one of them is missing or no object."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def count(value: Any, *names: str) -> int:
    """The same, where it is a whole number from 0 up; else 0."""
    found = field(value, *names)
    return found if type(found) is int and 0 <= found < 1 << 53 else 0


def price(value: Any, *names: str) -> float:
    """The same, where it is a price from 0 up; else 0."""
    found = field(value, *names)
    return float(found) if type(found) in (int, float) and 0 <= found < 1e6 else 0.0


def words(value: Any, *names: str) -> str:
    """The same, where it is a text; else ""."""
    found = field(value, *names)
    return found if isinstance(found, str) else ""


def events(raw: bytes) -> list[Json] | None:
    """The objects of JSON lines; None where a line is no object: a stream that was cut, or no stream at all."""
    found = []
    for line in raw.split(b"\n"):
        if not line.strip():
            continue
        try:
            value = jsontext.loads(line)
        except jsontext.JsonTextError:
            value = None
        if not isinstance(value, dict):
            return None
        found.append(value)
    return found
