"""Where trees may lie, and how a folder of ours is known."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from git_orch import place as places
from git_orch.errors import EnvironmentProblem
from git_orch.place import check_space, make_place, temp_root
from tests.ordinary_user import as_ordinary_user, open_folder
from tests.seal import Seal

KEY = b"k" * 32
RUN = "20261130T201500123-9f3a61c2"


def env_of(folder: Path, **more: str) -> Mapping[str, str]:
    return {"TMPDIR": str(folder), **more}


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def test_the_root_is_made_closed_to_others(seal: Seal) -> None:
    root = temp_root(env_of(seal.tmp))
    assert root == str(seal.tmp / f"git-orch-{os.geteuid()}")
    assert os.stat(root).st_mode & 0o777 == 0o700
    assert temp_root(env_of(seal.tmp)) == root


def test_a_root_inside_a_repository_is_refused(tmp_path: Path) -> None:
    inside = folder(tmp_path / "repo" / "tmp")
    folder(tmp_path / "repo" / ".git")
    with pytest.raises(EnvironmentProblem, match="inside the repository") as refused:
        temp_root(env_of(inside))
    assert "TMPDIR" in refused.value.hint
    assert refused.value.exit_code == 4
    assert os.listdir(inside) == []


def test_home_as_a_repository_counts(tmp_path: Path) -> None:
    folder(tmp_path / "home" / ".git")
    with pytest.raises(EnvironmentProblem, match="inside the repository"):
        temp_root(env_of(folder(tmp_path / "home" / "tmp"), HOME=str(tmp_path / "home")))


def test_a_link_into_a_repository_does_not_help(tmp_path: Path) -> None:
    folder(tmp_path / "repo" / ".git")
    (tmp_path / "link").symlink_to(folder(tmp_path / "repo" / "tmp"))
    with pytest.raises(EnvironmentProblem, match="inside the repository"):
        temp_root(env_of(tmp_path / "link"))


def test_a_forbidden_folder_is_refused(tmp_path: Path) -> None:
    bare = folder(tmp_path / "repo.d")
    with pytest.raises(EnvironmentProblem, match="inside the repository"):
        temp_root(env_of(folder(bare / "tmp")), forbidden=[str(bare)])


@pytest.mark.parametrize("value", ["tmp", "./tmp", "/does/not/exist"])
def test_what_is_no_folder_is_refused(value: str) -> None:
    with pytest.raises(EnvironmentProblem, match=r"TMPDIR is not an absolute|cannot write"):
        temp_root({"TMPDIR": value})


def test_a_link_in_the_place_of_the_root_is_refused(seal: Seal, tmp_path: Path) -> None:
    (seal.tmp / f"git-orch-{os.geteuid()}").symlink_to(folder(tmp_path / "trap"))
    with pytest.raises(EnvironmentProblem, match="is no folder"):
        temp_root(env_of(seal.tmp))


def test_a_root_that_others_may_enter_is_refused(seal: Seal) -> None:
    (seal.tmp / f"git-orch-{os.geteuid()}").mkdir(mode=0o755)
    with pytest.raises(EnvironmentProblem, match="not yours alone"):
        temp_root(env_of(seal.tmp))


def test_a_root_of_another_user_is_refused(seal: Seal) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to make a folder of another user's")
    root = seal.tmp / "git-orch-0"
    root.mkdir(mode=0o700)
    os.chown(root, 65534, 65534)
    with pytest.raises(EnvironmentProblem, match="not yours alone"):
        temp_root(env_of(seal.tmp))


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with open_folder(tmp_path) as mine:

        def action() -> None:
            closed = folder(mine / "closed")
            closed.chmod(0o555)
            with pytest.raises(EnvironmentProblem, match="cannot write to the temporary folder"):
                temp_root(env_of(closed))

        as_ordinary_user(action)


def test_no_room_is_told_with_both_numbers(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"1073741824\.0 MiB needed, [0-9.]+ MiB free"):
        check_space(str(tmp_path), 1 << 50)
    check_space(str(tmp_path), 1)


def test_a_configuration_above_sends_the_trees_elsewhere(tmp_path: Path) -> None:
    steered = folder(tmp_path / "steered" / "tmp")
    (tmp_path / "steered" / "conftest.py").touch()
    quiet = folder(tmp_path / "quiet")
    assert temp_root(env_of(steered, XDG_RUNTIME_DIR=str(quiet))).startswith(str(quiet))
    assert temp_root(env_of(steered, XDG_CACHE_HOME=str(quiet))).startswith(str(quiet))
    assert temp_root(env_of(steered, HOME=str(tmp_path / "nowhere"))).startswith(str(steered))


def test_a_place_is_marked_as_ours_and_known_again(seal: Seal) -> None:
    root = temp_root(env_of(seal.tmp))
    place = make_place(root, RUN, "static", KEY)
    try:
        assert place.root == f"{root}/{RUN}/static"
        assert os.listdir(place.root) == ["request"]
        assert is_marked(place.run_folder, root, RUN, KEY)
        assert not is_marked(place.run_folder, root, RUN, b"x" * 32)
        assert not is_marked(place.run_folder, root, RUN.replace("9f", "8f"), KEY)
        assert not is_marked(place.run_folder, str(seal.home), RUN, KEY)
    finally:
        clear(root)


def test_a_copy_of_a_place_is_not_ours(seal: Seal, tmp_path: Path) -> None:
    root = temp_root(env_of(seal.tmp))
    place = make_place(root, RUN, "static", KEY)
    copy = folder(tmp_path / "copy")
    (copy / places.MARKER).write_bytes(Path(place.marker).read_bytes())
    try:
        assert not is_marked(str(copy), root, RUN, KEY)
    finally:
        clear(root)


def test_the_reviewers_of_a_run_share_its_folder(seal: Seal) -> None:
    root = temp_root(env_of(seal.tmp))
    try:
        one, other = (make_place(root, RUN, name, KEY) for name in ("a", "b"))
        assert one.run_folder == other.run_folder
        with pytest.raises(EnvironmentProblem, match="File exists"):
            make_place(root, RUN, "a", KEY)
    finally:
        clear(root)


def test_a_name_that_is_no_run_id_makes_nothing(seal: Seal) -> None:
    root = temp_root(env_of(seal.tmp))
    with pytest.raises(EnvironmentProblem):
        make_place(root, "../escape", "a", KEY)
    assert os.listdir(root) == []
    assert not (seal.tmp / "escape").exists()


def is_marked(path: str, root: str, run_id: str, key: bytes) -> bool:
    fd = os.open(path, os.O_RDONLY)
    try:
        return places.is_marked(fd, root, run_id, key)
    finally:
        os.close(fd)


def clear(root: str) -> None:
    from git_orch.disposal import dispose, leftovers

    assert [dispose(root, run_id, KEY) for run_id in leftovers(root)] == ["disposed"]
