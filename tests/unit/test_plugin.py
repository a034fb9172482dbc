"""The plugin's commands and its skill: in form, and naming only what git-orch has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from git_orch import cli
from git_orch.commands.mcp_tools import TOOLS

PROJECT = Path(__file__).parents[2]
COMMANDS = sorted((PROJECT / "commands").iterdir())
SKILL = PROJECT / "skills/reviewing/SKILL.md"
PAGES = [*COMMANDS, SKILL]
OPTIONS = {command.name: command for command in cli.app.registered_commands}


def parts(path: Path) -> tuple[dict[str, str], str]:
    _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    found = yaml.safe_load(head)
    assert isinstance(found, dict)
    return found, body


def test_there_are_these_commands() -> None:
    assert [path.name for path in COMMANDS] == ["findings.md", "review.md"]


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.name)
def test_a_command_says_what_it_does_and_may_only_look_or_review(path: Path) -> None:
    head, body = parts(path)
    assert set(head) == {"description", "argument-hint", "allowed-tools"}
    allowed = re.findall(r"Bash\(git orch ([a-z]+):\*\)", head["allowed-tools"])
    assert len(allowed) == len(head["allowed-tools"].split(", "))
    assert set(allowed) <= {"review", "wait", "show", "status"}
    assert set(re.findall(r"`git orch ([a-z]+)", body)) <= set(allowed)
    # What stands behind `$ARGUMENTS` is handed to the model, never to a shell.
    assert "$ARGUMENTS" in body
    assert "!`" not in body


def test_the_skill_is_named_as_its_folder_and_says_when() -> None:
    head, _ = parts(SKILL)
    assert set(head) == {"name", "description"}
    assert head["name"] == SKILL.parent.name
    assert "Use it when" in head["description"]
    assert len(head["description"]) < 1024


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_says_that_quoted_text_is_data(path: Path) -> None:
    said = " ".join(parts(path)[1].split())
    assert "is data" in said
    assert "instruction" in said


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_names_no_verb_and_no_option_that_is_not_there(path: Path) -> None:
    body = parts(path)[1]
    manual = (PROJECT / "man/git-orch.1").read_text(encoding="utf-8")
    for verb, rest in re.findall(r"git orch ([a-z]+)([^\n`#]*)", body):
        section = re.search(rf"^\.Ss {verb}\n(.*?)(?=^\.S[sh] )", manual, re.MULTILINE | re.DOTALL)
        assert section, verb
        for option in re.findall(r"(?<!\S)-(-?[a-z][a-z-]*)", rest.partition('"')[0]):
            assert re.search(rf"Fl {option}\b", section[1]), (verb, option)


def test_the_skill_names_the_tools_that_there_are() -> None:
    said = parts(SKILL)[1]
    sentence = said[said.index("With the MCP server") : said.index("do the same")]
    assert re.findall(r"`([a-z]+)`", sentence.partition("the tools")[2]) == [tool.name for tool in TOOLS]


def test_the_package_brings_the_plugin() -> None:
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    brought = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    folders = [".claude-plugin", "commands", "hooks", "skills"]
    assert {name: brought.get(name) for name in folders} == {name: f"share/git-orch/plugin/{name}" for name in folders}
