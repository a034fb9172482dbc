"""`git orch dismiss`, `mute` and `unmute`: what a person decides about findings, and what an agent may contest."""

from __future__ import annotations

import os
import time

from git_orch import config, decisions, inbox, key, layout, lineage, people, registry, sessions
from git_orch.commands import speaking
from git_orch.decisions import Decision
from git_orch.errors import EnvironmentProblem, UsageError
from git_orch.formats.terminal import shown
from git_orch.model import SCHEMA_VERSION
from git_orch.workspace import settings_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.layout import Layout
    from git_orch.model import Finding, Json

MUTE_S = 8 * 3600.0


def dismiss(name: str, why: str, env: dict[str, str]) -> int:
    """The finding is closed by a person's word, or disputed by an agent's.

    Raises:
        NoSuchRun: there is no such finding.
        UsageError: no reason was given.
    """
    if not why.strip():
        raise UsageError("a dismissal wants a reason", f'git orch dismiss {shown(name)} --why "..."')
    place = _place(env)
    _, finding = lineage.named(place, name)
    reason = why.strip()[: decisions.WHY_LIMIT]
    if people.is_person(env):
        _write(place, _decision(finding, reason, env, by_person=True))
        speaking.line(f"dismissed {finding.id}: {shown(finding.path)}: not told again, and no gate minds it")
        return 0
    _dispute(place, finding, reason, env)
    speaking.line(
        f"disputed {finding.id}: not told again; the next review is given your reason. It stays open for the gate "
        "until that review drops it or a person dismisses it"
    )
    return 0


def contest(name: str, why: str, env: Mapping[str, str], folder: str) -> Json:
    """An agent's dispute lies in the inbox, for the next hook or command to take in; gives what was written there.

    Raises:
        NoSuchRun: there is no such finding.
        EnvironmentProblem: there is no inbox, or it cannot be written.
    """
    place = _place(env, folder)
    _, finding = lineage.named(place, name)
    if not registry.instance_of(place.live):
        raise EnvironmentProblem(f"{place.live} is gone, and the inbox with it", "a review makes it anew")
    wish = _wish(finding, why.strip()[: decisions.WHY_LIMIT], env)
    inbox.drop(place.live, wish)
    return {"schema_version": SCHEMA_VERSION, **wish}


def mute(env: dict[str, str], *, for_s: float | None, repo: bool, session: str, now_s: float | None = None) -> int:
    """Nothing is delivered to the session, or to any of the repository, until then; reviews go on.

    Where neither is said: to the session of this worktree that was heard of last, or, where there was none, to any.

    Raises:
        UsageError: it is no person who types.
    """
    people.refuse_others(env, "mute")
    now = decisions.now() if now_s is None else now_s
    until = now + (for_s if for_s is not None else MUTE_S)
    place = _place(env)
    whom = "" if repo else session or _last_session(place)
    _write(place, Decision(kind="mute", by="person", at=now, session=whom, until=until))
    speaking.line(f"muted {_whom(whom)} until {time.strftime('%H:%M', time.localtime(until))}; reviews go on")
    speaking.line("  git orch unmute       ends it")
    if whom:
        speaking.line("  git orch mute --repo  silences every session of this repository")
    return 0


def unmute(env: dict[str, str], *, session: str) -> int:
    """What is muted is told again.

    Raises:
        UsageError: it is no person who types.
    """
    people.refuse_others(env, "unmute")
    _write(_place(env), Decision(kind="unmute", by="person", at=decisions.now(), session=session))
    speaking.line(f"{_whom(session)}: no longer muted")
    return 0


def duration(text: str) -> float | None:
    """The seconds of `--for`; None where nothing was given."""
    return config.seconds("--for", text) if text else None


def _dispute(place: Layout, finding: Finding, why: str, env: Mapping[str, str]) -> None:
    """An agent's dispute is on record, or, where its sandbox keeps `.git` from it, in the inbox."""
    try:
        decisions.write(place.durable, _decision(finding, why, env, by_person=False))
    except OSError:
        if registry.instance_of(place.live):
            inbox.drop(place.live, _wish(finding, why, env))
            return
        raise EnvironmentProblem(f"cannot write {place.durable}", "a person can dismiss it instead") from None


def _wish(finding: Finding, why: str, env: Mapping[str, str]) -> Json:
    return {"do": inbox.DISPUTE, "finding": finding.id, "why": why, "session": people.session_of(env)}


def _decision(finding: Finding, why: str, env: Mapping[str, str], *, by_person: bool) -> Decision:
    return Decision(
        kind="dismiss" if by_person else "dispute",
        by="person" if by_person else "agent",
        at=decisions.now(),
        why=why,
        fingerprint=finding.fingerprint,
        path=finding.path,
        message=finding.message,
        who="" if by_person else people.session_of(env),
    )


def _last_session(place: Layout) -> str:
    last = sessions.latest(place.durable, place.worktree)
    return last.session_id if last is not None else ""


def _whom(session: str) -> str:
    return f"session {shown(session)}" if session else "every session of this repository"


def _place(env: Mapping[str, str], folder: str = "") -> Layout:
    folder = folder or os.getcwd()
    settings = settings_at(folder, env)
    key.load(env)
    return layout.locate(folder, env, orch_dir=settings.directory)


def _write(place: Layout, decision: Decision) -> None:
    try:
        decisions.write(place.durable, decision)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {place.durable}: {error.strerror}", "nothing was decided") from error
