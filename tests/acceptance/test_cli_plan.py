"""`git orch plan FILE`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from git_orch import formats
from tests.conftest import Orch
from tests.unit.format_examples import PLAN_FILE


def test_a_plan_is_told_without_a_repository_and_nothing_is_written(tmp_path: Path, orch: Orch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "work.toml").write_text(PLAN_FILE)
    done = orch("plan", "work.toml", "-j", "3", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("work.toml: 6 tasks, 3 at a time (-j 3)\n")
    assert [path.name for path in folder.iterdir()] == ["work.toml"]


def test_what_a_program_reads(tmp_path: Path, orch: Orch) -> None:
    (tmp_path / "work.toml").write_text(PLAN_FILE)
    told = json.loads(orch("plan", "work.toml", "--json", cwd=tmp_path).stdout)
    jsonschema.validate(told, json.loads(formats.schema("plan")))
    assert told["waves"] == [[["auth-model", "limits", "docs"], ["routes"]], [["auth-api"]], [["changelog"]]]
    assert told["splits"] == [{"task": "routes", "path": "src/api/routes.py", "other": "limits"}]
    assert told["conflicts"] == [
        {"path": "src/api", "tasks": ["auth-api"], "below": ["limits", "routes"]},
        {"path": "src/api/routes.py", "tasks": ["limits", "routes"], "below": []},
    ]
    assert (told["critical_path"], told["serial_reason"]) == (["auth-model", "auth-api", "changelog"], None)
    dot = orch("plan", "work.toml", "--format", "dot", cwd=tmp_path).stdout
    assert '"auth-model" -> "auth-api";' in dot


def test_why_tasks_go_one_after_the_other(tmp_path: Path, orch: Orch) -> None:
    (tmp_path / "work.toml").write_text(PLAN_FILE)
    (tmp_path / "chain.md").write_text("| id | depends on |\n|--|--|\n| a | |\n| b | a |\n\n## a\nx\n\n## b\ny\n")
    for words, reason in (
        (["work.toml", "--serial"], "--serial"),
        (["work.toml", "-j1"], "-j 1"),
        (["work.toml", "-j9", "--strict-files"], "docs does not declare its files (--strict-files)"),
        (["work.toml", "-j9", "--schedule", "waves"], "docs does not declare its files (--schedule waves)"),
        (["chain.md", "-j9"], "no two tasks could run side by side"),
    ):
        told = json.loads(orch("plan", "--json", *words, cwd=tmp_path).stdout)
        assert (told["serial_reason"], told["at_once"]) == (reason, 1)
    told = json.loads(orch("plan", "--json", "work.toml", "-j9", cwd=tmp_path).stdout)
    assert (told["serial_reason"], told["at_once"], told["bound"]) == (None, 9, "-j 9")


def test_all_that_is_wrong_is_said_and_nothing_else(tmp_path: Path, orch: Orch) -> None:
    (tmp_path / "bad.toml").write_text("colour = 1\n[[task]]\nid = 'a'\ndepends_on = ['b']\n")
    done = orch("plan", "bad.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "git-orch: bad.toml: no key `colour`",
        "          bad.toml: task a: it wants one of prompt, prompt_file and command, and has none",
        "          bad.toml: task a: it depends on `b`, which there is none of",
        "          3 faults; nothing was started",
    ]
    for words, said in (
        (["none.toml"], "none.toml: No such file or directory"),
        (["bad.toml", "--schedule", "soon"], "no schedule `soon`"),
        (["bad.toml", "--format", "png"], "no format `png`"),
    ):
        done = orch("plan", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
