"""What git's own hooks do: a commit fires a review of its tree and returns; a push waits at the gate."""

from __future__ import annotations

import os
import sys

from git_orch import dedup, gating, inbox, launch, layout, runs, target, tips, workspace
from git_orch.errors import EXIT_INTERRUPTED, EXIT_NO, EXIT_PASS, OrchError
from git_orch.formats import gate as printed
from git_orch.formats.terminal import Terminal, shown
from git_orch.git import decode
from git_orch.launch import BY_GIT, Order
from git_orch.model import Base
from git_orch.place import temp_root
from git_orch.target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from git_orch.registry import Intent, Lock, Registry
    from git_orch.workspace import Workspace

# While one of these is there, commits are made by the dozen and are not yet what they will be.
_UNDER_WAY = ("rebase-merge", "rebase-apply", "sequencer")
_MOST_COMMITS = 200
_MOST_RUNS = 100
_REFS_LIMIT = 16 << 20


def fire(event: str, words: Sequence[str], env: Mapping[str, str]) -> int:
    """The event is dealt with; gives the status for git, by which a push goes on or not.

    What goes wrong is told, and stops a push: a gate that opens when it cannot see would be none.
    """
    # The index of a commit under way is none of ours: it is the tree of HEAD that counts.
    own = {name: value for name, value in env.items() if name != "GIT_INDEX_FILE"}
    try:
        return _post_commit(own) if event == "post-commit" else _pre_push(words, own)
    except OrchError as error:
        hint = f": {error.hint}" if error.hint else ""
        way_out = "          to push all the same: ORCH=0 git push\n" if event == "pre-push" else ""
        sys.stderr.write(f"git-orch: {shown(error.message)}{shown(hint)}\n{way_out}")
        return EXIT_NO
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _opened(event: str, env: Mapping[str, str]) -> Workspace | None:
    """The repository here, where that hook is switched on in it."""
    settings = workspace.settings_at(os.getcwd(), env)
    if event not in settings.git_hooks:
        return None
    place = layout.locate(os.getcwd(), env, orch_dir=settings.directory)
    return workspace.open_at(os.getcwd(), env, settings, place)


# -- post-commit


def _post_commit(env: Mapping[str, str]) -> int:
    """A review of HEAD's tree is on its way, unless it stands already."""
    here = _opened("post-commit", env)
    if here is None or any(os.path.exists(os.path.join(here.layout.git_dir, name)) for name in _UNDER_WAY):
        return EXIT_PASS
    inbox.take_in(here)
    head = target.commit_of(here.git, "HEAD")
    tree = target.tree_of(here.git, head)
    base = _since_last_review(here, head, tips.of_revision(here, "HEAD").base)
    if tree != base.tree_id:
        _fire(here, Target(tree_id=tree, base=base, subject=_name(here, head), commit=head, head=head))
    return EXIT_PASS


def _name(here: Workspace, head: str) -> str:
    branch = target.branch_name(here.git)
    return f"{branch} {head[:7]}" if branch else f"commit {head[:7]}"


def _since_last_review(here: Workspace, head: str, base: Base) -> Base:
    """The newest commit below HEAD whose tree was reviewed by all who review here; else what a push is compared with.

    Only what has ended counts: a run that still goes on may come to nothing, or give way to this one.
    """
    known = [f"^{base.commit}"] if base.commit else []
    words = ("rev-list", "--first-parent", f"--max-count={_MOST_COMMITS}", "--no-commit-header", "--format=%H %T")
    listed = [line.split() for line in decode(here.git.run(*words, head, *known)).splitlines()]
    reviewed = _reviewed_trees(here)
    for commit, tree in listed[1:]:
        if tree in reviewed:
            return Base(tree_id=tree, name=f"{commit[:7]}, which was reviewed", commit=commit)
    return base


def _reviewed_trees(here: Workspace) -> set[str]:
    """The trees on which every reviewer of the settings has given a judgement."""
    wanted, found = set(here.settings.reviewers), set()
    for run_id in runs.run_ids(here.layout.runs)[-_MOST_RUNS:]:
        record = runs.final_record(here.layout.run_dir(run_id)) or {}
        asked = {each.get("name") for each in record.get("asked", ())}
        if record.get("verdict") in ("pass", "findings") and not record.get("pathspec") and wanted <= asked:
            found.add(str(record["tree_id"]))
    return found


def _fire(here: Workspace, wanted: Target) -> None:
    """The run that reviews the target has a supervisor of its own; or one stands already."""
    settings = here.settings
    order = Order(
        reviewers=tuple(settings.reviewer(name) for name in settings.reviewers),
        fail_on=settings.fail_on,
        client=BY_GIT,
        session_id=wanted.commit,
        settle_s=settings.settle_s,
    )
    key = launch.dedup_key(wanted, order)
    if dedup.standing(here.layout, key) is not None:
        return
    intent = launch.prepare(here.layout, settings, wanted, order, temp_root(here.env), here.book.instance)
    lock = here.book.publish(intent)
    if dedup.claim(here.layout, key, intent.run_id) is not None:
        here.book.remove(intent.run_id)
        runs.remove(intent.run_dir)
        os.close(lock.fd)
        return
    launch.supersede_queued(here.book, intent)
    # What git exports to its hooks would lead the supervisor's git astray.
    for name in [name for name in os.environ if name.startswith("GIT_") and name not in here.env]:
        del os.environ[name]
    launch.by_fork(here.book, intent, lock, _supervise)


def _supervise(book: Registry, intent: Intent, lock: Lock) -> None:
    from git_orch import supervisor  # 15 ms that the commit need not wait for

    supervisor.supervise(book, intent, lock)


# -- pre-push


def _pre_push(words: Sequence[str], env: Mapping[str, str]) -> int:
    """Every ref of the push may go, or it is told why not."""
    here = _opened("pre-push", env)
    if here is None:
        return EXIT_PASS
    inbox.take_in(here)
    remote = words[0] if words else "origin"
    found = (tips.of_push(here, pushed, remote) for pushed in tips.pushed_lines(_all_of(0)))
    chosen = {tip.commit + tip.base.tree_id: tip for tip in found if tip is not None}
    asked = gating.policy(here.settings)
    answers = gating.answers(here, list(chosen.values()), asked, gating.usual_wait_s(env), allow="", at_push=True)
    if printed.exit_code(answers) == EXIT_PASS:
        return EXIT_PASS
    terminal = Terminal.of(sys.stderr, env)
    said = printed.stopped(answers, terminal)
    sys.stderr.buffer.write(said.encode(sys.stderr.encoding or "utf-8", "backslashreplace"))
    sys.stderr.buffer.flush()
    return EXIT_NO


def _all_of(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, 1 << 16):
        parts.append(part)
        if sum(map(len, parts)) > _REFS_LIMIT:
            break
    return b"".join(parts)
