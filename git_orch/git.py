"""git's own commands as small verbs: lists with `-z`, no environment of a caller's, no prompt, no hook, no lock.

Every command of ours goes through `Git.run`. Nothing here ever writes to the user's repository.
"""

from __future__ import annotations

import os

from git_orch import proc
from git_orch.errors import EnvironmentProblem, GitError
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# What a user may have set that would make a read-only command run a program, wait, lock or write.
QUIET = (
    "core.hooksPath=/dev/null",
    # Of the hooks in the configuration (git 2.54) those that commands of ours set off; by event from git 2.55 on.
    "hook.post-index-change.enabled=false",
    "hook.reference-transaction.enabled=false",
    "hook.pre-auto-gc.enabled=false",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "core.safecrlf=false",
    "core.fsync=none",
    "core.ignoreStat=false",
    "core.quotePath=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
)

# A caller's GIT_DIR, GIT_INDEX_FILE & co. point git at the wrong repository (a post-commit hook exports them, with a
# lock file as the index). What says where git and its settings lie, how far it may look for a repository, and how to
# reach a remote, is kept.
_KEPT = (
    "GIT_ATTR_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EXEC_PATH",
    "GIT_PROXY_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
)
_KEPT_PREFIXES = ("GIT_CONFIG_", "GIT_SSL_", "GIT_HTTP_")


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """`env` without the variables that steer git elsewhere, and with those that keep it from asking or locking.

    Its messages are English; by LANGUAGE, for LC_ALL would change what a clean filter makes of a file.
    """
    kept = {name: value for name, value in env.items() if not name.startswith("GIT_") or _is_kept(name)}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LANGUAGE": "C"}


def without_git(env: Mapping[str, str]) -> dict[str, str]:
    """`env` without any variable of git's: what a reviewer gets."""
    return {name: value for name, value in env.items() if not name.startswith("GIT_")}


def _is_kept(name: str) -> bool:
    return name in _KEPT or name.startswith(_KEPT_PREFIXES)


class Git(Record):
    """One way of looking at a repository. Fields left empty are git's to find out.

    `objects` is where new objects go (the scratch store's folder, never the user's) and where they are looked for
    first; `alternate` is a folder that they are looked for after that.
    """

    env: dict[str, str]
    cwd: str = ""
    git_dir: str = ""
    work_tree: str = ""
    index: str = ""
    objects: str = ""
    alternate: str = ""
    config: tuple[str, ...] = ()

    def run(self, *words: str | bytes, stdin: bytes = b"", timeout_s: float = 120.0) -> bytes:
        """What the command printed.

        Raises:
            GitError: it ended with a status other than 0, or did not end in time.
            EnvironmentProblem: there is no git.
        """
        done = self.attempt(*words, stdin=stdin, timeout_s=timeout_s)
        if done.code != 0:
            raise self.failure(words, done, timeout_s)
        return done.stdout

    def attempt(
        self,
        *words: str | bytes,
        stdin: bytes = b"",
        stdout_fd: int | None = None,
        timeout_s: float = 120.0,
    ) -> proc.Finished:
        """How the command ended, whatever its status."""
        command = self.command(*words, stdin=stdin, stdout_fd=stdout_fd)
        return _finished([command], timeout_s)[0]

    def command(self, *words: str | bytes, stdin: bytes = b"", stdout_fd: int | None = None) -> proc.Command:
        """The command as it is started."""
        argv: list[str | bytes] = ["git"]
        if self.cwd:
            argv += ["-C", self.cwd]
        for setting in (*QUIET, *self.config):
            argv += ["-c", setting]
        return proc.Command(argv=[*argv, *words], env=self._environment(), stdin=stdin, stdout_fd=stdout_fd)

    def line(self, *words: str | bytes) -> str:
        """The one line that the command printed, without its end."""
        return decode(self.run(*words)).rstrip("\n")

    @staticmethod
    def failure(words: tuple[str | bytes, ...], done: proc.Finished, timeout_s: float = 0.0) -> GitError:
        """The error that tells how a command failed."""
        said = f"not done after {timeout_s:.0f} s" if done.timed_out else done.stderr.decode("utf-8", "replace")
        return GitError(tuple(os.fsdecode(word) for word in words), done.code, said)

    def _environment(self) -> dict[str, str]:
        env = environment(self.env)
        places = {
            "GIT_DIR": self.git_dir,
            "GIT_WORK_TREE": self.work_tree,
            "GIT_INDEX_FILE": self.index,
            "GIT_OBJECT_DIRECTORY": self.objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": self.alternate,
        }
        env.update({name: place for name, place in places.items() if place})
        return env


def run_both(
    one: tuple[Git, tuple[str, ...]], other: tuple[Git, tuple[str, ...]], *, timeout_s: float = 120.0
) -> tuple[proc.Finished, proc.Finished]:
    """Two commands that do not wait for each other, run at the same time, have both ended well.

    Raises:
        GitError: one of them did not.
        EnvironmentProblem: there is no git.
    """
    done = attempt_both(one, other, timeout_s=timeout_s)
    for (git, words), finished in zip((one, other), done, strict=True):
        if finished.code != 0:
            raise git.failure(words, finished, timeout_s)
    return done


def attempt_both(
    one: tuple[Git, tuple[str, ...]], other: tuple[Git, tuple[str, ...]], *, timeout_s: float = 120.0
) -> tuple[proc.Finished, proc.Finished]:
    """How two commands ended that do not wait for each other, run at the same time, whatever their status.

    Raises:
        EnvironmentProblem: there is no git.
    """
    first, second = _finished([git.command(*words) for git, words in (one, other)], timeout_s)
    return first, second


def _finished(commands: list[proc.Command], timeout_s: float) -> list[proc.Finished]:
    try:
        return proc.run_together(commands, timeout_s=timeout_s)
    except FileNotFoundError as error:
        raise EnvironmentProblem("git is not on PATH", "install git 2.38 or newer") from error


def decode(raw: bytes) -> str:
    """Bytes of git's as text that can be turned back into the same bytes."""
    return raw.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The bytes that `decode` made the text of."""
    return text.encode("utf-8", "surrogateescape")


def split_z(raw: bytes) -> list[bytes]:
    """The items of a NUL-terminated list."""
    return raw.split(b"\0")[:-1] if raw.endswith(b"\0") else [item for item in raw.split(b"\0") if item]
