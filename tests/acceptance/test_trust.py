"""`orch.toml`: it counts for nothing until a person trusts it, and for nothing again when a byte of it has changed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.acceptance.terminal import Terminal
from tests.fakes import fake_reviewer
from tests.project import Json, Project

COMMAND = f"""\
reviewers = ["static", "shared"]
[review]
failOn = "advisory"
[reviewer.shared]
command = {json.dumps(fake_reviewer("--pass"))}
timeout = 30
"""


def write(project: Project, text: str = COMMAND) -> Path:
    path = project.path / "orch.toml"
    path.write_text(text)
    return path


def by_hand(project: Project, *words: str, keys: bytes = b"") -> tuple[int, str]:
    """The command at a terminal, where these keys are pressed once it asks."""
    with Terminal("git", "orch", *words, cwd=project.path, columns=200, lines=50) as terminal:
        if keys:
            terminal.until("[y/N]")
            terminal.press(keys)
        return terminal.end(), terminal.screen()


def orch(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    """The command where no person is."""
    return subprocess.run(
        ["git", "orch", *words],
        cwd=project.path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        start_new_session=True,
    )


def reviewers(project: Project) -> list[str]:
    """Who reviewed, by a person's hand."""
    code, said = by_hand(project, "review", "--json", "--fresh")
    assert code == 0, said
    record: Json = project.ended()
    return [each["name"] for each in record["reviewers"]]


def test_nothing_of_it_counts_before_it_is_trusted(project: Project) -> None:
    write(project)
    assert reviewers(project) == ["static"]
    assert "is not trusted and counts for nothing: git orch trust" in by_hand(project, "review", "--fresh")[1]
    assert "orch.toml is not trusted" in orch(project, "status").stdout


def test_what_a_person_trusts_counts_until_a_byte_changes(project: Project) -> None:
    path = write(project)
    code, said = by_hand(project, "trust", keys=b"y\n")
    assert (code, "trusted, until a byte of it changes" in said) == (0, True)
    assert "orch.reviewer.shared.command = " in said
    assert "     a command" in said
    assert reviewers(project) == ["static", "shared"]
    assert "not trusted" not in orch(project, "status").stdout
    path.write_text(COMMAND + "\n")
    assert reviewers(project) == ["static"]
    path.write_text(COMMAND)
    assert reviewers(project) == ["static", "shared"]
    assert by_hand(project, "trust", "--revoke")[0] == 0
    assert reviewers(project) == ["static"]


def test_where_no_person_is_nothing_goes_on(project: Project) -> None:
    path = write(project)
    for words in (["review"], ["gate"]):
        done = orch(project, *words)
        assert done.returncode == 2, done.stderr
        assert f"git-orch: {path} is not trusted, or has changed since\n" in done.stderr
        assert "read it, then: git orch trust; where no person is: git config orch.trust SHA256" in done.stderr
    assert project.runs == []
    project.set("orch.trust", sha256(path.read_bytes()).hexdigest())
    assert orch(project, "review").returncode == 0
    assert [each["name"] for each in project.ended()["reviewers"]] == ["static", "shared"]


def test_an_agent_cannot_trust(project: Project) -> None:
    write(project)
    done = orch(project, "trust", "--yes")
    assert (done.returncode, "trust is a person's" in done.stderr) == (2, True)
    with Terminal("git", "orch", "trust", "--yes", cwd=project.path, env={"CLAUDECODE": "1"}) as terminal:
        assert terminal.end() == 2
    assert reviewers(project) == ["static"]


@pytest.mark.parametrize("keys", [b"n\n", b"\n"])
def test_a_no_is_a_no(project: Project, keys: bytes) -> None:
    write(project)
    assert by_hand(project, "trust", keys=keys)[0] == 1
    assert reviewers(project) == ["static"]


def test_a_hook_goes_by_it_once_it_is_trusted(project: Project) -> None:
    write(project)
    project.fire("session-start")
    project.edit("one = 2\n")
    project.fire()
    assert [each["name"] for each in project.ended()["reviewers"]] == ["static"]
    assert by_hand(project, "trust", "--yes")[0] == 0
    project.edit("one = 3\n")
    project.fire()
    assert [each["name"] for each in project.ended()["reviewers"]] == ["static", "shared"]


def test_what_git_is_told_outweighs_it(project: Project) -> None:
    write(project)
    by_hand(project, "trust", "--yes")
    project.only("static")
    assert reviewers(project) == ["static"]


def test_another_work_tree_is_another_file(project: Project, tmp_path: Path) -> None:
    write(project)
    project.repo.git("add", "orch.toml")
    project.repo.commit("shared")
    assert by_hand(project, "trust", "--yes")[0] == 0
    project.repo.git("worktree", "add", "--quiet", tmp_path / "other")
    other = Project.of(tmp_path / "other")
    assert orch(other, "review", "HEAD").returncode == 2
    assert project.runs == []


def test_a_link_counts_for_nothing(project: Project, tmp_path: Path) -> None:
    write(project)
    by_hand(project, "trust", "--yes")
    os.rename(project.path / "orch.toml", tmp_path / "elsewhere.toml")
    os.symlink(tmp_path / "elsewhere.toml", project.path / "orch.toml")
    assert reviewers(project) == ["static"]
    code, said = by_hand(project, "trust", "--yes")
    assert (code, "is a link: it cannot be trusted" in said) == (2, True)


def folder(path: Path) -> None:
    path.mkdir()


def closed(path: Path) -> None:
    path.write_text(COMMAND)
    path.chmod(0)


def large(path: Path) -> None:
    path.write_bytes(b"#" * 70_000)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (folder, "is a folder"),
        (os.mkfifo, "is no plain file"),
        (large, "is larger than 64 KiB"),
        (lambda path: path.symlink_to("nowhere"), "is a link"),
        pytest.param(closed, "Permission denied", marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may read")),
    ],
)
def test_what_is_no_settings_file_is_told_by_its_kind(
    make: Callable[[Path], None], what: str, project: Project
) -> None:
    make(project.path / "orch.toml")
    done = orch(project, "review", "HEAD")
    assert done.returncode == 2
    assert f"orch.toml {what}: its settings cannot count" in done.stderr
    assert "make it a plain file, or remove it" in done.stderr
    assert project.runs == []
    project.fire()
    assert reviewers(project) == ["static"]


def test_a_record_of_another_hand_is_none(project: Project) -> None:
    path = write(project, "reviewers = 'static'\n")
    by_hand(project, "trust", "--yes")
    (record,) = Path(os.environ["XDG_STATE_HOME"], "git-orch/trust").iterdir()
    path.write_text(COMMAND)
    forged = json.loads(record.read_text())
    forged["sha256"] = sha256(path.read_bytes()).hexdigest()
    record.write_text(json.dumps(forged))
    assert reviewers(project) == ["static"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("reviewers = [", "orch.toml is not TOML: "),
        ("enabled = true", "each person sets it: git config orch.enabled ..."),
        ("dir = 'x'", "orch.toml: dir cannot be shared"),
        ("trust = 'x'", "orch.toml: trust cannot be shared"),
        ("colour = 'mauve'\n[review]\nmood = 1", "orch.toml: not known: colour, review.mood"),
        ("settle = 'soon'", "orch.settle: `soon` is not a duration"),
        ("settle = 2026-01-01", "orch.toml: orch.settle is a date; write it as text"),
        ("reviewers = [{}]", "orch.toml: orch.reviewers is a list of words, not of tables"),
    ],
)
def test_what_is_wrong_with_it_is_said(project: Project, text: str, said: str) -> None:
    write(project, text)
    done = orch(project, "trust", "--show")
    assert done.returncode == 2
    assert said in done.stderr


def test_where_there_is_none(project: Project) -> None:
    done = orch(project, "trust")
    assert (done.returncode, "no orch.toml at the top of this work tree" in done.stderr) == (2, True)
