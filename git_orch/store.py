"""The scratch store: a bare repository of ours that sees every object of the user's, and takes all of ours.

Snapshots, trees and evidence live here; the user's object store gets nothing. It has no attributes but its own, which
switch off every conversion, so that what comes out is what went in, byte for byte.

Refs: `refs/live/<run-id>` names the tree of a run while it lives; `refs/runs/<run-id>` its evidence afterwards. A ref
must not outlive its run if it reaches an object that only the user's repository holds: after the user's
`gc --prune=now` every gc of the store would fail. Evidence is therefore packed into the store, in packs marked `.keep`:
a plain repack drops what the alternate holds as well.
"""

from __future__ import annotations

import os
import time

from git_orch import atomic, locks, promisor, system
from git_orch.errors import EnvironmentProblem, GitError
from git_orch.git import Git, decode, encode, run_both, split_z
from git_orch.model import Record
from git_orch.removal import remove_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from git_orch.layout import Layout

# `!diff`, not `-diff`: unset would make every file binary, unspecified leaves it to its content.
_ATTRIBUTES = b"* -export-ignore -export-subst !filter -ident -text !eol !crlf !working-tree-encoding !diff !merge\n"
_NEUTRAL = (
    "core.attributesFile=" + os.devnull,
    "core.autocrlf=false",
    "core.symlinks=true",
    "core.fileMode=true",
    "core.ignoreCase=false",
    "core.sparseCheckout=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "tar.umask=0022",
    "diff.ignoreSubmodules=none",
    "diff.suppressBlankEmpty=false",
)
_GC = ("gc.writeCommitGraph=false", "repack.writeBitmaps=false", "gc.rerereResolved=0")
_RAW = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
_PATCH = ("-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")
_ARGUMENTS_BYTES = 96 << 10
_LOCK = "orch.lock"
_SEEN = "orch.seen"
_STALE_S = 3600.0
_LOOSE = 8
GC_TIMEOUT_S = 600.0
FETCH_TIMEOUT_S = 120.0


class ObjectsMissing(GitError):
    """Objects of a tree are neither here nor to be had; `oids` are some of them."""

    code = "objects-missing"

    def __init__(self, oids: Sequence[str], said: str) -> None:
        super().__init__(("fetch",), 128, said)
        why = next((line for line in said.splitlines() if line.startswith("fatal: ")), f"fatal: {oids[0]}")
        self.oids = tuple(oids)
        self.message = f"{len(oids)} objects are missing and cannot be fetched: {why.removeprefix('fatal: ')}"
        self.args = (self.message,)
        self.hint = "go online, or `git fetch --refetch`"


class Changed(Record):
    """A path that two trees have differently: A, D, M or T, as git says it. An absent side has zeros for both."""

    path: str
    old_mode: str
    new_mode: str
    old_oid: str
    new_oid: str
    status: str


class Entry(Record):
    """A path of a tree; `kind` is blob or commit (a gitlink), `size` -1 where there is none or it was not asked for."""

    path: str
    mode: str
    kind: str
    oid: str
    size: int = -1


class Evidence(Record):
    """Tree-ids that hold the changed paths of a run alone: as they were in its base, as they were in its tree."""

    base: str
    tree: str


class Store(Record):
    """The store of one repository."""

    path: str
    object_format: str
    env: dict[str, str]

    @property
    def promisor(self) -> str:
        """The remote that a partial clone fetches from; empty where the clone is whole."""
        return decode(atomic.read(os.path.join(self.path, _SEEN)) or b"").partition("\n")[2].rstrip("\n")

    @property
    def objects(self) -> str:
        """The folder that takes new objects: GIT_OBJECT_DIRECTORY of a snapshot."""
        return os.path.join(self.path, "objects")

    def git(self, *, index: str = "", work_tree: str = "", config: tuple[str, ...] = ()) -> Git:
        """git, looking at the store; paths are absolute."""
        return Git(
            env=self.env,
            cwd=self.path,
            git_dir=self.path,
            work_tree=work_tree,
            index=index,
            config=(*_NEUTRAL, *config),
        )

    def reader(self) -> Git:
        """git, looking at the store to read a whole tree. It must not write: that would go into the user's objects.

        Most of a tree is the user's. Loose objects that are looked for in the store first, and missed there, cost a
        third of the time of an archive, and long paths to them a tenth; so the user's come first here, from within.
        """
        git = self.git()
        raw = decode(atomic.read(os.path.join(self.objects, "info", "alternates")) or b"")
        theirs = os.path.normpath(os.path.join(self.objects, raw.partition("\n")[0]))
        if self.promisor or not raw or os.pathsep in self.objects or '"' in raw:
            return git  # git itself would fetch into them; or the list is one that git reads otherwise
        return git.replace(cwd=theirs, objects=".", alternate=self.objects)

    # -- looking

    def changed(self, base: str, tree: str, pathspec: Sequence[str] = ()) -> list[Changed]:
        """The paths in which two trees differ, in git's order; a rename is a D and an A.

        Args:
            pathspec: only what one of these matches, with all of git's magic, from the top of the tree.
        """
        return _all_changed(self.git().run(*_RAW, base, tree, "--", *map(encode, pathspec)))

    def difference(self, base: str, tree: str, pathspec: Sequence[str] = ()) -> tuple[list[Changed], bytes]:
        """The paths in which two trees differ, and the patch of these very paths; in the time of the slower one."""
        if pathspec:
            changed = self.changed(base, tree, pathspec)
            return changed, self.patch(base, tree, [change.path for change in changed])
        raw, patch = run_both(
            (self.git(), (*_RAW, base, tree)), (self.git(), ("diff-tree", "-r", *_PATCH, base, tree)), timeout_s=900.0
        )
        return _all_changed(raw.stdout), patch.stdout

    def patch(self, base: str, tree: str, paths: Sequence[str] | None = None) -> bytes:
        """The difference of two trees, as `git apply` takes it; of these very paths alone where some are given."""
        if paths is None:
            return self._patch(base, tree, [])
        return b"".join(self._patch(base, tree, part) for part in _in_parts(paths))

    def blob(self, oid: str) -> bytes:
        """The content of a blob.

        Raises:
            GitError: there is none.
        """
        return self.git().run("cat-file", "blob", oid)

    def entries(self, tree: str, *, sizes: bool = False) -> list[Entry]:
        """All paths of a tree below its folders."""
        return [_entry(item) for item in split_z(self.listing(tree, sizes=sizes))]

    def listing(self, tree: str, *, sizes: bool = True) -> bytes:
        """The same as git prints it: `MODE KIND OID [SIZE]<tab>PATH<nul>` a path."""
        return self.git().run("ls-tree", "-r", "-z", "--full-tree", *(["-l"] if sizes else []), tree)

    # -- objects that are elsewhere

    def fetch_missing(self, tree: str) -> int:
        """Every object of the tree is here; gives how many had to be fetched from the promisor remote.

        git itself would fetch them one by one.

        Raises:
            ObjectsMissing: they cannot be had: offline, or no partial clone and yet not whole.
        """
        missing = self.missing(tree)
        if not missing:
            return 0
        remote = self.promisor
        if not remote:
            raise ObjectsMissing(missing, "")
        git = self.git(config=("fetch.negotiationAlgorithm=noop", "fetch.writeCommitGraph=false"))
        words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no")
        wanted = "".join(f"{oid}\n" for oid in missing).encode("ascii")
        done = git.attempt(*words, "--filter=blob:none", "--stdin", remote, stdin=wanted, timeout_s=FETCH_TIMEOUT_S)
        if done.code != 0:
            raise ObjectsMissing(missing, decode(done.stderr))
        return len(missing)

    def missing(self, tree: str) -> list[str]:
        """The objects of a tree that neither the store nor the repository holds; nothing is fetched."""
        done = self.git().attempt("rev-list", "--objects", "--missing=print", "--no-object-names", tree)
        if done.code != 0:
            return [tree]
        return [line[1:].decode("ascii") for line in done.stdout.split(b"\n") if line.startswith(b"?")]

    # -- what is kept

    def hold(self, run_id: str, tree_id: str) -> None:
        """The store's own gc leaves the tree alone for as long as the run lives. Costs no git call."""
        self._write_ref("live", run_id, tree_id)

    def keep_evidence(self, run_id: str, base: str, tree: str) -> None:
        """Both sides of the difference are in the store itself, and the tree as a whole is let go.

        Raises:
            GitError: objects are missing; the tree is let go all the same, or no gc of the store would work again.
        """
        try:
            self.pack_evidence(run_id, base, tree)
        finally:
            self.let_go(run_id)

    def pack_evidence(self, run_id: str, base: str, tree: str, changed: list[Changed] | None = None) -> None:
        """Both sides of the difference are in the store itself, whatever becomes of the user's objects.

        Args:
            changed: the whole difference, where it is known already.
        """
        changed = self.changed(base, tree) if changed is None else changed
        if not changed:
            return
        lock = self._open_lock()
        try:
            locks.shared(lock, wait=True)
            evidence = self._evidence_tree(run_id, changed)
            self._keep_pack([evidence])
            self._write_ref("runs", run_id, evidence)
        finally:
            os.close(lock)

    def let_go(self, run_id: str) -> None:
        """The tree of the run is held no more. Costs no git call, unless gc has packed the ref meanwhile."""
        name = f"refs/live/{run_id}"
        if name.encode("ascii") in (atomic.read(os.path.join(self.path, "packed-refs")) or b""):
            self._delete_refs([name])
        else:
            _unlink(os.path.join(self.path, name))

    def evidence(self, run_id: str) -> Evidence | None:
        """What was kept of a run, or None where nothing was (no difference, or released)."""
        done = self.git().attempt("ls-tree", "-z", f"refs/runs/{run_id}")
        if done.code != 0:
            return None
        sides = {entry.path: entry.oid for entry in map(_entry, split_z(done.stdout))}
        empty = self.git().line("hash-object", "-t", "tree", os.devnull)
        return Evidence(base=sides.get("base", empty), tree=sides.get("tree", empty))

    def release(self, *run_ids: str) -> None:
        """Nothing is kept for these runs any more; the next gc takes it away."""
        self._delete_refs([f"refs/{kind}/{run_id}" for run_id in run_ids for kind in ("live", "runs")])

    def is_loose(self) -> bool:
        """Whether so many objects lie about singly that packing pays; one folder of the 256 is counted, as git does."""
        try:
            return len(os.listdir(os.path.join(self.objects, "17"))) > _LOOSE
        except OSError:
            return False

    def gc(self, prune_expire: str = "2.hours.ago") -> str:
        """The store is packed, and what nothing has reached for that long is gone; else gives the reason.

        The expiry is one of hours, for a snapshot's objects are reached by no ref until its run is published.
        """
        lock = self._open_lock()
        try:
            if not locks.exclusive(lock):
                return "another process is at it"
            self._gather_evidence()
            self.git(config=_GC).run("gc", "--quiet", f"--prune={prune_expire}", timeout_s=GC_TIMEOUT_S)
            self._remove_stale()
        except GitError as error:
            return error.message
        finally:
            os.close(lock)
        return ""

    # -- inside

    def _patch(self, base: str, tree: str, paths: Sequence[str]) -> bytes:
        where: list[str | bytes] = ["--", *map(encode, paths)] if paths else []
        return self.git().run("--literal-pathspecs", "diff-tree", "-r", *_PATCH, base, tree, *where)

    def _write_ref(self, kind: str, run_id: str, oid: str) -> None:
        folder = os.path.join(self.path, "refs", kind)
        os.makedirs(folder, exist_ok=True)
        atomic.write(os.path.join(folder, run_id), oid.encode("ascii") + b"\n", mode=0o644)

    def _delete_refs(self, names: Iterable[str]) -> None:
        orders = "".join(f"delete {name}\n" for name in names)
        if orders:
            self.git().run("update-ref", "--no-deref", "--stdin", stdin=orders.encode("ascii"))

    def _open_lock(self) -> int:
        """A descriptor of the lock between evidence and gc."""
        return locks.open_lockable(os.path.join(self.path, _LOCK), os.O_CREAT)

    def _evidence_tree(self, run_id: str, changed: list[Changed]) -> str:
        """A tree with `base/PATH` and `tree/PATH` for each side of a change that is there."""
        index = os.path.join(self.path, f"evidence.{run_id}.index")
        git = self.git(index=index)
        try:
            git.run("update-index", "-z", "--index-info", stdin=b"".join(_index_info(changed)))
            return git.line("write-tree", "--missing-ok")
        finally:
            _unlink(index)

    def _keep_pack(self, trees: Sequence[str]) -> str:
        """All that the trees reach is in one pack of the store, which gc leaves alone; gives the pack's hash."""
        folder = os.path.join(self.objects, "pack")
        wanted = "".join(f"{tree}\n" for tree in trees).encode("ascii")
        git = self.git(config=("pack.packSizeLimit=0",))
        words = ("pack-objects", "--revs", "-q", "--delta-base-offset", os.path.join(folder, "pack"))
        name = decode(git.run(*words, stdin=wanted, timeout_s=GC_TIMEOUT_S)).strip()
        atomic.write(os.path.join(folder, f"pack-{name}.keep"), b"evidence of git-orch\n", mode=0o644)
        return name

    def _gather_evidence(self) -> None:
        """The evidence of all runs is in one kept pack; the packs that held it before are gc's to take."""
        folder = os.path.join(self.objects, "pack")
        kept = [name for name in os.listdir(folder) if name.endswith(".keep")]
        trees = decode(self.git().run("for-each-ref", "--format=%(objectname)", "refs/runs/")).split()
        new = f"pack-{self._keep_pack(trees)}.keep" if trees else ""
        for name in kept:
            if name != new:
                _unlink(os.path.join(folder, name))

    def _remove_stale(self) -> None:
        """What a crash left half-made, here and beside the store, is gone once it is an hour old."""
        folder, name = os.path.split(self.path)
        _remove_old(folder, f"{name}.", ".tmp")
        _remove_old(self.path, "evidence.", ".index")


def ensure(layout: Layout, env: Mapping[str, str]) -> Store:
    """The store of the repository, made where there was none; of many that make it at once, one wins.

    Raises:
        EnvironmentProblem: it cannot be written, or is another user's.
    """
    found = open_existing(layout, env)
    if found is None:
        _build(layout, env)
        found = open_existing(layout, env)
    if found is None:
        raise EnvironmentProblem(f"{layout.store} was taken away while it was made", "try again")
    return found


def open_existing(layout: Layout, env: Mapping[str, str]) -> Store | None:
    """The store of the repository, or None where there is none yet. Two stats and a small read, no git call.

    Raises:
        EnvironmentProblem: it is another user's, or not whole.
    """
    seen = atomic.read(os.path.join(layout.store, _SEEN), limit=4096)
    if seen is None:
        if not os.path.lexists(layout.store):
            return None
        raise EnvironmentProblem(f"{layout.store} is not whole", "remove it; a new one is made")
    if os.lstat(layout.store).st_uid != system.uid():
        raise EnvironmentProblem(f"{layout.store} belongs to another user", "git-orch works for one user a clone")
    if decode(seen).partition("\n")[0] != promisor.signature(layout):
        _follow_config(layout.store, layout, env)
    return Store(path=layout.store, object_format=layout.object_format, env=dict(env))


def _build(layout: Layout, env: Mapping[str, str]) -> None:
    """The store is there, made complete under another name and renamed; where somebody was faster, theirs."""
    scratch = f"{layout.store}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        os.makedirs(layout.durable, mode=0o755, exist_ok=True)
        os.mkdir(scratch, 0o700)
        _furnish(scratch, layout, env)
        os.rename(scratch, layout.store)
    except OSError as error:
        if not os.path.lexists(layout.store):
            raise EnvironmentProblem(f"cannot write {layout.durable}: {error.strerror}") from error
    finally:
        remove_path(scratch)


def _furnish(path: str, layout: Layout, env: Mapping[str, str]) -> None:
    """The empty folder is a store."""
    git = Git(env=dict(env), cwd=path, config=("init.defaultRefFormat=files",))
    git.run("init", "--quiet", "--bare", "--template=", f"--object-format={layout.object_format}", ".")
    for name in ("info", "refs/live", "refs/runs"):
        os.makedirs(os.path.join(path, name), exist_ok=True)
    atomic.write(os.path.join(path, "objects/info/alternates"), _alternate(layout), mode=0o644)
    atomic.write(os.path.join(path, "info/attributes"), _ATTRIBUTES, mode=0o644)
    _follow_config(path, layout, env)


def _follow_config(path: str, layout: Layout, env: Mapping[str, str]) -> None:
    """The store promises what the repository's configuration does."""
    signature = promisor.signature(layout)  # before it is read: a change in between is then seen the next time
    given = promisor.settings(layout, env)
    atomic.write(os.path.join(path, "config"), promisor.config_text(layout.object_format, given), mode=0o644)
    atomic.write(os.path.join(path, _SEEN), encode(f"{signature}\n{promisor.remote(given)}\n"), mode=0o644)


def _alternate(layout: Layout) -> bytes:
    """The repository's objects as the store's alternate.

    Relative, so that a clone may be moved or copied, and no sign in its path means anything to the file's format.
    """
    if os.path.join(layout.common_dir, "objects") == layout.objects:
        return b"../../../objects\n"
    raw = encode(layout.objects)
    if raw[:1] in (b'"', b"#"):  # a line may be quoted as C does; `#` begins a comment
        raw = b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
    return raw + b"\n"


def _all_changed(raw: bytes) -> list[Changed]:
    items = iter(split_z(raw))
    return [_changed(head, path) for head, path in zip(items, items, strict=True)]


def _changed(head: bytes, path: bytes) -> Changed:
    old_mode, new_mode, old_oid, new_oid, status = head[1:].decode("ascii").split(" ")
    return Changed(
        path=decode(path),
        old_mode=old_mode,
        new_mode=new_mode,
        old_oid=old_oid,
        new_oid=new_oid,
        status=status,
    )


def _entry(item: bytes) -> Entry:
    head, _, path = item.partition(b"\t")
    mode, kind, oid, *rest = head.decode("ascii").split()
    size = int(rest[0]) if rest and rest[0] != "-" else -1
    return Entry(path=decode(path), mode=mode, kind=kind, oid=oid, size=size)


def _index_info(changed: list[Changed]) -> Iterable[bytes]:
    for change in changed:
        for side, mode, oid in (("base", change.old_mode, change.old_oid), ("tree", change.new_mode, change.new_oid)):
            if int(mode):
                yield encode(f"{mode} {oid}\t{side}/{change.path}\0")


def _in_parts(paths: Sequence[str]) -> Iterable[list[str]]:
    """The paths in parts that fit on a command line."""
    part: list[str] = []
    room = _ARGUMENTS_BYTES
    for path in paths:
        if part and room < len(path):
            yield part
            part, room = [], _ARGUMENTS_BYTES
        part.append(path)
        room -= len(encode(path)) + 9  # the NUL and the pointer
    if part:
        yield part


def _remove_old(folder: str, prefix: str, suffix: str) -> None:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith(prefix) and name.endswith(suffix) and os.lstat(path).st_mtime < time.time() - _STALE_S:
            remove_path(path)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
