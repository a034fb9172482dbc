"""A linter's answer in SARIF 2.1.0, `output = sarif`.

Source: OASIS SARIF 2.1.0; the numbers in comments are its sections.
"""

from __future__ import annotations

from git_orch.model import Finding, Record
from git_orch.reviewers import reading
from git_orch.reviewers.reading import Answer, Malformed, Unusable, as_mapping, listing, mapping, number, objects, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Json, ReviewerSettings, Severity
    from git_orch.reviewers.reading import Request

VERSION = "2.1.0"
_SEVERITIES: dict[str, Severity] = {"error": "blocking", "warning": "advisory", "note": "nit", "none": "nit"}
_NO_FINDING = ("pass", "notApplicable")
_HEX = frozenset("0123456789abcdefABCDEF")
_LONGEST_BASE_CHAIN = 8


class _Run(Record):
    """One run of a tool: its log, and the parts of it that results point into by index."""

    log: Json
    tool: str
    driver_rules: list[Json]
    extensions: list[Json]
    artifacts: list[Json]


def read(document: Json, settings: ReviewerSettings, request: Request) -> Answer | Unusable:
    """What the document says.

    Coverage is what a run lists as its analysis targets; where no run lists any, all that was offered.

    Raises:
        Malformed: it is no complete SARIF log.
    """
    if document.get("version") != VERSION:
        raise Malformed(f'version is not "{VERSION}"')
    runs = [_run(log) for log in objects(document, "runs", required=True)]
    if not runs:
        raise Malformed("runs is empty")
    findings = tuple(finding for run in runs for finding in _findings(run, settings, request))
    for run in runs:
        if fault := _fault(run):
            return Unusable(reason=fault, findings=findings)
    targets = {path for run in runs for path in _targets(run, request)}
    reason = f"not among the analysis targets of {runs[0].tool}"
    covered = reading.account(request, targets or request.offered, {}, reason)
    return Answer(findings=findings, declared=True, **covered)


def _run(log: Json) -> _Run:
    tool = mapping(log, "tool")
    driver = mapping(tool, "driver")
    return _Run(
        log=log,
        tool=reading.shown(text(driver, "name", required=True), 40),
        driver_rules=objects(driver, "rules"),
        extensions=objects(tool, "extensions"),
        artifacts=objects(log, "artifacts"),
    )


def _fault(run: _Run) -> str:
    """Why the run does not count as complete; "" where it does (3.20.14, 3.20.21, 3.20.22)."""
    for invocation in objects(run.log, "invocations"):
        kinds = ("toolExecutionNotifications", "toolConfigurationNotifications")
        notes = (note for kind in kinds for note in objects(invocation, kind))
        errors = [note for note in notes if text(note, "level") == "error"]
        if errors or invocation.get("executionSuccessful") is not True:
            said = text(mapping(errors[0], "message"), "text") if errors else text(invocation, "exitCodeDescription")
            return "its log says that it failed" + (f': "{reading.shown(said)}"' if said else "")
    return ""


def _targets(run: _Run, request: Request) -> list[str]:
    """The paths whose artifact says that it was analysed (3.24.6); many tools list only what they complain about."""
    scanned = (artifact for artifact in run.artifacts if "analysisTarget" in listing(artifact, "roles"))
    return [path for artifact in scanned if (path := _path(mapping(artifact, "location"), run, request))]


def _findings(run: _Run, settings: ReviewerSettings, request: Request) -> list[Finding]:
    # A run without `results` did not look for any (3.14.23).
    results = objects(run.log, "results", required=True)
    return [_finding(result, run, settings, request) for result in results if _counts(result)]


def _counts(result: Json) -> bool:
    """False for what was looked at and found good (3.27.9), is gone (3.27.24), or was suppressed (3.27.23)."""
    suppressions = objects(result, "suppressions")
    suppressed = bool(suppressions) and all(text(s, "status") in ("", "accepted") for s in suppressions)
    return not (suppressed or text(result, "kind") in _NO_FINDING or text(result, "baselineState") == "absent")


def _finding(result: Json, run: _Run, settings: ReviewerSettings, request: Request) -> Finding:
    rule = _rule(result, run)
    message = _message(result, rule)
    places = objects(result, "locations")
    place = mapping(places[0], "physicalLocation") if places else {}
    path = _path(mapping(place, "artifactLocation"), run, request)
    if not path:
        raise Malformed(f'no file is named for "{reading.shown(message, 80)}"')
    region = mapping(place, "region")
    fixes = objects(result, "fixes")
    return Finding(
        path=path,
        message=message,
        severity=_severity(result, rule),
        rule=_rule_id(result) or text(rule, "id"),
        suggestion=text(mapping(fixes[0], "description"), "text") if fixes else "",
        reviewer=settings.name,
        **reading.span(*(number(region, key) for key in ("startLine", "endLine", "startColumn", "endColumn"))),
    )


def _rule_id(result: Json) -> str:
    return text(result, "ruleId") or text(mapping(result, "rule"), "id")


def _rule(result: Json, run: _Run) -> Json:
    """The rule that the result names by index or id (3.27.5 to 3.27.7), of the driver or of an extension."""
    reference = mapping(result, "rule")
    extension = _entry(run.extensions, mapping(reference, "toolComponent").get("index"))
    rules = run.driver_rules if extension is None else objects(extension, "rules")
    index = result.get("ruleIndex") if reference.get("index") is None else reference.get("index")
    found = _entry(rules, index)
    if found is not None:
        return found
    name = _rule_id(result)
    return next((rule for rule in rules if name and text(rule, "id") == name), {})


def _entry(entries: list[Json], index: object) -> Json | None:
    return entries[index] if type(index) is int and 0 <= index < len(entries) else None


def _severity(result: Json, rule: Json) -> Severity:
    """By level (3.27.10): the result's own, none for what is no failure, the rule's default, warning."""
    level = text(result, "level")
    if not level and text(result, "kind") not in ("", "fail"):
        level = "none"
    level = level or text(mapping(rule, "defaultConfiguration"), "level") or "warning"
    if level not in _SEVERITIES:
        raise Malformed(f'level is "{reading.shown(level, 40)}"')
    return _SEVERITIES[level]


def _message(result: Json, rule: Json) -> str:
    """The message in words (3.11): its own text, else the rule's string of that id, else what the rule is about."""
    message = mapping(result, "message")
    said = text(message, "text") or text(message, "markdown")
    if not said and (name := text(message, "id")):
        said = text(mapping(mapping(rule, "messageStrings"), name), "text")
    for index, argument in enumerate(listing(message, "arguments")):
        said = said.replace(f"{{{index}}}", reading.encodable(str(argument)))
    said = said or text(mapping(rule, "shortDescription"), "text") or _rule_id(result)
    if not said:
        raise Malformed("a result has no message")
    return said


def _path(location: Json, run: _Run, request: Request) -> str:
    """The path that an artifactLocation (3.4) names, relative to the tree where it lies in it; "" for none."""
    if not text(location, "uri"):
        artifact = _entry(run.artifacts, location.get("index"))
        location = mapping(artifact, "location") if artifact else {}
    uri = _resolved(location, run)
    return reading.relative(_unescaped(_without_scheme(uri)), request) if uri else ""


def _resolved(location: Json, run: _Run) -> str:
    """The URI with its base in front, where it has one that is known (3.14.14)."""
    bases = mapping(run.log, "originalUriBaseIds")
    uri = text(location, "uri")
    for _ in range(_LONGEST_BASE_CHAIN):
        base = bases.get(text(location, "uriBaseId"))
        if not uri or base is None or uri.startswith(("/", "file:")):
            break
        location = as_mapping(base, "an entry of originalUriBaseIds")
        prefix = text(location, "uri")
        uri = (prefix if not prefix or prefix.endswith("/") else prefix + "/") + uri
    return uri


def _without_scheme(uri: str) -> str:
    """`file:///a`, `file://host/a` and `file:/a` as `/a`; anything else as it is."""
    if not uri.startswith("file:"):
        return uri
    rest = uri[len("file:") :]
    return "/" + rest[2:].partition("/")[2] if rest.startswith("//") else rest


def _unescaped(uri: str) -> str:
    """The URI with `%20` and its like as the bytes they stand for; a percent sign that escapes nothing stays."""
    head, *parts = uri.split("%")
    raw = bytearray(head.encode("utf-8", "surrogateescape"))
    for part in parts:
        digits = part[:2]
        escaped = len(digits) == 2 and _HEX.issuperset(digits)
        raw += bytes.fromhex(digits) if escaped else b"%"
        raw += (part[2:] if escaped else part).encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "surrogateescape")
