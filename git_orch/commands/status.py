"""`git orch status`, and `git orch` alone: where one is, what ran, what to type next."""

from __future__ import annotations

import sys
import time

from git_orch import decisions, registry, report, runs, target
from git_orch.commands import history, present, speaking, spending
from git_orch.commands.looking import look
from git_orch.errors import EnvironmentProblem
from git_orch.formats import advice
from git_orch.formats import status as printed
from git_orch.formats.paragraphs import sentences
from git_orch.formats.spending import today
from git_orch.formats.terminal import VERDICT_MARKS, Terminal
from git_orch.formats.words import age, listed, size
from git_orch.install import launcher
from git_orch.launch import BY_GIT
from git_orch.model import SCHEMA_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from git_orch.commands.looking import Look
    from git_orch.formats.terminal import Mark
    from git_orch.model import Json, Report

_SILENT = ("cancelled", "superseded")  # such runs say nothing about the work tree


def status(env: dict[str, str], *, as_json: bool, session: str = "", verbose: bool = False) -> int:
    """What ran and what runs is told. Always 0: it is an answer, not a judgement."""
    seen = look(env)
    facts = history.recent(seen.layout, seen.book, session=session)
    if as_json:
        from git_orch.formats import json_

        speaking.say(json_.document({"schema_version": SCHEMA_VERSION, "runs": facts, "budget": spending.facts(seen)}))
        return 0
    terminal = Terminal.of(sys.stdout, env)
    speaking.say(printed.status_text(_view(seen, facts, session), terminal))
    if verbose:
        speaking.say(_details(facts, seen.settings.unknown, terminal))
    return 0


def overview(env: dict[str, str]) -> int:
    """`git orch` alone: the same, of the last runs; outside a repository, what git-orch is there for."""
    terminal = Terminal.of(sys.stdout, env)
    try:
        seen = look(env)
    except EnvironmentProblem as problem:
        steps = advice.next_steps(advice.outside(), terminal)
        speaking.tell(f"git-orch: {problem.message}: {problem.hint}\n\n" + "".join(f"{step}\n" for step in steps))
        return problem.exit_code
    facts = history.recent(seen.layout, seen.book, most=3)
    what_next = advice.where_one_is(has_runs=bool(facts), has_hooks=seen.settings.enabled)
    speaking.say(printed.status_text(_view(seen, facts, "").replace(advice=what_next), terminal))
    return 0


def _view(seen: Look, facts: list[Json], session: str) -> printed.StatusView:
    git = seen.layout.git(seen.env)
    newest = _newest_report(seen)
    tree = present.tree_now(seen) if newest else ""
    opened = present.openings(seen, tree) if newest else present.Openings()
    return printed.StatusView(
        branch=target.branch_name(git),
        commit=target.commit_of(git, "HEAD"),
        tree=tree,
        lines=_sentences(seen, newest, session, bool(facts)),
        found=opened.rows,
        more=opened.more,
        rows=tuple(_row(each) for each in facts),
        hooks=_hooks(seen),
        today=today(spending.view(seen)),
        advice=() if facts else advice.where_one_is(has_runs=False, has_hooks=seen.settings.enabled),
    )


def _sentences(seen: Look, newest: Report | None, session: str, has_runs: bool) -> tuple[str, ...]:
    running = [
        f"a review {how}, {age(history.age_s(run_id))} ({runs.short(run_id)})" for run_id, how in _live_here(seen)
    ]
    last = f"last reviewed {age(history.age_s(newest.run_id))} ago: {_judgement(newest)}" if newest else ""
    if seen.settings.untrusted:
        running.append("orch.toml is not trusted, and counts for nothing: git orch trust")
    none = f"no run of session {session}" if session and not has_runs else ""
    return tuple(filter(None, (*running, last or "not reviewed yet", none, *_mutes(seen))))


def _mutes(seen: Look) -> list[str]:
    """Who is told nothing at this moment, and until when."""
    held = decisions.read(seen.layout.durable).mutes(decisions.now())
    last = {mute.session: mute for mute in held}
    return [f"muted: {_whom(mute.session)}{_until(mute.until)} (git orch unmute ends it)" for mute in last.values()]


def _whom(session: str) -> str:
    return f"session {session[:8]}" if session else "every session of this repository"


def _until(seconds: float) -> str:
    return f", until {time.strftime('%H:%M', time.localtime(seconds))}" if seconds else ""


def _judgement(found: Report) -> str:
    word = "not reviewed" if found.verdict == "unreviewed" else found.verdict.replace("-", " ")
    return f"{word}: {found.reason}" if found.reason else word


def _live_here(seen: Look) -> list[tuple[str, str]]:
    """The live runs of this worktree, and what each does."""
    live = seen.book.run_ids() if seen.book is not None else []
    facts = [history.record(run_id, seen.layout, seen.book) for run_id in live]
    return [
        (str(each["run_id"]), "waits" if each["status"] == "queued" else "is running")
        for each in facts
        if each is not None and each.get("git_dir") == seen.layout.git_dir and registry.is_live(str(each["status"]))
    ]


def _newest_report(seen: Look) -> Report | None:
    """What the newest run of this worktree found that came to a judgement, or failed to."""
    for facts in history.here(seen.layout, seen.book):
        found = report.load(seen.layout.run_dir(str(facts["run_id"])))
        if found is not None and found.status not in _SILENT:
            return found
    return None


def _row(facts: Json) -> printed.RunRow:
    by_hand = facts["client"] == registry.BY_HAND
    tree = f" {str(facts['tree_id'])[:7]}" if not facts.get("commit_oid") else ""
    return printed.RunRow(
        run_id=str(facts["run_id"]),
        age_s=history.age_s(str(facts["run_id"])),
        from_="you" if by_hand else f"{facts['client']} {'commit' if facts['client'] == BY_GIT else 'Stop'}",
        what=f"{facts['subject']}{tree}",
        by=" ".join(history.reviewer_names(facts)),
        state=_state(facts),
        mark=_mark(facts),
    )


def _state(facts: Json) -> str:
    """How far the run is, or what came of it: `running`, `pass`, `1 blocking, 2 nits`, `cancelled`."""
    state = str(facts["status"])
    if state == "orphaned" and not facts.get("finished_at"):
        return "died: git orch sweep"
    if registry.is_live(state) or state in _SILENT:
        return state
    verdict, reason = str(facts.get("verdict", "")), str(facts.get("reason", ""))
    if verdict == "findings" and reason:
        return reason.partition(" (")[0].partition(";")[0]
    if verdict == "unreviewed":
        return f"not reviewed: {reason}" if reason else state
    return verdict.replace("-", " ")


def _mark(facts: Json) -> Mark:
    state = str(facts["status"])
    if registry.is_live(state):
        return "running"
    return "skipped" if state in _SILENT else VERDICT_MARKS.get(facts.get("verdict", "unreviewed"), "unreviewed")


def _hooks(seen: Look) -> str:
    gate = "; pre-push gate on" if "pre-push" in seen.settings.git_hooks else ""
    if not seen.settings.enabled:
        return f"hooks: off in this repository{gate}"
    latest: dict[str, float] = {}
    for (client, _), at in launcher.last_fired(seen.env).items():
        latest[client] = max(at, latest.get(client, 0.0))
    ordered = sorted(latest.items(), key=lambda item: -item[1])
    told = [f"{client} fired {age(time.time() - at)} ago" for client, at in ordered]
    return f"hooks: on; {', '.join(told) if told else 'none has fired yet'}{gate}"


def _details(facts: Sequence[Mapping[str, object]], unknown: Sequence[str], terminal: Terminal) -> str:
    """What each run cost, and settings that nobody reads."""
    costs = [_cost(each) for each in facts if "cpu_s" in each]
    lines = ["", "Cost", *sentences(costs, terminal)] if costs else []
    if unknown:
        lines += ["", *sentences([f"settings that git-orch does not know: {listed(unknown)}"], terminal)]
    return "".join(f"{line}\n" for line in lines)


def _cost(facts: Mapping[str, object]) -> str:
    peak = int(str(facts.get("peak_rss_bytes", 0)))
    return f"{runs.short(str(facts['run_id']))}  {float(str(facts['cpu_s'])):.1f} s CPU, {size(peak)} peak"
