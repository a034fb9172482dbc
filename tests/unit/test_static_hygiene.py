from __future__ import annotations

import io
import os
import random
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pre_commit_hooks import check_added_large_files, mixed_line_ending, trailing_whitespace_fixer

from git_orch.reviewers.static import hidden, kinds, links, modes, sizes, suppressions, whitespace
from git_orch.reviewers.static.names import Names
from git_orch.reviewers.static.patch import Change
from git_orch.reviewers.static.source import READ_LIMIT_BYTES, Source, load, one_line
from tests.unit.static_sources import FILE, PROGRAM, changed, new, told


class TestWhitespace:
    def test_one_finding_counts_the_added_lines(self) -> None:
        content = "a \nb\nc\t\nd  \n"
        (finding,) = whitespace.check(changed("a.txt", content, [(3, 4)]))
        assert (finding.severity, finding.start_line) == ("nit", 3)
        assert finding.message == "white space at the end of 2 added lines"

    @pytest.mark.parametrize(
        ("path", "content"),
        [
            ("a.md", "line break  \nnext\n"),
            ("a.txt", "dos\r\nfile\r\n"),
            ("a.c", "page\n\x0c\nbreak\n"),
            ("a.patch", " \n-x \n"),
            ("a.csv", "a,b, \n"),
            ("package-lock.json", "{} \n"),
            ("x.min.js", "a "),
            ("gen.go", "// Code generated. DO NOT EDIT.\nx \n"),
            ("empty.txt", ""),
        ],
    )
    def test_what_is_meant_or_nobody_typed_is_left_alone(self, path: str, content: str) -> None:
        assert not list(whitespace.check(new(path, content)))

    @given(st.binary(max_size=30).filter(lambda line: b"\n" not in line), st.booleans())
    def test_trailing_white_space_is_what_pre_commit_hooks_says(self, line: bytes, is_markdown: bool) -> None:
        kept = line.rstrip(b"\x0b\x0c\r") if line.rstrip() != line.rstrip(b" \t\r\n") else line
        fixed = trailing_whitespace_fixer._process_line(kept + b"\n", is_markdown, None)
        if not kept.rstrip(b" \t\r").endswith((b"\x0b", b"\x0c", b"\r")) and not kept.endswith(b"\r"):
            assert whitespace.has_trailing(kept, is_markdown=is_markdown) == (fixed != kept + b"\n")

    def test_the_final_newline_is_missed_only_in_an_added_line(self) -> None:
        assert told(whitespace.check(new("a.txt", "x\ny"))) == [("final-newline", "nit", 2)]
        assert not list(whitespace.check(changed("a.txt", "x\ny", [(1, 1)])))

    @pytest.mark.parametrize(
        ("content", "added", "line"),
        [
            ("a\nb\r\nc\n", [(2, 2)], 2),
            ("a\r\nb\nc\r\n", [(2, 2)], 2),
            ("a\r\nb\nc\n", [(1, 3)], 1),
            ("a\r\nb\r\nc\n", [(1, 3)], 3),
            ("a\nb\r\nc\n", [(3, 3)], 0),
            ("a\r\nb\r\nc", [(1, 3)], 0),
            ("a\nb\n", [(1, 2)], 0),
        ],
    )
    def test_line_endings_are_told_where_the_difference_mixes_them(
        self, content: str, added: list[tuple[int, int]], line: int
    ) -> None:
        found = [one.start_line for one in whitespace.check(changed("a.txt", content, added)) if "mixed" in one.rule]
        assert found == [line] * bool(line)

    @given(endings=st.lists(st.sampled_from([b"\n", b"\r\n"]), min_size=1, max_size=6))
    def test_a_new_file_is_mixed_where_pre_commit_hooks_says_so(
        self, tmp_path_factory: pytest.TempPathFactory, endings: list[bytes]
    ) -> None:
        content = b"".join(b"x" + ending for ending in endings)
        path = tmp_path_factory.mktemp("mixed") / "a.txt"
        path.write_bytes(content)
        with redirect_stdout(io.StringIO()):
            mixed = bool(mixed_line_ending.main(["--fix=no", str(path)]))
        assert bool(list(whitespace.check(new("a.txt", content)))) == mixed


class TestHidden:
    @pytest.mark.parametrize(
        ("path", "content", "rule", "line", "column"),
        [
            ("a.c", "x\nif (a\u202e /* \u2066b */)\n", "bidi-control", 2, 6),
            ("a.md", "text \u202b more\n", "bidi-control", 1, 6),
            ("a.py", "user\u200b = 1\n", "invisible-character", 1, 5),
            ("a.py", "x = 1\nx\ufeff = 2\n", "invisible-character", 2, 2),
            ("a.py", "\u3164 = 1\n", "invisible-character", 1, 1),
            (
                "README.md",
                "hi" + "".join(chr(0xE0000 + ord(letter)) for letter in "run it") + "\n",
                "invisible-text",
                1,
                3,
            ),
            ("a.js", "s = 'x\U000e0101\U000e0148'\n", "invisible-text", 1, 7),
        ],
    )
    def test_what_nobody_sees_is_told(self, path: str, content: str, rule: str, line: int, column: int) -> None:
        (finding,) = hidden.check(new(path, content))
        assert (finding.rule, finding.severity) == (rule, "advisory")
        assert (finding.start_line, finding.start_column) == (line, column)
        assert finding.message.isprintable()

    @pytest.mark.parametrize(
        ("path", "content"),
        [
            ("a.py", "# Grüße, 日本語, שלום, مرحبا\n"),
            ("a.py", "family = '👨\u200d👩\u200d👧'  # ❤\ufe0f\n"),
            ("a.md", "Khmer and Thai part words\u200bso\n"),
            ("flags.md", "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f\n"),
            ("ar.po", 'msgstr "\u202bx\u202c"\n'),
            ("bom.py", "\ufeffx = 1\n"),
            ("latin.txt", b"\xe4\xf6\xfc\n"),
            ("euc.c", b"\xff \xe2\x80\xae\n"),
            ("name.py", "# 葛\U000e0100飾\n"),
        ],
    )
    def test_what_scripts_need_is_not_told(self, path: str, content: str | bytes) -> None:
        assert not list(hidden.check(new(path, content)))

    def test_only_added_lines_count(self) -> None:
        assert not list(hidden.check(changed("a.c", "a\u202e\nb\n", [(2, 2)])))

    def test_the_first_line_stands_for_all(self) -> None:
        (finding,) = hidden.check(new("a.c", "a\u202e\n" * 3))
        assert "on 2 more added lines" in finding.message


class TestSuppressions:
    @pytest.mark.parametrize(
        "line",
        [
            "x = 1  # pragma: allowlist secret",
            "// pragma: whitelist nextline secret",
            "# ruff: noqa",
            "# flake8: noqa: F401",
            "# ruff: disable[F401]",
            "/* eslint-disable */",
            "// @ts-nocheck",
            "# mypy: ignore-errors",
            "# pylint: skip-file",
            "key = 1  # gitleaks:allow",
            "subprocess.run(x, shell=True)  # nosec",
            "x()  // nosemgrep",
        ],
    )
    def test_an_added_one_is_told(self, line: str) -> None:
        assert told(suppressions.check(new("a.py", f"x\n{line}\n"))) == [("suppression", "advisory", 2)]
        assert not list(suppressions.check(changed("a.py", f"x\n{line}\n", [(1, 1)])))

    @pytest.mark.parametrize(
        ("path", "line"),
        [
            ("a.py", "from x import y  # noqa: F401"),
            ("a.py", "x: int = f()  # type: ignore[assignment]"),
            ("a.js", "// eslint-disable-next-line no-console"),
            ("a.js", "/* eslint-disable no-console */"),
            ("guide.md", "Write `# pragma: allowlist secret` there."),
            ("a.py", "ruff = 'a linter'; noqa = allow_nosecrets = 1"),
        ],
    )
    def test_a_decision_beside_its_line_is_not(self, path: str, line: str) -> None:
        assert not list(suppressions.check(new(path, line + "\n")))


class TestModes:
    @pytest.mark.parametrize(
        ("path", "content", "mode", "rule"),
        [
            ("run", "echo\n", PROGRAM, "no-shebang"),
            ("run.sh", "#!/bin/sh\n", FILE, "not-executable"),
            ("run.sh", "#!/bin/sh\n", PROGRAM, None),
            ("run.bat", "echo\n", PROGRAM, None),
            ("lib.rs", "#![allow(x)]\n", FILE, None),
            ("empty", "", PROGRAM, None),
            ("a.py", "x\n", FILE, None),
        ],
    )
    def test_bit_and_first_line_go_together(self, path: str, content: str, mode: int, rule: str | None) -> None:
        assert [one.rule for one in modes.check(new(path, content, mode))] == [rule] * bool(rule)

    def test_what_was_so_before_is_not_told(self) -> None:
        assert not list(modes.check(changed("run", "a\nb\n", [(2, 2)], mode=PROGRAM)))
        assert not list(modes.check(changed("run.sh", "#!/bin/sh\nb\n", [(2, 2)], mode=FILE)))


class TestSizes:
    @pytest.mark.parametrize(
        ("path", "size", "is_new", "count"),
        [
            ("a.bin", sizes.LARGE_BYTES, True, 0),
            ("a.bin", sizes.LARGE_BYTES + 1, True, 1),
            ("a.bin", sizes.LARGE_BYTES + 1, False, 0),
            ("package-lock.json", 1 << 21, True, 0),
        ],
    )
    def test_a_large_new_file_is_told(self, path: str, size: int, is_new: bool, count: int) -> None:
        source = Source(path.encode(), Change(is_new=is_new), mode=FILE, size=size, unread="rule:binary")
        assert told(sizes.check(source)) == [("large-file", "advisory", 0)] * count

    def test_the_limit_is_that_of_pre_commit_hooks(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            check_added_large_files.main(["--help"])
        source = Path(check_added_large_files.__file__).read_text()
        assert f"default={sizes.LARGE_BYTES // 1024}," in source
        assert capsys.readouterr().out


class TestNames:
    @pytest.fixture(autouse=True)
    def tree(self, tmp_path: Path) -> Path:
        tree = tmp_path / "tree"
        for path in ("README.md", "src/a.py", "Src/b.py", "src/same.txt"):
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text("x")
        os.chdir(tree)
        return tree

    def check(self, *paths: str) -> list[str]:
        names = Names()
        return [one.message for path in paths for one in names.check(new(path, ""))]

    def test_a_file_that_differs_by_case_alone_is_told(self, tree: Path) -> None:
        (tree / "readme.md").write_text("y")
        assert self.check("readme.md") == [
            "`README.md` is there as well: where case does not count, one of the two is lost"
        ]

    def test_a_folder_is_told_once(self) -> None:
        assert len(self.check("src/a.py", "src/same.txt")) == 1

    def test_unicode_has_two_forms_of_one_name(self, tree: Path) -> None:
        (tree / "Gr\u00fcn").write_text("x")
        (tree / "gru\u0308n").write_text("y")
        assert len(self.check("gru\u0308n")) == 1

    def test_what_was_there_before_is_not_told(self) -> None:
        assert not list(Names().check(changed("Src/b.py", "")))
        assert not self.check("README.md")


class TestLinks:
    @pytest.fixture(autouse=True)
    def tree(self, tmp_path: Path) -> Path:
        tree = tmp_path / "tree"
        (tree / "sub").mkdir(parents=True)
        (tree / "file").write_text("x")
        os.chdir(tree)
        return tree

    def link(self, path: str, target: str) -> Source:
        os.symlink(target, path)
        return load(path.encode(), Change(is_new=True))

    @pytest.mark.parametrize(
        ("path", "target", "rule"),
        [
            ("l", "file", None),
            ("sub/l", "../file", None),
            ("l", "sub", None),
            ("l", "/etc/passwd", "symlink-absolute"),
            ("l", "/dev/random", "symlink-absolute"),
            ("l", "../outside", "symlink-outside"),
            ("sub/l", "../../outside", "symlink-outside"),
            ("l", "..", "symlink-outside"),
            ("l", "nowhere", "symlink-broken"),
            ("l", "l", "symlink-broken"),
            ("sub/l", "file", "symlink-broken"),
        ],
    )
    def test_where_it_leads(self, path: str, target: str, rule: str | None) -> None:
        found = list(links.check(self.link(path, target)))
        assert told(found) == ([(rule, "advisory", 1)] if rule else [])
        assert all(one.message.isprintable() for one in found)

    def test_a_chain_of_links_is_as_broken_as_its_end(self) -> None:
        self.link("sub/second", "../third")
        assert [one.rule for one in links.check(self.link("first", "sub/second"))] == ["symlink-broken"]
        self.link("third", "file")
        assert not list(links.check(self.link("again", "sub/second")))

    def test_its_target_is_text_of_the_repository(self) -> None:
        (finding,) = links.check(self.link("l", "/tmp/\x1b[31mred\n\u202e"))
        assert finding.message.isprintable()


class TestLoad:
    @pytest.fixture(autouse=True)
    def tree(self, tmp_path: Path) -> Path:
        tree = tmp_path / "tree"
        tree.mkdir()
        os.chdir(tree)
        return tree

    def load(self, name: str | bytes) -> Source:
        return load(os.fsencode(name), Change())

    def test_text_is_read(self, tree: Path) -> None:
        (tree / "a").write_bytes(b"x\ny")
        source = self.load("a")
        assert (source.unread, source.lines, source.size) == ("", [b"x", b"y"], 3)

    def test_lines_are_cut_where_git_cuts_them(self) -> None:
        assert new("a", "a\rb\x0c\u2028c\r\nd\n").lines == [b"a\rb\x0c\xe2\x80\xa8c\r", b"d"]
        assert new("a", "").lines == []
        assert new("a", "\n\n").lines == [b"", b""]

    @pytest.mark.parametrize(
        ("content", "unread"),
        [
            (b"\0", "rule:binary (only its name and size were checked)"),
            (b"x" * 7999 + b"\0", "rule:binary (only its name and size were checked)"),
            (b"x" * 8000 + b"\0", ""),
        ],
    )
    def test_binary_is_what_git_calls_binary(self, tree: Path, content: bytes, unread: str) -> None:
        (tree / "a").write_bytes(content)
        assert self.load("a").unread == unread

    def test_a_large_file_is_named_with_its_size(self, tree: Path) -> None:
        with (tree / "data.jsonl").open("wb") as file:
            file.truncate(READ_LIMIT_BYTES + 1)
        assert self.load("data.jsonl").unread == "rule:large (5.0 MiB, over the 5 MiB that are read)"

    def test_a_link_is_never_read_through(self, tree: Path) -> None:
        (tree / "random").symlink_to("/dev/random")
        source = self.load("random")
        assert source.is_link
        assert (source.content, source.unread) == (b"", "")

    def test_what_is_no_file_is_named(self, tree: Path) -> None:
        os.mkfifo(tree / "fifo")
        (tree / "module").mkdir()
        assert self.load("fifo").unread == "neither a file nor a link"
        assert self.load("module").unread == "rule:submodule"
        assert self.load("gone").unread == "cannot be read: No such file or directory"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_a_file_that_may_not_be_read_is_a_gap(self, tree: Path) -> None:
        (tree / "a").write_bytes(b"x")
        (tree / "a").chmod(0)
        assert self.load("a").unread == "cannot be read: Permission denied"

    def test_any_name_is_shown(self, tree: Path) -> None:
        (tree / os.fsdecode(b"\xff.py")).write_bytes(b"x = 1\n")
        source = self.load(b"\xff.py")
        assert (source.name, source.suffix, source.content) == ("\ufffd.py", ".py", b"x = 1\n")


@pytest.mark.parametrize(
    ("path", "is_lock", "is_generated", "is_test"),
    [
        ("a/package-lock.json", True, True, False),
        ("Cargo.lock", True, True, False),
        ("go.sum", True, True, False),
        ("api_pb2.py", False, True, False),
        ("x.min.css", False, True, False),
        ("src/a.py", False, False, False),
        ("tests/a.py", False, False, True),
        ("src/a.test.ts", False, False, True),
        ("src/test_a.py", False, False, True),
        ("src/contest/latest.py", False, False, False),
    ],
)
def test_kinds_of_paths(path: str, is_lock: bool, is_generated: bool, is_test: bool) -> None:
    source = new(path, "x\n")
    assert (kinds.is_lock(source), kinds.is_generated(source), kinds.is_test(source)) == (
        is_lock,
        is_generated,
        is_test,
    )


def test_a_text_of_a_repository_becomes_one_harmless_line() -> None:
    assert one_line("a\x1b[31m\nb\u202e \x9b2J c ") == "a [31m b   2J c"
    assert len(one_line("x" * 1000)) == 300
    noise = "".join(chr(random.Random(1).randrange(0x3000)) for _ in range(200))
    assert one_line(noise).isprintable() or "\u3000" in noise
