"""`.orch`: made whole, mended, and refused in one sentence where it is somebody else's (cases 17, 50, 51)."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from git_orch import atomic, formats, orchdir, registry
from git_orch.errors import ForeignDirectory
from git_orch.layout import Layout
from tests.entries import INSTANCE, KEY

OTHER = "f" * 16


@pytest.fixture
def live(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    return tmp_path / "repo" / ".orch"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The layout of a bare repository: `.orch` lies inside of git's directory, where nothing is tracked."""
    common = tmp_path / "bare.git"
    common.mkdir()
    return Layout(
        worktree="",
        common_dir=str(common),
        git_dir=str(common),
        index=str(common / "index"),
        objects=str(common / "objects"),
        object_format="sha1",
        live=str(common / "orch" / "live"),
        durable=str(common / "orch"),
    )


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


WHOLE = [".gitignore", "inbox", "instance", "pending"]


def test_it_is_made_whole_and_closed_to_others(live: Path) -> None:
    assert orchdir.make(str(live), INSTANCE)
    assert tree(live) == WHOLE
    assert (live / ".gitignore").read_text() == "*\n"
    assert orchdir.instance_of(str(live)) == INSTANCE
    for folder in (live, live / "pending", live / "inbox"):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert os.listdir(live.parent) == [".orch"]


def test_where_one_is_already_that_one_stays(live: Path) -> None:
    orchdir.make(str(live), INSTANCE)
    assert not orchdir.make(str(live), OTHER)
    assert orchdir.instance_of(str(live)) == INSTANCE
    assert os.listdir(live.parent) == [".orch"]


def test_an_empty_folder_is_filled(live: Path) -> None:
    live.mkdir()
    assert orchdir.instance_of(str(live)) == ""
    assert orchdir.make(str(live), INSTANCE)
    assert tree(live) == WHOLE


def test_it_is_never_seen_half_made(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = os.rename

    def watched(source: str, target: str) -> None:
        seen.extend(tree(Path(source)))
        assert not live.exists()
        real(source, target)

    monkeypatch.setattr(os, "rename", watched)
    orchdir.make(str(live), INSTANCE)
    assert seen == WHOLE


def test_its_own_folder_is_never_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        orchdir.make(str(tmp_path / "gone" / ".orch"), INSTANCE)
    assert not (tmp_path / "gone").exists()


def test_a_scratch_folder_goes_where_it_cannot_be_written(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = atomic.write

    def full(path: str, data: bytes, **options: Any) -> None:
        if path.endswith("instance"):
            raise OSError(28, "No space left on device")
        real(path, data, **options)

    monkeypatch.setattr(atomic, "write", full)
    with pytest.raises(OSError, match="No space"):
        orchdir.make(str(live), INSTANCE)
    assert os.listdir(live.parent) == []


def test_old_scratch_folders_go_and_nothing_else(live: Path) -> None:
    young, old, strange = (live.parent / f".orch.{name}.tmp" for name in ("1-00000000", "2-00000000", "mine"))
    for scratch in (young, old, strange):
        scratch.mkdir()
        (scratch / ".gitignore").write_text("*\n")
    (strange / "thesis.txt").write_text("three years")
    other = live.parent / ".orchestra"
    other.mkdir()
    then = time.time() - 7200
    for path in (old, strange, other):
        os.utime(path, (then, then))
    orchdir.sweep_scratch(str(live))
    assert sorted(os.listdir(live.parent)) == [young.name, strange.name, ".orchestra"]
    assert (strange / "thesis.txt").exists()


# -- mending


@pytest.mark.parametrize("lost", [[".gitignore"], ["instance"], ["pending"], ["inbox"], WHOLE])
def test_what_was_lost_is_put_back(live: Path, lost: list[str]) -> None:
    orchdir.make(str(live), INSTANCE)
    for name in lost:
        path = live / name
        path.rmdir() if path.is_dir() else path.unlink()
    if lost == WHOLE:
        live.rmdir()
    assert orchdir.mend(str(live), INSTANCE) == INSTANCE
    assert tree(live) == WHOLE


def test_what_another_process_made_meanwhile_is_taken_as_it_is(live: Path) -> None:
    orchdir.make(str(live), OTHER)
    assert orchdir.mend(str(live), INSTANCE) == OTHER


def test_an_entry_that_was_written_while_git_cleaned_is_kept(live: Path) -> None:
    (live / "pending").mkdir(parents=True)
    (live / "pending" / "20261130T201500123-9f3a61c2.json").write_text("{}")
    assert orchdir.mend(str(live), INSTANCE) == INSTANCE
    assert tree(live) == [*WHOLE, "pending/20261130T201500123-9f3a61c2.json"]


@pytest.mark.usefixtures("layout")
def test_modes_that_a_stash_brought_back_are_closed_again(live: Path) -> None:
    orchdir.make(str(live), INSTANCE)
    (live / "pending").chmod(0o775)
    orchdir.mend(str(live), INSTANCE)
    assert (live / "pending").stat().st_mode & 0o777 == 0o700


# -- what is not ours


def other_tool(live: Path) -> None:
    live.mkdir()
    (live / "cli.js").write_text("")
    (live / "plan").mkdir()
    (live / "zeta").mkdir()
    (live / "pending").mkdir()


def link(live: Path) -> None:
    live.parent.joinpath("elsewhere").mkdir()
    live.symlink_to("elsewhere")


def linked_pending(live: Path) -> None:
    orchdir.make(str(live), INSTANCE)
    (live / "pending").rmdir()
    live.parent.joinpath("elsewhere").mkdir()
    (live / "pending").symlink_to("../elsewhere")


FOREIGN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "another tool's": (other_tool, ".orch/ exists and is not ours (it holds plan/ and zeta/)."),
    "symlink": (link, ".orch exists and is not ours (it is a symbolic link)."),
    "dangling symlink": (
        lambda live: live.symlink_to("nowhere"),
        ".orch exists and is not ours (it is a symbolic link).",
    ),
    "file": (lambda live: live.write_text("x"), ".orch exists and is not ours (it is a file)."),
    "fifo": (os.mkfifo, ".orch exists and is not ours (it is a file)."),
    "pending a symlink": (linked_pending, ".orch/ exists and is not ours (its pending is no folder of yours)."),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_what_is_not_ours_is_refused_in_one_sentence_and_left_as_it_is(live: Path, case: str) -> None:
    spoil, sentence = FOREIGN[case]
    spoil(live)
    before = tree(live.parent)
    for attempt in (orchdir.instance_of, lambda path: orchdir.mend(path, INSTANCE)):
        with pytest.raises(ForeignDirectory) as caught:
            attempt(str(live))
        assert caught.value.message == sentence
        assert caught.value.hint == "git config orch.dir .git-orch"
        assert tree(live.parent) == before


def test_the_sentence_is_the_one_of_docs_output(live: Path) -> None:
    live.mkdir()
    (live / "cli.js").write_text("")
    (live / "plan").mkdir()
    with pytest.raises(ForeignDirectory) as caught:
        orchdir.instance_of(str(live))
    assert formats.error(caught.value, False) == (
        "git-orch: .orch/ exists and is not ours (it holds plan/ and cli.js).\n"
        "          git config orch.dir .git-orch\n"
    )


def test_another_name_is_told_with_its_path(live: Path) -> None:
    named = live.with_name(".git-orch")
    named.write_text("")
    with pytest.raises(ForeignDirectory) as caught:
        orchdir.instance_of(str(named))
    assert caught.value.message == f"{named} exists and is not ours (it is a file)."
    assert caught.value.hint == f"move {named} away"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_is_refused(live: Path) -> None:
    orchdir.make(str(live), INSTANCE)
    os.chown(live, 65534, 65534)
    with pytest.raises(ForeignDirectory, match=r"\(it belongs to user 65534\)"):
        orchdir.instance_of(str(live))


# -- establishing it, where git tracks nothing


def test_the_first_one_gets_an_instance_which_is_noted_beside_gits_own_files(layout: Layout) -> None:
    instance = orchdir.establish(layout, os.environ)
    assert len(instance) == 16
    assert Path(layout.durable, "instance").read_text() == instance + "\n"
    assert orchdir.establish(layout, os.environ) == instance


def test_after_it_was_wiped_the_same_instance_comes_back(layout: Layout) -> None:
    instance = orchdir.establish(layout, os.environ)
    shutil.rmtree(layout.live)
    assert orchdir.establish(layout, os.environ) == instance


def test_half_of_it_is_mended_where_we_had_one_and_foreign_where_not(layout: Layout) -> None:
    os.makedirs(os.path.join(layout.live, "pending"))
    with pytest.raises(ForeignDirectory, match=r"it holds pending/\)"):
        orchdir.establish(layout, os.environ)
    Path(layout.durable, "instance").write_text(INSTANCE + "\n")
    assert orchdir.establish(layout, os.environ) == INSTANCE
    assert tree(Path(layout.live)) == WHOLE


def test_looking_makes_nothing(layout: Layout) -> None:
    assert registry.open_registry(layout, KEY) is None
    assert not os.path.lexists(layout.durable)
    orchdir.establish(layout, os.environ)
    book = registry.open_registry(layout, KEY)
    assert book is not None
    assert book.run_ids() == []
    shutil.rmtree(layout.pending)
    assert registry.open_registry(layout, KEY) is None
