"""A person's JSON file, changed in one place and otherwise left byte for byte: indentation, order, line ends, BOM.

A parser that gives back values forgets how they were written, so this one keeps where each value stands in the text.
What is put in goes to the end of its object or array, so that taking it out again leaves what was there. Comments stay
where they are; whether a client reads them is its own matter.
"""

from __future__ import annotations

import json
import re
from typing import Literal

from git_orch.model import Record

BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_UNIT = "  "


class NotJson(ValueError):
    """The text is not one JSON object; the message says why, for a sentence about the file."""


class Node(Record):
    """A value and where it stands: `text[start:end]`. `members` of an object or array, in order."""

    kind: Literal["object", "array", "scalar"]
    start: int
    end: int
    value: object = None
    members: tuple[Member, ...] = ()

    def member(self, key: str) -> Member | None:
        """The member of that name; of several the last, as every client takes it."""
        return next((member for member in reversed(self.members) if member.key == key), None)


class Member(Record):
    """A node in an object (with its key) or an array; `start` is where the key, or else the value, begins."""

    key: str
    start: int
    node: Node

    @property
    def end(self) -> int:
        """Where its value ends."""
        return self.node.end


def decode(raw: bytes) -> str:
    """The text of a file, without its BOM.

    Raises:
        NotJson: it is not UTF-8.
    """
    try:
        return raw.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotJson("it is not UTF-8") from error


def encode(text: str, like: bytes) -> bytes:
    """The bytes of a text, with a BOM where `like` has one."""
    return (BOM if like.startswith(BOM) else b"") + text.encode("utf-8")


def parse(text: str) -> Node:
    """The object that the text holds; comments count as white space.

    Raises:
        NotJson: it holds none.
    """
    plain = bare(text)
    try:
        value = json.loads(plain, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise NotJson(f"line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise NotJson("it is not JSON") from error
    if not isinstance(value, dict):
        raise NotJson("it holds no object")
    try:
        return _node(list(_TOKEN.finditer(plain))[::-1])
    except RecursionError as error:
        raise NotJson("it is nested too deeply") from error


def check(text: str, *, comments: bool) -> None:
    """The text is one object, with comments only where its reader takes them.

    Raises:
        NotJson: it is not.
    """
    parse(text)
    if not comments and bare(text) != text:
        raise NotJson("it holds comments, which JSON has not")


def bare(text: str) -> str:
    """The text with each comment blanked, so that all else stands where it stood."""

    def blank(found: re.Match[str]) -> str:
        word = found.group()
        return word if word.startswith('"') else re.sub(r"[^\r\n]", " ", word)

    return _STRING_OR_COMMENT.sub(blank, text)


def _refuse(name: str) -> None:
    raise ValueError(name)


def _node(tokens: list[re.Match[str]]) -> Node:
    """The value that begins at the last token of the list; its tokens are taken away. The text is known to be valid."""
    first = tokens.pop()
    word = first.group()
    if word not in ("{", "["):
        return Node(kind="scalar", start=first.start(), end=first.end(), value=json.loads(word))
    members = []
    while tokens[-1].group() not in ("}", "]"):
        members.append(_member(tokens, named=word == "{"))
        if tokens[-1].group() == ",":
            tokens.pop()
    return Node(
        kind="object" if word == "{" else "array",
        start=first.start(),
        end=tokens.pop().end(),
        members=tuple(members),
    )


def _member(tokens: list[re.Match[str]], *, named: bool) -> Member:
    start = tokens[-1].start()
    key = ""
    if named:
        key = json.loads(tokens.pop().group())
        tokens.pop()  # the colon
    return Member(key=key, start=start, node=_node(tokens))


class Style(Record):
    """How a text is written: its line end, one step of indentation, what stands after a colon and a comma."""

    newline: str = "\n"
    unit: str = _UNIT
    colon: str = ": "
    comma: str = ", "
    lines: bool = True

    def render(self, value: object, indent: str | None) -> str:
        """The value as this text would have it, on lines that are indented so; on one line where `indent` is None."""
        if indent is None:
            return json.dumps(value, ensure_ascii=False, separators=(self.comma, self.colon))
        text = json.dumps(value, ensure_ascii=False, indent=self.unit, separators=(",", self.colon))
        return text.replace("\n", self.newline + indent)


def style_of(text: str, root: Node) -> Style:
    """How the text is written, as its first member shows it."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if not root.members:
        return Style(newline=newline)
    first = root.members[0]
    gap = text[root.start + 1 : first.start]
    tight = text[first.node.start - 1] == ":"
    return Style(
        newline=newline,
        unit=("\n" in gap and _indent_of_line(text, first.start)) or _UNIT,
        colon=":" if tight else ": ",
        comma="," if tight else ", ",
        lines="\n" in gap,
    )


def new_document(value: object) -> str:
    """A file that holds only this value."""
    return Style().render(value, "") + "\n"


def add(text: str, holder: Node, value: object, *, key: str | None = None) -> str:
    """The text with the value as the last member of an object (by `key`) or an array."""
    style = style_of(text, parse(text))
    name = "" if key is None else json.dumps(key, ensure_ascii=False) + style.colon
    if holder.members:
        last = holder.members[-1]
        gap = _gap_before(text, last.start)
        if "\n" in gap:
            indent = gap.rpartition("\n")[2]
            put = "," + style.newline + indent + name + style.render(value, indent)
        else:
            put = style.comma + name + style.render(value, None)
        remark = _remark_after(text, last.end) if style.newline in put else ""
        rest = text[last.end + len(remark) :]
        return text[: last.end] + put[:1] + remark + put[1:] + rest
    if not style.lines:
        return _inside(text, holder, name + style.render(value, None))
    remark = text[holder.start + 1 : holder.end - 1].rstrip()
    outer = _indent_of_line(text, holder.start)
    inner = style.newline + outer + style.unit
    return _inside(
        text, holder, remark + inner + name + style.render(value, outer + style.unit) + style.newline + outer
    )


def remove(text: str, holder: Node, member: Member) -> str:
    """The text without one member of an object or array, and without the comma and the space that it took."""
    place = holder.members.index(member)
    if len(holder.members) == 1:
        left = text[holder.start + 1 : member.start] + text[member.end : holder.end - 1]
        return _inside(text, holder, left if left.strip() else "")  # a comment stays
    if place == 0:
        return text[: member.start] + text[holder.members[1].start :]
    before = holder.members[place - 1].end
    comma = bare(text).index(",", before)
    remark = text[before:comma] + text[comma + 1 : member.start].rstrip()
    return text[:before] + (remark if remark.strip() else "") + text[member.end :]


def replace(text: str, node: Node, value: object) -> str:
    """The text with another value in the place of a scalar."""
    return text[: node.start] + json.dumps(value, ensure_ascii=False) + text[node.end :]


def _inside(text: str, holder: Node, inner: str) -> str:
    return text[: holder.start + 1] + inner + text[holder.end - 1 :]


def _remark_after(text: str, place: int) -> str:
    """The comment that ends the line on which a member ends, with the space before it; "" where there is none."""
    line = text[place:].partition("\n")[0].rstrip("\r")
    return line if line.strip() and not bare(line).strip() else ""


def _gap_before(text: str, place: int) -> str:
    head = text[:place]
    return head[len(head.rstrip()) :]


def _indent_of_line(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip())]
