"""Runs as commands know them: live ones from the registry, ended ones from their records, found by short names."""

from __future__ import annotations

import os
import time

from git_orch import registry, runs
from git_orch.errors import NoSuchRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.layout import Layout
    from git_orch.model import Json
    from git_orch.registry import Registry

RECENT = 10


def known(layout: Layout, book: Registry | None) -> list[str]:
    """All run-ids, live and ended, oldest first."""
    live = book.run_ids() if book is not None else []
    return sorted({*live, *runs.run_ids(layout.runs)})


def resolve(name: str | None, layout: Layout, book: Registry | None) -> str:
    """The run that a person means; without a name the newest of this worktree.

    Raises:
        NoSuchRun: there is none, or more than one.
    """
    candidates = known(layout, book)
    if name:
        return runs.find(name, candidates)
    for run_id in reversed(candidates):
        facts = record(run_id, layout, book)
        if facts is not None and facts.get("git_dir") == layout.git_dir:
            return run_id
    raise NoSuchRun("no run of this worktree yet", "git orch review starts one")


def record(run_id: str, layout: Layout, book: Registry | None) -> Json | None:
    """The run's record: as it ended, or, while it lives, its intent with its state."""
    ended = runs.final_record(layout.run_dir(run_id))
    if ended is not None or book is None:
        return ended
    intent = book.intent(run_id)
    if isinstance(intent, registry.Refused):
        return None
    state = book.state(run_id) or registry.State(status="queued")
    return {**intent.to_json(), **state.fields(), "jobs": list(state.jobs), "reviewer_names": names_of(intent)}


def recent(layout: Layout, book: Registry | None, *, session: str = "", most: int = RECENT) -> list[Json]:
    """Records of all live runs and the newest ended ones, newest first."""
    chosen = []
    live = set(book.run_ids()) if book is not None else set()
    ended = 0
    for run_id in reversed(known(layout, book)):
        if run_id not in live and ended >= most:
            continue
        facts = record(run_id, layout, book)
        if facts is None or (session and facts.get("session_id") != session):
            continue
        ended += run_id not in live
        chosen.append(facts)
    return chosen


def names_of(intent: registry.Intent) -> list[str]:
    """The names of the run's reviewers."""
    return [reviewer.name for reviewer in intent.reviewers]


def reviewer_names(facts: Json) -> list[str]:
    """The names of a record's reviewers."""
    return [str(item.get("name", "")) for item in facts.get("reviewers", ()) if isinstance(item, dict)]


def age_s(facts: Json) -> float:
    """Seconds since the run began, by the time in its id."""
    return max(0.0, time.time() - started(str(facts["run_id"])))


def started(run_id: str) -> float:
    """When the run began, in seconds since 1970."""
    import calendar

    stamp = run_id.partition("-")[0]
    return calendar.timegm(time.strptime(stamp[:15], "%Y%m%dT%H%M%S")) + int(stamp[15:]) / 1000


def home_short(path: str) -> str:
    """The path with the person's home as ~."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path.startswith(home + "/") else path
