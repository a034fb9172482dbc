"""The hook path and the idle supervisor import nothing that costs: docs/adr/0002."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]

CHEAP = (
    "admission",
    "anchors",
    "atomic",
    "attempt",
    "attendance",
    "budget",
    "by_path",
    "config",
    "containment",
    "cooldown",
    "cursor",
    "decisions",
    "dedup",
    "delivery",
    "dialects",
    "dircache",
    "earlier",
    "errors",
    "events",
    "findings",
    "formats.telling",
    "gate",
    "gating",
    "git",
    "gitevents",
    "guardian",
    "hook",
    "inbox",
    "index",
    "integrity",
    "journal",
    "jsontext",
    "keeping",
    "key",
    "launch",
    "layout",
    "lease",
    "locks",
    "lineage",
    "model",
    "occasion",
    "offers",
    "opened",
    "orchdir",
    "patch",
    "people",
    "proc",
    "quiet",
    "reaper",
    "registry",
    "removal",
    "report",
    "request",
    "retention",
    "reviewers.answers",
    "reviewers.own_json",
    "reviewers.protocol",
    "reviewers.rdjson",
    "reviewers.reading",
    "reviewers.sarif",
    "reviewing",
    "runs",
    "seats",
    "session_name",
    "sessions",
    "shared",
    "sight",
    "snapshot",
    "store",
    "supervisor",
    "system",
    "session_name",
    "target",
    "tips",
    "tree",
    "twin",
    "trigger",
    "untracked",
    "verdict",
    "waking",
    "windows",
    "workspace",
)
COSTLY = frozenset(
    (
        "asyncio",
        "collections",
        "contextlib",
        "dataclasses",
        "enum",
        "functools",
        "hashlib",
        "json",
        "logging",
        "pathlib",
        "re",
        "shutil",
        "signal",
        "subprocess",
        "tempfile",
        "threading",
        "typing",
        "orjson",
        "portalocker",
        "psutil",
        "pygit2",
        "rich",
        "typer",
    )
)
NAME_MODULES = "import sys; sys.path.append(sys.argv[1]); import git_orch.{0}; print(*sys.modules)"


def present() -> list[str]:
    """The cheap modules that there are, packages with each of their modules."""
    package = PROJECT / "git_orch"
    plain = [name for name in CHEAP if (package / f"{name.replace('.', '/')}.py").is_file()]
    nested = [f"{name}.{path.stem}" for name in CHEAP for path in sorted((package / name).glob("[!_]*.py"))]
    return plain + nested


@pytest.mark.parametrize("module", present())
def test_a_cheap_module_imports_nothing_costly(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", NAME_MODULES.format(module), PROJECT],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert f"git_orch.{module}" in imported
    assert imported & COSTLY == set()


def test_the_budget_would_notice() -> None:
    """The check sees a costly import: `git_orch.model` alone, then with one."""
    code = NAME_MODULES.format("model").replace("; print", "; import json; print")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, PROJECT], capture_output=True, text=True, timeout=60, check=True
    )
    assert {"json", "re", "enum"} <= set(done.stdout.split()) & COSTLY
