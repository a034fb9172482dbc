"""A plan in Markdown: a table of tasks, and a section a task.

The table has a column `id`, and may have `depends on`, `status`, `title`, `agent`, `timeout` and `files`. A section
stands under a heading that is the id, alone or before a colon and a title. Lists under the words "Allowed files" are
what the task may write; the rest of the section is its prompt, as it stands there.
"""

from __future__ import annotations

import bisect
import re
from typing import TYPE_CHECKING, Any

from git_orch.model import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from git_orch.model import Json

_DONE = ("done", "landed", "closed", "x", "[x]", "✓", "✔")
_NOBODY = ("", "-", "–", "—", "none")  # noqa: RUF001


class Listed(Record):
    """A list of files in a section: its first line and the one after its last, from 0, and its paths."""

    start: int
    end: int
    paths: tuple[str, ...]


class Section(Record):
    """What stands below a task's heading: its lines, and the lists of files in it."""

    start: int
    end: int
    title: str
    listed: tuple[Listed, ...]


def tables(text: str) -> list[Json] | None:
    """Each task as a table of TOML would have it, with `done`; None where no table has a column `id`."""
    from markdown_it import MarkdownIt  # 30 ms

    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    rows = _rows(tokens)
    if rows is None:
        return None
    lines = text.splitlines(keepends=True)
    sections = _sections(tokens, len(lines))
    return [_table(row, lines, sections) for row in rows]


def _table(row: dict[str, str], lines: Sequence[str], sections: dict[str, Section]) -> Json:
    name = row.get("id", "").strip("`* ")
    told = {
        key: row[key].strip("` ") for key in ("title", "agent", "timeout") if row.get(key, "").strip() not in _NOBODY
    }
    files = _words(row.get("files", ""))
    table: Json = {"id": name, "depends_on": _words(row.get("depends on", row.get("depends_on", "")))}
    if name in sections:
        section = sections[name]
        table["prompt"] = _prompt(lines, section)
        files += [path for each in section.listed for path in each.paths]
        table |= {"title": section.title} if section.title else {}
    table |= {"files": files} if files else {}
    return {**table, **told, "done": row.get("status", "").strip("`* ").casefold() in _DONE}


def _rows(tokens: Sequence[Any]) -> list[dict[str, str]] | None:
    """The rows of the first table with a column `id`, by the titles in lower case."""
    titles: list[str] = []
    row: list[str] = []
    rows: list[dict[str, str]] = []
    in_head = False
    for number, token in enumerate(tokens):
        match token.type:
            case "table_open":
                titles, rows = [], []
            case "thead_open" | "thead_close":
                in_head = token.type == "thead_open"
            case "tr_open":
                row = []
            case "th_open" | "td_open":
                row.append(tokens[number + 1].content.strip())
            case "tr_close" if in_head:
                titles = [title.casefold().strip("`* ") for title in row]
            case "tr_close":
                rows.append(dict(zip(titles, row, strict=False)))
            case "table_close" if "id" in titles:
                return rows
    return None


def _sections(tokens: Sequence[Any], end: int) -> dict[str, Section]:
    """The section of each heading that may name a task, by that name."""
    lists = list(_lists(tokens))
    starts = [each.start for each in lists]
    heads = [
        (int(token.tag[1:]), token.map[0], token.map[1], tokens[number + 1].content.strip())
        for number, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]
    found: dict[str, Section] = {}
    for number, (depth, _, start, text) in enumerate(heads):
        name, _, title = text.partition(":")
        following = (heads[place] for place in range(number + 1, len(heads)))
        stop = next((first for other, first, _, _ in following if other <= depth), end)
        listed = tuple(lists[bisect.bisect_left(starts, start) : bisect.bisect_left(starts, stop)])
        found.setdefault(name.strip("`* "), Section(start=start, end=stop, title=title.strip(), listed=listed))
    return found


def _lists(tokens: Sequence[Any]) -> Iterator[Listed]:
    """The lists that stand right after the words "Allowed files" or "Files", a paragraph or a heading of their own."""
    for number, token in enumerate(tokens):
        if token.type != "bullet_list_open" or token.level or number < 3:
            continue
        words = tokens[number - 2]
        if words.type == "inline" and words.content.strip("*_: ").casefold() in ("allowed files", "files"):
            close = next(
                place
                for place in range(number, len(tokens))
                if tokens[place].type == "bullet_list_close" and not tokens[place].level
            )
            paths = tuple(each.content.strip("` ") for each in tokens[number:close] if each.type == "inline")
            yield Listed(start=words.map[0], end=token.map[1], paths=paths)


def _prompt(lines: Sequence[str], section: Section) -> str:
    left_out = {line for each in section.listed for line in range(each.start, each.end)}
    kept = (lines[line] for line in range(section.start, section.end) if line not in left_out)
    return "".join(kept).strip("\n")


def _words(text: str) -> list[str]:
    """The words of a cell, by commas or spaces."""
    words = (word.strip("`* ") for word in re.split(r"[,\s]+", text))
    return [word for word in words if word not in _NOBODY]
