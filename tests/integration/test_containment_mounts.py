"""What a job of tier 1 sees and what it cannot change, as root and as an ordinary user (cases 24, 62, 64 and 65)."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from git_orch.containment import View
from tests.adversaries.stage import (
    OUTSIDE_TMP,
    USERS,
    Stage,
    containment_here,
    grounds,
    interpreter,
    need_tier,
    run_job,
)

SHM = "/dev/shm"  # a tmpfs, where there is one
BASES = (OUTSIDE_TMP, SHM)
OTHER_WAYS = """
    umount checkout
    mount -o remount,bind,rw checkout
    unshare -Urm sh -c 'umount checkout; mount -o remount,bind,rw "$PWD/checkout"; touch checkout/nested'
    touch "/proc/1/root$PWD/checkout/by-init"
    touch "/proc/1/cwd/checkout/by-init"
    nsenter --target 1 --mount touch "$PWD/checkout/entered"
    chroot "/proc/1/root" touch "$PWD/checkout/chrooted"
    ln checkout/file hard; mv checkout/file moved
    touch checkout/plain checkout/sub/plain
    true
"""


@pytest.fixture(params=USERS)
def user(request: pytest.FixtureRequest) -> str:
    assert isinstance(request.param, str)
    need_tier(1, request.param)
    return request.param


@pytest.fixture
def ground(user: str, tmp_path: Path) -> Iterator[Path]:
    with grounds(user, tmp_path) as folder:
        yield folder


def make(ground: Path, *paths: str) -> None:
    """Files with their own path as content, and folders where a path ends in a slash; all of the owner of ground."""
    owner = ground.stat()
    for path in paths:
        target = ground / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(os.fsencode(path))
    for root, folders, files in os.walk(ground):
        for name in (*folders, *files):
            os.chown(os.path.join(root, name), owner.st_uid, owner.st_gid, follow_symlinks=False)


def shell(ground: Path, user: str, script: str, view: View, cwd: str = "") -> str:
    """What the script printed, run as a job of tier 1 in the ground or in a folder of it."""
    argv = ["sh", "-c", script]
    outcome, out, err = run_job(ground, argv, tier=1, user=user, view=view, cwd=ground / cwd)
    assert outcome == "Exited(code=0)", outcome + err
    return out


def not_started(ground: Path, user: str, view: View) -> str:
    with Stage(ground, ["sh", "-c", "echo started"], tier=1, user=user, view=view) as stage:
        outcome = stage.outcome()
        assert stage.facts[0].denied
        assert stage.output() == ""
    assert outcome.startswith("NotStarted(reason=")
    return outcome.replace(str(ground), "GROUND").removeprefix("NotStarted(reason=").rstrip(")").strip("'\"")


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_read_only_folder_cannot_be_written_by_any_way_out(ground: Path, user: str) -> None:
    make(ground, "checkout/file", "checkout/sub/file")
    shell(ground, user, OTHER_WAYS, View(read_only=(str(ground / "checkout"),)))
    assert listing(ground / "checkout") == ["file", "sub", "sub/file"]
    (ground / "checkout/by-us").touch()  # only the job is shut in


def test_without_a_view_the_same_ways_do_write(ground: Path, user: str) -> None:
    make(ground, "checkout/file", "checkout/sub/file")
    shell(ground, user, OTHER_WAYS, View())
    assert {"plain", "sub/plain"} <= {*listing(ground / "checkout")}


def test_what_is_mounted_below_a_read_only_folder_is_read_only_too(ground: Path, user: str) -> None:
    make(ground, "checkout/sub/", "other/file")
    view = View(
        overlay=None,
        keep=(),
        provide=(),
        read_only=(str(ground / "checkout"),),
        empty=(str(ground / "checkout/sub"),),  # a mount of its own, writable when it is made
    )
    assert shell(ground, user, "touch checkout/sub/x || echo refused", view) == "refused\n"


def test_a_writable_folder_below_a_read_only_one(ground: Path, user: str) -> None:
    make(ground, "house/file", "house/.state/file")
    view = View(
        read_only=(str(ground / "house"),), writable=(str(ground / "house/.state"), str(ground / "house/.none"))
    )
    shell(ground, user, "touch house/a house/.state/b; mkdir house/.none; true", view)
    assert listing(ground / "house") == [".state", ".state/b", ".state/file", "file"]


LOOK_BEHIND = """
import os, socket, subprocess, sys
def attempt(act, *arguments):
    try:
        return act(*arguments)
    except OSError as error:
        return type(error).__name__
server = socket.socket(socket.AF_UNIX)
print(attempt(os.listdir, "state/key"), attempt(os.mkdir, "state/key/x"))
print(open("token").read(), open("state/other").read())
print(attempt(server.connect, "agent"), subprocess.run(["umount", "state/key"], stderr=-3).returncode != 0)
print(attempt(os.rename, "token", "moved"), attempt(os.rename, "state", "moved"), attempt(os.listdir, "state/key"))
"""


def test_what_is_hidden_cannot_be_read_reached_or_uncovered(ground: Path, user: str) -> None:
    make(ground, "state/key/secret", "state/other", "token")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(ground / "agent"))
        server.listen()
        (ground / "agent").chmod(0o777)
        hidden = tuple(str(ground / name) for name in ("state/key", "token", "agent", "missing"))
        # Hidden wins over writable.
        view = View(hidden=hidden, writable=(str(ground / "state"),), read_only=(str(ground),))
        argv = [interpreter(user), "-I", "-S", "-c", LOOK_BEHIND]
        outcome, out, err = run_job(ground, argv, tier=1, user=user, view=view)
    assert (outcome, err) == ("Exited(code=0)", "")
    assert out.splitlines() == [
        "[] OSError",
        " state/other",
        "ConnectionRefusedError True",
        "OSError OSError []",
    ]


def test_an_emptied_folder_shows_what_is_kept_alone(ground: Path, user: str) -> None:
    make(
        ground,
        "tmp/ruff.toml",
        "tmp/run/mine/tree/file",
        "tmp/run/mine/request/",
        "tmp/run/other/file",
        "tmp/project/file",
    )
    view = View(
        empty=(str(ground / "tmp"),),
        keep=(str(ground / "tmp/run/mine"),),
        # A checkout that lies in the emptied folder is out of reach, which is more than read-only.
        read_only=(str(ground / "tmp/project"), str(ground / "tmp/run/mine/tree")),
    )
    script = (
        f"cd {ground}/tmp; find . -mindepth 1 | sort; touch scratch run/mine/request/answer run/mine/tree/x; pwd -P"
    )
    out = shell(ground, user, script, view, cwd="tmp/run/mine/tree")
    seen = ["run", "run/mine", "run/mine/request", "run/mine/tree", "run/mine/tree/file"]
    assert out.split() == [*(f"./{name}" for name in seen), str(ground / "tmp")]
    assert not (ground / "tmp/scratch").exists()
    assert (ground / "tmp/run/mine/request/answer").exists()
    assert listing(ground / "tmp/run/mine/tree") == ["file"]


@pytest.mark.parametrize("base", BASES)
def test_an_overlay_takes_every_kind_of_change_and_the_tree_none(user: str, base: str, tmp_path: Path) -> None:
    if not os.path.isdir(base):
        pytest.skip(f"no {base}")
    if not containment_here(user).overlay:
        pytest.skip("overlays cannot be mounted here")
    with grounds(user, tmp_path, base) as ground:
        make(
            ground,
            "tree/edited",
            "tree/removed",
            "tree/dir/inner",
            "tree/renamed/deep/file",
            "tree/moded",
            "upper/",
            "work/",
        )
        (ground / "tree/link").symlink_to("edited")
        before = {path: (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in (ground / "tree").rglob("*")}
        script = """
            echo more >> edited; rm removed; rm -r dir; mkdir dir; touch dir/new; chmod 700 moded; touch -d @1 link
            mv renamed elsewhere; ln -s /etc/passwd link2; mkdir .git; : > file
            find . -mindepth 1 | sort; cat edited elsewhere/deep/file
        """
        view = View(overlay=tuple(str(ground / name) for name in ("tree", "upper", "work")))  # type: ignore[arg-type]
        out = shell(ground, user, script, view, cwd="tree")
        assert out.split() == [
            *("./" + name for name in (".git", "dir", "dir/new", "edited", "elsewhere", "elsewhere/deep")),
            *("./" + name for name in ("elsewhere/deep/file", "file", "link", "link2", "moded")),
            "tree/editedmore",
            "tree/renamed/deep/file",
        ]
        after = {path: (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in (ground / "tree").rglob("*")}
        assert after == before
        assert (ground / "upper/dir/new").exists()


@pytest.mark.parametrize("name", ["a b", "a,b", "a:b", "a\\b", "a\nb", "a\udcffb", "ä" * 120])
def test_a_path_of_any_bytes_can_be_mounted(name: str, ground: Path, user: str) -> None:
    make(ground, f"{name}/tree/file", f"{name}/upper/", f"{name}/work/", f"{name}/checkout/file", f"{name}/key/secret")
    here = ground / name
    overlay = (str(here / "tree"), str(here / "upper"), str(here / "work"))
    view = View(
        overlay=overlay if containment_here(user).overlay else None,
        read_only=(str(here / "checkout"),),
        hidden=(str(here / "key"),),
    )
    script = "touch new; touch ../checkout/x; ls; ls ../key"
    assert shell(ground, user, script, view, cwd=f"{name}/tree") == "file\nnew\n"
    assert listing(here / "checkout") == ["file"]


def test_provided_paths_are_seen_in_the_tree_read_only(ground: Path, user: str) -> None:
    make(ground, "checkout/node_modules/left-pad/index.js", "checkout/cache.bin", "tree/file", "upper/", "work/")
    if not containment_here(user).overlay:
        pytest.skip("overlays cannot be mounted here")
    view = View(
        overlay=(str(ground / "tree"), str(ground / "upper"), str(ground / "work")),
        read_only=(str(ground / "checkout"),),
        provide=(
            (str(ground / "checkout/node_modules"), "packages/app/node_modules"),
            (str(ground / "checkout/cache.bin"), "cache.bin"),
        ),
    )
    script = "find . -type f | sort; touch packages/app/node_modules/x || cat cache.bin"
    out = shell(ground, user, script, view, cwd="tree")
    assert out.split() == [
        "./cache.bin",
        "./file",
        "./packages/app/node_modules/left-pad/index.js",
        "checkout/cache.bin",
    ]
    assert listing(ground / "tree") == ["file"]


def test_a_provided_path_does_not_follow_a_link_of_the_tree(ground: Path, user: str) -> None:
    make(ground, "checkout/file", "source/file", "tree/")
    (ground / "tree/app").symlink_to(ground / "checkout")
    (ground / "tree/node_modules").symlink_to(ground / "checkout")

    def refusal(place: str) -> str:
        view = View(provide=((str(ground / "source"), place),))
        argv = ["sh", "-c", "echo started"]
        outcome, out, _ = run_job(ground, argv, tier=1, user=user, view=view, cwd=ground / "tree")
        assert out == ""
        return outcome

    for place in ("app/node_modules", "node_modules"):
        assert "is a symbolic link" in refusal(place)
    for place in ("../checkout/x", "/abs", "", "a/./b", "a//b"):
        assert "not a path below the tree" in refusal(place)
    assert listing(ground / "checkout") == ["file"]


def test_a_view_that_cannot_be_made_starts_nothing(ground: Path, user: str) -> None:
    make(ground, "file", "tree/", "upper/", "work/")
    gone = str(ground / "gone")
    assert not_started(ground, user, View(read_only=(gone,))) == "read-only GROUND/gone: No such file or directory"
    assert not_started(ground, user, View(keep=(gone,))) == "keep GROUND/gone: open_tree: No such file or directory"
    assert not_started(ground, user, View(empty=(gone,))) == "empty GROUND/gone: mount: No such file or directory"
    assert (
        not_started(ground, user, View(provide=((gone, "x"),))) == "provide x (GROUND/gone): No such file or directory"
    )
    overlay = (str(ground / "tree"), gone, str(ground / "work"))
    assert (
        not_started(ground, user, View(overlay=overlay))
        == "overlay GROUND/tree (GROUND/gone): No such file or directory"
    )
    assert not_started(ground, user, View(empty=(str(ground / "file"),))).startswith("empty GROUND/file: mount: Not a")
