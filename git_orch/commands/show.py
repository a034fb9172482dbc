"""`git orch show`: a run in full, or one of its findings."""

from __future__ import annotations

import os
import sys
import time

from git_orch import keeping, registry, report, runs
from git_orch.commands import following, history, speaking
from git_orch.errors import NoSuchRun
from git_orch.formats import blocks
from git_orch.formats.found import FoundRow
from git_orch.formats.show import ShowView, show_text
from git_orch.formats.terminal import Terminal
from git_orch.model import Finding, Report, Usage
from git_orch.source import Source
from git_orch.workspace import open_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Json
    from git_orch.workspace import Workspace

_ID_LETTERS = frozenset("zyxwvutsrqponmlk")  # a finding's id is written with z to k, as jj writes a change's


def show(name: str | None, env: dict[str, str], *, format: str, coverage: bool) -> int:
    """The run, or the finding of that id, is printed. Always 0: it is an answer, not a judgement."""
    workspace = open_at(os.getcwd(), env)
    terminal = Terminal.of(sys.stdout, env)
    if name and len(name) >= 4 and _ID_LETTERS.issuperset(name):
        found, finding = _finding(name, workspace)
        speaking.say(blocks.whole(finding, terminal, Source(workspace.store, found.tree_id)))
        return 0
    run_id = history.resolve(name, workspace.layout, workspace.book)
    found_report = report.load(workspace.layout.run_dir(run_id))
    if found_report is None:
        facts = history.record(run_id, workspace.layout, workspace.book) or {}
        raise NoSuchRun(
            f"run {runs.short(run_id)} has not ended: {facts.get('status', 'unknown')}",
            f"git orch wait {runs.short(run_id)} follows it",
        )
    if format != "text":
        source = Source(workspace.store, found_report.tree_id)
        speaking.say(following.printed(found_report, format, following.Display(terminal), source))
        return 0
    facts = runs.final_record(workspace.layout.run_dir(run_id)) or {}
    speaking.say(show_text(_view(found_report, facts, coverage), terminal))
    return 0


def _view(found: Report, facts: Json, coverage: bool) -> ShowView:
    return ShowView(
        report=found,
        worktree=history.home_short(str(facts.get("worktree_path", ""))),
        started=time.strftime("%H:%M:%S", time.localtime(history.started(found.run_id))),
        fired_by=_fired_by(facts),
        contained=_contained(facts),
        usage=Usage(cpu_s=facts.get("cpu_s", 0.0), peak_rss_bytes=facts.get("peak_rss_bytes", 0)),
        files=_files(found),
        found=tuple(FoundRow(finding=finding) for finding in found.findings),
        all_skipped=coverage,
    )


def _files(found: Report) -> str:
    """Where the run's records lie, and its trees where they were kept."""
    kept = keeping.folder(os.path.dirname(os.path.dirname(found.run_dir)), found.run_id)
    places = [found.run_dir, *([kept] if os.path.isdir(kept) else [])]
    return ", ".join(history.home_short(place) + "/" for place in places)


def _fired_by(facts: Json) -> str:
    client = facts.get("client", "unknown")
    if client == registry.BY_HAND:
        return "you"
    return f"Stop hook of {client} session {str(facts.get('session_id', 'unknown'))[:8]}"


def _contained(facts: Json) -> str:
    """How the reviewers' processes were held, and that nothing of them was left."""
    jobs = facts.get("jobs") or []
    if not jobs:
        return ""
    tiers = sorted({job.get("containment", 0) for job in jobs})
    reasons = sorted({job["containment_degraded_reason"] for job in jobs if job.get("containment_degraded_reason")})
    words = {1: "own PID namespace, checkout read-only", 2: "child subreaper"}
    held = ", ".join(f"tier {tier} ({words.get(tier, 'see docs/platforms.md')})" for tier in tiers)
    ended = "nothing left behind" if facts.get("status") not in ("unkillable", "orphaned") else facts["status"]
    return "; ".join([held, *reasons, str(ended)])


def _finding(name: str, workspace: Workspace) -> tuple[Report, Finding]:
    """The finding whose id begins so, in the newest run that has one.

    Raises:
        NoSuchRun: there is none.
    """
    for run_id in reversed(history.known(workspace.layout, workspace.book)):
        found = report.load(workspace.layout.run_dir(run_id))
        for finding in found.findings if found is not None else ():
            if finding.id.startswith(name) or name.startswith(finding.id):
                return found, finding  # type: ignore[return-value]
    raise NoSuchRun(f"no finding `{name}` here", "git orch show RUN lists a run's findings")
