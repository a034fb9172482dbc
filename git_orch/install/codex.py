"""What Codex trusts: each hook that a person accepted in /hooks, by a digest of it as it was then.

`[hooks.state."FILE:event:GROUP:INDEX"]` in config.toml has `trusted_hash`, and `enabled = false` where it was switched
off. Found out with codex 0.171 (`hooks/list` of its app server tells `currentHash`); a test asks the real one.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from git_orch.install import edit, launcher

if TYPE_CHECKING:
    from git_orch.model import Json

    Trust = Literal["trusted", "untrusted", "changed", "off"]

_TIMEOUT_S = 600  # where a hook names none


def digests(path: str, hooks: bytes) -> dict[str, str]:
    """The digest of each hook of ours in a hooks file of Codex's, by the key that Codex has for it."""
    try:
        groups = json.loads(edit.bare(edit.decode(hooks)))["hooks"].items()
        return {f"{path}:{place}": digest for event, each in groups for place, digest in _of_event(event, each)}
    except (ValueError, KeyError, TypeError, AttributeError):  # it is of another form, so that none of it is ours
        return {}


def trust(path: str, hooks: bytes, config: bytes) -> Trust:
    """How the hooks of ours in the file stand, all together: the worst of them counts."""
    ours = digests(path, hooks)
    try:
        known = tomllib.loads(config.decode()).get("hooks", {}).get("state", {})
        states = [_state(known.get(key, {}), digest) for key, digest in ours.items()]
    except (ValueError, AttributeError):
        states = []
    order: tuple[Trust, ...] = ("off", "untrusted", "changed")
    return next((state for state in order if state in states), "trusted" if states else "untrusted")


def _state(known: Mapping[str, object], digest: str) -> Trust:
    if known.get("enabled") is False:
        return "off"
    if not known.get("trusted_hash"):
        return "untrusted"
    return "trusted" if known["trusted_hash"] == digest else "changed"


def _of_event(event: str, groups: list[Json]) -> Iterator[tuple[str, str]]:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
    for number, group in enumerate(groups):
        for index, handler in enumerate(group.get("hooks", [])):
            if launcher.MARK in str(handler.get("command", "")):
                yield f"{name}:{number}:{index}", _digest(name, group, handler)


def _digest(event: str, group: Json, handler: Json) -> str:
    told = {"async": False, "timeout": _TIMEOUT_S, **handler}
    matcher = {"matcher": group["matcher"]} if group.get("matcher") is not None else {}
    text = json.dumps({"event_name": event, "hooks": [told], **matcher}, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
