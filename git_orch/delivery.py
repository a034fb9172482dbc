"""What a session is told, and when: findings that are open, still there and in what was changed, each of them once.

Looked at only when something has ended since (`session_name.has_news`). From the cheapest question to the dearest:
which findings are neither told nor decided, and lie in what was changed (records alone); which of them a later review
let go (two git calls); which are still there (one diff-tree a run that reported any).
"""

from __future__ import annotations

import os
import sys

from git_orch import atomic, attendance, decisions, dialects, jsontext, lineage, opened, runs, session_name, sessions
from git_orch.errors import OrchError
from git_orch.findings import Gone, Moved
from git_orch.journal import Journal
from git_orch.key import digest
from git_orch.launch import BY_GIT, BY_HAND
from git_orch.model import SEVERITIES, Record
from git_orch.offers import Offer, Offers
from git_orch.patch import changed_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from git_orch.formats.telling import Told
    from git_orch.model import Finding, Json
    from git_orch.occasion import Scene
    from git_orch.offers import Way
    from git_orch.patch import Lines
    from git_orch.sessions import Session

MOST_AT_ONCE = 10
WAKE = "wake"
_MOST_RUNS = 30
_MOST_OWN_RUNS = 5
_PATCH_LIMIT = 64 << 20
_NOT_ASKED = ("superseded", "cancelled")


class Due(Record):
    """A finding that the session is to be told of, where it stands now.

    `run_id` is the newest run of a session that reported it; `own` whether that was this session's.
    """

    finding: Finding
    run_id: str
    own: bool = False


def deliver(scene: Scene, session: Session, tree: Callable[[], str], said: str = "") -> bool:
    """The session and its person are told what there is for them at this event; says whether the agent was.

    `tree` gives the present tree, and is asked only where something depends on it; `said` is for the person as well.
    What goes wrong here is told to nobody but the log of the client: a hook has other things to do.
    """
    try:
        return _Occasion(scene, session, tree).tell(said)
    except (OrchError, OSError) as error:
        sys.stderr.write(f"git-orch: nothing was told: {error}\n")
        return False


class _Occasion:
    """One event at which a session may be told something."""

    def __init__(self, scene: Scene, session: Session, tree: Callable[[], str]) -> None:
        self._scene = scene
        self._fired = scene.fired
        self._session = session
        self._take_tree = tree
        self._known_tree = ""
        self._durable = scene.layout.durable
        self._name = scene.session_file
        self._attended = attendance.is_attended(scene.fired.client, scene.env)
        self._decided = decisions.Decisions()
        self._withheld = False

    def tell(self, said: str) -> bool:
        settings, fired = self._scene.settings, self._fired
        news_ns = session_name.news_ns(self._durable)
        if settings.delivery == "off" or fired.session_id == "unknown":
            sessions.is_done(self._durable, self._name, news_ns)
            return False
        if fired.event != WAKE and not session_name.has_news(self._durable, self._name):
            self._answer(message=said)
            return False
        offers = Offers.open(self._durable, self._name)
        if offers is None:
            return False
        try:
            return self._tell(offers, said, news_ns)
        finally:
            offers.close()

    def _tell(self, offers: Offers, said: str, news_ns: int) -> bool:
        if self._fired.event != WAKE:
            self._receipt(offers)
        self._decided = decisions.read(self._durable)
        if self._decided.muted(self._fired.session_id, decisions.now()) is not None:
            return False
        messages = [said, *self._faults(offers)]
        due = self._due(offers)
        chosen = self._chosen(due, offers)
        told = self._told(chosen, offers, len(due) - len(chosen)) if chosen else None
        if told is None:
            messages += self._left(due, offers)
            if not due and not self._withheld:
                sessions.is_done(self._durable, self._name, news_ns)
            self._answer(message="\n".join(filter(None, messages)))
            return False
        sessions.is_waiting(self._durable, self._name)
        self._say(told, chosen, offers, messages)
        return True

    def _receipt(self, offers: Offers) -> None:
        for offer in offers.settle(restarted=self._fired.restarted):
            self._note(offer, "finding.acknowledged")

    @property
    def _tree(self) -> str:
        """The present tree, taken once."""
        self._known_tree = self._known_tree or self._take_tree()
        return self._known_tree

    # -- what is due

    def _due(self, offers: Offers) -> list[Due]:
        """What is open and still there, gravest first. At a stop: the blocking findings of this session's own runs."""
        here, reported = self._reported(offers)
        if not reported:
            return []
        if not self._can_be_told():
            self._withheld = True
            return []
        steps = lineage.read(self._scene.layout.runs, self._scene.store, only=here)
        found = []
        for step, left in opened.unclosed(steps, self._decided):
            wanted = [each for each in left if each.fingerprint in reported and self._is_wanted(each, reported)]
            if not wanted:
                continue
            stand = opened.stand(self._scene.store, step, wanted, self._tree)
            for finding, anchor in zip(wanted, stand, strict=True):
                if not isinstance(anchor, Gone):
                    path = anchor.path if isinstance(anchor, Moved) else finding.path
                    moved = finding.replace(path=path, start_line=anchor.line)
                    found.append(reported[finding.fingerprint].replace(finding=moved))
        return sorted(found, key=lambda due: SEVERITIES.index(due.finding.severity))

    def _reported(self, offers: Offers) -> tuple[set[str], dict[str, Due]]:
        """The last runs of this worktree; and what sessions' runs among them reported that is neither told nor decided.

        What a person's own review found is on the person's lines, and shown to the person. So is what a session's found
        that was first heard of at a stop: it was compared with a commit, and what was dirty before it began is in that.
        """
        layout = self._scene.layout
        here: set[str] = set()
        found: dict[str, Due] = {}
        for run_id in reversed(runs.run_ids(layout.runs)):
            record = runs.final_record(layout.run_dir(run_id)) or {}
            if record.get("git_dir") != layout.git_dir:
                continue
            here.add(run_id)
            own = run_id in self._session.run_ids
            if self._is_on_its_lines(record) if own else _is_of_a_session(record):
                self._take_up(run_id, own, offers, found)
            if len(here) >= _MOST_RUNS:
                break
        return here, found

    def _is_on_its_lines(self, record: Json) -> bool:
        base: Json = record.get("base", {})
        return not self._session.late or base.get("tree_id") != self._session.base_tree_id

    def _take_up(self, run_id: str, own: bool, offers: Offers, found: dict[str, Due]) -> None:
        changed: dict[str, Lines] | None = None
        for finding in lineage.findings_of(self._scene.layout.run_dir(run_id)):
            mark = finding.fingerprint
            known = found.get(mark)
            if finding.severity == "nit" or (known is not None and (known.own or not own)):
                continue
            if offers.is_told(mark) or self._decided.dismissed(mark) or self._decided.disputed(mark):
                continue
            changed = self._changed(run_id) if changed is None else changed
            if _is_inside(finding, changed):
                found[mark] = Due(finding=finding, run_id=run_id, own=own)

    def _changed(self, run_id: str) -> dict[str, Lines]:
        path = os.path.join(self._scene.layout.run_dir(run_id), "changes.patch")
        return changed_lines(atomic.read(path, limit=_PATCH_LIMIT) or b"")

    def _can_be_told(self) -> bool:
        fired = self._fired
        if fired.event not in (dialects.STOP, WAKE):
            return dialects.takes(fired.client, fired.event)
        is_asked = self._attended or (fired.event == dialects.STOP and self._scene.settings.unattended == "block")
        return is_asked and fired.may_go_on and not fired.busy and dialects.takes(fired.client, dialects.STOP)

    def _is_wanted(self, finding: Finding, reported: dict[str, Due]) -> bool:
        if self._fired.event not in (dialects.STOP, WAKE):
            return True
        if finding.severity == "blocking" and reported[finding.fingerprint].own:
            return True
        self._withheld = True  # for the next prompt
        return False

    # -- what of it is said now

    def _chosen(self, due: Sequence[Due], offers: Offers) -> list[Due]:
        """Those that are this session's to fix, and not too many; none where its rounds are over."""
        fired, settings = self._fired, self._scene.settings
        asks = fired.event in (dialects.STOP, WAKE)
        if not due or (asks and offers.rounds >= settings.rounds):
            return []
        first = list(due[:MOST_AT_ONCE])
        if not self._attended and not asks:
            return first  # nobody asks it for a fix
        from git_orch import lease

        worktree = digest(self._scene.layout.git_dir)[:16]
        marks = [each.finding.fingerprint for each in first]
        ours = set(lease.take(self._durable, worktree, self._name, marks, decisions.now()))
        return [each for each in first if each.finding.fingerprint in ours]

    def _told(self, chosen: list[Due], offers: Offers, more: int) -> Told | None:
        """What is said: the offers are claimed; None where another hook was faster with all of them."""
        from git_orch.formats.telling import Told

        asks = self._fired.event in (dialects.STOP, WAKE)
        number = offers.rounds + 1 if asks else 0
        way: Way = "wake" if self._fired.event == WAKE else "stop" if asks else "context"
        chosen[:] = [
            each
            for each in chosen
            if offers.claim(
                Offer(
                    fingerprint=each.finding.fingerprint,
                    finding_id=each.finding.id,
                    run_id=each.run_id,
                    at=decisions.now(),
                    way=way,
                    round=number,
                )
            )
        ]
        if not chosen:
            return None
        run_ids = tuple(sorted({each.run_id for each in chosen}, reverse=True))
        return Told(
            findings=tuple(each.finding for each in chosen),
            run_ids=run_ids,
            reviewers=self._reviewers(run_ids),
            round=number,
            rounds=self._scene.settings.rounds,
            more=more,
            attended=self._attended,
        )

    def _reviewers(self, run_ids: Sequence[str]) -> tuple[str, ...]:
        records = [runs.final_record(self._scene.layout.run_dir(run_id)) or {} for run_id in run_ids]
        listed = (each for record in records for each in record.get("reviewers", ()))
        return tuple(dict.fromkeys(str(each.get("name")) for each in listed if each.get("verdict") != "unreviewed"))

    def _say(self, told: Told, chosen: Sequence[Due], offers: Offers, messages: Sequence[str]) -> None:
        from git_orch.formats import telling

        message = "\n".join(filter(None, [telling.to_person(told), *messages]))
        if self._fired.event == WAKE:
            sys.stderr.write(telling.to_fix(told))
        elif told.round:
            self._answer(onward=telling.to_fix(told), message=message)
        else:
            self._answer(context=telling.to_know(told), message=message)
        sys.stdout.flush()
        sys.stderr.flush()
        marks = {each.finding.fingerprint: each for each in chosen}
        offers.said(marks)
        for offer in offers.of(marks):
            self._note(offer, "finding.told", of=told.rounds)

    def _answer(self, **parts: str) -> None:
        """One JSON object on standard output, or nothing. Where no person looks, nothing is for a person."""
        if not self._attended:
            parts.pop("message", None)
        answer = dialects.answer(self._fired.client, self._fired.event, **parts)
        if answer:
            sys.stdout.write(jsontext.dumps(answer) + "\n")

    def _note(self, offer: Offer, event: str, **facts: object) -> None:
        """The journal of the run has it; of one that was retired nobody wants to know."""
        run_dir = self._scene.layout.run_dir(offer.run_id)
        if not os.path.isdir(run_dir):
            return
        who = {"client": self._fired.client, "session": self._fired.session_id}
        what = {"finding": offer.finding_id, "fingerprint": offer.fingerprint, "way": offer.way, "round": offer.round}
        Journal(run_dir).write(event, **who, **what, **facts)

    # -- what only the person is told

    def _left(self, due: Sequence[Due], offers: Offers) -> list[str]:
        """Once a session: that blocking findings are left after its last round."""
        rounds = self._scene.settings.rounds
        if not due or self._fired.event != dialects.STOP or offers.rounds < rounds or not rounds:
            return []
        if not offers.first_time("rounds"):
            return []
        from git_orch.formats import telling

        run_ids = tuple(sorted({each.run_id for each in due}, reverse=True))
        left = telling.Told(findings=tuple(each.finding for each in due), run_ids=run_ids, rounds=rounds)
        return [telling.no_more_rounds(left)]

    def _faults(self, offers: Offers) -> list[str]:
        """Once a session and reviewer and kind of fault: that it gave no answer, which blocks nothing."""
        if not self._attended:
            return []
        said = []
        for run_id in self._session.run_ids[-_MOST_OWN_RUNS:]:
            record = runs.final_record(self._scene.layout.run_dir(run_id)) or {}
            if record.get("status") in _NOT_ASKED:
                continue
            said += [sentence for each in record.get("reviewers", ()) if (sentence := _fault(each, offers))]
        return said


def _is_of_a_session(record: Json) -> bool:
    """Whether a session has fired the run, and it was compared with what the session began with, not with a commit."""
    base: Json = record.get("base", {})
    return record.get("client") not in (BY_HAND, BY_GIT) and not base.get("commit")


def _fault(review: Json, offers: Offers) -> str:
    if review.get("verdict") != "unreviewed":
        return ""
    name, reason = str(review.get("name", "")), str(review.get("reason") or review.get("outcome", ""))
    if not offers.first_time(f"{name}\0{review.get('fault') or review.get('outcome')}"):
        return ""
    from git_orch.formats import telling

    return telling.not_reviewed(name, reason)


def _is_inside(finding: Finding, changed: dict[str, Lines]) -> bool:
    """Whether the finding is about what was changed, and not about what was there before."""
    if finding.path not in changed:
        return False
    return not finding.start_line or changed[finding.path].touch(
        finding.start_line, max(finding.start_line, finding.end_line)
    )
