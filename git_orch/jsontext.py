"""JSON by the interpreter's own C scanner and string encoder, without the 12 ms that `import json` costs.

`json` pulls in `re` and `enum`; the C parts that do its work need neither. Used where an import is felt: on the hook
path and in the idle supervisor. Everything else uses orjson.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar

if TYPE_CHECKING:

    def _quote(text: str, /) -> str: ...
    def _make_scanner(context: object, /) -> Callable[[str, int], tuple[Any, int]]: ...
else:
    try:
        from _json import encode_basestring_ascii as _quote
        from _json import make_scanner as _make_scanner
    except ImportError:  # an interpreter without the C accelerator, as PyPy
        from json.encoder import encode_basestring_ascii as _quote
        from json.scanner import py_make_scanner as _make_scanner

_SPACE = " \t\n\r"
_LARGEST = 1.7976931348623157e308


class JsonTextError(ValueError):
    """The text is not one JSON value."""


class _Context:
    """What the C scanner asks of a `json.JSONDecoder`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: ClassVar[dict[str, str]] = {}

    @staticmethod
    def parse_constant(name: str) -> float:
        raise JsonTextError(f"{name} is not JSON")

    # The pure Python scanner wants these as well.
    @staticmethod
    def parse_object(*args: Any) -> Any:
        import json.decoder

        return json.decoder.JSONObject(*args)  # type: ignore[attr-defined]

    @staticmethod
    def parse_array(*args: Any) -> Any:
        import json.decoder

        return json.decoder.JSONArray(*args)  # type: ignore[attr-defined]

    @staticmethod
    def parse_string(*args: Any) -> Any:
        import json.decoder

        return json.decoder.scanstring(*args)  # type: ignore[attr-defined]


_scan = _make_scanner(_Context)


def loads(text: str | bytes) -> Any:
    """The one JSON value that the text holds.

    Raises:
        JsonTextError: it holds none, more than one, or is not UTF-8.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise JsonTextError("not UTF-8") from error
    start = len(text) - len(text.lstrip(_SPACE))
    try:
        value, end = _scan(text, start)
    except (StopIteration, RecursionError) as error:
        raise JsonTextError("no JSON value") from error
    except (ValueError, SystemError) as error:
        # The C scanner raises json.decoder's own error where that module is loaded, and SystemError where it is not.
        raise JsonTextError("not JSON") from error
    if text[end:].strip(_SPACE):
        raise JsonTextError("text after the JSON value")
    return value


def dumps(value: Any) -> str:
    """The value as compact ASCII JSON; keys keep their order.

    Raises:
        TypeError: the value holds something that JSON has no word for.
    """
    match value:
        case None:
            return "null"
        case True:
            return "true"
        case False:
            return "false"
        case str():
            return _quote(value)
        case int():
            return repr(value)
        case float():
            if not -_LARGEST <= value <= _LARGEST:  # an infinity, or no number
                raise TypeError(f"{value} is not JSON")
            return repr(value)
        case dict():
            return "{" + ",".join(f"{_quote(k)}:{dumps(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(dumps, value)) + "]"
    raise TypeError(f"{type(value).__name__} is not JSON")
