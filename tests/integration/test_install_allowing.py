"""`git orch install CLIENT --print allow`: rules in each client's own form, for what reads or asks, and no more."""

from __future__ import annotations

import json
import tomllib

import pytest

from git_orch.commands import installing
from git_orch.errors import UsageError
from git_orch.install import allowing
from git_orch.install.clients import CLIENTS

WITH = [name for name in CLIENTS if allowing.has_rules(CLIENTS[name])]
PERSONS = ("stop", "land", "--allow", "trust", "mute", "unmute", "dismiss", "sweep", "install", "uninstall", "run")


@pytest.mark.parametrize("name", WITH)
def test_they_name_nothing_that_is_a_persons(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    installing.print_line("allow", name)
    said = capsys.readouterr()
    words = {word.strip("\"'[](),:*=").removeprefix("Bash(") for word in said.out.split()}
    assert not words.intersection(PERSONS)
    assert "nothing was written" in said.err
    assert "git orch *" not in said.out


def test_they_are_of_the_clients_own_form() -> None:
    for name in ("claude", "qwen", "opencode"):
        assert list(json.loads(allowing.rules(CLIENTS[name]).text)) in (["permissions"], ["permission"])
    rules = tomllib.loads(allowing.rules(CLIENTS["gemini"]).text)["rule"]
    assert [rule["decision"] for rule in rules] == ["allow", "allow"]
    assert rules[0]["commandPrefix"] == [f"git orch {verb}" for verb in allowing.VERBS]


def test_where_a_rule_could_not_be_narrow_enough_there_is_none() -> None:
    with pytest.raises(UsageError) as refused:
        installing.print_line("allow", "cursor")
    assert "MCP server" in refused.value.hint
