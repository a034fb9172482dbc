"""What `git orch uninstall` takes back: byte for byte where nobody edited a file since, else all that is ours in it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping

from git_orch.errors import EnvironmentProblem
from git_orch.git import Git
from git_orch.install import claude, clients, files, gitconfig, hooksfile, launcher, receipts
from git_orch.install.changes import Change, Plan, about, carry_out, settings_without
from git_orch.install.clients import CLIENTS, Client, Scope
from git_orch.install.installation import kind_of
from git_orch.layout import Layout
from git_orch.model import Record


class Leaving(Record):
    """What a person wants to be rid of: one settings file, everything on this machine, or (neither) this repository.

    `clients`: whose; all of them where none is named.
    """

    scope: Scope | None = None
    everywhere: bool = False
    clients: tuple[str, ...] = ()

    @property
    def of(self) -> tuple[Client, ...]:
        """The clients that are to be left."""
        return tuple(map(clients.known, self.clients)) or tuple(CLIENTS.values())


def plan(leaving: Leaving, layout: Layout | None, env: Mapping[str, str]) -> Plan:
    """What has to be changed for that. `layout` is None outside a repository.

    Raises:
        EnvironmentProblem: a file cannot be written or edited.
    """
    return _Survey(leaving, layout, env).plan().check()


def uninstall(leaving: Leaving, layout: Layout | None, env: Mapping[str, str]) -> Plan:
    """It is gone; gives what was changed for that. The launcher goes with the last installation.

    Raises:
        OrchError: it could not be done, and everything is as it was.
    """
    with receipts.locked(env):
        made = plan(leaving, layout, env)
        carry_out(made, env)
        return made if remove_launcher(env) else made.replace(launcher="")


class _Survey:
    """All that may be ours, looked through once."""

    def __init__(self, leaving: Leaving, layout: Layout | None, env: Mapping[str, str]) -> None:
        self._leaving = leaving
        self._layout = layout
        self._env = env
        self._git = Git(env=dict(env))
        self._kept = receipts.load(env)
        self._notes: list[str] = []

    def plan(self) -> Plan:
        """What is to be done."""
        settings = [self._out_of_settings(path, client) for path, client in self._settings().items()]
        left = {change.real_path for change in settings}
        changes = [*settings, *map(self._out_of_config, self._configs(left))]
        missing = (path for path in self._kept if not os.path.lexists(path))
        return Plan(
            changes=tuple(change for change in changes if change.before != change.after),
            stale=(*(c.real_path for c in changes if c.before == c.after and c.receipt is None), *missing),
            notes=tuple(self._notes),
            launcher=launcher.path(self._env),
        )

    # -- the clients' settings

    def _settings(self) -> dict[str, Client]:
        """The settings files to leave, each file once."""
        found = [(path, client) for client in self._leaving.of for path in self._settings_of(client)]
        return dict({os.path.realpath(path): (path, client) for path, client in found[::-1]}.values())

    def _settings_of(self, client: Client) -> list[str]:
        if self._leaving.scope:
            there = self._leaving.scope in client.files or len(self._leaving.of) == 1
            return [self._path(client, self._leaving.scope)] if there else []
        here = self._layout.common_dir if self._layout else None
        ours = [
            receipt.path
            for receipt in self._kept.values()
            if receipt.kind == client.name and receipt.common_dir
            if self._leaving.everywhere or receipt.common_dir == here
        ]
        near: list[Scope] = [scope for scope in client.scopes if scope != "user"] if self._has_worktree() else []
        of_worktree = [self._path(client, scope) for scope in near]
        found = [path for path in of_worktree if self._is_to_leave(path, client)]
        user = self._path(client, "user")
        if self._user_is_free(user, client):
            found.append(user)
        return [*found, *ours]

    def _path(self, client: Client, scope: Scope) -> str:
        return client.settings_path(scope, self._env, self._layout.worktree if self._layout else "")

    def _has_worktree(self) -> bool:
        return self._layout is not None and bool(self._layout.worktree)

    def _is_to_leave(self, path: str, client: Client) -> bool:
        """Whether the file is one of ours: what somebody else committed is left to whoever did."""
        if os.path.realpath(path) in self._kept:
            return True
        if not self._has_ours(path, client):
            return False
        assert self._layout is not None
        if self._layout.git(self._env).attempt("ls-files", "--error-unmatch", "--", path).code != 0:
            return True
        scope = "local" if path.endswith(".local.json") else "project"
        self._notes.append(
            f"{path} is committed and has the hook too; it does nothing here any more "
            f"(`git orch uninstall {client.name} --{scope}` takes it out)"
        )
        return False

    def _user_is_free(self, path: str, client: Client) -> bool:
        """Whether no other repository needs the hooks in the user's settings."""
        others = [] if self._leaving.everywhere else self._others()
        if not others or not self._has_ours(path, client):
            return True
        self._notes.append(f"{path} keeps the hooks: in use by {', '.join(others)} (for all: git orch uninstall --all)")
        return False

    def _others(self) -> list[str]:
        """The other repositories in which the hooks act."""
        here = gitconfig.path_of(self._layout.common_dir) if self._layout else ""
        return [
            receipt.common_dir.removesuffix("/.git")
            for path, receipt in self._kept.items()
            if receipt.kind == "git-config" and path != here and gitconfig.is_enabled(self._git, _readable(path))
        ]

    def _has_ours(self, path: str, client: Client) -> bool:
        raw = files.read(path)
        with about(path):
            return raw is not None and _may_be_ours(raw) and hooksfile.has_ours(raw, client)

    def _out_of_settings(self, path: str, client: Client) -> Change:
        before, receipt = files.read(path), self._kept.get(os.path.realpath(path))
        after = before
        if before is not None and (_may_be_ours(before) or (receipt and hooksfile.is_empty(before))):
            with about(path):
                after = settings_without(before, receipt, client)
        return Change(
            path=path,
            kind=kind_of(client),
            before=before,
            after=after,
            what=", ".join(client.events),
            folders=receipt.folders if receipt else (),
            exact=receipt is not None and receipt.fits(before),
        )

    # -- git's configuration

    def _configs(self, left: Iterable[str]) -> list[str]:
        """The configurations to leave."""
        here = [gitconfig.path_of(self._layout.common_dir)] if self._layout and not self._still_used(set(left)) else []
        if not self._leaving.everywhere:
            return here
        return _once([*here, *(path for path, receipt in self._kept.items() if receipt.kind == "git-config")])

    def _still_used(self, left: set[str]) -> bool:
        """Whether, some settings files being left, another one still has the hooks for this repository."""
        if self._leaving.scope is None and not self._leaving.clients:
            return False
        for client, scope in ((each, scope) for each in CLIENTS.values() for scope in each.scopes):
            with contextlib.suppress(EnvironmentProblem):  # no such file can be here, or none that can be read
                path = self._path(client, scope)
                if os.path.realpath(path) not in left and self._has_ours(path, client):
                    return True
        return False

    def _out_of_config(self, path: str) -> Change:
        before, receipt = files.read(path), self._kept.get(path)
        after, left = before, receipt
        if before is not None and receipt is None:
            after = gitconfig.without(self._git, before, None)
        elif before is not None:
            after, left = gitconfig.parting(self._git, before, receipt, gitconfig.OF_CLIENTS)
        gone = [key for key in receipt.settings if not left or key not in left.settings] if receipt else []
        what = ", ".join(gone or (gitconfig.ENABLED,))
        exact = receipt is not None and receipt.fits(before)
        records = os.path.join(os.path.dirname(path), "orch")
        if before != after and os.path.isdir(records):
            self._notes.append(f"what was reviewed stays in {records} until you remove it")
        return Change(path=path, kind="git-config", before=before, after=after, what=what, receipt=left, exact=exact)


def remove_launcher(env: Mapping[str, str]) -> bool:
    """The launcher and what it noted is gone, if nothing that we know of uses it. The key stays."""
    if receipts.load(env):
        return False
    for client in CLIENTS.values():
        with contextlib.suppress(EnvironmentProblem):  # no HOME: nobody's settings
            if _uses_launcher(_readable(client.settings_path("user", env, "")), client):
                return False
    launcher.remove(env)
    return True


def _uses_launcher(raw: bytes, client: Client) -> bool:
    return claude.uses_launcher(raw) if client is claude.CLIENT else launcher.MARK.encode() in raw


def _readable(path: str) -> bytes:
    """What the file holds; nothing where it cannot be read."""
    try:
        return files.read(path) or b""
    except EnvironmentProblem:
        return b""


def _may_be_ours(raw: bytes) -> bool:
    return b"git-orch" in raw  # a file that is broken, but not by us, is no business of ours


def _once(paths: Iterable[str]) -> list[str]:
    """The paths in order, each file once."""
    return list({os.path.realpath(path): path for path in reversed(list(paths))}.values())[::-1]
