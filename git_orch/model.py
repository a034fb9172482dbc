"""The records and closed sets that every other module speaks in.

Nothing here costs an import: the hooks of a client load this module at every stop, and `dataclasses`,
`enum` and `typing` would triple the time that takes (21, 5 and 13 ms against 8 ms for the bare interpreter;
docs/adr/0002). So a record is a `Record`, and a closed set is a `Literal` for the type checker with a tuple beside it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal, Self, TypeVar, dataclass_transform

    Class = TypeVar("Class")
    Json = dict[str, Any]
    Severity = Literal["blocking", "advisory", "nit"]
    Threshold = Literal["blocking", "advisory", "nit", "never"]
    Verdict = Literal["pass", "findings", "unreviewed", "nothing-to-review"]
    Fault = Literal["rate-limited", "quota", "overloaded", "signed-out", "too-long", "over-budget", "cut", "failed"]
    Access = Literal["read-only", "read-write"]
    Disposition = Literal["discard", "preserve", "merge"]
    Status = Literal[
        "queued",
        "starting",
        "running",
        "stopping",
        "done",
        "failed",
        "timed-out",
        "cancelled",
        "orphaned",
        "unkillable",
        "superseded",
    ]
else:

    def dataclass_transform(**_: object) -> Callable[[Class], Class]:
        """Stand in for `typing.dataclass_transform`, which is only of use to a type checker."""
        return lambda cls: cls


SCHEMA_VERSION = "1"
UNLIMITED = -1
"""No limit, where a number would be one; 0 lets nothing through."""
SEVERITIES: tuple[Severity, ...] = ("blocking", "advisory", "nit")
THRESHOLDS: tuple[Threshold, ...] = ("blocking", "advisory", "nit", "never")
LIVE: tuple[Status, ...] = ("queued", "starting", "running", "stopping")
ENDED: tuple[Status, ...] = ("done", "failed", "timed-out", "cancelled", "orphaned", "unkillable", "superseded")


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """An immutable record: fields are the annotations, given by keyword, defaults are class attributes.

    Raises:
        TypeError: a field is missing or unknown.
    """

    _fields: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        """Collect the fields of the class and its parents, in order."""
        own = (name for name in cls.__dict__.get("__annotations__", ()) if not name.startswith("_"))
        cls._fields = tuple(dict.fromkeys((*cls._fields, *own)))

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - set(self._fields)
        missing = [name for name in self._fields if name not in values and not hasattr(type(self), name)]
        if unknown or missing:
            raise TypeError(f"{type(self).__name__}: unknown {sorted(unknown)}, missing {missing}")
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot change: use replace()")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot go: a record never changes")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.fields().values())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.fields().items())})"

    def fields(self) -> Json:
        """All fields by name, in the order in which they are declared."""
        return {name: getattr(self, name) for name in self._fields}

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**{**self.fields(), **changes})


class Skipped(Record):
    """A path that was not reviewed, and why; `tracked` ones keep a verdict from being a pass."""

    path: str
    reason: str
    tracked: bool = False


class Coverage(Record):
    """Which of the changed paths a run offered to its reviewers, which they reviewed, and what was left out.

    `withheld` are changed paths that configure agents: those were given the base's in their place, and the new text of
    each as data.
    """

    offered: tuple[str, ...] = ()
    reviewed: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    withheld: tuple[str, ...] = ()


class Finding(Record):
    """One fault that a reviewer reports. Lines and columns count from 1; 0 means the whole file.

    `fingerprint` is 64 hex digits, empty until `findings.identify` has set it; `id` its short form in letters.
    """

    path: str
    message: str
    severity: Severity = "advisory"
    start_line: int = 0
    end_line: int = 0
    start_column: int = 0
    end_column: int = 0
    rule: str = ""
    fails_when: str = ""
    suggestion: str = ""
    reviewer: str = ""
    fingerprint: str = ""
    id: str = ""


class Exited(Record):
    """The job ended by itself with this exit code; nothing of it is left."""

    code: int


class Signalled(Record):
    """The job was ended by a signal that was not ours."""

    signal: int


class TimedOut(Record):
    """The job was ended because its time was up."""

    after_s: float


class Stalled(Record):
    """The job was ended because it neither wrote nor computed for that long."""

    after_s: float


class Cancelled(Record):
    """The job was ended because a person, or a newer tree, asked for it."""

    reason: str = "cancelled"


class NotStarted(Record):
    """The job never ran."""

    reason: str


class Unkillable(Record):
    """Processes of the job are still there after SIGKILL; their pids are for people to read."""

    pids: tuple[int, ...]


if TYPE_CHECKING:
    Outcome = Exited | Signalled | TimedOut | Stalled | Cancelled | NotStarted | Unkillable


class Usage(Record):
    """What a job cost: CPU seconds of all its processes, the largest resident set of one of them.

    Of an agent also the tokens that its provider counted, in and out, without `cached_tokens`, those that were read
    from a cache; and the price where its client tells one, else 0.
    """

    cpu_s: float = 0.0
    peak_rss_bytes: int = 0
    tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        """The cost of both."""
        return Usage(
            cpu_s=self.cpu_s + other.cpu_s,
            peak_rss_bytes=max(self.peak_rss_bytes, other.peak_rss_bytes),
            tokens=self.tokens + other.tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )


class Review(Record):
    """What one reviewer made of a tree.

    Of an agent also: `fault`, why its client or provider gave no answer, and `resets_at`, when that is over, as
    `utc_stamp` writes it; `session_id`, its client's own; `client`, which program that was in which version; and
    `adjusted`, what of its command line was left out or said otherwise for this version.
    """

    name: str
    outcome: str
    verdict: Verdict
    reason: str = ""
    note: str = ""
    duration_ms: int = 0
    findings: tuple[Finding, ...] = ()
    reviewed: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    littered: tuple[str, ...] = ()
    required: bool = True
    usage: Usage = Usage()
    fault: Fault | Literal[""] = ""
    resets_at: str = ""
    session_id: str = ""
    client: str = ""
    adjusted: tuple[str, ...] = ()


class Base(Record):
    """What a tree is compared with: its tree-id, how a person would name it, and the commit where there is one."""

    tree_id: str
    name: str
    commit: str = ""


class Change(Record):
    """How large a difference is: changed paths, added and removed lines (binary files count as paths only)."""

    files: int = 0
    added: int = 0
    removed: int = 0


class Report(Record):
    """All that a run found out, as a person or a program is told: what the formats print.

    `subject` is what was reviewed in words ("working tree", "main..topic"); `timings_ms` has the keys snapshot,
    materialize, review, dispose and total; `materialized` is "cold", "warm" or "" where no tree was made. `usd_today`
    is what the repository's agents had cost by the end of the run, and `usd_limit` what a day may cost.
    """

    run_id: str
    tree_id: str
    base: Base
    subject: str
    verdict: Verdict
    reason: str = ""
    status: Status = "done"
    findings: tuple[Finding, ...] = ()
    coverage: Coverage = Coverage()
    reviews: tuple[Review, ...] = ()
    change: Change = Change()
    materialized: str = ""
    timings_ms: Mapping[str, int] = {}
    run_dir: str = ""
    reused: bool = False
    usd_today: float = 0.0
    usd_limit: float = 0.0


class ReviewerSettings(Record):
    """How one reviewer is run; frozen into the intent, so that a later edit of the settings changes nothing.

    `model` and `budget_usd`, the most that one review may cost where the client can keep to it, are an agent's.
    """

    name: str
    command: str = ""
    output: Literal["json", "sarif", "rdjson"] = "json"
    timeout_s: float = 600.0
    stall_s: float = 180.0
    required: bool = True
    network: bool = False
    model: str = ""
    budget_usd: float = 1.0


class Budget(Record):
    """What the agent reviews of a repository may come to: how many, for how much; `UNLIMITED` is no limit.

    `hour`, `day` and `session` are reviews, `usd` and `tokens` those of a day.
    """

    hour: int = 12
    day: int = 60
    usd: float = 5.0
    tokens: int = UNLIMITED
    session: int = UNLIMITED


def utc_stamp(seconds: float) -> str:
    """An instant (seconds since 1970, UTC) as `2026-11-30T20:15:00.123Z`."""
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000:03d}Z"
