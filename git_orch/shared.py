"""`orch.toml`: settings that a repository shares, which count for nothing until a person of this user's trusts them.

Trusted is the file of one path with the very bytes that the person saw: by `git orch trust`, which keeps the path, the
SHA-256 and the settings below the user's state folder, with a MAC; or by `orch.trust = SHA256` in git's configuration,
which may name commands anyway (a CI has no person to ask). Nothing of it counts in part: a file that an agent could
edit to have itself reviewed by nobody is as dangerous as one that names a command (docs/adr/0024).

A hook reads the file and the record, and parses no TOML: where there is no file, that is one failed `open`.
"""

from __future__ import annotations

import os
from _stat import S_ISDIR, S_ISREG

from git_orch import atomic, jsontext, system
from git_orch import key as keys
from git_orch.errors import OrchError, UsageError
from git_orch.git import decode
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

FILE = "orch.toml"
LIMIT_BYTES = 64 << 10
# A person's consent, and where things lie, are nothing to share.
_NOT_SHARED = ("enabled", "dir", "githooks", "trust", "keepruns", "keepdays", "keepbytes")


class Shared(Record):
    """The file as it lies there: its real path, its SHA-256 in hex, and its bytes; what has a `problem` has none."""

    path: str
    sha256: str = ""
    raw: bytes = b""
    problem: str = ""


def find(cwd: str, env: Mapping[str, str]) -> Shared | None:
    """The file at the top of the work tree that `cwd` lies in; None where there is none."""
    top = _top(cwd, env)
    path = os.path.join(top, FILE)
    try:
        fd = os.open(path, os.O_RDONLY | system.PLAIN)
    except FileNotFoundError:
        return None
    except OSError as error:  # a link, or closed to us
        return Shared(path=path, problem="is a link" if os.path.islink(path) else str(error.strerror))
    try:
        mode = os.fstat(fd).st_mode
        if not S_ISREG(mode):
            return Shared(path=path, problem="is a folder" if S_ISDIR(mode) else "is no plain file")
        raw = _read(fd)
    finally:
        os.close(fd)
    if len(raw) > LIMIT_BYTES:
        return Shared(path=path, problem="is larger than 64 KiB")
    from git_orch import dircache  # 1 ms, and most repositories have no such file

    digest = dircache.algorithm("sha256")(raw).hexdigest()
    return Shared(path=os.path.realpath(path), sha256=digest, raw=raw)


def trusted_items(found: Shared, env: Mapping[str, str], named: Sequence[str]) -> list[bytes] | None:
    """The settings as `git config -z` would list them, where the file is trusted; None where it is not.

    Args:
        named: the values of `orch.trust` in git's configuration.

    Raises:
        UsageError: it is trusted by its hash, and is no settings file.
    """
    if not found.sha256:
        return None
    if found.sha256 in (value.strip().casefold() for value in named):
        return items_of(found.raw)
    record = _record(found.path, env)
    return record[1] if record is not None and record[0] == found.sha256 else None


def items_of(raw: bytes) -> list[bytes]:
    """The file's settings, each as key, newline, value.

    Raises:
        UsageError: it is not TOML, or holds what cannot be shared.
    """
    import tomllib  # never where a hook goes

    try:
        document = tomllib.loads(raw.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{FILE} is not TOML: {error}") from None
    return [item.encode("utf-8", "surrogateescape") for item in _flat("orch", document)]


def trust(found: Shared, items: Sequence[bytes], env: Mapping[str, str]) -> None:
    """This file, at this path, with these bytes, is trusted until it changes.

    Raises:
        EnvironmentProblem: the state folder cannot be written.
    """
    path = _record_path(found.path, env)
    listed = [decode(item) for item in items]
    mac = _mac(found.path, found.sha256, listed, env)
    value = {"path": found.path, "sha256": found.sha256, "items": listed, "mac": mac}
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    atomic.write(path, jsontext.dumps(value).encode("ascii"), mode=0o600)


def revoke(found: Shared, env: Mapping[str, str]) -> bool:
    """Whether the file of that path was trusted; it is not any more."""
    try:
        os.unlink(_record_path(found.path, env))
    except FileNotFoundError:
        return False
    return True


def refusal(path: str) -> UsageError:
    """The error where nothing may go on without the file, or with one that somebody has changed."""
    found = find(os.path.dirname(path), {})
    if found is not None and found.problem:
        return UsageError(f"{path} {found.problem}: its settings cannot count", "make it a plain file, or remove it")
    hint = "read it, then: git orch trust; where no person is: git config orch.trust SHA256"
    return UsageError(f"{path} is not trusted, or has changed since", hint)


def _record(path: str, env: Mapping[str, str]) -> tuple[str, list[bytes]] | None:
    """What is recorded of the path: the SHA-256 and the settings. A record that we did not write is none."""
    try:
        value = jsontext.loads(atomic.read(_record_path(path, env), limit=4 * LIMIT_BYTES) or b"")
        sha256, listed, mac = value["sha256"], value["items"], value["mac"]
        known = keys.same(mac, _mac(path, sha256, listed, env))
    except (OSError, OrchError, jsontext.JsonTextError, KeyError, TypeError, AttributeError):
        return None
    return (sha256, [item.encode("utf-8", "surrogateescape") for item in listed]) if known else None


def _record_path(path: str, env: Mapping[str, str]) -> str:
    return os.path.join(keys.state_dir(env), "trust", f"{keys.digest(path)}.json")


def _mac(path: str, sha256: str, items: Sequence[str], env: Mapping[str, str]) -> str:
    return keys.mac(keys.load(env), "orch.toml", path, sha256, *items)


def _top(cwd: str, env: Mapping[str, str]) -> str:
    """The folder that holds `.git`; the folder itself where none above it does."""
    if env.get("GIT_WORK_TREE"):
        return os.path.join(cwd, env["GIT_WORK_TREE"])
    top = os.path.realpath(cwd)
    while not os.path.lexists(os.path.join(top, ".git")):
        above = os.path.dirname(top)
        if above == top:
            return cwd
        top = above
    return top


def _read(fd: int) -> bytes:
    parts = []
    size = 0
    while size <= LIMIT_BYTES and (part := os.read(fd, LIMIT_BYTES)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _flat(prefix: str, value: Any) -> Iterator[str]:
    """Every value below a table, by its dotted key."""
    match value:
        case dict():
            for name, inner in value.items():
                _refuse_unshared(prefix, name)
                yield from _flat(f"{prefix}.{name}", inner)
        case list():
            for inner in value:
                if isinstance(inner, (dict, list)):
                    raise UsageError(f"{FILE}: {prefix} is a list of words, not of tables")
                yield from _flat(prefix, inner)
        case bool():
            yield f"{prefix}\n{'true' if value else 'false'}"
        case str() | int() | float():
            if "\0" in str(value):
                raise UsageError(f"{FILE}: {prefix} holds a NUL")
            yield f"{prefix}\n{value}"
        case _:
            raise UsageError(f"{FILE}: {prefix} is a date; write it as text")


def _refuse_unshared(prefix: str, name: str) -> None:
    if prefix == "orch" and name.casefold() in _NOT_SHARED:
        raise UsageError(f"{FILE}: {name} cannot be shared", f"each person sets it: git config orch.{name} ...")
