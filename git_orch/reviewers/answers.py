"""What a reviewer's output means: an answer, or the reason for which it is none.

Strict on purpose: every doubt is `Unusable`, and what is unusable never becomes a pass (design: "Review").
"""

from __future__ import annotations

from git_orch import jsontext
from git_orch.model import Cancelled, Exited, NotStarted, Signalled, Stalled, TimedOut, Unkillable
from git_orch.reviewers import own_json, rdjson, sarif
from git_orch.reviewers.reading import NOTE_LIMIT, Answer, Malformed, Request, Unusable, as_mapping, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Finding, Outcome, ReviewerSettings

__all__ = ("Answer", "Request", "Unusable", "read")

_READERS = {"json": own_json.read, "sarif": sarif.read, "rdjson": rdjson.read}
# What PowerShell and .NET write in front of UTF-8; RFC 8259 lets a reader pass over it.
_BOM = b"\xef\xbb\xbf"


def read(
    settings: ReviewerSettings,
    *,
    raw_result: bytes | None,
    raw_stdout: bytes,
    outcome: Outcome,
    request: Request,
    raw_stderr: bytes = b"",
) -> Answer | Unusable:
    """What the reviewer answered, by the format that it is set to, and by how its job ended.

    The result file counts where anything is in it, else standard output; `raw_stderr` only explains a silence. A
    finding on a path that was not offered is kept, but never blocking. A job that was cut short, or ended with a
    status that its kind does not allow (0, or 1 with findings), leaves the findings of a complete answer at most.
    """
    raw = raw_result if raw_result and raw_result.strip() else raw_stdout
    given = _parsed(settings, raw, raw_stderr, request)
    findings = tuple(_kept_to(finding, request) for finding in given.findings)
    fault = _fault(outcome, given)
    if isinstance(given, Answer) and not fault:
        return given.replace(findings=findings)
    # What a job that we ended had written by then is no reason of its own.
    said = given if isinstance(given, Unusable) and isinstance(outcome, Exited) else Unusable(reason="")
    reason = ": ".join(filter(None, (fault, said.reason)))
    return Unusable(reason=reason, note=_note(raw), findings=findings, empty=said.empty)


def _parsed(settings: ReviewerSettings, raw: bytes, raw_stderr: bytes, request: Request) -> Answer | Unusable:
    """What the bytes alone say."""
    raw = raw.removeprefix(_BOM)
    if not raw.strip():
        said = _last_line(raw_stderr)
        return Unusable(reason=f'no output; stderr: "{said}"' if said else "no output", empty=True)
    try:
        document = jsontext.loads(raw)
    except jsontext.JsonTextError:
        return Unusable(reason=_what_is_wrong(raw))
    try:
        return _READERS[settings.output](as_mapping(document, "the answer"), settings, request)
    except Malformed as error:
        return Unusable(reason=f"malformed answer: {error}")


def _fault(outcome: Outcome, given: Answer | Unusable) -> str:
    """Why an answer does not count, by how the job ended; "" where it does."""
    match outcome:
        case Exited(code=0):
            return ""
        case Exited(code=1) if isinstance(given, Answer):
            return "" if given.findings else "exit status 1 without findings"
        case Exited(code=code):
            return f"exit status {code}"
    return why_ended(outcome)


def why_ended(outcome: Outcome) -> str:
    """Why what a job said does not count, where it did not come to its own end; "" where it did."""
    match outcome:
        case Exited():
            return ""
        case Signalled(signal=signal):
            return f"ended by signal {signal}"
        case TimedOut(after_s=after_s):
            return f"no answer within {after_s:g} s"
        case Stalled(after_s=after_s):
            return f"silent and idle for {after_s:g} s"
        case Cancelled(reason=reason) | NotStarted(reason=reason):
            return shown(reason)
        case Unkillable(pids=pids):
            return f"its processes cannot be killed: {', '.join(map(str, pids))}"


def _kept_to(finding: Finding, request: Request) -> Finding:
    if finding.severity == "blocking" and finding.path not in request.offered:
        return finding.replace(severity="advisory")
    return finding


def _what_is_wrong(raw: bytes) -> str:
    """In a few words, why the bytes are no JSON object."""
    try:
        text = raw.decode().strip()
    except UnicodeDecodeError:
        return f'output is not UTF-8: "{_first_line(raw)}"'
    if not text.startswith(("{", "[")):
        around = "text around the answer" if '"schema_version"' in text else "no answer, it said"
        return f'{around}: "{_first_line(raw)}"'
    end = _end_of_value(text)
    if not end:
        return "output is cut off"
    rest = text[end:].lstrip()
    if rest.startswith(("{", "[")):
        return "more than one JSON value"
    return f'text after the answer: "{shown(rest.splitlines()[0])}"' if rest else "output is not valid JSON"


def _end_of_value(text: str) -> int:
    """Where the object or list ends that the text starts with; 0 where it never does."""
    # Escapes and strings are blanked first, so that only brackets that count are left.
    plain = text.replace("\\\\", "__").replace('\\"', "__").split('"')
    offset, open_brackets = 0, 0
    for index, part in enumerate(plain):
        for position, char in enumerate("" if index % 2 else part, offset):
            open_brackets += (char in "{[") - (char in "}]")
            if open_brackets == 0 and char in "}]":
                return position + 1
        offset += len(part) + 1
    return 0


def _first_line(raw: bytes) -> str:
    return shown(raw.decode("utf-8", "replace").strip().partition("\n")[0].rstrip())


def _last_line(raw: bytes) -> str:
    return shown(raw.decode("utf-8", "replace").strip().rpartition("\n")[2].strip())


def _note(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").strip()[:NOTE_LIMIT]
