"""Python, by the interpreter's own compiler: the code object is thrown away, never run."""

from __future__ import annotations

import re
import sys
import warnings

from git_orch.reviewers.static.outcomes import GaveUp, Parsed, Template, not_utf8
from git_orch.reviewers.static.templates import is_code_template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.reviewers.static.source import Source

RULE = "python-syntax"
# The compiler takes up to 360 bytes of memory a byte of source (measured on CPython 3.11: 1 MiB of calls and
# additions, 359 MB, 1.4 s). What people write stays far below; what is above is a table that a program wrote.
PARSE_LIMIT_BYTES = 1 << 20
# ast.PyCF_ALLOW_TOP_LEVEL_AWAIT; notebooks kept as scripts await at the top. `import ast` costs 6 ms.
_ALLOW_TOP_LEVEL_AWAIT = 0x2000
_COOKIE = re.compile(rb"coding[:=]")  # PEP 263; a match by accident does no harm
_COOKIE_BYTES = 200
# Syntax younger than the oldest Python that git-orch runs on: an older interpreter refuses what a newer one takes.
_NEWER = (
    ((3, 12), re.compile(r"^\s*(?:type\s+\w+\s*[\[=]|class\s+\w+\s*\[|(?:async\s+)?def\s+\w+\s*\[)"), ""),
    ((3, 12), re.compile(r""), "f-string"),
    ((3, 14), re.compile(r"^\s*except\b[^:]*,"), "multiple exception types must be parenthesized"),
    ((3, 14), re.compile(r"\b[tT][rR]?[\"']|\b[rR][tT][\"']"), ""),
)


def parse(source: Source) -> Parsed | GaveUp | Template:
    """What the compiler of the running interpreter makes of the file, by the encoding that the file names."""
    if source.size > PARSE_LIMIT_BYTES:
        size = f"{source.size / (1 << 20):.1f} MiB"
        return GaveUp(reason=f"rule:large ({size} of Python, over the {PARSE_LIMIT_BYTES >> 20} MiB that are parsed)")
    if b"\0" in source.content:  # which the compiler refuses without saying where
        return _null_byte(source)
    try:
        text = _text(source.content)
    except UnicodeDecodeError as error:
        return not_utf8(source, RULE, "Python without a line that names another encoding", error.start)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<source>", "exec", _ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        return Template() if is_code_template(source.path, source.content) else _broken(source, error)
    except UnicodeDecodeError:  # where, it tells only within the word that it was at
        return Parsed(broken=source.finding(RULE, "it is not in the encoding that it names", "blocking"))
    return Parsed()


def _text(content: bytes) -> str | bytes:
    """What the compiler is given: text where the file names no encoding, since in bytes it counts columns in bytes."""
    return content if _COOKIE.search(content, 0, _COOKIE_BYTES) else content.decode("utf-8-sig")


def _broken(source: Source, error: SyntaxError) -> Parsed:
    line = max(error.lineno or 0, 0)
    text = source.lines[line - 1] if 0 < line <= len(source.lines) else b""
    newer = _needs(error, text.decode("utf-8", "replace"))
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    told = f"Python {running} cannot read it" if newer else "Python cannot read it"
    return Parsed(
        broken=source.finding(
            RULE,
            f"{told}: {error.msg}" + (f"; Python {newer} might" if newer else ""),
            "advisory" if newer else "blocking",
            line=line,
            end_line=max(error.end_lineno or line, line),
            start_column=_column(error, text, error.offset),
            end_column=_column(error, text, error.end_offset) if error.end_lineno == line else 0,
            fails_when="it is imported or run",
        )
    )


def _column(error: SyntaxError, line: bytes, offset: int | None) -> int:
    """The column in characters; a fault found after parsing, which has no text, comes with one in bytes."""
    offset = max(offset or 0, 0)
    return offset if error.text or not offset else len(line[: offset - 1].decode("utf-8", "replace")) + 1


def _needs(error: SyntaxError, line: str) -> str:
    """The newer Python, as "3.12", for which the line may be valid; empty where there is no sign of it."""
    for version, sign, message in _NEWER:
        if sys.version_info < version and str(error.msg).startswith(message) and sign.search(line):
            return ".".join(map(str, version))
    return ""


def _null_byte(source: Source) -> Parsed:
    line = source.content.count(b"\n", 0, source.content.find(b"\0")) + 1
    message = "Python cannot read it: it contains a null byte"
    return Parsed(broken=source.finding(RULE, message, "blocking", line=line, fails_when="it is imported or run"))
