"""`git orch doctor`: hooks that are fired, and each thing that keeps one from working."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import jsonschema
import pytest

from git_orch import formats, key, layout, registry
from git_orch.commands import doctor
from git_orch.install import codex, diagnosis, githooks, installation, launcher
from git_orch.install.clients import CLIENTS, Scope
from git_orch.install.diagnosis import Check
from git_orch.install.installation import Wish
from git_orch.place import temp_root
from tests.repo import Repo
from tests.seal import Seal
from tests.waiting import wait_until


@pytest.fixture
def here(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    repo.write("a.txt", "a\n")
    repo.commit()
    launcher.write(os.environ)
    monkeypatch.chdir(repo.path)
    return repo


def install(repo: Repo, client: str = "claude", scope: Scope = "user") -> None:
    installation.install(Wish(client=client, scope=scope), place(repo), os.environ)


def place(repo: Repo) -> layout.Layout:
    return layout.locate(str(repo.path), os.environ)


def examine(about: str = "") -> list[Check]:
    return [check for check in diagnosis.examine(os.getcwd(), os.environ) if about in ("", check.about)]


def content(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", CLIENTS)
def test_each_clients_hook_is_fired_and_nothing_is_left(here: Repo, seal: Seal, name: str) -> None:
    install(here, name)
    examine()  # the first one makes the user's key, and remembers what the machine allows
    before = content(seal.home), content(here.path), sorted(os.listdir(seal.tmp))
    fine = [check for check in examine(name) if check.state == "fine"]
    assert f"{name} (user settings): " in fine[0].text
    assert " fired in " in fine[0].text
    assert "has not fired in a session yet" in fine[0].text
    assert (content(seal.home), content(here.path), sorted(os.listdir(seal.tmp))) == before


def test_all_is_well_is_0_and_a_dead_hook_is_1(here: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    install(here)
    assert doctor.doctor(dict(os.environ), as_json=False) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("0 broken, ")
    Path(launcher.path(os.environ)).write_text("#!/bin/sh\nexit 0\n")
    assert doctor.doctor(dict(os.environ), as_json=True) == 1
    told = json.loads(capsys.readouterr().out)
    jsonschema.validate(told, json.loads(formats.schema("doctor")))
    (broken,) = (check for check in told["checks"] if check["state"] == "broken")
    assert "came back without beginning a review" in broken["text"]
    assert told["broken"] == 1


def test_a_missing_launcher_is_told(here: Repo) -> None:
    install(here)
    Path(launcher.path(os.environ)).unlink()
    assert [check.state for check in examine("launcher")] == ["broken"]


def test_codex_says_whether_its_hooks_are_trusted(here: Repo, seal: Seal) -> None:
    install(here, "codex")
    assert "not trusted" in examine("codex")[-1].text
    hooks, config = seal.home / ".codex/hooks.json", seal.home / ".codex/config.toml"

    def accept(**more: str) -> None:
        digests = codex.digests(str(hooks), hooks.read_bytes())
        assert [key.rpartition("hooks.json:")[2] for key in digests] == [
            f"{event}:0:0" for event in ("stop", "session_start", "user_prompt_submit")
        ]
        known = {key: {"trusted_hash": f'"{digest}"', **more} for key, digest in digests.items()}
        tables = (
            f'[hooks.state."{key}"]\n' + "".join(f"{name} = {value}\n" for name, value in each.items())
            for key, each in known.items()
        )
        config.write_text("".join(tables))

    accept()
    assert "accepted in /hooks" in examine("codex")[-1].text
    hooks.write_text(hooks.read_text().replace('"timeout": 20', '"timeout": 21', 1))
    assert "changed since they were accepted" in examine("codex")[-1].text
    accept()
    assert "accepted in /hooks" in examine("codex")[-1].text
    accept(enabled="false")
    assert (examine("codex")[-1].state, "switched off" in examine("codex")[-1].text) == ("broken", True)
    config.write_text("not = [toml")
    assert "not trusted" in examine("codex")[-1].text


@pytest.mark.parametrize(
    ("name", "file", "raw"),
    [
        ("claude", ".claude/settings.json", {"disableAllHooks": True}),
        ("qwen", ".qwen/settings.json", {"disableAllHooks": True}),
        ("gemini", ".gemini/settings.json", {"hooksConfig": {"enabled": False}}),
    ],
)
def test_hooks_that_a_setting_switches_off_are_broken(
    here: Repo, seal: Seal, name: str, file: str, raw: dict[str, object]
) -> None:
    path = seal.home / file
    path.parent.mkdir()
    path.write_text(json.dumps(raw))
    install(here, name)
    assert [check.state for check in examine(name)] == ["fine", "broken"]


def test_an_older_line_is_told(here: Repo, seal: Seal) -> None:
    install(here)
    path = seal.home / ".claude/settings.json"
    path.write_text(path.read_text().replace("stop; exit 0'", "stop; true; exit 0'"))
    assert "older form" in examine("claude")[0].text


def test_settings_with_comments_are_looked_at_though_they_cannot_be_edited(here: Repo, seal: Seal) -> None:
    install(here)
    settings = seal.home / ".claude/settings.json"
    settings.write_text("// mine\n" + settings.read_text())
    assert not any("older form" in check.text for check in examine("claude"))
    settings.write_text(settings.read_text().replace("exit 0; ", ""))
    assert any("older form" in check.text for check in examine("claude"))


@pytest.mark.parametrize("hooks", ['{"hooks": []}', '{"hooks": {"Stop": {"a": 1}}}', '{"hooks": {"Stop": [[]]}}'])
def test_no_hooks_of_codexs_are_none_of_ours(hooks: str) -> None:
    assert codex.trust("/hooks.json", hooks.encode(), b"") == "untrusted"


# -- case 30


def test_a_plugin_file_of_another_version_is_told(here: Repo, seal: Seal) -> None:
    install(here, "opencode")
    assert not any("older form" in check.text for check in examine("opencode"))
    plugin = seal.home / ".config/opencode/plugins/git-orch.js"
    plugin.write_text(plugin.read_text() + "// as it once was\n")
    (told,) = (check for check in examine("opencode") if "older form" in check.text)
    assert told.more == ("git orch install opencode",)
    install(here, "opencode")
    assert not any("older form" in check.text for check in examine("opencode"))


@pytest.mark.parametrize("scope", ["project", "local"])
def test_project_settings_are_not_read_below_nor_in_another_worktree(
    here: Repo, tmp_path: Path, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(here, scope=scope)
    here.git("worktree", "add", "-q", tmp_path / "linked")
    (below := here.path / "sub").mkdir()
    (told,) = (check for check in examine("claude") if check.state == "better")
    assert f"the worktree {tmp_path / 'linked'} has no .claude/" in told.text
    monkeypatch.chdir(below)
    texts = [check.text for check in examine("claude") if check.state == "better"]
    assert any("started in this folder it does not read .claude/" in text for text in texts)
    install(here)
    assert all(check.state == "fine" for check in examine("claude"))


# -- git's own hooks


def test_gits_hooks_are_fired_and_the_fault_is_stopped(here: Repo) -> None:
    githooks.install(githooks.EVENTS, place(here), os.environ)
    commit, push = (check for check in examine() if check.about in githooks.EVENTS)
    assert (commit.state, push.state) == ("fine", "fine"), (commit.text, push.text)
    assert "its review found the fault" in commit.text
    assert "stopped a push" in push.text


def test_a_hook_that_git_does_not_run_is_dead_and_the_real_one_is_named(here: Repo) -> None:
    githooks.install(githooks.EVENTS, place(here), os.environ, config_hooks=False)
    here.write(".husky/_/pre-push", "#!/bin/sh\n").chmod(0o755)
    here.git("config", "core.hooksPath", ".husky/_")
    (push,) = examine("pre-push")
    assert push.state == "broken"
    assert (
        f"git runs {here.path}/.husky/_/pre-push, ours is in {here.path}/.git/hooks/pre-push and is dead" in push.text
    )
    assert push.more == ("git orch install git --gate",)
    (commit,) = examine("post-commit")
    assert "git runs nothing" in commit.text


@pytest.mark.parametrize("name", ["lefthook", "pre-commit"])
def test_a_hook_that_its_tool_wrote_anew_is_dead_until_one_installs_again(here: Repo, name: str) -> None:
    hook = here.path / ".git/hooks/post-commit"
    theirs = {"lefthook": "#!/bin/sh\n: lefthook\n", "pre-commit": "#!/bin/sh\n# File generated by pre-commit: x\n"}
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(theirs[name])
    hook.chmod(0o755)
    made = githooks.install(["post-commit"], place(here), os.environ, config_hooks=False)
    assert any("anew" in note for note in made.notes)
    hook.write_text(theirs[name])
    (dead,) = examine("post-commit")
    assert dead.state == "broken"
    assert f"git runs {hook}, which does not start us" in dead.text
    githooks.install(["post-commit"], place(here), os.environ, config_hooks=False)
    assert [check.state for check in examine("post-commit")] == ["fine"]


def test_git_agrees_on_the_folder(here: Repo, tmp_path: Path) -> None:
    def asked(repo: Repo) -> str:
        return os.path.realpath(repo.path / repo.git("rev-parse", "--git-path", "hooks"))

    here.git("config", "extensions.worktreeConfig", "true")
    here.git("worktree", "add", "-q", tmp_path / "linked")
    linked = Repo(tmp_path / "linked")
    for path in ("", ".husky/_", str(tmp_path / "absolute"), "~/hooks"):
        if path:
            here.git("config", "--worktree", "core.hooksPath", path)
        for repo in (here, linked):
            found = githooks.hooks_folder(place(repo), os.environ).folder
            assert os.path.realpath(found) == asked(repo)


# -- settings


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("orch.enbaled", "orch.enabled"),
        ("orch.hookbugdet", "orch.hookBudget"),
        ("orch.reviewer.mine.comand", "orch.reviewer.mine.command"),
    ],
)
def test_an_unknown_setting_is_told_with_the_one_that_was_meant(here: Repo, key: str, meant: str) -> None:
    here.git("config", key, "true")
    (check,) = examine("settings")
    assert check.state == "better"
    assert check.more == (f"did you mean {meant}?",)


def test_a_reviewer_that_is_not_there_and_a_bad_value_are_broken(here: Repo) -> None:
    here.git("config", "orch.reviewers", "cluade")
    (check,) = examine("settings")
    assert check.state == "broken"
    assert "did you mean claude?" in check.text
    here.git("config", "orch.settle", "soon")
    (check,) = examine("settings")
    assert "orch.settle" in check.text


def test_hooks_that_are_off_here_are_told(here: Repo) -> None:
    install(here)
    here.git("config", "orch.enabled", "false")
    assert any("orch.enabled is not true" in check.text for check in examine("settings"))


def test_what_was_left_behind_is_told(here: Repo) -> None:
    pending = here.path / ".orch/pending"
    install(here)
    assert "nothing left behind" in examine("space")[0].text
    registry.ensure(place(here), key.load(os.environ), os.environ)
    (pending / "somebody").write_text("")
    (check,) = examine("space")
    assert "somebody" in check.text
    shutil.rmtree(pending.parent)


def test_what_is_no_registry_is_one_thing_among_the_others(here: Repo) -> None:
    install(here)
    here.write(".orch", "somebody's\n")
    told = examine()
    assert [(check.about, check.state) for check in told if check.state == "broken"] == [("space", "broken")]
    assert any(check.about == "claude" and check.state == "fine" for check in told)
    assert (here.path / ".orch").read_text() == "somebody's\n"


def test_a_temp_root_that_was_there_stays(here: Repo) -> None:
    install(here)
    root = Path(temp_root(os.environ))
    before = root.stat().st_ino
    examine()
    assert root.stat().st_ino == before
    assert os.listdir(root) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_leaves_no_run_and_no_scratch(here: Repo, seal: Seal, number: int) -> None:
    """Right when the run of its session is on record."""
    install(here)
    process = subprocess.Popen(
        ["git-orch", "doctor"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    entries = "orch-install-*/repository/.orch/pending/*.lock"
    wait_until(lambda: list(seal.tmp.glob(entries)), 30, what="its session fired a review")
    process.send_signal(number)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 130
    assert [name for name in os.listdir(seal.tmp) if name.startswith("orch-install-")] == []


def test_outside_a_repository_the_users_own_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher.write(os.environ)
    monkeypatch.chdir(tmp_path)
    assert [check.state for check in examine("repository")] == ["absent"]
    assert doctor.doctor(dict(os.environ), as_json=False) == 0
