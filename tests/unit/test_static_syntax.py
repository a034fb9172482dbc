from __future__ import annotations

import json
import sys
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from git_orch.reviewers.static import syntax
from git_orch.reviewers.static.outcomes import GaveUp, Parsed, Template
from git_orch.reviewers.static.python_text import PARSE_LIMIT_BYTES
from git_orch.reviewers.static.source import Source
from tests.unit.static_sources import changed, new, told

DEEP = 200_000
OLDER_THAN_3_12 = pytest.mark.skipif(sys.version_info >= (3, 12), reason="this interpreter takes it")


def parsed(source: Source) -> Parsed:
    outcome = syntax.parse(source)
    assert isinstance(outcome, Parsed)
    return outcome


def fault(path: str, content: str | bytes) -> tuple[str, str, int, int] | None:
    """Rule, severity, line and column of what is broken."""
    broken = parsed(new(path, content)).broken
    return None if broken is None else (broken.rule, broken.severity, broken.start_line, broken.start_column)


class TestLanguage:
    @pytest.mark.parametrize(
        ("path", "content", "language"),
        [
            ("a.py", "", "python"),
            ("A.PYI", "", "python"),
            ("bin/tool", "#!/usr/bin/env python3\n", "python"),
            ("bin/tool", "#!/usr/bin/env python2\n", None),
            ("bin/tool", "#!/bin/sh\n", None),
            ("a.json", "", "json"),
            ("uv.lock", "", "toml"),
            ("yarn.lock", "", None),
            ("a.yml", "", "yaml"),
            ("a.yaml.j2", "", None),
            ("data.jsonl", "", None),
            ("a.json5", "", None),
            ("Makefile", "", None),
        ],
    )
    def test_by_name_or_first_line(self, path: str, content: str, language: str | None) -> None:
        assert syntax.language_of(new(path, content)) == language

    def test_where_there_is_no_parser_there_is_no_outcome(self) -> None:
        assert syntax.parse(new("a.c", "int main(")) is None


class TestPython:
    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"x = 1\n",
            b"\xef\xbb\xbfx = 1\n",
            b"# -*- coding: latin-1 -*-\nx = '\xe4'\n",
            b"def f():\r\n    return 1\r\n",
            b"async def f():\n    await x\nawait f()\n",
            b"match x:\n    case [1, *_]:\n        pass\n",
            b"\x0cclass A:\n    pass\n",
        ],
    )
    def test_what_the_compiler_takes_is_well(self, content: bytes) -> None:
        assert fault("a.py", content) is None

    @pytest.mark.parametrize(
        ("content", "line", "column"),
        [
            (b"def f(:\n    pass\n", 1, 7),
            (b"x = 1\nif x\n    pass\n", 2, 5),
            (b"x = (1,\n", 1, 5),
            (b"def f():\npass\n", 2, 1),
            (b"return 1\n", 1, 1),
            (b"x = 'open\n", 1, 5),
            (b"print 'python 2'\n", 1, 1),
            ("x = 'ü' 'ö' +\n".encode(), 1, 14),
            ("a = 'ü'; return 1\n".encode(), 1, 10),
            ("# coding: latin-1\nx = 'ü' +\n".encode("latin-1"), 2, 10),
            (b"x = '\xe4'\n", 1, 6),
            (b"# coding: ascii\n:\x80\n", 0, 0),
            (b"# coding: utf-8\n:\x80\n", 0, 0),
            (b"# coding: nonsense\n", 0, 0),
            (b"<<<<<<< HEAD\n", 1, 1),
            (b"x\n" * 5000 + b"y = \0\n", 5001, 0),
        ],
    )
    def test_what_it_refuses_blocks_at_its_place(self, content: bytes, line: int, column: int) -> None:
        found = fault("a.py", content)
        assert found == ("python-syntax", "blocking", line, column)

    def test_it_compiles_and_does_not_run(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert fault("a.py", "raise SystemExit('ran')\nprint('ran')\n") is None
        assert capfd.readouterr() == ("", "")

    def test_its_warnings_are_nobodys_business(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert fault("a.py", "x = '\\d'\nassert (x, 1)\n1 is 1\n") is None

    @OLDER_THAN_3_12
    @pytest.mark.parametrize(
        "content",
        [
            "type Pair[T] = tuple[T, T]\n",
            "def first[T](xs: list[T]) -> T:\n    return xs[0]\n",
            "class Box[T]:\n    pass\n",
            "x = f'{a['b']}'\n",
            "try:\n    pass\nexcept ValueError, TypeError:\n    pass\n",
            'x = t"{name}"\n',
        ],
    )
    def test_what_a_newer_python_may_take_does_not_block(self, content: str) -> None:
        found = fault("a.py", content)
        assert found is not None
        assert found[1] == "advisory"

    @pytest.mark.parametrize(
        ("path", "content"),
        [
            ("{{cookiecutter.slug}}/setup.py", "import {{cookiecutter.slug}}\n"),
            ("setup.py", "import {{ cookiecutter.slug }}\n"),
            ("hooks/post.py", "{% if x %}\nimport a\n{% endif %}\n"),
        ],
    )
    def test_a_template_is_not_judged(self, path: str, content: str) -> None:
        assert isinstance(syntax.parse(new(path, content)), Template)

    @pytest.mark.parametrize(
        "content",
        [
            "-" * DEEP + "1\n",
            "a" + ".b" * DEEP + "\n",
            "1" + "+1" * DEEP + "\n",
            "f" + "()" * DEEP,
            "not " * DEEP + "a",
        ],
        ids=["minus", "attribute", "sum", "call", "not"],
    )
    def test_what_is_too_deep_for_it_is_no_verdict(self, content: str) -> None:
        assert syntax.parse(new("a.py", content)) == GaveUp(reason="nested too deeply for the python parser")

    def test_a_table_of_a_program_is_not_parsed(self) -> None:
        outcome = syntax.parse(new("table.py", "x = 1\n" * (PARSE_LIMIT_BYTES // 6 + 1)))
        assert outcome == GaveUp(reason="rule:large (1.0 MiB of Python, over the 1 MiB that are parsed)")


class TestJson:
    @pytest.mark.parametrize(
        "content",
        [
            b'{"a": [1, -2.5e3, true, null]}',
            b'\xef\xbb\xbf{"a": 1}\n',
            b"9" * 5000,
            b'{"hello": "Hello {{name}}"}',
            b"[" + b"1," * 1000 + b"1]",
            b'"a"',
        ],
    )
    def test_json_is_well(self, content: bytes) -> None:
        assert parsed(new("a.json", content)) == Parsed()

    @pytest.mark.parametrize(
        ("content", "line", "column"),
        [
            ('{"a": 1\n', 1, 0),
            ('{"a": 1}\n{"b": 2}\n', 2, 1),
            ('{\n  "a" 1\n}\n', 2, 7),
            ("{'a': 1}", 1, 2),
            ('{"a": "Hello {{name}}", "b": }', 1, 30),
            ("[1, 2,, 3]", 1, 7),
            ('{"a": "tab\there"}', 1, 11),
            (b'{"a": "\xff"}', 1, 8),
            (b'{\n"a": "\xff"}', 2, 7),
            ("<<<<<<< HEAD\n{}\n", 1, 1),
        ],
    )
    def test_what_is_none_blocks_at_its_place(self, content: str | bytes, line: int, column: int) -> None:
        assert fault("a.json", content) == ("json-syntax", "blocking", line, column)

    @pytest.mark.parametrize(
        "path",
        [
            "tsconfig.json",
            "tsconfig.build.json",
            ".vscode/settings.json",
            "x/.devcontainer/devcontainer.json",
            "a.jsonc",
        ],
    )
    def test_comments_are_well_where_the_tool_takes_them(self, path: str) -> None:
        content = '{\n  // a "comment"\n  "a": "http://x/*y*/", /* more\n lines */\n  "b": [1, 2,],\n}\n'
        assert parsed(new(path, content)) == Parsed()

    def test_a_real_fault_beside_comments_keeps_its_place(self) -> None:
        content = '{\n  // "comment"\n  "a": 1 /* ,\n ,, */\n  "b": 2\n}\n'
        assert fault("tsconfig.json", content) == ("json-syntax", "blocking", 5, 3)

    @pytest.mark.parametrize("content", ['{"a": 1} // x\n', '{"a": [1, 2,]}\n'])
    def test_comments_elsewhere_are_an_advice(self, content: str) -> None:
        outcome = parsed(new("data.json", content))
        assert outcome.broken is None
        assert told(outcome.remarks) == [("json-comments", "advisory", 1)]

    def test_an_empty_file_is_an_advice(self) -> None:
        assert fault("a.json", "\n") == ("json-syntax", "advisory", 0, 0)

    def test_a_template_is_not_judged(self) -> None:
        assert isinstance(syntax.parse(new("a.json", '{"a": {{ value }}, "b": "{% x %}"}')), Template)

    def test_a_key_that_is_there_twice_is_told_where_it_is_added(self) -> None:
        content = '{\n  "a": 1,\n  "b": {"a": 1},\n  "a": 2\n}\n'
        assert told(parsed(changed("a.json", content, [(4, 4)])).remarks) == [("json-duplicate-key", "advisory", 4)]
        assert told(parsed(changed("a.json", content, [(2, 2)])).remarks) == [("json-duplicate-key", "advisory", 2)]
        assert not parsed(changed("a.json", content, [(5, 5)])).remarks
        assert not parsed(new("a.json", '{"a": {"b": 1}, "c": {"b": 2}}')).remarks

    def test_what_is_too_deep_is_no_verdict(self) -> None:
        assert syntax.parse(new("a.json", "[" * DEEP)) == GaveUp(reason="nested too deeply for the json parser")


class TestToml:
    @pytest.mark.parametrize("content", ["", "a = 1\n[b]\nc = [1,\n 2]\n", "a = '{{ x }}'\n", "x = 1.5e3\n"])
    def test_toml_is_well(self, content: str) -> None:
        assert parsed(new("a.toml", content)) == Parsed()

    @pytest.mark.parametrize(
        ("content", "line", "column"),
        [
            ("a = \n", 1, 5),
            ("[a]\nb = 1\n[a]\n", 3, 3),
            ("a = 1\na = 2\n", 2, 6),
            ("a = [1,\n", 1, 0),
            (b"a = 1\nb = '\xff'\n", 2, 6),
        ],
    )
    def test_what_is_none_blocks_at_its_place(self, content: str | bytes, line: int, column: int) -> None:
        assert fault("a.toml", content) == ("toml-syntax", "blocking", line, column)

    def test_a_position_is_no_part_of_the_message(self) -> None:
        broken = parsed(new("a.toml", "a = \n")).broken
        assert broken is not None
        assert broken.message == "it is no TOML: Invalid value"

    def test_a_template_is_not_judged(self) -> None:
        assert isinstance(syntax.parse(new("a.toml", "a = {{ x }}\n")), Template)

    def test_what_is_too_deep_is_no_verdict(self) -> None:
        assert syntax.parse(new("a.toml", "a = " + "[" * DEEP)) == GaveUp(
            reason="nested too deeply for the toml parser"
        )


class TestYaml:
    @pytest.mark.parametrize(
        "content",
        [
            "",
            "a: 1\n---\nb: 2\n...\n",
            "a: !Ref x\nb: !!python/object/apply:os.system [exit]\nc: !Sub [a, b]\n",
            "%YAML 1.2\n---\na: b\n",
            "base: &b {x: 1}\nuse:\n  <<: *b\n  <<: *b\n",
            "run: echo ${{ github.sha }}\n",
            "a: '{{ x }}'\n",
            "? [a, b]\n: c\n",
            "emoji: 😀\n",
            "a: {b: {}, c: []}\n",
        ],
    )
    def test_yaml_is_well(self, content: str) -> None:
        assert parsed(new("a.yaml", content)) == Parsed()

    @pytest.mark.parametrize(
        ("content", "line"),
        [
            ("a:\n\t- b\n", 2),
            ("a: [1, 2\nb: 3\n", 2),
            ("a: b: c\n", 1),
            ("a: *nowhere\n", 1),
            ("x: &x 1\n---\ny: *x\n", 3),
            (b"ok: 1\na: \xff\n", 2),
            (b"ok: 1\na: \x07\n", 2),
            ("on:\n  push: ${{ x }}\n bad\n", 3),
            ("a: 'open\n", 1),
        ],
    )
    def test_what_is_none_blocks_at_its_line(self, content: str | bytes, line: int) -> None:
        found = fault("a.yml", content)
        assert found is not None
        assert found[:3] == ("yaml-syntax", "blocking", line)

    @pytest.mark.parametrize(
        "content",
        [
            "{{- if .Values.x }}\na: {{ .Values.y }}\n{{- end }}\n",
            "{% for x in y %}\n- {{ x }}\n{% endfor %}\n",
            "a: <%= x %>: b: c\n",
        ],
    )
    def test_a_template_is_not_judged(self, content: str) -> None:
        assert isinstance(syntax.parse(new("chart/templates/x.yaml", content)), Template)

    def test_a_key_that_is_there_twice_is_told_where_it_is_added(self) -> None:
        content = "a: 1\nb:\n  a: 2\n  '1': x\n  1: y\na: 3\n"
        assert told(parsed(new("a.yml", content)).remarks) == [("yaml-duplicate-key", "advisory", 6)]
        assert not parsed(changed("a.yml", content, [(1, 1)])).remarks

    def test_nothing_expands(self) -> None:
        content = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]\n" for n in range(1, 40))
        assert parsed(new("a.yml", content)) == Parsed()

    def test_what_is_too_deep_is_no_verdict(self) -> None:
        assert syntax.parse(new("a.yml", "[" * DEEP)) == GaveUp(reason="nested too deeply for the yaml parser")


@pytest.mark.parametrize(
    ("path", "severity"),
    [
        ("tests/data/invalid-3.json", "advisory"),
        ("pkg/testdata/broken/x.json", "advisory"),
        ("fixtures/syntax_error.json", "advisory"),
        ("test/badsyntax_3131.json", "advisory"),
        ("tests/data/good.json", "blocking"),
        ("src/error.json", "blocking"),
        ("tests/data/terrors.json", "blocking"),
    ],
)
def test_what_a_test_keeps_broken_does_not_block(path: str, severity: str) -> None:
    found = fault(path, "{")
    assert found is not None
    assert found[1] == severity


@given(content=st.binary(max_size=200), suffix=st.sampled_from([".py", ".json", ".toml", ".yaml", ".jsonc"]))
@example(content=b"\\", suffix=".py")
@example(content=b"\r", suffix=".py")
@example(content=b"\xff\xfe", suffix=".yaml")
@example(content=b"\xef\xbb\xbf", suffix=".json")
def test_any_bytes_have_an_outcome_with_a_place_in_the_file(content: bytes, suffix: str) -> None:
    source = new("a" + suffix, content)
    outcome = syntax.parse(source)
    assert outcome is not None
    if isinstance(outcome, Parsed) and outcome.broken:
        broken = outcome.broken
        assert 0 <= broken.start_line <= broken.end_line <= max(len(source.lines), 1)
        assert broken.message.isprintable()
        json.dumps(broken.fields())


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_what_json_writes_is_well(value: object) -> None:
    assert parsed(new("a.json", json.dumps(value))) == Parsed()
    assert parsed(new("a.json", json.dumps(value, ensure_ascii=False))) == Parsed()
