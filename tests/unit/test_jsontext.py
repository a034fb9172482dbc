"""`jsontext` says what `json` says, or refuses: docs/adr/0003."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_orch.jsontext import JsonTextError, dumps, loads

PROJECT = Path(__file__).parents[2]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
BAD = [
    "",
    "  ",
    "{",
    '{"a":1',
    '{"a" 1}',
    '{"a":1,}',
    "[1,,2]",
    '"cut',
    "{} {}",
    "{} x",
    "NaN",
    "[Infinity]",
    "-Infinity",
    "'a'",
    "{a: 1}",
    '"a\nb"',
    "nul",
    "[" * 100_000,
]


@given(VALUES)
def test_what_is_written_is_read_back_by_both(value: object) -> None:
    text = dumps(value)
    assert text.isascii()
    assert json.loads(text) == loads(text) == loads(text.encode()) == value


@given(VALUES, st.sampled_from([None, 1, "\t"]))
def test_what_json_writes_is_read(value: object, indent: int | str | None) -> None:
    assert loads(f" \n{json.dumps(value, indent=indent, ensure_ascii=False)}\r\n".encode()) == (value)


@given(VALUES)
def test_text_that_is_cut_is_refused(value: object) -> None:
    text = dumps([value])
    for end in range(len(text)):
        with pytest.raises(JsonTextError):
            loads(text[:end])


@pytest.mark.parametrize("text", BAD)
def test_what_is_not_one_json_value_is_refused(text: str) -> None:
    with pytest.raises(JsonTextError):
        loads(text)


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(JsonTextError, match="not UTF-8"):
        loads(b'"\xff"')


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), b"bytes", {1, 2}, object(), [[object()]]])
def test_what_json_has_no_word_for_is_not_written(value: object) -> None:
    with pytest.raises(TypeError):
        dumps(value)


def test_bad_text_is_refused_as_well_where_json_was_never_imported() -> None:
    """The C scanner raises an error of `json.decoder`, which is another one where that module is not loaded."""
    code = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "from git_orch.jsontext import JsonTextError, loads\n"
        "for text in sys.argv[2:]:\n"
        "    try: loads(text)\n"
        "    except JsonTextError: continue\n"
        "    sys.exit('taken: ' + text)\n"
    )
    given_texts = [text for text in BAD if len(text) < 1000]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, PROJECT, *given_texts],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
