"""The hooks of each client: in its own settings, beside what is there, and taken out again to the same bytes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from git_orch import layout
from git_orch.commands.install import install as install_command
from git_orch.commands.install import uninstall as uninstall_command
from git_orch.errors import EnvironmentProblem, UsageError
from git_orch.install import clients, firing, githooks, hooksfile, installation, launcher, receipts, removal
from git_orch.install.changes import Plan
from git_orch.install.clients import CLIENTS, Client, Scope
from git_orch.install.firing import Fired
from git_orch.install.installation import Wish
from git_orch.install.removal import Leaving
from tests.conftest import MakeRepo
from tests.repo import Repo
from tests.seal import Seal

JSON_CLIENTS = [name for name, client in CLIENTS.items() if client.shape != "plugin"]
EVERY = [(client, scope) for client in CLIENTS.values() for scope in client.scopes]
OTHERS = {
    "nothing": None,
    "empty": b"",
    "spaced": b"{ }\n",
    "tabs": b'{\n\t"version": 1,\n\t"hooks": {}\n}\n',
    "CRLF": b'{\r\n  "version": 1,\r\n  "hooks": {\r\n  }\r\n}\r\n',
    "minified": b'{"version":1,"hooks":{"stop":[{"command":"true"}],"Stop":[{"hooks":[{"command":"x"}]}]}}',
    "ragged": b'{"z": 1,\n\n   "hooks"\t: { "agentStop":[ {"bash":"true"} ]}}\n\n',
}
COMMENTED = {
    "above": b'{\n  // mine\n  "model": "x"\n}\n',
    "at the end of a line": b'{\n  "model": "x" // mine, and http://x.y\n}\n',
    "inside": b'{\n  "a": [1, /* two */ 2],\n  "hooks": { /* none yet */ }\n}\n',
    "alone": b"{\n  // nothing\n}\n",
    "CRLF": b'{\r\n  // mine\r\n  "model": "x", // why\r\n  "hooks": {} // empty\r\n}\r\n',
}


def place(repo: Repo) -> layout.Layout:
    return layout.locate(str(repo.path), os.environ)


def install(repo: Repo, client: str, scope: Scope = "user", *, tracked: bool = False) -> Plan:
    return installation.install(Wish(client=client, scope=scope, tracked=tracked), place(repo), os.environ)


def uninstall(repo: Repo | None, *names: str, everywhere: bool = False) -> Plan:
    here = place(repo) if repo else None
    return removal.uninstall(Leaving(clients=names, everywhere=everywhere), here, os.environ)


def content(root: Path) -> dict[str, bytes | None]:
    kept = (".local", ".local/state", ".local/state/git-orch", ".local/state/git-orch/key")
    paths = {str(path.relative_to(root)): path for path in sorted(root.rglob("*"))}
    return {name: path.read_bytes() if path.is_file() else None for name, path in paths.items() if name not in kept}


def settings_of(client: Client, repo: Repo, scope: Scope = "user") -> Path:
    return Path(client.settings_path(scope, os.environ, str(repo.path)))


def put(path: Path, raw: bytes | None) -> None:
    if raw is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)


# -- byte for byte


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(("client", "scope"), EVERY, ids=[f"{client.name}-{scope}" for client, scope in EVERY])
def test_in_twice_and_out_again(repo: Repo, seal: Seal, client: Client, scope: Scope, name: str) -> None:
    path = settings_of(client, repo, scope)
    put(path, OTHERS[name] if client.shape != "plugin" else None)
    before = content(seal.home), content(repo.path)

    assert install(repo, client.name, scope).changes
    raw = path.read_bytes()
    assert hooksfile.lines(raw, client) == {name: client.line(event) for name, event in client.events.items()}
    assert install(repo, client.name, scope).changes == ()
    assert path.read_bytes() == raw
    removed = uninstall(repo, client.name)

    assert all(change.exact for change in removed.changes)
    assert (content(seal.home), content(repo.path)) == before


@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_what_others_have_there_stays_and_still_means_the_same(repo: Repo, name: str) -> None:
    client = CLIENTS[name]
    path = settings_of(client, repo)
    put(path, OTHERS["minified"])
    install(repo, name)
    after = json.loads(path.read_bytes())
    before = json.loads(OTHERS["minified"] or b"")
    for event, entries in before["hooks"].items():
        assert after["hooks"][event][: len(entries)] == entries
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":2'))  # edited since: by text alone
    uninstall(repo, name)
    assert path.read_bytes() == (OTHERS["minified"] or b"").replace(b'"version":1', b'"version":2')


@pytest.mark.parametrize("kind", COMMENTED)
@pytest.mark.parametrize("name", ["gemini", "qwen"])
def test_comments_stay_where_they_are(repo: Repo, name: str, kind: str) -> None:
    client = CLIENTS[name]
    path = settings_of(client, repo)
    put(path, COMMENTED[kind])
    install(repo, name)
    put_in = path.read_bytes()
    for line in COMMENTED[kind].splitlines():
        if line.strip().startswith(b"//"):
            assert line in put_in.splitlines()
    assert hooksfile.has_ours(put_in, client)
    bare = hooksfile.take_out(put_in, client, hooksfile.keys_of(COMMENTED[kind]))
    assert bare is not None
    assert bare.split() == COMMENTED[kind].split()  # without the receipt: each word and each comment
    uninstall(repo, name)
    assert path.read_bytes() == COMMENTED[kind]


@pytest.mark.parametrize("name", ["claude", "codex", "copilot", "cursor"])
def test_where_a_client_reads_no_comments_the_file_is_refused(repo: Repo, name: str) -> None:
    path = settings_of(CLIENTS[name], repo)
    put(path, COMMENTED["above"])
    with pytest.raises(EnvironmentProblem, match="comments"):
        install(repo, name)
    assert path.read_bytes() == COMMENTED["above"]
    assert "orch" not in (repo.path / ".git/config").read_text()


@pytest.mark.parametrize("name", CLIENTS)
def test_an_upgrade_rewrites_the_line_and_remembers_the_first_bytes(
    repo: Repo, seal: Seal, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = settings_of(CLIENTS[name], repo)
    put(path, OTHERS["ragged"] if name in JSON_CLIENTS else None)
    before = content(seal.home), content(repo.path)
    with monkeypatch.context() as older:
        older.setattr(launcher, "line", lambda event, _client: f"~/old/git-orch/hook {event}")
        install(repo, name)
        assert b"~/old" in path.read_bytes()
    install(repo, name)
    assert b"~/old" not in path.read_bytes()
    uninstall(repo, name)
    assert (content(seal.home), content(repo.path)) == before


def test_a_plugin_of_somebody_elses_is_left_alone(repo: Repo) -> None:
    path = settings_of(CLIENTS["opencode"], repo)
    put(path, b"export const Mine = async () => ({})\n")
    with pytest.raises(EnvironmentProblem, match="is not git-orch's"):
        install(repo, "opencode")
    uninstall(repo, "opencode")
    assert path.read_bytes() == b"export const Mine = async () => ({})\n"


# -- all of them


def test_uninstall_without_a_target_takes_everything_back(
    repo: Repo, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo.path)
    monkeypatch.setattr(firing, "fire", lambda _env, **_: Fired(answer_ms=1))
    before = content(seal.home), content(repo.path)
    for name in CLIENTS:
        install_command(client=name, yes=True)
    install_command(client="git", yes=True, gate=True)
    assert (repo.path / ".git/hooks/pre-push").exists() or githooks.by_config(os.environ)
    uninstall_command()
    assert (content(seal.home), content(repo.path)) == before
    assert receipts.load(os.environ) == {}


def test_all_takes_back_every_repository_from_anywhere(
    make_repo: MakeRepo, seal: Seal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repos = [make_repo("one"), make_repo("two")]
    before = content(seal.home), [content(each.path) for each in repos]
    install(repos[0], "gemini")
    install(repos[1], "cursor", "project")
    for each in repos:
        githooks.install(githooks.EVENTS, place(each), os.environ)
    monkeypatch.chdir(tmp_path)
    uninstall_command(everywhere=True)
    assert (content(seal.home), [content(each.path) for each in repos]) == before


def test_one_client_is_left_and_the_others_stay(repo: Repo) -> None:
    install(repo, "codex")
    install(repo, "gemini")
    uninstall(repo, "codex")
    assert not settings_of(CLIENTS["codex"], repo).exists()
    assert hooksfile.has_ours(settings_of(CLIENTS["gemini"], repo).read_bytes(), CLIENTS["gemini"])
    assert repo.git("config", "orch.enabled") == "true"
    uninstall(repo, "gemini")
    assert "orch" not in (repo.path / ".git/config").read_text()


# -- what is refused, and what is said


@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_a_tracked_file_is_not_edited_unless_one_says_so(repo: Repo, name: str) -> None:
    client = CLIENTS[name]
    path = settings_of(client, repo, "project")
    put(path, b"{}\n")
    repo.git("add", "-f", path)
    repo.git("commit", "-q", "-m", "settings")
    before = path.read_bytes()
    with pytest.raises(EnvironmentProblem, match="is tracked by git") as caught:
        install(repo, name, "project")
    assert f"git orch install {name} --user" in caught.value.hint
    assert path.read_bytes() == before
    assert "orch" not in (repo.path / ".git/config").read_text()
    install(repo, name, "project", tracked=True)
    assert path.read_bytes() != before
    uninstall(repo, name)
    assert path.read_bytes() == before


def test_a_link_into_a_tracked_folder_is_tracked_too(repo: Repo, make_repo: MakeRepo) -> None:
    dotfiles = make_repo("dotfiles")
    target = dotfiles.write("claude.json", "{}\n")
    dotfiles.commit()
    path = settings_of(CLIENTS["claude"], repo)
    path.parent.mkdir()
    path.symlink_to(target)
    with pytest.raises(EnvironmentProblem, match="is tracked"):
        install(repo, "claude")
    assert dotfiles.git("status", "--porcelain") == ""


def test_a_scope_that_a_client_has_not_is_refused(repo: Repo) -> None:
    with pytest.raises(UsageError, match="Codex has no local settings"):
        install(repo, "codex", "local")
    with pytest.raises(UsageError, match="no client `emacs`"):
        install(repo, "emacs")


def test_codex_is_never_trusted_by_us_and_copilots_second_reading_is_told(repo: Repo, seal: Seal) -> None:
    assert any("/hooks" in note for note in install(repo, "codex").notes)
    assert os.listdir(seal.home / ".codex") == ["hooks.json"]
    assert any(".claude/settings.json" in note for note in install(repo, "copilot").notes)


@pytest.mark.parametrize("name", CLIENTS)
def test_print_gives_the_line_by_our_name_of_the_event_and_by_theirs(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for theirs, event in CLIENTS[name].events.items():
        install_command(client=name, print_event=event)
        install_command(client=name, print_event=theirs)
        assert capsys.readouterr().out == (CLIENTS[name].line(event) + "\n") * 2


@pytest.mark.parametrize(
    ("name", "variable", "file"),
    [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("qwen", "QWEN_HOME", "settings.json"),
        ("copilot", "COPILOT_HOME", "hooks/git-orch.json"),
        ("opencode", "OPENCODE_CONFIG_DIR", "plugins/git-orch.js"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/plugins/git-orch.js"),
    ],
)
def test_a_clients_own_variable_says_where(name: str, variable: str, file: str) -> None:
    assert CLIENTS[name].settings_path("user", {variable: "/else/where"}, "") == f"/else/where/{file}"


def test_timeouts_are_in_the_unit_that_the_client_reads() -> None:
    def limit(name: str, key: str = "timeout") -> object:
        return CLIENTS[name].handler("stop")[key]

    assert limit("claude") == limit("codex") == limit("cursor") == limit("copilot", "timeoutSec") == clients.TIMEOUT_S
    assert limit("gemini") == limit("qwen") == clients.TIMEOUT_S * 1000


@pytest.mark.parametrize("name", CLIENTS)
def test_without_the_launcher_every_line_is_silent(name: str) -> None:
    for event in launcher.EVENTS:
        done = subprocess.run(["sh", "-c", CLIENTS[name].line(event)], input=b"{}", capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on PATH")
def test_the_plugin_is_a_module_that_does_what_it_is_answered(repo: Repo, tmp_path: Path) -> None:
    install(repo, "opencode")
    hook = Path(launcher.path(os.environ))
    hook.write_text(
        '#!/bin/sh\ncat >>"$LOG"; echo " $*" >>"$LOG"\n'
        'case $1 in stop) echo \'{"prompt": "fix it"}\';; user*) echo \'{"context": "told"}\';; esac\n'
    )
    hook.chmod(0o755)
    plugin = tmp_path / "plugin.mjs"
    shutil.copy(settings_of(CLIENTS["opencode"], repo), plugin)
    play = tmp_path / "play.mjs"
    play.write_text(
        f"""
import {{ GitOrch }} from {json.dumps(str(plugin))}
const sent = []
const client = {{ session: {{
  get: async ({{ path }}) => ({{ data: path.id === "sub" ? {{ parentID: "s" }} : {{}} }}),
  prompt: async (asked) => {{ sent.push(asked) }} }}, tui: {{ showToast: async () => {{}} }} }}
const hooks = await GitOrch({{ client, directory: {json.dumps(str(repo.path))} }})
await hooks.event({{ event: {{ type: "session.created", properties: {{ info: {{ id: "s" }} }} }} }})
const output = {{ message: {{ id: "m" }}, parts: [] }}
await hooks["chat.message"]({{ sessionID: "s" }}, output)
await hooks.event({{ event: {{ type: "session.idle", properties: {{ sessionID: "s" }} }} }})
await hooks.event({{ event: {{ type: "session.idle", properties: {{ sessionID: "sub" }} }} }})
await hooks.event({{ event: {{ type: "file.edited", properties: {{}} }} }})
console.log(JSON.stringify({{ sent, parts: output.parts.map((part) => [part.text, part.synthetic]) }}))
"""
    )
    env = {**os.environ, "LOG": str(tmp_path / "log")}
    done = subprocess.run(["node", play], env=env, capture_output=True, text=True, timeout=60, check=True)
    said = json.loads(done.stdout)
    assert said["parts"] == [["told", True]]
    assert [each["body"]["parts"][0]["text"] for each in said["sent"]] == ["fix it"]
    fired = (tmp_path / "log").read_text().splitlines()
    assert [line.rsplit(" ", 2)[1:] for line in fired] == [
        [event, "opencode"] for event in ("session-start", "user-prompt-submit", "stop")
    ]
