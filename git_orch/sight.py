"""What a reviewer's job may see and touch of the machine: the view that tier 1 mounts for it."""

from __future__ import annotations

import os

from git_orch import atomic, system
from git_orch.containment import View
from git_orch.key import state_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from git_orch.place import Place
    from git_orch.registry import Intent

# Daemons of the same user that would do work for a job outside of it.
_SOCKET_VARIABLES = ("SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS", "TMUX")
_RUNTIME_NAMES = ("bus", "systemd", "gnupg", "docker.sock", "podman", "keyring")
_SYSTEM_SOCKETS = ("/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket", "/run/systemd/private")
# What tools and clients must be able to write even where the home directory is the repository.
_STATE_FOLDERS = (".cache", ".claude", ".codex", ".gemini", ".copilot", ".cursor", ".qwen", ".local/share/opencode")
_MOST_ALTERNATES = 5  # as deep as git follows them


def view(intent: Intent, place: Place, env: Mapping[str, str]) -> View:
    """Checkout, git directory and object stores are read-only, the key and the sockets of daemons hidden.

    Of all that git-orch keeps in $TEMP only the reviewer's own folder is there.
    """
    fenced = protected(intent)
    return View(
        read_only=fenced,
        hidden=hidden(env),
        empty=(intent.temp_root,),
        keep=(place.root,),
        writable=_state_folders(env, fenced),
        provide=provided(intent),
    )


def protected(intent: Intent) -> tuple[str, ...]:
    """Every worktree of the repository, its common directory and each object store that it borrows from."""
    paths = [intent.worktree_path, intent.common_dir, intent.git_dir, intent.objects]
    if os.path.basename(intent.common_dir) == ".git":
        paths.append(os.path.dirname(intent.common_dir))
    paths += _linked_worktrees(intent.common_dir)
    paths += _alternates(intent.objects, _MOST_ALTERNATES)
    return outermost(path for path in paths if path and os.path.isdir(path))


def hidden(env: Mapping[str, str]) -> tuple[str, ...]:
    """Folders and sockets that a job has no business with, as far as they are there."""
    runtime = env.get("XDG_RUNTIME_DIR", "")
    paths = [state_dir(env), *_SYSTEM_SOCKETS]
    paths += [os.path.join(runtime, name) for name in _RUNTIME_NAMES if runtime]
    for name in _SOCKET_VARIABLES:
        value = env.get(name, "").removeprefix("unix:path=").removeprefix("unix://").partition(",")[0]
        paths.append(value.partition(":")[0])
    paths.append(os.path.join(env.get("TMUX_TMPDIR", "/tmp"), f"tmux-{system.uid()}"))  # noqa: S108 - tmux's own choice
    return tuple(
        dict.fromkeys(os.path.realpath(path) for path in paths if os.path.isabs(path) and os.path.exists(path))
    )


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths, made real, without those that lie inside another of them; in order of depth."""
    kept: list[str] = []
    for path in sorted({os.path.realpath(path) for path in paths}, key=len):
        if not _is_below(path, kept):
            kept.append(path)
    return tuple(kept)


def provided(intent: Intent) -> tuple[tuple[str, str], ...]:
    """`orch.review.provide`: what of the checkout (node_modules, a venv) the tree is lent, as (source, place in it).

    What is missing, or does not lie inside the checkout, is passed over.
    """
    pairs = {}
    for name in intent.provide:
        place = os.path.normpath(name)
        source = os.path.join(intent.worktree_path, place)
        is_inside = not os.path.isabs(place) and place.split("/")[0] not in (".", "..", ".git")
        if intent.worktree_path and is_inside and os.path.exists(source):
            pairs[place] = source
    return tuple((source, place) for place, source in pairs.items())


def _state_folders(env: Mapping[str, str], fenced: tuple[str, ...]) -> tuple[str, ...]:
    """Where tools keep their state in a home directory that is (in) the repository; none where it is elsewhere."""
    home = os.path.realpath(env.get("HOME", "/"))
    if not _is_below(home, fenced):
        return ()
    folders = (os.path.join(home, name) for name in _STATE_FOLDERS)
    return tuple(path for path in folders if os.path.isdir(path) and not os.path.islink(path))


def _is_below(path: str, others: Iterable[str]) -> bool:
    return any(path == other or path.startswith(other.rstrip("/") + "/") for other in others)


def _linked_worktrees(common_dir: str) -> list[str]:
    folder = os.path.join(common_dir, "worktrees")
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = []
    for name in names:
        link = atomic.read(os.path.join(folder, name, "gitdir"), limit=1 << 16)
        if link:  # absolute, or (worktree.useRelativePaths) relative to where it stands
            found.append(os.path.dirname(os.path.join(folder, name, os.fsdecode(link.rstrip(b"\n")))))
    return found


def _alternates(objects: str, depth: int) -> list[str]:
    """The object stores that this one borrows from, and those that they borrow from."""
    listed = atomic.read(os.path.join(objects, "info", "alternates"), limit=1 << 20) or b""
    lines = [os.fsdecode(line) for line in listed.split(b"\n") if line and not line.startswith(b"#")]
    found = [os.path.normpath(os.path.join(objects, line)) for line in lines]
    return found + [further for path in found if depth > 1 for further in _alternates(path, depth - 1)]
