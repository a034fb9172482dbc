"""What a path says about the file: documentation, test, generated, or broken on purpose."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.reviewers.static.source import Source

DOCUMENTS = frozenset((".md", ".markdown", ".mdx", ".rst", ".adoc", ".txt", ".html", ".htm", ".tex"))
MARKDOWN = frozenset((".md", ".markdown", ".mdx"))
TRANSLATIONS = frozenset((".po", ".pot", ".xlf", ".xliff", ".strings", ".resx", ".arb", ".ftl"))
# White space carries meaning in these, or nobody types it.
_VERBATIM = frozenset(
    (".patch", ".diff", ".csv", ".tsv", ".snap", ".svg", ".ipynb", ".map", ".lock", ".sum", ".golden", ".eml")
)
_LOCKS = frozenset(("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "deno.lock", "go.sum", "flake.lock"))
_GENERATED_NAME = re.compile(r"\.min\.(?:js|css)$|_pb2(?:_grpc)?\.pyi?$|\.pb\.go$|\.g\.dart$")
_GENERATED_TEXT = re.compile(rb"@generated\b|\bDO NOT EDIT\b")
_GENERATED_PROBE_BYTES = 1000
_TEST_FOLDER = re.compile(
    r"(?:^|/)(?:tests?|testing|test[-_]?data|__tests__|specs?|__fixtures__|fixtures|test[-_]?cases|corpus|fuzz)/",
    re.IGNORECASE,
)
_TEST_NAME = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*[_.-](?:test|spec)\.[^/.]+|conftest\.py)$", re.IGNORECASE)
_BROKEN_WORD = re.compile(
    r"(?:^|[^a-z])(?:invalid|bad(?:[_-]?syntax)?|broken|malformed|corrupt(?:ed)?|truncated|syntax|errors?|fail(?:s|ing|ure)?|unparsable)"
    r"(?:[^a-z]|$)",
    re.IGNORECASE,
)


def is_lock(source: Source) -> bool:
    """True if a package manager writes the file."""
    return source.filename in _LOCKS or source.suffix in {".lock", ".sum"}


def is_generated(source: Source) -> bool:
    """True if no person types into the file: a lock file, or one whose name or beginning says so."""
    if is_lock(source) or _GENERATED_NAME.search(source.name):
        return True
    return _GENERATED_TEXT.search(source.content, 0, _GENERATED_PROBE_BYTES) is not None


def is_verbatim(source: Source) -> bool:
    """True if white space in the file is data."""
    return source.suffix in _VERBATIM


def is_test(source: Source) -> bool:
    """True if the path is that of a test or of what a test reads."""
    return bool(_TEST_FOLDER.search(source.name) or _TEST_NAME.search(source.name))


def is_meant_to_break(source: Source) -> bool:
    """True for what a test feeds to a parser to see it refused, as `tests/data/invalid-3.json`."""
    folder = _TEST_FOLDER.search(source.name)
    return bool(folder and _BROKEN_WORD.search(source.name, folder.end() - 1))
