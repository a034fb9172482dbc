"""What earlier runs reviewed, path by path: from which content to which, by whom, and what they found there.

Read from the records and from the evidence in the store alone, two git calls for any number of runs. A *content* is
`MODE OID` as git's trees have it, and empty where there is no such path.
"""

from __future__ import annotations

import os

from git_orch import atomic, jsontext, runs
from git_orch.config import BUILT_IN
from git_orch.errors import NoSuchRun
from git_orch.findings import SHORTEST_ID, unhex
from git_orch.git import decode, encode
from git_orch.model import Finding, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from git_orch.layout import Layout
    from git_orch.model import Json, ReviewerSettings
    from git_orch.store import Changed, Store

HANDED = "handed.json"
ABSENT = ""
_ENDED_BY_ITSELF = ("completed", "child-exit-nonzero")  # of what was cut short nobody knows how much was read
_GITLINK = "160000 "
_NOT_THE_QUESTION = ("timeout_s", "stall_s", "required")
_LIMIT = 64 << 20


class Step(Record):
    """One run: how each path of its difference was before and after, and which reviewers have read it.

    `evidence` is a tree with the reviewed side of those paths. `readers` has, by name, the paths that this reviewer
    read; `asked` the digest of its settings; `handed` the fingerprints of earlier findings that the run was told of,
    and `contested` those of them that an agent disputes.
    """

    run_id: str
    tree_id: str
    evidence: str = ""
    contents: Mapping[str, tuple[str, str]] = {}
    readers: Mapping[str, frozenset[str]] = {}
    asked: Mapping[str, str] = {}
    findings: tuple[Finding, ...] = ()
    handed: frozenset[str] = frozenset()
    contested: frozenset[str] = frozenset()
    live: bool = False

    def reads(self, path: str, reviewer: str, asked: str = "") -> bool:
        """Whether that reviewer, with these settings where some are given, has read the path's change in this run."""
        if asked and self.asked.get(reviewer) != asked:
            return False
        return path in self.contents and path in self.readers.get(reviewer, ())

    def says(self, fingerprint: str) -> bool:
        """Whether the run has reported the finding."""
        return any(finding.fingerprint == fingerprint for finding in self.findings)


def of_change(change: Changed) -> tuple[str, str]:
    """The contents before and after a change."""
    return _content(change.old_mode, change.old_oid), _content(change.new_mode, change.new_oid)


def digest_of(reviewer: ReviewerSettings) -> str:
    """What makes two settings the same reviewer: all but how long it may take, or must."""
    return _digest(reviewer.fields())


def read(
    folder: str,
    store: Store,
    paths: Collection[str] | None = None,
    *,
    before: str = "",
    only: Collection[str] | None = None,
) -> list[Step]:
    """The ended runs of that folder that reviewed any of the paths (None: of all), oldest first.

    `before` is a run-id: it and newer ones are left out; `only`: all others are.
    """
    found = []
    for run_id in runs.run_ids(folder):
        if before and run_id >= before:
            break
        if only is not None and run_id not in only:
            continue
        step = _recorded(os.path.join(folder, run_id), run_id, paths)
        if step is not None:
            found.append(step)
    return _with_contents(found, store, [(f"refs/runs/{s.run_id}:base", f"refs/runs/{s.run_id}:tree") for s in found])


def of_live(store: Store, intents: Sequence[tuple[str, str, str, Sequence[ReviewerSettings]]]) -> list[Step]:
    """Runs that live, each as if all its reviewers read everything: run-id, base tree, tree and reviewers."""
    steps = [
        Step(run_id=run_id, tree_id=tree, asked={each.name: digest_of(each) for each in reviewers}, live=True)
        for run_id, _, tree, reviewers in intents
    ]
    known = _with_contents(steps, store, [(base, tree) for _, base, tree, _ in intents])
    return [step.replace(readers={name: frozenset(step.contents) for name in step.asked}) for step in known]


def ways(steps: Iterable[Step], path: str) -> list[tuple[str, str, Step]]:
    """Each run's step on the path: from which content to which."""
    return [(*step.contents[path], step) for step in steps if path in step.contents]


def reachable(edges: Iterable[tuple[str, str]], start: str) -> set[str]:
    """The contents that one gets to from a content by reviewed steps, that one included."""
    by_start: dict[str, list[str]] = {}
    for old, new in edges:
        by_start.setdefault(old, []).append(new)
    found, waiting = {start}, [start]
    while waiting:
        for content in by_start.get(waiting.pop(), ()):
            if content not in found:
                found.add(content)
                waiting.append(content)
    return found


def let_go(finding: Finding, step: Step, steps: Iterable[Step]) -> bool:
    """Whether a later review, which was told of the step's finding, has been silent about it since the file changed.

    Of what an agent disputes, also while it has not. The built-in checks need not be told: of the same comparison
    they say the same, for as long as it holds.
    """
    return any(
        later.run_id > step.run_id
        and later.reads(finding.path, finding.reviewer)
        and finding.path in step.contents
        and not later.says(finding.fingerprint)
        and (_was_told(finding, step, later) or _compares_alike(finding, step, later))
        for later in steps
    )


def _was_told(finding: Finding, step: Step, later: Step) -> bool:
    changed = later.contents[finding.path][1] != step.contents[finding.path][1]
    return finding.fingerprint in later.handed and (changed or finding.fingerprint in later.contested)


def _compares_alike(finding: Finding, step: Step, later: Step) -> bool:
    return finding.reviewer == BUILT_IN and later.contents[finding.path][0] == step.contents[finding.path][0]


def named(layout: Layout, name: str) -> tuple[str, Finding]:
    """The finding whose id begins so, and the newest run that reported it.

    Raises:
        NoSuchRun: there is none, or more than one.
    """
    try:
        digits = unhex(name)
    except ValueError:
        digits = ""
    if len(digits) < SHORTEST_ID:
        raise NoSuchRun(f"`{name}` is no finding's id", "it has four or more of the letters k to z, as in kmzv")
    hits: dict[str, tuple[str, Finding]] = {}
    for run_id in reversed(runs.run_ids(layout.runs)):
        for finding in findings_of(layout.run_dir(run_id)):
            if finding.fingerprint.startswith(digits):
                hits.setdefault(finding.fingerprint, (run_id, finding))
    if len(hits) > 1:
        raise NoSuchRun(f"`{name}` is the beginning of {len(hits)} findings", "type more of its letters")
    for hit in hits.values():
        return hit
    raise NoSuchRun(f"no finding `{name}` here", "git orch show RUN lists a run's findings")


# -- one run


def _recorded(run_dir: str, run_id: str, paths: Collection[str] | None) -> Step | None:
    """What the records of a run say; None where it reviewed none of the paths, or has not ended."""
    covered = _object(run_dir, "coverage.json")
    if paths is not None and not _offered(covered) & set(paths):
        return None
    record = runs.final_record(run_dir)
    if record is None:
        return None
    try:
        return _step(record, covered, run_dir, run_id)
    except (KeyError, TypeError, AttributeError):  # of another version
        return None


def _step(record: Json, covered: Json, run_dir: str, run_id: str) -> Step:
    handed = _object(run_dir, HANDED)
    return Step(
        run_id=run_id,
        tree_id=record["tree_id"],
        readers=_readers(record, covered),
        asked={each["name"]: _digest(each) for each in record.get("asked", ())},
        findings=findings_of(run_dir),
        handed=frozenset(handed.get("fingerprints", ())),
        contested=frozenset(handed.get("contested", ())),
    )


def findings_of(run_dir: str) -> tuple[Finding, ...]:
    """The findings of a run that has ended, as it reported them."""
    found = _object(run_dir, "findings.json").get("findings", ())
    try:
        return tuple(Finding(**{name: each[name] for name in Finding._fields if name in each}) for each in found)
    except TypeError:  # of another version
        return ()


def _offered(covered: Json) -> set[str]:
    links = (skip.get("path") for skip in covered.get("skipped", ()) if isinstance(skip, dict))
    return {*covered.get("offered", ()), *filter(None, links)}


def _readers(record: Json, covered: Json) -> dict[str, frozenset[str]]:
    """Which paths each reviewer has read: those that it says, those that are gone, and those left out by a rule.

    A path that is gone has nothing to read but the difference, and so has a submodule: whoever gave a judgement has
    seen that.
    """
    by_reviewer: Json = covered.get("by_reviewer", {})
    excused: Json = covered.get("excused", {})
    said = {path for paths in by_reviewer.values() for path in paths}
    gone = set(covered.get("reviewed", ())) - said
    links = {skip["path"] for skip in covered.get("skipped", ()) if skip.get("reason") == "submodule"}
    withheld = set(covered.get("withheld", ()))
    found = {}
    for review in record.get("reviewers", ()):
        name = review.get("name", "")
        if review.get("outcome") not in _ENDED_BY_ITSELF:
            continue
        judged = gone | links if review.get("verdict") != "unreviewed" else set()
        found[name] = frozenset(judged.union(by_reviewer.get(name, ()), excused.get(name, ())) - withheld)
    return found


def _digest(settings: Mapping[str, object]) -> str:
    from git_orch.key import digest

    told = sorted((name, repr(value)) for name, value in settings.items() if name not in _NOT_THE_QUESTION)
    return digest(*(part for pair in told for part in pair))


def _object(run_dir: str, name: str) -> Json:
    raw = atomic.read(os.path.join(run_dir, name), limit=_LIMIT)
    try:
        value = jsontext.loads(raw or b"{}")
    except jsontext.JsonTextError:
        return {}
    return value if isinstance(value, dict) else {}


# -- their evidence


def _with_contents(steps: Sequence[Step], store: Store, sides: Sequence[tuple[str, str]]) -> list[Step]:
    """The steps whose two sides are both there, with what differs between them."""
    if not steps:
        return []
    trees = _trees(store, [name for pair in sides for name in pair])
    known = [
        (step, trees[old], trees[new])
        for step, (old, new) in zip(steps, sides, strict=True)
        if old in trees and new in trees
    ]
    differences = _differences(store, [(old, new) for _, old, new in known])
    return [
        step.replace(evidence=new, contents=contents)
        for (step, _, new), contents in zip(known, differences, strict=True)
    ]


def _trees(store: Store, names: Sequence[str]) -> dict[str, str]:
    """The tree-id of each name. Evidence that has nothing on one side has no tree there: it is the empty one."""
    raw = store.git().run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=_lines(names))
    found = {}
    for name, line in zip(names, decode(raw).splitlines(), strict=True):
        oid, _, kind = line.partition(" ")
        if kind == "tree":
            found[name] = oid
    empty = _EMPTY_TREES[store.object_format]
    for name in names:
        run, _, side = name.partition(":")
        other = f"{run}:{'tree' if side == 'base' else 'base'}"
        if side and name not in found and found.get(other, empty) != empty:
            found[name] = empty
    return found


_EMPTY_TREES = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}


def _differences(store: Store, pairs: Sequence[tuple[str, str]]) -> list[dict[str, tuple[str, str]]]:
    """For each pair of trees the paths that differ, each with its two contents."""
    words = ("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
    raw = store.git().run(*words, stdin=_lines([f"{old} {new}" for old, new in pairs])) if pairs else b""
    found: list[dict[str, tuple[str, str]]] = []
    items = iter(raw.split(b"\0"))
    for item in items:
        head = item
        while head and not head.startswith(b":"):  # the names of a pair, also of one without a difference
            found.append({})
            head = head.partition(b"\n")[2]
        if head:
            old_mode, new_mode, old_oid, new_oid, _ = head[1:].decode("ascii").split(" ")
            found[-1][decode(next(items))] = (_content(old_mode, old_oid), _content(new_mode, new_oid))
    return found


def _content(mode: str, oid: str) -> str:
    return f"{mode} {oid}" if int(mode) else ABSENT


def is_gitlink(content: str) -> bool:
    """Whether the content is a submodule's commit."""
    return content.startswith(_GITLINK)


def _lines(names: Iterable[str]) -> bytes:
    return encode("".join(f"{name}\n" for name in names))
