"""Plan files: what they say, and everything that is wrong with one told at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_orch import planfile
from git_orch.errors import UsageError
from git_orch.plan import Plan

WHOLE = """
final_gates = ["qa"]
setup = ["make deps"]
max_parallel = 4
[gates]
qa = "pytest -q {{what}}"
[vars]
what = "tests"
[defaults]
agent = "claude"
timeout = "20m"
[[task]]
id = "model"
title = "The model"
prompt = "Do {{what}}, not {{that}}."
files = ["./src//model.py", "tests/"]
[[task]]
id = "api"
agent = "codex"
depends_on = ["model"]
command = "make {{what}}"
heartbeat = 30
retries = 2
files = []
gates = []
env = {A = "b"}
resources = {gpu = 1}
phases = ["plan", "code"]
min_phases = 2
expect = ["out.txt"]
workdir = "sub/"
executor = "local"
report_writes = true
"""
MARKDOWN = """
# Work

| Id | Depends on | Status | Agent |
|----|------------|--------|-------|
| `model` | – | done | claude |
| api | model | todo | `codex` |
| docs | api, model | | |

## api: The new API
Write the *API*.

```python
## docs
```

**Allowed files:**

- `src/api.py`
- tests/

### More
Even  this.

## docs
Write docs.
"""  # noqa: RUF001


def faults(text: str, name: str = "work.toml") -> list[str]:
    with pytest.raises(UsageError) as refused:
        planfile.parse(text, name)
    assert "nothing was started" in refused.value.hint
    return [line.removeprefix(f"{name}: ") for line in refused.value.message.splitlines()]


def plan_of(text: str, name: str = "work.toml") -> Plan:
    return planfile.parse(text, name)


def test_all_that_a_toml_file_says() -> None:
    plan = plan_of(WHOLE)
    model, api = plan.tasks
    assert (plan.max_parallel, plan.setup, plan.final_gates) == (4, ("make deps",), ("qa",))
    assert plan.gates == {"qa": "pytest -q tests"}
    assert (model.prompt, model.files) == ("Do tests, not {{that}}.", ("src/model.py", "tests"))
    assert (model.agent, model.timeout_s, model.gates, model.title) == ("claude", 1200.0, ("qa",), "The model")
    assert (api.command, api.agent, api.depends_on, api.files, api.gates) == (
        "make tests", "codex", ("model",), (), (),
    )  # fmt: skip
    assert (api.heartbeat_s, api.retries, api.env, api.resources) == (30.0, 2, {"A": "b"}, {"gpu": 1.0})
    assert (api.phases, api.min_phases, api.expect, api.workdir) == (("plan", "code"), 2, ("out.txt",), "sub")
    assert api.report_writes
    assert plan.depends() == [[], [0]]


def test_all_that_a_markdown_file_says() -> None:
    plan = plan_of(MARKDOWN, "work.md")
    model, api, docs = plan.tasks
    assert [task.done for task in plan.tasks] == [True, False, False]
    assert (model.agent, api.agent, docs.agent) == ("claude", "codex", "")
    assert (api.title, api.files) == ("The new API", ("src/api.py", "tests"))
    assert api.prompt == "Write the *API*.\n\n```python\n## docs\n```\n\n### More\nEven  this."
    assert (docs.prompt, docs.files, docs.depends_on) == ("Write docs.", None, ("api", "model"))
    assert plan.depends() == [[], [], [1]]  # what is done holds nobody up


def test_a_prompt_file_is_read_beside_the_plan_byte_for_byte(tmp_path: Path) -> None:
    prompt = "\r\n$(touch x) `y` \"z\" 'ü'\n" * 1000
    (tmp_path / "p.txt").write_bytes(prompt.encode())
    (tmp_path / "work.toml").write_text('[[task]]\nid = "a"\nprompt_file = "p.txt"\n')
    assert planfile.read(str(tmp_path / "work.toml")).tasks[0].prompt == prompt


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    told = faults(
        """
        colour = 1
        [[task]]
        id = "a"
        depend_on = ["b"]
        prompt_file = "no.txt"
        files = ["../x", "/etc/passwd", "src/*.py", ".GIT/config", "", "a\\u0007"]
        [[task]]
        id = "b"
        depends_on = ["c", "a"]
        prompt = "x"
        command = "y"
        timeout = "soon"
        retries = true
        env = {A = 1}
        [[task]]
        id = "C c"
        [[task]]
        id = "A"
        prompt = "x"
        gates = ["qa"]
        report_writes = "yes"
        """,
        f"{tmp_path}/work.toml",
    )
    assert [fault.removeprefix("work.toml: ") for fault in told] == [
        "no key `colour`",
        "task a: no key `depend_on`, perhaps you meant depends_on",
        "task a: `../x` leads through `..`: write it from the top of the work tree",
        "task a: `/etc/passwd` is no path below the top of the work tree",
        "task a: `src/*.py` is a pattern: name the files, or their folder",
        "task a: `.GIT/config` is git's, or ours",
        "task a: `` is no path below the top of the work tree",
        "task a: `a\x07` holds a control character",
        f"task a: {tmp_path}/no.txt: No such file or directory",
        "task b: timeout: `soon` is not a duration: write 90, 90s, 10m or 2h",
        "task b: `retries` is not a number from 0 to 1000",
        "task b: env: `A` is not a text",
        "task b: it wants one of prompt, prompt_file and command, and has prompt and command",
        "task 3: its id is `C c`; letters, digits, - and _ make one, at most 64",
        "task A: `report_writes` is not true or false",
        "two tasks are called A and a",
        "task b: it depends on `c`, which there is none of",
        "task A: no gate `qa`, which there is none of",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("task = 1", "`task` is not a list of tables: write [[task]]"),
        ("[task]\nid = 'a'", "`task` is not a list of tables: write [[task]]"),
        ("x = ", "not TOML: Invalid value (at end of document)"),
        ("", "it has no task"),
        ("[[task]]\nid = 'a'\nprompt = 'x'\ndepends_on = ['a']", "these wait for each other: a → a"),
        ("[defaults]\nprompt = 'x'\n[[task]]\nid = 'a'\ncommand = 'x'", "defaults: `prompt` is a task's own"),
        ("final_gates = ['q']\n[[task]]\nid = 'a'\nprompt = 'x'", "final_gates: no gate `q`, which there is none of"),
    ],
)
def test_one_thing_that_is_wrong(text: str, said: str) -> None:
    assert faults(text) == [said]


def test_a_cycle_is_told_by_its_members() -> None:
    ring = "".join(f"[[task]]\nid = '{a}'\nprompt = 'x'\ndepends_on = ['{b}']\n" for a, b in ("ac", "ba", "cb", "da"))
    assert faults(ring) == ["these wait for each other: a → c → b → a"]


def test_markdown_without_tasks_or_text() -> None:
    assert faults("# Nothing\n", "work.md") == ["no table with a column `id`"]
    assert faults("| id |\n|----|\n| a |\n", "work.md") == [
        "task a: it wants one of prompt, prompt_file and command, and has none"
    ]


def test_what_is_no_file(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file")):
        with pytest.raises(UsageError, match=said):
            planfile.read(str(path))
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(UsageError, match="is no file"):
        planfile.read(str(tmp_path / "pipe.toml"))  # at once, for nobody may ever write to it
    (tmp_path / "latin.toml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not UTF-8: byte 0"):
        planfile.read(str(tmp_path / "latin.toml"))


@given(st.text(alphabet="ab./ ", min_size=1, max_size=12))
def test_a_path_is_the_same_however_it_is_written(text: str) -> None:
    plain, fault = planfile.normal(text)
    assert bool(plain) != bool(fault)
    if plain:
        assert planfile.normal(plain) == (plain, "")
        assert planfile.normal(f"./{plain}//") == (plain, "")
