"""What there is on this machine: the clients on PATH with their versions, and the tools that manage git's hooks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from git_orch import git, proc
from git_orch.install import clients
from git_orch.install.clients import CLIENTS
from git_orch.layout import Layout

VERSION_TIMEOUT_S = 10.0
_PROGRAMS = {"cursor": "cursor-agent"}
_NUMBER = re.compile(r"\d+(?:\.\d+)+\S*")
_MANAGERS = {
    "husky": (".husky",),
    "lefthook": ("lefthook.yml", ".lefthook.yml", "lefthook.yaml", "lefthook.toml"),
    "pre-commit": (".pre-commit-config.yaml",),
}


def versions(env: Mapping[str, str]) -> dict[str, str]:
    """The clients on PATH, each with the version that it tells itself; "" for one that tells none in time."""
    folders = env.get("PATH", os.defpath)
    found = {name: proc.find_program(_PROGRAMS.get(name, name), folders) for name in CLIENTS}
    there = {name: program for name, program in found.items() if program}
    asked = [proc.Command(argv=[program, "--version"], env=git.without_git(env)) for program in there.values()]
    try:
        done = proc.run_together(asked, timeout_s=VERSION_TIMEOUT_S)
    except OSError:
        return dict.fromkeys(there, "")
    return {name: _version(each.stdout) if each.code == 0 else "" for name, each in zip(there, done, strict=True)}


def _version(said: bytes) -> str:
    number = _NUMBER.search(said.decode("utf-8", "replace"))
    return number.group().rstrip(".,)") if number else ""


def proposed(found: Mapping[str, str], env: Mapping[str, str]) -> str:
    """The client in whose session we are asked, else the first that is there, else Claude."""
    return clients.in_use(env) or next(iter(found), "claude")


def hook_managers(place: Layout) -> list[str]:
    """Those of husky, lefthook and pre-commit that this work tree has."""
    top = place.worktree
    return [name for name, files in _MANAGERS.items() if any(os.path.exists(os.path.join(top, f)) for f in files)]
