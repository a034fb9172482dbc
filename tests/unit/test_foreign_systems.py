"""Windows and macOS as far as a test elsewhere can go: what they lack is taken away, and all of it is still imported.

It is not run there. docs/platforms.md says what is written for them and what is missing.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from git_orch import windows
from tests.project import PROJECT
from tests.unit.test_import_budget import present

PACKAGE = PROJECT / "git_orch"
NO_WINDOWS_MODULES = ("fcntl", "grp", "posix", "pwd", "resource", "termios", "_posixsubprocess")
NO_WINDOWS_NAMES = (
    *("O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "O_PATH", "O_NOCTTY", "O_SYNC"),
    *("fork", "forkpty", "posix_spawn", "posix_spawnp", "POSIX_SPAWN_DUP2", "POSIX_SPAWN_OPEN", "POSIX_SPAWN_CLOSE"),
    *(
        "getuid",
        "geteuid",
        "getgid",
        "getegid",
        "getgroups",
        "setsid",
        "getpgid",
        "killpg",
        "chown",
        "lchown",
        "fchmod",
    ),
    *("WNOHANG", "wait3", "wait4", "waitid", "pidfd_open", "unshare", "setns", "statvfs", "sysconf", "mkfifo"),
    *("posix_fallocate", "pread", "pwrite"),
)
NO_DARWIN_NAMES = ["O_PATH", "O_TMPFILE", "pidfd_open", "unshare", "setns", "posix_fallocate", "memfd_create", "splice"]
AS_WINDOWS = f"""
import os, sys, select, _signal
os.name, sys.platform = "nt", "win32"
for name in {NO_WINDOWS_MODULES!r}:
    sys.modules[name] = None
for owner, names in ((os, {NO_WINDOWS_NAMES!r}), (select, ["poll", "epoll"]), (_signal, {{
    "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "pthread_sigmask", "pidfd_send_signal",
    "SIG_BLOCK", "SIG_SETMASK", "SIG_UNBLOCK"}})):
    for name in names:
        if hasattr(owner, name):
            delattr(owner, name)
"""
AS_DARWIN = f"""
import os, sys
sys.platform = "darwin"
for name in {NO_DARWIN_NAMES!r}:
    if hasattr(os, name):
        delattr(os, name)
"""
IMPORT_ALL = "sys.path.append(sys.argv[1])\nfor name in sys.argv[2:]:\n    __import__('git_orch.' + name)\n"
# Has them by getattr.
SETTLED = {"system.py"}
FLAGS = {"O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK"}


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """What a bare interpreter said to that code."""
    argv = [sys.executable, "-I", "-S", "-c", code, *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("world", [AS_WINDOWS, AS_DARWIN], ids=["windows", "macos"])
def test_what_hook_and_supervisor_need_is_imported_where_unix_is_not(world: str) -> None:
    done = python(world + IMPORT_ALL, str(PROJECT), *present())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "plain", ["import fcntl", "import os; os.O_NOFOLLOW", "import os; os.geteuid()", "import select; select.poll()"]
)
def test_the_fake_would_notice(plain: str) -> None:
    done = python(f"{AS_WINDOWS}\n{plain}")
    assert done.returncode == 1
    assert "Error" in done.stderr


def sources() -> list[Path]:
    """Every module but those that Linux alone runs."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name != "containment"]


def at_import(tree: ast.Module) -> list[ast.AST]:
    """What is run when a module is imported: everything outside functions and platform branches."""
    found: list[ast.AST] = []
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.If)):
            pending += ast.iter_child_nodes(node)
    return found


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_imports_what_unix_alone_has(path: Path) -> None:
    """Those that a test here cannot import without their libraries are read instead."""
    tree = ast.parse(path.read_text())
    imported = {alias.name for node in at_import(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in at_import(tree) if isinstance(node, ast.ImportFrom)}
    assert imported & {*NO_WINDOWS_MODULES, "pty", "tty"} == set()


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_flags_that_a_system_may_lack_come_from_one_place(path: Path) -> None:
    if path.name in SETTLED:
        return
    named = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    assert named & FLAGS == set()


# What Linux alone runs: O_PATH is looked for before it is used.
ON_LINUX = {"cursor.py": {"open"}}
BY_FOLDER = {"dir_fd", "src_dir_fd", "dst_dir_fd"}
ASKED_OF_AT = {"pread", "pwrite", "statvfs"}


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_takes_a_folder_s_descriptor_is_asked_of_at(path: Path) -> None:
    """`system.at` is os itself where folders have descriptors; os's own would fail on Windows."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "os":
            takes_folder = not BY_FOLDER.isdisjoint({str(word.arg) for word in node.keywords})
            if takes_folder or node.func.attr in ASKED_OF_AT:
                found.add(node.func.attr)
    assert found == ON_LINUX.get(str(path.relative_to(PACKAGE)), set())


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_folder_is_opened_by_at_alone(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "os.open" and path.name not in ON_LINUX:
            assert "FOLDER" not in ast.unparse(node)
            assert "DIRECTORY" not in ast.unparse(node)


# -- what Windows has instead, as far as it is plain Python


def test_only_an_exe_in_an_absolute_folder_is_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch file would have its arguments read by cmd.exe; a relative folder, or none, is one of the tree."""
    for folder, name in (("batch", "git.bat"), ("tree", "git.exe"), ("right", "git.exe")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).touch()
    monkeypatch.chdir(tmp_path / "tree")
    path = os.pathsep.join(("", ".", str(tmp_path / "batch"), str(tmp_path / "right")))
    found = str(tmp_path / "right" / "git.exe")
    assert windows.find_program("git", path) == windows.find_program("git.exe", path) == found
    assert windows.find_program(found, "") == found
    assert windows.find_program("git.exe", ".") is None


def test_a_program_gets_the_root_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYSTEMROOT", "R")
    assert windows.with_system({"A": "1"}) == {"SYSTEMROOT": "R", "A": "1"}
    assert windows.with_system({"SYSTEMROOT": "S"}) == {"SYSTEMROOT": "S"}
    monkeypatch.delenv("SYSTEMROOT")
    assert windows.with_system({"A": "1"}) == {"A": "1"}
