"""Runs as commands know them: live ones from the registry, ended ones from their records, found by short names."""

from __future__ import annotations

import os
import time

from git_orch import registry, runs
from git_orch.errors import NoSuchRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from git_orch.layout import Layout
    from git_orch.model import Json
    from git_orch.registry import Registry

RECENT = 10


def known(layout: Layout, book: Registry | None) -> list[str]:
    """All run-ids, live and ended, oldest first."""
    live = book.run_ids() if book is not None else []
    return sorted({*live, *runs.run_ids(layout.runs)})


def resolve(name: str, layout: Layout, book: Registry | None) -> str:
    """The run that a person means; without a name the newest of this worktree.

    Raises:
        NoSuchRun: there is none, or more than one.
    """
    if name:
        return runs.find(name, known(layout, book))
    for facts in here(layout, book):
        return str(facts["run_id"])
    raise NoSuchRun("no run of this worktree yet", "git orch review starts one")


def is_there(run_id: str, book: Registry | None) -> bool:
    """Whether the run has an entry: it goes on, or its supervisor died and nobody has taken it away yet."""
    return book is not None and os.path.exists(book.path(run_id, "json"))


def is_alive(run_id: str, layout: Layout, book: Registry | None) -> bool:
    """Whether a supervisor or guardian of the run lives, by the locks that it holds."""
    return (book is not None and book.is_held(run_id)) or runs.is_held(layout.run_dir(run_id))


def record(run_id: str, layout: Layout, book: Registry | None) -> Json | None:
    """The run's record: as it ended, or, while it lives, its intent with its state.

    A run whose supervisor died is `orphaned`, although nobody has recorded it yet.
    """
    run_dir = layout.run_dir(run_id)
    ended = runs.final_record(run_dir)
    if ended is not None or book is None:
        return ended
    intent = book.intent(run_id)
    if isinstance(intent, registry.Refused):
        return runs.final_record(run_dir)  # it may have ended between the two looks
    state = book.state(run_id) or registry.State(status="queued")
    if not is_alive(run_id, layout, book):
        ended = runs.final_record(run_dir)
        state = state.replace(status="orphaned")
    gone = not os.path.isdir(intent.worktree_path or intent.git_dir)
    return ended or {**intent.to_json(), **state.fields(), "jobs": list(state.jobs), "worktree_gone": gone}


def here(layout: Layout, book: Registry | None) -> Iterator[Json]:
    """Records of this worktree's runs, newest first."""
    for run_id in reversed(known(layout, book)):
        facts = record(run_id, layout, book)
        if facts is not None and facts.get("git_dir") == layout.git_dir:
            yield facts


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


def reviewer_names(facts: Json) -> list[str]:
    """The names of a record's reviewers."""
    return [str(item.get("name", "")) for item in facts.get("reviewers", ()) if isinstance(item, dict)]


def age_s(run_id: str) -> float:
    """Seconds since the run began, by the time in its id."""
    return max(0.0, time.time() - runs.started(run_id))


def home_short(path: str) -> str:
    """The path with the person's home as ~."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path.startswith(home + "/") else path
