"""Case 9: a TMPDIR that cannot take the trees is refused before anything starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from git_orch.disposal import dispose
from git_orch.errors import EnvironmentProblem
from git_orch.place import check_space, make_place, temp_root
from git_orch.registry import make_run_id
from tests.mounting import in_child, mount_tmpfs
from tests.scratch import KEY

MIB = 1 << 20
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "small").mkdir()
    return tmp_path / "small"


def fill(folder: Path, *, but_bytes: int = 0) -> None:
    status = os.statvfs(folder)
    with (folder / "ballast").open("wb") as ballast:
        ballast.write(bytes(status.f_bavail * status.f_frsize - but_bytes))


def test_a_full_one(small: Path) -> None:
    def action() -> None:
        mount_tmpfs(small, "50m")
        fill(small)
        with pytest.raises(EnvironmentProblem, match=r"not enough room .*: 1\.0 MiB needed, 0\.0 MiB free") as refused:
            temp_root({"TMPDIR": str(small)})
        assert refused.value.exit_code == 4
        assert "TMPDIR" in refused.value.hint

    in_child(action)


def test_one_without_room_for_a_single_folder(small: Path) -> None:
    def action() -> None:
        mount_tmpfs(small, "1m,nr_inodes=1")
        with pytest.raises(EnvironmentProblem, match="No space left on device"):
            temp_root({"TMPDIR": str(small)})

    in_child(action)


def test_one_that_has_room_for_some(small: Path) -> None:
    def action() -> None:
        mount_tmpfs(small, "50m")
        root = temp_root({"TMPDIR": str(small)})
        fill(small, but_bytes=20 * MIB)
        check_space(root, 19 * MIB)
        with pytest.raises(EnvironmentProblem, match=r"32\.0 MiB needed, (19\.9|20\.0) MiB free"):
            check_space(root, 32 * MIB)

    in_child(action)


@pytest.mark.parametrize(("inodes", "left"), [(3, 0), (4, 1)])
def test_one_that_fills_up_while_the_place_is_made(small: Path, inodes: int, left: int) -> None:
    """What is there of the run by then is disposed of like any other."""

    def action() -> None:
        mount_tmpfs(small, f"4m,nr_inodes={inodes}")
        root = temp_root({"TMPDIR": str(small)})
        run_id = make_run_id()
        with pytest.raises(EnvironmentProblem, match="No space left on device"):
            make_place(root, run_id, "static", KEY)
        assert len(os.listdir(root)) == left
        assert dispose(root, run_id, KEY) == ("disposed" if left else "absent")
        assert os.listdir(root) == []

    in_child(action)


@pytest.mark.parametrize("used_before", [False, True])
def test_a_read_only_one(small: Path, used_before: bool) -> None:
    def action() -> None:
        mount_tmpfs(small)
        if used_before:
            temp_root({"TMPDIR": str(small)})
        assert os.system(f"mount -o remount,ro {small}") == 0
        with pytest.raises(EnvironmentProblem, match=r"(?i)cannot write to the temporary folder .*read-only"):
            temp_root({"TMPDIR": str(small)})

    in_child(action)
