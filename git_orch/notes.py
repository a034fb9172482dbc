"""Verdicts as git notes, by choice (`orch.notes`): one line a verdict on the commit that was reviewed.

`refs/notes/orch`; a line says the verdict, who gave it, both trees, the patch-id and the run. Lines are sorted and each
is there once, so that `git notes merge -s cat_sort_uniq` puts two clones' together. Of a commit that was amended or
rebased the notes of commits with the same patch-id are looked up when they are shown; nothing is written anew.

A note is shown, and never lets anything through a gate: anybody can write one.
"""

from __future__ import annotations

import os

from git_orch import locks, system
from git_orch.errors import GitError
from git_orch.git import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from git_orch.git import Git
    from git_orch.store import Store

REF = "refs/notes/orch"
_MOST = 2000  # the newest lines that are looked through for a patch-id
_TRIES = 5
_WHO = ("user.name=git-orch", "user.email=git-orch@localhost")


def line(verdict: str, reviewers: Iterable[str], *, tree: str, base: str, patch: str, run_id: str) -> str:
    """One verdict, as its note has it."""
    return f"{verdict} by {','.join(reviewers)} tree={tree} base={base} patch={patch or '-'} run={run_id}"


def add(git: Git, store: Store, durable: str, commit: str, said: str) -> None:
    """The commit's note has the line, whatever others write to the notes at the same time.

    `git notes` moves the ref from wherever it is by then, and a merge of somebody's in between would be lost. So the
    notes are written under a ref of the store's, and the user's moves only from where it was read.

    Raises:
        GitError: git could not write it.
        OSError: the lock cannot be made.
    """
    objects = git.line("rev-parse", "--path-format=absolute", "--git-path", "objects")
    aside = store.git(config=_WHO).replace(objects=objects)
    fd = os.open(os.path.join(durable, "notes.lock"), os.O_RDWR | os.O_CREAT | system.CLOEXEC, 0o600)
    try:
        locks.exclusive(fd, wait=True)
        for left in reversed(range(_TRIES)):
            try:
                _add(git, aside, commit, said)
            except GitError:
                if not left:
                    raise
            else:
                return
    finally:
        aside.attempt("update-ref", "-d", REF)  # its objects are the user's, whose gc asks nobody here
        os.close(fd)


def _add(git: Git, aside: Git, commit: str, said: str) -> None:
    before = _tip(git)
    aside.run("update-ref", *((REF, before) if before else ("-d", REF)))
    text = encode("".join(f"{each}\n" for each in sorted({*of(aside, commit), said})))
    aside.run("notes", f"--ref={REF}", "add", "--force", "--file=-", commit, stdin=text)
    git.run("update-ref", "-m", "notes: git-orch", REF, _tip(aside), before or "0" * len(commit))


def _tip(git: Git) -> str:
    done = git.attempt("rev-parse", "--quiet", "--verify", REF)
    return decode(done.stdout).strip() if done.code == 0 else ""


def of(git: Git, commit: str) -> list[str]:
    """The lines of the commit's own note."""
    done = git.attempt("notes", f"--ref={REF}", "show", commit)
    return decode(done.stdout).splitlines() if done.code == 0 else []


def carried(git: Git, store: Store, commit: str) -> list[tuple[str, str]]:
    """The lines that other commits with the same patch have, each with its commit."""
    patch = patch_id(store, commit)
    if not patch:
        return []
    listed = [entry.split() for entry in decode(git.attempt("notes", f"--ref={REF}", "list").stdout).splitlines()]
    found = []
    for blob, noted in listed[:_MOST]:
        if noted != commit:
            lines = decode(git.attempt("cat-file", "blob", blob).stdout).splitlines()
            found += [(noted, each) for each in lines if f" patch={patch} " in each]
    return found


def patch_id(store: Store, commit: str) -> str:
    """What the commit changes, as a name that an amended message or another base leaves as it is; "" for a merge.

    Asked in the store, where nobody's attributes make a file binary, or a diff a program's.
    """
    git = store.git()
    words = ("-p", "--root", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index", "--no-renames", "-U3")
    patch = git.run("diff-tree", *words, commit)
    said = decode(git.run("patch-id", "--stable", stdin=patch)).split()
    return said[0] if said else ""
