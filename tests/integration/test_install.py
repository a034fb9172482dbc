"""Hooks are put into real settings files and a real repository, and taken out again to the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from git_orch import config, layout
from git_orch.errors import EnvironmentProblem, GitError, UsageError
from git_orch.install import (
    changes,
    claude,
    clients,
    files,
    gitconfig,
    hooksfile,
    installation,
    launcher,
    receipts,
    removal,
)
from git_orch.install.changes import Plan
from git_orch.install.clients import Scope
from git_orch.install.edit import BOM
from git_orch.install.installation import Wish
from git_orch.install.removal import Leaving
from tests.conftest import MakeRepo
from tests.repo import Repo
from tests.seal import Seal


def put_in(raw: bytes) -> bytes:
    return hooksfile.put_in(raw, claude.CLIENT)


def has_ours(raw: bytes) -> bool:
    return hooksfile.has_ours(raw, claude.CLIENT)


OTHER = b'{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}'
OLD = OTHER.replace(b"true", b"sh -c '~/.local/state/git-orch/hook stop'")
SETTINGS = {
    "no file": None,
    "empty file": b"",
    "white space": b" \n\n",
    "only a BOM": BOM,
    "empty object": b"{}",
    "empty object, spaced": b"{ }\n",
    "empty object on lines": b"{\n}\n",
    "empty hooks": b'{\n  "hooks": {\n  }\n}\n',
    "empty list": b'{\n  "hooks": { "Stop": [ ] }\n}\n',
    "two spaces": b'{\n  "model": "opus",\n  "hooks": {}\n}\n',
    "four spaces": b'{\n    "model": "opus"\n}\n',
    "tabs": b'{\n\t"model": "opus"\n}\n',
    "minified": b'{"model":"opus","hooks":{"Stop":[]}}',
    "CRLF": b'{\r\n  "model": "opus"\r\n}\r\n',
    "BOM": BOM + b'{\n  "model": "opus"\n}\n',
    "no newline at the end": b'{\n  "model": "opus"\n}',
    "ragged": b'{"z": 1,\n\n      "a" :  [1,2 , 3]   , "hooks"\t:{"Stop":[ {"hooks":[]} ]}}\n\n\n',
    "another Stop hook": OTHER,
}
Act = Callable[[], object]


def place(repo: Repo) -> layout.Layout:
    return layout.locate(str(repo.path), os.environ)


def install(repo: Repo, *, scope: Scope = "user", reviewers: tuple[str, ...] = ()) -> Plan:
    return installation.install(Wish(scope=scope, reviewers=reviewers), place(repo), os.environ)


def uninstall(repo: Repo | None, *, scope: Scope | None = None, everywhere: bool = False) -> Plan:
    here = place(repo) if repo else None
    return removal.uninstall(Leaving(scope=scope, everywhere=everywhere), here, os.environ)


def content(root: Path) -> dict[str, bytes | None]:
    """Every file and folder below, but for the key and the state folder itself, which stay."""
    kept = (".local", ".local/state", ".local/state/git-orch", ".local/state/git-orch/key")
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name not in kept:
            found[name] = path.read_bytes() if path.is_file() else None
    return found


def config_of(repo: Repo) -> Path:
    return repo.path / ".git/config"


@pytest.fixture
def settings(seal: Seal) -> Path:
    return seal.home / ".claude/settings.json"


def put(path: Path, raw: bytes | None) -> None:
    if raw is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)


# -- byte for byte


@pytest.mark.parametrize("scope", clients.SCOPES)
@pytest.mark.parametrize("name", SETTINGS)
def test_uninstall_gives_back_every_byte(repo: Repo, seal: Seal, name: str, scope: Scope) -> None:
    path = Path(claude.CLIENT.settings_path(scope, os.environ, str(repo.path)))
    put(path, SETTINGS[name])
    before = content(seal.home), content(repo.path)

    install(repo, scope=scope)
    assert has_ours(path.read_bytes())
    assert repo.git("config", "--local", "orch.enabled") == "true"
    uninstall(repo)

    assert (content(seal.home), content(repo.path)) == before


@pytest.mark.parametrize("name", SETTINGS)
def test_installing_twice_is_installing_once(repo: Repo, seal: Seal, settings: Path, name: str) -> None:
    put(settings, SETTINGS[name])
    before = content(seal.home), content(repo.path)
    install(repo, reviewers=("static",))
    once = content(seal.home), content(repo.path)

    assert install(repo, reviewers=("static",)).changes == ()
    assert (content(seal.home), content(repo.path)) == once

    uninstall(repo)
    assert (content(seal.home), content(repo.path)) == before


def test_an_older_line_is_rewritten_and_then_taken_out(repo: Repo, settings: Path) -> None:
    put(settings, OLD)
    install(repo)
    after = json.loads(settings.read_bytes())
    assert after["hooks"]["Stop"] == [{"hooks": [{"type": "command", "command": launcher.line("stop")}]}]
    uninstall(repo)
    assert json.loads(settings.read_bytes()) == {}


def test_an_upgrade_keeps_the_bytes_from_before_the_first_install(
    repo: Repo, seal: Seal, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(settings, SETTINGS["ragged"])
    before = content(seal.home), content(repo.path)
    with monkeypatch.context() as older:
        older.setattr(launcher, "line", lambda event, _client: f"~/.local/state/git-orch/hook {event}")
        install(repo)
        assert b"~/.local" in settings.read_bytes()

    install(repo)

    assert b"~/.local" not in settings.read_bytes()
    uninstall(repo)
    assert (content(seal.home), content(repo.path)) == before


def test_what_a_person_edits_meanwhile_stays(repo: Repo, settings: Path) -> None:
    put(settings, SETTINGS["two spaces"])
    config = config_of(repo).read_bytes()
    install(repo, reviewers=("static",))
    settings.write_bytes(settings.read_bytes().replace(b'"opus"', b'"haiku"'))
    repo.git("config", "user.nickname", "me")

    uninstall(repo)

    assert settings.read_bytes() == b'{\n  "model": "haiku",\n  "hooks": {}\n}\n'
    assert config_of(repo).read_bytes() == config + b"[user]\n\tnickname = me\n"


def test_an_edit_that_is_taken_back_leaves_no_trace(repo: Repo, seal: Seal, settings: Path) -> None:
    put(settings, SETTINGS["empty object, spaced"])
    before = content(seal.home)
    install(repo)
    ours = settings.read_bytes()
    settings.write_bytes(b"{}")
    settings.write_bytes(ours)
    uninstall(repo)
    assert content(seal.home) == before


def test_a_client_that_writes_its_file_anew_loses_nothing_but_our_hooks(repo: Repo, settings: Path) -> None:
    install(repo)
    value = {"model": "opus", **json.loads(settings.read_bytes())}
    settings.write_text(json.dumps(value, indent=2) + "\n")
    uninstall(repo)
    assert settings.read_text() == '{\n  "model": "opus"\n}\n'


def test_a_file_of_ours_that_was_rewritten_but_holds_nothing_else_goes(repo: Repo, settings: Path) -> None:
    install(repo)
    settings.write_text(json.dumps(json.loads(settings.read_bytes()), indent=4))
    uninstall(repo)
    assert not settings.parent.exists()


def test_an_install_after_an_edit_remembers_the_edited_file(repo: Repo, settings: Path) -> None:
    put(settings, SETTINGS["four spaces"])
    install(repo)
    settings.write_bytes(b'{\n    "model": "haiku"\n}\n')
    install(repo)
    uninstall(repo)
    assert settings.read_bytes() == b'{\n    "model": "haiku"\n}\n'


def test_without_receipts_our_lines_are_still_known(repo: Repo, settings: Path) -> None:
    put(settings, SETTINGS["another Stop hook"])
    config = config_of(repo).read_bytes()
    install(repo)
    os.unlink(os.path.join(os.path.dirname(launcher.path(os.environ)), "installed.json"))

    uninstall(repo)

    assert settings.read_bytes() == OTHER
    assert config_of(repo).read_bytes() == config


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"files": [{}]}', b'{"files": [1]}', b'{"files": 3}'])
def test_a_broken_receipt_file_counts_as_none(repo: Repo, settings: Path, raw: bytes) -> None:
    install(repo)
    Path(launcher.path(os.environ)).with_name("installed.json").write_bytes(raw)
    uninstall(repo)
    assert not has_ours(files.read(str(settings)) or b"")
    assert "orch" not in config_of(repo).read_text()


# -- git's configuration


def test_values_from_before_come_back(repo: Repo) -> None:
    repo.git("config", "orch.enabled", "false")
    repo.git("config", "orch.reviewers", "one")
    repo.git("config", "--add", "orch.reviewers", "two")
    repo.git("config", "orch.reviewer.mine.command", "true")
    before = config_of(repo).read_bytes()

    install(repo, reviewers=("static", "mine"))
    assert repo.git("config", "--get-all", "orch.reviewers") == "static mine"
    repo.git("config", "user.nickname", "me")
    uninstall(repo)

    assert repo.git("config", "orch.enabled") == "false"
    assert repo.git("config", "--get-all", "orch.reviewers").split() == ["one", "two"]
    repo.git("config", "--unset", "user.nickname")
    assert sorted(config_of(repo).read_bytes().split()) == sorted(before.split())


def test_a_value_that_a_person_set_since_stays(repo: Repo) -> None:
    install(repo, reviewers=("static",))
    repo.git("config", "orch.reviewer.mine.command", "true")
    repo.git("config", "orch.reviewers", "static mine")
    uninstall(repo)
    assert repo.git("config", "orch.reviewers") == "static mine"
    assert "enabled" not in config_of(repo).read_text()


def test_comments_order_and_odd_bytes_of_the_configuration_stay(repo: Repo) -> None:
    raw = b'# mine\r\n[core]\n\tbare=false ; why\n\n[Orch "reviewer.x"]\n  command = a\n[user]\nname = \xff\n'
    config_of(repo).write_bytes(raw)
    install(repo, reviewers=("static",))
    assert config_of(repo).read_bytes().startswith(raw)
    uninstall(repo)
    assert config_of(repo).read_bytes() == raw


def test_yes_is_true_and_nothing_is_written(repo: Repo) -> None:
    repo.git("config", "orch.enabled", "yes")
    before = config_of(repo).read_bytes()
    install(repo)
    assert config_of(repo).read_bytes() == before
    uninstall(repo)
    assert "enabled" not in config_of(repo).read_text()  # whoever leaves, leaves: nothing acts here any more


def test_a_configuration_that_git_has_locked_is_left_alone_and_so_is_the_rest(repo: Repo, seal: Seal) -> None:
    (repo.path / ".git/config.lock").write_bytes(b"")
    before = content(seal.home), content(repo.path)
    with pytest.raises(EnvironmentProblem, match="locked by another git"):
        install(repo)
    launcher.remove(os.environ)
    assert (content(seal.home), content(repo.path)) == before


def test_a_linked_worktree_and_its_main_one_are_one_repository(repo: Repo, tmp_path: Path) -> None:
    repo.commit()
    repo.git("worktree", "add", "-q", tmp_path / "linked")
    before = config_of(repo).read_bytes()
    install(Repo(tmp_path / "linked"), scope="local")
    assert repo.git("config", "orch.enabled") == "true"

    uninstall(repo)

    assert config_of(repo).read_bytes() == before
    assert not (tmp_path / "linked/.claude").exists()


def test_a_bare_repository_has_user_settings_only(make_repo: MakeRepo, settings: Path) -> None:
    bare = make_repo("bare.git", bare=True)
    with pytest.raises(EnvironmentProblem, match="bare repository"):
        install(bare, scope="project")
    install(bare)
    assert has_ours(settings.read_bytes())
    assert bare.git("config", "orch.enabled") == "true"
    uninstall(bare)
    assert not settings.exists()


def test_a_setting_elsewhere_that_overrules_ours_is_told(repo: Repo) -> None:
    repo.git("config", "extensions.worktreeConfig", "true")
    repo.git("config", "--worktree", "orch.enabled", "false")
    repo.git("config", "--global", "orch.reviewers", "everywhere")
    wish = Wish(reviewers=("static",))
    installation.install(wish, place(repo), os.environ)
    enabled, reviewers = installation.overruled(wish, place(repo), os.environ)
    assert "orch.enabled is false" in enabled
    assert "everywhere" in reviewers


def test_an_unknown_reviewer_is_refused_before_anything_is_written(repo: Repo, seal: Seal) -> None:
    before = content(seal.home), content(repo.path)
    with pytest.raises(UsageError, match="no reviewer `statik`"):
        install(repo, reviewers=("static", "statik"))
    assert (content(seal.home), content(repo.path)) == before


# -- files that are not as one expects


def test_a_link_stays_a_link_and_its_target_is_edited(repo: Repo, seal: Seal, settings: Path) -> None:
    target = seal.root / "dotfiles/claude.json"
    put(target, OTHER)
    target.chmod(0o640)
    settings.parent.mkdir()
    settings.symlink_to(target)

    install(repo)

    assert settings.is_symlink()
    assert has_ours(target.read_bytes())
    assert target.stat().st_mode & 0o777 == 0o640
    uninstall(repo)
    assert settings.is_symlink()
    assert target.read_bytes() == OTHER


@pytest.mark.parametrize(
    ("raw", "reason"),
    [(b'{"a": 1,}', "line 1"), (b'{\n// why\n"a": 1}', "comments"), (b"\xff", "UTF-8"), (b'{"hooks": 1}', "no object")],
)
def test_a_file_that_cannot_be_edited_is_named_and_nothing_is_changed(
    repo: Repo, seal: Seal, settings: Path, raw: bytes, reason: str
) -> None:
    put(settings, raw)
    before = content(seal.home), content(repo.path)
    with pytest.raises(EnvironmentProblem, match=reason) as caught:
        install(repo)
    launcher.remove(os.environ)
    assert str(settings) in caught.value.message
    assert (content(seal.home), content(repo.path)) == before


def test_a_broken_file_without_us_does_not_keep_uninstall_from_its_work(repo: Repo, settings: Path) -> None:
    install(repo)
    settings.write_bytes(b"{ broken")
    uninstall(repo)
    assert settings.read_bytes() == b"{ broken"
    assert "orch" not in config_of(repo).read_text()


def test_a_broken_file_with_us_is_named_by_uninstall(repo: Repo, settings: Path) -> None:
    install(repo)
    ours = settings.read_bytes()
    settings.write_bytes(ours + b"}")
    with pytest.raises(EnvironmentProblem, match="cannot be edited"):
        uninstall(repo)
    assert settings.read_bytes() == ours + b"}"
    assert repo.git("config", "orch.enabled") == "true"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_plain_file_is_refused(repo: Repo, settings: Path, make: Callable[[Path], None]) -> None:
    settings.parent.mkdir()
    make(settings)
    with pytest.raises(EnvironmentProblem, match=r"no plain file|Is a directory"):
        install(repo)
    assert "orch" not in config_of(repo).read_text()


def test_a_file_where_the_folder_should_be_is_refused(repo: Repo, seal: Seal) -> None:
    (seal.home / ".claude").write_bytes(b"")
    with pytest.raises(EnvironmentProblem, match="is no folder"):
        install(repo)


def test_without_a_home_there_is_a_sentence(repo: Repo) -> None:
    bare = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_STATE_HOME")}
    with pytest.raises(EnvironmentProblem, match="HOME is not set"):
        installation.install(Wish(), place(repo), bare)
    with pytest.raises(EnvironmentProblem, match="HOME is not set"):
        removal.uninstall(Leaving(), place(repo), bare)


# root may write anywhere by CAP_DAC_OVERRIDE (1); without it in the bounding set (PR_CAPBSET_DROP, 24) exec drops it.
AS_ORDINARY = """
import ctypes, os, sys
if os.geteuid() == 0 and ctypes.CDLL(None, use_errno=True).prctl(24, 1, 0, 0, 0) != 0:
    sys.exit("no CAP_SETPCAP")
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""
INSTALL = """
import os, sys
from git_orch import layout
from git_orch.errors import OrchError
from git_orch.install import installation
from git_orch.install.installation import Wish
try:
    installation.install(Wish(), layout.locate(".", os.environ), os.environ)
except OrchError as error:
    print(error.message)
    sys.exit(error.exit_code)
"""


def install_apart(repo: Repo, *before: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", *before, INSTALL],
        cwd=repo.path,
        env={**os.environ, "PYTHONPATH": str(Path(launcher.__file__).parents[2])},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("mode", ["folder", "file"])
def test_what_is_read_only_is_left_alone_with_a_sentence(repo: Repo, seal: Seal, settings: Path, mode: str) -> None:
    put(settings, OTHER)
    locked = settings.parent if mode == "folder" else settings
    locked.chmod(0o555 if mode == "folder" else 0o444)
    before = content(seal.home), content(repo.path)

    with install_apart(repo, AS_ORDINARY) as process:
        said, _ = process.communicate(timeout=60)

    locked.chmod(0o755 if mode == "folder" else 0o644)
    launcher.remove(os.environ)
    assert process.returncode == 4
    assert f"{locked} is read-only" in said
    assert len(said.splitlines()) == 1
    assert (content(seal.home), content(repo.path)) == before


def test_many_at_once_leave_one_installation(repo: Repo, seal: Seal, settings: Path) -> None:
    put(settings, SETTINGS["ragged"])
    before = content(seal.home), content(repo.path)

    processes = [install_apart(repo) for _ in range(4)]
    said = [process.communicate(timeout=100)[0] for process in processes]

    assert [process.returncode for process in processes] == [0, 0, 0, 0], said
    assert json.loads(settings.read_bytes())["hooks"]["SessionStart"] == claude.CLIENT.entries()["SessionStart"]
    assert repo.git("config", "--get-all", "orch.enabled") == "true"
    uninstall(repo)
    assert (content(seal.home), content(repo.path)) == before


def test_a_file_that_changes_under_our_hands_is_not_overwritten(
    repo: Repo, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(settings, OTHER)

    def later(plan: Plan, env: Mapping[str, str]) -> None:
        settings.write_bytes(b'{"model": "haiku"}')
        changes.carry_out(plan, env)

    monkeypatch.setattr(installation, "carry_out", later)
    with pytest.raises(EnvironmentProblem, match="changed meanwhile"):
        install(repo)
    assert settings.read_bytes() == b'{"model": "haiku"}'
    assert "orch" not in config_of(repo).read_text()
    assert receipts.load(os.environ) == {}


# -- several repositories


def test_the_users_settings_stay_while_another_repository_needs_them(
    make_repo: MakeRepo, seal: Seal, settings: Path
) -> None:
    one, two = make_repo("one"), make_repo("two")
    before = content(seal.home), content(one.path), content(two.path)
    install(one)
    install(two)

    plan = uninstall(one)

    assert [change.kind for change in plan.changes] == ["git-config"]
    assert any(str(two.path) in note and "--all" in note for note in plan.notes)
    assert has_ours(settings.read_bytes())
    assert os.path.exists(launcher.path(os.environ))
    uninstall(two)
    assert (content(seal.home), content(one.path), content(two.path)) == before


def test_all_takes_everything_back_from_anywhere(make_repo: MakeRepo, seal: Seal) -> None:
    repos = [make_repo("one"), make_repo("two"), make_repo("three")]
    before = content(seal.home), [content(repo.path) for repo in repos]
    install(repos[0])
    install(repos[1], scope="project")
    install(repos[2], scope="local")
    uninstall(None, everywhere=True)
    assert (content(seal.home), [content(repo.path) for repo in repos]) == before


def test_a_repository_that_is_gone_keeps_nobody(make_repo: MakeRepo, seal: Seal) -> None:
    one, two = make_repo("one"), make_repo("two")
    before = content(seal.home)
    install(one)
    install(two)
    two.path.rename(seal.root / "elsewhere")
    uninstall(one)
    assert content(seal.home) == before


def test_outside_a_repository_the_users_settings_are_meant(repo: Repo, settings: Path) -> None:
    install(repo)
    assert uninstall(None).changes == ()
    repo.git("config", "orch.enabled", "false")
    uninstall(None)
    assert not settings.exists()


def test_one_scope_can_be_left_and_the_other_kept(repo: Repo, settings: Path) -> None:
    install(repo)
    install(repo, scope="local")
    uninstall(repo, scope="user")
    assert not settings.exists()
    assert (repo.path / ".claude/settings.local.json").exists()
    assert repo.git("config", "orch.enabled") == "true"
    uninstall(repo, scope="local")
    assert "orch" not in config_of(repo).read_text()
    assert not (repo.path / ".claude").exists()


def test_what_a_colleague_committed_is_left_to_the_colleague(repo: Repo) -> None:
    path = repo.write(".claude/settings.json", put_in(b"{}\n"))
    repo.commit()
    install(repo)

    plan = uninstall(repo)

    assert has_ours(path.read_bytes())
    assert any("is committed" in note for note in plan.notes)
    uninstall(repo, scope="project")
    assert path.read_bytes() == b"{}\n"


def test_the_plugin_keeps_the_launcher(repo: Repo, settings: Path) -> None:
    put(settings, b'{"enabledPlugins": {"orch@git-orch": true}}')
    install(repo)
    assert uninstall(repo).launcher == ""
    assert os.path.exists(launcher.path(os.environ))


def test_where_nothing_is_installed_nothing_is_done(repo: Repo, seal: Seal) -> None:
    before = content(seal.home), content(repo.path)
    assert uninstall(repo).changes == ()
    assert uninstall(repo, scope="local").changes == ()
    assert uninstall(None).changes == ()
    assert (content(seal.home), content(repo.path)) == before


# -- what is said


@pytest.mark.parametrize("scope", ["project", "local"])
def test_that_a_project_file_is_read_from_the_top_only_is_told(repo: Repo, scope: Scope) -> None:
    notes = " ".join(installation.plan(Wish(scope=scope), place(repo), os.environ).notes)
    assert str(repo.path) in notes
    assert "folder below" in notes
    assert ("commit it yourself" in notes) == (scope == "project")
    assert ("not ignored" in notes) == (scope == "local")


def test_an_ignored_local_file_needs_no_words(repo: Repo) -> None:
    repo.write(".gitignore", ".claude/*.local.json\n")
    notes = " ".join(installation.plan(Wish(scope="local"), place(repo), os.environ).notes)
    assert "is not ignored" not in notes


def test_a_state_folder_of_ones_own_is_told(repo: Repo, seal: Seal) -> None:
    assert installation.plan(Wish(), place(repo), os.environ).notes == ()
    elsewhere = {**os.environ, "XDG_STATE_HOME": str(seal.root / "state")}
    (note,) = installation.plan(Wish(), place(repo), elsewhere).notes
    assert "XDG_STATE_HOME is set" in note
    (note,) = installation.plan(Wish(), place(repo), {**os.environ, "XDG_STATE_HOME": "relative"}).notes
    assert "no absolute path" in note


def test_the_records_of_reviews_are_not_taken_away_but_named(repo: Repo) -> None:
    install(repo)
    record = repo.write(".git/orch/runs/x/record.json", "{}")
    plan = uninstall(repo)
    assert record.exists()
    assert any(str(repo.path / ".git/orch") in note for note in plan.notes)


def test_planning_writes_nothing(repo: Repo, seal: Seal) -> None:
    before = content(seal.home), content(repo.path)
    plan = installation.plan(Wish(reviewers=("static",)), place(repo), os.environ)
    assert [change.kind for change in plan.changes] == ["claude", "git-config"]
    assert (content(seal.home), content(repo.path)) == before


def test_only_commands_of_ones_own_are_offered(repo: Repo) -> None:
    repo.git("config", "orch.reviewer.lint.command", "make lint")
    repo.git("config", "orch.reviewer.remote.command", "ask")
    repo.git("config", "orch.reviewer.remote.network", "true")
    repo.git("config", "orch.reviewer.static.timeout", "5")
    settings = config.read(place(repo).git(os.environ), os.environ)
    lint, remote = installation.offers(settings)
    assert (lint.name, lint.meaning) == ("lint", "your command: make lint")
    assert "uses the network" in remote.meaning


def test_git_config_refuses_what_it_cannot_edit(repo: Repo) -> None:
    git = place(repo).git(os.environ)
    with pytest.raises(GitError):
        gitconfig.edited(git, b"[broken\n", {"orch.enabled": ()})
