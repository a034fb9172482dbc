"""What a client's events do: a stop fires a review of what the session did, a start sweeps and remembers the tree."""

from __future__ import annotations

import os
import sys

from git_orch import (
    atomic,
    dialects,
    quiet,
    runs,
    session_name,
    sessions,
    snapshot,
    workspace,
)
from git_orch.errors import OrchError, UsageError
from git_orch.index import folder as index_folder
from git_orch.install import launcher
from git_orch.key import digest
from git_orch.model import Base
from git_orch.occasion import Fired, Scene
from git_orch.sessions import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from git_orch.git import Git
    from git_orch.layout import Layout
    from git_orch.model import Json
    from git_orch.registry import Intent, Lock, Registry
    from git_orch.snapshot import Snapshot

SWEEP_S = 0.2
TOLD_AT_MOST = 20
_SWEEP = "from git_orch import reaper, workspace; reaper.sweep(workspace.open_at(sys.argv[1], os.environ))"
_LATER = ("rate-limited", "quota", "overloaded")  # a provider says so, and it passes
_OF_GIT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")


def fired(event: str, client: str, payload: Json) -> Fired:
    """The event, as the client tells of it."""
    return Fired(
        event=event,
        client=client,
        session_id=dialects.session_id(payload),
        busy=dialects.busy(payload),
        may_go_on=dialects.may_go_on(payload),
        restarted=event == dialects.START and dialects.is_restarted(payload),
    )


def fire(fired: Fired, cwd: str, env: Mapping[str, str]) -> int:
    """The event is dealt with; what the client should know is on standard output, what went wrong on standard error.

    Gives the exit status: 0, but for a `wake` that has something to say.
    """
    try:
        return _handle(fired, cwd, env)
    except OrchError as error:
        sys.stderr.write(f"git-orch: {error.message}" + (f": {error.hint}\n" if error.hint else "\n"))
        return 0


def _handle(fired: Fired, cwd: str, env: Mapping[str, str]) -> int:
    own = {name: value for name, value in env.items() if name not in _OF_GIT}
    settings, locate = workspace.asked_at(cwd, own)
    if not settings.enabled:
        return 0
    place = locate()
    launcher.note_fired(own, fired.event, fired.client)
    if fired.event == dialects.PROMPT:
        quiet.disturb(place.durable, session_name.of(fired.client, fired.session_id, place.worktree))
    if not place.worktree or (fired.event == dialects.PROMPT and not _has_news(place, fired)):
        return 0
    scene = Scene(**workspace.open_at(cwd, own, settings, place).fields(), fired=fired)
    if fired.event == "wake":
        from git_orch import waking

        return waking.wait(scene)
    _take_in(scene)
    {"stop": _stop, "session-start": _session_start, "user-prompt-submit": _prompt}[fired.event](scene)
    return 0


def _has_news(place: Layout, fired: Fired) -> bool:
    name = session_name.of(fired.client, fired.session_id, place.worktree)
    return session_name.has_news(place.durable, name)


def _deliver(scene: Scene, session: Session, tree: Callable[[], str], said: str = "") -> None:
    """The session is told what there is for it; `said` is for its person."""
    if said or _has_news(scene.layout, scene.fired):
        from git_orch import delivery  # 3 ms that most stops can do without

        delivery.deliver(scene, session, tree, said)


def _take_in(scene: Scene) -> None:
    """What an agent in a sandbox left in the inbox is on record."""
    try:
        waiting = os.listdir(scene.book.inbox)
    except OSError:
        return
    if waiting:
        from git_orch import inbox  # 3 ms that a stop need not pay for nothing

        inbox.take_in(scene)


def _stop(scene: Scene) -> None:
    """A review of what the session did is on its way, and the session is told what earlier ones found."""
    taken = _snapshot(scene)
    _deliver(scene, _reviewed(scene, taken), lambda: taken.tree_id)


def _reviewed(scene: Scene, taken: Snapshot) -> Session:
    """The session, once what it did since it began, or since it was last reviewed, is being reviewed."""
    session = _session(scene.layout, scene.fired)
    base = _base(scene, session, taken.tree_id)
    session = session or _new_session(scene, base.tree_id).replace(late=True)
    left_out = _left_out(taken)
    is_seen = left_out in ("", session.left_out)  # an edit that could not be read is told once, never passed over
    session = session.replace(left_out=left_out)
    if not is_seen or taken.tree_id not in (base.tree_id, _reviewed_tree(scene, session)):
        run_id = _fire(scene, taken, base)
        if run_id:
            session = session.replace(reviewed_tree_id=taken.tree_id, run_ids=(*session.run_ids[-49:], run_id))
    sessions.write(scene.layout.durable, session)
    return session


def _reviewed_tree(scene: Scene, session: Session) -> str:
    """The tree that the session's last run looks at, or has; "" where nobody has seen it, and somebody may now."""
    last = runs.final_record(scene.layout.run_dir(session.run_ids[-1])) if session.run_ids else None
    if last is None:
        return session.reviewed_tree_id
    gave_way = last.get("status") == "superseded" or (last.get("verdict") == "unreviewed" and _is_due(scene, last))
    return "" if gave_way else session.reviewed_tree_id


def _is_due(scene: Scene, record: Json) -> bool:
    """Whether agents were kept from a run by their budget or their rest, and would not be now."""
    from git_orch import budget, cooldown  # only after a run that was not reviewed

    told = [each for each in record.get("reviewers", ()) if each.get("verdict") == "unreviewed"]
    kept = [each for each in told if each.get("fault") in _LATER or each.get("reason", "").startswith(budget.KEPT)]
    if not kept or any(cooldown.of(scene.layout.durable, each["name"]) for each in kept):
        return False
    return not budget.read(scene.layout.durable).why_not(scene.settings.budget, scene.fired.session_id)


def _left_out(taken: Snapshot) -> str:
    """What stands for the tracked paths that are not in the snapshot as they are; "" where all are."""
    paths = sorted(skip.path for skip in taken.skipped if skip.tracked)
    return digest(*paths) if paths else ""


def _session_start(scene: Scene) -> None:
    """What was left behind is swept, the session's base is known, and what ended since is told."""
    from git_orch import launch, reaper

    if reaper.sweep(scene, budget_s=SWEEP_S).unfinished:
        launch.in_background(lambda: reaper.sweep(scene), _SWEEP, scene.layout.worktree, env=scene.env)
    session = _first_event(scene)
    _deliver(scene, session, lambda: _snapshot(scene).tree_id, _ended_since(scene, session))


def _prompt(scene: Scene) -> None:
    """The session's base is known, and it is told what ended since."""
    _deliver(scene, _first_event(scene), lambda: _snapshot(scene).tree_id)


def _first_event(scene: Scene) -> Session:
    """The session, whose base is the tree of this moment where it was not seen before."""
    session = _session(scene.layout, scene.fired)
    if session is None:
        session = _new_session(scene, _snapshot(scene).tree_id)
        sessions.write(scene.layout.durable, session)
    return session


def _snapshot(scene: Scene) -> Snapshot:
    return snapshot.in_time(scene.layout, scene.store, scene.settings, scene.env)


def _session(place: Layout, fired: Fired) -> Session | None:
    return sessions.read(place.durable, fired.client, fired.session_id, place.worktree)


def _new_session(scene: Scene, base_tree_id: str) -> Session:
    fired = scene.fired
    return Session(
        client=fired.client, session_id=fired.session_id, worktree=scene.layout.worktree, base_tree_id=base_tree_id
    )


def _base(scene: Scene, session: Session | None, taken: str) -> Base:
    """The tree that the session is compared with: its last reviewed one, else its first, else HEAD's.

    `taken`, the tree of this moment, is there for sure.
    """
    from git_orch import target

    git = scene.git
    in_store = git.replace(objects=scene.store.objects)
    reviewed = _last_reviewed(scene, session) if session is not None else ""
    if reviewed and (reviewed == taken or _is_there(in_store, reviewed)):
        return Base(tree_id=reviewed, name="this session's last review")
    if session is not None and session.base_tree_id and _is_there(in_store, session.base_tree_id):
        return Base(tree_id=session.base_tree_id, name="the start of this session")
    head = target.commit_of(git, "HEAD")
    if not head:
        return Base(tree_id=target.empty_tree(scene.layout.object_format), name="nothing")
    return Base(tree_id=target.tree_of(git, head), name="HEAD", commit=head)


def _last_reviewed(scene: Scene, session: Session) -> str:
    """The newest tree of the session that a run has given a judgement on, "" where there is none.

    A run that was superseded, failed or still goes on has reviewed nothing: what it was to look at is the next one's.
    """
    for run_id in reversed(session.run_ids):
        record = runs.final_record(scene.layout.run_dir(run_id)) or {}
        if record.get("verdict") in ("pass", "findings", "nothing-to-review"):
            return str(record["tree_id"])
    return ""


def _fire(scene: Scene, taken: Snapshot, base: Base) -> str:
    """The run that reviews the snapshot: a new one, or "" where one stands already."""
    from git_orch import dedup, launch, place, target  # 2 ms that a stop on an unchanged tree can do without

    fired, settings = scene.fired, scene.settings
    order = launch.Order(
        reviewers=tuple(settings.reviewer(name) for name in settings.reviewers),
        fail_on=settings.fail_on,
        rubric=_rubric(scene, base),
        client=fired.client,
        session_id=fired.session_id,
        settle_s=settings.settle_s,
    )
    looked_at = target.Target(
        tree_id=taken.tree_id,
        base=base,
        subject="working tree",
        skipped=taken.skipped,
        snapshot_ms=taken.elapsed_ms,
    )
    key_of_verdict = launch.dedup_key(looked_at, order)
    standing = dedup.standing(scene.layout, key_of_verdict)
    if standing is not None:
        return standing.run_id
    root = place.temp_root(scene.env)
    intent = launch.prepare(scene.layout, settings, looked_at, order, root, scene.book.instance)
    lock = scene.book.publish(intent)
    first = dedup.claim(scene.layout, key_of_verdict, intent.run_id)
    if first is not None:
        scene.book.remove(intent.run_id)
        runs.remove(intent.run_dir)
        os.close(lock.fd)
        return first.run_id
    launch.supersede_queued(scene.book, intent)
    if fired.busy:
        from git_orch.journal import Journal

        Journal(intent.run_dir).write("run.fired-while-busy", background_tasks=fired.busy)
    launch.by_fork(scene.book, intent, lock, _supervise)
    return intent.run_id


def _supervise(book: Registry, intent: Intent, lock: Lock) -> None:
    from git_orch import supervisor  # 15 ms that the client need not wait for

    supervisor.supervise(book, intent, lock)


def _rubric(scene: Scene, base: Base) -> str:
    """What `orch.rubric` names, or nothing: by hand one is told why it cannot be had, here the review goes on."""
    if not scene.settings.rubric:
        return ""
    from git_orch import rubric

    try:
        return rubric.configured(scene, base.tree_id)
    except UsageError:
        return ""


def _is_there(git: Git, tree_id: str) -> bool:
    return git.attempt("cat-file", "-e", tree_id).code == 0


def _ended_since(scene: Scene, session: Session) -> str:
    """One sentence on the runs of this worktree that ended, with something to say, since a session last began here."""
    mark = os.path.join(index_folder(scene.layout), "told")
    last = (atomic.read(mark, limit=64) or b"").decode("ascii", "replace").strip()
    fresh = [run_id for run_id in runs.run_ids(scene.layout.runs) if run_id > last][-TOLD_AT_MOST:]
    said = []
    for run_id in fresh:
        record = runs.final_record(scene.layout.run_dir(run_id)) or {}
        is_here = record.get("worktree_path") == scene.layout.worktree and run_id not in session.run_ids
        if is_here and record.get("verdict") in ("findings", "unreviewed"):
            said.append(f"{runs.short(run_id)} {record.get('reason') or record['verdict']}")
    if fresh:
        atomic.write(mark, fresh[-1].encode("ascii"))
    if not said or not last:  # the first time there is no "since"
        return ""
    return f"git-orch: {'; '.join(said)}. `git orch status` shows more."
