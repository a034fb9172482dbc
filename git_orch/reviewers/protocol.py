"""How a program is started as a reviewer. What an agent's client needs beside that, `client` says."""

from __future__ import annotations

import os

from git_orch import proc
from git_orch.config import BUILT_IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from git_orch.model import ReviewerSettings

    class Reviewer(Protocol):
        """How one kind of reviewer is started."""

        def argv(self, settings: ReviewerSettings, env: Mapping[str, str], /) -> tuple[str, ...]:
            """The command line; it runs in the tree, the request is in its environment."""


_PACKAGE_PARENT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Isolated: nothing of the tree that it runs in, nor of PYTHONPATH, is imported.
_RUN_STATIC = (
    "import os, sys; sys.path.append(sys.argv.pop(1)); "
    "from git_orch.reviewers.static.__main__ import main; sys.exit(main(os.environ))"
)


class _Static:
    """The built-in checks, in an interpreter of their own."""

    def argv(self, _settings: ReviewerSettings, _env: Mapping[str, str]) -> tuple[str, ...]:
        return (proc.interpreter(), "-I", "-c", _RUN_STATIC, _PACKAGE_PARENT)


class _Command:
    """A command line of the user's: the one place where a shell reads one."""

    def argv(self, settings: ReviewerSettings, env: Mapping[str, str]) -> tuple[str, ...]:
        return (proc.find_program("sh", env.get("PATH", os.defpath)) or "/bin/sh", "-c", settings.command)


def of(settings: ReviewerSettings) -> Reviewer:
    """How this reviewer, which is no agent, is run."""
    return _Static() if settings.name == BUILT_IN and not settings.command else _Command()
