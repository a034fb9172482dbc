"""`git orch review`: a tree is frozen, reviewed off to the side, and the verdict comes back."""

from __future__ import annotations

import os
import sys

from git_orch import budget, dedup, inbox, kinds, launch, people, report, rubric, runs, target
from git_orch.commands import following, history, progress, speaking, trusting
from git_orch.commands.looking import Look
from git_orch.commands.wait import exit_code
from git_orch.config import is_agent
from git_orch.errors import EXIT_INTERRUPTED, NothingToReview, UsageError
from git_orch.formats.terminal import Terminal, wrap
from git_orch.formats.words import plural, short_id, size
from git_orch.launch import Order
from git_orch.model import SCHEMA_VERSION, Record, Report
from git_orch.place import temp_root
from git_orch.registry import BY_HAND
from git_orch.reviewers import abilities, agents
from git_orch.source import Source
from git_orch.target import Question
from git_orch.workspace import open_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.commands.following import Interrupts
    from git_orch.model import Disposition, Json, ReviewerSettings, Threshold
    from git_orch.registry import Intent, Lock
    from git_orch.store import Changed
    from git_orch.target import Target
    from git_orch.workspace import Workspace

_FOR_PROGRAMS = ("json", "jsonl")


class Options(Record):
    """What a person asked for."""

    question: Question = Question()
    reviewers: tuple[str, ...] = ()
    detach: bool = False
    foreground: bool = False
    timeout_s: float | None = None
    format_name: str = "text"
    dry_run: bool = False
    pathspec: tuple[str, ...] = ()
    fail_on: Threshold | None = None
    disposition: Disposition = "discard"
    fresh: bool = False
    kind: str = kinds.CODE.name
    rubric: str = ""


class Job(Record):
    """A review about to be done: what, by whom, where."""

    options: Options
    workspace: Workspace
    wanted: Target
    order: Order
    changed: tuple[Changed, ...]


def review(options: Options, env: dict[str, str]) -> int:
    """The review is done, or under way with `--detach`; gives the exit status that its verdict has.

    Raises:
        OrchError: it cannot be; nothing was started.
    """
    job = _job(options, env)
    if options.dry_run:
        speaking.say(_plan_json(job) if options.format_name in _FOR_PROGRAMS else _plan(job))
        return 0
    # From before the start: none may be lost between the two. In the foreground they are the supervisor's to act upon.
    with following.Interrupts(watch=not options.foreground) as interrupts:
        started = _start(job)
        if options.detach:
            _announce(started, job)
            return 0
        if isinstance(started, Report):
            return _show(started, job, progress.chosen(options.format_name, env))
        return _follow(started, job, interrupts)


def disposition(word: str) -> Disposition:
    """What becomes of the trees of a review.

    Raises:
        UsageError: it is nothing that can become of them.
    """
    match word:
        case "discard" | "preserve":
            return word
    raise UsageError(f"--disposition: `{word}` is neither discard nor preserve")


def _job(options: Options, env: dict[str, str]) -> Job:
    if options.detach and options.foreground:
        raise UsageError("--detach and --foreground exclude each other", "leave one of them out")
    if kinds.of(options.kind).whole and not options.pathspec:
        raise UsageError(f"--kind {options.kind}: which document?", f"git orch review --kind {options.kind} PATH")
    workspace = open_at(os.getcwd(), env)
    trusting.heed(workspace.settings)
    inbox.take_in(workspace)
    order = _order(options, workspace)
    wanted = target.resolve(options.question, workspace)
    order = order.replace(rubric=_rubric(options, workspace, wanted))
    changed = workspace.store.changed(wanted.base.tree_id, wanted.tree_id, order.pathspec)
    if not changed:
        raise NothingToReview(
            f"nothing to review: no changed file matches {' '.join(options.pathspec)}", "git orch review -n names them"
        )
    if not options.question.rev and not wanted.head:
        which = f"all {len(changed)} files" if len(changed) > 1 else "the one file"
        speaking.tell(f"git-orch: no commit yet: reviewing {which} as new\n")
    return Job(options=options, workspace=workspace, wanted=wanted, order=order, changed=tuple(changed))


def _order(options: Options, workspace: Workspace) -> Order:
    settings = workspace.settings
    chosen = [settings.reviewer(name) for name in dict.fromkeys(options.reviewers or settings.reviewers)]
    for reviewer in chosen:
        if is_agent(reviewer):
            if not abilities.find(agents.client(reviewer.name), workspace.env.get("PATH", os.defpath)):
                raise agents.missing(reviewer.name)
        elif not reviewer.command and reviewer.name != "static":
            raise UsageError(
                f"reviewer `{reviewer.name}` has no command",
                f"git config orch.reviewer.{reviewer.name}.command 'COMMAND'",
            )
    if options.timeout_s is not None:
        chosen = [reviewer.replace(timeout_s=options.timeout_s) for reviewer in chosen]
    return Order(
        reviewers=tuple(chosen),
        fail_on=options.fail_on or settings.fail_on,
        disposition=options.disposition,
        pathspec=target.within(options.pathspec, workspace.layout, os.getcwd()),
        client=BY_HAND,
        bound=people.in_agent_session(workspace.env),
        fresh=options.fresh,
        kind=kinds.of(options.kind).name,
    )


def _rubric(options: Options, workspace: Workspace, wanted: Target) -> str:
    if options.rubric:
        return rubric.named(options.rubric, os.getcwd())
    return rubric.configured(workspace, wanted.base.tree_id)


# -- starting


def _start(job: Job) -> str | Report:
    """The run that reviews the target: its id; or the report of an earlier one that did the same."""
    workspace, key = job.workspace, launch.dedup_key(job.wanted, job.order)
    standing = None if _must_be_new(job.options) else dedup.standing(workspace.layout, key)
    if standing is not None:
        found = report.load(workspace.layout.run_dir(standing.run_id), reused=True)
        # The same trees may have been asked for by other names.
        return found.replace(subject=job.wanted.subject, base=job.wanted.base) if found else standing.run_id
    _tell_of_budget(job)
    # A work tree that only GIT_WORK_TREE names has no `.git` by which its folder would be known.
    root = temp_root(workspace.env, forbidden=filter(None, (workspace.layout.worktree,)))
    intent = launch.prepare(workspace.layout, workspace.settings, job.wanted, job.order, root, workspace.book.instance)
    try:
        lock = workspace.book.publish(intent)
    except BaseException:
        runs.remove(intent.run_dir)
        raise
    if not _must_be_new(job.options):
        dedup.claim(workspace.layout, key, intent.run_id)
    _supervise(job, intent, lock)
    return intent.run_id


def _tell_of_budget(job: Job) -> None:
    """A person whose review is beyond what hooks keep to is told so, and has it all the same."""
    if job.order.bound or not any(is_agent(reviewer) for reviewer in job.order.reviewers):
        return
    workspace = job.workspace
    reason = budget.read(workspace.layout.durable).why_not(workspace.settings.budget, "")
    if reason:
        speaking.tell(f"git-orch: over the budget of hooks: {reason}; reviewing because you asked\n")


def _must_be_new(options: Options) -> bool:
    return options.fresh or options.disposition != "discard"


def _supervise(job: Job, intent: Intent, lock: Lock) -> None:
    workspace = job.workspace
    if job.options.foreground:
        from git_orch import supervisor

        supervisor.run(workspace.book, intent, lock, workspace.env)
        os.close(lock.fd)
    else:
        launch.by_exec(workspace.book, intent, lock, workspace.env)


# -- telling


def _announce(started: str | Report, job: Job) -> None:
    """The run's name is printed, for whoever comes back to it."""
    run_id = started.run_id if isinstance(started, Report) else started
    if job.options.format_name not in _FOR_PROGRAMS:
        speaking.line(run_id)
        return
    from git_orch.formats import json_

    facts = history.record(run_id, job.workspace.layout, job.workspace.book) or {}
    state = facts.get("status", "queued")
    told: Json = {"run_id": run_id, "tree_id": job.wanted.tree_id, "status": state}
    speaking.say(json_.document({"schema_version": SCHEMA_VERSION, **told}))


def _follow(run_id: str, job: Job, interrupts: Interrupts) -> int:
    show = progress.chosen(job.options.format_name, job.workspace.env)
    workspace = job.workspace
    seen = Look(layout=workspace.layout, settings=workspace.settings, book=workspace.book, env=workspace.env)
    ended = following.follow(following.Run(seen, run_id), show, interrupts)
    if isinstance(ended, Report):
        return _show(ended, job, show)
    if job.options.format_name in _FOR_PROGRAMS:
        _announce(run_id, job)
    return EXIT_INTERRUPTED


def _show(found: Report, job: Job, show: progress.Display) -> int:
    speaking.say(show.printed(found, job.options.format_name, Source(job.workspace.store, found.tree_id, found.run_id)))
    return exit_code(found)


# -- telling what would be done


def _plan(job: Job) -> str:
    """What would be sent to whom, and how large it is."""
    terminal = Terminal.of(sys.stdout, job.workspace.env)
    wanted, patch = job.wanted, _patch(job)
    against = short_id(wanted.base.commit or wanted.base.tree_id)
    what = f"{plural(len(job.changed), 'file')}: {wanted.subject} (tree {short_id(wanted.tree_id)})"
    lines = wrap(
        terminal.sentence(f"Would review {what} against {wanted.base.name} ({against})"), terminal.width, rest="  "
    )
    for reviewer in job.order.reviewers:
        where = "may use the network" if reviewer.network else "stays on this machine"
        by = terminal.sentence(reviewer.command) or _built_in(reviewer)
        said = f"{reviewer.name}: the tree and a patch of {size(len(patch))}; {where}: {by}"
        lines += wrap(said, terminal.width, first="  ", rest="    ")
    for change in job.changed:
        lines.append(f"  {change.status}  {terminal.shown(change.path)}")
    for skip in wanted.skipped:
        lines += wrap(f"{terminal.shown(skip.path)}: {skip.reason}", terminal.width, first="  left out: ", rest="    ")
    return "".join(line + "\n" for line in lines)


def _built_in(reviewer: ReviewerSettings) -> str:
    """Who reviews where the settings name no command."""
    if not is_agent(reviewer):
        return "built-in checks"
    model = f", model {reviewer.model}" if reviewer.model else ""
    return f"{agents.client(reviewer.name).TITLE}{model}"


def _plan_json(job: Job) -> str:
    from git_orch.formats import json_

    wanted = job.wanted
    return json_.document(
        {
            "schema_version": SCHEMA_VERSION,
            "tree_id": wanted.tree_id,
            "base": wanted.base.fields(),
            "patch_bytes": len(_patch(job)),
            "files": [{**json_.path_fields(change.path), "status": change.status} for change in job.changed],
            "skipped": [{**json_.path_fields(skip.path), "reason": skip.reason} for skip in wanted.skipped],
            "reviewers": [
                {"name": each.name, "command": each.command, "network": each.network} for each in job.order.reviewers
            ],
        }
    )


def _patch(job: Job) -> bytes:
    paths = tuple(change.path for change in job.changed) if job.order.pathspec else None
    return job.workspace.store.patch(job.wanted.base.tree_id, job.wanted.tree_id, paths)
