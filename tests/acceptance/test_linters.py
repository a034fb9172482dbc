"""Real linters as reviewers: what they print as SARIF comes in with path, line, rule and severity."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import Json, Project

BIN = Path(sys.executable).parent
LINTERS = {
    "ruff": f'xargs -0 {BIN}/ruff check --isolated --select F --no-cache --output-format=sarif --exit-zero -- <"$ORCH_FILES"',
    "bandit": f'xargs -0 {BIN}/bandit --quiet --format sarif --exit-zero -- <"$ORCH_FILES"',
}
FAULTY = "import subprocess\n\nfrom os import *\n\n\ndef run(words):\n    return subprocess.call(words, shell=True)\n"


def review(project: Project, name: str) -> Json:
    """What `git orch review` told, by that linter alone."""
    project.command(name, LINTERS[name], output="sarif")
    done = subprocess.run(
        ["git", "orch", "review", "--json", "--reviewer", name],
        cwd=project.path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told: Json = json.loads(done.stdout)
    assert "error" not in told, told
    return told


@pytest.mark.parametrize(("name", "rule", "line"), [("ruff", "F403", 3), ("bandit", "B602", 7)])
def test_a_linters_findings_come_in(project: Project, name: str, rule: str, line: int) -> None:
    project.edit(FAULTY)
    told = review(project, name)
    assert told["verdict"] in ("findings", "pass"), told["reason"]
    found = {(each["rule"], each["path"], each["start_line"], each["reviewer"]) for each in told["findings"]}
    assert (rule, "a.py", line, name) in found


@pytest.mark.parametrize("name", sorted(LINTERS))
def test_a_linter_that_finds_nothing_passes_and_names_what_it_read(project: Project, name: str) -> None:
    project.edit('"""Clean."""\n')
    told = review(project, name)
    assert (told["verdict"], told["findings"]) == ("pass", [])
    assert told["coverage"]["reviewed"] == 1 or told["coverage"]["reviewed"] == ["a.py"]
