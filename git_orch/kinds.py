"""What can be reviewed: code, a plan, a specification, documentation. Each kind is a contract, registered here.

A further kind is one entry more: what an agent is asked, and whether it judges a difference or whole documents.
"""

from __future__ import annotations

from git_orch.errors import UsageError
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Kind(Record):
    """A contract: `what` is judged in a few words, `questions` what to look for, `blocking` what makes a fault grave.

    `whole`: documents are judged as they are, all of each, not what has changed in them.
    """

    name: str
    what: str
    questions: tuple[str, ...]
    blocking: str
    whole: bool = False


CODE = Kind(
    name="code",
    what="a change to a code base",
    questions=(
        "Does the change do wrong in a case that can happen: an input, a state, an order of events, a failure?",
        "Does it break a caller, a file format, a contract or data that exists and that it does not change with it?",
        "Does it open a hole: injection, a path that leaves its folder, a secret, a check that is gone?",
        "Can it lose or corrupt data, leak, deadlock, or never end?",
        "Do its tests test it, and can they fail?",
        "Does it keep the project's own rules, and the design where one is given?",
    ),
    blocking="the program does wrong, and you can say on which input or in which state",
)
PLAN = Kind(
    name="plan",
    what="a plan of work",
    questions=(
        "Can each step be done with what is there when its turn comes? Which needs something that none makes?",
        "What would have to be true for the plan to work, and is it, in this code base?",
        "What is missing: a migration, a way back, a test, a case that the goal names?",
        "Do two steps contradict each other, or one the goal?",
        "How is it seen that a step is done?",
    ),
    blocking="who follows the plan as it stands fails or destroys something, and you can say at which step",
    whole=True,
)
SPEC = Kind(
    name="spec",
    what="a specification",
    questions=(
        "Which sentence can be read in two ways that lead to different programs?",
        "Which inputs, states, errors and limits does it leave open that an implementer must decide?",
        "Where does it contradict itself, or what this code base already promises?",
        "What can be neither implemented nor tested as it is written?",
    ),
    blocking="two implementers who both follow the text build what does not fit together, and you can say where",
    whole=True,
)
DOCS = Kind(
    name="docs",
    what="documentation",
    questions=(
        "Which statement is untrue of the code as it is: a name, an option, a default, a path, an exit status?",
        "Which command or example does not work when it is typed as it stands?",
        "What must a reader know to succeed that is said nowhere?",
        "Which instruction would lose data or open a hole?",
    ),
    blocking="a reader who does what it says fails or does harm, and you can say which sentence leads there",
    whole=True,
)
_KINDS = {kind.name: kind for kind in (CODE, PLAN, SPEC, DOCS)}
NAMES = tuple(_KINDS)


def of(name: str) -> Kind:
    """The contract of that name.

    Raises:
        UsageError: there is none.
    """
    if name in _KINDS:
        return _KINDS[name]
    raise UsageError(f"no kind `{name}`", f"one of: {_listed(NAMES)}")


def _listed(names: Iterable[str]) -> str:
    return " ".join(names)
