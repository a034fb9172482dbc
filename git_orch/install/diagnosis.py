"""What `git orch doctor` finds: each hook fired for real in a scratch repository, and all that keeps one from working.

Nothing is repaired, and nothing is left behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from git_orch import __version__, atomic, config, git, key, layout, place, proc, registry
from git_orch.containment import TIER_NAMESPACE, probe
from git_orch.errors import OrchError
from git_orch.formats.words import age, closest, duration, size
from git_orch.install import codex, edit, files, finding, firing, githooks, hooksfile, installation, launcher
from git_orch.install.clients import CLIENTS, Client, Scope
from git_orch.install.firing import Fired, Misfired
from git_orch.layout import Layout
from git_orch.model import Record

if TYPE_CHECKING:
    from git_orch.config import Settings
    from git_orch.model import Json

State = Literal["fine", "better", "broken", "absent"]
OLDEST_GIT = (2, 38)
_PRETTY = {
    name.casefold(): name
    for name in (
        "orch.gitHooks", "orch.hookBudget", "orch.keepBytes", "orch.keepDays", "orch.keepRuns", "orch.maxReviews",
        "orch.maxUntrackedBytes", "orch.review.failOn",
    )
}  # fmt: skip


class Check(Record):
    """One thing that was looked at: how it stands, in a sentence, and in further lines what it means or what to do."""

    about: str
    state: State
    text: str
    more: tuple[str, ...] = ()


class Installed(Record):
    """A settings file of a client's with hooks of ours in it: the lines by the client's event."""

    client: Client
    scope: Scope
    path: str
    lines: Mapping[str, str]


def examine(cwd: str, env: Mapping[str, str]) -> Iterator[Check]:
    """Each check as soon as it is made."""
    yield _versions(env)
    try:
        here: Layout | None = layout.locate(cwd, env)
    except OrchError as error:
        here = None
        yield Check(about="repository", state="absent", text=error.message, more=("what is looked at is yours alone",))
    yield from _launcher(env)
    found = list(installed(here, env))
    yield from _clients(found, here, env)
    if here is not None:
        yield from _reach(found, here, cwd, env)
        yield from _git_hooks(here, env)
        yield from _settings(here, found, env)
    yield from _room(here, env)


def installed(here: Layout | None, env: Mapping[str, str]) -> Iterator[Installed]:
    """Every settings file that has hooks of ours, here and in the user's own settings."""
    for client in CLIENTS.values():
        for scope in client.scopes:
            if scope != "user" and (here is None or not here.worktree):
                continue
            with contextlib.suppress(OrchError, edit.NotJson):
                path = client.settings_path(scope, env, here.worktree if here else "")
                lines = hooksfile.lines(files.read(path) or b"", client)
                if lines:
                    yield Installed(client=client, scope=scope, path=path, lines=lines)


# -- the machine


def _versions(env: Mapping[str, str]) -> Check:
    said = proc.run(["git", "version"], env=git.without_git(env), timeout_s=10).stdout.decode("utf-8", "replace")
    version = said.removeprefix("git version ").strip().split(" ")[0]
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    program = proc.find_program("git-orch", env.get("PATH", os.defpath))
    where = "on PATH" if program else "not on PATH"
    text = f"git {version}, Python {platform.python_version()}, git-orch {__version__} {where}"
    if numbers < OLDEST_GIT:
        return Check(about="versions", state="broken", text=text, more=("git 2.38 or newer is needed",))
    if not program:
        return Check(about="versions", state="better", text=text, more=("`git orch` needs git-orch on PATH",))
    return Check(about="versions", state="fine", text=text)


def _launcher(env: Mapping[str, str]) -> Iterator[Check]:
    try:
        path = launcher.path(env)
    except OrchError as error:
        yield Check(about="launcher", state="broken", text=error.message, more=(error.hint,))
        return
    if not os.access(path, os.X_OK):
        text = f"{path}, which every hook starts, is missing or cannot be executed"
        yield Check(about="launcher", state="broken", text=text, more=("git orch install",))
    if env.get("ORCH") == "0":
        yield Check(about="launcher", state="better", text="ORCH=0 is set here: it switches every hook and gate off")


def _room(here: Layout | None, env: Mapping[str, str]) -> Iterator[Check]:
    try:
        root = place.temp_root(env, forbidden=(here.worktree, here.common_dir) if here and here.worktree else ())
    except OrchError as error:
        yield Check(about="space", state="broken", text=error.message, more=(error.hint,))
        return
    yield _containment(root)
    text = f"{root} {size(_size(root))} of {size(place.free_bytes(root))} free"
    if here is not None and os.path.isdir(here.store):
        text += f"; store {size(_size(here.store))}"
    yield _registry(here, env, text)


def _containment(root: str) -> Check:
    found = probe.probe(root, refresh=True)
    if found.tier == TIER_NAMESPACE:
        return Check(about="containment", state="fine", text="containment tier 1: a reviewer cannot write the checkout")
    return Check(
        about="containment",
        state="better",
        text=f"containment tier {found.tier}: {found.degraded_reason}",
        more=("reviews work; a reviewer's writes are detected, not prevented",),
    )


def _registry(here: Layout | None, env: Mapping[str, str], text: str) -> Check:
    """What is left in the registry: runs that are dead and not yet reaped, and what no run of this repository made."""
    try:
        book = registry.open_registry(here, key.load(env)) if here else None
    except OrchError as error:
        more = tuple(filter(None, (error.hint,)))
        return Check(about="space", state="broken", text=f"{text}; {error.message}", more=more)
    if here is None or book is None:
        return Check(about="space", state="fine", text=f"{text}; nothing left behind")
    run_ids = book.run_ids()
    refused = [run_id for run_id in run_ids if isinstance(book.intent(run_id), registry.Refused)]
    dead = [run_id for run_id in run_ids if run_id not in refused and not book.is_held(run_id)]
    foreign = refused + [stranger.run_id for stranger in book.strangers()]
    more = ("git orch sweep",) if dead else ()
    if foreign:
        more += (f"no run of this repository made {', '.join(foreign)}: remove by hand what it is in {here.pending}",)
    left = ", ".join([*(f"run {run_id}" for run_id in dead), *foreign])
    if left:
        return Check(about="space", state="better", text=f"{text}; left behind: {left}", more=more)
    return Check(about="space", state="fine", text=f"{text}; nothing left behind")


def _size(folder: str) -> int:
    total = 0
    for top, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(top, name)).st_size
    return total


# -- the clients' hooks


def _clients(found: list[Installed], here: Layout | None, env: Mapping[str, str]) -> Iterator[Check]:
    versions = finding.versions(env)
    for name in CLIENTS:
        its = [each for each in found if each.client.name == name]
        if its:
            yield from _client(its, here, env)
        elif name in versions:
            text = f"{name} {versions[name]}".strip() + ": no hook of ours"
            yield Check(about=name, state="absent", text=text, more=(f"git orch install {name}",))
    if not found:
        yield Check(about="clients", state="better", text="no client has our hooks", more=("git orch install",))


def _client(its: list[Installed], here: Layout | None, env: Mapping[str, str]) -> Iterator[Check]:
    client, scopes = its[0].client, " and ".join(each.scope for each in its)
    title = f"{client.name} ({scopes} settings)"
    missing = [name for name in client.events if name not in its[0].lines]
    if not hooksfile.is_current(files.read(its[0].path) or b"", client):
        told = f"{title}: an older form of the hooks" + (f", without {', '.join(missing)}" if missing else "")
        yield Check(about=client.name, state="better", text=told, more=(f"git orch install {client.name}",))
    stop = next(name for name, event in client.events.items() if event == "stop")
    match firing.fire(env, client=client, line=lambda event: _line(its[0], event)):
        case Fired(answer_ms=answer_ms):
            yield Check(
                about=client.name,
                state="fine",
                text=f"{title}: {stop} fired in {duration(answer_ms)}; {_last(client.name, env)}",
            )
        case Misfired(reason=reason):
            yield Check(about=client.name, state="broken", text=f"{title}: {stop}: {reason}",
                        more=(f"git orch install {client.name}",))  # fmt: skip
    yield from _obstacles(its, here, env)


def _line(its: Installed, event: launcher.Event) -> str:
    """The very line of the settings file; nothing is run for an event that it has not."""
    return next(
        (its.lines[name] for name, ours in its.client.events.items() if ours == event and name in its.lines), ":"
    )


def _last(name: str, env: Mapping[str, str]) -> str:
    fired = [at for (client, _), at in launcher.last_fired(env).items() if client == name]
    return f"last real one {age(time.time() - max(fired))} ago" if fired else "it has not fired in a session yet"


def _obstacles(its: list[Installed], here: Layout | None, env: Mapping[str, str]) -> Iterator[Check]:
    """What in a client's own settings keeps it from running the hooks."""
    name = its[0].client.name
    if name == "claude" and here is not None:
        for told in installation.obstacles(here, env):
            state: State = "better" if "fires twice" in told else "broken"
            yield Check(about=name, state=state, text=f"claude: {told}")
    if name == "codex":
        yield from (_codex_trust(each, env) for each in its)
    off = {"gemini": ("hooksConfig", "enabled", False), "qwen": ("", "disableAllHooks", True)}.get(name)
    for each in its if off else ():
        assert off is not None
        if _value(each.path, off[0], off[1]) is off[2]:
            key_name = ".".join(filter(None, off[:2]))
            yield Check(about=name, state="broken", text=f"{name}: `{key_name}` switches all hooks off in {each.path}")


def _codex_trust(its: Installed, env: Mapping[str, str]) -> Check:
    """Whether Codex runs the hooks: it asks a person to accept each one, and again once it has changed."""
    config_path = os.path.join(os.path.dirname(CLIENTS["codex"].settings_path("user", env, "")), "config.toml")
    match codex.trust(its.path, files.read(its.path) or b"", atomic.read(config_path) or b""):
        case "trusted":
            return Check(about="codex", state="fine", text=f"codex: the hooks in {its.path} were accepted in /hooks")
        case "off":
            text = f"codex: the hooks in {its.path} are switched off; type /hooks in codex and switch them on"
            return Check(about="codex", state="broken", text=text)
        case "changed":
            text = "codex: the hooks have changed since they were accepted; type /hooks in codex and accept them anew"
        case _:
            text = "codex: hook written but not trusted; type /hooks in codex and accept it"
    return Check(about="codex", state="better", text=text)


def _value(path: str, section: str, name: str) -> object:
    try:
        value: Json = json.loads(edit.bare(edit.decode(files.read(path) or b"{}")))
        return (value.get(section, {}) if section else value).get(name)
    except (ValueError, AttributeError, OrchError):
        return None


def _reach(found: list[Installed], here: Layout, cwd: str, env: Mapping[str, str]) -> Iterator[Check]:
    """Settings of a work tree that are not read where a client is started: in a folder below, in another worktree."""
    everywhere = {each.client.name for each in found if each.scope == "user"}
    for each in found:
        if each.scope == "user" or each.client.name in everywhere:
            continue
        name, file = each.client.name, os.path.relpath(each.path, here.worktree)
        way_out = f"git orch install {name} --user"
        if os.path.realpath(cwd) != os.path.realpath(here.worktree):
            text = f"{name}: started in this folder it does not read {file}, which lies in {here.worktree}"
            yield Check(about=name, state="better", text=text, more=(way_out,))
        for other in _other_worktrees(here, env):
            if not os.path.exists(os.path.join(other, file)):
                text = f"{name}: the worktree {other} has no {file}: no hook fires there"
                yield Check(about=name, state="better", text=text, more=(way_out,))


def _other_worktrees(here: Layout, env: Mapping[str, str]) -> list[str]:
    said = here.git(env).attempt("worktree", "list", "--porcelain").stdout.decode("utf-8", "surrogateescape")
    tops = [line.removeprefix("worktree ") for line in said.splitlines() if line.startswith("worktree ")]
    mine = os.path.realpath(here.worktree or here.common_dir)
    return [top for top in tops if os.path.realpath(top) != mine and os.path.exists(os.path.join(top, ".git"))]


# -- git's own hooks


def _git_hooks(here: Layout, env: Mapping[str, str]) -> Iterator[Check]:
    """Which file git really runs, and that what stands in it for us works."""
    try:
        running = githooks.running(here, env)
    except OrchError:
        return  # a wrong setting, which is told with the others
    alive = {str(event): githooks.lines_of(path, event) for event, path in running.items() if path}
    fired = firing.fire_git(alive, env) if "post-commit" in alive else {}
    for event, path in running.items():
        if not path:
            yield _dead(event, here, env)
            continue
        match fired.get(event):
            case Fired(answer_ms=answer_ms):
                did = "stopped a push of the planted fault" if event == "pre-push" else "its review found the fault"
                text = f"git {event}: git runs {path}: back in {duration(answer_ms)}, {did}"
                yield Check(about=event, state="fine", text=text)
            case Misfired(reason=reason):
                yield Check(about=event, state="broken", text=f"git {event}: git runs {path}: {reason}")
            case None:
                yield Check(about=event, state="fine", text=f"git {event}: git runs {path}")


def _dead(event: str, here: Layout, env: Mapping[str, str]) -> Check:
    there = os.path.join(githooks.hooks_folder(here, env).folder, event)
    usual = os.path.join(here.common_dir, "hooks", event)
    runs = there if os.path.exists(there) else f"nothing: there is no {there}"
    has_ours = launcher.MARK.encode() in (atomic.read(usual) or b"")
    ours = f", ours is in {usual} and is dead" if has_ours and usual != there else ", which does not start us"
    way_out = "git orch install git --gate" if event == "pre-push" else "git orch install git"
    return Check(about=event, state="broken", text=f"git {event}: git runs {runs}{ours}", more=(way_out,))


# -- settings


def _settings(here: Layout, found: list[Installed], env: Mapping[str, str]) -> Iterator[Check]:
    try:
        settings = config.read(here.git(env), env)
    except OrchError as error:
        yield Check(about="settings", state="broken", text=error.message, more=tuple(filter(None, (error.hint,))))
        return
    for name in settings.unknown:
        close = nearest(name)
        more = (f"did you mean {close}?",) if close else ()
        yield Check(about="settings", state="better", text=f"{name} is no setting of git-orch, so it does nothing",
                    more=more)  # fmt: skip
    yield from _reviewers(settings)
    if found and not settings.enabled:
        text = "the hooks do nothing in this repository: orch.enabled is not true"
        yield Check(about="settings", state="better", text=text, more=("git orch install",))


def _reviewers(settings: Settings) -> Iterator[Check]:
    for name in settings.reviewers:
        try:
            settings.reviewer(name)
        except OrchError as error:
            yield Check(about="settings", state="broken", text=f"orch.reviewers: {error.message}")


def nearest(name: str) -> str:
    """The setting that was perhaps meant, "" where none is close."""
    words = name.split(".")
    if words[:2] == ["orch", "reviewer"] and len(words) > 3:
        close = closest(words[-1].casefold(), config.reviewer_keys())
        return ".".join([*words[:-1], close]) if close else ""
    close = closest(name.casefold(), config.plain_keys())
    return _PRETTY.get(close, close)
