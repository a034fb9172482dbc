"""`git orch review` in repositories of all kinds, of all kinds of revisions and paths."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest

from git_orch import formats
from tests.conftest import MakeRepo, Orch
from tests.repo import Repo

BROKEN = "a = (\n"
SARIF = Path(__file__).parents[1] / "schemas/sarif-schema-2.1.0.json"


@pytest.fixture
def history(repo: Repo) -> Repo:
    """The branch main with one commit (tagged v1), and topic, checked out, with two more: the second breaks b.py."""
    repo.write("src/a.py", "a = 1\n")
    repo.write("b.py", "b = 1\n")
    repo.commit("1")
    repo.git("tag", "v1")
    repo.git("checkout", "--quiet", "-b", "topic")
    repo.write("src/a.py", "a = 2\n")
    repo.commit("2")
    repo.write("b.py", "b = (\n")
    repo.commit("3")
    return repo


def header(orch: Orch, *words: str, cwd: Path | None = None) -> str:
    """The first line of a report, without the trees and commits."""
    line = orch("review", *words, cwd=cwd, env={"COLUMNS": "200"}).stdout.splitlines()[0]
    return re.sub(r" \((tree )?[0-9a-f]{7}\)", "", line)


# -- revisions


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["topic"], "Reviewing 2 files, +2 -2: topic against main"),
        (["main.."], "Reviewing 2 files, +2 -2: main.. against main"),
        (["main..topic"], "Reviewing 2 files, +2 -2: main..topic against main"),
        (["main...topic"], "Reviewing 2 files, +2 -2: main...topic against main"),
        (["HEAD"], "Reviewing 1 file, +1 -1: HEAD against HEAD^"),
        (["HEAD~1"], "Reviewing 1 file, +1 -1: HEAD~1 against HEAD~1^"),
        (["v1"], "Reviewing 2 files, +2 -0: v1 against nothing"),
        (["HEAD", "--base", "v1"], "Reviewing 2 files, +2 -2: HEAD against v1"),
        (["--base", "v1"], "Reviewing 2 files, +2 -2: working tree against v1"),
        (["--all-files"], "Reviewing 2 files, +2 -0: working tree against nothing"),
        (["main..", "--", "src"], "Reviewing 1 file, +1 -1: main.. against main"),
        (["main..", "--", ":(exclude)*.py", "b.py"], None),
        (["main..", "--", ":(glob)**/a.py"], "Reviewing 1 file, +1 -1: main.. against main"),
    ],
)
@pytest.mark.usefixtures("history")
def test_what_is_compared_with_what(words: list[str], line: str | None, orch: Orch) -> None:
    if line is None:
        assert orch("review", *words).returncode == 6
    else:
        assert header(orch, *words) == line


@pytest.mark.usefixtures("history")
def test_names_of_what_was_asked_although_the_answer_is_an_old_one(orch: Orch) -> None:
    assert header(orch, "topic") == "Reviewing 2 files, +2 -2: topic against main"
    assert header(orch, "topic", "--base", "v1") == "Reviewing 2 files, +2 -2: topic against v1"


def test_a_branch_that_is_called_like_a_file(history: Repo, orch: Orch) -> None:
    history.write("topic", "a file\n")
    assert header(orch, "topic") == "Reviewing 2 files, +2 -2: topic against main"
    assert header(orch, "--", "topic") == "Reviewing 1 file, +1 -0: working tree against HEAD"


def test_paths_are_those_of_the_current_folder(history: Repo, orch: Orch) -> None:
    src = history.path / "src"
    for words, path in ((["--", "a.py"], "src/a.py"), (["--", "."], "src/a.py"), (["--", ":/b.py"], "b.py")):
        told = json.loads(orch("review", "main..", "--json", *words, cwd=src).stdout)
        assert told["coverage"]["offered"] == [path]
    none = orch("review", "main..", "--", "nosuch", cwd=src)
    assert none.returncode == 6
    assert none.stderr.startswith("git-orch: nothing to review: no changed file matches nosuch\n")


def test_what_is_staged(history: Repo, orch: Orch) -> None:
    history.write("b.py", BROKEN)
    history.git("add", "b.py")
    history.write("b.py", "b = 1\n")
    assert orch("review", "--staged").returncode == 1
    assert orch("review").returncode == 0


def test_nothing_to_review_says_what_there_is_instead(history: Repo, orch: Orch) -> None:
    def said() -> list[str]:
        done = orch("review")
        assert (done.returncode, done.stdout) == (6, "")
        return [re.sub(r" \([0-9a-f]{7}\)", "", line.strip()) for line in done.stderr.splitlines()]

    first = "git-orch: nothing to review: the working tree is as HEAD"
    assert said() == [first, "for the commits of this branch: git orch review main.."]
    history.git("checkout", "--quiet", "main")
    assert said() == [first, "for the last commit: git orch review HEAD"]
    again = orch("review", "v1..main")
    assert again.returncode == 6


def test_a_shallow_clone_is_no_proof(history: Repo, orch: Orch, tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{history.path}", tmp_path / "shallow"], check=True)
    done = orch("review", "HEAD", cwd=tmp_path / "shallow")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "git-orch: base unknown: this clone is shallow (depth 1)\n"
        "          git fetch --unshallow, or in Actions: fetch-depth: 0, or --base REV\n"
    )


# -- repositories


def test_without_a_commit(repo: Repo, orch: Orch) -> None:
    empty = orch("review")
    assert (empty.returncode, empty.stderr) == (6, "git-orch: nothing to review: there is no commit yet, and no file\n")
    repo.write("a.py", BROKEN)
    repo.write("b.py", "b = 1\n")
    done = orch("review", "--json")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "git-orch: no commit yet: reviewing all 2 files as new"
    assert json.loads(done.stdout)["base"]["name"] == "nothing"
    assert orch("review", "HEAD").stderr.startswith("git-orch: there is no commit yet\n")


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_bare_linked_and_from_elsewhere(object_format: str, make_repo: MakeRepo, orch: Orch, tmp_path: Path) -> None:
    repo = make_repo("main", object_format=object_format)
    repo.write("a.py", "a = 1\n")
    repo.commit()
    repo.write("a.py", BROKEN)
    main = orch("review", cwd=repo.path)
    assert main.returncode == 1
    assert "1 | a = (\n   |     ^\n" in main.stdout

    repo.git("worktree", "add", "--quiet", tmp_path / "linked")
    (tmp_path / "linked/new.py").write_text(BROKEN)
    linked = orch("review", cwd=tmp_path / "linked")
    assert (linked.returncode, "--> new.py:1:5" in linked.stdout) == (1, True)
    assert not (tmp_path / "linked/.orch").exists()
    assert orch("status", "--line", cwd=tmp_path / "linked").stdout == "✗1\n"
    assert len(json.loads(orch("status", "--json", cwd=tmp_path / "linked").stdout)["runs"]) == 2

    repo.git("clone", "--quiet", "--bare", ".", tmp_path / "bare")
    bare = orch("review", cwd=tmp_path / "bare")
    assert (bare.returncode, bare.stderr) == (
        2,
        "git-orch: there is no work tree here: name a revision: git orch review REV\n",
    )
    assert orch("review", "HEAD", cwd=tmp_path / "bare").returncode == 0
    assert orch("show", cwd=tmp_path / "bare").returncode == 0

    assert orch("review", cwd=repo.path / ".git").returncode == 2
    assert orch("review", "HEAD", cwd=repo.path / ".git").returncode == 0

    git_dir = f"--git-dir={repo.path / '.git'}"
    for words in ([git_dir, "orch", "status"], [git_dir, f"--work-tree={repo.path}", "orch", "review"]):
        done = subprocess.run(["git", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == (1 if "review" in words else 0), done.stderr


def test_settings_of_one_command(history: Repo) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=history.path, capture_output=True, text=True, check=False)

    assert run("-c", "orch.reviewers=nosuch", "orch", "review", "HEAD").stderr == (
        "git-orch: no reviewer `nosuch` here (claude codex copilot cursor gemini opencode qwen static)\n"
    )
    wrong = run("-c", "orch.review.failOn=bad", "orch", "status")
    assert (wrong.returncode, wrong.stderr.startswith("git-orch: orch.review.failon: `bad` is none of")) == (2, True)
    assert run("-c", "orch.dir=.other", "orch", "review", "HEAD").returncode == 1
    assert (history.path / ".other/pending").is_dir()


def test_a_foreign_folder_is_left_alone(history: Repo, orch: Orch) -> None:
    history.write(".orch/cli.js", "x")
    (history.path / ".orch/plan").mkdir()
    for words in (["review"], ["status"], ["sweep"]):
        done = orch(*words)
        assert (done.returncode, done.stdout) == (4, "")
        assert done.stderr == (
            "git-orch: .orch/ exists and is not ours (it holds plan/ and cli.js).\n"
            "          git config orch.dir .git-orch\n"
        )
    assert sorted(os.listdir(history.path / ".orch")) == ["cli.js", "plan"]
    assert orch("status", "--line").stdout == ""


# -- paths


ODD = {
    b"caf\xe9.py": "caf\\xe9.py",
    b"new\nline.py": "new\\nline.py",
    b"esc\x1b[31m.py": "esc\\x1b[31m.py",
    b"tab\t.py": "tab\\t.py",
    "bidi\u202egnp.py".encode(): "bidi\\u202egnp.py",
    b"quote\"\\.py": 'quote"\\.py',
    "名前.py".encode(): "名前.py",
}  # fmt: skip


@pytest.fixture
def odd(repo: Repo) -> Repo:
    """A repository with new files of odd names, all of them broken."""
    repo.commit()
    for name in ODD:
        repo.write(os.fsdecode(name), BROKEN)
    return repo


@pytest.mark.usefixtures("odd")
def test_odd_paths_are_shown_as_escapes(orch: Orch) -> None:
    for words in (
        ["review"],
        ["review", "--format", "concise"],
        ["review", "--format", "github"],
        ["review", "-n"],
        ["status"],
        ["show"],
        ["show", "--coverage"],
    ):
        done = orch(*words)
        for text in (done.stdout, done.stderr):
            assert all(line.isprintable() for line in text.split("\n"))
        if words[0] == "review":
            assert [shown for shown in ODD.values() if shown not in done.stdout] == []


@pytest.mark.usefixtures("odd")
def test_odd_paths_in_what_programs_read(orch: Orch) -> None:
    told = json.loads(orch("review", "--json").stdout)
    jsonschema.validate(told, json.loads(formats.schema("review")))
    found = {
        base64.b64decode(each["path_b64"]) if "path_b64" in each else each["path"].encode() for each in told["findings"]
    }
    assert found == set(ODD)
    assert [each["path"] for each in told["findings"] if "path_b64" in each] == ["caf\ufffd.py"]
    sarif = json.loads(orch("review", "--format", "sarif").stdout)
    jsonschema.validate(sarif, json.loads(SARIF.read_text()))
    uris = {
        location["physicalLocation"]["artifactLocation"]["uri"]
        for result in sarif["runs"][0]["results"]
        for location in result["locations"]
    }
    assert {"caf%E9.py", "new%0Aline.py", "esc%1B%5B31m.py"} <= uris
    assert len(json.loads(orch("review", "--format", "rdjson").stdout)["diagnostics"]) == len(ODD)
    lines = orch("review", "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["finding"] * len(ODD) + ["verdict"]


@pytest.mark.usefixtures("odd")
def test_an_odd_path_as_a_pathspec(orch: Orch) -> None:
    told = orch("review", "--format", "concise", "--", "caf\udce9.py").stdout
    assert told.startswith("caf\\xe9.py:1:5: blocking: ")
    assert told.splitlines()[1].startswith("findings: 1 blocking; 1 of 1 file")
