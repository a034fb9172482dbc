"""What breaks `git add -A`, and what is odd: the snapshot is made all the same, and what is left out is named."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from git_orch import snapshot
from git_orch.model import Skipped
from tests.ordinary_user import as_ordinary_user, open_folder
from tests.repo import Repo, init_repo
from tests.scratch import layout_of
from tests.snapshots import content, mode, names, plain, take
from tests.untouched import fingerprint


@pytest.fixture
def started(repo: Repo) -> Repo:
    """A repository with a commit, an edit that is not committed, and an untracked file."""
    repo.write("a.txt", "one\n")
    repo.write("src/b.txt", "two\n")
    repo.commit()
    repo.write("a.txt", "edited\n")
    repo.write("new.txt", "new\n")
    return repo


def head_tree(repo: Repo) -> str:
    return repo.git("rev-parse", "HEAD^{tree}")


def assert_plain_way_fails(repo: Repo) -> None:
    """`git add -A` fails, and write-tree then gives HEAD's tree: "nothing to review"."""
    plainly = plain(repo)
    assert plainly.code != 0
    assert plainly.tree_id == head_tree(repo)


def reasons(skipped: tuple[Skipped, ...]) -> dict[str, tuple[str, bool]]:
    return {left_out.path: (left_out.reason, left_out.tracked) for left_out in skipped}


# -- what cannot be read


def as_user_with_repo(tmp_path: Path, action: Callable[[Repo], None]) -> None:
    """The action has run as an ordinary user in a repository of that user's, with an edit and an untracked file."""
    with open_folder(tmp_path) as folder:

        def all_of_it() -> None:
            os.environ.update(HOME=str(folder), TMPDIR=str(folder), XDG_CONFIG_HOME=str(folder))
            (folder / "gitconfig").write_text("[user]\n\tname = A\n\temail = a@example.com\n")
            os.environ["GIT_CONFIG_GLOBAL"] = str(folder / "gitconfig")
            os.chdir(folder)
            repo = init_repo(folder / "work")
            for name in ("a.txt", "b.txt", "d/c.txt"):
                repo.write(name, "one\n")
            repo.commit()
            repo.write("a.txt", "edited\n")
            repo.write("new.txt", "new\n")
            try:
                action(repo)
            finally:
                subprocess.run(["chmod", "-R", "u+rwx", repo.path], check=True)

        as_ordinary_user(all_of_it)


def test_unreadable_files(tmp_path: Path) -> None:
    def action(repo: Repo) -> None:
        repo.write("b.txt", "edited, and closed\n", mode=0o000)
        repo.write("closed.txt", "never seen\n", mode=0o000)
        assert_plain_way_fails(repo)
        for _ in range(2):
            taken = take(repo)
            assert content(repo, taken.tree_id, "a.txt") == b"edited\n"
            assert content(repo, taken.tree_id, "b.txt") == b"one\n"
            assert names(repo, taken.tree_id) == ["a.txt", "b.txt", "d/c.txt", "new.txt"]
            assert reasons(taken.skipped) == {
                "b.txt": ("unreadable", True),
                "closed.txt": ("unreadable: Permission denied", False),
            }

    as_user_with_repo(tmp_path, action)


def test_unreadable_folders(tmp_path: Path) -> None:
    def action(repo: Repo) -> None:
        repo.write("d/c.txt", "edited, and out of reach\n")
        (repo.path / "d").chmod(0o000)
        (repo.path / "shut").mkdir(mode=0o000)
        repo.write("names only/x.txt", "x\n")
        (repo.path / "names only").chmod(0o444)
        for _ in range(2):
            taken = take(repo)
            assert content(repo, taken.tree_id, "a.txt") == b"edited\n"
            assert reasons(taken.skipped) == {
                "d/c.txt": ("unreadable: Permission denied", True),
                "d/": ("unreadable folder: Permission denied", False),
                "names only/x.txt": ("unreadable: Permission denied", False),
                "shut/": ("unreadable folder: Permission denied", False),
            }

    as_user_with_repo(tmp_path, action)


def test_a_conflict_that_cannot_be_read_is_left_out_as_ours(tmp_path: Path) -> None:
    def action(repo: Repo) -> None:
        repo.commit()
        repo.git("checkout", "--quiet", "-b", "topic", "HEAD^")
        repo.write("a.txt", "topic\n")
        repo.commit()
        subprocess.run(["git", "merge", "main"], cwd=repo.path, capture_output=True, check=False)
        (repo.path / "a.txt").chmod(0o000)
        assert plain(repo).code != 0
        taken = take(repo)
        assert content(repo, taken.tree_id, "a.txt") == b"topic\n"
        assert reasons(taken.skipped) == {"a.txt": ("unreadable", True)}

    as_user_with_repo(tmp_path, action)


def test_a_repository_that_cannot_be_written_fails(tmp_path: Path) -> None:
    def action(repo: Repo) -> None:
        take(repo)
        kept = next(Path(layout_of(repo).durable, "worktrees").iterdir())
        (kept / "known").unlink()
        kept.chmod(0o500)
        with pytest.raises(snapshot.SnapshotFailed, match="Permission denied"):
            take(repo)
        kept.chmod(0o700)
        objects = Path(layout_of(repo).store, "objects")
        for folder in (objects, *(path for path in objects.iterdir() if path.is_dir())):
            folder.chmod(0o500)
        repo.write("a.txt", "an edit that cannot be stored\n")
        repo.write("new.txt", "neither can this\n")
        with pytest.raises(snapshot.SnapshotFailed, match="insufficient permission"):
            take(repo)

    as_user_with_repo(tmp_path, action)


# -- what is no file


def test_an_embedded_repository_without_commits(started: Repo) -> None:
    init_repo(started.path / "inner").write("x.txt", "x\n")
    assert_plain_way_fails(started)
    taken = take(started)
    assert names(started, taken.tree_id) == ["a.txt", "new.txt", "src/b.txt"]
    assert taken.skipped == (Skipped(path="inner/", reason="embedded repository"),)


def test_an_embedded_repository_with_commits(started: Repo) -> None:
    inner = init_repo(started.path / "inner")
    inner.write("x.txt", "x\n")
    inner.commit()
    taken = take(started)
    assert names(started, taken.tree_id) == ["a.txt", "new.txt", "src/b.txt"]
    assert taken.skipped == (Skipped(path="inner/", reason="embedded repository"),)
    assert plain(started).tree_id != taken.tree_id  # it makes a submodule of it that nobody can clone


def test_a_tracked_file_that_is_replaced_by_a_repository(started: Repo) -> None:
    (started.path / "a.txt").unlink()
    inner = init_repo(started.path / "a.txt")
    inner.write("x.txt", "x\n")
    inner.commit()
    for _ in range(2):
        taken = take(started)
        assert names(started, taken.tree_id) == ["new.txt", "src/b.txt"]
        assert reasons(taken.skipped) == {"a.txt/": ("embedded repository", False)}
    shutil.rmtree(started.path / "a.txt")
    started.write("a.txt", "a file again\n")
    assert content(started, take(started).tree_id, "a.txt") == b"a file again\n"


def test_a_tracked_file_that_is_replaced_by_a_fifo_or_a_socket(started: Repo) -> None:
    (started.path / "a.txt").unlink()
    os.mkfifo(started.path / "a.txt")
    (started.path / "src/b.txt").unlink()
    os.chdir(started.path / "src")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("b.txt")
        assert_plain_way_fails(started)
        taken = take(started)
    assert "new.txt" in names(started, taken.tree_id)
    assert {path: tracked for path, (_, tracked) in reasons(taken.skipped).items()} == {
        "a.txt": True,
        "src/b.txt": True,
    }
    assert "unsupported file type" in taken.skipped[0].reason


def test_a_name_that_git_takes_for_its_own(started: Repo) -> None:
    started.write("git~1/x.txt", "x\n")
    assert_plain_way_fails(started)
    for _ in range(2):
        taken = take(started)
        assert names(started, taken.tree_id) == ["a.txt", "new.txt", "src/b.txt"]
        assert reasons(taken.skipped) == {"git~1/x.txt": ("git takes no such name", False)}


def test_a_folder_that_is_too_deep(started: Repo) -> None:
    os.chdir(started.path)
    for _ in range(25):
        Path("d" * 200).mkdir()
        os.chdir("d" * 200)
    Path("x.txt").write_text("x\n")
    os.chdir(started.path)
    taken = take(started)
    assert "new.txt" in names(started, taken.tree_id)
    (left_out,) = taken.skipped
    assert left_out.reason == "unreadable folder"  # git cuts the rest
    assert left_out.path.endswith("/")


# -- what git is told to mind


def test_line_ends_that_git_was_told_to_refuse(started: Repo) -> None:
    started.git("config", "core.safecrlf", "true")
    started.git("config", "core.autocrlf", "input")
    started.write("a.txt", "edited\r\n")
    assert_plain_way_fails(started)
    taken = take(started)
    assert content(started, taken.tree_id, "a.txt") == b"edited\n"
    assert taken.skipped == ()


def test_a_filter_whose_program_is_missing(started: Repo) -> None:
    started.write("kept.bin", "one\n")
    started.commit()
    started.write(".gitattributes", "*.bin filter=lost\n")
    started.git("config", "filter.lost.clean", "no-such-program-anywhere")
    started.git("config", "filter.lost.required", "true")
    started.write("kept.bin", "edited\n")
    started.write("new.bin", "new\n")
    for number in range(30):
        started.write(f"many/{number}.txt", f"{number}\n")
    assert_plain_way_fails(started)
    for _ in range(2):
        taken = take(started)
        listed = names(started, taken.tree_id)
        assert len([name for name in listed if name.startswith("many/")]) == 30
        assert content(started, taken.tree_id, "kept.bin") == b"one\n"
        assert "new.bin" not in listed
        assert {path: tracked for path, (_, tracked) in reasons(taken.skipped).items()} == {
            "kept.bin": True,
            "new.bin": False,
        }
        assert "clean filter 'lost' failed" in taken.skipped[0].reason


def test_a_clean_filter_runs_in_the_users_own_locale(started: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    started.write(".gitattributes", "*.txt filter=told\n")
    started.git("config", "filter.told.clean", 'echo "$LC_ALL"')
    taken = take(started)
    assert content(started, taken.tree_id, "a.txt") == b"C.UTF-8\n"
    assert taken.tree_id == plain(started).tree_id


def test_no_hook_of_the_users_runs(started: Repo, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for hook in ("post-index-change", "pre-commit", "post-commit", "post-checkout", "reference-transaction"):
        started.write(f".git/hooks/{hook}", f"#!/bin/sh\ntouch '{mark}'\n", mode=0o755)
    started.write(".git/watch", f"#!/bin/sh\ntouch '{mark}'\n", mode=0o755)
    started.git("config", "core.fsmonitor", str(started.path / ".git/watch"))
    take(started)
    assert not mark.exists()
    plain(started)
    assert mark.exists()


@pytest.mark.parametrize(
    "settings",
    [
        "core.autocrlf=true",
        "core.autocrlf=input",
        "core.eol=crlf",
        "core.quotePath=true",
        "core.splitIndex=true",
        "core.untrackedCache=true",
        "core.preloadIndex=false",
        "core.trustctime=false",
        "core.checkStat=minimal",
        "core.ignoreCase=true",
        "core.symlinks=false",
        "core.fileMode=false",
        "core.ignoreStat=true",
        "core.protectNTFS=false",
        "feature.manyFiles=true",
        "index.version=4",
        "status.showUntrackedFiles=no",
        "diff.ignoreSubmodules=all",
        "submodule.recurse=true",
        "add.ignoreErrors=true",
        "core.commentChar=x",
        "color.ui=always",
        "core.pager=false",
        "commit.gpgSign=true",
    ],
)
def test_settings_do_not_change_what_is_seen(repo: Repo, settings: str) -> None:
    name, _, value = settings.partition("=")
    repo.write("a.txt", "one\r\ntwo\r\n")
    repo.write("bin/run.sh", "#!/bin/sh\n", mode=0o755)
    (repo.path / "link").symlink_to("a.txt")
    repo.commit()
    repo.git("config", name, value)
    repo.git("update-index", "--refresh", "--force-write-index")
    repo.write("new.txt", "new\r\n")
    for number in range(3):
        repo.write("a.txt", f"edit {number}\r\n")
        repo.write("bin/run.sh", f"#!/bin/sh\n# {number}\n")
        before = fingerprint(repo)
        taken = take(repo)
        assert fingerprint(repo) == before
        assert (plain(repo).code, plain(repo).tree_id) == (0, taken.tree_id)
        assert taken.skipped == ()
    (repo.path / "new.txt").unlink()
    assert take(repo).tree_id == plain(repo).tree_id


def test_a_split_index(started: Repo) -> None:
    started.git("update-index", "--split-index")
    before = fingerprint(started)
    first, second = take(started), take(started)
    assert fingerprint(started) == before
    assert first.tree_id == second.tree_id == plain(started).tree_id
    assert fingerprint(started) != before  # the plain way leaves a shared index in the git directory


@pytest.mark.parametrize("kind", [["--no-cone", "/a.txt"], ["--cone", "src"], ["--cone", "--sparse-index", "src"]])
def test_a_sparse_checkout(started: Repo, kind: list[str]) -> None:
    for folder in ("src/deep", "far/one", "far/two"):
        started.write(f"{folder}/x.txt", "x\n")
    started.commit()
    started.git("sparse-checkout", "set", *kind)
    assert not (started.path / "far").exists()
    started.write("a.txt", "edited once more\n")
    started.write("far/one/new.txt", "where the patterns do not reach\n")
    before = fingerprint(started)
    for _ in range(2):
        taken = take(started)
        assert "far/one/new.txt" in names(started, taken.tree_id)
        assert "far/two/x.txt" in names(started, taken.tree_id)
        assert content(started, taken.tree_id, "a.txt") == b"edited once more\n"
        assert taken.skipped == ()
    assert fingerprint(started) == before
    (started.path / "far/one/new.txt").unlink()
    assert take(started).tree_id == plain(started).tree_id


# -- hidden edits


def test_edits_that_git_was_told_not_to_see_are_named(started: Repo) -> None:
    for name in ("assumed.txt", "skipped.txt", "same.txt", "both\n.txt", "gone.txt", "touched.txt", "to-link"):
        started.write(name, "one\n")
    started.commit()
    started.git(
        "update-index", "--assume-unchanged", "assumed.txt", "same.txt", "both\n.txt", "gone.txt", "touched.txt"
    )
    started.git("update-index", "--skip-worktree", "skipped.txt", "both\n.txt", "to-link", "src/b.txt")
    for name in ("assumed.txt", "skipped.txt", "both\n.txt"):
        started.write(name, "two\n")
    (started.path / "gone.txt").unlink()
    (started.path / "src/b.txt").unlink()
    (started.path / "touched.txt").touch()
    (started.path / "to-link").unlink()
    (started.path / "to-link").symlink_to("nowhere")
    before = fingerprint(started)
    assert content(started, take(started).tree_id, "assumed.txt") == b"one\n"
    place = layout_of(started)
    found = snapshot.hidden_edits(place.git(os.environ), place.worktree)
    assert fingerprint(started) == before
    assert {left_out.path: left_out.reason for left_out in found} == {
        "assumed.txt": "edited, hidden by assume-unchanged",
        "both\n.txt": "edited, hidden by assume-unchanged",
        "gone.txt": "edited, hidden by assume-unchanged",
        "skipped.txt": "edited, hidden by skip-worktree",
        "to-link": "edited, hidden by skip-worktree",
    }
    assert all(left_out.tracked for left_out in found)


def test_a_sparse_checkout_hides_no_edit(started: Repo) -> None:
    started.write("far/x.txt", "x\n")
    started.commit()
    started.git("sparse-checkout", "set", "src")
    place = layout_of(started)
    assert snapshot.hidden_edits(place.git(os.environ), place.worktree) == ()


# -- files for folders and folders for files


def file_to_folder(repo: Repo) -> None:
    (repo.path / "a.txt").unlink()
    repo.write("a.txt/inside.txt", "in\n")


def folder_to_file(repo: Repo) -> None:
    shutil.rmtree(repo.path / "src")
    repo.write("src", "a file\n")


def folder_to_link(repo: Repo) -> None:
    """The same files can be read through the link: git refuses to look at `src/b.txt` at all."""
    (repo.path / "src").rename(repo.path / "moved")
    (repo.path / "src").symlink_to("moved")


def folder_to_dangling_link(repo: Repo) -> None:
    shutil.rmtree(repo.path / "src")
    (repo.path / "src").symlink_to("nowhere")


def link_to_folder(repo: Repo) -> None:
    (repo.path / "to-src").unlink()
    repo.write("to-src/x.txt", "x\n")


def file_to_link(repo: Repo) -> None:
    (repo.path / "a.txt").unlink()
    (repo.path / "a.txt").symlink_to("src/b.txt")


def link_to_file(repo: Repo) -> None:
    (repo.path / "to-src").unlink()
    repo.write("to-src", "src")


def untracked_folder_to_link(repo: Repo) -> None:
    repo.write("loose/x.txt", "x\n")
    take(repo)
    (repo.path / "loose").rename(repo.path / "loosened")
    (repo.path / "loose").symlink_to("loosened")


def case_only(repo: Repo) -> None:
    (repo.path / "a.txt").rename(repo.path / "A.txt")
    repo.write("SRC/b.txt", "another\n")


REPLACED = [
    file_to_folder,
    folder_to_file,
    folder_to_link,
    folder_to_dangling_link,
    link_to_folder,
    file_to_link,
    link_to_file,
    untracked_folder_to_link,
    case_only,
]


@pytest.mark.parametrize("replace", REPLACED)
def test_replaced(started: Repo, replace: Callable[[Repo], None]) -> None:
    (started.path / "to-src").symlink_to("src")
    started.commit()
    started.write("new.txt", "new\n")
    take(started)
    replace(started)
    before = fingerprint(started)
    for _ in range(2):
        taken = take(started)
        assert taken.skipped == ()
        assert (taken.tree_id, plain(started).code) == (plain(started).tree_id, 0)
    assert fingerprint(started) == before
    started.git("reset", "--quiet", "--hard")
    started.git("clean", "-ffdq")
    started.git("reset", "--quiet", "--hard")  # the first one may look through the link, and leave a file away
    assert take(started).tree_id == head_tree(started)


def test_a_file_that_is_a_folder_for_a_while(started: Repo) -> None:
    started.commit()
    for _ in range(2):
        (started.path / "a.txt").unlink()
        started.write("a.txt/inside.txt", "in\n")
        assert take(started).tree_id == plain(started).tree_id
        shutil.rmtree(started.path / "a.txt")
        started.write("a.txt", "a file again\n")
        assert take(started).tree_id == plain(started).tree_id


def test_a_large_folder_replaced_by_a_link_costs_no_call_a_file(started: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(200):
        started.write(f"vendor/{number}.txt", f"{number}\n")
    started.commit()
    take(started)
    (started.path / "vendor").rename(started.path.parent / "vendor")
    (started.path / "vendor").symlink_to("../vendor")
    calls = []
    from git_orch import proc

    original = proc.run_together
    monkeypatch.setattr(proc, "run_together", lambda commands, **more: calls.append(1) or original(commands, **more))
    taken = take(started)
    assert mode(started, taken.tree_id, "vendor") == "120000"
    assert len(calls) < 10


# -- names


NAMES = [
    "new\nline.txt",
    "tab\there.txt",
    "\udcff\udcfe.bin",
    "ü and ü",
    "-n",
    "--stdin",
    ":(glob)x",
    ":!x",
    ":/x",
    "*",
    "[a]",
    "back\\slash",
    'quo"te',
    " leading",
    "trailing ",
    "#comment",
    "!negated",
    "dir/-x/:(top)y",
    "n" * 255,
    "/".join(["d" * 200] * 15),
    "\x1b[31mred",
    "..x/...",
    "HEAD",
    "refs/heads/main",
    "con",
]


def test_names_of_any_bytes(repo: Repo) -> None:
    for name in NAMES[::2]:
        repo.write(name, f"tracked {name!a}\n")
    repo.commit()
    for name in NAMES:
        repo.write(name, f"edited {name!a}\n")
    before = fingerprint(repo)
    taken = take(repo)
    assert fingerprint(repo) == before
    assert taken.skipped == ()
    assert sorted(names(repo, taken.tree_id)) == sorted(NAMES)
    assert taken.tree_id == plain(repo).tree_id
    for name in NAMES:
        (repo.path / name).unlink()
    repo.write(".gitignore", "*\n!.gitignore\n")
    assert names(repo, take(repo).tree_id) == [".gitignore"]


def test_a_name_of_any_bytes_is_told(repo: Repo) -> None:
    repo.write("\udcff\n.pem", "x\n")
    (left_out,) = take(repo).skipped
    assert left_out.path == "\udcff\n.pem"


# -- while everything moves


@contextmanager
def churn(repo: Repo) -> Iterator[None]:
    """Files come, change and go all the while: untracked ones, one that is tracked, a whole folder."""
    stop = threading.Event()

    def turn() -> None:
        for number in range(100_000):
            if stop.is_set():
                return
            repo.write(f"loose/{number % 7}/{number}.txt", f"{number}\n" * 50)
            repo.write("flicker.txt", f"{number}\n")
            (repo.path / "src/b.txt").unlink(missing_ok=True)
            if number % 3:
                repo.write("src/b.txt", f"{number}\n")
            if number % 20 == 0:
                shutil.rmtree(repo.path / "loose")
            (repo.path / "flicker.txt").unlink()

    thread = threading.Thread(target=turn, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)


def test_files_that_vanish_while_one_looks(started: Repo) -> None:
    expected = {"a.txt": b"edited\n", "new.txt": b"new\n"}
    with churn(started):
        for _ in range(30):
            taken = take(started)
            assert {name: content(started, taken.tree_id, name) for name in expected} == expected
            assert "a.txt" not in reasons(taken.skipped)
    shutil.rmtree(started.path / "loose", ignore_errors=True)
    started.write("src/b.txt", "quiet\n")
    assert take(started).tree_id == plain(started).tree_id  # nothing of the storm is left in the kept index
