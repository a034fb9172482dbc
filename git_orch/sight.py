"""What a reviewer's job may see and touch of the machine: the view that tier 1 mounts for it."""

from __future__ import annotations

import os

from git_orch import atomic
from git_orch.containment import View
from git_orch.key import state_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.registry import Intent
    from git_orch.place import Place

# Daemons of the same user that would do work for a job outside of it.
_SOCKET_VARIABLES = ("SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS", "TMUX")
_RUNTIME_NAMES = ("bus", "systemd", "gnupg", "docker.sock", "podman", "keyring")
_SYSTEM_SOCKETS = ("/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket", "/run/systemd/private")


def view(intent: Intent, place: Place, env: Mapping[str, str], overlay: tuple[str, str, str] | None) -> View:
    """Checkout, git directory and object stores read-only; the key and the sockets of daemons hidden; of all that
    git-orch keeps in $TEMP only the reviewer's own folder there."""
    return View(
        read_only=protected(intent),
        hidden=hidden(env),
        empty=(intent.temp_root,),
        keep=(place.root,),
        writable=(),
        overlay=overlay,
        provide=_provided(intent),
    )


def protected(intent: Intent) -> tuple[str, ...]:
    """Every worktree of the repository, its common directory and each object store that it borrows from."""
    paths = [intent.worktree_path, intent.common_dir, intent.git_dir, intent.objects]
    if os.path.basename(intent.common_dir) == ".git":
        paths.append(os.path.dirname(intent.common_dir))
    paths += _linked_worktrees(intent.common_dir)
    paths += _alternates(intent.objects)
    return outermost(path for path in paths if path and os.path.isdir(path))


def hidden(env: Mapping[str, str]) -> tuple[str, ...]:
    """Folders and sockets that a job has no business with, as far as they are there."""
    runtime = env.get("XDG_RUNTIME_DIR", "")
    paths = [state_dir(env), *_SYSTEM_SOCKETS]
    paths += [os.path.join(runtime, name) for name in _RUNTIME_NAMES if runtime]
    for name in _SOCKET_VARIABLES:
        value = env.get(name, "").removeprefix("unix:path=").removeprefix("unix://").partition(",")[0]
        paths.append(value.partition(":")[0])
    paths.append(os.path.join(env.get("TMUX_TMPDIR", "/tmp"), f"tmux-{os.getuid()}"))
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths if os.path.isabs(path) and os.path.exists(path)))


def outermost(paths: object) -> tuple[str, ...]:
    """The paths, made real, without those that lie inside another of them; in order of depth."""
    real = sorted({os.path.realpath(path) for path in paths}, key=len)  # type: ignore[attr-defined]
    kept: list[str] = []
    for path in real:
        if not any(path == other or path.startswith(other.rstrip("/") + "/") for other in kept):
            kept.append(path)
    return tuple(kept)


def _linked_worktrees(common_dir: str) -> list[str]:
    folder = os.path.join(common_dir, "worktrees")
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    links = (atomic.read(os.path.join(folder, name, "gitdir"), limit=1 << 16) or b"" for name in names)
    return [os.path.dirname(os.fsdecode(link.rstrip(b"\n"))) for link in links if link]


def _alternates(objects: str) -> list[str]:
    listed = atomic.read(os.path.join(objects, "info", "alternates"), limit=1 << 20) or b""
    lines = [os.fsdecode(line) for line in listed.split(b"\n") if line and not line.startswith(b"#")]
    return [os.path.normpath(os.path.join(objects, line)) for line in lines]


def _provided(intent: Intent) -> tuple[tuple[str, str], ...]:
    """`orch.review.provide`: folders of the checkout (node_modules, a venv) that the tree is lent, read-only."""
    pairs = []
    for name in intent.provide:
        source = os.path.join(intent.worktree_path, name)
        if os.path.isdir(source) and not os.path.isabs(name) and ".." not in name.split("/"):
            pairs.append((source, name))
    return tuple(pairs)
