"""A client that is none: it lists its options, takes a prompt, does what it was told, and answers in its own form.

`install` writes a program named as the client, which takes the steps, in order.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from git_orch.reviewers import agents
from git_orch.reviewers.client import Call
from tests.acceptance.agents.provider import passing
from tests.unit import client_samples as samples
from tests.waiting import wait_until

PROJECT = Path(__file__).parents[2]
BOUND_S = 60
Json = dict[str, Any]
SHOWN = "shown.json"


def install(folder: Path, name: str, *steps: Sequence[Any], lacks: Sequence[str] = (), version: str = "9.9.9") -> Path:
    """The client's program lies in the folder, which a test puts on PATH; what it saw, it leaves there as SHOWN.

    A step is the name of a method of `Client` without `do_`, and its arguments. `lacks`: options it does not know.
    """
    folder.mkdir(exist_ok=True)
    program = folder / agents.client(name).PROGRAMS[0]
    told = {"name": name, "steps": steps, "lacks": lacks, "version": version, "folder": str(folder)}
    program.write_text(
        textwrap.dedent(f"""\
        #!{sys.executable}
        import sys
        sys.path.insert(0, {str(PROJECT)!r})
        from tests.fakes import fake_client
        fake_client.main({json.dumps(told)!r}, sys.argv[1:])
        """)
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def shown(folder: Path) -> list[Json]:
    """What each call of the client saw: its arguments, its environment, its prompt, the files in its tree."""
    return [json.loads(line) for line in (folder / SHOWN).read_text().splitlines()] if (folder / SHOWN).exists() else []


def main(told: str, argv: list[str]) -> None:
    """Be the client."""
    given = json.loads(told)
    options = [option for option in known_options(given["name"]) if option not in given["lacks"]]
    if "--help" in argv:
        print("\n".join(["Options:", *options, "--help"]))
    elif "--version" in argv:
        print(f"{given['name']} {given['version']}")
    else:
        unknown = [word for word in argv if word.startswith("--") and word.partition("=")[0] not in options]
        if unknown:
            sys.exit(f"error: unknown option '{unknown[0]}'")
        Client(given, argv).run()


def known_options(name: str) -> list[str]:
    call = Call(tree="", folder="", schema="", model="m")
    words = [flag.words[0].partition("=")[0] for flag in agents.client(name).flags(call)]
    return [word for word in words if word.startswith("-")]


class Client:
    """One call."""

    def __init__(self, given: Json, argv: list[str]) -> None:
        self.name: str = given["name"]
        self.steps: list[list[Any]] = given["steps"] or [["pass"]]
        self.folder = Path(given["folder"])
        self.argv = argv
        self.prompt = sys.stdin.read()
        self.answer: Json = {}

    def run(self) -> None:
        """All steps are taken."""
        self._show()
        for name, *arguments in self.steps:
            getattr(self, f"do_{name}")(*arguments)

    def _show(self) -> None:
        files = {
            str(path.relative_to(".")): path.read_text(errors="replace")
            for path in sorted(Path().rglob("*"))
            if path.is_file() and not path.is_symlink()
        }
        seen = {"argv": self.argv, "env": dict(os.environ), "prompt": self.prompt, "files": files, "cwd": os.getcwd()}
        with (self.folder / SHOWN).open("a") as file:
            file.write(json.dumps(seen) + "\n")

    # -- what it says

    def do_pass(self, **_: Any) -> None:
        self._answer(passing(self.prompt))

    def do_answer(self, changes: Json) -> None:
        self._answer(passing(self.prompt) | changes)

    def do_read_only(self, *paths: str) -> None:
        whole = passing(self.prompt)
        self._answer(whole | {"files": [entry for entry in whole["files"] if entry["path"] in paths]})

    def do_say(self, text: str) -> None:
        sys.stdout.write(text)

    def do_complain(self, text: str) -> None:
        sys.stderr.write(text)

    def do_exit(self, code: int) -> None:
        sys.stdout.flush()
        sys.exit(code)

    def _answer(self, answer: Json) -> None:
        sys.stdout.buffer.write(samples.answering(self.name, answer))
        sys.stdout.flush()

    # -- what it does

    def do_wait_for(self, path: str) -> None:
        """Until the path is there, and no longer than a test may take."""
        wait_until(Path(path).exists, BOUND_S)

    def do_write(self, path: str, text: str = "written by the reviewer\n") -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)

    def do_try_to_write(self, path: str) -> None:
        try:
            Path(path).write_text("written by the reviewer\n")
        except OSError:
            pass

    def do_leave_a_writer(self, path: str) -> None:
        """Something that tries to write there for as long as it lives, in a session of its own."""
        loop = f"import time\nwhile 1:\n open({path!r}, 'a').write('x')\n time.sleep(0.01)"
        subprocess.Popen([sys.executable, "-c", loop], start_new_session=True, stdout=subprocess.DEVNULL)

    def do_fire(self, hook: Sequence[str], scrubbed: bool, payload: Json) -> None:
        """Its own hook, as a client fires it at the end of a turn; what it prints goes nowhere."""
        kept = {name: value for name, value in os.environ.items() if not (scrubbed and name.startswith("ORCH"))}
        text = json.dumps({"cwd": os.getcwd(), **payload})
        subprocess.run(hook, input=text, text=True, env=kept, timeout=BOUND_S, check=False, stdout=subprocess.DEVNULL)
