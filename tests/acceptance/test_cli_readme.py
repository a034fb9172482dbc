"""README's first verdict is what is printed. UPDATE_GOLDEN=1 writes it anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

from git_orch import cli
from tests.conftest import Orch
from tests.repo import Repo

README = Path(__file__).parents[2] / "README.md"
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))  # the tests themselves see none of the environment
BLOCK = re.compile(r"(?<=\$ git orch review\n)Reviewing .*?(?=^```$)", re.MULTILINE | re.DOTALL)
ORDERS = """\
class Orders:
    def find(self, name):
{}
"""
UNFINISHED = """\
<<<<<<< HEAD
        return self.rows.get(name)
=======
        return self.rows[name]
>>>>>>> topic"""
KEY = "AKIA" + "QYLPMN5HFIQR7XYA"  # in two parts, so that no file of this project holds anything that looks like a key


def without_chance(text: str) -> str:
    """The text without what differs from run to run: its name and its times, as wide as they were."""
    text = re.sub(r"(?<=  run )[0-9a-f]{4}", "9f3a", text)
    return re.sub(r"(?<=  )( *)\d[\d.]* m?s(?=\s)", lambda match: "0.4 s".rjust(len(match[0])), text)


def test_the_verdict_of_the_readme_is_what_is_printed(repo: Repo, orch: Orch) -> None:
    repo.write("src/orders.py", ORDERS.format("        return self.rows.get(name)"))
    repo.commit("A shop")
    repo.write("src/orders.py", ORDERS.format(UNFINISHED))
    repo.write(
        "deploy/env.sh", f"#!/bin/sh\nexport AWS_REGION=eu-central-1\nexport AWS_ACCESS_KEY_ID={KEY}\n", mode=0o755
    )
    repo.write(".env.local", "PASSWORD=x\n")
    printed = without_chance(orch("review").stdout)
    page = README.read_text(encoding="utf-8")
    if UPDATE:
        page = BLOCK.sub(lambda _: printed, page, count=1)
        README.write_text(page, encoding="utf-8")
    (shown,) = BLOCK.findall(page)
    assert without_chance(shown) == printed


def test_the_readme_names_only_verbs_and_options_that_there_are(orch: Orch) -> None:
    page = README.read_text(encoding="utf-8")
    verbs = {command.name for command in cli.app.registered_commands}
    named = re.findall(r"git orch ([a-z]+)", page)
    assert set(named) <= verbs
    assert len(named) > 8
    for verb, words in re.findall(r"git orch ([a-z]+)((?: --?[a-z-]+)+)", page):
        known = orch(verb, "-h").stdout
        assert [word for word in words.split() if f" {word}" not in known] == []
