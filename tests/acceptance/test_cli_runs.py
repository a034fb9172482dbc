"""The verbs about runs: starting one and going away, status, show, logs, stop, sweep."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import jsonschema
import pytest

from git_orch import formats
from tests.acceptance.terminal import Terminal
from tests.conftest import Orch
from tests.fakes import fake_reviewer
from tests.repo import Repo
from tests.waiting import wait_until

WAIT_S = 20.0
RUN_ID = re.compile(r"\d{8}T\d{9}-[0-9a-f]{8}\n")
# The record's fields that the design names.
FIELDS = """
run_id task_kind access disposition tree_id base_tree_id head commit_oid run_dir status_path result_path client host
session_id machine_id boot_id pid_ns instance temp_root started_at deadline attempt jobs status terminal_reason
finished_at worktree_path worktree_gone supervisor_pid
"""


@pytest.fixture
def changed(repo: Repo) -> Repo:
    """A repository with an edit that `static` finds fault with."""
    repo.write("a.py", "a = 1\n")
    repo.commit()
    repo.write("a.py", "a = (\n")
    return repo


@pytest.fixture
def go(repo: Repo) -> Path:
    """The reviewer `slow` waits for this file."""
    path = repo.path.parent / "go"
    command = fake_reviewer("--wait-for", path, "--pass")
    repo.git("config", "orch.reviewer.slow.command", f"printf 'one\\033[2J\\n' >&2; {command}")
    return path


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


# -- starting one and going away


@pytest.mark.usefixtures("changed")
def test_detach_prints_the_run_id_alone(go: Path, orch: Orch) -> None:
    done = orch("review", "-d", "--reviewer", "slow")
    assert (done.returncode, done.stderr) == (0, "")
    assert RUN_ID.fullmatch(done.stdout)
    go.touch()
    assert orch("wait", done.stdout.strip()).returncode == 0
    again = orch("review", "-d", "--reviewer", "slow")
    assert again.stdout == done.stdout  # the very same was judged already


@pytest.mark.usefixtures("changed")
def test_detach_as_json(go: Path, orch: Orch) -> None:
    done = orch("review", "-d", "--json", "--reviewer", "slow")
    told = json.loads(done.stdout)
    assert list(told) == ["schema_version", "run_id", "tree_id", "status"]
    assert told["status"] in ("queued", "starting", "running")
    go.touch()
    orch("wait", told["run_id"])
    assert json.loads(orch("show", "--json").stdout)["tree_id"] == told["tree_id"]
    assert json.loads(orch("review", "-d", "--json", "--reviewer", "slow").stdout)["status"] == "done"


def test_dry_run_says_what_would_be_sent(changed: Repo, orch: Orch) -> None:
    changed.write("\x1b.py", "b = 1\n")
    changed.write(".env", "x")
    changed.git("config", "orch.reviewer.far.command", "far --away")
    changed.git("config", "orch.reviewer.far.network", "true")
    done = orch("review", "-n", "--reviewer", "static", "--reviewer", "far")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"Would review 2 files: working tree \(tree \w{7}\) against HEAD \(\w{7}\)", lines[0])
    assert re.fullmatch(r"  static: the tree and a patch of \d+ B; stays on this machine: built-in checks", lines[1])
    assert re.fullmatch(r"  far: the tree and a patch of \d+ B; may use the network: far --away", lines[2])
    assert lines[3:] == ["  A  \\x1b.py", "  M  a.py", "  left out: .env: looks like a secret, never copied"]
    told = json.loads(orch("review", "-n", "--json").stdout)
    assert [each["path"] for each in told["files"]] == ["\x1b.py", "a.py"]
    assert told["reviewers"] == [{"name": "static", "command": "", "network": False}]
    assert orch("show").returncode == 2  # nothing was started


def test_fail_on_moves_the_exit_status(changed: Repo, orch: Orch) -> None:
    codes = [orch("review", "--fail-on", word).returncode for word in ("blocking", "nit", "never")]
    assert codes == [1, 1, 0]
    assert orch("review", cwd=changed.path, env={"GIT_CONFIG_PARAMETERS": "'orch.review.failOn=never'"}).returncode == 0
    done = subprocess.run(
        ["git", "-c", "orch.review.failOn=never", "orch", "review"], cwd=changed.path, check=False, capture_output=True
    )
    assert done.returncode == 0


def test_unreviewed_is_no_pass(changed: Repo, orch: Orch) -> None:
    changed.git("config", "orch.reviewer.mute.command", "true")
    done = orch("review", "--reviewer", "mute")
    assert done.returncode == 5
    assert "? unreviewed: mute did not review" in done.stdout
    assert done.stdout.endswith("what its reviewers wrote\n  git orch review        ask again\n")


# -- status


@pytest.mark.usefixtures("changed")
def test_status_as_json_has_the_fields_of_a_record(go: Path, orch: Orch) -> None:
    orch("review")
    run = orch("review", "-d", "--reviewer", "slow").stdout.strip()
    wait_until(lambda: '"jobs":[{' in orch("status", "--json").stdout, WAIT_S)
    told = json.loads(orch("status", "--json").stdout)
    jsonschema.validate(told, json.loads(formats.schema("status")))
    live, ended = told["runs"]
    assert (live["run_id"], live["status"], live["jobs"][0]["reviewer"]) == (run, "running", "slow")
    assert [name for name in FIELDS.split() if name not in live] == []
    assert [name for name in FIELDS.split() if name not in ended] == []
    assert ended["cpu_s"] >= 0
    assert ended["peak_rss_bytes"] > 1 << 20
    go.touch()
    orch("wait", run)


def test_status_in_words(changed: Repo, go: Path, orch: Orch) -> None:
    orch("review")
    run = orch("review", "-d", "--reviewer", "slow").stdout.strip().partition("-")[2][:4]
    changed.git("config", "orch.enabled", "true")
    changed.git("config", "orch.colour", "mauve")
    lines = orch("status", "-v").stdout.splitlines()
    assert re.fullmatch(r"On branch main, working tree \w{7}", lines[0])
    assert re.fullmatch(rf"  a review is running, \d s \({run}\)", lines[1])
    assert re.fullmatch(r"  last reviewed \d s ago: findings: 1 blocking \(static\)", lines[2])
    assert lines[3:5] == ["", "Open findings"]
    assert re.fullmatch(r"  blocking\[[k-z]+\]  a.py:1  Python cannot read it: '\(' was never closed", lines[5])
    table = lines[lines.index("Runs") + 1 :][:3]
    assert re.fullmatch(
        rf"  {run}  \d+ s +you   working tree \w{{7}}  slow +[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] (queued|starting|running)", table[1]
    )
    assert re.fullmatch(r"  \w{4}  \d+ s +you   working tree \w{7}  static +✗ 1 blocking", table[2])
    assert "hooks: on; none has fired yet" in lines
    assert re.fullmatch(r"  \w{4} \d\.\d s CPU, [\d.]+ MiB peak", lines[lines.index("Cost") + 1])
    assert lines[-1] == "  settings that git-orch does not know: orch.colour"
    assert re.fullmatch(r"✗1 [⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]\ds\n", orch("status", "--line").stdout)
    go.touch()
    orch("wait", run)
    assert orch("status", "--line").stdout == "✓\n"


@pytest.mark.usefixtures("changed")
def test_status_of_one_session(orch: Orch) -> None:
    orch("review")
    assert json.loads(orch("status", "--json", "--session", "s1").stdout)["runs"] == []
    assert "no run of session s1" in orch("status", "--session", "s1").stdout


@pytest.mark.usefixtures("changed", "go")
def test_a_run_whose_supervisor_died_does_not_look_alive(orch: Orch) -> None:
    run = orch("review", "-d", "--reviewer", "slow").stdout.strip()
    wait_until(lambda: json.loads(orch("status", "--json").stdout)["runs"][0]["status"] == "running", WAIT_S)
    pid = json.loads(orch("status", "--json").stdout)["runs"][0]["supervisor_pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: "died: git orch sweep" in orch("status").stdout, WAIT_S)
    shown = orch("show", run)
    assert (shown.returncode, shown.stdout) == (5, "")
    assert "its supervisor died" in shown.stderr
    swept = json.loads(orch("sweep", "--json").stdout)
    assert swept["reaped"] == [run]
    assert "unreviewed" in orch("show", run).stdout


# -- show


def test_show_a_run(changed: Repo, orch: Orch) -> None:
    changed.write(".env", "x")
    orch("review")
    lines = orch("show").stdout.splitlines()
    labels = [line[2:13].strip() for line in lines if re.match("  [a-z]", line)]
    found = labels[8]
    assert labels == ["what", "fired by", "time", "reviewers", "covered", "contained", "cost", "files", found]
    assert "  covered    1 of 2 files, 1 skipped (--coverage lists them)" in lines
    assert found.startswith("blocking[")
    assert any(line.startswith("  files      .git/orch/runs/") for line in lines)
    assert "  .env  looks like a secret, never copied" in orch("show", "last", "--coverage").stdout
    run = json.loads(orch("show", "--json").stdout)["run_id"]
    assert orch("show", run).stdout == orch("show", run.partition("-")[2][:5]).stdout == "\n".join(lines) + "\n"


@pytest.mark.usefixtures("changed")
def test_show_a_finding(orch: Orch) -> None:
    found = json.loads(orch("review", "--json").stdout)["findings"][0]
    text = orch("show", found["id"]).stdout
    assert text.startswith(f"blocking[{found['id']}]: Python cannot read it: '(' was never closed\n  --> a.py:1:5\n")
    told = json.loads(orch("show", found["id"], "--json").stdout)
    assert told["finding"] == found
    jsonschema.validate(told["finding"], json.loads(formats.schema("finding")))
    longer = found["id"] + "zyxwvutsrqponmlk"["0123456789abcdef".index(found["fingerprint"][4])]
    assert orch("show", longer).stdout == text
    assert orch("show", found["id"], "--format", "sarif").returncode == 2


@pytest.mark.usefixtures("changed")
def test_show_a_run_that_goes_on(go: Path, orch: Orch) -> None:
    orch("review", "-d", "--reviewer", "slow")
    shown = orch("show", "last", "--json")
    assert shown.returncode == 5
    assert json.loads(shown.stdout)["error"]["code"] == "still-running"
    go.touch()
    orch("wait")


# -- wait


def test_wait_for_a_revision(changed: Repo, orch: Orch) -> None:
    changed.commit()
    orch("review", "HEAD")
    assert orch("wait", "HEAD").returncode == 1
    assert orch("wait", "main", "--format", "concise").stdout.startswith("a.py:1:5: blocking: ")
    never = orch("wait", "HEAD~1")
    assert never.returncode == 2
    assert never.stderr == "git-orch: no run has reviewed `HEAD~1`\n          git orch review HEAD~1\n"


# -- logs


def test_logs_follow_a_run_to_its_end(changed: Repo, go: Path, orch: Orch) -> None:
    run = orch("review", "-d", "--reviewer", "slow").stdout.strip()
    with Terminal("git", "orch", "logs", "-f", run, cwd=changed.path) as terminal:
        assert terminal.until("slow: one\\x1b[2J") == "slow: one\\x1b[2J\n"
        go.touch()
        assert terminal.end() == 0
        assert '"status": "no_findings"' in terminal.screen().replace("\n", "")
    raw = orch("logs", run, "--raw", "--reviewer", "slow")
    assert raw.stdout.endswith("slow: one\x1b[2J\n")
    wrong = orch("logs", run, "--reviewer", "slwo")
    assert wrong.returncode == 2
    assert "has no reviewer `slwo`; perhaps you meant slow: slow" in wrong.stderr


@pytest.mark.usefixtures("changed")
def test_logs_without_a_word(orch: Orch) -> None:
    orch("review")
    done = orch("logs")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("its reviewers wrote nothing\n")


def test_logs_end_with_their_reader(changed: Repo, go: Path, orch: Orch) -> None:
    run = orch("review", "-d", "--reviewer", "slow").stdout.strip()
    script = f"git orch logs -f {run} | head -1"
    head = subprocess.run(
        ["sh", "-c", script], cwd=changed.path, capture_output=True, text=True, timeout=WAIT_S, check=True
    )
    assert head.stdout == "slow: one\\x1b[2J\n"
    assert head.stderr == ""
    go.touch()
    orch("wait", run)


# -- stop, sweep


@pytest.mark.usefixtures("go")
def test_stop_twice_is_as_good_as_once(changed: Repo, orch: Orch) -> None:
    run = orch("review", "-d", "--reviewer", "slow").stdout.strip()
    short = run.partition("-")[2][:4]
    first, second = orch("stop", run), orch("stop", short)
    assert (first.returncode, first.stdout) == (0, f"stopped {short}\n")
    assert (second.returncode, second.stdout) == (0, f"run {short} has ended already\n")
    assert orch("wait", run).returncode == 130
    assert list((changed.path / ".orch/pending").iterdir()) == []


@pytest.mark.usefixtures("changed", "go")
def test_stop_all(orch: Orch) -> None:
    started = [orch("review", "-d", "--fresh", "--reviewer", "slow").stdout.strip() for _ in range(2)]
    done = orch("stop", "--all")
    assert sorted(lines_of(done.stdout)) == sorted(f"stopped {run.partition('-')[2][:4]}" for run in started)
    assert orch("stop", "--all").stdout == "nothing is running\n"


@pytest.mark.usefixtures("changed", "go")
def test_sweep_leaves_what_lives(orch: Orch) -> None:
    run = orch("review", "-d", "--reviewer", "slow").stdout.strip()
    short = run.partition("-")[2][:4]
    assert orch("sweep").stdout == f"running {short}, left alone\n"
    told = json.loads(orch("sweep", "--format", "json").stdout)
    assert told == {"schema_version": "1", "reaped": [], "left": [run], "refused": [], "trees": [], "retired": []}
    assert orch("sweep", "--force", short).stdout == f"reaped {short}\n"
    assert orch("sweep").stdout == "nothing was left behind\n"


# -- the terminal


@pytest.mark.parametrize("columns", [40, 80])
def test_nothing_is_wider_than_the_terminal(columns: int, changed: Repo) -> None:
    changed.write("a/very/long/path/that/does/not/fit/into/forty/columns.py", "b = (\n")
    for words in (["review"], ["status"], ["review", "--fresh"], []):
        with Terminal("git", "orch", *words, cwd=changed.path, columns=columns) as terminal:
            terminal.end()
            rows = [row for row in terminal.raw.replace("\x1b[0m", "").splitlines() if "-->" not in row]
            bare = [re.sub(r"\x1b\[\d+[mAJ]?", "", row) for row in rows]
            assert [row for row in bare if len(row) > columns and "git orch show" not in row] == []


def test_colour_only_where_it_is_wanted(changed: Repo, orch: Orch) -> None:
    def coloured(*words: str, **env: str) -> bool:
        with Terminal("git", "orch", *words, cwd=changed.path, env=env) as terminal:
            terminal.end()
            return "\x1b[3" in terminal.raw

    assert coloured("review")
    assert not coloured("review", NO_COLOR="1")
    assert not coloured("review", TERM="dumb")
    assert "\x1b" not in orch("review").stdout
    assert "\x1b[31mblocking\x1b[0m" in orch("review", env={"CLICOLOR_FORCE": "1"}).stdout
