"""The project's own files agree with each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))


def test_pre_commit_runs_the_versions_of_the_extra_dev(pyproject: dict[str, Any]) -> None:
    pinned = set(pyproject["project"]["optional-dependencies"]["dev"])
    hooks = re.findall(r'"(ruff==[^"]+)"', (PROJECT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert hooks
    assert set(hooks) <= pinned


def test_every_decision_is_in_the_list_and_has_its_four_parts() -> None:
    decisions = sorted((PROJECT / "docs/adr").glob("[0-9]*.md"))
    listed = re.findall(r"\]\((\d{4}-[^)]+\.md)\)", (PROJECT / "docs/adr/README.md").read_text(encoding="utf-8"))
    assert listed == [path.name for path in decisions]
    for path in decisions:
        parts = re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert parts == ["Context", "Decision", "Alternatives", "Consequences"], path.name


def test_the_glossary_is_sorted_and_says_each_word_once() -> None:
    rows = re.findall(
        r"^\| ([a-zA-Z][^|]*?) \|", (PROJECT / "docs/glossary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    words = [row.casefold() for row in rows[1:]]
    assert len(words) > 40
    assert words == sorted(set(words))


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/glossary.md", "docs/platforms.md"])
def test_links_lead_to_files_that_exist(name: str) -> None:
    page = PROJECT / name
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []
