"""A real repository, driven by real git, for tests."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

GIT_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Repo:
    """A repository in a folder of the test; git runs there in the sealed environment."""

    path: Path

    def git(self, *args: str | Path, stdin: str | bytes = b"") -> str:
        """What git printed, without the last newline; bytes that are not UTF-8 come as surrogates.

        Raises:
            AssertionError: git failed; the message is what it said.
        """
        return self.git_bytes(*args, stdin=stdin).decode("utf-8", "surrogateescape").removesuffix("\n")

    def git_bytes(self, *args: str | Path, stdin: str | bytes = b"") -> bytes:
        """What git printed, byte for byte."""
        given = stdin.encode("utf-8", "surrogateescape") if isinstance(stdin, str) else stdin
        done = subprocess.run(
            ["git", *map(str, args)],
            cwd=self.path,
            input=given,
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            check=False,
        )
        said = done.stderr.decode(errors="replace")
        assert done.returncode == 0, f"git {' '.join(map(str, args))} in {self.path}: exit {done.returncode}\n{said}"
        return done.stdout

    def write(self, path: str | Path, content: str | bytes, *, mode: int | None = None) -> Path:
        """The file holds the content; its folders were made where missing."""
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
        if mode is not None:
            target.chmod(mode)
        return target

    def commit(self, message: str = "change", *, add: bool = True) -> str:
        """The object id of a new commit of everything in the worktree, or (`add=False`) of the index as it is."""
        if add:
            self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--no-verify", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")


def init_repo(path: Path, *, object_format: str = "sha1", bare: bool = False, branch: str = "main") -> Repo:
    """A new repository without a commit at the path."""
    path.mkdir(parents=True, exist_ok=True)
    repo = Repo(path)
    kind = ["--bare"] if bare else []
    repo.git("init", "--quiet", f"--object-format={object_format}", f"--initial-branch={branch}", *kind)
    return repo
