"""`git orch mcp`: what an agent may ask for, served over MCP on standard input and output."""

from __future__ import annotations

from importlib.util import find_spec

from git_orch.errors import EnvironmentProblem


def serve(env: dict[str, str]) -> int:
    """Standard input has ended, and nothing that was started for it is left.

    Raises:
        EnvironmentProblem: the package `mcp` is not installed.
    """
    if find_spec("mcp") is None:
        raise EnvironmentProblem(
            "git orch mcp wants the package mcp: pip install 'git-orch[mcp]' (or pipx inject git-orch mcp)"
        )
    from git_orch.commands import mcp_server

    return mcp_server.serve(env)
