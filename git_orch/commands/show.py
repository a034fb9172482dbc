"""`git orch show`: a run in full, or one of its findings."""

from __future__ import annotations

import os
import sys
import time
from calendar import timegm

from git_orch import findings, formats, journal, keeping, registry, report, runs
from git_orch.commands import history, present, speaking
from git_orch.commands.looking import look, source
from git_orch.commands.wait import StillRunning
from git_orch.errors import NoSuchRun, UsageError
from git_orch.formats import blocks
from git_orch.formats.show import ShowView, show_text
from git_orch.formats.terminal import Terminal
from git_orch.launch import BY_GIT
from git_orch.model import SCHEMA_VERSION, Finding, Report, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.commands.looking import Look
    from git_orch.model import Json

_ID_LETTERS = frozenset("zyxwvutsrqponmlk")  # a finding's id is written with z to k, as jj writes a change's
_TIERS = {1: "own PID namespace, checkout read-only", 2: "child subreaper, checkout writable"}


def show(name: str, env: dict[str, str], *, format_name: str, coverage: bool) -> int:
    """The run, or the finding of that id, is printed. Always 0: it is an answer, not a judgement."""
    seen = look(env)
    if len(name) >= 4 and _ID_LETTERS.issuperset(name):
        speaking.say(_show_finding(name, seen, format_name))
        return 0
    run_id = history.resolve(name, seen.layout, seen.book)
    run_dir = seen.layout.run_dir(run_id)
    found = report.load(run_dir)
    if found is None:
        raise _not_ended(run_id, seen)
    terminal = Terminal.of(sys.stdout, env)
    if format_name == "text":
        speaking.say(show_text(_view(found, runs.final_record(run_dir) or {}, seen, coverage), terminal))
    else:
        speaking.say(formats.render(found, format_name, terminal=terminal, source=source(seen, found)))
    return 0


def _not_ended(run_id: str, seen: Look) -> StillRunning | NoSuchRun:
    name = runs.short(run_id)
    facts = history.record(run_id, seen.layout, seen.book)
    if facts is None:
        return NoSuchRun(f"run {name} left no record that can be read", "git orch status lists what is there")
    if facts["status"] == "orphaned":
        return StillRunning(
            f"run {name}: its supervisor died", "git orch sweep records it, and takes away what it left"
        )
    return StillRunning(f"run {name} has not ended: {facts['status']}", f"git orch wait {name}")


def _view(found: Report, facts: Json, seen: Look, coverage: bool) -> ShowView:
    tree = present.tree_now(seen) if found.findings and facts.get("git_dir") == seen.layout.git_dir else ""
    return ShowView(
        report=found,
        worktree=history.home_short(str(facts.get("worktree_path", ""))),
        started=time.strftime("%H:%M:%S", time.localtime(runs.started(found.run_id))),
        fired_by=_fired_by(facts),
        contained=_contained(facts),
        usage=Usage(cpu_s=facts.get("cpu_s", 0.0), peak_rss_bytes=facts.get("peak_rss_bytes", 0)),
        files=_files(found, seen),
        found=present.rows(seen, found, tree),
        now=tree,
        told=_told(found.run_dir),
        all_skipped=coverage,
    )


def _told(run_dir: str) -> str:
    """To which session each finding of the run was told, when, and in which round; the newest word on each."""
    told: dict[tuple[str, str], str] = {}
    for event in journal.Journal(run_dir).read():
        if event["event"] != "finding.told":
            continue
        session = str(event.get("session", ""))
        at = time.strftime("%H:%M", time.localtime(timegm(time.strptime(str(event["time"])[:19], "%Y-%m-%dT%H:%M:%S"))))
        number = f" (round {event['round']} of {event.get('of', '?')})" if event.get("round") else ""
        told[str(event.get("fingerprint")), session] = (
            f"{event.get('finding')} to session {session[:8]} at {at}{number}"
        )
    return ", ".join(told.values())


def _files(found: Report, seen: Look) -> str:
    """Where the run's records lie, and its trees where they were kept."""
    below = os.path.relpath(found.run_dir)
    records = history.home_short(found.run_dir) if below.startswith("..") else below
    kept = keeping.folder(seen.layout.durable, found.run_id)
    return ", ".join(f"{place}/" for place in (records, *([history.home_short(kept)] if os.path.isdir(kept) else [])))


def _fired_by(facts: Json) -> str:
    client = facts.get("client", "unknown")
    if client == registry.BY_HAND:
        return "you"
    if client == BY_GIT:
        return f"post-commit hook of {str(facts.get('commit_oid', ''))[:7]}"
    return f"Stop hook of {client} session {str(facts.get('session_id', 'unknown'))[:8]}"


def _contained(facts: Json) -> str:
    """How the reviewers' processes were held, and that nothing of them was left."""
    jobs = facts.get("jobs") or []
    if not jobs:
        return ""
    tiers = sorted({job.get("containment", 0) for job in jobs})
    reasons = sorted({job["containment_degraded_reason"] for job in jobs if job.get("containment_degraded_reason")})
    held = ", ".join(f"tier {tier} ({_TIERS.get(tier, 'see docs/platforms.md')})" for tier in tiers)
    ended = "nothing left behind" if facts.get("status") not in ("unkillable", "orphaned") else facts["status"]
    return "; ".join([held, *reasons, str(ended)])


# -- one finding


def _show_finding(name: str, seen: Look, format_name: str) -> str:
    found, finding = _finding(name, seen)
    match format_name:
        case "text":
            return blocks.whole(finding, Terminal.of(sys.stdout, seen.env), source(seen, found))
        case "json" | "jsonl":
            from git_orch.formats import json_

            told = {"schema_version": SCHEMA_VERSION, "run_id": found.run_id, "finding": json_.finding(finding)}
            return json_.document(told)
    raise UsageError(f"a finding is shown as text or json, not as {format_name}")


def _finding(name: str, seen: Look) -> tuple[Report, Finding]:
    """The finding whose id begins so, in the newest run that has one.

    Raises:
        NoSuchRun: there is none, or more than one.
    """
    for run_id in reversed(history.known(seen.layout, seen.book)):
        found = report.load(seen.layout.run_dir(run_id))
        hits = [finding for finding in found.findings if _is_called(finding, name)] if found is not None else []
        if found is not None and len(hits) == 1:
            return found, hits[0]
        if hits:
            raise NoSuchRun(f"`{name}` is the beginning of {len(hits)} findings", "type more of its letters")
    raise NoSuchRun(f"no finding `{name}` here", "git orch show RUN lists a run's findings")


def _is_called(finding: Finding, name: str) -> bool:
    return findings.letters(finding.fingerprint).startswith(name) or finding.id == name
