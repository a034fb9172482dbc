"""Our own answer, `output = json`: one object with a nonce, a status, the files that were read, and findings.

    {"schema_version": "1", "nonce": N, "status": "no_findings" | "findings" | "unable_to_review", "reason": TEXT,
     "files": [PATH, ...], "skipped": [{"path", "reason"}, ...],
     "findings": [{"path", "start_line", "end_line", "severity", "rule", "message", "fails_when", "suggestion"}, ...]}

Where the request has tokens, `files` is [{"path", "token"}, ...]. Wherever a path stands, {"path", "path_b64"} may
stand for one that is not UTF-8. Keys that are not known are passed over; an optional one may be null.
"""

from __future__ import annotations

from git_orch.config import BUILT_IN
from git_orch.model import SCHEMA_VERSION, SEVERITIES, Finding
from git_orch.reviewers import reading
from git_orch.reviewers.reading import RULE, Answer, Malformed, Unusable, number, objects, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from git_orch.model import Json, ReviewerSettings, Severity
    from git_orch.reviewers.reading import Accounts, Request


def read(document: Json, settings: ReviewerSettings, request: Request) -> Answer | Unusable:
    """What the document says.

    Raises:
        Malformed: it is no answer to this request.
    """
    _check_envelope(document, request)
    findings = tuple(_finding(entry, settings, request) for entry in objects(document, "findings"))
    match text(document, "status", required=True), bool(findings):
        case "unable_to_review", _:
            return Unusable(reason=_reason(document) or "unable to review", findings=findings)
        case "no_findings", True:
            return Unusable(reason="status is no_findings, and yet it lists findings", findings=findings)
        case "findings", False:
            raise Malformed("status is findings, and yet it lists none")
        case "no_findings" | "findings", _:
            coverage = _coverage(document, settings, request)
            note = text(document, "note") or text(document, "reason")
            return Answer(findings=findings, note=note, declared=not request.tokens, **coverage)
        case status, _:
            raise Malformed(f'status is "{reading.shown(status, 40)}"')


def _check_envelope(document: Json, request: Request) -> None:
    if document.get("schema_version") != SCHEMA_VERSION:
        raise Malformed(f'schema_version is not "{SCHEMA_VERSION}"')
    if text(document, "nonce", required=True) != request.nonce:
        raise Malformed("the nonce is not that of the request")


def _reason(document: Json) -> str:
    return reading.shown(text(document, "reason").strip())


def _coverage(document: Json, settings: ReviewerSettings, request: Request) -> Accounts:
    listed = [_listed(entry, request) for entry in reading.listing(document, "files", required=True)]
    proven = {path for path, token in listed if not request.tokens or (token and token == request.tokens.get(path))}
    excuses = {path: f"listed by {settings.name} without its token" for path, _ in listed if path not in proven}
    for entry in objects(document, "skipped"):
        excuses[reading.path_of(entry, request)] = _excuse(text(entry, "reason"), settings)
    return reading.account(request, proven, excuses, f"not listed by {settings.name}")


def _excuse(given: str, settings: ReviewerSettings) -> str:
    """Why a path was skipped. Only the built-in checks may call it a rule of ours, which is no gap in the coverage."""
    said = reading.shown(given or "no reason given")
    if settings.name == BUILT_IN and not settings.command and said.startswith(RULE):
        return said
    return f"skipped by {settings.name}: {said}"


def _listed(entry: Any, request: Request) -> tuple[str, str]:
    """The path and the token of an entry of `files`; a plain path has "" for a token."""
    if isinstance(entry, str):
        return reading.path_of({"path": entry}, request), ""
    entry = reading.as_mapping(entry, "an entry of files")
    return reading.path_of(entry, request), text(entry, "token")


def _finding(entry: Json, settings: ReviewerSettings, request: Request) -> Finding:
    named = entry["path"] if isinstance(entry.get("path"), dict) else entry
    lines = (number(entry, key) for key in ("start_line", "end_line", "start_column", "end_column"))
    return Finding(
        path=reading.path_of(named, request),
        message=text(entry, "message", required=True),
        severity=_severity(entry),
        rule=text(entry, "rule"),
        fails_when=text(entry, "fails_when"),
        suggestion=text(entry, "suggestion"),
        reviewer=settings.name,
        **reading.span(*lines),
    )


def _severity(entry: Json) -> Severity:
    given = text(entry, "severity", required=True)
    for severity in SEVERITIES:
        if given == severity:
            return severity
    raise Malformed(f'severity is "{reading.shown(given, 40)}"')
