"""Pyflakes' rules by ruff, where that is installed: names that are not there, code that cannot be meant.

ruff gets an explicit list of files, no configuration (`--isolated`), no cache, and an environment without `RUFF_*`. Of
its answer stands what is on an added line. A name that is not defined counts anywhere if the difference removed a line
with that name: the import went, the use stayed.
"""

from __future__ import annotations

import json
import os
import re
import sys

from git_orch import proc
from git_orch.model import Record
from git_orch.reviewers.static.suppressions import WHOLE_FILE_NOQA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from git_orch.model import Finding, Json, Severity
    from git_orch.reviewers.static.source import Source

_COMMAND = (
    "check --isolated --no-cache --no-fix --quiet --exit-zero --select=F,E9 --ignore=F405 --output-format=json"
    # A suppression of the whole file counts only if it was there before; so ruff tells all, and `_is_wanted` judges.
    " --ignore-noqa"
    # Built-in names up to here are known; ruff's own default is the oldest Python that still lives.
    " --target-version=py313"
)
# Tidiness (F405 says of each name what F403 says once of the import); the rest of F is about what goes wrong.
_NITS = frozenset(("F401", "F403", "F541", "F841", "F842"))
_UNDEFINED = "F821"
_QUOTED_NAME = re.compile(r"`([^`]+)`")
_NOQA = re.compile(rb"#\s*noqa\b(?:\s*:\s*([A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*))?", re.IGNORECASE)
# Linux takes 128 KiB for one argument and 2 MiB for all; Windows 32 KiB for the whole line.
_ARGUMENT_BYTES = 30_000
_TIMEOUT_S = 30.0


class Target(Record):
    """What of a Python file has to be known to judge ruff's findings, without keeping the file.

    `noqa` holds the codes that a line silences; an empty set silences all.
    """

    source: Source
    noqa: Mapping[int, frozenset[str]]


class Linted(Record):
    """What ruff found; `missing` says why it did not look, in a few words."""

    findings: tuple[Finding, ...] = ()
    missing: str = ""


def target_of(source: Source) -> Target | None:
    """The file as something to lint, without its content; None if it was switched off before the difference."""
    noqa = {}
    if b"noqa" in source.content or b"ruff" in source.content:
        for number, line in enumerate(source.lines, 1):
            if WHOLE_FILE_NOQA.search(line) and not source.change.adds(number):
                return None
            if match := _NOQA.search(line):
                codes = (match[1] or b"").decode("ascii").upper()
                noqa[number] = frozenset(re.split(r"[\s,]+", codes)) if codes else frozenset()
    return Target(source=source.without_content(), noqa=noqa)


def lint(targets: Sequence[Target], environ: Mapping[str, str]) -> Linted:
    """What ruff finds in the files."""
    program = find_ruff(environ)
    if program is None:
        return Linted(missing="no ruff here")
    by_path = {os.path.abspath(target.source.name): target for target in targets if _is_utf8(target.source)}
    findings: list[Finding] = []
    for paths in _chunks(list(by_path)):
        try:
            told = _run(program, paths, _environment(environ))
        except (OSError, ValueError) as error:
            return Linted(missing=f"ruff did not look ({error})")
        for one in told:
            target = by_path.get(one["filename"])
            if target is not None and _is_wanted(one, target):
                findings.append(_finding(one, target.source))
    return Linted(findings=tuple(findings))


def _run(program: str, paths: list[str], env: Mapping[str, str]) -> list[Json]:
    """What ruff tells of the files.

    Raises:
        OSError: it cannot be started.
        ValueError: it did not come to an end, or told no JSON.
    """
    done = proc.run((program, *_COMMAND.split(), "--", *paths), env=env, timeout_s=_TIMEOUT_S)
    if done.timed_out:
        raise ValueError(f"not done in {_TIMEOUT_S:.0f} s")
    if done.code:
        raise ValueError(f"exit status {done.code}")
    told: list[Json] = json.loads(done.stdout)
    return told


def find_ruff(environ: Mapping[str, str]) -> str | None:
    """The ruff beside the interpreter, else the one on PATH; never one that the tree brings along."""
    tree = os.path.realpath(os.curdir)
    folders = [os.path.dirname(sys.executable), *environ.get("PATH", "").split(os.pathsep)]
    safe = [folder for folder in folders if os.path.isabs(folder) and not _is_below(os.path.realpath(folder), tree)]
    return proc.find_program("ruff.exe" if os.name == "nt" else "ruff", os.pathsep.join(safe)) if safe else None


def _is_below(folder: str, tree: str) -> bool:
    return folder == tree or folder.startswith(tree.rstrip(os.sep) + os.sep)


def _is_utf8(source: Source) -> bool:
    return source.name.encode() == source.path


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Only what a program needs to start: RUFF_OUTPUT_FILE would make it write, others would steer it."""
    return {name: environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR", "TEMP") if name in environ}


def _chunks(paths: list[str]) -> Iterator[list[str]]:
    """The paths in groups that a command line can hold."""
    chunk: list[str] = []
    size = 0
    for path in paths:
        if chunk and size + len(path.encode()) > _ARGUMENT_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(path)
        size += len(path.encode()) + 1
    if chunk:
        yield chunk


def _is_wanted(told: Json, target: Target) -> bool:
    code, row = told["code"], told["location"]["row"]
    if not code or not code.startswith("F"):  # syntax and unreadable files are told by our own parser
        return False
    silenced = target.noqa.get(told.get("noqa_row") or row)
    if silenced is not None and (not silenced or code in silenced):
        return False
    if code == "F401" and target.source.filename == "__init__.py":  # there an import is the public interface
        return False
    change = target.source.change
    if change.adds_any(row, told["end_location"]["row"]):
        return True
    name = _QUOTED_NAME.search(told["message"]) if code == _UNDEFINED else None
    return name is not None and re.search(rb"\b%b\b" % re.escape(name[1].encode()), change.removed) is not None


def _finding(told: Json, source: Source) -> Finding:
    code = told["code"]
    severity: Severity = "nit" if code in _NITS else "advisory"
    start, end = told["location"], told["end_location"]
    return source.finding(
        code,
        # Undefined built-ins carry a hint about ruff's own configuration, which is not in use here.
        told["message"].partition(". Consider specifying")[0],
        severity,
        line=start["row"],
        end_line=end["row"],
        start_column=start["column"],
        end_column=end["column"],
        suggestion=(told.get("fix") or {}).get("message") or "",
    )
