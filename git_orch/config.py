"""git's own configuration, read once into frozen settings: `ORCH_*` outweighs it, it outweighs a trusted `orch.toml`.

Unknown keys are kept by name so that a person can be told; a bad value is an error that names its key.
"""

from __future__ import annotations

from git_orch import shared
from git_orch.errors import UsageError
from git_orch.git import Git, decode, split_z
from git_orch.model import THRESHOLDS, UNLIMITED, Budget, Record, ReviewerSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal

    from git_orch.model import Json, Threshold
    from git_orch.proc import Finished

QUESTION = ("config", "-z", "--get-regexp", r"^(orch\.|branch\..*\.orchbase$)")
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_OUTPUTS = ("json", "sarif", "rdjson")
BUILT_IN = "static"
_NO_LIMIT = "unlimited"
STATIC_TIMEOUT_S = 60.0
AGENTS = ("claude", "codex", "copilot", "cursor", "gemini", "opencode", "qwen")
"""The clients that review under their own name, without a command line in the settings."""


class Settings(Record):
    """All settings, with their defaults (docs/settings has the reasons).

    `untrusted` is the path of an `orch.toml` that counts for nothing, since nobody trusts it as it is.
    """

    enabled: bool = False
    reviewers: tuple[str, ...] = (BUILT_IN,)
    defined: tuple[ReviewerSettings, ...] = ()
    review_timeout_s: float = 600.0
    fail_on: Threshold = "blocking"
    sandbox: bool = True
    provide: tuple[str, ...] = ()
    rubric: str = ""
    hook_budget_s: float = 1.0
    settle_s: float = 15.0
    delivery: Literal["prompt", "wake", "off"] = "prompt"
    rounds: int = 2
    unattended: Literal["inform", "block"] = "inform"
    max_reviews: int = 2
    budget_hour: int = 12
    budget_day: int = 60
    budget_usd: float = 5.0
    budget_review_usd: float = 1.0
    budget_tokens: int = UNLIMITED
    budget_session: int = UNLIMITED
    max_untracked_bytes: int = 10 << 20
    directory: str = ""
    keep_runs: int = 200
    keep_days: int = 30
    keep_bytes: int = 1 << 30
    branch_bases: tuple[tuple[str, str], ...] = ()
    gate_match: Literal["content", "exact"] = "content"
    git_hooks: tuple[str, ...] = ()
    notes: bool = False
    unknown: tuple[str, ...] = ()
    untrusted: str = ""

    def reviewer(self, name: str) -> ReviewerSettings:
        """The settings of one reviewer.

        Raises:
            UsageError: there is none of that name; the message says which there are.
        """
        known = {reviewer.name: reviewer for reviewer in self.defined}
        known.setdefault(BUILT_IN, ReviewerSettings(name=BUILT_IN, timeout_s=STATIC_TIMEOUT_S))
        for agent in AGENTS:
            known.setdefault(agent, ReviewerSettings(name=agent, timeout_s=self.review_timeout_s, network=True))
        if name in known:
            found = known[name]
            return found.replace(network=True, budget_usd=self.budget_review_usd) if is_agent(found) else found
        raise UsageError(f"no reviewer `{name}` here{_perhaps(name, known)} ({' '.join(sorted(known))})")

    @property
    def budget(self) -> Budget:
        """What agent reviews that nobody types for may come to."""
        return Budget(
            hour=self.budget_hour,
            day=self.budget_day,
            usd=self.budget_usd,
            tokens=self.budget_tokens,
            session=self.budget_session,
        )


def is_agent(settings: ReviewerSettings) -> bool:
    """Whether the reviewer is a client that git-orch itself knows how to call: a command line of the user's is not."""
    return settings.name in AGENTS and not settings.command


def read(git: Git, env: Mapping[str, str]) -> Settings:
    """The settings that hold where `git` looks, one git call.

    Raises:
        UsageError: a value is not what its key takes.
        GitError: a configuration file cannot be read.
    """
    return heard(git, git.attempt(*QUESTION), env)


def heard(git: Git, done: Finished, env: Mapping[str, str]) -> Settings:
    """The settings that are the answer of `git` to `QUESTION`.

    Raises:
        UsageError: a value is not what its key takes.
        GitError: a configuration file cannot be read.
    """
    if done.code not in (0, 1):  # 1: there is none
        raise git.failure(QUESTION, done)
    return with_shared(split_z(done.stdout), env, shared.find(git.cwd or git.git_dir, env))


def with_shared(items: list[bytes], env: Mapping[str, str], found: shared.Shared | None) -> Settings:
    """The settings of git's configuration, and below them those of a shared file that is trusted.

    Raises:
        UsageError: a value is not what its key takes.
    """
    if found is None:
        return parse(items, env)
    named = [decode(item).partition("\n")[2] for item in items if item.lower().startswith(b"orch.trust\n")]
    theirs = shared.trusted_items(found, env, named)
    if theirs is None:
        return parse(items, env).replace(untrusted=found.path)
    # What a person has listed takes the place of the shared list, and is not added to it.
    own = {_key_of(item) for item in items}
    return parse([*(item for item in theirs if _key_of(item) not in own), *items], env)


def _key_of(item: bytes) -> bytes:
    return item.partition(b"\n")[0].lower()


def parse(items: list[bytes], env: Mapping[str, str]) -> Settings:
    """Settings from the items of `git config -z`: key, newline, value (a key alone means true).

    `orch.reviewers`, `orch.review.provide` and `orch.gitHooks` may be given several times; an empty value takes back
    those before it, as git's own lists have it.
    """
    values: Json = {}
    reviewers: dict[str, Json] = {}
    many: dict[str, list[str]] = {key: [] for key in _SEVERAL}
    bases: list[tuple[str, str]] = []
    unknown: list[str] = []
    for item in items:
        key, newline, value = decode(item).partition("\n")
        if not newline:
            value = "true"
        words = key.split(".")
        if words[0] == "branch":
            bases.append((".".join(words[1:-1]), value))
        elif words[:2] == ["orch", "reviewer"] and len(words) >= 4:
            _reviewer_key(reviewers, ".".join(words[2:-1]).casefold(), words[-1], value, unknown, key)
        elif key.casefold() in _PLAIN:
            field, convert = _PLAIN[key.casefold()]
            values[field] = convert(key, value)
        elif key.casefold() == "orch.trust":
            continue  # `with_shared` has seen to it
        elif key.casefold() in _SEVERAL:
            # An empty value drops what wider scopes said, as for git's own lists (credential.helper).
            name = key.casefold()
            many[name] = many[name] + value.replace(",", " ").split() if value.strip() else []
        else:
            unknown.append(key)
    reading, provide, git_hooks = (tuple(many[key]) for key in _SEVERAL)
    if reading:
        values["reviewers"] = tuple(dict.fromkeys(reading))
    values |= {field: convert(name, env[name]) for name, (field, convert) in _VARIABLES.items() if env.get(name)}
    timeout_s = values.get("review_timeout_s", 600.0)
    defined = (
        ReviewerSettings(**{"name": name, "timeout_s": STATIC_TIMEOUT_S if name == BUILT_IN else timeout_s, **given})
        for name, given in reviewers.items()
    )
    return Settings(
        **values,
        defined=tuple(defined),
        provide=provide,
        git_hooks=git_hooks,
        branch_bases=tuple(bases),
        unknown=tuple(unknown),
    )


def seconds(key: str, text: str) -> float:
    """A duration: `90`, `90s`, `10m`, `2h`, `500ms`.

    Raises:
        UsageError: it is none, or not above 0.
    """
    word = text.strip().casefold()
    number = word.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = word[len(number) :]
    try:
        value = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        value = -1.0
    if not 0 < value < 1e9:
        raise UsageError(f"{key}: `{text}` is not a duration", "write 90, 90s, 10m or 2h")
    return value


def _boolean(key: str, text: str) -> bool:
    word = text.casefold()
    if word in ("true", "yes", "on", "1"):
        return True
    if word in ("false", "no", "off", "0", ""):
        return False
    raise UsageError(f"{key}: `{text}` is neither true nor false")


def _whole(key: str, text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise UsageError(f"{key}: `{text}` is not a whole number", "write 0, 1, 2 ...")


def _above_zero(key: str, text: str) -> int:
    number = _whole(key, text)
    if number:
        return number
    raise UsageError(f"{key}: `{text}` would let nothing run", "write 1 or more")


def _limit(key: str, text: str) -> int:
    return UNLIMITED if text.casefold() == _NO_LIMIT else _whole(key, text)


def _price(key: str, text: str) -> float:
    word = text.strip().removeprefix("$")
    if word.casefold() == _NO_LIMIT:
        return UNLIMITED
    whole, _, part = word.partition(".")
    if (whole + part).isascii() and (whole + part).isdigit() and len(word) < 10:
        return float(word)
    raise UsageError(f"{key}: `{text}` is not an amount of US dollars", f"write 5, 0.50 or {_NO_LIMIT}")


def size(key: str, text: str) -> int:
    """A size in bytes: `500`, `64k`, `10m`, `1g`, as git writes them.

    Raises:
        UsageError: it is none.
    """
    word = text.strip().casefold().removesuffix("ib").removesuffix("b")
    number = word.rstrip("kmg")
    unit = word[len(number) :]
    if unit in _SIZES and number.isascii() and number.isdigit():
        return int(number) * _SIZES[unit]
    raise UsageError(f"{key}: `{text}` is not a size", "write 500, 64k, 10m or 1g")


def threshold(key: str, text: str) -> Threshold:
    """One of blocking, advisory, nit, never.

    Raises:
        UsageError: it is none of them.
    """
    for word in THRESHOLDS:
        if word == text.casefold():
            return word
    raise UsageError(f"{key}: `{text}` is none of {', '.join(THRESHOLDS)}")


def _folder(key: str, text: str) -> str:
    if not text or "/" in text or text in (".", "..", ".git"):
        raise UsageError(f"{key}: `{text}` is not a plain folder name", "as in: git config orch.dir .git-orch")
    return text


def _one_of(*words: str) -> Callable[[str, str], str]:
    """A reader for one of these words, in whatever case."""
    others = f"neither {words[0]} nor {words[1]}" if len(words) == 2 else f"none of {', '.join(words)}"

    def word(key: str, text: str) -> str:
        if text.casefold() in words:
            return text.casefold()
        raise UsageError(f"{key}: `{text}` is {others}")

    return word


def _text(_key: str, text: str) -> str:
    return text


if TYPE_CHECKING:
    Reader = tuple[str, Callable[[str, str], object]]

_PLAIN: dict[str, Reader] = {
    "orch.enabled": ("enabled", _boolean),
    "orch.review.timeout": ("review_timeout_s", seconds),
    "orch.review.failon": ("fail_on", threshold),
    "orch.review.sandbox": ("sandbox", _boolean),
    "orch.rubric": ("rubric", _text),
    "orch.hookbudget": ("hook_budget_s", seconds),
    "orch.settle": ("settle_s", seconds),
    "orch.delivery": ("delivery", _one_of("prompt", "wake", "off")),
    "orch.rounds": ("rounds", _whole),
    "orch.unattended": ("unattended", _one_of("inform", "block")),
    "orch.maxreviews": ("max_reviews", _above_zero),
    "orch.budget.hour": ("budget_hour", _limit),
    "orch.budget.day": ("budget_day", _limit),
    "orch.budget.usd": ("budget_usd", _price),
    "orch.budget.reviewusd": ("budget_review_usd", _price),
    "orch.budget.tokens": ("budget_tokens", _limit),
    "orch.budget.session": ("budget_session", _limit),
    "orch.maxuntrackedbytes": ("max_untracked_bytes", size),
    "orch.dir": ("directory", _folder),
    "orch.keepruns": ("keep_runs", _whole),
    "orch.keepdays": ("keep_days", _whole),
    "orch.keepbytes": ("keep_bytes", size),
    "orch.gate.match": ("gate_match", _one_of("content", "exact")),
    "orch.notes": ("notes", _boolean),
}
_SEVERAL = ("orch.reviewers", "orch.review.provide", "orch.githooks")
"""What may be given several times."""
_OF_A_REVIEWER: dict[str, Reader] = {
    "command": ("command", _text),
    "output": ("output", _one_of(*_OUTPUTS)),
    "timeout": ("timeout_s", seconds),
    "stall": ("stall_s", seconds),
    "required": ("required", _boolean),
    "network": ("network", _boolean),
    "model": ("model", _text),
}
_VARIABLES: dict[str, Reader] = {
    "ORCH_TIMEOUT": ("review_timeout_s", seconds),
    "ORCH_HOOK_BUDGET": ("hook_budget_s", seconds),
}


def _reviewer_key(reviewers: dict[str, Json], name: str, key: str, value: str, unknown: list[str], whole: str) -> None:
    if key.casefold() not in _OF_A_REVIEWER:
        unknown.append(whole)
        return
    if not name or not _NAME.issuperset(name):
        raise UsageError(f"{whole}: a reviewer's name is made of a-z, 0-9 and -")
    field, convert = _OF_A_REVIEWER[key.casefold()]
    reviewers.setdefault(name, {})[field] = convert(whole, value)


def plain_keys() -> list[str]:
    """The settings that have no name of a user's in them, in small letters."""
    return [*_PLAIN, *_SEVERAL]


def reviewer_keys() -> list[str]:
    """What can be set of a reviewer."""
    return list(_OF_A_REVIEWER)


def _perhaps(name: str, known: Mapping[str, object]) -> str:
    """What to say where a known name is one slip away: `; did you mean claude?`."""
    import difflib  # only on the way to an error

    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
