"""Reviewers that hang, flood, fork, meddle or leave things behind: how the run ends, and what is left (nothing)."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adversaries.stage import need_tier
from tests.conftest import Orch
from tests.fakes import fake_reviewer
from tests.project import Project, appears, outcomes, reviewer_of
from tests.untouched import fingerprint
from tests.waiting import wait_until

BLOCKING = '[{"path": "a.py", "start_line": 2}]'
ADVISORY = '[{"path": "a.py", "start_line": 2, "severity": "advisory"}]'


# -- time


def test_what_takes_too_long_is_silent_or_floods_is_ended(project: Project) -> None:
    """All at once: each is ended for its own reason, and the one that computes in silence lives."""
    project.reviewer("late", "--findings", ADVISORY, "--hang", timeout="600ms")
    project.reviewer("mute", "--hang", stall="300ms")
    project.reviewer("busy", "--spin", "1.2", "--pass", stall="1s")
    project.reviewer("flood", "--flood", "80", "--hang")
    project.only("late", "mute", "busy", "flood")
    project.fire()
    record = project.ended()
    assert outcomes(record) == {"late": "hard-timeout", "mute": "stalled", "busy": "completed", "flood": "cancelled"}
    late = reviewer_of(record, "late")
    assert (late["verdict"], late["findings"]) == ("unreviewed", 1)  # harvested, and yet no judgement
    assert reviewer_of(record, "flood")["reason"] == "it wrote more than 64 MiB"
    assert project.file(project.last, "flood/result.out").stat().st_size <= 64 << 20
    assert (record["status"], record["verdict"]) == ("done", "unreviewed")


def test_a_run_whose_reviewers_all_took_too_long_is_timed_out(project: Project) -> None:
    project.reviewer("late", "--findings", BLOCKING, "--hang", timeout="300ms")
    project.only("late")
    project.fire()
    record = project.ended()
    assert (record["status"], record["terminal_reason"]) == ("timed-out", "hard-timeout")
    assert record["verdict"] == "findings"  # what it had found is true all the same


def test_nothing_is_recorded_before_the_last_process_has_ended(project: Project, tmp_path: Path) -> None:
    """Cases 13 and 14: it exits 0 at once and leaves two behind that will not hear SIGTERM."""
    pids = [tmp_path / "daemon", tmp_path / "grandchild"]
    project.reviewer("fake", "--ignore-term", "--daemon", pids[0], "--grandchild", pids[1], "--pass")
    project.only("fake")
    project.fire()
    for pid in pids:
        appears(pid)
    record = project.file(project.last, "record.json")
    looks = 0
    while not record.exists():
        looks += 1
    assert project.processes() == []
    assert looks > 100  # it took the grace that SIGTERM gives
    assert project.ended()["verdict"] == "pass"


def test_stop_ends_it_and_so_does_a_signal(project: Project, orch: Orch, tmp_path: Path) -> None:
    project.reviewer("fake", "--touch", tmp_path / "up", "--pass", "--hang")
    project.only("fake")
    for how in ("stop", "signal"):
        project.edit(f"{how}\n")
        project.fire()
        appears(tmp_path / "up")
        if how == "stop":
            assert orch("stop", "--all").returncode == 0
        else:
            os.kill(project.supervisor(project.last), signal.SIGTERM)
        record = project.ended()
        assert (record["status"], record["terminal_reason"], record["verdict"]) == (
            "cancelled",
            "cancelled",
            "unreviewed",
        )
        assert record["jobs"][0]["status"] == "done"
        (tmp_path / "up").unlink()


def test_ctrl_c_cancels_a_run_in_the_foreground(project: Project, tmp_path: Path) -> None:
    project.reviewer("fake", "--touch", tmp_path / "up", "--hang")
    command = ["git", "orch", "review", "--foreground", "--reviewer", "fake"]
    with subprocess.Popen(command, cwd=project.path, stdout=subprocess.PIPE, start_new_session=True) as following:
        appears(tmp_path / "up")
        os.killpg(following.pid, signal.SIGINT)
        following.communicate(timeout=20)
    assert following.returncode in (130, -signal.SIGINT)  # git itself is interrupted as well
    assert project.record(project.last)["status"] == "cancelled"
    assert project.live == []


# -- the tree


def test_a_reviewer_that_changes_its_tree_is_not_believed(project: Project, tmp_path: Path) -> None:
    """Cases 24, 52, 65, 66: what of the tree was changed is tampered; what lies beside it is only litter."""
    project.reviewer("edits", "--edit", "a.py", "--pass")
    project.reviewer("deletes", "--delete", "docs/b.txt", "--pass")
    project.reviewer("disguises", "--disguise", "a.py", "--pass")
    project.reviewer("litters", "--litter", "--pass")
    project.reviewer("plants", "--plant-git", f"touch {tmp_path / 'ran'}", "--pass")
    names = ("edits", "deletes", "disguises", "litters", "plants")
    project.only(*names)
    project.fire()
    record = project.ended()
    said = {name: (reviewer_of(record, name)["verdict"], reviewer_of(record, name)["reason"]) for name in names}
    assert said == {
        "edits": ("unreviewed", "tampered: a.py"),
        "deletes": ("unreviewed", "tampered: docs/b.txt"),
        "disguises": ("unreviewed", "tampered: a.py"),
        "litters": ("pass", ""),
        "plants": ("pass", ""),
    }
    assert reviewer_of(record, "litters")["littered"] == [".mypy_cache/", ".pytest_cache/", ".ruff_cache/"]
    assert reviewer_of(record, "plants")["littered"] == [".git/"]
    project.reviewer("good", "--pass")
    project.only("good")
    project.edit("next\n")
    project.fire()
    assert project.ended()["materialized"] == "cold"  # no littered tree is used again
    assert not (tmp_path / "ran").exists()


def test_a_clean_tree_is_used_again(project: Project) -> None:
    project.reviewer("good", "--pass")
    project.only("good")
    ways = []
    for text in ("first\n", "second\n"):
        project.edit(text)
        project.fire()
        ways.append(project.ended()["materialized"])
    assert ways == ["cold", "warm"]


def test_links_of_the_tree_lead_nothing_out_of_it(project: Project, tmp_path: Path) -> None:
    """Case 65: tracked links named like what we write."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in (".review", "request", "result", "tree.tar"):
        (project.path / name).symlink_to(outside)
    project.repo.commit("links")
    project.reviewer("fake", "--to-result", "--pass")
    project.only("fake", "static")
    project.edit("changed\n")
    project.fire()
    record = project.ended()
    assert reviewer_of(record, "fake")["verdict"] == "pass"
    assert outcomes(record)["static"] == "completed"
    assert list(outside.iterdir()) == []


# -- the checkout


def test_no_ordinary_write_reaches_the_checkout(project: Project) -> None:
    need_tier(1)
    targets = [project.path / name for name in ("planted.py", ".git/hooks/pre-commit", ".git/config")]
    steps = [word for target in targets for word in ("--write", str(target))]
    project.reviewer("fake", *steps, "--pass")
    project.only("fake")
    project.fire(event="session-start")
    project.edit("edited\n")
    before = fingerprint(project.repo)
    project.fire()
    record = project.ended()
    assert record["verdict"] == "pass"
    assert [job["containment"] for job in record["jobs"]] == [1]
    said = project.file(project.last, "fake/result.err").read_text().splitlines()
    assert said == [f"{target}: Read-only file system" for target in targets]
    assert fingerprint(project.repo) == before


def test_of_all_trees_a_reviewer_sees_its_own_alone(project: Project) -> None:
    need_tier(1)
    project.command("nosy", f'ls -A "$ORCH_DIR/../../.." "$ORCH_DIR/../.." >&2; {fake_reviewer("--pass")}')
    project.reviewer("other", "--pass")
    project.only("other", "nosy")
    project.fire()
    record = project.ended()
    assert record["verdict"] == "pass"
    seen = project.file(project.last, "nosy/result.err").read_text().split()
    assert {name for name in seen if not name.endswith(":")} == {record["run_id"], "nosy"}


def test_a_review_leaves_the_repository_as_it_was(project: Project, orch: Orch) -> None:
    project.repo.git("stash", "push", "--quiet")
    project.edit("one more\n")
    project.repo.write("untracked.py", "new = 1\n")
    before = fingerprint(project.repo)
    project.reviewer("fake", "--findings", BLOCKING)
    changed = fingerprint(project.repo)
    assert changed != before  # the fingerprint sees as little as a line in the configuration
    project.only("static", "fake")
    after_settings = fingerprint(project.repo)
    project.fire()
    project.settle()
    assert orch("review", "--fresh").returncode == 1
    assert fingerprint(project.repo) == after_settings


def test_where_the_checkout_can_be_written_settings_are_watched(project: Project) -> None:
    """Tier 2: new hooks and settings are the reviewer's doing; refs that move are told, for the person works on."""
    project.set("orch.review.sandbox", "false")
    hook = project.path / ".git/hooks/post-checkout"
    project.reviewer("plants", "--write", hook, "--pass")
    project.command("moves", f"git -C {shlex.quote(str(project.path))} branch planted; {fake_reviewer('--pass')}")
    said = {}
    for name in ("plants", "moves"):
        project.only(name)
        project.edit(f"{name}\n")
        project.fire()
        record = project.ended()
        said[name] = (record["verdict"], record["reviewers"][0]["reason"])
        reason = record["jobs"][0]["containment_degraded_reason"]
        assert reason == "checkout-writable: orch.review.sandbox is false"
    assert said == {"plants": ("unreviewed", f"tampered: {hook}"), "moves": ("pass", "")}
    told = [event for event in project.events() if event["event"] == "checkout.changed"]
    assert [event["author"] for event in told] == ["unknown"]
    assert told[0]["paths"] == [str(project.path / ".git/refs/heads/planted")]


# -- what lies above the tree


def test_a_configuration_above_the_trees_sends_them_elsewhere(project: Project, tmp_path: Path) -> None:
    """Case 64."""
    project.reviewer("fake", "--pass")
    project.only("fake")
    (tmp_path / "tmp/ruff.toml").touch()
    project.fire()
    record = project.ended()
    assert record["verdict"] == "pass"
    assert record["temp_root"].startswith(f"{tmp_path}/run/")


def test_where_there_is_no_elsewhere_only_the_built_in_checks_review(project: Project, tmp_path: Path) -> None:
    project.reviewer("fake", "--touch", tmp_path / "ran", "--pass")
    project.only("fake", "static")
    (tmp_path / "conftest.py").touch()
    project.fire()
    record = project.ended()
    reasons = {each["name"]: each["reason"] for each in record["reviewers"]}
    assert reasons == {"static": "", "fake": f"foreign configuration {tmp_path}/conftest.py"}
    assert record["verdict"] == "unreviewed"
    assert not (tmp_path / "ran").exists()


# -- what is kept, and what is lent


def test_a_tree_is_kept_where_a_person_asks_for_it(project: Project, orch: Orch) -> None:
    project.reviewer("fake", "--litter", "--pass")
    done = orch("review", "--reviewer", "fake", "--disposition", "preserve", "--json")
    assert done.returncode == 0
    kept = project.path / ".git/orch/kept" / project.last
    assert (kept / "fake/a.py").read_text() == "one = 1\ntwo = 2\n"
    assert (kept / "fake/.ruff_cache").is_dir()
    assert project.trees() == []
    assert str(kept) in orch("show", "last", env={"COLUMNS": "1000"}).stdout
    project.set("orch.keepRuns", "0")
    assert orch("sweep").returncode == 0
    assert not kept.exists()


def test_what_the_checkout_lends_is_there_and_read_only(project: Project) -> None:
    need_tier(1)
    project.repo.write(".gitignore", "node_modules\n")
    project.repo.commit("ignored")
    project.repo.write("node_modules/left-pad/index.js", "pad\n")
    project.edit("changed\n")
    project.set("orch.review.provide", "./node_modules", "missing", "../outside")
    test = "test $(cat node_modules/left-pad/index.js) = pad && ! touch node_modules/x 2>/dev/null || exit 9"
    project.command("fake", f"{test}; {fake_reviewer('--pass')}")
    project.only("fake")
    project.fire()
    record = project.ended()
    assert record["verdict"] == "pass", record["reason"]
    assert reviewer_of(record, "fake")["littered"] == []
    assert [job["containment"] for job in record["jobs"]] == [1]
    project.edit("changed again\n")
    project.fire()
    assert project.ended()["materialized"] == "warm"


# -- a reviewer that is a client of ours


@pytest.mark.parametrize("env", ["", "env -i HOME=$HOME PATH=$PATH XDG_STATE_HOME=$XDG_STATE_HOME "])
@pytest.mark.parametrize("sandbox", ["true", "false"])
def test_a_review_fires_no_review(project: Project, env: str, sandbox: str) -> None:
    """Case 26: the reviewer is a client whose own Stop hook is ours, with and without our variables."""
    hook = f"{env}{shlex.join([sys.executable, '-I', '-S', str(Path(__file__).parents[2] / 'git_orch/hook.py')])} stop"
    payload = """printf '{"session_id":"inner","cwd":"%s"}' "$PWD" """
    project.repo.git("config", "--global", "orch.enabled", "true")
    project.set("orch.review.sandbox", sandbox)
    init = "git init -q . && git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x && echo x >new"
    project.command("fake", f"{init}; {payload} | {hook} >&2; ls -a >&2; {fake_reviewer('--pass')}")
    project.only("fake")
    project.fire()
    record = project.ended()
    assert record["verdict"] == "pass", record["reason"]
    said = project.file(project.last, "fake/result.err").read_text()
    assert ".git" in said.split()
    assert ".orch" not in said.split()
    assert len(project.runs) == 1
    assert json.loads(project.file(project.last, "record.json").read_text())["status"] == "done"


def test_a_killed_guardian_takes_its_reviewer_with_it(project: Project, tmp_path: Path) -> None:
    project.reviewer("fake", "--touch", tmp_path / "up", "--daemon", tmp_path / "daemon", "--hang")
    project.only("fake")
    project.fire()
    appears(tmp_path / "daemon")
    appears(tmp_path / "up")
    assert len(project.processes()) >= 2
    os.kill(wait_until(lambda: project.guardian(project.last), 10), signal.SIGKILL)
    record = project.ended()
    assert (outcomes(record)["fake"], record["verdict"]) == ("child-signalled", "unreviewed")
    assert project.processes() == []
