"""What an agent in a sandbox, or over MCP, asks for: files in `.orch/inbox`, taken in by the next hook or command.

Some clients keep `.git` read-only for the commands of their agents. A file here is `{"schema_version": "1", "do":
"dispute", "finding": ID, "why": TEXT, "session": ID}`; whoever wrote it, it is believed no further than an agent is.
"""

from __future__ import annotations

import os

from git_orch import atomic, decisions, jsontext, lineage
from git_orch.decisions import Decision
from git_orch.errors import EnvironmentProblem, NoSuchRun
from git_orch.model import SCHEMA_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.layout import Layout
    from git_orch.model import Json
    from git_orch.workspace import Workspace

DISPUTE = "dispute"
_LIMIT = 64 << 10
_MOST = 200


def drop(live: str, value: Json) -> str:
    """A file with the wish lies in the inbox, whole; gives its path.

    Raises:
        EnvironmentProblem: it cannot be written.
    """
    path = os.path.join(live, "inbox", f"{os.urandom(8).hex()}.json")
    try:
        atomic.write(path, jsontext.dumps({"schema_version": SCHEMA_VERSION, **value}).encode("ascii"))
    except OSError as error:
        said = f"cannot write {os.path.dirname(path)}: {error.strerror}"
        raise EnvironmentProblem(said, "see who owns it") from error
    return path


def take_in(workspace: Workspace) -> int:
    """The disputes in the inbox are decisions, and gone from there; gives how many. What is no wish of ours stays.

    Never fails: a hook or a command has other things to do.
    """
    folder, taken = workspace.book.inbox, 0
    try:
        names = sorted(os.listdir(folder))[:_MOST]
    except OSError:
        return 0
    for name in names:
        path = os.path.join(folder, name)
        wish = _read(path) if name.endswith(".json") else None
        if wish is None or wish.get("do") != DISPUTE:
            continue
        try:
            taken += _dispute(workspace.layout, wish)
            os.unlink(path)
        except OSError:  # a full disk, or somebody else was faster: it is there the next time, or was taken in
            continue
    return taken


def _dispute(layout: Layout, wish: Json) -> bool:
    """Whether the dispute is on record now; one of a finding that there is none of is not."""
    name, why, session = (str(wish.get(key, "")) for key in ("finding", "why", "session"))
    try:
        _, finding = lineage.named(layout, name)
    except NoSuchRun:
        return False
    decisions.write(
        layout.durable,
        Decision(
            kind="dispute",
            by="agent",
            at=decisions.now(),
            why=why[: decisions.WHY_LIMIT],
            fingerprint=finding.fingerprint,
            path=finding.path,
            message=finding.message,
            who=session,
        ),
    )
    return True


def _read(path: str) -> Json | None:
    try:
        value = jsontext.loads(atomic.read(path, limit=_LIMIT) or b"")
    except jsontext.JsonTextError:
        return None
    return value if isinstance(value, dict) else None
