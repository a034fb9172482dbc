"""The user's key, and what is proved with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_orch import atomic, key
from git_orch.errors import EnvironmentProblem

KEY = b"k" * 32
PARTS = st.lists(st.binary(max_size=9) | st.text(max_size=9), max_size=4)


def key_path() -> Path:
    return Path(key.state_dir(os.environ)) / "key"


def test_the_key_is_made_once_for_its_user_alone() -> None:
    made = key.load(os.environ)
    assert len(made) == 32
    assert key.load(os.environ) == made
    assert key_path().stat().st_mode & 0o777 == 0o600
    assert key_path().parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(key_path().parent) == ["key"]


def test_it_is_on_the_disk_before_anything_is_sealed_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    key.load(os.environ)
    assert synced[-1] == str(key_path().parent)
    assert len(synced) == 2
    key.load(os.environ)
    assert len(synced) == 2


def test_whoever_comes_second_takes_the_key_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    real = atomic.create

    def late(path: str, data: bytes, **options: Any) -> bool:
        real(path, b"1" * 32, **options)
        return real(path, data, **options)

    monkeypatch.setattr(atomic, "create", late)
    assert key.load(os.environ) == b"1" * 32
    assert os.listdir(key_path().parent) == ["key"]


def open_to_all(path: Path) -> None:
    path.write_bytes(KEY)
    path.chmod(0o644)


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "empty": (lambda path: path.write_bytes(b""), "is not a key of git-orch"),
    "too long": (lambda path: path.write_bytes(b"k" * 33), "is not a key of git-orch"),
    "folder": (lambda path: path.mkdir(), "is not a key of git-orch"),
    "symlink": (lambda path: path.symlink_to("/dev/zero"), "is not a key of git-orch"),
    "readable by others": (open_to_all, "can be read by others"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_key_that_is_none_is_refused_with_the_way_out(case: str) -> None:
    spoil, message = BAD[case]
    key_path().parent.mkdir(parents=True)
    spoil(key_path())
    with pytest.raises(EnvironmentProblem, match=message) as caught:
        key.load(os.environ)
    assert caught.value.exit_code == 4
    assert caught.value.hint


@pytest.mark.usefixtures("seal")
def test_a_state_folder_that_cannot_be_written_is_told() -> None:
    state = Path(os.environ["XDG_STATE_HOME"])
    state.parent.mkdir(parents=True)
    state.write_text("a file")  # root may write into any folder, so a closed one would not do
    with pytest.raises(EnvironmentProblem, match="cannot keep a key") as caught:
        key.load(os.environ)
    assert caught.value.hint == "set XDG_STATE_HOME to a folder that you can write"


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/git-orch"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/git-orch"),
        ({"HOME": "/h"}, "/h/.local/state/git-orch"),
    ],
)
def test_where_the_state_lies(env: dict[str, str], folder: str) -> None:
    assert key.state_dir(env) == folder


@pytest.mark.parametrize("env", [{}, {"HOME": ""}, {"HOME": "relative", "XDG_STATE_HOME": ""}])
def test_without_a_home_it_says_what_to_do(env: dict[str, str]) -> None:
    with pytest.raises(EnvironmentProblem, match="HOME is not set") as caught:
        key.load(env)
    assert "XDG_STATE_HOME" in caught.value.hint


@given(PARTS, PARTS)
def test_other_parts_have_another_mac(one: list[Any], other: list[Any]) -> None:
    def raw(parts: list[Any]) -> list[bytes]:
        return [part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part for part in parts]

    assert (key.mac(KEY, *one) == key.mac(KEY, *other)) == (raw(one) == raw(other))


def test_a_mac_depends_on_the_key_and_a_digest_on_none() -> None:
    assert key.mac(KEY, "a") != key.mac(b"K" * 32, "a")
    assert key.digest("a") == key.mac(b"", "a")
    assert len(key.mac(KEY, "a")) == 32


@pytest.mark.parametrize(("one", "other"), [("", "a"), ("ab", "abc"), ("ab", "aB"), ("é", "e"), ("e", "é"), ("é", "é")])
def test_what_is_not_the_same_ascii_text_is_not_the_same(one: str, other: str) -> None:
    assert not key.same(one, other)
    assert key.same("ab", "ab")
