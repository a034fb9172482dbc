"""A JSON file is edited in one place, and taken back to the same bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_orch.install import claude, edit, hooksfile, launcher


def put_in(raw: bytes) -> bytes:
    return hooksfile.put_in(raw, claude.CLIENT)


def has_ours(raw: bytes) -> bool:
    return hooksfile.has_ours(raw, claude.CLIENT)


def take_out(raw: bytes, keep: frozenset[str] = frozenset()) -> bytes:
    left = hooksfile.take_out(raw, claude.CLIENT, keep)
    assert left is not None
    return left


GROUP = {"hooks": [{"type": "command", "command": "true"}]}


def group_of(command: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command}]}


OTHERS: dict[str, dict[str, Any]] = {
    "empty object": {},
    "no hooks": {"model": "opus", "permissions": {"allow": ["Bash(ls:*)"], "deny": []}},
    "hooks last": {"model": "opus", "hooks": {"Stop": [group_of("say before")], "Notification": [group_of("beep")]}},
    "hooks first": {"hooks": {"SessionEnd": [group_of("bye")]}, "z": 1, "a": [1, {"b": None}], "é": "ü\u2028"},
    "several Stops": {"hooks": {"Stop": [group_of("one"), {"matcher": "", "hooks": [*GROUP["hooks"] * 2]}]}},
}
STYLES: dict[str, dict[str, Any]] = {
    "two spaces": {"indent": 2},
    "four spaces": {"indent": 4},
    "tab": {"indent": "\t"},
    "one line": {},
    "minified": {"separators": (",", ":")},
}


def written(value: object, style: str, *, newline: str = "\n", bom: bool = False, end: bool = True) -> bytes:
    text = json.dumps(value, ensure_ascii=False, **STYLES[style]).replace("\n", newline) + (newline if end else "")
    return (edit.BOM if bom else b"") + text.encode()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(("newline", "bom", "end"), [("\n", False, True), ("\r\n", True, True), ("\n", False, False)])
def test_what_was_put_in_comes_out_again_byte_for_byte(
    name: str, style: str, newline: str, bom: bool, end: bool
) -> None:
    before = written(OTHERS[name], style, newline=newline, bom=bom, end=end)

    with_us = put_in(before)

    assert has_ours(with_us)
    assert take_out(with_us, hooksfile.keys_of(before)) == before


@pytest.mark.parametrize("name", OTHERS)
def test_everything_else_stays_as_it_is_and_where_it_is(name: str) -> None:
    before = OTHERS[name]
    after = json.loads(put_in(written(before, "two spaces")))

    hooks = before.get("hooks", {})
    for event, groups in claude.CLIENT.entries().items():
        assert after["hooks"][event] == [*hooks.get(event, []), *groups]
    assert {key: value for key, value in after.items() if key != "hooks"} == {
        key: value for key, value in before.items() if key != "hooks"
    }
    assert [key for key in after if key in before] == list(before)


@pytest.mark.parametrize("style", STYLES)
def test_putting_in_twice_is_putting_in_once(style: str) -> None:
    once = put_in(written(OTHERS["hooks last"], style))
    assert put_in(once) == once


@pytest.mark.parametrize("style", ["two spaces", "four spaces", "tab"])
def test_what_is_put_in_looks_like_the_rest(style: str) -> None:
    value = {"model": "opus", "hooks": {"Stop": [GROUP]}}
    everything = json.loads(put_in(written(value, style)))
    assert put_in(written(value, style)) == written(everything, style)


def test_a_minified_file_stays_on_one_line() -> None:
    value = {"model": "opus", "hooks": {"Stop": [GROUP]}}
    after = put_in(written(value, "minified", end=False))
    assert b"\n" not in after
    assert after == written(json.loads(after), "minified", end=False)


@pytest.mark.parametrize("raw", [b"", b"  \n", edit.BOM])
def test_an_empty_file_becomes_one_with_our_hooks_alone(raw: bytes) -> None:
    after = put_in(raw)
    assert json.loads(after.removeprefix(edit.BOM)) == {"hooks": claude.CLIENT.entries()}
    assert after.startswith(edit.BOM) == raw.startswith(edit.BOM)
    assert after.endswith(b"}\n")


OLD_LINE = "sh -c '~/.local/state/git-orch/hook stop || true'"


def test_an_older_line_is_brought_up_to_date_in_its_place_and_keeps_what_a_person_added() -> None:
    handler = {"type": "command", "timeout": 3, "command": OLD_LINE, "statusMessage": "mine"}
    value = {"hooks": {"Stop": [{"matcher": "", "hooks": [GROUP["hooks"][0], handler]}, GROUP]}}

    after = json.loads(put_in(written(value, "tab")))

    assert after["hooks"]["Stop"] == [
        {"matcher": "", "hooks": [GROUP["hooks"][0], {**handler, "command": launcher.line("stop")}]},
        GROUP,
    ]


def test_a_second_line_of_ours_goes() -> None:
    ours = group_of(launcher.line("stop"))
    after = json.loads(put_in(written({"hooks": {"Stop": [ours, GROUP, ours]}}, "two spaces")))
    assert after["hooks"]["Stop"] == [ours, GROUP]


def test_a_line_of_ours_under_an_event_that_we_no_longer_use_goes_and_leaves_the_others() -> None:
    stray = group_of("sh -c '~/.local/state/git-orch/hook session-end'")
    value = {"hooks": {"SessionEnd": [stray, GROUP], "PreCompact": [stray]}}
    after = json.loads(put_in(written(value, "two spaces")))
    assert after["hooks"]["SessionEnd"] == [GROUP]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_ours_is_taken_out_from_between_those_of_others(style: str, place: int) -> None:
    groups = [group_of("one"), group_of("two")]
    before = written({"hooks": {"Stop": groups}, "model": "opus"}, style)
    groups.insert(place, group_of(launcher.line("stop")))
    assert take_out(written({"hooks": {"Stop": groups}, "model": "opus"}, style)) == before


@pytest.mark.parametrize("place", [0, 1, 2])
def test_ours_is_taken_out_of_a_group_of_others(place: int) -> None:
    handlers = [{"type": "command", "command": "one"}, {"type": "command", "command": "two"}]
    before = written({"hooks": {"Stop": [{"matcher": "x", "hooks": handlers}]}}, "two spaces")
    handlers.insert(place, {"type": "command", "command": launcher.line("stop")})
    after = written({"hooks": {"Stop": [{"matcher": "x", "hooks": handlers}]}}, "two spaces")
    assert take_out(after) == before


@pytest.mark.parametrize("name", OTHERS)
def test_taking_out_where_we_are_not_changes_nothing(name: str) -> None:
    before = written(OTHERS[name], "four spaces", newline="\r\n")
    assert take_out(before) == before


def test_empty_lists_of_others_are_kept_and_ours_are_not() -> None:
    before = written({"hooks": {"Stop": [], "Notification": []}}, "two spaces")
    with_us = put_in(before)
    assert json.loads(take_out(with_us, hooksfile.keys_of(before))) == json.loads(before)
    assert json.loads(take_out(with_us)) == {"hooks": {"Notification": []}}
    assert take_out(put_in(b"{}\n")) == b"{}\n"


def test_what_a_person_edits_meanwhile_stays_edited() -> None:
    before = written({"model": "opus", "hooks": {"Stop": [GROUP]}}, "two spaces")
    edited = put_in(before).replace(b'"opus"', b'"haiku"').replace(b'"command": "true"', b'"command": "false"')
    wanted = before.replace(b'"opus"', b'"haiku"').replace(b'"command": "true"', b'"command": "false"')
    assert take_out(edited, hooksfile.keys_of(before)) == wanted


def test_a_key_with_escapes_and_a_string_with_braces_are_understood() -> None:
    before = b'{"\\u0068ooks": {"Stop": [{"hooks": [{"command": "echo \\"}]{\\\\\\""}]}]}, "x": "//{"}'
    after = put_in(before)
    assert list(json.loads(after)) == ["hooks", "x"]
    assert take_out(after, hooksfile.keys_of(before)) == before


def test_of_two_keys_of_the_same_name_the_last_one_counts_and_both_are_cleaned() -> None:
    ours = json.dumps(group_of(launcher.line("stop")))
    raw = b'{"hooks": {"Stop": [%s]}, "hooks": {"Stop": []}}' % ours.encode()
    assert b"git-orch" not in take_out(raw)
    assert json.loads(put_in(b'{"hooks": {"a": 1}, "hooks": {}}'))["hooks"] == claude.CLIENT.entries()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"{", "line 1"),
        (b'{"a": 1,}', "line 1"),
        (b'{"a": NaN}', "not JSON"),
        (b"[]", "no object"),
        (b"null", "no object"),
        (b'{"a": 1} {}', "line 1"),
        (b'{\n  // why\n  "a": 1\n}', "comments"),
        (b'{"a": 1, /* why */ "b": 2}', "comments"),
        (b'{"a": "\xff"}', "UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "UTF-8"),
        (b'{"hooks": []}', "`hooks` is no object"),
        (b'{"hooks": {"Stop": {}}}', "`hooks.Stop` is no list"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not JSON"),
    ],
)
def test_what_cannot_be_edited_is_refused_with_the_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(edit.NotJson, match=reason):
        put_in(raw)


def test_odd_shapes_inside_the_hooks_are_passed_over() -> None:
    value = {"hooks": {"Stop": ["x", 1, None, {"hooks": 3}, {"hooks": [1, {"command": 5}]}, {}], "Other": "text"}}
    before = written(value, "two spaces")
    assert not has_ours(before)
    assert take_out(put_in(before), hooksfile.keys_of(before)) == before


KEYS = st.sampled_from(["hooks", "Stop", "SessionStart", "model", "a", 'quo"te', "é\n"])
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just(launcher.line("stop"))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)
GROUPS = st.lists(st.builds(group_of, st.text(max_size=8)), max_size=3)
HOOKS = st.dictionaries(st.sampled_from(["Stop", "SessionStart", "Notification"]), GROUPS, max_size=3)


@given(
    value=st.dictionaries(KEYS.filter(lambda key: key != "hooks"), VALUES, max_size=4),
    hooks=st.none() | HOOKS,
    style=st.sampled_from(list(STYLES)),
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_any_settings_come_back_byte_for_byte(
    value: dict[str, Any], hooks: dict[str, Any] | None, style: str, newline: str
) -> None:
    before = written(value if hooks is None else {**value, "hooks": hooks}, style, newline=newline)
    with_us = put_in(before)
    assert put_in(with_us) == with_us
    assert take_out(with_us, hooksfile.keys_of(before)) == before
