"""`orch.delivery=wake`: a second handler of a stop, which waits for the review and wakes the session where it must.

By choice only, and never where no person attends: a client that runs without a terminal would wait along. Claude Code
hands what is on standard error to the agent where an `asyncRewake` handler ends with 2; our line turns WOKEN into that,
so that a missing file or a crash, for which Python ends with 2 and 1, wakes nobody.
"""

from __future__ import annotations

import time

from git_orch import attendance, delivery, runs, sessions, snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.occasion import Scene
    from git_orch.sessions import Session

WOKEN = 10
FIRST_S = 3.0
"""How long the handler beside this one may take to fire the review."""
LONGEST_S = 1750.0
_NAP_S = 0.1


def wait(scene: Scene) -> int:
    """The review of this stop has ended; WOKEN where the session has been asked for a fix, on standard error.

    A later stop of the session has a handler of its own: this one then leaves the word to it.
    """
    fired = scene.fired
    if scene.settings.delivery != delivery.WAKE or not fired.may_go_on:
        return 0
    if not attendance.is_attended(fired.client, scene.env):
        return 0
    run_id = _under_way(scene)
    if not run_id or not _ended(scene, run_id):
        return 0
    session = _session(scene)
    if session is None or session.run_ids[-1:] != (run_id,):
        return 0
    return WOKEN if delivery.deliver(scene, session, lambda: _tree(scene)) else 0


def _under_way(scene: Scene) -> str:
    """The session's newest run; "" where it has none.

    One that goes on is this stop's. Where there is none after a while, this stop has fired none, or a review so short
    that it was over before we looked: what the newest one found is then told, if nobody has told it yet.
    """
    deadline = time.monotonic() + FIRST_S
    while True:
        session = _session(scene)
        newest = session.run_ids[-1] if session is not None and session.run_ids else ""
        if time.monotonic() >= deadline or (newest and not _has_ended(scene, newest)):
            return newest
        time.sleep(_NAP_S)


def _ended(scene: Scene, run_id: str) -> bool:
    deadline = time.monotonic() + LONGEST_S
    while not _has_ended(scene, run_id):
        if time.monotonic() > deadline:
            return False
        time.sleep(_NAP_S)
    return True


def _has_ended(scene: Scene, run_id: str) -> bool:
    return runs.has_ended(scene.layout.run_dir(run_id))


def _tree(scene: Scene) -> str:
    return snapshot.in_time(scene.layout, scene.store, scene.settings, scene.env).tree_id


def _session(scene: Scene) -> Session | None:
    return sessions.read(scene.layout.durable, scene.fired.client, scene.fired.session_id, scene.layout.worktree)
