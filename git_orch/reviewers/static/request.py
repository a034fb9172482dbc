"""What the supervisor asks, and the answer to it: the request protocol as seen from this side."""

from __future__ import annotations

import os
from binascii import b2a_base64

from git_orch import jsontext
from git_orch.model import SCHEMA_VERSION, Record
from git_orch.reviewers.static.patch import read_changes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from git_orch.model import Finding, Json
    from git_orch.reviewers.static.patch import Change


class Request(Record):
    """The paths to look at, in order and each once, and what the difference does to each."""

    nonce: str
    result: str
    paths: tuple[bytes, ...]
    changes: Mapping[bytes, Change]


class Told(Record):
    """What became of one path: checked where `reason` is empty, else skipped for it."""

    path: bytes
    findings: tuple[Finding, ...] = ()
    reason: str = ""


def read_request(environ: Mapping[str, str]) -> Request:
    """The request that the variables of the environment name.

    Raises:
        KeyError: a variable is not set.
        OSError: a file of the request cannot be read.
    """
    with open(environ["ORCH_FILES"], "rb") as file:
        paths = tuple(dict.fromkeys(path for path in file.read().split(b"\0") if path))
    with open(environ["ORCH_DIFF"], "rb") as patch:
        changes = read_changes(patch)
    return Request(nonce=environ["ORCH_NONCE"], result=environ["ORCH_RESULT"], paths=paths, changes=changes)


def answer(request: Request, told: Sequence[Told], note: str) -> Json:
    """The answer, complete: every path of the request is in `files` or in `skipped`."""
    findings = [_finding(one.path, finding) for one in told for finding in one.findings]
    return {
        "schema_version": SCHEMA_VERSION,
        "nonce": request.nonce,
        "status": "findings" if findings else "no_findings",
        "reason": note,  # for a reader that knows no `note`
        "note": note,
        "files": [_named(one.path) for one in told if not one.reason],
        "skipped": [{**_path(one.path), "reason": one.reason} for one in told if one.reason],
        "findings": findings,
    }


def unable(nonce: str, reason: str) -> Json:
    """The answer of one who could not even begin."""
    return {
        "schema_version": SCHEMA_VERSION,
        "nonce": nonce,
        "status": "unable_to_review",
        "reason": reason,
        "files": [],
        "findings": [],
    }


def write_answer(path: str, document: Json) -> None:
    """The file holds the answer and nothing else.

    Raises:
        OSError: it cannot be written; half an answer may be there, which no reader takes for one.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(path, flags, 0o600), "w", encoding="ascii") as file:
        file.write(jsontext.dumps(document) + "\n")


def _finding(path: bytes, finding: Finding) -> Json:
    told = {name: value for name, value in finding.fields().items() if value and name != "path"}
    return {**_path(path), **told}


def _path(path: bytes) -> Json:
    """`path`, with `path_b64` where it is not UTF-8."""
    name = path.decode("utf-8", "replace")
    if name.encode() == path:
        return {"path": name}
    return {"path": name, "path_b64": b2a_base64(path, newline=False).decode("ascii")}


def _named(path: bytes) -> str | Json:
    named = _path(path)
    return named if "path_b64" in named else named["path"]
