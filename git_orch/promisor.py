"""What a partial clone promises to fetch, for the scratch store to promise the same.

A blob that was never fetched is looked up in the store, so the store must know whom to ask: the promisor remotes, with
what git needs to reach them.
"""

from __future__ import annotations

import os

from git_orch import atomic
from git_orch.git import decode, encode, split_z

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.layout import Layout

_QUERY = (
    r"^(extensions\.partialclone"
    r"|remote\..*\.(url|promisor|partialclonefilter|proxy|proxyauthmethod|uploadpack|vcs|serveroption)"
    r"|url\..*\.insteadof|http\..*|credential\..*|core\.(sshcommand|gitproxy)|ssh\.variant|protocol\..*)$"
)
_SIGNS = (b"promisor", b"partialclone")


def signature(layout: Layout) -> str:
    """What changes whenever the repository's own configuration file does; one stat."""
    try:
        status = os.stat(os.path.join(layout.common_dir, "config"))
    except OSError:
        return "none"
    return f"{status.st_mtime_ns}-{status.st_size}-{status.st_ino}"


def settings(layout: Layout, env: Mapping[str, str]) -> list[tuple[str, str]]:
    """Key and value of all that the store must know; empty for a clone that is whole, and then without a git call."""
    raw = atomic.read(os.path.join(layout.common_dir, "config")) or b""
    if not any(sign in raw.lower() for sign in _SIGNS):
        return []
    items = split_z(layout.git(env).attempt("config", "--local", "-z", "--get-regexp", _QUERY).stdout)
    found = [(key, value) for key, _, value in (decode(item).partition("\n") for item in items)]
    return [(key, _absolute(value, layout) if key.endswith(".url") else value) for key, value in found]


def remote(given: list[tuple[str, str]]) -> str:
    """The name of the first promisor remote, or nothing."""
    for key, value in given:
        if key == "extensions.partialclone":
            return value
        if key.startswith("remote.") and key.endswith(".promisor") and value.casefold() not in ("false", "no", "off"):
            return key[len("remote.") : -len(".promisor")]
    return ""


def config_text(object_format: str, given: list[tuple[str, str]]) -> bytes:
    """The configuration file of a bare repository of that object format that holds the settings given."""
    extended = object_format != "sha1" or any(key.startswith("extensions.") for key, _ in given)
    own = [("core.repositoryformatversion", "1" if extended else "0"), ("core.filemode", "true"), ("core.bare", "true")]
    if object_format != "sha1":
        own.append(("extensions.objectformat", object_format))
    return encode("".join(_section(key) + f"\t{_variable(key)} = {_quoted(value)}\n" for key, value in (*own, *given)))


def _section(key: str) -> str:
    section, _, rest = key.partition(".")
    subsection = rest.rpartition(".")[0]
    return f"[{section} {_quoted(subsection)}]\n" if subsection else f"[{section}]\n"


def _variable(key: str) -> str:
    return key.rpartition(".")[2]


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _absolute(url: str, layout: Layout) -> str:
    """A URL that is a relative path means another place where the store lies; git starts at the worktree's top."""
    if os.path.isabs(url) or ":" in url.partition("/")[0]:
        return url
    whole = os.path.basename(layout.common_dir) != ".git"
    return os.path.normpath(os.path.join(layout.common_dir if whole else os.path.dirname(layout.common_dir), url))
