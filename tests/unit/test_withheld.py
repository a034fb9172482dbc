"""Which files configure agents."""

from __future__ import annotations

import pytest

from git_orch import withheld


@pytest.mark.parametrize(
    "path",
    [
        ".claude/settings.json",
        ".claude",
        "sub/.claude/commands/x.md",
        "CLAUDE.md",
        "docs/Claude.MD",
        "CLAUDE.local.md",
        ".mcp.json",
        "AGENTS.md",
        "AGENTS.override.md",
        ".codex/config.toml",
        ".agents/skills/x/SKILL.md",
        ".gemini/settings.json",
        "GEMINI.md",
        ".env",
        "opencode.json",
        "opencode.jsonc",
        ".opencode/plugin/x.js",
        ".cursor/rules/a.mdc",
        ".cursorrules",
        ".qwen/settings.json",
        "QWEN.md",
        ".github/copilot-instructions.md",
        ".github/copilot/settings.json",
        ".github/instructions/a.instructions.md",
        ".github/hooks/x.json",
        ".github/agents/a.md",
        ".github/mcp.json",
        "sub/.github/copilot-instructions.md",
        ".vscode/mcp.json",
    ],
)
def test_it_steers(path: str) -> None:
    assert withheld.steers(path)


@pytest.mark.parametrize(
    "path",
    [
        "claude.py",
        "src/agents.py",
        "docs/agents/readme.md",
        "README.md",
        ".github/workflows/ci.yml",
        ".github/CODEOWNERS",
        ".vscode/launch.json",
        "env",
        ".envrc",
        "hooks/agents.md.py",
        "instructions/a.md",
        ".gitignore",
    ],
)
def test_it_does_not(path: str) -> None:
    assert not withheld.steers(path)
