"""What the readers of an answer share: its records, the shapes of JSON that they insist on, and paths."""

from __future__ import annotations

from posixpath import normpath

from git_orch.model import Finding, Record, Skipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypedDict

    from git_orch.model import Json

    class Span(TypedDict):
        """The position fields of a finding."""

        start_line: int
        end_line: int
        start_column: int
        end_column: int

    class Accounts(TypedDict):
        """The coverage fields of an answer."""

        reviewed: tuple[str, ...]
        skipped: tuple[Skipped, ...]


SHOWN_LIMIT = 200
NOTE_LIMIT = 4000
RULE = "rule:"  # how the reason begins for which git-orch itself leaves a path out: lock files, generated, binary ...


class Request(Record):
    """What a reviewer was asked, as far as its answer is judged by it.

    `offered` are the paths that it has to account for. `tokens` maps each to the word at the end of its part of the
    patch; it is empty where plain paths are enough. `root` is the absolute path of the tree with links resolved, as a
    tool prints it; "" where there is none. A path that is not UTF-8 holds its bytes by `surrogateescape`.
    """

    nonce: str
    offered: tuple[str, ...]
    tokens: Mapping[str, str] = {}
    root: str = ""


class Answer(Record):
    """A well-formed answer. Each offered path is in `reviewed` or, with the reason, in `skipped`.

    `declared` says that the coverage is the reviewer's word alone: no token proves that it read the files.
    `note` is what it said beside its findings.
    """

    findings: tuple[Finding, ...] = ()
    reviewed: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    note: str = ""
    declared: bool = False


class Unusable(Record):
    """What can never be a pass: `reason` in a few words, `note` what the reviewer wrote, cut at 4,000 characters.

    `findings` are those of a complete answer that came too late or from a job that ended badly: they are told, but the
    tree counts as not reviewed. `empty` says that nothing at all was written, which is worth one more try.
    """

    reason: str
    note: str = ""
    findings: tuple[Finding, ...] = ()
    empty: bool = False


class Malformed(ValueError):
    """A value has not the shape that the format asks for; the message says which, in a few words."""


def text(source: Json, key: str, *, required: bool = False) -> str:
    """The string at `key`, fit for UTF-8; "" where it is absent or null, unless it is required.

    Raises:
        Malformed: it is something else, or absent, null or empty although required.
    """
    value = source.get(key)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value):
        raise Malformed(f"{key} is {'no string' if value else 'missing'}")
    return encodable(value)


def number(source: Json, key: str) -> int:
    """The whole number at `key`, which is a line or a column; 0 where it is absent or null.

    Raises:
        Malformed: it is something else, or below 0.
    """
    value = source.get(key)
    if value is None:
        return 0
    if type(value) is not int or value < 0:  # True is an int, too
        raise Malformed(f"{key} is no line or column number")
    return value


def mapping(source: Json, key: str) -> Json:
    """The object at `key`; an empty one where it is absent or null.

    Raises:
        Malformed: it is something else.
    """
    value = source.get(key)
    return {} if value is None else as_mapping(value, key)


def as_mapping(value: Any, what: str) -> Json:
    """The value, known to be an object.

    Raises:
        Malformed: it is something else.
    """
    if not isinstance(value, dict):
        raise Malformed(f"{what} is no object")
    return value


def listing(source: Json, key: str, *, required: bool = False) -> list[Any]:
    """The list at `key`; an empty one where it is absent or null, unless it is required.

    Raises:
        Malformed: it is something else, or absent or null although required.
    """
    value = source.get(key)
    if value is None and not required:
        return []
    if not isinstance(value, list):
        raise Malformed(f"{key} is {'missing' if value is None else 'no list'}")
    return value


def objects(source: Json, key: str, *, required: bool = False) -> list[Json]:
    """The list of objects at `key`, as `listing`."""
    return [as_mapping(value, f"an entry of {key}") for value in listing(source, key, required=required)]


def path_of(entry: Json, request: Request) -> str:
    """The path that `path`, or `path_b64` where that is given, names: as git writes it, relative to the tree.

    Raises:
        Malformed: it names none.
    """
    if encoded := text(entry, "path_b64"):
        return relative(_from_base64(encoded), request)
    value = entry.get("path")
    if not isinstance(value, str) or not value:
        raise Malformed("path is missing" if not value else "path is no string")
    return relative(value, request)


def relative(path: str, request: Request) -> str:
    """The path as git writes it: without `./`, and relative where it lies below the tree."""
    path = normpath(_canonical(path))
    root = request.root.rstrip("/") + "/"
    return path[len(root) :] if request.root and path.startswith(root) else path


def span(start_line: int, end_line: int, start_column: int, end_column: int) -> Span:
    """The four position fields of a finding, put right where the end is left out or lies before the start.

    An end at column 1 of a later line, exclusive as in SARIF and rdjson, means the end of the line before.
    """
    if end_line > start_line and end_column == 1:
        end_line, end_column = end_line - 1, 0
    return {
        "start_line": start_line,
        "end_line": max(start_line, end_line),
        "start_column": start_column,
        "end_column": end_column,
    }


def account(request: Request, read: Iterable[str], excuses: Mapping[str, str], default: str) -> Accounts:
    """`reviewed` and `skipped` of an answer: all that was offered, each in one of them, in that order.

    `excuses` maps a path to the reason for which it was not read, and outweighs `read`; `default` is the reason of the
    others that were not.
    """
    done = set(read).difference(excuses)
    return {
        "reviewed": tuple(path for path in request.offered if path in done),
        "skipped": tuple(Skipped(path=p, reason=excuses.get(p, default)) for p in request.offered if p not in done),
    }


def shown(line: str, limit: int = SHOWN_LIMIT) -> str:
    """The text on one line, cut at `limit` characters, with control, bidi and other unprintable characters escaped."""
    cut = line if len(line) <= limit else line[: limit - 1] + "…"
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in cut)


def encodable(value: str) -> str:
    """The text with U+FFFD for what UTF-8 cannot encode: JSON may escape half a surrogate pair."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in value)
    return value


def _canonical(path: str) -> str:
    """One spelling a path: bytes that are UTF-8 are never left as escapes."""
    if path.isascii():
        return path
    try:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return encodable(path)


def _from_base64(encoded: str) -> str:
    from binascii import a2b_base64  # only here, and hardly ever

    try:
        raw = a2b_base64(encoded, strict_mode=True)
    except ValueError as error:
        raise Malformed("path_b64 is no base64") from error
    if not raw:
        raise Malformed("path_b64 is empty")
    return raw.decode("utf-8", "surrogateescape")
