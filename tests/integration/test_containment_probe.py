"""The probe in worlds that allow less: each ends in tier 2 with a reason in words; nothing weaker runs as tier 1."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adversaries.stage import USERS, grounds, need_tier, run_as

OWN_NAMESPACES = """
from git_orch.containment import linux
def enter(flags):
    uid, gid = os.geteuid(), os.getegid()
    linux.unshare(linux.CLONE_NEWUSER | flags)
    for path, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        open(f"/proc/self/{path}", "w").write(text)
"""
NO_MORE_NAMESPACES = f"""{OWN_NAMESPACES}
enter(0)
for kind in ("user", "pid"):
    open(f"/proc/sys/user/max_{{kind}}_namespaces", "w").write("0")
"""
# The second user namespace is what locks the mask.
MASKED_PROC = f"""{OWN_NAMESPACES}
enter(linux.CLONE_NEWNS)
linux.mount("tmpfs", "/proc/irq", "tmpfs", linux.MS_RDONLY)
enter(linux.CLONE_NEWNS)
"""
# What Docker's default profile does.
UNSHARE_REFUSED = f"""
import ctypes, os
from git_orch.containment import linux
number = {{"x86_64": 272, "aarch64": 97}}[{platform.machine()!r}]
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
class Rule(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("rules", ctypes.POINTER(Rule))]
program = Program(len(code), (Rule * len(code))(*code))
linux.no_new_privileges()
assert not ctypes.CDLL(None).prctl(22, 2, ctypes.byref(program), 0, 0)
"""
# What AppArmor does on Ubuntu 24.04: the namespace is made, and its capabilities are taken away.
NO_RIGHTS = """
from git_orch.containment import linux
unshare = linux.unshare
def unshare_in_vain(flags):
    unshare(flags)
    linux.restrict_capabilities(0)
linux.unshare = unshare_in_vain
"""
NO_MOUNT_SETATTR = """
from git_orch.containment import linux
def refuse(mount_fd, path):
    raise OSError(38, "mount_setattr: Function not implemented", path)
linux.make_read_only = refuse
"""
NO_OVERLAY = """
from git_orch.containment import linux
mount = linux.mount
def mount_no_overlay(source, target, kind, flags, options=""):
    if kind == "overlay":
        raise OSError(19, "mount: No such device", target)
    mount(source, target, kind, flags, options)
linux.mount = mount_no_overlay
"""
WRITABLE_ALL_THE_SAME = """
from git_orch.containment import linux
linux.make_read_only = lambda mount_fd, path: None
"""
MOUNTS_CAN_BE_UNDONE = """
from git_orch.containment import namespaces
namespaces._drop_privileges = lambda: None
"""
NEVER_ANSWERS = """
import _signal
from git_orch.containment import probe
probe.TIMEOUT_S = 0.2
probe._try_fences = lambda *_: _signal.pause()
"""
WORLDS = [
    (NO_MORE_NAMESPACES, "no more namespaces may be made here"),
    (MASKED_PROC, "/proc cannot be mounted: parts of it are masked, as in a container"),
    (UNSHARE_REFUSED, "this system or container does not let this user make namespaces"),
    (NO_RIGHTS, "namespaces have no rights here"),
    (NO_MOUNT_SETATTR, "read-only SCRATCH/checkout: mount_setattr: Function not implemented"),
    (WRITABLE_ALL_THE_SAME, "what is read-only can be written"),
    (MOUNTS_CAN_BE_UNDONE, "mounts can be taken away by the job"),
    (NEVER_ANSWERS, "no answer within 0.2 s"),
]
PROBE = """
import re
from git_orch.containment.probe import probe
answer = probe(argv[0])
print(answer.tier, answer.overlay, re.sub(re.escape(argv[0]) + "/.probe-[0-9-]+", "SCRATCH", answer.degraded_reason))
assert os.listdir(argv[0]) == [], os.listdir(argv[0])
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no children")
"""
START = """
import select
from git_orch.containment import Containment, Job
from git_orch.guardian import Guard
place = argv[0]
job = Job(argv=("sh", "-c", "echo ran"), env={"PATH": os.environ["PATH"]}, cwd=place, stdout_path=place + "/out",
    stderr_path=place + "/err", containment=Containment(tier=1))
guard = Guard.start(job, lock_fd=None)
print(guard.gone and guard.denied, repr(guard.outcome), os.path.exists(place + "/out") and open(place + "/out").read())
"""


@pytest.fixture(params=USERS)
def user(request: pytest.FixtureRequest) -> str:
    assert isinstance(request.param, str)
    need_tier(1, request.param)
    return request.param


@pytest.fixture
def scratch(user: str, tmp_path: Path) -> Iterator[str]:
    with grounds(user, tmp_path) as folder:
        place = folder / "scratch"
        place.mkdir()
        os.chown(place, folder.stat().st_uid, folder.stat().st_gid)
        yield str(place)


def test_tier_1_is_found_where_it_is_to_be_had(user: str, scratch: str) -> None:
    answer, children = run_as(user, "import os\n" + PROBE, scratch).splitlines()
    assert answer.startswith("1 ")
    assert children == "no children"


@pytest.mark.parametrize(("world", "reason"), WORLDS, ids=[reason[:30] for _, reason in WORLDS])
def test_a_world_that_allows_less_ends_in_tier_2_and_says_why(world: str, reason: str, user: str, scratch: str) -> None:
    if world == UNSHARE_REFUSED and platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("the number of unshare is not known here")
    answer, children = run_as(user, "import os\n" + world + PROBE, scratch).splitlines()
    tier, overlay, told = answer.split(" ", 2)
    assert (tier, overlay, children) == ("2", "False", "no children")
    assert reason in told


def test_a_machine_without_overlays_still_has_tier_1(user: str, scratch: str) -> None:
    answer, _ = run_as(user, "import os\n" + NO_OVERLAY + PROBE, scratch).splitlines()
    assert answer == "1 False "


@pytest.mark.parametrize("world", [NO_MORE_NAMESPACES, MASKED_PROC, UNSHARE_REFUSED, NO_RIGHTS])
def test_a_guardian_that_cannot_have_tier_1_runs_nothing(world: str, user: str, scratch: str) -> None:
    reasons = dict(WORLDS)
    gone, outcome = run_as(user, "import os\n" + world + START, scratch).strip().split(" ", 1)
    assert gone == "True"
    assert outcome.startswith("NotStarted(")
    assert reasons[world] in outcome
    assert not outcome.endswith("ran")


def test_a_scratch_folder_that_is_missing_is_told(user: str, scratch: str) -> None:
    body = "from git_orch.containment.probe import probe; import os; os.rmdir(argv[0])\n"
    with pytest.raises(AssertionError, match="FileNotFoundError"):
        run_as(user, body + "probe(argv[0])", scratch)
    Path(scratch).mkdir()
