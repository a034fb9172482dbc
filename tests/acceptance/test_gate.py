"""`git orch gate` and what people and agents decide: by content, whatever the commits look like."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from git_orch import formats
from tests.acceptance.terminal import Terminal
from tests.conftest import Orch
from tests.project import Project
from tests.repo import init_repo
from tests.waiting import wait_until

AGENT = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s1"}
Json = dict[str, Any]
Judge = Callable[..., Json]


@pytest.fixture
def shared(project: Project, tmp_path: Path) -> Project:
    """The project on a branch `topic`, its first commit in a remote."""
    remote = init_repo(tmp_path / "remote.git", bare=True)
    git = project.repo.git
    git("remote", "add", "origin", remote.path)
    git("stash", "--quiet")
    git("push", "--quiet", "--set-upstream", "origin", "main")
    git("switch", "--quiet", "--create", "topic")
    git("stash", "pop", "--quiet")
    project.only("static", "fake")
    project.reviewer("fake", "--pass")
    return project


@pytest.fixture
def gate(orch: Orch) -> Judge:
    """The one answer of `git orch gate`, with the exit status under `code`."""

    def ask(*words: str, **given: Any) -> Json:
        done = orch("gate", "--json", *words, **given)
        answer = json.loads(done.stdout)
        jsonschema.validate(answer, json.loads(formats.schema("gate")))
        assert answer["exit"] == done.returncode
        only: Json = answer["gates"][-1]
        return {**only, "code": done.returncode}

    return ask


def state(answer: Json) -> tuple[str, int]:
    return answer["state"], answer["code"]


def commit(project: Project, message: str = "change") -> None:
    """Everything that is not ignored is committed: `.orch` is not for that."""
    project.repo.git("add", "--all")
    project.repo.git("commit", "--quiet", "--message", message)


def by_hand(project: Project, *words: str) -> tuple[int, str]:
    """What a person at a terminal is told."""
    with Terminal("git", "orch", *words, cwd=project.path) as terminal:
        return terminal.end(), terminal.screen()


# -- the states


def test_the_tree_that_was_reviewed_goes_out(shared: Project, orch: Orch, gate: Judge) -> None:
    assert orch("review").returncode == 0
    commit(shared)
    answer = gate()
    assert (state(answer), answer["very_tree"]) == (("allow", 0), True)
    assert answer["runs"] == [shared.last]
    assert len(shared.runs) == 1  # nothing more was needed


def test_nobody_looked_at_it(shared: Project, orch: Orch, gate: Judge) -> None:
    commit(shared)
    answer = gate()
    assert (state(answer), answer["reason"]) == (("unreviewed", 5), "no run covers it")
    assert answer["missing"] == [{"path": "a.py", "reviewers": ["static", "fake"]}]
    # What it says to type is what makes it pass.
    assert orch(*answer["review"].removeprefix("git orch ").split()).returncode == 0
    assert state(gate()) == ("allow", 0)


def test_a_reviewer_that_everybody_asks_for_did_not_look(shared: Project, orch: Orch, gate: Judge) -> None:
    orch("review", "--reviewer", "static")
    commit(shared)
    answer = gate()
    assert (state(answer), answer["reason"]) == (("unreviewed", 5), "fake did not review it")


def test_a_reviewer_that_need_not_answer_holds_nothing_up(shared: Project, orch: Orch, gate: Judge) -> None:
    shared.set("orch.reviewer.fake.required", "false")
    orch("review", "--reviewer", "static")
    commit(shared)
    assert state(gate()) == ("allow", 0)


def test_another_program_under_the_same_name_is_another_reviewer(shared: Project, orch: Orch, gate: Judge) -> None:
    shared.reviewer("fake", "--not-logged-in")
    config = ("-c", "orch.reviewer.fake.command=true")
    done = subprocess.run(["git", *config, "orch", "review"], cwd=shared.path, capture_output=True, check=False)
    assert done.returncode == 5
    shared.reviewer("fake", "--pass")
    assert orch("review").returncode == 0
    shared.reviewer("fake", "--pass", "--litter")
    commit(shared)
    assert state(gate()) == ("unreviewed", 5)


def test_one_file_is_not_as_reviewed(shared: Project, orch: Orch, gate: Judge) -> None:
    shared.edit("new = 1\n", "b.py")
    orch("review")
    shared.edit("new = 2\n", "b.py")
    commit(shared)
    answer = gate()
    assert (state(answer), answer["reason"]) == (("stale", 5), "1 of 2 changed files is not as reviewed")
    assert answer["missing"] == [{"path": "b.py", "reviewers": ["static", "fake"]}]
    assert gate("--allow", "unreviewed")["code"] == 0
    assert gate("--allow=nothing")["code"] == 5


def test_a_blocking_finding_blocks_until_its_line_is_changed_and_reviewed(
    shared: Project, orch: Orch, gate: Judge
) -> None:
    shared.reviewer("fake", "--findings", '[{"path": "a.py", "start_line": 2}]')
    assert orch("review").returncode == 1
    commit(shared)
    answer = gate()
    assert state(answer) == ("block", 1)
    assert [each["start_line"] for each in answer["findings"]] == [2]
    shared.edit("zero = 0\none = 1\ntwo = 2\n")  # it moves, and nobody has looked again
    commit(shared)
    moved = gate()
    assert (state(moved), moved["findings"][0]["start_line"]) == (("block", 1), 3)
    shared.reviewer("fake", "--pass")
    shared.edit("one = 1\ntwo = 22\n")
    commit(shared)
    assert state(gate()) == ("unreviewed", 5)  # gone, but the next review is missing
    orch("review", "topic")
    assert state(gate()) == ("allow", 0)


def test_a_run_that_lives_is_waited_for(shared: Project, gate: Judge, tmp_path: Path) -> None:
    started, go = tmp_path / "started", tmp_path / "go"
    shared.reviewer("fake", "--touch", started, "--wait-for", go, "--pass")
    shared.fire("session-start")
    shared.edit("one = 1\ntwo = 3\n")
    shared.fire()
    wait_until(started.exists, 20)
    commit(shared)
    # The session began with a dirty line, so its review alone is not the commit's; nothing else would come of waiting.
    assert state(gate("--wait", "0")) != ("allow", 0)
    go.touch()
    shared.settle()


def test_waiting_has_an_end_and_then_an_answer(shared: Project, orch: Orch, gate: Judge, tmp_path: Path) -> None:
    started, go = tmp_path / "started", tmp_path / "go"
    shared.reviewer("fake", "--touch", started, "--wait-for", go, "--pass")
    commit(shared)
    orch("review", "-d", "topic")
    wait_until(started.exists, 20)
    answer = gate("--wait", "0")
    assert (state(answer), answer["runs"]) == (("pending", 5), [shared.last])
    with Terminal("git", "orch", "gate", cwd=shared.path) as terminal:
        terminal.until("its review is running")
        go.touch()
        assert terminal.end() == 0
        assert "allow" in terminal.screen()


def test_exact_wants_the_very_tree(shared: Project, orch: Orch, gate: Judge) -> None:
    shared.edit("a note\n", "note.txt")
    orch("review")
    shared.repo.git("commit", "--quiet", "--message", "c", "a.py")
    shared.set("orch.gate.match", "exact")
    answer = gate()
    assert (state(answer), "very tree" in answer["reason"]) == (("stale", 5), True)
    shared.set("orch.gate.match", "content")
    assert state(gate()) == ("allow", 0)


# -- by content (cases 48, 58, 72)


def test_a_commit_that_leaves_a_note_behind_passes_and_static_has_seen_it(
    shared: Project, orch: Orch, gate: Judge
) -> None:
    shared.edit("a note\n", "note.txt")
    orch("review")
    shared.repo.git("commit", "--quiet", "--message", "c", "a.py")
    answer = gate()
    assert (state(answer), answer["very_tree"]) == (("allow", 0), True)
    checked = shared.record(shared.last)
    assert checked["tree_id"] == shared.repo.git("rev-parse", "HEAD^{tree}")
    assert [each["name"] for each in checked["reviewers"]] == ["static"]
    gate()
    assert len(shared.runs) == 2  # once is enough


def test_a_part_of_a_file_is_another_content(shared: Project, orch: Orch, gate: Judge) -> None:
    shared.edit("zero = 0\none = 1\ntwo = 2\n")
    orch("review")
    shared.edit("one = 1\ntwo = 2\n")  # as `git add -p` would have it
    commit(shared)
    assert state(gate()) == ("stale", 5)


def test_five_commits_are_judged_once_by_their_tip(shared: Project, orch: Orch, gate: Judge) -> None:
    for number in range(5):
        shared.edit(f"one = 1\ntwo = {number}\n")
        commit(shared, f"wip {number}")
    orch("review", "topic")
    assert len(shared.runs) == 1
    assert state(gate()) == ("allow", 0)
    done = orch("gate", "--each", "--json")
    each_of_them = json.loads(done.stdout)["gates"]
    assert (len(each_of_them), done.returncode) == (5, 5)  # each with its own parent: that nobody has looked at
    assert "allow" not in {one["state"] for one in each_of_them}


def test_a_squash_launders_nothing(shared: Project, orch: Orch, gate: Judge) -> None:
    git = shared.repo.git
    shared.edit("one = 1\nevil = 2\n")
    commit(shared, "bad")
    shared.edit("one = 1\nevil = 2\nsmall = 3\n")
    assert orch("review").returncode == 0  # the small edit alone
    commit(shared, "small")
    assert state(gate())[1] == 5
    git("reset", "--quiet", "--soft", "HEAD~2")
    git("commit", "--quiet", "--message", "squashed")
    answer = gate()
    assert answer["code"] == 5
    assert answer["missing"] == [{"path": "a.py", "reviewers": ["static", "fake"]}]


def test_a_reviewed_fault_is_not_laundered_by_a_later_review_and_a_squash(
    shared: Project, orch: Orch, gate: Judge
) -> None:
    shared.reviewer("fake", "--findings", '[{"path": "a.py", "start_line": 2}]')
    orch("review")
    commit(shared, "bad")
    shared.reviewer("fake", "--findings", '[{"path": "a.py", "start_line": 3, "severity": "nit"}]')
    shared.edit("one = 1\ntwo = 2\nthree = 3\n")
    orch("review")
    commit(shared, "small")
    shared.repo.git("reset", "--quiet", "--soft", "HEAD~2")
    shared.repo.git("commit", "--quiet", "--message", "squashed")
    assert gate()["code"] != 0


def test_runs_follow_one_another_content_by_content(shared: Project, orch: Orch, gate: Judge) -> None:
    for number in range(3):
        shared.edit(f"one = 1\ntwo = {number}\n")
        orch("review")
        commit(shared, f"step {number}")
    shared.repo.git("reset", "--quiet", "--soft", "main")
    shared.repo.git("commit", "--quiet", "--message", "squashed")
    assert state(gate()) == ("allow", 0)


def test_removed_files_modes_and_odd_names_are_covered_too(shared: Project, orch: Orch, gate: Judge) -> None:
    (shared.path / "docs/b.txt").unlink()
    shared.edit("text\n", "a b\n\xe9.txt")
    shared.repo.write(os.fsdecode(b"raw\xff.txt"), "text\n")
    (shared.path / "a.py").chmod(0o755)
    orch("review")
    commit(shared)
    assert state(gate()) == ("allow", 0)


# -- what people and agents decide


def test_a_person_dismisses_and_the_gate_minds_no_more(shared: Project, orch: Orch, gate: Judge) -> None:
    shared.reviewer("fake", "--findings", '[{"path": "a.py", "start_line": 2}]')
    orch("review")
    commit(shared)
    finding = gate()["findings"][0]["id"]
    code, screen = by_hand(shared, "dismiss", finding, "--why", "as it should be")
    assert (code, screen.split()[0]) == (0, "dismissed")
    assert state(gate()) == ("allow", 0)
    orch("review", "--fresh", "topic")  # the reviewer says it again: the same finding, still dismissed
    assert state(gate()) == ("allow", 0)


def test_an_agent_can_only_dispute_until_the_next_review_drops_it(
    shared: Project, orch: Orch, gate: Judge, tmp_path: Path
) -> None:
    shared.reviewer("fake", "--findings", '[{"path": "a.py", "start_line": 2}]')
    orch("review")
    commit(shared)
    finding = gate()["findings"][0]["id"]
    done = orch("dismiss", finding, "--why", "tests want it", env=AGENT)
    assert (done.returncode, done.stdout.split()[0]) == (0, "disputed")
    answer = gate()
    assert (state(answer), answer["findings"][0]["disputed"]) == (("block", 1), "tests want it")
    told = tmp_path / "told"
    shared.command("fake", f'cp "$ORCH_DIR/earlier.json" {told}; {pass_command()}')
    orch("review", "--fresh", "topic")
    earlier = json.loads(told.read_text())["findings"]
    assert [(each["id"], each["state"], each["why"]) for each in earlier] == [(finding, "disputed", "tests want it")]
    assert state(gate()) == ("allow", 0)


def test_to_ask_again_and_again_drops_nothing_that_is_not_disputed(shared: Project, orch: Orch, gate: Judge) -> None:
    shared.command("fake", f"test -e {shared.path}/../quiet && {pass_command()} || {finding_command()}")
    orch("review")
    commit(shared)
    assert state(gate()) == ("block", 1)
    (shared.path.parent / "quiet").touch()
    orch("review", "--fresh", "topic")
    assert shared.record(shared.last)["verdict"] == "pass"
    assert state(gate()) == ("block", 1)


def pass_command() -> str:
    from tests.fakes import fake_reviewer

    return fake_reviewer("--pass")


def finding_command() -> str:
    from tests.fakes import fake_reviewer

    return fake_reviewer("--findings", '[{"path": "a.py", "start_line": 2}]')


def test_an_agent_in_a_sandbox_disputes_by_the_inbox(shared: Project, orch: Orch, gate: Judge) -> None:
    shared.reviewer("fake", "--findings", '[{"path": "a.py", "start_line": 2}]')
    orch("review")
    commit(shared)
    finding = gate()["findings"][0]["id"]
    inbox = shared.path / ".orch" / "inbox"
    wish = {"schema_version": "1", "do": "dispute", "finding": finding, "why": "wrong", "by": "person"}
    (inbox / "a.json").write_text(json.dumps(wish))
    (inbox / "b.json").write_text(json.dumps({**wish, "do": "dismiss", "kind": "dismiss"}))
    answer = gate()
    assert (state(answer), answer["findings"][0]["disputed"]) == (("block", 1), "wrong")
    assert [path.name for path in inbox.iterdir()] == ["b.json"]


def test_a_person_lets_a_commit_pass_and_an_agent_does_not(shared: Project, orch: Orch, gate: Judge) -> None:
    commit(shared)
    refused = orch("gate", "--allow", "--why", "hurry", env=AGENT)
    assert (refused.returncode, "agent's session" in refused.stderr) == (2, True)
    no_terminal = subprocess.run(
        ["setsid", "--wait", "git", "orch", "gate", "--allow", "--why", "hurry"],
        cwd=shared.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (no_terminal.returncode, "no terminal" in no_terminal.stderr) == (2, True)
    assert state(gate()) == ("unreviewed", 5)
    assert by_hand(shared, "gate", "--allow")[0] == 2  # without a reason
    assert by_hand(shared, "gate", "topic", "--allow", "--why", "hurry")[0] == 0
    answer = gate()
    assert (state(answer), answer["reason"]) == (("allow", 0), "a person allowed it: hurry")
    shared.edit("one = 1\n")
    commit(shared)
    assert gate()["state"] != "allow" or gate()["changed"] == 0  # that very commit, and no other


def test_a_mute_is_a_persons(shared: Project, orch: Orch) -> None:
    assert orch("mute", env=AGENT).returncode == 2
    assert by_hand(shared, "mute", "--for", "30m", "--repo")[0] == 0
    lines = (shared.path / ".git/orch/decisions.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["mute"]
    assert by_hand(shared, "unmute")[0] == 0


# -- bases


@pytest.mark.usefixtures("shared")
def test_what_the_remote_has_is_nothing_new(gate: Judge) -> None:
    assert state(gate("main")) == ("allow", 0)


def test_a_pull_request_in_ci_is_judged_by_its_merge_commit(shared: Project, orch: Orch, gate: Judge) -> None:
    git = shared.repo.git
    commit(shared)
    orch("review", "topic")
    git("switch", "--quiet", "--detach", "main")
    git("merge", "--quiet", "--no-ff", "--message", "merge", "topic")
    merge = {"GITHUB_REF": "refs/pull/7/merge", "GITHUB_SHA": git("rev-parse", "HEAD")}
    ci = {"CI": "true", "GITHUB_BASE_REF": "main", **merge}
    answer = gate(env=ci)
    assert (state(answer), answer["base"]["commit"]) == (("allow", 0), git("rev-parse", "main"))
    assert orch("gate", "--format", "github", env=ci).stdout.startswith("git-orch: ")


def test_a_pull_request_whose_head_is_a_merge_hides_nothing(shared: Project, gate: Judge) -> None:
    """Not a commit before the merge, which is the first parent's side."""
    git = shared.repo.git
    commit(shared)
    git("switch", "--quiet", "main")
    shared.repo.write("c.txt", "theirs\n")
    git("add", "c.txt")
    git("commit", "--quiet", "--message", "theirs")
    git("push", "--quiet", "origin", "main")
    git("switch", "--quiet", "topic")
    git("merge", "--quiet", "--no-edit", "main")
    answer = gate(env={"CI": "true", "GITHUB_BASE_REF": "main", "GITHUB_REF": "refs/pull/7/merge"})
    assert state(answer) == ("unreviewed", 5)
    assert answer["base"]["commit"] == git("rev-parse", "main")


def test_a_depth_one_clone_is_refused_with_the_way_out(shared: Project, orch: Orch, tmp_path: Path) -> None:
    commit(shared)
    shared.repo.git("push", "--quiet", "origin", "topic")
    clone = tmp_path / "clone"
    url = f"file://{tmp_path}/remote.git"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", "--branch=topic", url, clone], check=True)
    done = orch("gate", cwd=clone, env={"CI": "1", "CI_MERGE_REQUEST_DIFF_BASE_SHA": "1" * 40})
    assert (done.returncode, "fetch" in done.stderr) == (2, True)


@pytest.mark.parametrize("name", ["text", "json", "github", "gitlab", "markdown"])
def test_no_format_looks_clean_where_it_is_not_reviewed(shared: Project, orch: Orch, name: str) -> None:
    commit(shared)
    done = orch("gate", "--format", name)
    assert done.returncode == 5
    if name in ("json", "gitlab"):
        assert json.loads(done.stdout)
    assert "unreviewed" in done.stdout


@pytest.mark.usefixtures("shared")
def test_a_wrong_word_is_a_sentence(orch: Orch) -> None:
    for words in (["--nope"], ["--allow=all"], ["--wait"], ["--format", "xml"], ["nothing-of-that-name"]):
        done = orch("gate", *words)
        assert (done.returncode, done.stderr.startswith("git-orch: ")) == (2, True), words
    assert "Exit status" in orch("gate", "-h").stdout


def test_a_hook_takes_in_what_lies_in_the_inbox(shared: Project, orch: Orch) -> None:
    shared.reviewer("fake", "--findings", '[{"path": "a.py", "start_line": 2}]')
    orch("review")
    finding = shared.read(shared.last, "findings.json")["findings"][0]["id"]
    wish = {"schema_version": "1", "do": "dispute", "finding": finding, "why": "wrong"}
    (shared.path / ".orch/inbox/a.json").write_text(json.dumps(wish))
    shared.fire()
    shared.settle()
    lines = (shared.path / ".git/orch/decisions.jsonl").read_text().splitlines()
    assert [(json.loads(line)["kind"], json.loads(line)["by"]) for line in lines] == [("dispute", "agent")]
