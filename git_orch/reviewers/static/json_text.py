"""JSON, by the standard library's parser; with comments and trailing commas where the tool that reads it takes them."""

from __future__ import annotations

import json
import re
from collections import Counter

from git_orch.reviewers.static.outcomes import Parsed, Template, not_utf8
from git_orch.reviewers.static.templates import is_data_template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Finding, Severity
    from git_orch.reviewers.static.source import Source

RULE = "json-syntax"
_MOST_KEYS = 50
# Files that their own tools read as JSON with comments, whatever the suffix says.
_COMMENTED = re.compile(
    r"\.(?:jsonc|code-workspace)$"
    r"|(?:^|/)(?:[tj]sconfig[^/]*|\.?devcontainer|\.eslintrc|\.swcrc|api-extractor[^/]*|deno|turbo|wrangler"
    r"|language-configuration|\.luarc|pyrightconfig|biome|renovate)\.json$"
    r"|(?:^|/)(?:\.vscode|\.zed|\.devcontainer)/[^/]*\.json$",
)
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])")
_NOT_BLANK = re.compile(r"[^\n]")


def parse(source: Source) -> Parsed | Template:
    """What `json` makes of the file. Comments and trailing commas alone never block."""
    try:
        text = source.content.decode(json.detect_encoding(source.content).replace("utf-8-sig", "utf-8"))
    except UnicodeDecodeError as error:
        return not_utf8(source, RULE, "JSON", error.start)
    text = text.removeprefix("\ufeff")
    fault, repeated = _read(text)
    if fault is None:
        return Parsed(remarks=_repetitions(source, repeated))
    if is_data_template(source.content):
        return Template()
    if not text.strip():
        return Parsed(broken=source.finding(RULE, "it is empty, and JSON cannot be", "advisory"))
    return _relaxed(source, text, fault)


def _relaxed(source: Source, text: str, strict: json.JSONDecodeError) -> Parsed:
    """The outcome for what is not strict JSON."""
    error, repeated = _read(_TRAILING_COMMA.sub(_blank, _COMMENT.sub(_blank, text)))
    if error is not None:
        return Parsed(broken=_finding(source, RULE, f"it is no JSON: {error.msg}", error, "blocking"))
    remarks = _repetitions(source, repeated)
    if not _COMMENTED.search(source.name):
        message = "JSON has neither comments nor trailing commas: most readers refuse the file"
        remarks = (_finding(source, "json-comments", message, strict, "advisory"), *remarks)
    return Parsed(remarks=remarks)


def _read(text: str) -> tuple[json.JSONDecodeError | None, frozenset[str]]:
    """The fault that ends the reading, if any, and the keys that an object has twice."""
    repeated: set[str] = set()

    def look(pairs: list[tuple[str, object]]) -> None:
        if len(dict(pairs)) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            repeated.update(key for key, count in counts.items() if count > 1)

    try:
        # Numbers become floats: an integer of 5,000 digits is JSON, and yet int() refuses it.
        json.loads(text, object_pairs_hook=look, parse_int=float)
    except json.JSONDecodeError as error:
        return error, frozenset()
    return None, frozenset(repeated)


def _repetitions(source: Source, keys: frozenset[str]) -> tuple[Finding, ...]:
    """A finding for each key that is there twice and that the difference touches."""
    if not keys:
        return ()
    told = sorted(keys)[:_MOST_KEYS]
    places = {key: re.compile(re.escape(json.dumps(key, ensure_ascii=False).encode()) + rb"\s*:") for key in told}
    last: dict[str, int] = {}
    for number, line in source.added():
        last.update({key: number for key, place in places.items() if place.search(line)})
    return tuple(
        source.finding("json-duplicate-key", f'"{key}" is twice in one object: the first is lost', line=last[key])
        for key in sorted(last)
    )


def _finding(source: Source, rule: str, message: str, error: json.JSONDecodeError, severity: Severity) -> Finding:
    return source.finding(
        rule,
        message,
        severity,
        line=error.lineno,
        start_column=error.colno,
        fails_when="it is read",
    )


def _blank(match: re.Match[str]) -> str:
    """Spaces of the same length, so that every position stays what it was; a string stays as it is."""
    return match[0] if match[0].startswith('"') else _NOT_BLANK.sub(" ", match[0])
