"""`static` as the supervisor runs it: a child process, a tree without `.git`, a request by real git."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from git_orch import jsontext
from git_orch.model import ReviewerSettings
from git_orch.reviewers import own_json, reading
from tests.repo import Repo
from tests.unit.static_sources import ALPHANUMERIC, mixed, pem

ROOT = Path(__file__).parents[2]
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
TIMEOUT_S = 60
# In the child: whatever would reach for the network, or start anything but ruff, ends it with a status of its own.
START = """
import os, sys

def watch(event, args):
    if event.startswith("socket."):
        os._exit(97)
    if event in ("os.system", "os.exec", "os.fork", "subprocess.Popen"):
        os._exit(98)
    if event == "os.posix_spawn" and os.path.basename(args[0]) != "ruff":
        os._exit(98)

sys.path.insert(0, sys.argv.pop(1))
sys.addaudithook(watch)
from git_orch.reviewers.static.__main__ import main
sys.exit(main(os.environ))
"""


@dataclass
class Answer:
    """What `static` answered, and how it ended."""

    document: dict[str, Any]
    seconds: float
    stderr: str
    paths: list[bytes] = field(default_factory=list)

    def found(self, path: str) -> list[tuple[str, str, int]]:
        """Rule, severity and first line of each finding in the file."""
        named = [one for one in self.document["findings"] if one["path"] == path]
        return [(one["rule"], one["severity"], one.get("start_line", 0)) for one in named]


@dataclass(frozen=True)
class Case:
    """A repository, and the folder of a request about it."""

    repo: Repo
    folder: Path
    start: str = START

    def review(self, base: str = EMPTY_TREE, env: dict[str, str] | None = None) -> Answer:
        """The worktree's answer against the base; its files, ignored ones too, are the tree."""
        self.repo.git("add", "--all", "--force")
        tree_id = self.repo.git("write-tree")
        tree = self._materialize(tree_id)
        between = ("--no-renames", base, tree_id)
        patch = self.repo.git_bytes("diff-tree", "-p", "--binary", "--full-index", *between)
        paths = self.repo.git_bytes("diff-tree", "-r", "-z", "--name-only", "--diff-filter=d", *between)
        (self.folder / "diff").write_bytes(patch)
        (self.folder / "files").write_bytes(paths)
        return self._run(tree, [path for path in paths.split(b"\0") if path], env or {})

    def _materialize(self, tree_id: str) -> Path:
        tree = self.folder / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        archive = self.repo.git_bytes("archive", "--format=tar", tree_id)
        subprocess.run(["tar", "-x"], cwd=tree, input=archive, check=True, timeout=TIMEOUT_S)
        return tree

    def _run(self, tree: Path, paths: list[bytes], env: dict[str, str]) -> Answer:
        names = {"DIFF": "diff", "FILES": "files", "RESULT": "result"}
        told = {f"ORCH_{name}": str(self.folder / file) for name, file in names.items()}
        request = {**told, "ORCH_NONCE": "n-1", "ORCH_DIR": str(self.folder), "PATH": os.environ["PATH"], **env}
        started = monotonic()
        done = subprocess.run(
            [sys.executable, "-I", "-c", self.start, str(ROOT)],
            cwd=tree,
            env=request,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr}"
        document = jsontext.loads((self.folder / "result").read_bytes())
        return Answer(document, monotonic() - started, done.stderr, paths)


@pytest.fixture
def case(repo: Repo, tmp_path: Path) -> Case:
    folder = tmp_path / "request"
    folder.mkdir()
    return Case(repo, folder)


def accounted(answer: Answer) -> list[bytes]:
    """All paths that the answer names as checked or skipped, as bytes."""
    named = [*answer.document["files"], *answer.document["skipped"]]
    request = reading.Request(nonce="n-1", offered=())
    paths = [reading.path_of(entry if isinstance(entry, dict) else {"path": entry}, request) for entry in named]
    return sorted(os.fsencode(path) for path in paths)


def test_each_fault_is_told_where_it_is(case: Case) -> None:
    write = case.repo.write
    write("good.py", "import os\n\nprint(os.curdir)\n")
    write("bad.py", "def f(:\n    pass\n")
    write("merge.c", "int a;\n<<<<<<< HEAD\nint b;\n=======\nint c;\n>>>>>>> other\n")
    write("conf/app.json", '{"a": 1,}\n')
    write("conf/app.toml", "a = 1\na = 2\n")
    write("conf/app.yaml", "a: [1\nb: 2\n")
    write("conf/.env", "export KEY=ghp_" + mixed(36) + "\n")
    write("conf/server.pem", pem())
    write("text.md", "trailing \n")
    write("image.png", b"\x89PNG\0")
    (case.repo.path / "link").symlink_to("/etc/hostname")
    answer = case.review()
    assert answer.found("good.py") == []
    assert answer.found("bad.py") == [("python-syntax", "blocking", 1)]
    assert answer.found("merge.c") == [("conflict-marker", "blocking", 2)]
    assert answer.found("conf/app.json") == [("json-comments", "advisory", 1)]
    assert answer.found("conf/app.toml") == [("toml-syntax", "blocking", 2)]
    assert answer.found("conf/app.yaml") == [("yaml-syntax", "blocking", 2)]
    assert answer.found("conf/.env") == [("secret-github", "blocking", 1)]
    assert answer.found("conf/server.pem") == [("secret-private-key", "blocking", 1)]
    assert answer.found("text.md") == [("trailing-whitespace", "nit", 1)]
    assert answer.found("link") == [("symlink-absolute", "advisory", 1)]
    assert answer.document["skipped"] == [
        {"path": "image.png", "reason": "rule:binary (only its name and size were checked)"}
    ]
    assert answer.document["note"].startswith("10 files checked, 5 of them parsed")
    assert accounted(answer) == sorted(answer.paths)


def test_the_answer_is_one_that_its_reader_takes(case: Case) -> None:
    case.repo.write("a.py", "x = (\n")
    case.repo.write(os.fsdecode(b"caf\xe9.txt"), "x \n")
    document = case.review().document
    request = reading.Request(nonce="n-1", offered=("a.py", os.fsdecode(b"caf\xe9.txt")))
    said = own_json.read(document, ReviewerSettings(name="static"), request)
    assert isinstance(said, reading.Answer)
    assert set(said.reviewed) == set(request.offered)
    assert [(one.path, one.severity) for one in said.findings] == [
        ("a.py", "blocking"),
        (os.fsdecode(b"caf\xe9.txt"), "nit"),
    ]


def test_only_what_the_difference_adds_is_told(case: Case) -> None:
    old = "first\nkey = ghp_" + mixed(36) + "\n<<<<<<< HEAD\n>>>>>>> x\ntrailing \n"
    case.repo.write("a.txt", old)
    case.repo.write("gone.txt", "x")
    base = case.repo.git("rev-parse", case.repo.commit() + "^{tree}")
    case.repo.write("a.txt", old + "last\n")
    (case.repo.path / "gone.txt").unlink()
    answer = case.review(base)
    assert answer.document["status"] == "no_findings"
    assert answer.document["files"] == ["a.txt"]
    case.repo.write("a.txt", old + "key = ghp_" + mixed(36, seed=8) + "\n")
    assert case.review(base).found("a.txt") == [("secret-github", "blocking", 6)]


def test_any_path_is_accounted_for(case: Case) -> None:
    names = [b"a b.py", b"-x.py", b'q"uote.py', b"tab\there.txt", b"new\nline.txt", "grün.py".encode(), b"\xff\xfe.py"]
    names += [b"a b/a b", b"b/b/b b/b", b":(glob)*", b"\x1b[31m.txt"]
    for name in names:
        case.repo.write(os.fsdecode(name), "x = 1 \n")
    answer = case.review()
    assert accounted(answer) == sorted(names)
    assert len([one for one in answer.document["findings"] if one["rule"] == "trailing-whitespace"]) == len(names)


def test_nothing_of_the_tree_is_run_or_obeyed(case: Case, tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    code = f"open({str(proof)!r}, 'w').close()\n"
    for name in ("re.py", "json.py", "yaml.py", "tomllib.py", "detect_secrets.py", "sitecustomize.py", "git_orch.py"):
        case.repo.write(name, code)
    case.repo.write("ruff", f"#!/bin/sh\ntouch {proof}\n", mode=0o755)
    case.repo.write("ruff.toml", "[lint]\nselect = []\n")
    case.repo.write("pyproject.toml", "[tool.ruff]\nexclude = ['*']\n")
    case.repo.write("a.json", "{}\n")
    case.repo.write("a.yaml", "a: 1\n")
    case.repo.write("a.toml", "a = 1\n")
    case.repo.write("key.txt", "AKIA" + mixed(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") + "\n")
    case.repo.write("use.py", "print(nowhere)\n")
    tree = case.folder / "tree"
    path = os.pathsep.join((".", "", str(tree), os.environ["PATH"]))
    answer = case.review(env={"PATH": path, "PYTHONPATH": str(tree), "RUFF_OUTPUT_FILE": str(proof)})
    assert not proof.exists()
    assert answer.found("use.py") == [("F821", "advisory", 1)]
    assert sorted(entry.name for entry in tree.rglob("*") if entry.name in {".ruff_cache", "__pycache__"}) == []


def test_no_socket_is_opened_and_no_library_is_imported_in_vain(case: Case) -> None:
    keys = ["ghp_" + mixed(36), "sk_live_" + mixed(24), "xoxb-" + mixed(12, "123456789") + "-" + mixed(24)]
    case.repo.write("keys.txt", "".join(f"{key}\n" for key in keys))
    case.repo.write("bot.txt", mixed(9, "123456789") + ":AA" + mixed(33) + "\n")
    assert len(case.review().document["findings"]) == len(keys) + 1  # the audit hook would have ended it


def test_what_is_not_blocking(case: Case) -> None:
    case.repo.write(".pre-commit-config.yaml", "repos:\n  - rev: " + mixed(40, "0123456789abcdef") + "\n")
    emulator = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    case.repo.write("docker-compose.yml", f"environment:\n  CONNECTION: AccountKey={emulator}\n")
    case.repo.write(
        "icon.css", "a { background: url(data:image/png;base64," + mixed(9000, ALPHANUMERIC + "+/") + ") }\n"
    )
    case.repo.write("docs/index.rst", "Title\n=======\n\nUse AKIA" + "IOSFODNN7EXAMPLE.\n")
    assert case.review().document["findings"] == []


def test_links_and_odd_files_do_not_hang_it(case: Case) -> None:
    for name, target in {"random": "/dev/random", "zero": "../../../dev/zero", "loop": "loop", "dir": "."}.items():
        (case.repo.path / name).symlink_to(target)
    case.repo.write("a.txt", "x\n")
    answer = case.review()
    assert answer.document["skipped"] == []
    assert {one["path"]: one["rule"] for one in answer.document["findings"]} == {
        "random": "symlink-absolute",
        "zero": "symlink-outside",
        "loop": "symlink-broken",
    }


def test_large_and_long_things_are_named_and_the_rest_is_reviewed(case: Case) -> None:
    case.repo.write("events.jsonl", b'{"a": "x", "b": [1, 2, 3]}\n' * 640_000)
    case.repo.write("app.min.js", "var a=" + "function(){return 1}," * 6700 + "0;\n")
    for number in range(27):
        case.repo.write(f"src/f{number}.py", "x = (\n" if number == 13 else "x = 1\n")
    answer = case.review()
    assert answer.document["skipped"] == [
        {"path": "events.jsonl", "reason": "rule:large (16.5 MiB, over the 5 MiB that are read)"}
    ]
    assert answer.found("events.jsonl") == [("large-file", "advisory", 0)]
    assert answer.found("src/f13.py") == [("python-syntax", "blocking", 1)]
    assert len(answer.document["files"]) == 28


def test_three_thousand_files_take_seconds(case: Case) -> None:
    kinds = {
        "py": "import os\n\n\ndef f(x):\n    return os.path.join(x, 'a')\n" * 1,
        "json": '{"a": [1, 2, 3]}\n',
        "yaml": "a: 1\nb: [c, d]\n",
        "md": "# Title\n\ntext\n" * 20,
        "ts": "export const x = (a: number) => a + 1;\n" * 30,
    }
    for number in range(3000):
        suffix = list(kinds)[number % len(kinds)]
        case.repo.write(f"d{number // 100}/f{number}.{suffix}", kinds[suffix])
    answer = case.review()
    assert len(answer.document["files"]) == 3000
    assert answer.document["findings"] == []
    assert answer.document["note"].startswith("3000 files checked, 1800 of them parsed")
    assert answer.seconds < 20  # measured: 1.2 s on two busy cores


class TestRuff:
    pytestmark = pytest.mark.skipif(
        not shutil.which("ruff", path=Path(sys.executable).parent), reason="ruff is not here"
    )

    def test_faults_in_added_lines_are_told_by_their_weight(self, case: Case) -> None:
        case.repo.write("a.py", "import os\nimport sys\n\n\ndef f():\n    x = 1\n    return undefined, f''\n")
        base = case.repo.git("rev-parse", case.repo.commit() + "^{tree}")
        case.repo.write("a.py", "import os\nimport sys\nimport re\n\n\ndef f():\n    x = 1\n    return unknown, f''\n")
        assert case.review(base).found("a.py") == [("F401", "nit", 3), ("F821", "advisory", 8), ("F541", "nit", 8)]

    def test_a_name_is_missed_where_its_import_went(self, case: Case) -> None:
        case.repo.write("a.py", "import os\n\nprint(os.curdir)\nprint(other)\n")
        base = case.repo.git("rev-parse", case.repo.commit() + "^{tree}")
        case.repo.write("a.py", "print(os.curdir)\nprint(other)\n")
        assert case.review(base).found("a.py") == [("F821", "advisory", 1)]

    def test_a_noqa_on_its_line_counts_and_one_for_the_file_does_not_if_it_is_new(self, case: Case) -> None:
        case.repo.write(
            "a.py", "# ruff: noqa\nimport os\nimport sys  # noqa: F401\nimport re  # noqa: E501\nimport io  # noqa\n"
        )
        assert case.review().found("a.py") == [("suppression", "advisory", 1), ("F401", "nit", 2), ("F401", "nit", 4)]
        base = case.repo.git("rev-parse", case.repo.commit() + "^{tree}")
        case.repo.write("a.py", "# ruff: noqa\nimport json\n")
        assert case.review(base).found("a.py") == []

    def test_syntax_is_told_once_and_by_the_parser(self, case: Case) -> None:
        case.repo.write("a.py", "def f(:\n")
        assert case.review().found("a.py") == [("python-syntax", "blocking", 1)]

    def test_the_newest_builtins_and_syntax_are_known(self, case: Case) -> None:
        case.repo.write("a.py", "raise ExceptionGroup('x', [PythonFinalizationError()])\n")
        case.repo.write("pkg/__init__.py", "from pkg.x import y\n")
        assert case.review().document["findings"] == []

    def test_many_of_a_kind_become_one_line(self, case: Case) -> None:
        case.repo.write("a.py", "".join(f"print(name{number})\n" for number in range(120)))
        found = case.review().document["findings"]
        assert len(found) == 51
        assert found[0]["message"] == "70 more of this kind in the file"

    @pytest.mark.parametrize(
        ("ruff", "note"),
        [
            ("", "no ruff here"),
            ("exit 2", "ruff did not look (exit status 2)"),
            ("echo no", "ruff did not look (Expecting value: line 1 column 1 (char 0))"),
        ],
    )
    def test_where_it_does_not_look_the_note_says_so(self, case: Case, tmp_path: Path, ruff: str, note: str) -> None:
        folder = tmp_path / "bin"
        folder.mkdir()
        if ruff:
            (folder / "ruff").write_text(f"#!/bin/sh\n{ruff}\n")
            (folder / "ruff").chmod(0o755)
        case.repo.write("a.py", "import os\n")
        elsewhere = replace(case, start=f"import sys; sys.executable = {str(folder / 'python')!r}\n{START}")
        answer = elsewhere.review(env={"PATH": str(folder)})
        assert answer.document["note"] == f"1 file checked, 1 of them parsed, {note}"
        assert answer.document["findings"] == []
