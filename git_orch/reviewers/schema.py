"""The JSON Schema of an agent's answer, as clients hand it to a model.

Strict in the sense of every provider: each key is required, none may be added, and what may be left out is null.
"""

from __future__ import annotations

from git_orch import jsontext
from git_orch.model import SCHEMA_VERSION, SEVERITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Json

_TEXT: Json = {"type": "string"}
_LINE: Json = {"type": "integer"}
_OR_NULL: Json = {"type": ["string", "null"]}


def text() -> str:
    """The schema, as compact JSON."""
    return jsontext.dumps(_object(_ANSWER))


def _object(properties: Json) -> Json:
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": list(properties)}


def _list(properties: Json) -> Json:
    return {"type": "array", "items": _object(properties)}


_FINDING: Json = {
    "path": _TEXT,
    "start_line": _LINE,
    "end_line": _LINE,
    "severity": {"type": "string", "enum": list(SEVERITIES)},
    "rule": _TEXT,
    "message": _TEXT,
    "fails_when": _OR_NULL,
    "suggestion": _OR_NULL,
}
_ANSWER: Json = {
    "schema_version": {"type": "string", "enum": [SCHEMA_VERSION]},
    "nonce": _TEXT,
    "status": {"type": "string", "enum": ["no_findings", "findings", "unable_to_review"]},
    "reason": _OR_NULL,
    "files": _list({"path": _TEXT, "token": _TEXT}),
    "findings": _list(_FINDING),
}
