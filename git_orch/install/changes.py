"""Changes of a person's files: planned, checked, and carried out together or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from git_orch.errors import EnvironmentProblem, OrchError
from git_orch.git import Git
from git_orch.install import edit, files, gitconfig, hooksfile, receipts
from git_orch.install.clients import Client
from git_orch.install.receipts import Receipt
from git_orch.key import digest
from git_orch.layout import Layout
from git_orch.model import Record


class Change(Record):
    """One file that is to change: its path as a person knows it, what it holds before and after, the receipt for it.

    `what` says in words what comes or goes. Without a receipt nothing of ours is left in the file, and the folders go
    that were made for it; `exact` where it is then byte for byte what it was before us.
    """

    path: str
    kind: receipts.Kind
    before: bytes | None
    after: bytes | None
    what: str
    receipt: Receipt | None = None
    folders: tuple[str, ...] = ()
    mode: int = 0o600
    exact: bool = False

    @property
    def real_path(self) -> str:
        """The file itself, links followed."""
        return os.path.realpath(self.path)

    def do(self) -> None:
        """The file is as planned.

        Raises:
            EnvironmentProblem: it was changed meanwhile, or cannot be written; it is as it was.
        """
        self._replace(self.before, self.after)

    def undo(self) -> None:
        """The file is as it was before, if nobody changed it since."""
        self._replace(self.after, self.before)

    def _replace(self, before: bytes | None, after: bytes | None) -> None:
        if self.kind == "git-config":
            files.replace_git_config(self.real_path, before, after)
        else:
            files.replace(self.real_path, before, after, mode=self.mode)
        if after is None:
            files.remove_folders(self.receipt.folders if self.receipt else self.folders)


class Plan(Record):
    """The changes, what a person should know beside them, and the receipts of files that have nothing of ours any more.

    `launcher` is the launcher's path where that is written or taken away.
    """

    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    launcher: str = ""

    def check(self) -> Plan:
        """The plan itself, if all its files can be written.

        Raises:
            EnvironmentProblem: one cannot.
        """
        for change in self.changes:
            files.check_writable(change.real_path)
        return self


def carry_out(plan: Plan, env: Mapping[str, str]) -> None:
    """The changes are made, and what is kept about them says so. The caller holds the lock.

    Raises:
        OrchError: one could not be made, and none is.
    """
    old = receipts.load(env)
    coming = {change.receipt.path: change.receipt for change in plan.changes if change.receipt}
    going = {change.real_path for change in plan.changes if not change.receipt} | set(plan.stale)
    receipts.save(env, {**old, **coming})  # before the files: what is changed can always be taken back
    done: list[Change] = []
    try:
        for change in plan.changes:
            change.do()
            done.append(change)
    except OrchError:
        for change in reversed(done):
            with contextlib.suppress(OrchError):
                change.undo()
        receipts.save(env, old)
        raise
    receipts.save(env, {path: kept for path, kept in {**old, **coming}.items() if path not in going})


@contextlib.contextmanager
def about(path: str) -> Iterator[None]:
    """What cannot be edited becomes a sentence about the file."""
    try:
        yield
    except edit.NotJson as error:
        raise EnvironmentProblem(
            f"{path} cannot be edited: {error}", "put that right, then run it again; nothing was changed"
        ) from error


def settings_without(raw: bytes | None, receipt: Receipt | None, client: Client) -> bytes | None:
    """The settings as they would be if we had never been there: byte for byte where nobody edited them since.

    Raises:
        NotJson: they cannot be edited.
    """
    if raw is None:
        return None
    if receipt is None:
        return hooksfile.take_out(raw, client)
    if receipt.fits(raw):
        return receipt.original
    bare = hooksfile.take_out(raw, client, hooksfile.keys_of(receipt.original or b""))
    return receipt.original if hooksfile.is_empty(receipt.original) and hooksfile.is_empty(bare) else bare


def into_config(git: Git, layout: Layout, old: Receipt | None, wanted: Mapping[str, str], what: str) -> Change:
    """The repository's configuration with these settings, and the receipt for them and for those of before."""
    path = gitconfig.path_of(layout.common_dir)
    before = files.read(path) or b""
    after = gitconfig.edited(git, before, {key: (value,) for key, value in wanted.items()})
    receipt = Receipt(
        path=path,
        kind="git-config",
        original=gitconfig.without(git, before, old) if old else before,
        written=digest(after),
        common_dir=layout.common_dir,
        settings={**(old.settings if old else {}), **wanted},
    )
    return Change(path=path, kind="git-config", before=before, after=after, what=what, receipt=receipt)
