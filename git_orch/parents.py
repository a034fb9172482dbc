"""What lies above a tree and steers the tools that look upward: a ruff.toml, a conftest.py, a node_modules."""

from __future__ import annotations

import os

# Each is found by a tool that goes up from the file it looks at, or from its working directory.
_NAMES = (
    ".git",
    "ruff.toml",
    ".ruff.toml",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    ".flake8",
    "mypy.ini",
    ".mypy.ini",
    "pyrightconfig.json",
    ".pylintrc",
    "pylintrc",
    ".bandit",
    ".isort.cfg",
    ".style.yapf",
    ".editorconfig",
    ".pre-commit-config.yaml",
    "node_modules",
    "package.json",
    "tsconfig.json",
    "jsconfig.json",
    "biome.json",
    "biome.jsonc",
    *(f".eslintrc{ending}" for ending in ("", ".js", ".cjs", ".json", ".yaml", ".yml")),
    *(f"eslint.config.{ending}" for ending in ("js", "mjs", "cjs", "ts")),
    *(f".prettierrc{ending}" for ending in ("", ".json", ".yaml", ".yml", ".js", ".toml")),
    ".rubocop.yml",
    ".clang-format",
    ".clang-tidy",
    "rustfmt.toml",
    ".rustfmt.toml",
    "clippy.toml",
    "Cargo.toml",
    ".golangci.yml",
    "go.work",
    "go.mod",
    ".semgrepignore",
    ".envrc",
    ".tool-versions",
    "mise.toml",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "GEMINI.md",
    "QWEN.md",
    "opencode.json",
    ".mcp.json",
)
# A person's own, in the home directory: a client reads them there whatever it looks at.
_OF_CLIENTS = (".claude", ".codex", ".gemini", ".cursor", ".qwen", ".github/copilot-instructions.md")


def foreign_configuration(root: str, *, home: str = "") -> str | None:
    """The first file or folder in or above the root that would steer a tool in a tree below it, or None.

    Args:
        home: the home directory, whose own `.claude` and the like are not foreign.
    """
    for folder in ancestors(root):
        names = _NAMES if home and folder == os.path.realpath(home) else _NAMES + _OF_CLIENTS
        for name in names:
            path = os.path.join(folder, name)
            if os.path.lexists(path):
                return path
    return None


def enclosing_repository(path: str) -> str | None:
    """The repository that the path lies in: a folder with a `.git`, or a bare one; None where there is none."""
    for folder in ancestors(path):
        if os.path.lexists(os.path.join(folder, ".git")) or _is_bare(folder):
            return folder
    return None


def ancestors(path: str) -> list[str]:
    """The path itself and every folder above it, the nearest first."""
    folders = [path]
    while (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    return folders


def _is_bare(folder: str) -> bool:
    return all(os.path.exists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs"))
