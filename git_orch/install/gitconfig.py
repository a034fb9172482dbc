"""The repository's own configuration: which settings `install` writes there, and how they are taken out again.

git edits a copy, which is then put in place under git's own lock if the file is still what was copied: a run that is
interrupted leaves the whole old or the whole new file, and what will be written can be shown before.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence

from git_orch.git import Git, decode, split_z
from git_orch.install.receipts import Receipt
from git_orch.key import digest

ENABLED = "orch.enabled"
REVIEWERS = "orch.reviewers"
OF_CLIENTS = (ENABLED, REVIEWERS)
"""What an installation for a client sets; git's own hooks have keys of their own."""
_NO_SUCH_KEY = 5
_YES = ("true", "yes", "on", "1")


def path_of(common_dir: str) -> str:
    """The configuration that `git config --local` writes, links followed."""
    return os.path.realpath(os.path.join(common_dir, "config"))


def values(git: Git, raw: bytes, key: str) -> tuple[str, ...]:
    """All values of the key in a configuration's text, in order."""
    done = git.attempt("config", "--file", "-", "-z", "--get-all", key, stdin=raw or b"\n")
    return tuple(decode(item) for item in split_z(done.stdout))


def is_enabled(git: Git, raw: bytes) -> bool:
    """Whether the configuration's text says that the hooks act here."""
    found = values(git, raw, ENABLED)
    return bool(found) and found[-1].casefold() in _YES


def wanted(git: Git, raw: bytes, reviewers: tuple[str, ...]) -> dict[str, str]:
    """What has to be set so that the hooks act here, by these reviewers where some were chosen."""
    missing = {} if is_enabled(git, raw) else {ENABLED: "true"}
    chosen = " ".join(reviewers)
    if chosen and values(git, raw, REVIEWERS) != (chosen,):
        missing[REVIEWERS] = chosen
    return missing


def edited(git: Git, raw: bytes, settings: Mapping[str, tuple[str, ...]]) -> bytes:
    """The configuration's text with exactly these values for each of the keys; no value: without the key.

    Raises:
        GitError: git cannot edit the text.
    """
    with tempfile.TemporaryDirectory(prefix="orch-config-") as folder:
        copy = os.path.join(folder, "config")
        _write(copy, raw)
        for key, items in settings.items():
            _set(git, copy, key, items)
        with open(copy, "rb") as file:
            return file.read()


def without(git: Git, raw: bytes, receipt: Receipt | None) -> bytes:
    """The text as it would be without us; byte for byte where nobody edited it since.

    What was set anew since we wrote it stays. Without a receipt `orch.enabled` alone is known to be ours.

    Raises:
        GitError: git cannot edit the text.
    """
    if receipt is None:
        return edited(git, raw, {ENABLED: ()}) if is_enabled(git, raw) else raw
    original = receipt.original or b""
    if receipt.fits(raw):
        return original
    ours = [key for key, value in receipt.settings.items() if values(git, raw, key) == (value,)]
    return edited(git, raw, {key: values(git, original, key) for key in ours}) if ours else raw


def parting(git: Git, raw: bytes, receipt: Receipt | None, keys: Sequence[str]) -> tuple[bytes, Receipt | None]:
    """The text without these keys of ours, and the receipt for what of ours is left in it, None for nothing.

    Raises:
        GitError: git cannot edit the text.
    """
    if receipt is None:
        there = {key: () for key in keys if values(git, raw, key)}
        return (edited(git, raw, there) if there else raw), None
    rest = {key: value for key, value in receipt.settings.items() if key not in keys}
    if not rest:
        return without(git, raw, receipt), None
    mine = [key for key, value in receipt.settings.items() if key in keys and values(git, raw, key) == (value,)]
    if not mine:
        return raw, receipt
    after = edited(git, raw, {key: values(git, receipt.original or b"", key) for key in mine})
    written = digest(after) if receipt.fits(raw) else receipt.written
    return after, receipt.replace(settings=rest, written=written)


def _write(path: str, raw: bytes) -> None:
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(raw)


def _set(git: Git, path: str, key: str, items: tuple[str, ...]) -> None:
    if not items:
        words = ("config", "--file", path, "--unset-all", key)
        done = git.attempt(*words)
        if done.code not in (0, _NO_SUCH_KEY):
            raise git.failure(words, done)
        return
    git.run("config", "--file", path, "--replace-all", key, items[0])
    for item in items[1:]:
        git.run("config", "--file", path, "--add", key, item)
