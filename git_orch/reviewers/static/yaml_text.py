"""YAML, by PyYAML's event stream: no object is built, so no tag acts, no alias expands, and depth costs no stack."""

from __future__ import annotations

import yaml
from yaml.error import MarkedYAMLError
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from yaml.reader import ReaderError

from git_orch.model import Record
from git_orch.reviewers.static.outcomes import GaveUp, Parsed, Template
from git_orch.reviewers.static.templates import is_data_template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from yaml._yaml import Mark as FastMark
    from yaml.error import Mark as SlowMark
    from yaml.events import Event

    from git_orch.model import Finding
    from git_orch.reviewers.static.source import Source

    Mark = FastMark | SlowMark

RULE = "yaml-syntax"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse(source: Source) -> Parsed | GaveUp | Template:
    """What PyYAML makes of the file: any number of documents, any tags."""
    walk = _Walk(source)
    fault = _read(walk)
    if fault is None:
        return Parsed(remarks=tuple(walk.remarks))
    if fault.is_limit:
        return GaveUp(reason="nested too deeply for the yaml parser")
    if is_data_template(source.content):
        return Template()
    return Parsed(broken=fault.finding(source))


class _Fault(Record):
    """What is wrong, and where (from 1; 0: unknown)."""

    message: str
    line: int
    column: int

    @property
    def is_limit(self) -> bool:
        """True if the fault is libyaml's: it stops at 1,000 flow levels."""
        return "maximum nesting" in self.message

    def finding(self, source: Source) -> Finding:
        """The fault as a finding that blocks."""
        message = f"it is no YAML: {self.message}"
        return source.finding(
            RULE, message, "blocking", line=self.line, start_column=self.column, fails_when="it is read"
        )


def _read(walk: _Walk) -> _Fault | None:
    """What ended the reading, if anything did."""
    try:
        for event in yaml.parse(walk.source.content, Loader=_LOADER):
            walk.take(event)
    except ReaderError as error:
        return _Fault(message=error.reason, line=_line_of(walk.source, error.position), column=0)
    except MarkedYAMLError as error:
        line, column = _place(error.problem_mark)
        return _Fault(message=error.problem or error.context or "unreadable", line=line, column=column)
    return walk.fault


def _place(mark: Mark | None) -> tuple[int, int]:
    """Line and column of a mark, from 1."""
    return (mark.line + 1, mark.column + 1) if mark else (0, 0)


def _line_of(source: Source, position: int) -> int:
    """The line of a character; the reader counts characters where it can decode, bytes where it cannot."""
    text = source.content.decode("utf-8", "replace")
    return text.count("\n", 0, position) + 1


class _Mapping:
    """A mapping that is being read: its plain keys so far, and whether the next node is a key."""

    def __init__(self) -> None:
        self.keys: set[tuple[str, bool]] = set()
        self.key_next = True


class _Walk:
    """Follows the events: remarks keys that are there twice, and stops at an alias without its anchor."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.fault: _Fault | None = None
        self.remarks: list[Finding] = []
        self._anchors: set[str] = set()
        self._open: list[_Mapping | None] = []

    def take(self, event: Event) -> None:
        """The event is accounted for."""
        match event:
            case DocumentStartEvent():
                self._anchors.clear()
            case MappingEndEvent() | SequenceEndEvent():
                self._open.pop()
            case NodeEvent():
                self._node(event)

    def _node(self, event: NodeEvent) -> None:
        parent = self._open[-1] if self._open else None
        if parent is not None:
            if parent.key_next and isinstance(event, ScalarEvent):
                self._key(parent, event)
            parent.key_next = not parent.key_next
        if isinstance(event, AliasEvent):
            self._alias(event)
        elif event.anchor:
            self._anchors.add(event.anchor)
        if isinstance(event, MappingStartEvent):
            self._open.append(_Mapping())
        elif isinstance(event, SequenceStartEvent):
            self._open.append(None)

    def _key(self, mapping: _Mapping, event: ScalarEvent) -> None:
        key = (event.value, bool(event.style))
        line, column = _place(event.start_mark)
        if key in mapping.keys and event.value != "<<" and self.source.change.adds(line):
            message = f'"{event.value}" is twice in one mapping: one of the two is lost'
            self.remarks.append(self.source.finding("yaml-duplicate-key", message, line=line, start_column=column))
        mapping.keys.add(key)

    def _alias(self, event: AliasEvent) -> None:
        if event.anchor not in self._anchors and self.fault is None:
            line, column = _place(event.start_mark)
            self.fault = _Fault(message=f"no anchor &{event.anchor}", line=line, column=column)
