"""An agent's part of a review: what of the difference it is given, the tree it works in, the call, and its answer.

`assign` does what is done once a reviewer; a `Briefing` is one call for one portion of the difference.
"""

from __future__ import annotations

import os

from git_orch import atomic, exempt, kinds, portions, prompt, runs, withheld
from git_orch.config import is_agent
from git_orch.git import decode
from git_orch.model import Record, Usage, utc_stamp
from git_orch.registry import BY_HAND
from git_orch.reviewers import abilities, agents, schema
from git_orch.reviewers.client import PROMPT, Call, Heard, Output, spelled
from git_orch.reviewers.reading import Request as Asked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from git_orch.containment import View
    from git_orch.model import Outcome, Review, ReviewerSettings
    from git_orch.portions import Part, Portion
    from git_orch.registry import Intent
    from git_orch.request import Request
    from git_orch.reviewers.abilities import Abilities
    from git_orch.reviewers.client import Client
    from git_orch.reviewers.reading import Answer, Unusable
    from git_orch.store import Changed, Store
    from git_orch.withheld import Overlay

HOOK_LINES, HOOK_FILES, HOOK_BYTES = 3000, 60, 400_000
"""The most that an agent is given when a hook asks: first commits, vendored drops and formatter runs are larger."""
_WITHHELD = "withheld"
_GITLINK = "160000"


class Assignment(Record):
    """What one agent is to do in a run: `refusal` is why it does nothing, or ""; `skipped` has a reason a path."""

    settings: ReviewerSettings
    intent: Intent
    store: Store
    able: Abilities
    overlay: Overlay
    portions: tuple[Portion, ...]
    skipped: Mapping[str, str]
    status: Mapping[str, str]
    rules: tuple[tuple[str, str], ...] = ()
    rubric: str = ""
    refusal: str = ""

    @property
    def client(self) -> Client:
        """The client that does it."""
        return agents.client(self.settings.name)


class Command(Record):
    """A call ready to be made: the whole command line and environment, and the file that is its standard input."""

    argv: tuple[str, ...]
    env: dict[str, str]
    stdin_path: str


def assign(
    settings: ReviewerSettings,
    intent: Intent,
    store: Store,
    env: Mapping[str, str],
    patch: bytes,
    changed: Sequence[Changed],
) -> Assignment:
    """What the agent is to do.

    Raises:
        EnvironmentProblem: its program is not there.
        GitError: a tree cannot be read.
    """
    assert is_agent(settings)
    client = agents.client(settings.name)
    program = abilities.find(client, env.get("PATH", os.defpath))
    if not program:
        raise agents.missing(settings.name)
    files = [change for change in changed if _GITLINK not in (change.new_mode, change.old_mode)]
    parts = portions.parts(patch)
    skipped = _skipped(store, intent, files, parts)
    given = [part for part in parts if part.path not in skipped]
    differing = None if intent.pathspec else files
    return Assignment(
        settings=settings,
        intent=intent,
        store=store,
        able=abilities.of(client, program, env),
        overlay=withheld.overlay(store, intent.base_tree_id, intent.tree_id, client.planted(), differing),
        portions=portions.split(given),
        skipped=skipped,
        status={change.path: change.status for change in files},
        rules=prompt.rules(store, intent.base_tree_id),
        rubric=decode(atomic.read(os.path.join(intent.run_dir, runs.RUBRIC)) or b""),
        refusal=_refusal(settings, intent, given),
    )


class Briefing:
    """One call of an agent for one portion. `reply` is there once `read` was called."""

    def __init__(self, assignment: Assignment, number: int) -> None:
        self._assignment = assignment
        self._number = number
        self._adjusted: tuple[str, ...] = ()
        self._heard = Heard()
        self._paid_usd = 0.0
        self._most_usd = assignment.settings.budget_usd

    def may_cost(self, usd: float) -> None:
        """The call, with its second try, costs no more than that, where the client keeps to it."""
        self._most_usd = usd

    @property
    def paid_usd(self) -> float:
        """What the client says that its tries have cost."""
        return self._paid_usd

    @property
    def tree_id(self) -> str:
        """The tree that the agent works in: the reviewed one, but for what steers agents."""
        return self._assignment.overlay.tree_id

    @property
    def portion(self) -> Portion:
        """What of the difference it is about."""
        return self._assignment.portions[self._number]

    @property
    def label(self) -> str:
        """What tells the files of this call from those of the others of the same agent; "" for the first."""
        return str(self._number + 1) if self._number else ""

    def command(self, request: Request, folder: str, env: Mapping[str, str]) -> Command:
        """The call, with all its files in the request's folder and a copy of the prompt in the run's.

        Raises:
            TooOld: the client lacks an option that it cannot do without.
        """
        work, settings = self._assignment, self._assignment.settings
        call = Call(
            tree=request.tree,
            folder=request.folder,
            schema=schema.text(),
            model=settings.model,
            timeout_s=settings.timeout_s,
            budget_usd=max(0.01, self._most_usd - self._paid_usd) if self._most_usd >= 0 else self._most_usd,
        )
        words, self._adjusted = spelled(work.client.flags(call), work.able.options)
        asked = prompt.text(self._brief(request)).encode("utf-8", "replace")
        atomic.write(call.schema_path, call.schema.encode("ascii"))
        path = os.path.join(request.folder, PROMPT)
        for copy in (path, os.path.join(folder, f"{PROMPT}.md")):
            atomic.write(copy, asked)
        kept = {name: env[name] for name in work.client.KEPT if name in env}
        own = {**request.environment(env), **kept, **work.client.environment(call)}
        return Command(argv=(work.able.program, *words), env=own, stdin_path=path)

    def seen(self, view: View, env: Mapping[str, str]) -> View:
        """The view of the machine, with the session bus where the client's sign-in lies behind it."""
        if not self._assignment.client.NEEDS_BUS:
            return view
        bus = env.get("DBUS_SESSION_BUS_ADDRESS", "").removeprefix("unix:path=").partition(",")[0]
        kept = {os.path.realpath(path) for path in (bus, os.path.join(env.get("XDG_RUNTIME_DIR", ""), "bus")) if path}
        return view.replace(hidden=tuple(path for path in view.hidden if path not in kept))

    def read(
        self, request: Request | None, outcome: Outcome, stdout: bytes, stderr: bytes, root: str
    ) -> Answer | Unusable:
        """What the agent answered."""
        call = Call(tree=root, folder=request.folder if request else "", schema="")
        output = Output(stdout=stdout, stderr=stderr, usage=atomic.read(call.usage_path, limit=1 << 20) or b"")
        asked = Asked(
            nonce=request.nonce if request else "",
            offered=self.portion.paths,
            tokens=self.portion.tokens,
            root=root,
        )
        work = self._assignment
        reply = agents.read(work.client, work.settings, output, outcome, asked)
        self._heard = reply.heard
        self._paid_usd += reply.heard.cost_usd
        return reply.answer

    @property
    def spent(self) -> Usage:
        """What the last call cost, as far as its client tells."""
        heard = self._heard
        return Usage(tokens=heard.tokens, cached_tokens=heard.cached_tokens, cost_usd=heard.cost_usd)

    def dressed(self, review: Review) -> Review:
        """The review with what its client told beside the answer."""
        able, said = self._assignment.able, self._heard.said
        fault = said.fault if said is not None and review.verdict == "unreviewed" else ""
        return review.replace(
            fault=fault,
            resets_at=utc_stamp(said.resets_at) if said is not None and said.resets_at else "",
            session_id=self._heard.session_id,
            client=f"{self._assignment.settings.name} {able.version}".strip(),
            adjusted=self._adjusted,
        )

    def _brief(self, request: Request) -> prompt.Brief:
        work, portion = self._assignment, self.portion
        new_texts = withheld.texts(work.store, work.overlay)
        folder = os.path.join(request.folder, _WITHHELD)
        if new_texts:
            withheld.write(folder, new_texts)
        numbers = {path: f"{number}.txt" for number, (path, _) in enumerate(new_texts, 1)}
        total = len(work.portions)
        return prompt.Brief(
            kind=kinds.of(work.intent.kind),
            nonce=request.nonce,
            subject=work.intent.subject,
            patch=portion.patch,
            paths=portion.paths,
            status=work.status,
            left_out=work.skipped,
            rules=work.rules,
            rubric=work.rubric,
            withheld={path: numbers.get(path, "") for path in work.overlay.paths},
            folder=folder,
            portion=f"part {self._number + 1} of {total} of the difference" if total > 1 else "",
            as_text=agents.answers_in_text(work.settings.name),
        )


def _skipped(store: Store, intent: Intent, files: Sequence[Changed], parts: Sequence[Part]) -> dict[str, str]:
    binary = frozenset(part.path for part in parts if part.is_binary)
    attributes = exempt.attributes(store, intent.base_tree_id, (change.path for change in files))
    found = exempt.by_rule(files, binary, attributes)
    for part in parts:
        if len(part.raw) > portions.LARGEST_FILE_BYTES and part.path not in found:
            # No rule: somebody has written that, and no agent has read it.
            found[part.path] = (
                f"{_mib(len(part.raw))} of changes, over the {_mib(portions.LARGEST_FILE_BYTES)} an agent is given"
            )
    return found


def _refusal(settings: ReviewerSettings, intent: Intent, given: Sequence[Part]) -> str:
    """Why a hook does not have this reviewed by an agent, and how to have it done; "" where it does."""
    if intent.client == BY_HAND:
        return ""
    lines, size = sum(part.lines for part in given), sum(len(part.raw) for part in given)
    if lines <= HOOK_LINES and len(given) <= HOOK_FILES and size <= HOOK_BYTES:
        return ""
    base = "" if intent.base_name == "HEAD" else f" --base {intent.base_tree_id[:12]}"
    return (
        f"too large: {lines} changed lines in {len(given)} files, {size // 1000} kB; a hook gives an agent at most "
        f"{HOOK_LINES} lines, {HOOK_FILES} files, {HOOK_BYTES // 1000} kB; by hand: git orch review --reviewer "
        f"{settings.name}{base}"
    )


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):.1f}".removesuffix(".0") + " MiB"
