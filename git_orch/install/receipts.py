"""What `install` has written and what stood there before: `installed.json` beside the launcher, for `uninstall`.

An edit of a text cannot always be taken back by another edit (was it `{}`, `{ }` or no file?), so the bytes from before
are kept. They go back as they were where the file is still as we left it; where somebody edited it since, only what is
ours is taken out.
"""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, get_args

from git_orch import atomic, jsontext
from git_orch.errors import EnvironmentProblem
from git_orch.key import digest, state_dir
from git_orch.model import SCHEMA_VERSION, Record

if TYPE_CHECKING:
    from portalocker import Lock

    from git_orch.model import Json

Kind = Literal["claude", "codex", "gemini", "copilot", "qwen", "opencode", "cursor", "git-config", "git-hook"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_FILE, _LOCK = "installed.json", "install.lock"
_LOCK_TIMEOUT_S = 30.0


class Receipt(Record):
    """One file that we changed.

    `path` is the file itself, links followed. `original` is what it held before us (None: it was not there), `written`
    the digest of what we left in it. `folders` are the ones made for it, outermost first. `common_dir` says whose
    repository it belongs to (empty: the user's own settings), `settings` what was set in a git configuration, or
    the `mode` that a hook had.
    """

    path: str
    kind: Kind
    original: bytes | None
    written: str
    settings: dict[str, str]
    folders: tuple[str, ...] = ()
    common_dir: str = ""

    def fits(self, content: bytes | None) -> bool:
        """Whether the file still holds what we left in it."""
        return content is not None and digest(content) == self.written

    def to_json(self) -> Json:
        """The record as `installed.json` has it: bytes as base64, so that they come back as they were."""
        original = None if self.original is None else base64.b64encode(self.original).decode("ascii")
        return {**self.fields(), "original": original}

    @classmethod
    def from_json(cls, value: Json) -> Receipt:
        """The record that `to_json` gave.

        Raises:
            TypeError, ValueError, KeyError: it is not one.
        """
        original = None if value["original"] is None else base64.b64decode(value["original"], validate=True)
        known = {name: value[name] for name in cls._fields if name in value}
        return cls(**{**known, "original": original, "folders": tuple(value["folders"])})


@contextlib.contextmanager
def locked(env: Mapping[str, str]) -> Iterator[None]:
    """Nobody else installs or uninstalls meanwhile.

    Raises:
        EnvironmentProblem: the folder cannot be written, or somebody else is at it for half a minute.
    """
    from portalocker.exceptions import BaseLockException  # 120 ms, which other commands need not wait for

    folder = state_dir(env)
    path = os.path.join(folder, _LOCK)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle = _lock(path)
    except BaseLockException as error:
        raise EnvironmentProblem("another `git orch install` is running", "run it again when that is done") from error
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows keeps an open file; the folder goes only if it is empty
            os.unlink(path)
            os.rmdir(folder)
        handle.release()


def _lock(path: str) -> Lock:
    """The lock file is locked and is the one that the path names: whoever held it before has unlinked it."""
    from portalocker import Lock

    while True:
        handle = Lock(path, mode="a", timeout=_LOCK_TIMEOUT_S, check_interval=0.05)
        ours = os.fstat(handle.acquire().fileno())
        with contextlib.suppress(FileNotFoundError):
            there = os.stat(path)
            if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                return handle
        handle.release()


def load(env: Mapping[str, str]) -> dict[str, Receipt]:
    """All receipts by path; none where the file is missing or is not ours to read."""
    raw = atomic.read(os.path.join(state_dir(env), _FILE))
    try:
        value = jsontext.loads(raw or b"{}")
        receipts = [Receipt.from_json(item) for item in value.get("files", ())]
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
    return {receipt.path: receipt for receipt in receipts}


def save(env: Mapping[str, str], receipts: Mapping[str, Receipt]) -> None:
    """These receipts, and no others, are kept; with none there is no file. It may hold a person's secrets: 0600.

    Raises:
        EnvironmentProblem: it cannot be written; the old ones are still there.
    """
    path = os.path.join(state_dir(env), _FILE)
    try:
        if receipts:
            files = [receipt.to_json() for receipt in receipts.values()]
            text = jsontext.dumps({"schema_version": SCHEMA_VERSION, "files": files})
            atomic.write(path, text.encode("ascii"), durable=True)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
    except OSError as error:
        raise unwritable(os.path.dirname(path), error) from error


def unwritable(folder: str, error: OSError) -> EnvironmentProblem:
    """The sentence about a state folder that cannot be written."""
    return EnvironmentProblem(
        f"cannot write {folder}: {error.strerror}", "set XDG_STATE_HOME to a folder that you can write"
    )
