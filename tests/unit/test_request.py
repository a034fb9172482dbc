"""What a reviewer is handed: a closed list of variables, files beside its tree, nothing of the client's or git's."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from git_orch import request
from git_orch.request import Request


@pytest.fixture
def asked(tmp_path: Path) -> Request:
    """A request whose folder and tree are there."""
    place = tmp_path / "git-orch-0" / "20261130T201500123-9f3a61c2" / "claude"
    for name in ("request", "tree"):
        (place / name).mkdir(parents=True)
    return Request(
        folder=str(place / "request"),
        tree=str(place / "tree"),
        run_id="20261130T201500123-9f3a61c2",
        tree_id="a" * 40,
        base_tree_id="b" * 40,
        nonce="0" * 32,
        cookie="20261130T201500123-9f3a61c2.0123",
        temp=str(place / "tmp"),
        ceiling=str(place.parents[1]),
    )


# -- the environment


def test_the_request_is_told_in_one_closed_list(asked: Request) -> None:
    told = asked.environment({})
    assert {name for name in told if name.startswith("ORCH")} == set(request.VARIABLES)
    assert told["ORCH_DIR"] == asked.folder
    assert told["ORCH_DIFF"] == os.path.join(asked.folder, "diff")
    assert told["ORCH_FILES"] == os.path.join(asked.folder, "files")
    assert told["ORCH_RESULT"] == os.path.join(asked.folder, "result")
    assert told["ORCH_TASK"] == asked.cookie
    assert told["TMPDIR"] == asked.temp
    assert told["PWD"] == asked.tree
    assert told["GIT_CEILING_DIRECTORIES"] == asked.ceiling


OF_OTHERS = """GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE GIT_SSH_COMMAND GIT_CONFIG_COUNT GIT_ASKPASS
    CLAUDECODE CLAUDE_CODE_SESSION_ID CLAUDE_CODE_CHILD_SESSION CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_MESSAGING_TOKEN
    CLAUDE_CODE_MESSAGING_SOCKET CLAUDE_CODE_CHILD_NOTES_DIR CLAUDE_CODE_SESSION_ATTENDED CLAUDE_ENV_FILE CLAUDE_PID
    CLAUDE_EFFORT CLAUDE_PROJECT_DIR CLAUDE_PLUGIN_ROOT CLAUDE_PLUGIN_DATA GEMINI_PROJECT_DIR GEMINI_SESSION_ID
    GEMINI_CWD AI_AGENT OLDPWD"""


@pytest.mark.parametrize("name", OF_OTHERS.split())
def test_what_binds_it_to_a_client_or_to_another_repository_is_dropped(asked: Request, name: str) -> None:
    assert name not in asked.environment({name: "/home/me/secret-checkout", "PATH": "/bin"})


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "LANG", "HTTPS_PROXY", "GITHUB_TOKEN"],
)
def test_what_the_reviewer_needs_of_the_persons_own_is_kept(asked: Request, name: str) -> None:
    assert asked.environment({name: "kept"})[name] == "kept"


def test_no_path_of_the_checkout_is_in_it(asked: Request) -> None:
    checkout = "/home/me/src/shop"
    fired_by = {"PWD": checkout, "OLDPWD": checkout, "CLAUDE_PROJECT_DIR": checkout, "GIT_DIR": f"{checkout}/.git"}
    assert not [name for name, value in asked.environment(fired_by).items() if checkout in value]


def test_a_request_within_a_reviewer_is_its_own(asked: Request) -> None:
    outer = asked.replace(nonce="f" * 32, cookie="outer").environment({"PATH": "/bin"})
    inner = asked.environment(outer)
    assert inner["ORCH_NONCE"] == asked.nonce
    assert inner["ORCH_TASK"] == asked.cookie


def test_a_command_of_ours_takes_none_of_it(asked: Request) -> None:
    told = asked.environment({"PATH": "/bin", "ORCH": "0"})
    assert request.inside_reviewer(told)
    plain = request.without_ours(told)
    assert not request.inside_reviewer(plain)
    assert {name for name in plain if name.startswith("ORCH")} == {"ORCH"}  # the person's own switch


# -- the files


def test_patch_and_paths_lie_in_its_folder_and_nothing_in_the_tree(asked: Request) -> None:
    asked.write(b"diff --git a/x b/x\n", ("a b.py", "new\nline", "c\udcff"))
    folder = Path(asked.folder)
    assert (folder / "diff").read_bytes() == b"diff --git a/x b/x\n"
    assert (folder / "files").read_bytes() == b"a b.py\0new\nline\0c\xff\0"
    assert sorted(os.listdir(folder)) == ["diff", "files"]
    assert os.listdir(asked.tree) == []
    assert stat.S_IMODE(os.stat(asked.temp).st_mode) == 0o700


def test_a_request_about_nothing_names_no_path(asked: Request) -> None:
    asked.write(b"", ())
    assert Path(asked.folder, "files").read_bytes() == b""


# -- the answer


def test_a_result_is_what_was_written(asked: Request) -> None:
    assert asked.result() is None
    Path(asked.result_path).write_bytes(b'{"schema_version":"1"}')
    assert asked.result() == b'{"schema_version":"1"}'


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(request.RESULT_LIMIT + 1)


SPOILED: dict[str, Callable[[Path], Any]] = {
    "symlink": lambda path: path.symlink_to("/etc/passwd"),
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "large": large,
}


@pytest.mark.parametrize("case", SPOILED)
def test_what_is_no_plain_file_is_no_result(asked: Request, case: str) -> None:
    SPOILED[case](Path(asked.result_path))
    assert asked.result() is None
