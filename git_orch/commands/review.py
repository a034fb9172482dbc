"""`git orch review`: a tree is frozen, reviewed off to the side, and the verdict comes back."""

from __future__ import annotations

import os
import sys

from git_orch import dedup, launch, report, runs, target
from git_orch import verdict as verdicts
from git_orch.commands import following, speaking
from git_orch.errors import EXIT_INTERRUPTED, UsageError
from git_orch.formats.terminal import Terminal
from git_orch.launch import Order
from git_orch.model import SCHEMA_VERSION, Record, Report
from git_orch.place import temp_root
from git_orch.registry import BY_HAND
from git_orch.source import Source
from git_orch.target import Question
from git_orch.workspace import Workspace, open_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.model import Disposition, Threshold
    from git_orch.registry import Intent, Lock
    from git_orch.target import Target


class Options(Record):
    """What a person asked for."""

    question: Question = Question()
    reviewers: tuple[str, ...] = ()
    detach: bool = False
    foreground: bool = False
    timeout_s: float | None = None
    format: str = "text"
    dry_run: bool = False
    pathspec: tuple[str, ...] = ()
    fail_on: Threshold | None = None
    disposition: Disposition = "discard"
    fresh: bool = False


def review(options: Options, env: dict[str, str]) -> int:
    """The review is done, or under way with `--detach`; gives the exit status that its verdict has.

    Raises:
        OrchError: it cannot be; nothing was started.
    """
    workspace = open_at(os.getcwd(), env)
    order = _order(options, workspace)
    wanted = target.resolve(options.question, workspace)
    if options.dry_run:
        speaking.say(_plan(wanted, order, workspace))
        return 0
    started = _start(options, workspace, wanted, order)
    if isinstance(started, Report):
        return _show(started, options, workspace, following.chosen(options.format, _terminal()))
    if options.detach:
        _announce(started, options)
        return 0
    return _follow(started, options, workspace)


def _order(options: Options, workspace: Workspace) -> Order:
    settings = workspace.settings
    names = options.reviewers or settings.reviewers
    chosen = [settings.reviewer(name) for name in dict.fromkeys(names)]
    for reviewer in chosen:
        if not reviewer.command and reviewer.name != "static":
            raise UsageError(
                f"reviewer `{reviewer.name}` has no command", f"git config orch.reviewer.{reviewer.name}.command 'COMMAND'"
            )
    if options.timeout_s is not None:
        chosen = [reviewer.replace(timeout_s=options.timeout_s) for reviewer in chosen]
    return Order(
        reviewers=tuple(chosen),
        fail_on=options.fail_on or settings.fail_on,
        disposition=options.disposition,
        pathspec=target.within(options.pathspec, workspace.layout, os.getcwd()),
        client=BY_HAND,
    )


def _start(options: Options, workspace: Workspace, wanted: Target, order: Order) -> str | Report:
    """The run that reviews the target: its id; or the report of an earlier one that did the same."""
    key = launch.dedup_key(wanted, order)
    standing = None if _must_be_new(options) else dedup.standing(workspace.layout, key)
    if standing is not None:
        return report.load(workspace.layout.run_dir(standing.run_id), reused=True) or standing.run_id
    root = temp_root(workspace.env)
    intent = launch.prepare(workspace.layout, workspace.settings, wanted, order, root, workspace.book.instance)
    try:
        lock = workspace.book.publish(intent)
    except BaseException:
        runs.remove(intent.run_dir)
        raise
    if not _must_be_new(options):
        dedup.claim(workspace.layout, key, intent.run_id)
    _supervise(options, workspace, intent, lock)
    return intent.run_id


def _must_be_new(options: Options) -> bool:
    return options.fresh or options.disposition != "discard"


def _supervise(options: Options, workspace: Workspace, intent: Intent, lock: Lock) -> None:
    if options.foreground:
        from git_orch import supervisor

        supervisor.run(workspace.book, intent, lock, workspace.env)
        os.close(lock.fd)
    else:
        launch.by_exec(workspace.book, intent, lock, workspace.env)


def _announce(run_id: str, options: Options) -> None:
    if options.format in ("json", "jsonl"):
        from git_orch.formats import json_

        speaking.say(
            json_.document({"schema_version": SCHEMA_VERSION, "run_id": run_id, "tree_id": "", "status": "queued"})
        )
    else:
        speaking.line(run_id)


def _follow(run_id: str, options: Options, workspace: Workspace) -> int:
    show = following.chosen(options.format, _terminal())
    ended = following.follow(following.Run(workspace, run_id), show)
    if isinstance(ended, Report):
        return _show(ended, options, workspace, show)
    return EXIT_INTERRUPTED


def _show(found: Report, options: Options, workspace: Workspace, show: following.Display) -> int:
    if found.reused and isinstance(show, following.Live):
        show = following.Display(show.terminal)
    source = Source(workspace.store, found.tree_id)
    speaking.say(following.printed(found, options.format, show, source))
    return exit_code(found)


def exit_code(found: Report) -> int:
    """The exit status that tells a report's verdict; of a cancelled run, that it was interrupted."""
    return EXIT_INTERRUPTED if found.status == "cancelled" else verdicts.exit_code(found.verdict)


def _terminal() -> Terminal:
    return Terminal.of(sys.stdout, os.environ)


def _plan(wanted: Target, order: Order, workspace: Workspace) -> str:
    """What would be sent to whom, and how large it is."""
    from git_orch.formats.terminal import shown
    from git_orch.formats.words import plural, short_id, size

    changed = workspace.store.changed(wanted.base.tree_id, wanted.tree_id, order.pathspec)
    patch = workspace.store.patch(wanted.base.tree_id, wanted.tree_id, order.pathspec or None)
    against = short_id(wanted.base.commit or wanted.base.tree_id)
    lines = [
        f"Would review {plural(len(changed), 'file')}: {shown(wanted.subject)} (tree {short_id(wanted.tree_id)}) "
        f"against {shown(wanted.base.name)} ({against})"
    ]
    for reviewer in order.reviewers:
        where = "may use the network" if reviewer.network else "stays on this machine"
        what = shown(reviewer.command) or "built-in checks"
        lines.append(f"  {reviewer.name}: the tree and a patch of {size(len(patch))}; {where}: {what}")
    lines += [f"  left out: {shown(skip.path)}  {skip.reason}" for skip in wanted.skipped]
    return "".join(line + "\n" for line in lines)
