"""What `git orch` says about itself, and to whoever typed something that it does not take."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from git_orch import cli, entry, formats
from git_orch.commands import speaking
from git_orch.commands import wait as wait_command
from git_orch.install import launcher
from tests.acceptance.terminal import Terminal
from tests.conftest import Orch
from tests.repo import Repo

PROJECT = Path(__file__).parents[2]
MAN = (PROJECT / "man/git-orch.1").read_text(encoding="utf-8")
VERBS = sorted(command.name for command in cli.app.registered_commands if command.name)
HEAVY = {"typer", "click", "pygit2", "orjson", "rich", "portalocker", "psutil", "typing", "dataclasses", "subprocess"}


def of_help(text: str) -> set[str]:
    """The options that a help text lists, each with the name of its value."""
    rows = re.findall(r"^  (-[^ ,]+(?:, --\S+)?(?: [A-Z]+)?)(?:  |$)", text, re.MULTILINE)
    return {row for row in rows if row != "-h, --help"}


def of_man(verb: str) -> set[str]:
    """The options that the manual page has for a verb."""
    section = re.search(rf"^\.Ss {verb}\n(.*?)(?=^\.S[sh] )", MAN, re.MULTILINE | re.DOTALL)
    assert section, verb
    found = set()
    for item in re.findall(r"^\.It (Fl .*)$", section[1], re.MULTILINE):
        words = item.replace("Fl ", "-").replace(" , ", ", ").replace("Ar ", "")
        found.add(words)
    return found


# -- help


@pytest.mark.parametrize("verb", VERBS)
def test_the_manual_has_the_options_that_the_help_has(verb: str, orch: Orch) -> None:
    done = orch(verb, "-h")
    assert (done.returncode, done.stderr) == (0, "")
    assert of_help(done.stdout) == of_man(verb)


def test_the_manual_has_every_verb_and_no_other() -> None:
    assert sorted(re.findall(r"^\.Ss (\S+)$", MAN, re.MULTILINE)) == VERBS
    assert sorted(set(re.findall(r"^\.Nm git orch (\S+)$", MAN, re.MULTILINE))) == VERBS


def test_the_manual_has_every_setting() -> None:
    page = (PROJECT / "docs/settings.md").read_text(encoding="utf-8")
    keys = {key.rpartition(".")[2] for key in re.findall(r"^\| `([a-zA-Z.]+)`", page, re.MULTILINE)}
    assert len(keys) > 15
    section = MAN[MAN.index(".Sh CONFIGURATION") : MAN.index(".Sh ENVIRONMENT")]
    assert {key for key in keys if key not in section} == set()


@pytest.mark.parametrize("words", [["-h"], ["--help"], ["help"], ["help", "orch"]])
def test_the_overview_has_every_verb(words: list[str]) -> None:
    # git itself takes the word after `orch`, so that `git orch --help` opens the manual.
    done = subprocess.run(["git-orch", *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert sorted(re.findall(r"^  ([a-z]+)  ", done.stdout, re.MULTILINE)) == VERBS


def test_the_manual_is_installed_where_git_looks() -> None:
    assert (Path(sys.prefix) / "share/man/man1/git-orch.1").is_file()


@pytest.mark.parametrize("columns", [40, 80])
def test_help_fits_the_terminal(columns: int, tmp_path: Path) -> None:
    for verb in VERBS:
        with Terminal("git-orch", "help", verb, cwd=tmp_path, columns=columns) as terminal:
            assert terminal.end() == 0
            assert max(map(len, terminal.raw.splitlines())) <= columns


def test_help_on_a_verb_is_its_own(orch: Orch) -> None:
    assert orch("help", "wait").stdout == orch("wait", "-h").stdout


# -- wrong words


WRONG = [
    ("rewiew", "no verb `rewiew`; perhaps you meant review\n          git orch help lists what there is"),
    ("help rewiew", "no verb `rewiew`; perhaps you meant review\n          git orch help lists what there is"),
    ("review --stagd", "no option `--stagd`; perhaps you meant --staged\n          git orch review -h shows what"),
    ("wait --timout 5", "no option `--timout`; perhaps you meant --timeout\n          git orch wait -h shows"),
    ("status --line --no", "no option `--no`"),
    ("-x", "no option `-x`\n          git orch -h shows what it takes"),
    ("review --timeout", "--timeout wants a value\n          git orch review -h shows what it takes"),
    ("review --staged=3", "option '--staged' does not take a value\n"),
    ("review --timeout soon", "--timeout: `soon` is not a duration\n          write 90, 90s, 10m or 2h"),
    ("review --fail-on bad", "--fail-on: `bad` is none of blocking, advisory, nit, never"),
    ("review --format jsn", "no format `jsn`; perhaps you meant json\n"),
    ("wait --format jsn", "no format `jsn`; perhaps you meant json\n"),
    ("status --format sarif", "no format `sarif` here: one of: text json"),
    ("review --disposition keep", "--disposition: `keep` is neither discard nor preserve"),
    ("review --detach --foreground", "--detach and --foreground exclude each other: leave one of them out"),
    ("review --staged HEAD", "--staged and a revision exclude each other: leave one of them out"),
    ("review one two", "`two`: one revision or range at a time\n"),
    ("review a.py", "`a.py` is no revision here: for a path, write it after --"),
    ("review --base nosuch", "--base: `nosuch` is no revision here\n"),
    (
        "review --reviewer statik",
        "no reviewer `statik` here; did you mean static? (claude codex ",
    ),
    ("logs last more", "too many words: more\n"),
    ("show abcd", "no run `abcd` here\n"),
    ("show kmkm", "no finding `kmkm` here\n"),
    ("wait abcd", "no run `abcd` here\n"),
    ("wait", "no run of this worktree yet\n          git orch review starts one"),
    ("stop", "which run?\n"),
    ("stop last --all", "a run and --all exclude each other\n          git orch stop RUN, or --all"),
    ("schema", "which schema?\n          one of: review finding status gate doctor plan answer error"),
    ("schema nosuch", "no schema `nosuch`\n          one of: review finding status gate doctor plan answer error"),
    ("hook nosuch", "no event `nosuch`: one of: stop session-start user-prompt-submit"),
]


def test_what_is_wrong_is_said_in_a_sentence(repo: Repo, orch: Orch) -> None:
    repo.write("a.py", "a = 1\n")
    repo.commit()
    repo.git("config", "orch.reviewer.house.command", "true")
    for words, said in WRONG:
        done = orch(*words.split())
        assert (words, done.returncode, done.stdout) == (words, 2, "")
        assert done.stderr.startswith(f"git-orch: {said}"), words
        assert len(done.stderr.splitlines()) <= 2, words


@pytest.mark.usefixtures("repo")
def test_an_empty_word_is_no_revision(orch: Orch) -> None:
    said = "an empty word is no revision: is a variable empty?\n"
    assert orch("review", "").stderr == f"git-orch: {said}"
    assert orch("review", "--base", "").stderr == f"git-orch: --base: {said.replace(': is', chr(10) + ' ' * 10 + 'is')}"


@pytest.mark.usefixtures("repo")
def test_control_characters_of_what_was_typed_are_shown(orch: Orch) -> None:
    for words in (["\x1b[31m"], ["review", "\x1b]0;x\x07"], ["show", "\udcff"], ["schema", "\u202e"]):
        done = orch(*words)
        assert done.returncode == 2
        assert all(line.isprintable() for line in done.stderr.splitlines())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["review", "--json", "--nosuch"], 2),
        (["review", "--format=json", "--base", "nosuch"], 2),
        (["review", "--format", "jsonl"], 6),
        (["wait", "--json"], 2),
        (["show", "--format", "json", "abcd"], 2),
    ],
)
def test_with_json_a_failure_is_one_object_on_standard_output(
    words: list[str], code: int, repo: Repo, orch: Orch
) -> None:
    repo.commit()
    done = orch(*words)
    assert (done.returncode, done.stderr) == (code, "")
    told = json.loads(done.stdout)
    jsonschema.validate(told, json.loads(formats.schema("error")))
    assert told["error"]["exit"] == code


# -- the environment


def test_outside_a_repository(tmp_path: Path, orch: Orch) -> None:
    for words in (["review"], ["status"], ["show"], ["wait"], ["logs"], ["stop", "--all"], ["sweep"]):
        done = orch(*words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (4, "")
        assert done.stderr == "git-orch: not in a git repository: go to one, or `git init` first\n"
    assert orch(cwd=tmp_path).stderr.endswith("\n\n  git orch help     what git-orch does\n")
    line = orch("status", "--line", cwd=tmp_path)
    assert (line.returncode, line.stdout, line.stderr) == (0, "", "")


def test_git_orch_alone_says_where_one_is(repo: Repo, orch: Orch) -> None:
    assert orch().stdout == (
        "On branch main (no commit yet)\n  not reviewed yet\n\nhooks: off in this repository\n\n"
        "  git orch review      review what is not committed\n"
        "  git orch install     review each turn of an agent\n"
        "  git orch help        what else there is\n"
    )
    assert not (repo.path / ".orch").exists()


def test_looking_makes_nothing(repo: Repo, orch: Orch) -> None:
    before = sorted(repo.path.rglob("*"))
    for words in (["status"], ["status", "--json"], ["show"], ["wait"], ["logs"], ["stop", "--all"], ["sweep"]):
        orch(*words)
    assert sorted(repo.path.rglob("*")) == before


@pytest.mark.parametrize("words", [["review"], ["status"], ["show"], ["help"], ["schema", "review"], ["status", "-v"]])
def test_a_closed_pipe_ends_quietly(words: list[str], repo: Repo) -> None:
    repo.write("a.py", "a = (\n")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        ["git-orch", *words], cwd=repo.path, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(writer)
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr
    if words == ["review"]:
        assert done.returncode == 1  # the verdict is what it is


def test_a_full_disk_is_told(repo: Repo) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            ["git-orch", "status"],
            cwd=repo.path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 4
    assert done.stderr == "git-orch: cannot write to standard output: No space left on device\n"


def test_a_pipe_that_does_not_wait_gets_everything(repo: Repo) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with subprocess.Popen(["git-orch", "schema", "review"], stdout=writer, cwd=repo.path) as process:
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            text = pipe.read().decode()
    assert process.returncode == 0
    assert text == formats.schema("review")


def test_a_bug_is_told_as_a_report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(_env: object) -> bool:
        raise ZeroDivisionError("made \x1b up")

    monkeypatch.setattr(launcher, "refresh", broken)
    monkeypatch.setattr(speaking, "_silenced", set())
    assert entry.run(["review", "--json"], dict(os.environ)) == 3
    told = capsys.readouterr()
    assert json.loads(told.out)["error"]["code"] == "bug"
    assert "Please report it" in told.err
    assert "ZeroDivisionError: made \\x1b up" in told.err
    assert entry.run(["review"], dict(os.environ)) == 3
    assert capsys.readouterr().out == ""


# -- quick verbs


@pytest.mark.parametrize("words", [["status", "--line"], ["wait", "last"], ["wait"]])
def test_quick_verbs_load_nothing_that_is_slow(words: list[str], repo: Repo, orch: Orch) -> None:
    repo.write("a.py", "a = (\n")
    orch("review")
    code = (
        "import sys; from git_orch import entry; import os; "
        f"code = entry.run({words!r}, dict(os.environ)); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repo.path, capture_output=True, text=True, timeout=60, check=True
    )
    assert "git_orch.commands.looking" in done.stderr.split()
    assert HEAVY & set(done.stderr.split()) == set()
    assert done.stdout


@pytest.mark.parametrize(
    ("words", "plain"),
    [
        ("", ([], {})),
        ("9f3a", (["9f3a"], {})),
        ("--timeout 5 9f3a", (["9f3a"], {"--timeout": "5"})),
        ("last --timeout=5 --json", (["last"], {"--timeout": "5", "--format": "json"})),
        ("--format concise", ([], {"--format": "concise"})),
        ("-h", None),
        ("a b", None),
        ("--timeout", None),
        ("--json=1", None),
        ("--nosuch", None),
        ("-- a", None),
    ],
)
def test_plain_words(words: str, plain: object) -> None:
    assert entry.plain_words(words.split(), ("--timeout", "--format")) == plain


def test_wait_has_no_option_that_the_quick_way_does_not_know(orch: Orch) -> None:
    """Else it would be taken for a wrong word there and go the slow way, unnoticed."""
    options = {row.split()[0] for row in of_help(orch("wait", "-h").stdout)}
    assert options == {"--timeout", "--format", "--json"}
    assert wait_command.wait.__kwdefaults__ is None
