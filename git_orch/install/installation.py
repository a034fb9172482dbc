"""What `git orch install` changes: one settings file of a client, the repository's configuration, the launcher.

The plan is made again under the lock, so that of two at once the second sees what the first has done.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence

from git_orch import config
from git_orch.config import Settings
from git_orch.errors import EnvironmentProblem
from git_orch.git import Git
from git_orch.install import claude, clients, files, gitconfig, hooksfile, launcher, receipts
from git_orch.install.changes import Change, Plan, about, carry_out, into_config, settings_without
from git_orch.install.clients import Client, Scope
from git_orch.install.receipts import Receipt
from git_orch.key import digest, state_dir
from git_orch.layout import Layout
from git_orch.model import UNLIMITED, Record, ReviewerSettings


class Wish(Record):
    """What a person wants: a client's hooks in its settings of that scope; no `reviewers` where none were chosen.

    `tracked`: whether a settings file that git tracks may be edited too.
    """

    scope: Scope = "user"
    reviewers: tuple[str, ...] = ()
    client: str = claude.NAME
    tracked: bool = False


class Offer(Record):
    """A reviewer that a person may choose beside the built-in checks, and what choosing it means."""

    name: str
    meaning: str


def offers(settings: Settings, found: Sequence[str] = (), client: str = "") -> tuple[Offer, ...]:
    """The reviewers that can be chosen here: the clients `found`, the one in use first, then the settings' commands.

    The code goes to the vendor of the client in use already; that any other one would see it is said.
    """
    agents = sorted(found, key=lambda name: name != client)
    offered = [Offer(name=name, meaning=_cost(name, client, settings)) for name in agents]
    commands = [reviewer for reviewer in settings.defined if reviewer.command and reviewer.name not in agents]
    return (*offered, *(Offer(name=reviewer.name, meaning=_meaning(reviewer)) for reviewer in commands))


def _cost(name: str, client: str, settings: Settings) -> str:
    agent = clients.CLIENTS[name]
    if name == client:
        most = (
            "as often as you stop"
            if settings.budget_hour == UNLIMITED
            else f"at most {settings.budget_hour} reviews an hour"
        )
        return f"uses your {agent.vendor} plan, {most}"
    return f"uses your {agent.vendor} plan; a second company sees the code"


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
    client, kept = clients.known(wish.client), receipts.load(env)
    path = client.settings_path(wish.scope, env, layout.worktree)
    changes = (_into_settings(path, wish, layout, kept), _into_config(wish, layout, env, kept))
    if changes[0] is not None and not wish.tracked and is_tracked(path, env):
        raise _tracked(path, wish)
    return Plan(
        changes=tuple(change for change in changes if change is not None),
        notes=(
            *_about_scope(wish, path, layout, env),
            *_about_client(client, layout, env),
            *_about_state(client, env),
        ),
        launcher=launcher.path(env),
    ).check()


def is_tracked(path: str, env: Mapping[str, str]) -> bool:
    """Whether the file, links followed, is one that some git repository tracks."""
    folder, name = os.path.split(os.path.realpath(path))
    if not os.path.isdir(folder):
        return False
    return Git(env=dict(env), cwd=folder).attempt("ls-files", "--error-unmatch", "--", name).code == 0


def _tracked(path: str, wish: Wish) -> EnvironmentProblem:
    other = "--user" if wish.scope != "user" else "--project"
    return EnvironmentProblem(
        f"{path} is tracked by git, so it is not edited",
        f"git orch install {wish.client} {other}, or --tracked to have it edited all the same",
    )


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


def _into_settings(path: str, wish: Wish, layout: Layout, kept: Mapping[str, Receipt]) -> Change | None:
    before, real = files.read(path), os.path.realpath(path)
    old, client = kept.get(real), clients.known(wish.client)
    with about(path):
        after = hooksfile.put_in(before or b"", client)
        if after == before:
            return None
        original = settings_without(before, old, client)
    receipt = Receipt(
        path=real,
        kind=kind_of(client),
        original=original,
        written=digest(after),
        settings={},
        folders=old.folders if old and before is not None else files.missing_folders(real),
        common_dir="" if wish.scope == "user" else layout.common_dir,
    )
    mode = 0o644 if wish.scope == "project" else 0o600
    what = ", ".join(client.events)
    return Change(path=path, kind=receipt.kind, before=before, after=after, what=what, receipt=receipt, mode=mode)


def kind_of(client: Client) -> receipts.Kind:
    """The kind of a receipt for a settings file of that client."""
    return next(kind for kind in receipts.KINDS if kind == client.name)


def _into_config(wish: Wish, layout: Layout, env: Mapping[str, str], kept: Mapping[str, Receipt]) -> Change | None:
    git, path = layout.git(env), gitconfig.path_of(layout.common_dir)
    before = files.read(path) or b""
    wanted = gitconfig.wanted(git, before, wish.reviewers)
    if not wanted:
        return None
    what = ", ".join(key if value == "true" else f"{key} = {value}" for key, value in wanted.items())
    return into_config(git, layout, kept.get(path), wanted, what)


def _about_client(client: Client, layout: Layout, env: Mapping[str, str]) -> Iterator[str]:
    """What a person has to know, or to do, for this client to run the hooks."""
    if client.name == claude.NAME:
        yield from obstacles(layout, env)
    elif client.name == "codex":
        yield "Codex runs no hook that is not trusted: type /hooks in codex and accept the three; git-orch cannot"
    elif client.name == "copilot":
        yield (
            "Copilot CLI reads a repository's .claude/settings.json too: with `install claude --project` its hooks "
            "fire twice, and the second one finds the tree reviewed already"
        )


def obstacles(layout: Layout, env: Mapping[str, str]) -> list[str]:
    """A sentence for each setting of Claude Code because of which it would not run our line, or would run it twice."""
    paths = {}
    for scope in clients.SCOPES:
        with contextlib.suppress(EnvironmentProblem):  # no HOME, no work tree: no such file
            paths[scope] = claude.CLIENT.settings_path(scope, env, layout.worktree)
    return claude.obstacles(paths)


def _about_scope(wish: Wish, path: str, layout: Layout, env: Mapping[str, str]) -> Iterator[str]:
    if wish.scope == "user":
        return
    client = clients.known(wish.client)
    yield (
        f"{client.title} reads this file only when it is started in {layout.worktree} itself, not in a folder below "
        f"or in another worktree; `--user`{', or the plugin,' if client is claude.CLIENT else ''} works everywhere"
    )
    if wish.scope == "project":
        yield "the file is in your work tree, so `git status` shows it; for others to have it, commit it yourself"
    elif layout.git(env).attempt("check-ignore", "-q", path).code != 0:
        yield f"{os.path.relpath(path, layout.worktree)} is not ignored here; .git/info/exclude can hide it"


def _about_state(client: Client, env: Mapping[str, str]) -> Iterator[str]:
    """The line finds the launcher by the client's XDG_STATE_HOME, not by ours."""
    given = env.get("XDG_STATE_HOME", "")
    usual = os.path.join(env.get("HOME", ""), ".local", "state", "git-orch")
    if given and not os.path.isabs(given):
        yield f"XDG_STATE_HOME is no absolute path: a {client.title} that is started with it finds no launcher"
    elif os.path.realpath(state_dir(env)) != os.path.realpath(usual):
        yield f"XDG_STATE_HOME is set here; {client.title} has to be started with it too, or it finds no launcher"
