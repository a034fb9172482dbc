"""What a program reads: one object (`json`), or a line a finding and one for the verdict (`jsonl`).

The keys are those of formats/schema/review.json; new ones may come, none changes its meaning within a schema version.
"""

from __future__ import annotations

import base64
import re

import orjson

from git_orch.formats.words import by_weight
from git_orch.model import SCHEMA_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from git_orch.errors import OrchError
    from git_orch.model import Coverage, Finding, Json, Report, Review

TIMINGS = ("snapshot", "materialize", "review", "dispose", "total")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Within JSON these stand in strings only, where an escape says the same: a terminal that shows the text stays unharmed.
_UNSEEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def document(value: Json) -> str:
    """The value as one line of JSON; what Python carries as a lone surrogate is U+FFFD."""
    return dumps(value) + "\n"


def dumps(value: Any) -> str:
    """The value as JSON without a line end."""
    text = orjson.dumps(_sound(value)).decode("utf-8")
    return _UNSEEN.sub(_escape, text)


def _sound(value: Any) -> Any:
    match value:
        case str():
            return replaced(value)
        case dict():
            return {replaced(str(key)): _sound(item) for key, item in value.items()}
        case list() | tuple():
            return [_sound(item) for item in value]
    return value


def replaced(text: str) -> str:
    """The text with U+FFFD for every lone surrogate."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))


def is_utf8(path: str) -> bool:
    """Whether the path's bytes are UTF-8."""
    return _SURROGATE.search(path) is None


def as_bytes(text: str) -> bytes:
    """A path, or a line, as git has it."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that no byte became: a reviewer's invention
        return replaced(text).encode("utf-8")


def path_fields(path: str) -> Json:
    """`path`, and `path_b64` where its bytes are not UTF-8."""
    if is_utf8(path):
        return {"path": path}
    return {"path": replaced(path), "path_b64": _b64(path)}


def _b64(path: str) -> str:
    return base64.b64encode(as_bytes(path)).decode("ascii")


def render(report: Report) -> str:
    """The report as one object."""
    return document(review(report))


def render_lines(report: Report) -> str:
    """A line a finding (`"type": "finding"`), then the rest as one line (`"type": "verdict"`)."""
    whole = review(report)
    findings = [{"type": "finding", **one} for one in whole.pop("findings")]
    return "".join(document(line) for line in [*findings, {"type": "verdict", **whole}])


def review(report: Report) -> Json:
    """The report as review.json describes it."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": report.run_id,
        "tree_id": report.tree_id,
        "base": report.base.fields(),
        "verdict": report.verdict,
        "reason": report.reason,
        "findings": [finding(one) for one in by_weight(report.findings)],
        "coverage": coverage(report.coverage),
        "reviewers": [reviewer(one) for one in report.reviews],
        "materialized": report.materialized or None,
        "timings_ms": {name: report.timings_ms.get(name) for name in TIMINGS},
        "run_dir": report.run_dir,
        "reused": report.reused,
    }


def finding(one: Finding) -> Json:
    """The finding as finding.json describes it."""
    first = {"id": one.id, "fingerprint": one.fingerprint, "severity": one.severity, "rule": one.rule}
    return {**first, "message": one.message, **path_fields(one.path), **_remaining(one)}


def _remaining(one: Finding) -> Json:
    names = ("start_line", "end_line", "start_column", "end_column", "fails_when", "suggestion", "reviewer")
    return {name: getattr(one, name) for name in names}


def coverage(one: Coverage) -> Json:
    """Paths as strings; `offered_b64` and the like, of the same order, are there where a path is not UTF-8."""
    skipped = [{**path_fields(entry.path), "reason": entry.reason, "tracked": entry.tracked} for entry in one.skipped]
    lists = {"offered": one.offered, "reviewed": one.reviewed, "withheld": one.withheld}
    told = {key: value for name, paths in lists.items() for key, value in _paths(name, paths).items()}
    return {**told, "skipped": skipped}


def _paths(name: str, paths: Sequence[str]) -> Json:
    if all(map(is_utf8, paths)):
        return {name: list(paths)}
    return {name: [replaced(path) for path in paths], f"{name}_b64": [_b64(path) for path in paths]}


def reviewer(one: Review) -> Json:
    """What a reviewer made of the tree; its findings are counted only, for each finding names its reviewer."""
    return {
        "name": one.name,
        "outcome": one.outcome,
        "verdict": one.verdict,
        "reason": one.reason,
        "note": one.note,
        "required": one.required,
        "duration_ms": one.duration_ms,
        "findings": len(one.findings),
        "files": len(one.reviewed),
        "littered": [replaced(path) for path in one.littered],
        "cpu_s": round(one.usage.cpu_s, 3),
        "peak_rss_bytes": one.usage.peak_rss_bytes,
        **_of_an_agent(one),
    }


def _of_an_agent(one: Review) -> Json:
    """What only an agent has: what it cost, which client and session that was, why its provider gave no answer."""
    return {
        "tokens": one.usage.tokens,
        "cached_tokens": one.usage.cached_tokens,
        "cost_usd": one.usage.cost_usd,
        "client": one.client,
        "session_id": one.session_id,
        "fault": one.fault or None,
        "resets_at": one.resets_at or None,
        "adjusted": list(one.adjusted),
        "skipped": [{**path_fields(entry.path), "reason": entry.reason} for entry in one.skipped],
    }


def failure(error: OrchError) -> Json:
    """The error as error.json describes it."""
    told = {"code": error.code, "exit": error.exit_code, "message": error.message, "hint": error.hint}
    return {"schema_version": SCHEMA_VERSION, "error": told}
