"""What becomes of a run's trees when it has ended: removed, or, where a person asked for it, kept beside the records.

`<git common dir>/orch/kept/<run-id>/<reviewer>` holds a tree as its reviewer left it; it goes with the run.
"""

from __future__ import annotations

import os

from git_orch import disposal
from git_orch.removal import remove_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.registry import Intent

_MOVING = ".moving"


def folder(durable: str, run_id: str) -> str:
    """Where the trees of a run are kept, if any are."""
    return os.path.join(durable, "kept", run_id)


def dispose(intent: Intent, key: bytes, *, durable: str, temp_root: str) -> str:
    """Nothing of the run's trees is left in $TEMP, and what is to be kept is; else why not, and nothing was touched.

    Done twice it is as good as once: what a crash has interrupted goes on.
    """
    try:
        disposed = disposal.dispose(temp_root, intent.run_id, key, lambda: _keep(intent, durable, temp_root))
    except OSError as error:
        return f"its tree cannot be kept: {error.strerror or error}"
    return why_not(disposed, temp_root, intent.run_id)


def why_not(disposed: disposal.Disposal, temp_root: str, run_id: str) -> str:
    """Why a run's folder was not touched; empty where it is gone. What is "left" has another name that sweeps see."""
    match disposed:
        case "in-use":
            return f"its tree is in use: {temp_root}/{run_id}"
        case "foreign":
            return f"its tree bears no mark of ours: {temp_root}/{run_id}"
    return ""


def _keep(intent: Intent, durable: str, temp_root: str) -> None:
    """Every tree of the run that is to be kept is in its folder, moved or copied from another disk."""
    if intent.disposition != "preserve":
        return
    kept = folder(durable, intent.run_id)
    for reviewer in intent.reviewers:
        source = os.path.join(temp_root, intent.run_id, reviewer.name, "tree")
        target = os.path.join(kept, reviewer.name)
        if os.path.isdir(source) and not os.path.islink(source) and not os.path.lexists(target):
            os.makedirs(kept, mode=0o700, exist_ok=True)
            _move(source, target)


def _move(source: str, target: str) -> None:
    try:
        os.rename(source, target)
    except OSError:
        import shutil  # another disk, or a folder that may not be written to

        remove_path(target + _MOVING)
        shutil.copytree(source, target + _MOVING, symlinks=True, copy_function=_copy)
        os.rename(target + _MOVING, target)  # what is in $TEMP still goes with the run's folder there


def _copy(source: str, target: str) -> str:
    """One file is copied; FIFOs, sockets and devices, which a reviewer may have left, are not."""
    import shutil

    return shutil.copy2(source, target) if os.path.isfile(source) else target
