"""docs/reviewers.md tells the command lines that the adapters have, and names every client."""

from __future__ import annotations

from pathlib import Path

import pytest

from git_orch.config import AGENTS
from git_orch.reviewers import agents
from git_orch.reviewers.client import Call

PAGE = (Path(__file__).parents[2] / "docs" / "reviewers.md").read_text(encoding="utf-8")
CALL = Call(tree="TREE", folder="DIR", schema="SCHEMA")


def listed() -> dict[str, str]:
    """Each client's options on the page, its lines joined."""
    block = PAGE.partition("test_docs_reviewers.py -->\n```\n")[2].partition("```")[0]
    found: dict[str, str] = {}
    name = ""
    for line in block.splitlines():
        name = line.split(" ", 1)[0] or name
        found[name] = f"{found.get(name, '')} {line.removeprefix(name).strip()}".strip()
    return found


def test_the_page_lists_every_client_and_no_other() -> None:
    assert sorted(listed()) == sorted(AGENTS)


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_the_page_has_the_options_of_the_client(name: str) -> None:
    flags = agents.client(name).flags(CALL)
    assert listed()[name] == " ".join(" ".join(flag.words) for flag in flags)
    assert f"| {agents.client(name).TITLE} | `{agents.client(name).PROGRAMS[0]}` |" in PAGE
