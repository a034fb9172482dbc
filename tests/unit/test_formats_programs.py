"""The formats for programs keep to their schemas, and none looks clean where something was not reviewed."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from git_orch import formats
from git_orch.errors import OrchError, UsageError
from git_orch.formats.terminal import Terminal
from git_orch.model import SEVERITIES, Coverage, Finding, Report, Skipped
from tests.unit import format_examples as examples

SCHEMAS = Path(__file__).parents[1] / "schemas"
LATIN = "src/caf\udce9.py"  # the bytes b"src/caf\xe9.py"
NOT_UTF8 = examples.REVIEW.replace(
    findings=(examples.SQL.replace(path=LATIN, message="caf\udce9 \ud800"),),
    coverage=Coverage(
        offered=(LATIN, "a.py"), reviewed=("a.py",), skipped=(Skipped(path=LATIN, reason="not read", tracked=True),)
    ),
)
REPORTS = {**examples.REPORTS, "not-utf8": NOT_UTF8, "longest-path": examples.REVIEW.replace(
    findings=(examples.SQL.replace(path="d/" * 2500 + "f.py"),))}  # fmt: skip


def render(report: Report, name: str) -> str:
    return formats.render(report, name, terminal=Terminal(), source=examples.source)


def vendored(name: str) -> Any:
    return json.loads((SCHEMAS / name).read_text(encoding="utf-8"))


def validate(value: Any, schema: Any) -> None:
    kind = jsonschema.validators.validator_for(schema)
    kind(schema, format_checker=kind.FORMAT_CHECKER).validate(value)


# -- json and jsonl


@pytest.mark.parametrize("name", REPORTS)
def test_json_is_as_its_schema_says(name: str) -> None:
    text = render(REPORTS[name], "json")
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    validate(json.loads(text), json.loads(formats.schema("review")))


def test_json_has_the_keys_that_were_promised() -> None:
    told = json.loads(render(examples.REVIEW, "json"))
    assert list(told) == [
        "schema_version", "run_id", "tree_id", "base", "verdict", "reason", "findings", "coverage", "reviewers",
        "materialized", "timings_ms", "run_dir", "reused",
    ]  # fmt: skip
    assert list(told["base"]) == ["tree_id", "name", "commit"]
    assert list(told["coverage"]) == ["offered", "reviewed", "withheld", "skipped"]
    assert list(told["timings_ms"]) == ["snapshot", "materialize", "review", "dispose", "total"]
    assert {"name", "outcome", "verdict", "reason", "duration_ms"} <= told["reviewers"][0].keys()
    assert [finding["severity"] for finding in told["findings"]] == list(SEVERITIES)


def test_json_of_a_run_without_a_tree_says_so_by_null() -> None:
    told = json.loads(render(examples.NOT_RUN, "json"))
    assert told["materialized"] is None
    assert told["timings_ms"]["total"] is None


def test_a_path_that_is_not_utf_8_keeps_its_bytes() -> None:
    told = json.loads(render(NOT_UTF8, "json"))
    (finding,) = told["findings"]
    assert finding["path"] == "src/caf\ufffd.py"
    assert base64.b64decode(finding["path_b64"]) == b"src/caf\xe9.py"
    assert finding["message"] == "caf\ufffd \ufffd"
    coverage = told["coverage"]
    assert coverage["offered"] == ["src/caf\ufffd.py", "a.py"]
    assert [base64.b64decode(path) for path in coverage["offered_b64"]] == [b"src/caf\xe9.py", b"a.py"]
    assert "reviewed_b64" not in coverage
    assert base64.b64decode(coverage["skipped"][0]["path_b64"]) == b"src/caf\xe9.py"


def test_jsonl_is_a_line_a_finding_and_then_the_verdict() -> None:
    lines = [json.loads(line) for line in render(examples.REVIEW, "jsonl").splitlines()]
    assert [line["type"] for line in lines] == ["finding", "finding", "finding", "verdict"]
    whole = json.loads(render(examples.REVIEW, "json"))
    assert [{k: v for k, v in line.items() if k != "type"} for line in lines[:-1]] == whole.pop("findings")
    assert {k: v for k, v in lines[-1].items() if k != "type"} == whole


# -- sarif


def sarif(report: Report) -> Any:
    return json.loads(render(report, "sarif"))


@pytest.mark.parametrize("name", REPORTS)
def test_sarif_is_as_the_standard_says(name: str) -> None:
    validate(sarif(REPORTS[name]), vendored("sarif-schema-2.1.0.json"))


def test_the_standards_schema_tells_good_from_bad() -> None:
    log = sarif(examples.REVIEW)
    log["runs"][0]["invocations"][0].pop("executionSuccessful")
    with pytest.raises(jsonschema.ValidationError):
        validate(log, vendored("sarif-schema-2.1.0.json"))


def test_sarif_has_a_run_a_reviewer() -> None:
    runs = sarif(examples.REVIEW)["runs"]
    assert [run["tool"]["driver"]["name"] for run in runs] == ["git-orch/static", "git-orch/claude", "git-orch/codex"]
    assert [run["automationDetails"]["id"] for run in runs][2] == f"git-orch/codex/{examples.RUN_ID}"
    assert [run["invocations"][0]["executionSuccessful"] for run in runs] == [True, True, False]
    (note,) = runs[2]["invocations"][0]["toolExecutionNotifications"]
    assert note == {"level": "error", "message": {"text": "codex did not review: rate limited until 15:20"}}
    (result, _) = runs[1]["results"]
    assert result["level"] == "error"
    assert runs[1]["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "sql-injection"
    assert result["partialFingerprints"] == {"gitOrch/v1": examples.SQL.fingerprint}
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/db/orders.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 41, "endLine": 41, "startColumn": 9, "endColumn": 67}


def test_sarif_names_what_nobody_reviewed() -> None:
    notes = sarif(examples.REVIEW)["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    places = [note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for note in notes]
    assert places == ["data/events.jsonl", "vendor/lib", ".env.local"]


def test_a_sarif_path_is_its_bytes() -> None:
    results = [result for run in sarif(NOT_UTF8)["runs"] for result in run["results"]]
    assert results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/caf%E9.py"


def test_no_part_of_a_sarif_message_is_a_link() -> None:
    report = examples.REVIEW.replace(findings=(examples.SQL.replace(message="see [this](https://evil.example)"),))
    assert "](" not in render(report, "sarif")


def test_a_finding_of_nobody_is_not_lost_in_sarif() -> None:
    report = examples.REVIEW.replace(findings=(examples.SQL.replace(reviewer=""),))
    assert sum(len(run["results"]) for run in sarif(report)["runs"]) == 1


# -- rdjson


@pytest.mark.parametrize("name", REPORTS)
def test_rdjson_is_as_its_schema_says(name: str) -> None:
    validate(json.loads(render(REPORTS[name], "rdjson")), vendored("rdjson.json"))


def test_rdjson_counts_columns_in_bytes() -> None:
    finding = examples.PLACES.findings[1]
    told = json.loads(render(examples.REVIEW.replace(findings=(finding,), reviews=()), "rdjson"))
    (diagnostic,) = told["diagnostics"]
    line = examples.SOURCES["src/名前.py"][8]
    start = len(line[: finding.start_column - 1].encode()) + 1
    assert diagnostic["location"]["range"] == {
        "start": {"line": 8, "column": start},
        "end": {"line": 8, "column": start + len("名前".encode())},
    }


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ((0, 0, 0), None),
        ((41, 0, 9), {"start": {"line": 41, "column": 9}}),
        ((40, 41, 9), {"start": {"line": 40}, "end": {"line": 41}}),
        ((41, 0, 0), {"start": {"line": 41}, "end": {"line": 41}}),
    ],
)
def test_rdjson_ranges(place: tuple[int, int, int], expected: object) -> None:
    first, last, column = place
    finding = Finding(path="src/db/orders.py", message="m", start_line=first, end_line=last, start_column=column)
    report = examples.REVIEW.replace(findings=(finding,), reviews=())
    (diagnostic,) = json.loads(render(report, "rdjson"))["diagnostics"]
    assert diagnostic["location"].get("range") == expected


def test_without_the_line_rdjson_has_no_column() -> None:
    report = examples.REVIEW.replace(findings=(examples.LOCK.replace(path="gone.py"),), reviews=())
    (diagnostic,) = json.loads(render(report, "rdjson"))["diagnostics"]
    assert diagnostic["location"]["range"] == {"start": {"line": 88}, "end": {"line": 88}}


# -- github


def test_github_escapes_what_its_commands_are_made_of() -> None:
    finding = examples.SQL.replace(
        path="a,b:c%.py", message="100%\r\nof x: y, z", rule="r:1", fails_when="", suggestion=""
    )
    report = examples.REVIEW.replace(findings=(finding,), reviews=())
    first = render(report, "github").splitlines()[0]
    assert first == (
        "::error file=a%2Cb%3Ac%25.py,line=41,endLine=41,col=9,endColumn=66,"
        "title=git-orch kmzv claude/r%3A1::100%25%0Aof x: y, z"
    )


def test_github_gives_columns_within_one_line_only() -> None:
    report = examples.REVIEW.replace(findings=(examples.SQL.replace(end_line=44),), reviews=())
    assert "line=41,endLine=44,title=" in render(report, "github")


# -- all of them


@pytest.mark.parametrize("report", [examples.UNREVIEWED, examples.NOT_RUN], ids=["reviewer failed", "no reviewer ran"])
def test_nothing_looks_clean_that_was_not_reviewed(report: Report) -> None:
    report = report.replace(findings=())
    runs = sarif(report)["runs"]
    failed = [run for run in runs if not run["invocations"][0]["executionSuccessful"]]
    assert failed
    assert all(run["invocations"][0]["toolExecutionNotifications"][-1]["level"] == "error" for run in failed[-1:])
    diagnostics = json.loads(render(report, "rdjson"))["diagnostics"]
    assert [diagnostic["severity"] for diagnostic in diagnostics] == ["ERROR"]
    assert render(report, "github").startswith("::error title=git-orch::not reviewed: ")
    assert "unreviewed: " in render(report, "concise")
    assert "? unreviewed: " in render(report, "text")
    assert json.loads(render(report, "json"))["verdict"] == "unreviewed"
    assert json.loads(render(report, "jsonl"))["verdict"] == "unreviewed"


def test_a_path_left_out_is_told_though_every_reviewer_was_content() -> None:
    report = examples.CLEAN.replace(verdict="unreviewed", reason="big.bin was left out: unreadable")
    runs = sarif(report)["runs"]
    assert [run["invocations"][0]["executionSuccessful"] for run in runs] == [True, True, False]
    (diagnostic,) = json.loads(render(report, "rdjson"))["diagnostics"]
    assert "big.bin" in diagnostic["message"]
    assert "big.bin" in render(report, "github").splitlines()[0]


# -- schemas


@pytest.mark.parametrize("name", formats.SCHEMAS)
def test_our_schemas_are_schemas(name: str) -> None:
    schema = json.loads(formats.schema(name))
    jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator).check_schema(schema)
    assert schema["$id"].endswith(f":{name}")


def test_a_schema_that_there_is_not() -> None:
    with pytest.raises(UsageError):
        formats.schema("../status")


def test_a_gates_finding_is_one_with_its_run_and_what_is_said_against_it() -> None:
    alone = json.loads(formats.schema("finding"))
    gates = json.loads(formats.schema("gate"))["properties"]["gates"]
    within = gates["items"]["properties"]["findings"]["items"]
    own = {name: within["properties"].pop(name) for name in ("run_id", "disputed")}
    within["required"] = [name for name in within["required"] if name not in own]
    assert {k: v for k, v in alone.items() if k not in ("$schema", "$id", "title")} == within


def test_a_finding_is_the_same_in_both_schemas() -> None:
    alone = json.loads(formats.schema("finding"))
    within = json.loads(formats.schema("review"))["$defs"]["finding"]
    assert {k: v for k, v in alone.items() if k not in ("$schema", "$id", "title")} == within


def test_an_error_is_as_its_schema_says() -> None:
    validate(json.loads(formats.error(OrchError("m", "h"), as_json=True)), json.loads(formats.schema("error")))


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"status": "findings"}, True),
        ({"status": "findings", "findings": []}, False),
        ({"status": "no_findings"}, False),
        ({"status": "no_findings", "findings": []}, True),
        ({"status": "unable_to_review", "findings": None, "reason": "no patch", "files": []}, True),
        ({"status": "fine"}, False),
        ({"files": [{"path": "a.py", "token": "orch:x"}]}, True),
        ({"files": [{"path": {"path": "a", "path_b64": "YQ=="}}]}, True),
        ({"files": None}, False),
        ({"nonce": 7}, False),
        ({"more": True}, True),
    ],
)
def test_the_schema_of_an_answer(change: dict[str, object], good: bool) -> None:
    finding = {"path": "a.py", "start_line": 3, "severity": "nit", "message": "m", "rule": None}
    answer = {"schema_version": "1", "nonce": "n", "status": "findings", "files": ["a.py"], "findings": [finding]}
    schema = json.loads(formats.schema("answer"))
    assert jsonschema.Draft202012Validator(schema).is_valid({**answer, **change}) is good
