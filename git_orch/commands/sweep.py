"""`git orch sweep`: what dead supervisors left behind is taken away."""

from __future__ import annotations

import os

from git_orch import reaper, registry, retention
from git_orch.commands import history, speaking
from git_orch.commands.looking import look
from git_orch.errors import EnvironmentProblem
from git_orch.formats.terminal import shown
from git_orch.formats.words import plural
from git_orch.model import SCHEMA_VERSION
from git_orch.reaper import Reaped, Swept
from git_orch.registry import Held, Refused
from git_orch.runs import short
from git_orch.workspace import open_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from git_orch.commands.looking import Look
    from git_orch.workspace import Workspace


def sweep(env: dict[str, str], *, as_json: bool, force: str = "") -> int:
    """Dead runs are recorded and gone, old ones too; what was refused is named with the reason.

    Raises:
        EnvironmentProblem: the run of `--force` is held by somebody whom we may not end.
    """
    seen = look(env)
    is_untouched = seen.book is None and not os.path.isdir(seen.layout.durable)
    swept, retired = (Swept(), ()) if is_untouched else _swept(seen, force)
    speaking.say(_json(swept, retired) if as_json else _words(swept, len(retired)))
    return 0


def _swept(seen: Look, force: str) -> tuple[Swept, tuple[str, ...]]:
    workspace = open_at(os.getcwd(), seen.env, seen.settings, seen.layout)
    if force:
        return _forced(history.resolve(force, workspace.layout, workspace.book), workspace), ()
    swept = reaper.sweep(workspace)
    settings = workspace.settings
    retired = retention.retire(
        workspace.layout.durable,
        workspace.store,
        entries=workspace.book.run_ids(),
        keep_runs=settings.keep_runs,
        keep_days=settings.keep_days,
        keep_bytes=settings.keep_bytes,
    )
    workspace.store.gc()
    return swept, retired


def _forced(run_id: str, workspace: Workspace) -> Swept:
    match reaper.force(workspace, run_id):
        case Reaped():
            return Swept(reaped=(run_id,))
        case Refused() as refusal:
            return Swept(refused=(refusal,))
        case Held():
            raise EnvironmentProblem(f"run {short(run_id)} is held by a process that is not ours to end")
    return Swept()


def _json(swept: Swept, retired: tuple[str, ...]) -> str:
    from git_orch.formats import json_

    return json_.document(
        {
            "schema_version": SCHEMA_VERSION,
            "reaped": list(swept.reaped),
            "left": list(swept.left),
            "refused": [refusal.fields() for refusal in swept.refused],
            "trees": list(swept.trees),
            "retired": list(retired),
        }
    )


def _words(swept: Swept, retired: int) -> str:
    lines = [f"reaped {_name(run_id)}" for run_id in swept.reaped]
    lines += [f"running {_name(run_id)}, left alone" for run_id in swept.left]
    lines += [f"refused {shown(refusal.run_id)}: {shown(refusal.reason)}" for refusal in swept.refused]
    lines += [f"removed the tree of {_name(run_id)}, whose repository is gone" for run_id in swept.trees]
    if retired:
        lines.append(f"retired {plural(retired, 'old run')}")
    return "".join(line + "\n" for line in lines) or "nothing was left behind\n"


def _name(run_id: str) -> str:
    return short(run_id) if registry.is_run_id(run_id) else shown(run_id)
