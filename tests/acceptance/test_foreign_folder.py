"""An `.orch` that is somebody else's: one sentence with the way out, exit status 4 (docs/output.md)."""

from __future__ import annotations

from tests.conftest import Orch
from tests.repo import Repo


def test_the_command_line_says_it_in_one_sentence(repo: Repo, orch: Orch) -> None:
    repo.commit("first")
    repo.write(".orch/plan/a", "")
    repo.write(".orch/cli.js", "")
    for verb in ("review", "status", "sweep"):
        done = orch(verb)
        assert done.returncode == 4
        assert done.stdout == ""
        assert done.stderr == (
            "git-orch: .orch/ exists and is not ours (it holds plan/ and cli.js).\n"
            "          git config orch.dir .git-orch\n"
        )
