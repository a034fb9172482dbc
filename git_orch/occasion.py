"""An event that a client has fired, and the repository in which it was fired."""

from __future__ import annotations

from git_orch import session_name
from git_orch.model import Record
from git_orch.workspace import Workspace


class Fired(Record):
    """An event that a client has fired, and what it says of its session.

    `busy` is the number of tasks that go on behind a stop; `may_go_on` whether the agent could be asked for more;
    `restarted` whether the client was started anew.
    """

    event: str
    client: str
    session_id: str
    busy: int = 0
    may_go_on: bool = True
    restarted: bool = False


class Scene(Workspace):
    """An opened repository with the event that was fired in it."""

    fired: Fired

    @property
    def session_file(self) -> str:
        """The name of the file of the session that fired."""
        return session_name.of(self.fired.client, self.fired.session_id, self.layout.worktree)
