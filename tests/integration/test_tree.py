"""A tree-id as files on a disk: every path, every byte, nothing run, nothing followed."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from git_orch import tree as trees
from git_orch.errors import EnvironmentProblem, GitError
from git_orch.inspection import Inspection, inspect
from git_orch.listing import TreeUnusable, colliding
from git_orch.parking import park
from git_orch.store import ObjectsMissing
from git_orch.tree import materialize
from tests.conftest import MakeRepo
from tests.mounting import in_child, mount_tmpfs
from tests.ordinary_user import as_ordinary_user, open_folder
from tests.repo import Repo, init_repo
from tests.scratch import clear_places, content, layout_of, listed, new_place, store_of, tree_of
from tests.seal import Seal


@pytest.fixture(autouse=True)
def cleared(seal: Seal) -> Iterator[None]:  # noqa: ARG001 - it is set up first and looks last
    yield
    clear_places()


def surrogate(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def raw_tree(repo: Repo, *entries: tuple[str, str, str]) -> str:
    """A tree object of these (mode, name, object id), however wrong."""
    raw = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(oid) for mode, name, oid in entries)
    return repo.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=raw)


def case_1(repo: Repo, witness: Path) -> str:
    """A tree whose attributes lose paths, rewrite files and run programs where they are obeyed."""
    attributes = (
        "tests/ export-ignore\nver.py export-subst ident\n*.flt filter=boom\n*.txt eol=crlf\n*.psd filter=lfs -text\n"
        "*.utf16 working-tree-encoding=UTF-16\n* -diff\n[attr]hidden export-ignore\nmacro hidden\n"
    )
    repo.git("config", "--global", "filter.boom.smudge", f"touch {witness}; sed s/content/smudged/")
    repo.git("config", "--global", "filter.boom.clean", "cat")
    repo.git("config", "--global", "filter.boom.required", "true")
    files = {
        "tests/test_a.py": "def test(): pass\n",
        "ver.py": "version = '$Format:%H$' # $Id$\n",
        "a.flt": "content\n",
        "crlf.txt": "one\ntwo\n",
        "mixed.txt": "one\r\ntwo\n",
        "picture.psd": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "macro": "hidden\n",
        "wide.utf16": "wide\n",
        "plain": "plain\n",
        "sub/.gitattributes": "* export-ignore filter=boom\n",
        "sub/deep": "content\n",
    }
    for name, text in files.items():
        repo.write(name, text)
    repo.git("add", "--all")
    for name in files:  # as they are: the attributes' own conversions would make other blobs
        oid = repo.git("hash-object", "-w", "--no-filters", name)
        repo.git("update-index", "--cacheinfo", f"100644,{oid},{name}")
    repo.write(".gitattributes", attributes)
    repo.git("update-index", "--add", ".gitattributes")
    return repo.git("write-tree")


@pytest.mark.parametrize("warm", [False, True])
def test_case_1_every_path_every_byte_no_filter(repo: Repo, tmp_path: Path, warm: bool) -> None:
    witness = tmp_path / "filter-ran"
    repo.write("a", "x\n")
    other = tree_of(repo)
    tree_id = case_1(repo, witness)
    witness.unlink(missing_ok=True)
    place = new_place()
    if warm:
        materialize(store_of(repo), other, place)
        assert park(place, store_of(repo), inspect(place, store_of(repo), other))
        place = new_place()
    assert materialize(store_of(repo), tree_id, place) == ("warm" if warm else "cold")
    assert content(Path(place.tree)) == listed(repo, tree_id)
    assert not witness.exists()
    assert inspect(place, store_of(repo), tree_id).clean


def test_the_plain_way_fails_case_1(repo: Repo, tmp_path: Path) -> None:
    witness = tmp_path / "filter-ran"
    tree_id = case_1(repo, witness)
    witness.unlink(missing_ok=True)
    (tmp_path / "plain").mkdir()
    repo.git("archive", "-o", tmp_path / "plain.tar", tree_id)
    subprocess.run(["tar", "-xf", "../plain.tar"], cwd=tmp_path / "plain", check=True, timeout=60)
    found, expected = content(tmp_path / "plain"), listed(repo, tree_id)
    assert witness.exists()
    assert b"tests/test_a.py" not in found
    assert {path for path in found if found[path] != expected.get(path)} >= {b"a.flt", b"crlf.txt"}


def test_every_kind_of_entry(repo: Repo) -> None:
    repo.write("plain", "x")
    repo.write("script", "#!/bin/sh\n", mode=0o755)
    repo.write("empty", "")
    repo.write("large", os.urandom(1 << 20) * 3)
    repo.write("deep/er/and/deeper", "x")
    repo.write(f"{'long/' * 40}{'n' * 200}", "beyond ustar")
    repo.write(surrogate(b"\xff\xfe not utf-8"), "x")
    repo.write('new\nline "quoted" back\\slash', "x")
    repo.write(f"ünï/{'ö' * 90}", "long and not ASCII")
    repo.write("-dash", "x")
    repo.write(" leading and trailing ", "x")
    for name, target in (
        ("relative", "plain"),
        ("absolute", "/etc/passwd"),
        ("up", "../../../outside"),
        ("dangling", "nowhere"),
        ("to-folder", "deep"),
        ("long", f"{'t/' * 120}x"),
    ):
        (repo.path / f"link-{name}").symlink_to(target)
    repo.git("add", "--all")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},in/a/module")
    tree_id = repo.git("write-tree")
    place = new_place()
    assert materialize(store_of(repo), tree_id, place) == "cold"
    assert content(Path(place.tree)) == listed(repo, tree_id)
    assert inspect(place, store_of(repo), tree_id) == Inspection(size_bytes=size_of(place.tree))


def size_of(tree: str) -> int:
    return sum(path.lstat().st_size for path in Path(tree).rglob("*") if path.is_symlink() or path.is_file())


def test_the_empty_tree(repo: Repo) -> None:
    tree_id = repo.git("mktree")
    place = new_place()
    assert materialize(store_of(repo), tree_id, place) == "cold"
    assert os.listdir(place.tree) == []
    assert inspect(place, store_of(repo), tree_id).clean


def test_sha256(make_repo: MakeRepo) -> None:
    repo = make_repo("sha256", object_format="sha256")
    repo.write("dir/a", "one\n")
    first = tree_of(repo)
    repo.write("dir/a", "two\n")
    second = tree_of(repo)
    store, place = store_of(repo), new_place()
    materialize(store, first, place)
    assert park(place, store, inspect(place, store, first))
    place = new_place()
    assert materialize(store, second, place) == "warm"
    assert content(Path(place.tree)) == listed(repo, second)
    assert inspect(place, store, second).clean


def test_nothing_of_the_making_is_left_beside_the_tree(repo: Repo) -> None:
    repo.write("a", "x\n")
    place = new_place()
    materialize(store_of(repo), tree_of(repo), place)
    assert sorted(os.listdir(place.root)) == ["index", "request", "tree"]


@pytest.mark.parametrize("umask", [0o777, 0o077, 0o000])
def test_no_umask_of_the_user_changes_a_mode(repo: Repo, umask: int) -> None:
    """Case 71: tar.umask=0777 makes every file 0000, and the process's own umask would do the same."""
    repo.git("config", "--global", "tar.umask", "0777")
    repo.write("a", "x\n")
    repo.write("dir/script", "x\n", mode=0o755)
    tree_id = tree_of(repo)
    store, place = store_of(repo), new_place()
    before = os.umask(umask)
    try:
        materialize(store, tree_id, place)
    finally:
        assert os.umask(before) == umask
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in Path(place.tree).rglob("*")}
    assert modes == {"a": 0o644, "dir": 0o755, "script": 0o755}


def test_settings_and_variables_of_the_user_change_nothing(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = (
        "core.autocrlf true",
        "core.eol crlf",
        "core.symlinks false",
        "core.fileMode false",
        "tar.tar.command false",
    )
    for setting in settings:
        repo.git("config", "--global", *setting.split())
    monkeypatch.setenv("TAR_OPTIONS", "--exclude=a --strip-components=1")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'tar.umask=0777' 'core.autocrlf=true'")
    repo.write("a", "x\n")
    repo.write("dir/script", "x\n", mode=0o755)
    (repo.path / "link").symlink_to("a")
    repo.git("-c", "core.autocrlf=false", "-c", "core.fileMode=true", "-c", "core.symlinks=true", "add", "-A")
    tree_id = repo.git("write-tree")
    for how in ("cold", "warm"):
        store, place = store_of(repo), new_place()
        assert materialize(store, tree_id, place) == how
        assert content(Path(place.tree)) == listed(repo, tree_id)
        assert park(place, store, inspect(place, store, tree_id))


def test_a_colon_in_the_temporary_folder_is_no_host(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "host:tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "host:tmp"))
    repo.write("a", "x\n")
    tree_id = tree_of(repo)
    place = new_place()
    assert materialize(store_of(repo), tree_id, place) == "cold"
    assert content(Path(place.tree)) == listed(repo, tree_id)
    clear_places()


def test_the_callers_folder_may_be_gone(repo: Repo, tmp_path: Path) -> None:
    repo.write("a", "x\n")
    tree_id, store, place = tree_of(repo), store_of(repo), new_place()
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert materialize(store, tree_id, place) == "cold"


def test_as_an_ordinary_user(tmp_path: Path) -> None:
    with open_folder(tmp_path) as folder:

        def action() -> None:
            os.environ.update(HOME=str(folder), TMPDIR=str(folder), GIT_CONFIG_GLOBAL="/dev/null")
            os.chdir(folder)
            repo = init_repo(folder / "repo")
            repo.git("config", "user.email", "a@example.com")
            repo.git("config", "user.name", "A")
            repo.write("dir/a", "x\n")
            (repo.path / "link").symlink_to("/etc/passwd")
            tree_id = tree_of(repo)
            for how in ("cold", "warm"):
                store, place = store_of(repo), new_place()
                assert materialize(store, tree_id, place) == how
                assert content(Path(place.tree)) == listed(repo, tree_id)
                assert park(place, store, inspect(place, store, tree_id))
            clear_places()

        as_ordinary_user(action)


# -- what is refused


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([("100644", ".git", "BLOB")], "no checkout may have"),
        ([("40000", ".GiT", "TREE")], "no checkout may have"),
        ([("40000", "..", "TREE")], "no checkout may have"),
        ([("40000", ".", "TREE")], "no checkout may have"),
        ([("120000", "a", "BLOB"), ("40000", "a", "TREE")], "twice"),
        ([("100644", "a", "BLOB"), ("100644", "a", "BLOB")], "twice"),
    ],
)
def test_a_tree_that_no_checkout_may_have_is_refused(repo: Repo, entries: list[tuple[str, str, str]], why: str) -> None:
    blob = repo.git("hash-object", "-w", "--stdin", stdin="/tmp")
    inner = repo.git("mktree", stdin=f"100644 blob {blob}\tconfig\n")
    tree_id = raw_tree(repo, *((mode, name, {"BLOB": blob, "TREE": inner}[oid]) for mode, name, oid in entries))
    place = new_place()
    with pytest.raises(TreeUnusable, match=why):
        materialize(store_of(repo), tree_id, place)
    assert not os.path.exists(place.tree)


def test_names_that_a_disk_takes_for_one_are_refused(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    blob = repo.git("hash-object", "-w", "--stdin", stdin="x")
    index = "".join(f"100644 {blob}\t{name}\n" for name in ("Dir/a", "dir/b", "c"))
    repo.git("update-index", "--index-info", stdin=index)
    tree_id = repo.git("write-tree")
    assert materialize(store_of(repo), tree_id, new_place()) == "cold"
    monkeypatch.setattr(trees, "_folds_case", lambda _: True)
    with pytest.raises(TreeUnusable, match="Dir and dir are one name"):
        materialize(store_of(repo), tree_id, new_place())


@pytest.mark.parametrize(
    ("paths", "pair"),
    [
        ([b"a", b"b/A", b"b/a"], ("b/A", "b/a")),
        (["\u00e9".encode(), "e\u0301".encode()], ("\u00e9", "e\u0301")),
        ([b"README", b"Readme/x"], ("README", "Readme")),
        ([b"a/b", b"a/c", b"ab"], None),
    ],
)
def test_colliding_names(paths: list[bytes], pair: tuple[str, str] | None) -> None:
    assert colliding(paths) == pair


def test_a_tree_that_is_not_there_is_told(repo: Repo) -> None:
    with pytest.raises(ObjectsMissing):
        materialize(store_of(repo), "1" * 40, new_place())


def test_a_missing_blob_is_told(repo: Repo) -> None:
    repo.write("a", "x\n")
    tree_id = tree_of(repo)
    oid = repo.git("rev-parse", "HEAD:a")
    (repo.path / ".git/objects" / oid[:2] / oid[2:]).unlink()
    with pytest.raises(ObjectsMissing, match="1 objects are missing"):
        materialize(store_of(repo), tree_id, new_place())


def test_a_damaged_blob_is_told(repo: Repo) -> None:
    repo.write("a", "x\n" * 1000)
    tree_id = tree_of(repo)
    oid = repo.git("rev-parse", "HEAD:a")
    path = repo.path / ".git/objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(GitError):
        materialize(store_of(repo), tree_id, new_place())


def test_a_partial_clone_fetches_what_it_needs_at_once(repo: Repo, tmp_path: Path) -> None:
    repo.write("a", "a\n")
    repo.write("b", "b\n")
    tree_id = tree_of(repo)
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.git("config", "uploadpack.allowAnySHA1InWant", "true")
    repo.git("clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{repo.path}", tmp_path / "partial")
    store, place = store_of(Repo(tmp_path / "partial")), new_place()
    materialize(store, tree_id, place)
    assert content(Path(place.tree)) == listed(repo, tree_id)
    assert len(list(Path(store.objects, "pack").glob("*.pack"))) == 1


def test_no_room_is_told_before_anything_is_unpacked(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.write("a", os.urandom(1 << 16))
    tree_id, store, place = tree_of(repo), store_of(repo), new_place()
    real = os.statvfs(place.root)
    full = os.statvfs_result((*real[:3], 4, 4, *real[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(EnvironmentProblem, match=r"not enough room .* needed, 0\.0 MiB free"):
        materialize(store, tree_id, place)
    monkeypatch.undo()
    assert os.listdir(place.root) == ["request"]


def test_a_disk_that_fills_up_meanwhile_is_told_with_numbers(tmp_path: Path) -> None:
    """Where there seems to be plenty, nobody adds up the sizes first: a full disk is told all the same. Case 9."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    repo = init_repo(tmp_path / "repo")
    repo.write("a", os.urandom(3 << 20))
    tree_id, store = tree_of(repo), store_of(repo)
    small = tmp_path / "small"
    small.mkdir()

    def action() -> None:
        mount_tmpfs(small, "4m")
        os.environ["TMPDIR"] = str(small)
        place = new_place()
        for plenty in (0, 1 << 60):
            trees._PLENTY_BYTES = plenty
            with pytest.raises(EnvironmentProblem, match=r"not enough room .*: 6\.0 MiB needed, 4\.0 MiB free"):
                materialize(store, tree_id, place)
            assert os.listdir(place.root) == ["request"]

    in_child(action)


def test_the_room_that_a_tree_takes(repo: Repo) -> None:
    repo.write("a", b"x" * 4097)
    assert trees.needed_bytes(store_of(repo), tree_of(repo)) == 2 * 3 * 4096


def test_no_tar_is_told(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = shutil.which("git")
    assert git is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(git)
    repo.write("a", "x\n")
    tree_id = tree_of(repo)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(EnvironmentProblem, match="tar is not on PATH"):
        materialize(store_of(repo), tree_id, new_place())


@pytest.mark.parametrize("broken", ["x: missing", "x: extra"])
def test_a_tar_that_does_not_unpack_the_tree_is_caught(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    tar = shutil.which("tar")
    (tmp_path / "bin").mkdir()
    wrong = tmp_path / "bin" / "tar"
    harm = "rm $last/dir/a" if "missing" in broken else "touch $last/dir/pax_header"
    wrong.write_text(f'#!/bin/sh\n{tar} "$@" || exit\nfor last; do :; done\n{harm}\n')
    wrong.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    repo.write("dir/a", "x\n")
    repo.write("dir/b", "x\n")
    with pytest.raises(EnvironmentProblem, match="is not the tree it was made from"):
        materialize(store_of(repo), tree_of(repo), new_place())


@pytest.mark.parametrize(
    "harm",
    [
        "echo longer >$last/dir/a",
        "chmod +x $last/dir/a",
        "rm $last/dir/a; ln -s b $last/dir/a",
        "mv $last/dir $last/other; ln -s other $last/dir",
        "rm -r $last/module; touch $last/module",
    ],
)
def test_a_disk_that_does_not_keep_the_tree_is_caught(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    tar = shutil.which("tar")
    (tmp_path / "bin").mkdir()
    wrong = tmp_path / "bin" / "tar"
    wrong.write_text(f'#!/bin/sh\n{tar} "$@" || exit\nfor last; do :; done\n{harm}\n')
    wrong.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    repo.write("dir/a", "x\n")
    repo.write("dir/b", "x\n")
    repo.git("add", "-A")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    with pytest.raises(EnvironmentProblem, match="is not the tree it was made from"):
        materialize(store_of(repo), repo.git("write-tree"), new_place())


def test_a_failing_tar_is_told_in_its_words(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    wrong = tmp_path / "bin" / "tar"
    wrong.write_text("#!/bin/sh\necho 'tar: a: Cannot write: No space left on device' >&2; exit 2\n")
    wrong.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    repo.write("a", "x\n")
    with pytest.raises(EnvironmentProblem, match="No space left on device"):
        materialize(store_of(repo), tree_of(repo), new_place())


def test_old_modes_are_what_git_makes_of_them(repo: Repo) -> None:
    blob = repo.git("hash-object", "-w", "--stdin", stdin="x\n")
    tree_id = raw_tree(repo, ("100664", "plain", blob), ("100775", "script", blob))
    place = new_place()
    materialize(store_of(repo), tree_id, place)
    assert {path: kind for path, (kind, _) in content(Path(place.tree)).items()} == {b"plain": "-", b"script": "x"}
    place.made = None
    assert inspect(place, store_of(repo), tree_id).clean


def test_the_users_repository_is_as_it_was(repo: Repo) -> None:
    repo.write("a", "x\n")
    tree_id = tree_of(repo)
    store_of(repo)
    before = snapshot_of(repo)
    materialize(store_of(repo), tree_id, new_place())
    assert snapshot_of(repo) == before
    assert layout_of(repo).store.startswith(str(repo.path / ".git" / "orch"))


def snapshot_of(repo: Repo) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in sorted(repo.path.rglob("*"))
        if path.is_file() and ".git/orch/" not in str(path)
    }
