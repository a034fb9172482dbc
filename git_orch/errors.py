"""Every way in which git-orch says no: an exception a cause, each with its exit code and a way out."""

from __future__ import annotations

EXIT_PASS = 0
EXIT_NO = 1
EXIT_USAGE = 2
EXIT_BUG = 3
EXIT_ENVIRONMENT = 4
EXIT_UNREVIEWED = 5
EXIT_NOTHING = 6
EXIT_INTERRUPTED = 130


class OrchError(Exception):
    """Something that a person can put right; `hint` says how.

    `code` is the stable word that `--format json` prints; `exit_code` is the one of docs/output.md.
    """

    code = "error"
    exit_code = EXIT_ENVIRONMENT

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(OrchError):
    """The command line or a setting is wrong."""

    code = "usage"
    exit_code = EXIT_USAGE


class EnvironmentProblem(OrchError):
    """The machine does not allow it: no repository, no git, a full disk, a HOME that cannot be written."""

    code = "environment"


class GitError(OrchError):
    """A git command failed; `stderr` is what it said."""

    code = "git"

    def __init__(self, argv: tuple[str, ...], returncode: int, stderr: str) -> None:
        last = stderr.strip().splitlines()[-1] if stderr.strip() else f"exit status {returncode}"
        super().__init__(f"git {argv[0] if argv else ''} failed: {last}")
        self.argv = argv
        self.returncode = returncode
        self.stderr = stderr


class ForeignDirectory(OrchError):
    """`.orch` exists and is not ours."""

    code = "foreign-directory"


class NothingToReview(OrchError):
    """There is no difference to review."""

    code = "nothing-to-review"
    exit_code = EXIT_NOTHING


class BaseUnknown(OrchError):
    """What to compare with cannot be proved."""

    code = "base-unknown"
    exit_code = EXIT_USAGE


class NoSuchRun(OrchError):
    """No run, or more than one, has that name."""

    code = "no-such-run"
    exit_code = EXIT_USAGE
