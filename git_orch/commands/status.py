"""`git orch status`, `status --line`, and `git orch` alone: where one is, what ran, what to type next."""

from __future__ import annotations

import os
import sys
import time

from git_orch import layout, registry, report, runs, target
from git_orch import key as keys
from git_orch.commands import history, speaking
from git_orch.errors import OrchError
from git_orch.formats import status as printed
from git_orch.formats.advice import Advice
from git_orch.formats.found import FoundRow
from git_orch.formats.rows import VERDICT_MARKS
from git_orch.formats.terminal import Terminal
from git_orch.formats.words import age, plural
from git_orch.install import launcher
from git_orch.model import SCHEMA_VERSION, Record, Report
from git_orch.workspace import settings_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.config import Settings
    from git_orch.formats.terminal import Mark
    from git_orch.layout import Layout
    from git_orch.model import Json
    from git_orch.registry import Registry


class Look(Record):
    """A repository that is only looked at: nothing is made in it."""

    layout: Layout
    settings: Settings
    book: Registry | None


def look(env: Mapping[str, str]) -> Look:
    """The repository at the current folder.

    Raises:
        OrchError: there is none, or its `.orch` is somebody else's.
    """
    settings = settings_at(os.getcwd(), env)
    place = layout.locate(os.getcwd(), env, orch_dir=settings.directory)
    return Look(layout=place, settings=settings, book=registry.open_registry(place, keys.load(env)))


def status(env: dict[str, str], *, as_json: bool, session: str = "", verbose: bool = False, most: int = 10) -> int:
    """What ran and what runs is told. Always 0: it is an answer, not a judgement."""
    seen = look(env)
    facts = history.recent(seen.layout, seen.book, session=session, most=most)
    if as_json:
        from git_orch.formats import json_

        speaking.say(json_.document({"schema_version": SCHEMA_VERSION, "runs": facts}))
        return 0
    terminal = Terminal.of(sys.stdout, env)
    speaking.say(printed.status_text(_view(seen, facts, env), terminal))
    if verbose:
        speaking.say("".join(_cost(each) for each in facts))
    return 0


def line(env: dict[str, str]) -> int:
    """One short line for a prompt or a status bar; an empty one where there is nothing to say or no repository."""
    try:
        seen = look(env)
    except OrchError:
        return 0
    facts = [each for each in history.recent(seen.layout, seen.book, most=3) if _is_here(each, seen)]
    live = [each for each in facts if registry.is_live(str(each["status"]))]
    newest = _newest_report(seen, facts)
    found = newest.findings if newest else ()
    view = printed.LineView(
        blocking=sum(finding.severity == "blocking" for finding in found),
        advisory=sum(finding.severity == "advisory" for finding in found),
        verdict=newest.verdict if newest else "",
        running_s=history.age_s(live[0]) if live else None,
    )
    speaking.line(printed.status_line(view, Terminal.of(sys.stdout, env)))
    return 0


def overview(env: dict[str, str]) -> int:
    """`git orch` alone."""
    return status(env, as_json=False, most=3)


def _view(seen: Look, facts: list[Json], env: Mapping[str, str]) -> printed.StatusView:
    git = seen.layout.git(env)
    here = [each for each in facts if _is_here(each, seen)]
    newest = _newest_report(seen, here)
    open_ones = [finding for finding in newest.findings if finding.severity != "nit"] if newest else []
    nits = len(newest.findings) - len(open_ones) if newest else 0
    return printed.StatusView(
        branch=target.branch_name(git),
        commit=target.commit_of(git, "HEAD"),
        lines=_sentences(here, newest),
        found=tuple(FoundRow(finding=finding) for finding in open_ones),
        more=f"{plural(nits, 'nit')} (git orch show {runs.short(newest.run_id)})" if newest and nits else "",
        rows=tuple(_row(each) for each in facts),
        hooks=_hooks(seen, env),
        advice=() if facts else (Advice(command="git orch review", purpose="review the uncommitted work tree"),),
    )


def _sentences(here: list[Json], newest: Report | None) -> tuple[str, ...]:
    live = [each for each in here if registry.is_live(str(each["status"]))]
    if live:
        run_id = str(live[0]["run_id"])
        return (f"a review is running, {age(history.age_s(live[0]))} ({runs.short(run_id)})",)
    if newest is None:
        return ("not reviewed yet",)
    return (f"last reviewed {age(history.age_s({'run_id': newest.run_id}))} ago: {newest.reason or newest.verdict}",)


def _newest_report(seen: Look, facts: list[Json]) -> Report | None:
    for each in facts:
        found = report.load(seen.layout.run_dir(str(each["run_id"])))
        if found is not None and found.status not in ("cancelled", "superseded"):
            return found
    return None


def _is_here(facts: Json, seen: Look) -> bool:
    return facts.get("git_dir") == seen.layout.git_dir


def _row(facts: Json) -> printed.RunRow:
    return printed.RunRow(
        run_id=str(facts["run_id"]),
        age_s=history.age_s(facts),
        from_="you" if facts["client"] == registry.BY_HAND else f"{facts['client']} Stop",
        what=f"{facts['subject']} {str(facts['tree_id'])[:7]}",
        by=" ".join(history.reviewer_names(facts)),
        state=_state(facts),
        mark=_mark(facts),
    )


def _state(facts: Json) -> str:
    status = str(facts["status"])
    if registry.is_live(status):
        return status
    if status != "done":
        return status
    if facts.get("verdict") == "findings":
        severities = facts.get("tally") or ""
        return str(severities or facts.get("reason", "findings")).split(";")[0]
    return str(facts.get("verdict", ""))


def _mark(facts: Json) -> Mark:
    status = str(facts["status"])
    if registry.is_live(status):
        return "running"
    if status in ("cancelled", "superseded"):
        return "skipped"
    return VERDICT_MARKS.get(facts.get("verdict", "unreviewed"), "unreviewed")


def _hooks(seen: Look, env: Mapping[str, str]) -> str:
    if not seen.settings.enabled:
        return ""
    fired = launcher.last_fired(env)
    if not fired:
        return "on, never fired"
    newest = max(fired.values())
    return ", ".join(
        f"{event} fired {age(time.time() - at)} ago" for event, at in sorted(fired.items(), key=lambda item: -item[1])
    ) if newest else ""


def _cost(facts: Json) -> str:
    from git_orch.formats.words import size

    if "cpu_s" not in facts:
        return ""
    name = runs.short(str(facts["run_id"]))
    return f"{name}: {facts['cpu_s']:.1f} s CPU, {size(int(facts['peak_rss_bytes']))} peak\n"


