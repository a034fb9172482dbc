"""What `git orch install` changes: one settings file of the client, the repository's configuration, the launcher.

The plan is made again under the lock, so that of two at once the second sees what the first has done.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from git_orch import config
from git_orch.config import Settings
from git_orch.errors import EnvironmentProblem
from git_orch.install import claude, files, gitconfig, launcher, receipts
from git_orch.install.changes import HOOKS, Change, Plan, about, carry_out, settings_without
from git_orch.install.claude import Scope
from git_orch.install.receipts import Receipt
from git_orch.key import digest, state_dir
from git_orch.layout import Layout
from git_orch.model import Record, ReviewerSettings


class Wish(Record):
    """What a person wants: hooks in the settings of that scope; `reviewers` is empty where none were chosen."""

    scope: Scope = "user"
    reviewers: tuple[str, ...] = ()


class Offer(Record):
    """A reviewer that a person may choose beside the built-in checks, and what choosing it means."""

    name: str
    meaning: str


def offers(settings: Settings) -> tuple[Offer, ...]:
    """The reviewers that can be chosen here, in the order of the settings."""
    commands = [reviewer for reviewer in settings.defined if reviewer.command]
    return tuple(Offer(name=reviewer.name, meaning=_meaning(reviewer)) for reviewer in commands)


def _meaning(reviewer: ReviewerSettings) -> str:
    return f"your command{', which uses the network' if reviewer.network else ''}: {reviewer.command}"


def plan(wish: Wish, layout: Layout, env: Mapping[str, str]) -> Plan:
    """What has to be changed here for the wish; nothing where it has been done already.

    Raises:
        EnvironmentProblem: a file cannot be written or edited.
        UsageError: a reviewer is not known here, or a setting is wrong.
    """
    settings = config.read(layout.git(env), env)
    for name in wish.reviewers:
        settings.reviewer(name)
    kept = receipts.load(env)
    path = claude.settings_path(wish.scope, env, layout.worktree)
    changes = (_into_settings(path, wish.scope, layout, kept), _into_config(wish, layout, env, kept))
    return Plan(
        changes=tuple(change for change in changes if change is not None),
        notes=(*_about_scope(wish.scope, path, layout, env), *_obstacles(layout, env), *_about_state(env)),
        launcher=launcher.path(env),
    ).check()


def install(wish: Wish, layout: Layout, env: Mapping[str, str]) -> Plan:
    """The hooks are installed; gives what was changed for that.

    Raises:
        OrchError: it could not be done, and everything is as it was.
    """
    with receipts.locked(env):
        made = plan(wish, layout, env)
        try:
            launcher.write(env)
        except OSError as error:
            raise receipts.unwritable(state_dir(env), error) from error
        carry_out(made, env)
    return made


def overruled(wish: Wish, layout: Layout, env: Mapping[str, str]) -> list[str]:
    """A sentence for each setting elsewhere that keeps what was written from being what holds."""
    settings = config.read(layout.git(env), env)
    found = []
    if not settings.enabled:
        found.append("orch.enabled is false by another file: git config --show-origin --get-all orch.enabled")
    extra = [name for name in settings.reviewers if name not in wish.reviewers]
    if wish.reviewers and extra:
        found.append(
            f"{' '.join(extra)} reviews here too, by another file: git config --show-origin --get-all orch.reviewers"
        )
    return found


def _into_settings(path: str, scope: Scope, layout: Layout, kept: Mapping[str, Receipt]) -> Change | None:
    before, real = files.read(path), os.path.realpath(path)
    old = kept.get(real)
    with about(path):
        after = claude.put_in(before or b"")
        if after == before:
            return None
        original = settings_without(before, old)
    receipt = Receipt(
        path=real,
        kind="claude",
        original=original,
        written=digest(after),
        settings={},
        folders=old.folders if old and before is not None else files.missing_folders(real),
        common_dir="" if scope == "user" else layout.common_dir,
    )
    mode = 0o644 if scope == "project" else 0o600
    return Change(path=path, kind="claude", before=before, after=after, what=HOOKS, receipt=receipt, mode=mode)


def _into_config(wish: Wish, layout: Layout, env: Mapping[str, str], kept: Mapping[str, Receipt]) -> Change | None:
    git, path = layout.git(env), gitconfig.path_of(layout.common_dir)
    before = files.read(path) or b""
    wanted = gitconfig.wanted(git, before, wish.reviewers)
    if not wanted:
        return None
    after = gitconfig.edited(git, before, {key: (value,) for key, value in wanted.items()})
    old = kept.get(path)
    receipt = Receipt(
        path=path,
        kind="git-config",
        original=gitconfig.without(git, before, old) if old else before,
        written=digest(after),
        common_dir=layout.common_dir,
        settings={**(old.settings if old else {}), **wanted},
    )
    what = ", ".join(key if value == "true" else f"{key} = {value}" for key, value in wanted.items())
    return Change(path=path, kind="git-config", before=before, after=after, what=what, receipt=receipt)


def _obstacles(layout: Layout, env: Mapping[str, str]) -> list[str]:
    paths = {}
    for scope in claude.SCOPES:
        with contextlib.suppress(EnvironmentProblem):  # no HOME, no work tree: no such file
            paths[scope] = claude.settings_path(scope, env, layout.worktree)
    return claude.obstacles(paths)


def _about_scope(scope: Scope, path: str, layout: Layout, env: Mapping[str, str]) -> Iterator[str]:
    if scope == "user":
        return
    yield (
        f"{claude.TITLE} reads this file only when it is started in {layout.worktree} itself, not in a folder below "
        "or in another worktree; `--user`, or the plugin, works everywhere"
    )
    if scope == "project":
        yield "the file is in your work tree, so `git status` shows it; for others to have it, commit it yourself"
    elif layout.git(env).attempt("check-ignore", "-q", path).code != 0:
        yield f"{os.path.relpath(path, layout.worktree)} is not ignored here; .git/info/exclude can hide it"


def _about_state(env: Mapping[str, str]) -> Iterator[str]:
    """The line finds the launcher by the client's XDG_STATE_HOME, not by ours."""
    given = env.get("XDG_STATE_HOME", "")
    usual = os.path.join(env.get("HOME", ""), ".local", "state", "git-orch")
    if given and not os.path.isabs(given):
        yield f"XDG_STATE_HOME is no absolute path: a {claude.TITLE} that is started with it finds no launcher"
    elif os.path.realpath(state_dir(env)) != os.path.realpath(usual):
        yield f"XDG_STATE_HOME is set here; {claude.TITLE} has to be started with it too, or it finds no launcher"
