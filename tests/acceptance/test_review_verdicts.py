"""`git orch review` with reviewers that behave and reviewers that do not: verdicts, reasons, exit codes."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.conftest import Orch
from tests.project import Project, outcomes, reviewer_of

BLOCKING = '[{"path": "a.py", "start_line": 2}]'
ADVISORY = '[{"path": "a.py", "start_line": 2, "severity": "advisory"}]'


@pytest.mark.parametrize(
    ("steps", "code", "verdict"),
    [
        (["--findings", ADVISORY], 0, "pass"),
        (["--to-result", "--findings", BLOCKING, "--exit", "1"], 1, "findings"),
        (["--unable", "too large"], 5, "unreviewed"),
    ],
)
def test_the_exit_status_is_the_verdicts(
    project: Project, orch: Orch, steps: list[str], code: int, verdict: str
) -> None:
    project.reviewer("fake", *steps)
    done = orch("review", "--reviewer", "fake", "--json")
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (code, verdict)
    assert project.record(project.last)["verdict"] == verdict
    assert project.trees() == []


def test_the_same_once_more_is_told_from_the_record(project: Project, orch: Orch) -> None:
    project.reviewer("fake", "--pass")
    project.only("fake")
    project.fire()
    project.settle()
    again = json.loads(orch("review", "--json").stdout)
    assert (again["reused"], again["run_id"], len(project.runs)) == (True, project.last, 1)


def test_nothing_that_the_pathspec_matches_is_nothing_to_review(project: Project, orch: Orch) -> None:
    project.reviewer("fake", "--edit", "never-run")
    done = orch("review", "--reviewer", "fake", "--json", "--", "docs")
    assert done.returncode == 6, done.stdout
    assert project.runs == []  # nothing was started for it


NOT_A_PASS = {
    "empty": ([], "no output"),
    "cut": (["--truncated"], "output is cut off"),
    "twice": (["--two-objects"], "more than one JSON value"),
    "prose": (["--prose"], "text around the answer"),
    "unable": (["--unable", "I am unable to read the diff"], "I am unable to read the diff"),
    "login": (["--not-logged-in"], "Not logged in"),
    "limit": (["--rate-limited"], "session limit"),
    "is-error": (["--is-error"], "schema_version"),
    "uncovered": (["--pass-without-coverage"], "not listed by uncovered"),
    "partly": (["--pass-but-the-last"], "not listed by partly"),
    "torn": (["--pass-with-findings", ADVISORY], "no_findings, and yet"),
    "stranger": (["--wrong-nonce"], "nonce"),
    "status": (["--pass", "--exit", "3"], "exit status 3"),
    "one": (["--pass", "--exit", "1"], "exit status 1 without findings"),
    "killed": (["--pass", "--die", "9"], "exit status 137"),
}


def test_what_is_no_pass_never_becomes_one(project: Project, orch: Orch) -> None:
    """Case 21, all of them side by side: each is unreviewed for its own reason, and so is the run."""
    project.edit("other\n", "docs/b.txt")
    for name, (steps, _) in NOT_A_PASS.items():
        project.reviewer(name, *steps)
    project.command("missing", "no-such-program-anywhere")
    project.reviewer("good", "--pass")
    names = [*NOT_A_PASS, "missing", "good"]
    done = orch("review", *(word for name in names for word in ("--reviewer", name)), "--json")
    assert done.returncode == 5, done.stdout
    record = project.record(project.last)
    said = {each["name"]: (each["verdict"], each["reason"]) for each in record["reviewers"]}
    assert said.pop("good") == ("pass", "")
    assert said.pop("missing")[0] == "unreviewed"
    assert {name: verdict for name, (verdict, _) in said.items()} == dict.fromkeys(NOT_A_PASS, "unreviewed")
    wrong = {name: said[name][1] for name, (_, reason) in NOT_A_PASS.items() if reason not in said[name][1]}
    assert wrong == {}
    assert (record["status"], record["verdict"]) == ("done", "unreviewed")


def test_one_that_says_nothing_at_all_is_asked_once_more(project: Project, tmp_path: Path) -> None:
    mark = shlex.quote(str(tmp_path / "asked"))
    project.reviewer("good", "--pass")
    passing = project.repo.git("config", "orch.reviewer.good.command")
    project.command("shy", f"test -e {mark} && exec {passing}; touch {mark}")
    project.only("shy")
    project.fire()
    record = project.ended()
    assert record["verdict"] == "pass"
    assert [event["event"] for event in project.events()].count("reviewer.retried") == 1


def test_one_that_nobody_requires_may_fail(project: Project, orch: Orch) -> None:
    project.reviewer("good", "--pass")
    project.reviewer("extra", "--not-logged-in", required="false")
    done = orch("review", "--reviewer", "good", "--reviewer", "extra", "--reviewer", "good", "--json")
    assert done.returncode == 0
    record = project.record(project.last)
    assert [each["name"] for each in record["reviewers"]] == ["good", "extra"]
    assert reviewer_of(record, "extra")["verdict"] == "unreviewed"


def test_two_work_at_the_same_time_each_in_a_tree_of_its_own(project: Project, tmp_path: Path) -> None:
    project.reviewer("slow", "--touch", tmp_path / "slow", "--wait-for", tmp_path / "quick", "--litter", "--pass")
    project.reviewer("quick", "--wait-for", tmp_path / "slow", "--touch", tmp_path / "quick", "--pass")
    project.only("slow", "quick")
    project.fire()
    record = project.ended()
    assert record["verdict"] == "pass"
    assert len({job["tree_path"] for job in record["jobs"]}) == 2
    assert {job["status"] for job in record["jobs"]} == {"done"}
    assert reviewer_of(record, "quick")["littered"] == []


# -- consent


def test_a_secret_goes_to_nobody_on_the_network(project: Project, tmp_path: Path) -> None:
    project.edit('key = "AKIA' + 'IOSFODNN7EXAMPL2"\n')
    project.reviewer("net", "--touch", tmp_path / "sent", "--pass", network="true")
    project.reviewer("local", "--pass")
    project.only("net", "static", "local")
    project.fire()
    record = project.ended()
    assert not (tmp_path / "sent").exists()
    assert outcomes(record) == {"net": "not-started", "static": "completed", "local": "completed"}
    assert reviewer_of(record, "net")["reason"] == "held back: static found a secret in a.py"


@pytest.mark.parametrize("text", ['key = "AKIA' + 'IOSFODNN7EXAMPL2"\n', "key = 1\n"])
def test_static_looks_first_even_where_nobody_asked_for_it(project: Project, tmp_path: Path, text: str) -> None:
    project.edit(text)
    project.reviewer("net", "--touch", tmp_path / "sent", "--pass", network="true")
    project.only("net")
    project.fire()
    record = project.ended()
    assert (tmp_path / "sent").exists() == ("AKIA" not in text)
    assert [each["name"] for each in record["reviewers"]] == ["net"]


def test_where_nobody_could_look_for_secrets_nothing_is_sent(project: Project, tmp_path: Path) -> None:
    project.set("orch.reviewer.static.timeout", "1ms")
    project.reviewer("net", "--touch", tmp_path / "sent", "--pass", network="true")
    project.only("static", "net")
    project.fire()
    record = project.ended()
    assert reviewer_of(record, "net")["reason"] == "held back: static could not look for secrets"
    assert not (tmp_path / "sent").exists()


# -- the command line and the request


def test_a_command_arrives_as_it_was_written(project: Project, tmp_path: Path) -> None:
    words = ["a b", "it's", '"quoted"', "$(touch never) `touch never` ${HOME}", "two\nlines\t", "ünï \u2013 ✓", "*", ""]
    code = "import json, os, sys; open(sys.argv[1], 'w').write(json.dumps(sys.argv[2:]))"
    project.command("echo", shlex.join([sys.executable, "-c", code, str(tmp_path / "argv"), *words]))
    project.only("echo")
    project.fire()
    project.settle()
    assert json.loads((tmp_path / "argv").read_text()) == words
    assert not (project.path / "never").exists()


OF_OTHERS = {
    "GIT_DIR": "/nowhere/.git",
    "GIT_INDEX_FILE": "/nowhere/index.lock",
    "GIT_WORK_TREE": "/nowhere",
    "GIT_CONFIG_PARAMETERS": "'orch.settle'='1s'",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_SESSION_ID": "s1",
    "CLAUDE_PROJECT_DIR": "/nowhere",
    "CLAUDE_ENV_FILE": "/nowhere/env",
    "GEMINI_CWD": "/nowhere",
    "AI_AGENT": "claude",
    "ORCH_TIMEOUT": "60s",
    "ORCH_RESULT": "/nowhere/result",
}


def test_nothing_of_the_client_or_of_git_reaches_a_reviewer(project: Project, tmp_path: Path) -> None:
    project.reviewer("fake", "--dump-environment", tmp_path / "env", "--pass")
    project.only("fake")
    project.fire(env=OF_OTHERS)
    record = project.ended()
    seen: dict[str, str] = json.loads((tmp_path / "env").read_text())
    ours = {name for name in seen if name.startswith("ORCH")}
    listed = ["DIR", "RUN_ID", "TREE", "BASE", "DIFF", "FILES", "NONCE", "RESULT", "TASK"]
    assert ours == {f"ORCH_{name}" for name in listed}
    strange = [name for name in seen if name.startswith(("GIT_", "CLAUDE", "GEMINI", "AI_"))]
    assert strange == ["GIT_CEILING_DIRECTORIES"]
    assert seen["TMPDIR"].startswith(str(Path(record["jobs"][0]["tree_path"]).parent) + "/")
    assert (seen["ORCH_TREE"], seen["ORCH_BASE"]) == (record["tree_id"], record["base_tree_id"])
    assert [name for name, value in seen.items() if str(project.path) in value] == []
