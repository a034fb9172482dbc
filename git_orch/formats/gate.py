"""What the gate says: to a person as a list or at a push, to programs, and to the pages of GitHub and GitLab."""

from __future__ import annotations

from git_orch import jsontext
from git_orch.errors import EXIT_NO, EXIT_PASS, EXIT_UNREVIEWED
from git_orch.findings import letters
from git_orch.formats.columns import Cell, Column, table
from git_orch.formats.paragraphs import plain
from git_orch.formats.terminal import Terminal, mark_style, shown
from git_orch.formats.words import age, plural, short_id
from git_orch.model import SCHEMA_VERSION, Record
from git_orch.runs import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from git_orch.formats.terminal import Mark
    from git_orch.gate import Judgement, Open, State
    from git_orch.model import Json

NAMES = ("text", "json", "github", "gitlab", "markdown")
_MARKS: dict[State, Mark] = {
    "allow": "pass",
    "block": "no",
    "pending": "running",
    "stale": "warning",
    "unreviewed": "unreviewed",
}
_COLUMNS = (Column(), Column(least=12), Column(rank=1, least=20))
_MOST_FILES = 8
_GITLAB_SEVERITIES = {"blocking": "blocker", "advisory": "minor", "nit": "info"}
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>#|~"})


class Answer(Record):
    """A judgement and what to type next; `passes` by what was allowed on the command line, `notes` decide nothing."""

    judgement: Judgement
    review: str = ""
    passes: bool = False
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        """The state of the judgement."""
        return self.judgement.state


def exit_code(answers: Sequence[Answer]) -> int:
    """1 where one is blocked, else 5 where one is not known to be good, else 0."""
    if any(answer.state == "block" for answer in answers):
        return EXIT_NO
    return EXIT_PASS if all(answer.passes for answer in answers) else EXIT_UNREVIEWED


def render(answers: Sequence[Answer], name: str, terminal: Terminal) -> str:
    """All answers in the format of that name, the last line ended."""
    match name:
        case "json":
            return jsontext.dumps(document(answers)) + "\n"
        case "github":
            return _lines([line for answer in answers for line in _github(answer)])
        case "gitlab":
            return jsontext.dumps([item for answer in answers for item in _gitlab(answer)]) + "\n"
        case "markdown":
            return _lines(_markdown(answers))
        case _:
            return _lines(_text(answers, terminal))


# -- for people


def waiting(judgement: Judgement, age_s: float, *, at_push: bool) -> str:
    """The line while a run is waited for, not ended."""
    tip = judgement.tip
    leave = "Ctrl-C: no push" if at_push else "Ctrl-C: do not wait"
    return f"git-orch: {shown(tip.name)} {short_id(tip.commit)}: {judgement.reason}, {age(age_s)} ({leave})"


def stopped(answers: Sequence[Answer], terminal: Terminal) -> str:
    """Why a push is stopped, and each way out of it."""
    lines: list[str] = []
    for answer in answers:
        if not answer.passes:
            lines += _stopped(answer, terminal)
    return _lines([*lines, "  all the same: ORCH=0 git push"])


def _stopped(answer: Answer, terminal: Terminal) -> list[str]:
    judgement, tip = answer.judgement, answer.judgement.tip
    head = f"git-orch: push stopped: {terminal.shown(tip.name)} {short_id(tip.commit)}"
    if judgement.state == "block":
        count = len(judgement.open)
        kind = "blocking finding" if judgement.open[0].finding.severity == "blocking" else "open finding"
        first = judgement.open[0].finding.id
        return [
            f"{head} has {plural(count, kind)}",
            *(_open_line(each, terminal) for each in judgement.open),
            "  to fix:     change it, commit, push again",
            f'  if wrong:   git orch dismiss {first} --why "..."',
        ]
    word = "is not reviewed" if judgement.state == "unreviewed" else f"is {judgement.state}"
    return [
        *plain(f"{head} {word}: {_reason(answer)}", terminal),
        *_files(judgement, terminal),
        f"  review it:  {answer.review}" if judgement.state != "pending" else "  to wait:    git orch wait, push again",
        f'  your word:  git orch gate {terminal.shown(tip.name)} --allow --why "..."',
    ]


def _open_line(each: Open, terminal: Terminal) -> str:
    finding = each.finding
    line = f":{finding.start_line}" if finding.start_line else ""
    said = terminal.sentence(finding.message)
    disputed = f" (disputed: {terminal.sentence(each.disputed)})" if each.disputed else ""
    return f"  {finding.severity}[{finding.id}] {terminal.shown(finding.path)}{line}  {said}{disputed}"


def _files(judgement: Judgement, terminal: Terminal) -> list[str]:
    names = [terminal.shown(gap.path) for gap in judgement.gaps]
    more = [f"  and {len(names) - _MOST_FILES} more"] if len(names) > _MOST_FILES else []
    return [*(f"  {name}" for name in names[:_MOST_FILES]), *more]


def _text(answers: Sequence[Answer], terminal: Terminal) -> list[str]:
    rows = [_row(answer, terminal) for answer in answers]
    lines = table(_COLUMNS, rows, terminal, indent="")
    if len(answers) == 1:
        only = answers[0].judgement
        lines += [_open_line(each, terminal) for each in only.open]
        lines += _files(only, terminal) if only.state in ("stale", "unreviewed") else []
        lines += [f"  note: {terminal.sentence(note)}" for note in answers[0].notes]
    steps = [answer.review for answer in answers if answer.state in ("stale", "unreviewed") and not answer.passes]
    if not steps:
        blocked = [answer.judgement.open[0].finding.id for answer in answers if answer.state == "block"]
        steps = [f"git orch show {blocked[0]}", f'git orch dismiss {blocked[0]} --why "..."'] if blocked else []
    return [*lines, *_in_row(list(dict.fromkeys(steps)), terminal)]


def _row(answer: Answer, terminal: Terminal) -> list[Cell]:
    judgement, mark = answer.judgement, _MARKS[answer.state]
    state = f"{terminal.mark(mark)} {judgement.state}"
    place = f"{terminal.shown(judgement.tip.name)} {short_id(judgement.tip.commit)}"
    return [
        Cell(text=state, style=mark_style(mark), painted=1),
        Cell(text=place),
        Cell(text=terminal.sentence(_reason(answer))),
    ]


def _reason(answer: Answer) -> str:
    judgement = answer.judgement
    if judgement.state in ("allow", "pending") and judgement.run_ids:
        return f"{judgement.reason} ({', '.join(short(run_id) for run_id in judgement.run_ids[-3:])})"
    return judgement.reason


def _in_row(steps: Sequence[str], terminal: Terminal) -> list[str]:
    """The commands side by side where they fit."""
    lines: list[str] = []
    for step in steps:
        if lines and len(lines[-1]) + 5 + len(step) <= terminal.width:
            lines[-1] += f"     {step}"
        else:
            lines.append(f"  {terminal.shown(step)}")
    return lines


# -- for programs


def document(answers: Sequence[Answer]) -> Json:
    """All answers as one object."""
    return {
        "schema_version": SCHEMA_VERSION,
        "exit": exit_code(answers),
        "gates": [_object(answer) for answer in answers],
    }


def _object(answer: Answer) -> Json:
    judgement, tip = answer.judgement, answer.judgement.tip
    return {
        "state": judgement.state,
        "passes": answer.passes,
        "name": tip.name,
        "commit": tip.commit,
        "tree_id": tip.tree_id,
        "base": tip.base.fields(),
        "reason": judgement.reason,
        "runs": list(judgement.run_ids),
        "very_tree": judgement.very_tree,
        "changed": len(tip.changes),
        "findings": [_finding(each) for each in judgement.open],
        "missing": [{"path": gap.path, "reviewers": list(gap.reviewers)} for gap in judgement.gaps],
        "review": answer.review,
        "notes": list(answer.notes),
    }


def _finding(each: Open) -> Json:
    return {**each.finding.fields(), "run_id": each.run_id, "disputed": each.disputed}


def _github(answer: Answer) -> list[str]:
    """Workflow commands: an error for each open finding, and one where it is not reviewed."""
    tip = answer.judgement.tip
    name = f"{tip.name} {short_id(tip.commit)}"
    lines = [_github_finding(each) for each in answer.judgement.open]
    if answer.state == "block":
        return [*lines, f"git-orch: {_data(name)}: {_data(answer.judgement.reason)}"]
    if answer.state == "allow":
        return [f"git-orch: {_data(name)}: {_data(_reason(answer))}"]
    level = "warning" if answer.passes else "error"
    return [f"::{level} title=git-orch gate::{_data(f'{name}: {answer.state}: {_reason(answer)}')}"]


def _github_finding(each: Open) -> str:
    finding = each.finding
    place = f",line={finding.start_line}" if finding.start_line else ""
    path = shown(finding.path).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::error file={path}{place},title=git-orch {finding.id}::{_data(finding.message)}"


def _data(text: str) -> str:
    return shown(" ".join(text.split())).replace("%", "%25").replace("##[", "# #[")


def _gitlab(answer: Answer) -> list[Json]:
    """Code quality issues; a gate that is not open for want of a review is one, too."""
    judgement = answer.judgement
    found = [
        {
            "description": shown(each.finding.message),
            "check_name": "/".join(filter(None, (each.finding.reviewer, each.finding.rule))) or "git-orch",
            "fingerprint": each.finding.fingerprint,
            "severity": _GITLAB_SEVERITIES[each.finding.severity],
            "location": {"path": shown(each.finding.path), "lines": {"begin": max(each.finding.start_line, 1)}},
        }
        for each in judgement.open
    ]
    if answer.state in ("allow", "block"):
        return found
    paths = [gap.path for gap in judgement.gaps] or ["."]
    return found + [
        {
            "description": f"git-orch: {shown(judgement.tip.name)} is {judgement.state}: {shown(_reason(answer))}",
            "check_name": f"git-orch/{judgement.state}",
            "fingerprint": letters(judgement.tip.tree_id[:32]) + path,
            "severity": "info" if answer.passes else "major",
            "location": {"path": shown(path), "lines": {"begin": 1}},
        }
        for path in paths
    ]


def _markdown(answers: Sequence[Answer]) -> list[str]:
    """A table of the gates, and below it each open finding and each file that is missing."""
    lines = ["| gate | commit | why |", "| --- | --- | --- |"]
    for answer in answers:
        tip = answer.judgement.tip
        lines.append(
            f"| **{answer.state}** | {_escaped(tip.name)} `{short_id(tip.commit)}` | {_escaped(_reason(answer))} |"
        )
    for answer in answers:
        for each in answer.judgement.open:
            finding = each.finding
            place = f"{finding.path}:{finding.start_line}" if finding.start_line else finding.path
            lines += ["", f"- **{finding.severity}** `{finding.id}` {_escaped(place)}: {_escaped(finding.message)}"]
        missing = [gap.path for gap in answer.judgement.gaps]
        if missing and answer.state != "block":
            named = ", ".join(_escaped(path) for path in missing[:_MOST_FILES])
            more = f" and {len(missing) - _MOST_FILES} more" if len(missing) > _MOST_FILES else ""
            lines += ["", f"Not as reviewed in {_escaped(answer.judgement.tip.name)}: {named}{more}"]
    return lines


def _escaped(text: str) -> str:
    """The text as Markdown shows it: nothing in it makes a link, a mention, an image or a tag."""
    return shown(" ".join(text.split())).translate(_MARKDOWN).replace("@", "@\u200b")


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
