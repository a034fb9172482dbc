"""Verdicts as git notes, by choice (`orch.notes`): one line a verdict on the commit that was reviewed.

`refs/notes/orch`; a line says the verdict, who gave it, both trees, the patch-id and the run. Lines are sorted and each
is there once, so that `git notes merge -s cat_sort_uniq` puts two clones' together. Of a commit that was amended or
rebased the notes of commits with the same patch-id are looked up when they are shown; nothing is written anew.

A note is shown, and never lets anything through a gate: anybody can write one.
"""

from __future__ import annotations

import os

from git_orch import locks, system
from git_orch.git import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from git_orch.git import Git

REF = "refs/notes/orch"
_MOST = 2000  # the newest lines that are looked through for a patch-id
_WHO = ("user.name=git-orch", "user.email=git-orch@localhost")


def line(verdict: str, reviewers: Iterable[str], *, tree: str, base: str, patch: str, run_id: str) -> str:
    """One verdict, as its note has it."""
    return f"{verdict} by {','.join(reviewers)} tree={tree} base={base} patch={patch or '-'} run={run_id}"


def add(git: Git, durable: str, commit: str, said: str) -> None:
    """The commit's note has the line, whatever other supervisors add at the same time.

    Raises:
        GitError: git could not write it.
        OSError: the lock cannot be made.
    """
    fd = os.open(os.path.join(durable, "notes.lock"), os.O_RDWR | os.O_CREAT | system.CLOEXEC, 0o600)
    try:
        locks.exclusive(fd, wait=True)
        lines = sorted({*of(git, commit), said})
        text = encode("".join(f"{each}\n" for each in lines))
        writer = git.replace(config=(*git.config, *_WHO))
        writer.run("notes", f"--ref={REF}", "add", "--force", "--file=-", commit, stdin=text)
    finally:
        os.close(fd)


def of(git: Git, commit: str) -> list[str]:
    """The lines of the commit's own note."""
    done = git.attempt("notes", f"--ref={REF}", "show", commit)
    return decode(done.stdout).splitlines() if done.code == 0 else []


def carried(git: Git, commit: str) -> list[tuple[str, str]]:
    """The lines that other commits with the same patch have, each with its commit."""
    patch = patch_id(git, commit)
    if not patch:
        return []
    listed = [entry.split() for entry in decode(git.attempt("notes", f"--ref={REF}", "list").stdout).splitlines()]
    found = []
    for blob, noted in listed[:_MOST]:
        if noted != commit:
            lines = decode(git.attempt("cat-file", "blob", blob).stdout).splitlines()
            found += [(noted, each) for each in lines if f" patch={patch} " in each]
    return found


def patch_id(git: Git, commit: str) -> str:
    """What the commit changes, as a name that an amended message or another base leaves as it is; "" for a merge."""
    words = ("diff-tree", "-p", "--root", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index", commit)
    patch = git.run(*words)
    said = decode(git.run("patch-id", "--stable", stdin=patch)).split()
    return said[0] if said else ""
