"""The private index of a worktree, in which snapshots are made; kept between them, so that nothing is hashed twice.

`index.lock` of the user's repository is never taken. In `<git common dir>/orch/worktrees/<name>/` are `lock`; `seed`,
an untouched copy of the user's index, which says what is tracked; `index`, the seed with all that differs in the work
tree put in; and `known`, without which the two count for nothing. `known` goes before the index is changed and comes
back when the tree is written, so a snapshot that was killed leaves none.
"""

from __future__ import annotations

import errno
import os
import time

from git_orch import atomic, locks, system
from git_orch.git import encode, run_both, split_z
from git_orch.key import digest
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

    from git_orch.git import Git
    from git_orch.layout import Layout
    from git_orch.store import Store

    Words = tuple[str, ...]

# The store's gc takes after two hours what no ref reaches, and only this index reaches what it has hashed.
KEPT_S = 3600.0
GIT_TIMEOUT_S = 600.0
LATE = "not hashed in time"
UNREADABLE = "unreadable"
REMOVED = "D"
SUBMODULE = "S"  # ours: a submodule's commit is another
LINK_REMOVED = "L"  # ours: a submodule's folder is gone
TYPE_CHANGED = "T"
UNMERGED = "U"
# Objects of a snapshot live for hours: packing them is gc's work, not the hook's. The index is a cache; git 2.40 and
# newer can do without its checksum, which is half of what it costs to write, and no git checks it when it reads.
_FAST = ("core.untrackedCache=false", "core.looseCompression=0", "index.skipHash=true")
_STALE_S = 3600.0
_LISTED: Words = ("ls-files", "-o", "-z", "--exclude-standard")
_CHANGED: Words = ("diff-files", "-z", "--raw", "--ignore-submodules=dirty")
_UPDATE: Words = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
_FORGET: Words = ("update-index", "--force-remove", "-z", "--stdin")
_ENTRIES: Words = ("update-index", "--add", "--replace", "-z", "--index-info")
# What has nothing to do with the path at hand: without it, every path would be tried and named one by one.
_HOPELESS = (
    *(os.strerror(number).encode() for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)),
    b"insufficient permission for adding an object",
    b"Unable to write new index file",
)


class Seen(Record):
    """The work tree at one moment. Paths are as git has them, relative to the top.

    `changed`: paths that differ from the private index, with git's letter; `untracked`: the paths that are not in the
    user's index and that no rule ignores, an embedded repository with a slash at its end; `unreadable` and `closed`:
    tracked paths, and folders, that git could not look at, with the reason.
    """

    changed: dict[bytes, str]
    untracked: list[bytes]
    unreadable: dict[bytes, str]
    closed: dict[bytes, str]


def folder(layout: Layout) -> str:
    """The folder of a worktree's own data, the same for all that look at this worktree."""
    return os.path.join(layout.durable, "worktrees", digest(layout.git_dir)[:16])


class Known(Record):
    """What the kept index is: made of `seed` (see `_seed_now`) at that time, it stands for a tree.

    `extras` are the untracked paths that are in it. `absent` are paths, tracked or among the extras, that may not be:
    should they come back to the work tree, git would tell of no change, for this index does not have them.
    """

    seed: str
    seeded_at: float
    tree_id: str = ""
    extras: frozenset[bytes] = frozenset()
    absent: frozenset[bytes] = frozenset()


class PrivateIndex:
    """A context in which nobody else uses the same private index.

    Where another snapshot of the same worktree is under way, this one works on an index of its own, gone at the end.
    """

    def __init__(self, layout: Layout, store: Store, env: Mapping[str, str]) -> None:
        self._layout = layout
        self._store = store
        self._shared = folder(layout)
        os.makedirs(self._shared, mode=0o700, exist_ok=True)
        self._lock_fd = locks.open_lockable(os.path.join(self._shared, "lock"), os.O_CREAT)
        try:
            self._own = not locks.exclusive(self._lock_fd)
        except OSError:  # a file system without locks
            self._own = True
        self._folder = _scratch_folder(self._shared) if self._own else self._shared
        git = layout.git(env).replace(objects=store.objects, config=_FAST)
        self._git: Git = git.replace(index=self._path("index"))
        self._seed_git: Git = git.replace(index=self._path("seed"))
        self.known = Known(seed="", seeded_at=0.0)
        self._changing = False

    def __enter__(self) -> PrivateIndex:
        try:
            if not self._own:
                _remove(self._path("index.lock"))  # of a snapshot that was killed: nobody writes, the lock is ours
                _remove_stale(self._shared)
            if not self._recall():
                self.reseed()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._own:
            _remove_folder(self._folder)
        os.close(self._lock_fd)

    # -- what it is made of

    def reseed(self) -> None:
        """The private index is the user's of this moment, and stands for no tree yet."""
        self._change()
        self.known = Known(seed=self._seed_now(), seeded_at=time.time())
        copy_index(self._layout.index, self._path("seed"))
        _remove(self._path("index"))
        _share(self._path("seed"), self._path("index"))

    def _recall(self) -> bool:
        """Whether the kept index may be used; then it is known what it is."""
        if self._own:
            return False
        known = _parse(atomic.read(self._path("known")) or b"")
        if known is None or known.seed != self._seed_now() or not 0 <= time.time() - known.seeded_at < KEPT_S:
            return False
        self.known = known
        return True

    def _seed_now(self) -> str:
        """What the index depends on.

        The user's index; the settings and attributes by which files are hashed; the objects that it names, which the
        user's gc or a new store would take away.
        """
        place = self._layout
        files = (
            place.index,
            os.path.join(place.common_dir, "config"),
            os.path.join(place.git_dir, "config.worktree"),
            os.path.join(place.common_dir, "info", "attributes"),
            os.path.join(place.objects, "pack"),
            os.path.join(self._store.path, "HEAD"),
        )
        return " ".join(map(mark, files))

    # -- looking

    def look(self, *, timeout_s: float = GIT_TIMEOUT_S) -> Seen:
        """The work tree as it is at this moment.

        Raises:
            GitError: git could not look at all.
        """
        changed, listed = run_both((self._git, _CHANGED), (self._seed_git, _LISTED), timeout_s=timeout_s)
        return Seen(
            changed=_letters(changed.stdout),
            untracked=split_z(listed.stdout),
            unreadable=self._unreadable() if changed.stderr else {},
            closed=_closed_folders(listed.stderr),
        )

    def _unreadable(self) -> dict[bytes, str]:
        """Tracked paths that cannot even be looked at: git takes them for unchanged."""
        root = encode(self._layout.worktree)
        found = {}
        for path in split_z(self._seed_git.run("ls-files", "-z")):
            try:
                os.lstat(os.path.join(root, path))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                found[path] = f"unreadable: {error.strerror}"
        return found

    # -- changing

    def add(self, paths: Sequence[bytes], until: float = 0.0) -> dict[bytes, str]:
        """The paths are in the index as the work tree has them, and gone from it where it has them no more.

        Gives those that never went in, with the reason; with `LATE` those that were not reached before `until` (a
        monotonic time; 0: there is none).

        Raises:
            GitError: nothing can be added at all: the disk is full, the store cannot be written.
        """
        self._change()
        return self._add(paths, until)

    def _add(self, paths: Sequence[bytes], until: float) -> dict[bytes, str]:
        lost = self._try(paths, until)
        if len(lost) < len(paths) or not paths or LATE in lost.values():
            return lost
        if shut := self._shut(paths):
            return {**shut, **self._add([path for path in paths if path not in shut], until)}
        if len(paths) == 1:
            return self._try(paths, until)  # once more: it may have changed under our hands
        middle = len(paths) // 2
        return {**self._add(paths[:middle], until), **self._add(paths[middle:], until)}

    def _shut(self, paths: Sequence[bytes]) -> dict[bytes, str]:
        """The files among the paths that cannot be read, found without halving."""
        root = encode(self._layout.worktree)
        whole = ((path, os.path.join(root, path)) for path in paths)
        return {path: UNREADABLE for path, at in whole if os.path.isfile(at) and not os.access(at, os.R_OK)}

    def _try(self, paths: Sequence[bytes], until: float) -> dict[bytes, str]:
        """All of the paths are in the index, or none, then with the reason."""
        if not paths:
            return {}
        left = until - time.monotonic() if until else GIT_TIMEOUT_S
        if left <= 0:
            return dict.fromkeys(paths, LATE)
        done = self._git.attempt(*_UPDATE, stdin=_list_z(paths), timeout_s=left)
        if done.code == 0:
            return _ignored(paths, done.stderr)
        _remove(self._path("index.lock"))
        if done.timed_out:
            return dict.fromkeys(paths, LATE)
        for line in done.stderr.splitlines():
            if any(sign in line for sign in _HOPELESS):
                raise self._git.failure(_UPDATE, done.replace(stderr=line))
        return dict.fromkeys(paths, _reason(done.stderr))

    def forget(self, paths: Iterable[bytes]) -> None:
        """The paths are not in the index, whatever the work tree has."""
        listed = _list_z(paths)
        if listed:
            self._change()
            self._git.run(*_FORGET, stdin=listed)

    def settle(self, unmerged: Iterable[bytes]) -> None:
        """The paths are merged, with our side's entry (else the base's, else theirs), as `git add` looks at them.

        What is then added from the work tree keeps that entry's mode where the file system has none; what cannot be
        added leaves an index that a tree can be made of.
        """
        wanted = frozenset(unmerged)
        if not wanted:
            return
        self._change()
        best: dict[bytes, tuple[int, bytes]] = {}
        for item in split_z(self._git.run("ls-files", "-u", "-z")):
            head, _, path = item.partition(b"\t")
            mode, oid, stage = head.split()
            rank = (b"2", b"1", b"3").index(stage)
            if path in wanted and (path not in best or rank < best[path][0]):
                best[path] = (rank, b"%s %s 0\t%s" % (mode, oid, path))
        self._git.run(*_ENTRIES, stdin=_list_z(entry for _, entry in best.values()))

    def write_tree(self) -> str:
        """The tree-id of the index."""
        self._change()
        return self._git.line("write-tree", "--missing-ok")

    def keep(self, known: Known) -> None:
        """The index is kept for the next snapshot, as what is given."""
        if not self._own and (self._changing or known != self.known):
            atomic.write(self._path("known"), _dump(known))
        self.known, self._changing = known, False

    def clock_ns(self) -> int:
        """Now, by the clock that gives files here their times, which need not be ours."""
        os.utime(self._lock_fd)
        return os.fstat(self._lock_fd).st_ctime_ns

    def mark(self) -> str:
        """What changes whenever the index does."""
        return mark(self._path("index"))

    def _change(self) -> None:
        """The index may be changed: it is known no more what it stands for."""
        if not self._changing:
            _remove(self._path("known"))
            self._changing = True

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)


class IndexCopy:
    """A context with a copy of the user's index, for what git would otherwise do to the user's own."""

    def __init__(self, layout: Layout) -> None:
        shared = folder(layout)
        os.makedirs(shared, mode=0o700, exist_ok=True)
        self._real = layout.index
        self._folder = _scratch_folder(shared)
        self.path = os.path.join(self._folder, "index")

    def __enter__(self) -> IndexCopy:
        copy_index(self._real, self.path)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _remove_folder(self._folder)


def copy_index(real: str, copy: str) -> None:
    """`copy` is as `real` at one moment, with its time; it is not there if `real` is not."""
    try:
        fd = os.open(real, os.O_RDONLY | system.CLOEXEC)
    except FileNotFoundError:
        _remove(copy)
        return
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        atomic.write(copy, file.read())
    # git trusts an entry's stat data only where it is older than the index file: a later time here would make it
    # believe a file that was edited in the same instant in which the user's index was written.
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))


def _share(seed: str, index: str) -> None:
    """`index` is as `seed`. git writes an index anew and renames it, so the seed stays as it is all the same."""
    try:
        os.link(seed, index)
    except OSError:  # there is no seed, or a file system without links
        copy_index(seed, index)


def mark(path: str | bytes, *, dir_fd: int | None = None) -> str:
    """What changes whenever the file does, as far as its stat data tells; "none" where there is no file."""
    try:
        status = system.at.stat(path, dir_fd=dir_fd)
    except OSError:
        return "none"
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


def _dump(known: Known) -> bytes:
    head = (known.seed, repr(known.seeded_at), known.tree_id, str(len(known.extras)))
    return _list_z((*(word.encode("ascii") for word in head), *known.extras, *known.absent))


def _parse(raw: bytes) -> Known | None:
    words = split_z(raw)
    try:
        seed, seeded_at, tree_id, extras = (word.decode("ascii") for word in words[:4])
        end = 4 + int(extras)
        return Known(
            seed=seed,
            seeded_at=float(seeded_at),
            tree_id=tree_id,
            extras=frozenset(words[4:end]),
            absent=frozenset(words[end:]),
        )
    except ValueError:
        return None


def _letters(raw: bytes) -> dict[bytes, str]:
    """The paths of `diff-files --raw -z` with their letters; an unmerged one comes twice and counts as unmerged."""
    items = iter(split_z(raw))
    found: dict[bytes, str] = {}
    for head, path in zip(items, items, strict=True):
        letter = head[-1:].decode("ascii")
        if head.startswith(b":160000"):
            letter = LINK_REMOVED if letter == REMOVED else SUBMODULE
        found.setdefault(path, letter)
    return found


def _closed_folders(stderr: bytes) -> dict[bytes, str]:
    """The folders that `ls-files` says it could not open; it cuts what it says after 4 kB."""
    found = {}
    for said in stderr.split(b"warning: could not open directory '")[1:]:
        path, end, rest = said.partition(b"': ")
        why = ": " + rest.partition(b"\n")[0].decode("utf-8", "replace") if end else ""
        found[path if end else path.rpartition(b"/")[0] + b"/"] = f"unreadable folder{why}"
    return found


def _ignored(paths: Sequence[bytes], stderr: bytes) -> dict[bytes, str]:
    """The paths whose names git takes for dangerous (`.git` in disguise): it leaves them out and says all is well."""
    if b"Ignoring path " not in stderr:
        return {}
    return {path: "git takes no such name" for path in paths if b"Ignoring path " + path + b"\n" in stderr}


def _reason(stderr: bytes) -> str:
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if not line.startswith("fatal: Unable to")]
    said = lines[-1].removeprefix("error: ").removeprefix("fatal: ")[:120] if lines else "git gave no reason"
    return f"cannot be added: {said}"


def _list_z(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)


def _scratch_folder(shared: str) -> str:
    path = os.path.join(shared, f"{os.getpid()}-{os.urandom(4).hex()}")
    os.mkdir(path, 0o700)
    return path


def _remove_stale(shared: str) -> None:
    """The copies of snapshots that were killed are gone once they are an hour old."""
    for name in os.listdir(shared):
        path = os.path.join(shared, name)
        if "-" in name and os.path.isdir(path) and os.lstat(path).st_mtime < time.time() - _STALE_S:
            _remove_folder(path)


def _remove_folder(path: str) -> None:
    try:
        for name in os.listdir(path):
            _remove(os.path.join(path, name))
        os.rmdir(path)
    except FileNotFoundError:
        return


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
