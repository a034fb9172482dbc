"""A reviewer that does what its arguments say, one step after the other, in the order given.

    fake_reviewer.py --ignore-term --touch STARTED --wait-for GO --edit a.py --findings '[{"path": "a.py"}]' --exit 3

Without a step it says nothing and exits 0. Needs the standard library alone and the request in the environment
(ORCH_FILES, ORCH_NONCE, ORCH_RESULT). It never outlives BOUND_S, whatever it was told, and neither does anything that
it starts.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

BOUND_S = 300
PAUSE_S = 0.01
MIB = 1 << 20
Json = dict[str, Any]

NOT_LOGGED_IN = "Not logged in · Please run /login"
RATE_LIMITED = "You've hit your session limit · resets 3:20am (UTC)"
IS_ERROR = {"type": "result", "subtype": "success", "is_error": True, "result": "Credit balance is too low"}


def offered() -> list[str]:
    """The paths of the request, from the NUL-separated file that ORCH_FILES names."""
    names = Path(os.environ["ORCH_FILES"]).read_bytes().split(b"\0")
    return [name.decode("utf-8", "surrogateescape") for name in names if name]


def answer(status: str, **changes: object) -> Json:
    """A well-formed answer to the request that covers every file of it, with some fields changed."""
    nonce = os.environ["ORCH_NONCE"]
    whole = {"schema_version": "1", "nonce": nonce, "status": status, "reason": "", "files": offered(), "findings": []}
    return whole | changes


def finding(given: Json) -> Json:
    """A finding of the answer's form: what is not given is a plain fault in the first line."""
    line = given.get("start_line", 1)
    plain = {
        "start_line": line,
        "end_line": line,
        "severity": "blocking",
        "rule": "planted",
        "message": "planted fault",
    }
    return plain | given


def with_findings(text: str, **changes: object) -> Json:
    return answer("findings", findings=[finding(given) for given in json.loads(text)], **changes)


def sarif(findings: Sequence[Json]) -> Json:
    """A SARIF 2.1.0 log with one run of the tool `fake`."""
    levels = {"blocking": "error", "advisory": "warning", "nit": "note"}
    results = [
        {
            "ruleId": each["rule"],
            "level": levels[each["severity"]],
            "message": {"text": each["message"]},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": each["path"]},
                        "region": {"startLine": each["start_line"], "endLine": each["end_line"]},
                    }
                }
            ],
        }
        for each in map(finding, findings)
    ]
    tool = {"driver": {"name": "fake"}}
    run = {"tool": tool, "invocations": [{"executionSuccessful": True}], "results": results}
    return {"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "runs": [run]}


def rdjson(findings: Sequence[Json]) -> Json:
    """A reviewdog diagnostic result of the tool `fake`."""
    levels = {"blocking": "ERROR", "advisory": "WARNING", "nit": "INFO"}
    diagnostics = [
        {
            "message": each["message"],
            "severity": levels[each["severity"]],
            "code": {"value": each["rule"]},
            "location": {
                "path": each["path"],
                "range": {"start": {"line": each["start_line"]}, "end": {"line": each["end_line"]}},
            },
        }
        for each in map(finding, findings)
    ]
    return {"source": {"name": "fake"}, "diagnostics": diagnostics}


class Reviewer:
    """Takes the steps; says what it has to say on stdout, or in ORCH_RESULT after `--to-result`."""

    def __init__(self) -> None:
        self.to_result = False

    def say(self, text: str) -> None:
        """The text is in the place of answers."""
        if self.to_result:
            with Path(os.environ["ORCH_RESULT"]).open("a", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
            return
        sys.stdout.write(text)
        sys.stdout.flush()

    def say_json(self, value: object) -> None:
        self.say(json.dumps(value) + "\n")

    # Answers

    def do_to_result(self) -> None:
        self.to_result = True

    def do_pass(self) -> None:
        self.say_json(answer("no_findings"))

    def do_findings(self, text: str) -> None:
        self.say_json(with_findings(text))

    def do_unable(self, reason: str) -> None:
        self.say_json(answer("unable_to_review", reason=reason, files=[]))

    def do_pass_without_coverage(self) -> None:
        self.say_json(answer("no_findings", files=[]))

    def do_pass_but_the_last(self) -> None:
        """A pass that covers all files but the last."""
        self.say_json(answer("no_findings", files=offered()[:-1]))

    def do_pass_with_findings(self, text: str) -> None:
        """A contradiction: `no_findings`, and findings."""
        self.say_json(with_findings(text) | {"status": "no_findings"})

    def do_wrong_nonce(self) -> None:
        self.say_json(answer("no_findings", nonce="0" * 32))

    def do_truncated(self) -> None:
        """The first half of a pass, as a stream that was cut."""
        whole = json.dumps(answer("no_findings"))
        self.say(whole[: len(whole) // 2])

    def do_two_objects(self) -> None:
        self.do_pass()
        self.do_pass()

    def do_prose(self) -> None:
        """A pass with words around it, as models like to write."""
        self.say("Here is my review:\n\n```json\n")
        self.do_pass()
        self.say("```\nNo issues found. LGTM!\n")

    def do_not_logged_in(self) -> None:
        self.say(NOT_LOGGED_IN + "\n")

    def do_rate_limited(self) -> None:
        self.say(RATE_LIMITED + "\n")

    def do_is_error(self) -> None:
        self.say_json(IS_ERROR)

    def do_sarif(self, text: str) -> None:
        self.say_json(sarif(json.loads(text)))

    def do_rdjson(self, text: str) -> None:
        self.say_json(rdjson(json.loads(text)))

    def do_say(self, text: str) -> None:
        self.say(text)

    def do_stderr(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def do_flood(self, size_mib: str) -> None:
        """That many MiB of lines, in the place of answers."""
        line = "x" * 1023 + "\n"
        for _ in range(int(size_mib)):
            self.say(line * 1024)

    # The tree

    def do_edit(self, path: str) -> None:
        with Path(path).open("ab") as file:
            file.write(b"edited by the reviewer\n")

    def do_disguise(self, path: str) -> None:
        """Another content of the same size, with the same time of writing."""
        before = os.stat(path)
        Path(path).write_bytes(b"#" * before.st_size)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def do_delete(self, path: str) -> None:
        Path(path).unlink()

    def do_litter(self) -> None:
        """Caches as ruff, mypy and pytest leave them."""
        for folder in (".ruff_cache", ".mypy_cache", ".pytest_cache"):
            Path(folder).mkdir(exist_ok=True)
            Path(folder, "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n", encoding="ascii")

    def do_plant_git(self, command: str) -> None:
        """A `.git` whose fsmonitor would run the command at the next `git status` in the tree."""
        for folder in (".git/objects", ".git/refs"):
            Path(folder).mkdir(parents=True)
        Path(".git/HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
        config = f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {command}\n"
        Path(".git/config").write_text(config, encoding="utf-8")

    def do_write(self, path: str) -> None:
        """The file holds a line; that it could not be written is told on stderr and is no failure."""
        try:
            Path(path).write_text("written by the reviewer\n", encoding="ascii")
        except OSError as error:
            self.do_stderr(f"{path}: {error.strerror}\n")

    # Time and processes

    def do_touch(self, path: str) -> None:
        Path(path).touch()

    def do_wait_for(self, path: str) -> None:
        """The path exists, or the time is up and the reviewer has failed."""
        deadline = time.monotonic() + BOUND_S
        while not os.path.lexists(path):
            if time.monotonic() > deadline:
                sys.exit(f"{path} never came")
            select.select((), (), (), PAUSE_S)

    def do_fifo(self, path: str) -> None:
        """Somebody has opened the FIFO for writing and closed it again."""
        with Path(path).open("rb") as fifo:
            fifo.read()

    def do_hang(self) -> NoReturn:
        while True:
            signal.pause()

    def do_spin(self, seconds: str) -> None:
        """So many seconds of CPU were burnt in silence."""
        while time.process_time() < float(seconds):
            pass

    def do_ignore_term(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)

    def do_grandchild(self, pid_file: str) -> None:
        """A child that holds the output open and outlives the reviewer; its pid is in the file."""
        if os.fork() == 0:
            self._outlive(pid_file)

    def do_daemon(self, pid_file: str) -> None:
        """A process of a session of its own, with no open output, orphaned at once; its pid is in the file."""
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return
        os.setsid()
        if os.fork():
            os._exit(0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        self._outlive(pid_file)

    def _outlive(self, pid_file: str) -> NoReturn:
        signal.alarm(BOUND_S)  # a fork does not inherit the alarm
        draft = Path(f"{pid_file}.{os.getpid()}")
        draft.write_text(str(os.getpid()), encoding="ascii")
        draft.replace(pid_file)
        self.do_hang()

    def do_dump_environment(self, path: str) -> None:
        """The file holds the environment as a JSON object."""
        Path(path).write_text(json.dumps(dict(os.environ), indent=1), encoding="utf-8")

    def do_exit(self, code: str) -> NoReturn:
        sys.exit(int(code))

    def do_die(self, number: str) -> None:
        """Ended by a signal that nobody else sent."""
        os.kill(os.getpid(), int(number))


class Step(argparse.Action):
    """Keeps the steps in the order in which they were typed."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        namespace.steps = [*namespace.steps, (self.dest, values)]


def parser_of(reviewer: Reviewer) -> argparse.ArgumentParser:
    """Every `do_...` of the reviewer is an option, with an argument where it takes one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.set_defaults(steps=[])
    for name in (name for name in dir(reviewer) if name.startswith("do_")):
        takes = getattr(reviewer, name).__code__.co_argcount - 1
        option = "--" + name.removeprefix("do_").replace("_", "-")
        parser.add_argument(
            option, dest=name, nargs=takes, metavar="X", action=Step, help=getattr(reviewer, name).__doc__
        )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Every step was taken, in order."""
    signal.alarm(BOUND_S)
    reviewer = Reviewer()
    steps: list[tuple[str, list[str]]] = parser_of(reviewer).parse_args(argv).steps
    for name, values in steps:
        step: Callable[..., None] = getattr(reviewer, name)
        step(*values)


if __name__ == "__main__":
    main()
