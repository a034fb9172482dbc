"""A linter's answer in reviewdog's rdjson, `output = rdjson`.

Source: reviewdog/proto/rdf, `DiagnosticResult`. Enumerations may stand as name or number, as protobuf allows.
`diagnostics` must be there, even if empty: an object without it may as well be an error message.
"""

from __future__ import annotations

from git_orch.model import Finding
from git_orch.reviewers import reading
from git_orch.reviewers.reading import Answer, Malformed, mapping, number, objects, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from git_orch.model import Json, ReviewerSettings, Severity
    from git_orch.reviewers.reading import Request

_SEVERITIES: dict[str | int, Severity] = {
    "ERROR": "blocking",
    "WARNING": "advisory",
    "INFO": "nit",
    "UNKNOWN_SEVERITY": "advisory",
    1: "blocking",
    2: "advisory",
    3: "nit",
    0: "advisory",
}


def read(document: Json, settings: ReviewerSettings, request: Request) -> Answer:
    """What the document says; a linter's coverage is all that it was offered.

    Raises:
        Malformed: it is no rdjson.
    """
    default = _severity(document.get("severity"), "advisory")
    findings = tuple(
        _finding(entry, default, settings, request) for entry in objects(document, "diagnostics", required=True)
    )
    return Answer(findings=findings, declared=True, **reading.account(request, request.offered, {}, ""))


def _finding(entry: Json, default: Severity, settings: ReviewerSettings, request: Request) -> Finding:
    location = mapping(entry, "location")
    extent = mapping(location, "range")
    start, end = mapping(extent, "start"), mapping(extent, "end")
    suggestions = objects(entry, "suggestions")
    return Finding(
        path=reading.path_of(location, request),
        message=text(entry, "message", required=True),
        severity=_severity(entry.get("severity"), default),
        rule=text(mapping(entry, "code"), "value"),
        suggestion=text(suggestions[0], "text") if suggestions else "",
        reviewer=settings.name,
        **reading.span(number(start, "line"), number(end, "line"), number(start, "column"), number(end, "column")),
    )


def _severity(given: Any, default: Severity) -> Severity:
    if given is None:
        return default
    if not isinstance(given, str | int) or isinstance(given, bool) or given not in _SEVERITIES:
        raise Malformed("severity is none of ERROR, WARNING and INFO")
    return _SEVERITIES[given]
