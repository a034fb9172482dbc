"""A client's settings with and without our handlers; everything else in them stays byte for byte as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from git_orch.install import edit, launcher, plugin
from git_orch.install.clients import Client
from git_orch.model import Record

if TYPE_CHECKING:
    from git_orch.model import Json


class Place(Record):
    """A handler of ours in the text: the chain of objects and arrays that lead to it, outermost first."""

    event: str
    command: edit.Node
    chain: tuple[tuple[edit.Node, edit.Member], ...]


def put_in(raw: bytes, client: Client) -> bytes:
    """The settings with our handlers, each once and in the present form; everything else stays as it is.

    Raises:
        NotJson: the file is not one that can be edited.
    """
    if client.shape == "plugin":
        return plugin.put_in(raw, client)
    text = edit.decode(raw)
    if not text.strip():
        return edit.encode(edit.new_document(client.document()), raw)
    edit.check(text, comments=client.comments)
    text = _brought_up_to_date(text, client)
    for name, event in client.events.items():
        if not any(place.event == name for place in _places(text)):
            text = _with_handler(text, name, client.group(event))
    return edit.encode(text, raw)


def is_current(raw: bytes, client: Client) -> bool:
    """Whether `put_in` has nothing to do; of settings that it cannot edit, whether the lines are the present ones.

    Raises:
        NotJson: the file is not one that can be read.
    """
    try:
        return put_in(raw, client) == raw
    except edit.NotJson:
        return lines(raw, client) == {name: client.line(event) for name, event in client.events.items()}


def take_out(raw: bytes, client: Client, keep: frozenset[str] = frozenset()) -> bytes | None:
    """The settings without any handler of ours, and without what that leaves empty, but for the keys to `keep`.

    `keep` has "hooks", and "hooks.EVENT" for each event whose array was there before us. None: the file was ours alone.

    Raises:
        NotJson: the file is not one that can be edited.
    """
    if client.shape == "plugin":
        return None if plugin.is_ours(raw) else raw
    text = edit.decode(raw)
    if not text.strip():
        return raw
    while place := next(_places(text), None):
        text = _without(text, place, keep)
    return edit.encode(text, raw)


def has_ours(raw: bytes, client: Client) -> bool:
    """Whether a handler of ours stands in the settings.

    Raises:
        NotJson: the file is not one that can be read.
    """
    return bool(lines(raw, client))


def lines(raw: bytes, client: Client) -> dict[str, str]:
    """The command lines of ours in the settings, by the client's event.

    Raises:
        NotJson: the file is not one that can be read.
    """
    if client.shape == "plugin":
        return {name: client.line(event) for name, event in client.events.items()} if plugin.is_ours(raw) else {}
    text = edit.decode(raw)
    return {place.event: str(place.command.value) for place in _places(text)} if text.strip() else {}


def keys_of(raw: bytes) -> frozenset[str]:
    """Which of `hooks` and `hooks.EVENT` the settings have: what `take_out` has to keep."""
    try:
        text = edit.decode(raw)
        hooks = edit.parse(text).member("hooks") if text.strip() else None
    except edit.NotJson:
        return frozenset()
    if hooks is None:
        return frozenset()
    return frozenset({"hooks", *(f"hooks.{member.key}" for member in hooks.node.members)})


def is_empty(raw: bytes | None) -> bool:
    """Whether the settings say nothing: no more than which version of the form they have."""
    try:
        text = edit.decode(raw or b"")
        return not text.strip() or all(member.key == "version" for member in edit.parse(text).members)
    except edit.NotJson:
        return False


def _places(text: str) -> Iterator[Place]:
    root = edit.parse(text)
    for hooks in (member for member in root.members if member.key == "hooks" and member.node.kind == "object"):
        for event in (member for member in hooks.node.members if member.node.kind == "array"):
            for entry in event.node.members:
                chain = ((root, hooks), (hooks.node, event), (event.node, entry))
                yield from _places_of_entry(entry, chain)


def _places_of_entry(entry: edit.Member, chain: tuple[tuple[edit.Node, edit.Member], ...]) -> Iterator[Place]:
    """The handler that the entry is, or those of the group that it is."""
    yield from _place_of_handler(entry, chain)
    handlers = entry.node.member("hooks")
    for handler in handlers.node.members if handlers is not None else ():
        assert handlers is not None
        yield from _place_of_handler(handler, (*chain, (handlers.node, handler)))


def _place_of_handler(handler: edit.Member, chain: tuple[tuple[edit.Node, edit.Member], ...]) -> Iterator[Place]:
    for key in ("command", "bash"):
        command = handler.node.member(key)
        if command is not None and isinstance(command.node.value, str) and launcher.MARK in command.node.value:
            yield Place(event=chain[1][1].key, command=command.node, chain=chain)
            return


def _brought_up_to_date(text: str, client: Client) -> str:
    """The text with each handler of ours in the present form; a second one for an event, or a stray one, is gone."""
    seen: set[str] = set()
    for place in _places(text):
        wanted = client.line(client.events[place.event]) if place.event in client.events else ""
        if not wanted or place.event in seen:
            return _brought_up_to_date(_without(text, place, keys_of(text.encode())), client)
        if place.command.value != wanted:
            return _brought_up_to_date(edit.replace(text, place.command, wanted), client)
        seen.add(place.event)
    return text


def _with_handler(text: str, event: str, group: Json) -> str:
    root = edit.parse(text)
    hooks = root.member("hooks")
    if hooks is None:
        return edit.add(text, root, {event: [group]}, key="hooks")
    if hooks.node.kind != "object":
        raise edit.NotJson("its `hooks` is no object")
    there = hooks.node.member(event)
    if there is None:
        return edit.add(text, hooks.node, [group], key=event)
    if there.node.kind != "array":
        raise edit.NotJson(f"its `hooks.{event}` is no list")
    return edit.add(text, there.node, group)


def _without(text: str, place: Place, keep: frozenset[str]) -> str:
    """The text without the handler, and without the group, event and `hooks` that it leaves empty and are not kept."""
    kept = {0: True, 1: "hooks" in keep, 2: f"hooks.{place.event}" in keep}
    for depth, (holder, member) in reversed(list(enumerate(place.chain))):
        if len(holder.members) > 1 or kept.get(depth, False):
            return edit.remove(text, holder, member)
    return text
