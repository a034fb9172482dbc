"""What an agent may ask for over MCP: each tool's arguments, and the words of the verb that it stands for.

Nothing here stops, lands, allows, trusts or mutes: those are a person's.
"""

from __future__ import annotations

from git_orch import kinds
from git_orch.errors import UsageError
from git_orch.findings import SHORTEST_ID
from git_orch.formats.terminal import shown
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from git_orch.model import Json

WAIT_S, LONGEST_WAIT_S = 50, 600  # several clients give up on a tool after a minute
_ID_LETTERS = frozenset("klmnopqrstuvwxyz")
_TYPES: dict[str, type] = {"string": str, "boolean": bool, "integer": int, "array": list}

_FOLDER = {
    "type": "string",
    "description": "A folder in the work tree that is meant; without it the one that the server was started in.",
}
_RUN = {"type": "string", "description": "Four or more hex digits of a run, or `last`; without it the newest one here."}
_FINDING = {"type": "string", "description": "Its id: the letters in the brackets of blocking[kmzv]."}
_BASE = {"type": "string", "description": "Compare with this revision."}
_WORDS = {"type": "array", "items": {"type": "string"}}


class Tool(Record):
    """A tool: `takes` has the JSON Schema of each argument, `words` makes of them what follows `git orch`.

    One without words is done by the server itself. `reads` says that it changes nothing.
    """

    name: str
    says: str
    takes: Mapping[str, Json]
    needs: tuple[str, ...] = ()
    reads: bool = False
    words: Callable[[Json], list[str]] | None = None

    def schema(self) -> Json:
        """The JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": {**self.takes, "folder": _FOLDER},
            "required": list(self.needs),
            "additionalProperties": False,
        }

    def checked(self, given: Mapping[str, Any]) -> Json:
        """The arguments that were given; empty ones count as left out.

        Raises:
            UsageError: one is unknown, missing, or of another type.
        """
        known = {**self.takes, "folder": _FOLDER}
        for name, value in given.items():
            if name not in known:
                raise UsageError(f"{self.name}: no argument `{shown(name)}`", f"it takes {', '.join(known)}")
            if not _fits(value, known[name]):
                raise UsageError(f"{self.name}: {name} is no {known[name]['type']}")
        found = {name: value for name, value in given.items() if value not in (None, "", [])}
        missing = [name for name in self.needs if name not in found]
        if missing:
            raise UsageError(f"{self.name} wants {' and '.join(missing)}")
        return found


def _fits(value: object, schema: Json) -> bool:
    if value is None:
        return True
    kind = _TYPES[schema["type"]]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        return False
    return kind is not list or all(isinstance(each, str) for each in value)  # type: ignore[attr-defined]


def _review(given: Json) -> list[str]:
    kind, revision, paths = given.get("kind", "code"), given.get("revision", ""), given.get("paths", [])
    if kinds.of(kind).whole and revision:
        raise UsageError(f"a review of kind {kind} takes paths, and no revision")
    words = ["review", "--detach", "--json", f"--kind={kind}"]
    words += [f"--{name}" for name in ("staged", "fresh") if given.get(name)]
    words += [f"--base={given['base']}"] if "base" in given else []
    words += [_plain(revision, "revision")] if revision else []
    return [*words, "--", *paths]


def _wait(given: Json) -> list[str]:
    seconds = given.get("timeout_s", WAIT_S)
    if not 1 <= seconds <= LONGEST_WAIT_S:
        raise UsageError(f"wait: timeout_s is from 1 to {LONGEST_WAIT_S}")
    return ["wait", "--json", f"--timeout={seconds}s", *_run(given)]


def _findings(given: Json) -> list[str]:
    return ["show", "--json", *_run(given)]


def _finding(given: Json) -> list[str]:
    name = given["finding"]
    if len(name) < SHORTEST_ID or not _ID_LETTERS.issuperset(name):  # else `show` would take it for a run
        raise UsageError(f"`{shown(name)}` is no finding's id", "it has four or more of the letters k to z, as in kmzv")
    return ["show", "--json", name]


def _gate(given: Json) -> list[str]:
    words = ["gate", "--json", "--wait=0"]
    words += ["--each"] if given.get("each") else []
    words += [f"--base={given['base']}"] if "base" in given else []
    return [*words, "--", *(_plain(revision, "revision") for revision in given.get("revisions", []))]


def _run(given: Json) -> list[str]:
    return [_plain(given["run"], "run")] if "run" in given else []


def _plain(word: str, what: str) -> str:
    """The word, where no verb would take it for an option."""
    if word.startswith("-"):
        raise UsageError(f"`{shown(word)}` is no {what}")
    return word


TOOLS = (
    Tool(
        name="review",
        says=(
            "Have the work tree as it is now reviewed, or what the arguments name. Returns at once with run_id; "
            "wait tells the verdict. The review sees this very tree, whatever is edited afterwards."
        ),
        takes={
            "revision": {"type": "string", "description": "A commit, a branch, or a range A..B."},
            "base": _BASE,
            "staged": {"type": "boolean", "description": "What is staged, instead of the work tree."},
            "fresh": {"type": "boolean", "description": "Also what was reviewed already."},
            "paths": {**_WORDS, "description": "Only these paths, as git's pathspecs."},
            "kind": {
                "type": "string",
                "enum": list(kinds.NAMES),
                "description": "What is judged. All but code want paths, and what lies there is judged as a whole.",
            },
        },
        words=_review,
    ),
    Tool(
        name="wait",
        says=(
            "Wait for a run to end; gives its verdict and findings. Where the time is up first, error.code is "
            "still-running, and the run goes on. The verdict unreviewed is no pass: a reviewer did not do its work."
        ),
        takes={
            "run": _RUN,
            "timeout_s": {"type": "integer", "minimum": 1, "maximum": LONGEST_WAIT_S, "default": WAIT_S},
        },
        reads=True,
        words=_wait,
    ),
    Tool(
        name="findings",
        says="The verdict of a run that has ended, its findings, and which files it covers.",
        takes={"run": _RUN},
        reads=True,
        words=_findings,
    ),
    Tool(
        name="finding",
        says="One finding in full: where, what fails when, what to do.",
        takes={"finding": _FINDING},
        needs=("finding",),
        reads=True,
        words=_finding,
    ),
    Tool(
        name="dispute",
        says=(
            "Say that a finding is wrong, and why. The next review is given the reason; the finding stays open for the "
            "gate until that review drops it or a person dismisses it."
        ),
        takes={"finding": _FINDING, "why": {"type": "string", "description": "What makes it wrong, with the place."}},
        needs=("finding", "why"),
    ),
    Tool(
        name="gate",
        says=(
            "May these commits go out, by what was reviewed of their content? exit: 0 allowed, 1 blocked, 5 pending, "
            "stale or unreviewed. It decides nothing and waits for nothing."
        ),
        takes={
            "revisions": {**_WORDS, "description": "Commits or branches; HEAD without any."},
            "base": _BASE,
            "each": {"type": "boolean", "description": "Judge every commit, not the tip alone."},
        },
        reads=True,
        words=_gate,
    ),
)
