from __future__ import annotations

import os
from binascii import b2a_base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from git_orch import jsontext
from git_orch.model import Finding
from git_orch.reviewers.static import review as reviewing
from git_orch.reviewers.static import secrets, syntax
from git_orch.reviewers.static.__main__ import main
from git_orch.reviewers.static.folding import MOST_A_RULE, Folded
from git_orch.reviewers.static.patch import Change
from git_orch.reviewers.static.request import Request, Told, answer
from git_orch.reviewers.static.review import Reviewed, review
from git_orch.reviewers.static.source import Source

ALL = Change(is_new=True, added=((1, 1 << 30),))
CONFLICT = "x = 1\n<<<<<<< HEAD\nx = 2\n=======\nx = 3\n>>>>>>> b\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    os.chdir(tree)
    return tree


def reviewed(tree: Path, files: dict[str, str | bytes], **changes: Change) -> Reviewed:
    """The files, all new unless a change is given by a name, have been reviewed."""
    for name, content in files.items():
        (tree / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    paths = tuple(os.fsencode(name) for name in files)
    known = {path: changes.get(os.fsdecode(path), ALL) for path in paths}
    return review(Request(nonce="n", result="", paths=paths, changes=known), {})


def rules(told: Told) -> list[str]:
    return [finding.rule for finding in told.findings]


class TestAccounting:
    def test_every_path_is_checked_or_has_a_reason(self, tree: Path) -> None:
        (tree / "link").symlink_to("a.txt")
        found = reviewed(tree, {"a.txt": "x\n", "b.bin": b"\0", "c.json": "[" * 9000})
        gone = review(Request(nonce="n", result="", paths=(b"link", b"gone"), changes={b"link": ALL, b"gone": ALL}), {})
        reasons = {one.path: one.reason for one in (*found.told, *gone.told)}
        assert reasons == {
            b"a.txt": "",
            b"b.bin": "rule:binary (only its name and size were checked)",
            b"c.json": "nested too deeply for the json parser",
            b"link": "",
            b"gone": "cannot be read: No such file or directory",
        }
        assert found.note == "1 file checked, 0 of them parsed"

    def test_a_path_that_the_patch_does_not_tell_of_is_no_pass(self, tree: Path) -> None:
        (tree / "a.txt").write_text("x\n")
        found = review(Request(nonce="n", result="", paths=(b"a.txt",), changes={}), {})
        assert found.told == (Told(path=b"a.txt", reason="the patch does not tell what changed in it"),)

    def test_the_order_is_that_of_the_request_and_that_of_the_lines(self, tree: Path) -> None:
        found = reviewed(tree, {"z.txt": "a\u202e\nb \n<<<<<<< x\n", "a.txt": "x"})
        assert [one.path for one in found.told] == [b"z.txt", b"a.txt"]
        assert rules(found.told[0]) == ["bidi-control", "trailing-whitespace", "conflict-marker"]

    def test_what_has_no_content_to_check_has_a_size(self, tree: Path) -> None:
        found = reviewed(tree, {"big.bin": b"\0" * 600_000})
        assert rules(found.told[0]) == ["large-file"]


class TestConflictsAndSyntax:
    @pytest.mark.parametrize("name", ["a.py", "a.json", "a.toml", "a.yaml"])
    def test_a_conflict_is_told_once(self, tree: Path, name: str) -> None:
        (told,) = reviewed(tree, {name: CONFLICT.replace("x = 1", "")}).told
        assert rules(told) == ["conflict-marker"]

    def test_another_fault_of_the_file_is_told_beside_it(self, tree: Path) -> None:
        (told,) = reviewed(tree, {"a.py": "def f(:\n" + CONFLICT}).told
        assert rules(told) == ["python-syntax", "conflict-marker"]


class TestFaults:
    @pytest.mark.parametrize("fault", [ValueError, IndexError, RecursionError, MemoryError, OSError])
    def test_a_check_that_stumbles_leaves_the_others_and_its_reason(
        self, tree: Path, monkeypatch: pytest.MonkeyPatch, fault: type[Exception]
    ) -> None:
        def stumble(source: Source) -> Iterator[Finding]:
            yield source.finding("before", "found before it stumbled")
            raise fault

        monkeypatch.setattr(reviewing, "_TEXT_CHECKS", (("odd things", stumble), *reviewing._TEXT_CHECKS))
        first, second = reviewed(tree, {"a.txt": "x \n", "b.bin": b"\0"}).told
        assert first.reason == f"check of odd things failed: {fault.__name__}"
        assert rules(first) == ["before", "trailing-whitespace"]
        assert second.reason.startswith("rule:binary")

    def test_a_parser_that_stumbles_leaves_the_checks(self, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def stumble(_: Source) -> Any:
            raise ValueError

        monkeypatch.setattr(syntax, "parse", stumble)
        (told,) = reviewed(tree, {"a.py": CONFLICT}).told
        assert (rules(told), told.reason) == (["conflict-marker"], "parser failed: ValueError")

    def test_a_fault_of_ours_is_not_hidden(self, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def wrong(_: Source) -> Iterator[Finding]:
            raise TypeError

        monkeypatch.setattr(reviewing, "_TEXT_CHECKS", (("secrets", wrong),))
        with pytest.raises(TypeError):
            reviewed(tree, {"a.txt": "x\n"})
        assert secrets.check is not wrong


class TestFolding:
    def test_of_each_rule_there_are_so_many_and_a_count(self) -> None:
        folded = Folded()
        folded.extend(Finding(path="a", message="m", rule="r", severity="nit", start_line=n) for n in range(1, 1001))
        folded.extend([Finding(path="a", message="m", rule="other", start_line=3)])
        found = folded.findings("a")
        assert len(found) == MOST_A_RULE + 2
        assert found[0] == Finding(path="a", rule="r", severity="nit", message="950 more of this kind in the file")
        assert [one.rule for one in found[1:5]] == ["r", "r", "r", "other"]

    def test_the_rest_weighs_as_much_as_the_gravest_of_it(self) -> None:
        folded = Folded()
        folded.extend([Finding(path="a", message="m", rule="r", severity="nit", start_line=1)] * MOST_A_RULE)
        folded.extend([Finding(path="a", message="m", rule="r", severity="blocking", start_line=1)])
        folded.extend([Finding(path="a", message="m", rule="r", severity="advisory", start_line=1)])
        assert folded.findings("a")[0].severity == "blocking"

    def test_exactly_so_many_need_no_count(self) -> None:
        folded = Folded()
        folded.extend([Finding(path="a", message="m", rule="r", start_line=1)] * MOST_A_RULE)
        assert len(folded.findings("a")) == MOST_A_RULE


class TestAnswer:
    REQUEST = Request(nonce="n-1", result="", paths=(), changes={})

    def test_it_has_the_shape_of_the_protocol(self) -> None:
        fault = Finding(path="a.py", message="m", rule="r", severity="blocking", start_line=2, end_line=3)
        told = [Told(path=b"a.py", findings=(fault,)), Told(path=b"b.bin", reason="rule:binary")]
        assert answer(self.REQUEST, told, "the note") == {
            "schema_version": "1",
            "nonce": "n-1",
            "status": "findings",
            "reason": "the note",
            "note": "the note",
            "files": ["a.py"],
            "skipped": [{"path": "b.bin", "reason": "rule:binary"}],
            "findings": [
                {"path": "a.py", "message": "m", "severity": "blocking", "start_line": 2, "end_line": 3, "rule": "r"}
            ],
        }

    def test_without_findings_it_says_so(self) -> None:
        assert answer(self.REQUEST, [Told(path=b"a")], "")["status"] == "no_findings"

    def test_a_path_that_is_not_utf_8_keeps_its_bytes(self) -> None:
        raw = b"caf\xe9/\xff.py"
        named = {"path": "caf\ufffd/\ufffd.py", "path_b64": b2a_base64(raw, newline=False).decode()}
        told = [Told(path=raw, findings=(Finding(path="caf\ufffd/\ufffd.py", message="m"),))]
        document = answer(self.REQUEST, told, "")
        assert document["files"] == [named]
        assert document["findings"][0].items() >= named.items()
        skipped = answer(self.REQUEST, [Told(path=raw, reason="x")], "")["skipped"]
        assert skipped == [{**named, "reason": "x"}]


class TestMain:
    def environ(self, folder: Path) -> dict[str, str]:
        names = ("ORCH_RESULT", "ORCH_FILES", "ORCH_DIFF")
        return {"ORCH_NONCE": "n", **{name: str(folder / name.lower()) for name in names}}

    def test_without_a_request_it_says_who_makes_one(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main({"ORCH_NONCE": "n"}) == 2
        assert capsys.readouterr().err == (
            "static: ORCH_RESULT ORCH_FILES ORCH_DIFF not set: `git orch review` runs this reviewer\n"
        )

    def test_a_request_that_cannot_be_read_is_answered(self, tmp_path: Path) -> None:
        environ = self.environ(tmp_path)
        assert main(environ) == 0
        said = jsontext.loads(Path(environ["ORCH_RESULT"]).read_bytes())
        assert (said["status"], said["nonce"]) == ("unable_to_review", "n")
        assert said["reason"] == "cannot read the request: No such file or directory"

    def test_the_answer_is_never_written_through_a_link(self, tmp_path: Path) -> None:
        environ = self.environ(tmp_path)
        Path(environ["ORCH_RESULT"]).symlink_to(tmp_path / "elsewhere")
        with pytest.raises(OSError, match="symbolic links"):
            main(environ)
        assert not (tmp_path / "elsewhere").exists()
