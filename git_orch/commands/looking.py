"""A repository that is only looked at: nothing is made in it, not even `.orch`."""

from __future__ import annotations

import os

from git_orch import key as keys
from git_orch import layout, registry, store
from git_orch.model import Record
from git_orch.source import Source
from git_orch.workspace import settings_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.config import Settings
    from git_orch.formats.excerpt import Source as Lines
    from git_orch.layout import Layout
    from git_orch.model import Report
    from git_orch.registry import Registry


class Look(Record):
    """A repository as it is; `book` is None where no run was ever started in it."""

    layout: Layout
    settings: Settings
    book: Registry | None
    env: dict[str, str]


def look(env: Mapping[str, str]) -> Look:
    """The repository at the current folder.

    Raises:
        OrchError: there is none, or its `.orch` is somebody else's.
    """
    settings = settings_at(os.getcwd(), env)
    place = layout.locate(os.getcwd(), env, orch_dir=settings.directory)
    return Look(layout=place, settings=settings, book=registry.open_registry(place, keys.load(env)), env=dict(env))


def source(seen: Look, reviewed: Report) -> Lines:
    """The lines of the tree that was reviewed, for those who print findings; none where the store is gone."""
    found = store.open_existing(seen.layout, seen.env)
    return Source(found, reviewed.tree_id, reviewed.run_id) if found is not None else lambda *_: None
