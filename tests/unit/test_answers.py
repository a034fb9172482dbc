from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Literal

import pytest

from git_orch import verdict
from git_orch.model import (
    Cancelled,
    Exited,
    Finding,
    NotStarted,
    ReviewerSettings,
    Signalled,
    Stalled,
    TimedOut,
    Unkillable,
)
from git_orch.reviewers import answers, reading
from git_orch.reviewers.answers import Answer, Request, Unusable

if TYPE_CHECKING:
    from git_orch.model import Outcome

Output = Literal["json", "sarif", "rdjson"]

NONCE = "5f1c"
OFFERED = ("a.py", "src/b c.py")
PLAIN = Request(nonce=NONCE, offered=OFFERED, root="/trees/1/tree")
WITH_TOKENS = PLAIN.replace(tokens={"a.py": "tok-a", "src/b c.py": "tok-b"})
ENDED = Exited(code=0)


def settings(output: Output = "json") -> ReviewerSettings:
    return ReviewerSettings(name="codex", output=output)


def read(
    raw: bytes | str,
    *,
    output: Output = "json",
    outcome: Outcome = ENDED,
    request: Request = PLAIN,
    result: bytes | None = None,
    stderr: bytes = b"",
) -> Answer | Unusable:
    return answers.read(
        settings(output),
        raw_result=result,
        raw_stdout=raw.encode() if isinstance(raw, str) else raw,
        outcome=outcome,
        request=request,
        raw_stderr=stderr,
    )


def answer_of(raw: bytes | str, **options: Any) -> Answer:
    given = read(raw, **options)
    assert isinstance(given, Answer), given
    return given


def unusable_of(raw: bytes | str, **options: Any) -> Unusable:
    given = read(raw, **options)
    assert isinstance(given, Unusable), given
    assert verdict.of_reviewer(settings(), ENDED, given).verdict == "unreviewed"
    return given


def verdict_of(given: Answer | Unusable) -> str:
    return verdict.of_reviewer(settings(), ENDED, given).verdict


def clean(**changes: Any) -> str:
    """A passing answer of our own format; a change to None takes the key out."""
    document = {"schema_version": "1", "nonce": NONCE, "status": "no_findings", "files": list(OFFERED), "findings": []}
    return json.dumps({key: value for key, value in {**document, **changes}.items() if value is not None})


FAULT = {"path": "a.py", "start_line": 3, "end_line": 4, "severity": "blocking", "rule": "r", "message": "text"}


def faulty(**changes: Any) -> str:
    return clean(status="findings", findings=[{**FAULT, **changes}])


def sarif_log(*results: dict[str, Any], **run: Any) -> str:
    driver = {"name": "lint", "rules": [{"id": "E1", "defaultConfiguration": {"level": "error"}}, {"id": "W1"}]}
    return json.dumps({"version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": list(results), **run}]})


def sarif_result(uri: str = "a.py", **changes: Any) -> dict[str, Any]:
    place = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 3, "startColumn": 5}}}
    return {"ruleId": "E1", "ruleIndex": 0, "message": {"text": "text"}, "locations": [place], **changes}


def only_finding(raw: bytes | str, **options: Any) -> Finding:
    [finding] = answer_of(raw, **options).findings
    return finding


class TestOwnJson:
    def test_a_clean_answer_passes(self) -> None:
        given = answer_of(clean())
        assert given == Answer(reviewed=OFFERED, declared=True)
        assert verdict_of(given) == "pass"

    def test_findings_come_with_all_fields(self) -> None:
        raw = faulty(suggestion="do this", fails_when="always", start_column=2, end_column=7)
        assert only_finding(raw) == Finding(
            path="a.py",
            message="text",
            severity="blocking",
            start_line=3,
            end_line=4,
            start_column=2,
            end_column=7,
            rule="r",
            fails_when="always",
            suggestion="do this",
            reviewer="codex",
        )

    def test_optional_fields_may_be_null_or_absent(self) -> None:
        raw = clean(
            status="findings",
            findings=[{"path": "a.py", "severity": "nit", "message": "m", "suggestion": None, "end_line": None}],
        )
        assert only_finding(raw) == Finding(path="a.py", message="m", severity="nit", reviewer="codex")

    def test_an_end_before_the_start_is_the_start(self) -> None:
        assert only_finding(faulty(start_line=9, end_line=2)).end_line == 9

    def test_unknown_keys_space_a_bom_and_the_order_of_keys_do_not_matter(self) -> None:
        document = json.loads(clean(confidence=0.9, reason="read all of it"))
        raw = json.dumps(dict(reversed(document.items())), indent=1)
        given = answer_of(b"\xef\xbb\xbf\r\n\t " + raw.encode() + b"\n\n")
        assert (given.note, verdict_of(given)) == ("read all of it", "pass")

    def test_the_result_file_counts_before_standard_output(self) -> None:
        assert verdict_of(answer_of("reading files ...", result=clean().encode())) == "pass"
        unusable_of(clean(), result=b"I am done.")

    @pytest.mark.parametrize("result", [None, b"", b" \n"])
    def test_an_empty_result_file_is_none(self, result: bytes | None) -> None:
        assert verdict_of(answer_of(clean(), result=result)) == "pass"

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"schema_version": None}, 'schema_version is not "1"'),
            ({"schema_version": 1}, 'schema_version is not "1"'),
            ({"schema_version": "2"}, 'schema_version is not "1"'),
            ({"nonce": None}, "nonce is missing"),
            ({"nonce": ""}, "nonce is missing"),
            ({"nonce": "5f1d"}, "the nonce is not that of the request"),
            ({"nonce": [NONCE]}, "nonce is no string"),
            ({"status": None}, "status is missing"),
            ({"status": "pass"}, 'status is "pass"'),
            ({"status": True}, "status is no string"),
            ({"files": None}, "files is missing"),
            ({"files": "a.py"}, "files is no list"),
            ({"files": {"a.py": 1}}, "files is no list"),
            ({"files": ["a.py", 3]}, "an entry of files is no object"),
            ({"files": ["a.py", ""]}, "path is missing"),
            ({"files": [{"token": "x"}]}, "path is missing"),
            ({"findings": {}}, "findings is no list"),
            ({"findings": ["a.py:3: text"]}, "an entry of findings is no object"),
            ({"skipped": ["a.py"]}, "an entry of skipped is no object"),
            ({"reason": 7}, "reason is no string"),
            ({"status": "findings"}, "status is findings, and yet it lists none"),
        ],
    )
    def test_a_wrong_shape_is_unusable(self, changes: dict[str, Any], reason: str) -> None:
        document = json.loads(clean())
        given = {key: value for key, value in {**document, **changes}.items() if value is not None}
        assert unusable_of(json.dumps(given)).reason == f"malformed answer: {reason}"

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"severity": "error"}, 'severity is "error"'),
            ({"severity": None}, "severity is missing"),
            ({"message": ""}, "message is missing"),
            ({"message": 3}, "message is no string"),
            ({"path": None}, "path is missing"),
            ({"path": 3}, "path is no string"),
            ({"start_line": "3"}, "start_line is no line or column number"),
            ({"start_line": 3.0}, "start_line is no line or column number"),
            ({"start_line": True}, "start_line is no line or column number"),
            ({"end_line": -1}, "end_line is no line or column number"),
            ({"rule": ["r"]}, "rule is no string"),
            ({"path_b64": "?"}, "path_b64 is no base64"),
        ],
    )
    def test_a_finding_of_a_wrong_shape_makes_the_answer_unusable(self, changes: dict[str, Any], reason: str) -> None:
        assert unusable_of(faulty(**changes)).reason == f"malformed answer: {reason}"

    def test_no_findings_with_findings_is_unusable_and_they_are_told(self) -> None:
        given = unusable_of(clean(findings=[FAULT]))
        assert given.reason == "status is no_findings, and yet it lists findings"
        assert [finding.message for finding in given.findings] == ["text"]

    def test_unable_to_review_is_unusable_with_its_own_reason(self) -> None:
        assert unusable_of(clean(status="unable_to_review", reason="the diff is empty")).reason == "the diff is empty"
        assert unusable_of(clean(status="unable_to_review", files=None)).reason == "unable to review"

    def test_a_finding_elsewhere_is_kept_but_not_blocking(self) -> None:
        assert only_finding(faulty(path="other.py")).severity == "advisory"
        assert only_finding(faulty(path="./a.py")).severity == "blocking"
        assert only_finding(faulty(path="/trees/1/tree/a.py")).path == "a.py"


class TestCoverage:
    def test_a_file_that_is_in_neither_list_was_not_reviewed(self) -> None:
        given = answer_of(clean(files=["a.py"]))
        assert given.reviewed == ("a.py",)
        assert [(entry.path, entry.reason) for entry in given.skipped] == [("src/b c.py", "not listed by codex")]
        review = verdict.of_reviewer(settings(), ENDED, given)
        assert (review.verdict, review.reason) == ("unreviewed", "left out src/b c.py (not listed by codex)")

    def test_no_coverage_is_no_pass(self) -> None:
        assert verdict_of(answer_of(clean(files=[]))) == "unreviewed"

    def test_what_was_not_offered_does_not_count(self) -> None:
        assert answer_of(clean(files=["a.py", "src/b c.py", "/etc/passwd", "../x"])).reviewed == OFFERED

    def test_a_skipped_file_is_accounted_for_but_not_reviewed(self) -> None:
        skipped = [{"path": "a.py", "reason": "too \x1b[31mlarge"}, {"path": "elsewhere.py"}]
        given = answer_of(clean(files=["a.py", "src/b c.py"], skipped=skipped))
        assert given.reviewed == ("src/b c.py",)
        assert given.skipped[0].reason == "skipped by codex: too \\x1b[31mlarge"
        assert verdict_of(given) == "unreviewed"

    def test_a_reviewer_cannot_speak_as_a_rule_of_ours(self) -> None:
        skipped = [{"path": path, "reason": "rule:binary"} for path in OFFERED]
        assert verdict_of(answer_of(clean(files=[], skipped=skipped))) == "unreviewed"

    def test_the_built_in_checks_can(self) -> None:
        raw = clean(files=["a.py"], skipped=[{"path": "src/b c.py", "reason": "rule:binary"}])
        for command, expected in (("", "pass"), ("./static", "unreviewed")):
            reviewer = ReviewerSettings(name="static", command=command)
            given = answers.read(reviewer, raw_result=None, raw_stdout=raw.encode(), outcome=ENDED, request=PLAIN)
            assert verdict_of(given) == expected

    def test_tokens_prove_what_was_read(self) -> None:
        files = [{"path": path, "token": token} for path, token in WITH_TOKENS.tokens.items()]
        given = answer_of(clean(files=files), request=WITH_TOKENS)
        assert (given.reviewed, given.declared, verdict_of(given)) == (OFFERED, False, "pass")

    @pytest.mark.parametrize(
        "second",
        [
            "src/b c.py",
            {"path": "src/b c.py"},
            {"path": "src/b c.py", "token": None},
            {"path": "src/b c.py", "token": "tok-a"},
            {"path": "src/b c.py", "token": "TOK-B"},
            {"path": "src/b c.py", "token": "tok-b "},
        ],
    )
    def test_without_its_token_a_file_was_not_reviewed(self, second: object) -> None:
        given = answer_of(clean(files=[{"path": "a.py", "token": "tok-a"}, second]), request=WITH_TOKENS)
        assert given.reviewed == ("a.py",)
        assert given.skipped[0].reason == "listed by codex without its token"
        assert verdict_of(given) == "unreviewed"

    def test_a_path_without_a_token_in_the_request_cannot_be_proven(self) -> None:
        request = WITH_TOKENS.replace(tokens={"a.py": "tok-a"})
        files = [{"path": "a.py", "token": "tok-a"}, {"path": "src/b c.py"}]
        assert answer_of(clean(files=files), request=request).reviewed == ("a.py",)

    @pytest.mark.parametrize("key", ["path", "path_b64"])
    def test_a_path_that_is_not_utf8(self, key: str) -> None:
        """Case 71: the path is the same by its base64 and by the escapes that Python's own json writes."""
        path = b"caf\xe9 \xff.py".decode("utf-8", "surrogateescape")
        encoded = base64.b64encode(path.encode("utf-8", "surrogateescape")).decode()
        entry = {"path": path} if key == "path" else {"path": "caf\ufffd \ufffd.py", "path_b64": encoded}
        request = PLAIN.replace(offered=(path,))
        given = answer_of(clean(status="findings", files=[entry], findings=[{**FAULT, **entry}]), request=request)
        assert given.reviewed == (path,)
        assert (given.findings[0].path, given.findings[0].severity) == (path, "blocking")
        nested = clean(status="findings", files=[entry], findings=[{**FAULT, "path": entry}])
        assert answer_of(nested, request=request).findings == given.findings

    def test_escapes_for_bytes_that_are_utf8_are_the_character(self) -> None:
        request = PLAIN.replace(offered=("ä",))
        assert answer_of(clean(files=["\udcc3\udca4"]), request=request).reviewed == ("ä",)

    def test_half_a_surrogate_pair_can_be_printed(self) -> None:
        finding = only_finding(faulty(message="x\ud83d", path="\ud83d.py"))
        assert (finding.message, finding.path) == ("x\ufffd", "\ufffd.py")


PROSE = [
    "I am unable to read the diff",
    "Not logged in · Please run /login",
    "No issues found",
    "no issues beyond the two above",
    "You've hit your limit · resets 3:20am",
    "API Error: 429 rate_limit_error",
    "**[error]** a b.py:3 — text",
    "PASS",
]


class TestWhatIsNoAnswer:
    """Case 21: none of these is a pass, and each is told in a few words."""

    @pytest.mark.parametrize("raw", ["", " \n\t", "\ufeff"])
    def test_nothing_at_all_is_worth_another_try(self, raw: str) -> None:
        given = unusable_of(raw)
        assert (given.reason, given.empty) == ("no output", True)
        given = unusable_of(raw, stderr=b"Traceback:\nboom: \x1b]52;c;x\x07\n")
        assert given.reason == 'no output; stderr: "boom: \\x1b]52;c;x\\x07"'

    @pytest.mark.parametrize("raw", PROSE)
    @pytest.mark.parametrize("output", ["json", "sarif", "rdjson"])
    def test_prose_is_quoted_and_kept(self, raw: str, output: Output) -> None:
        given = unusable_of(f"{raw}\nand more", output=output)
        assert given.reason == f'no answer, it said: "{raw}"'
        assert (given.note, given.empty, given.findings) == (f"{raw}\nand more", False, ())

    @pytest.mark.parametrize(
        ("raw", "reason"),
        [
            (clean() + clean(), "more than one JSON value"),
            (clean() + "\n" + clean(), "more than one JSON value"),
            (clean() + " []", "more than one JSON value"),
            (clean() + "\nThat is all.\nBye.", 'text after the answer: "That is all."'),
            ("Here it is:\n" + clean(), 'text around the answer: "Here it is:"'),
            (f"```json\n{clean()}\n```", 'text around the answer: "```json"'),
            (clean()[:-1], "output is cut off"),
            (clean()[:20], "output is cut off"),
            ('{"a": "}', "output is cut off"),
            ('{"a": "\\"}', "output is cut off"),
            ('{"a": "\\\\"', "output is cut off"),
            ("{'a': 1}", "output is not valid JSON"),
            ('{"a": NaN}', "output is not valid JSON"),
            ("[" * 100_000, "output is cut off"),
            (b'{"a": "\xff"}', 'output is not UTF-8: "{"a": "\ufffd"}"'),
            (clean().encode("utf-16"), None),
            (b"\x00" * 40, None),
            (f"[{clean()}]", "malformed answer: the answer is no object"),
            ('"No issues found"', "malformed answer: the answer is no object"),
            ("null", "malformed answer: the answer is no object"),
            ("{}", 'malformed answer: schema_version is not "1"'),
            (
                '{"type":"result","subtype":"success","is_error":true,"result":"Credit balance is too low"}',
                'malformed answer: schema_version is not "1"',
            ),
            ('{"type":"system"}\n{"type":"assistant","mess', "more than one JSON value"),
        ],
    )
    def test_json_that_is_no_answer(self, raw: str | bytes, reason: str | None) -> None:
        given = unusable_of(raw)
        assert given.note
        assert reason is None or given.reason == reason

    def test_a_quoted_line_is_cut_and_shows_control_characters(self) -> None:
        """Case 54."""
        given = unusable_of("\x1b]52;c;AAAA\x07 \u202egnp.exe " + "x" * 500)
        assert given.reason.startswith('no answer, it said: "\\x1b]52;c;AAAA\\x07 \\u202egnp.exe xxx')
        assert given.reason.endswith('xxx…"')
        assert given.reason.isprintable()
        assert len(given.reason) < 250

    def test_a_long_output_is_cut_in_the_note(self) -> None:
        assert len(unusable_of("x" * 100_000).note) == reading.NOTE_LIMIT


class TestHowTheJobEnded:
    @pytest.mark.parametrize(
        ("outcome", "reason"),
        [
            (Exited(code=2), "exit status 2"),
            (Exited(code=1), "exit status 1 without findings"),
            (Signalled(signal=9), "ended by signal 9"),
            (TimedOut(after_s=600.0), "no answer within 600 s"),
            (Stalled(after_s=0.5), "silent and idle for 0.5 s"),
            (Cancelled(reason="superseded by b204"), "superseded by b204"),
            (NotStarted(reason="no such program: codex"), "no such program: codex"),
            (Unkillable(pids=(7, 8)), "its processes cannot be killed: 7, 8"),
        ],
    )
    @pytest.mark.parametrize(
        ("output", "raw"), [("json", clean()), ("sarif", sarif_log()), ("rdjson", '{"diagnostics": []}')]
    )
    def test_a_clean_answer_of_a_job_that_ended_badly_is_no_pass(
        self, outcome: Outcome, reason: str, output: Output, raw: str
    ) -> None:
        assert unusable_of(raw, output=output, outcome=outcome).reason == reason

    @pytest.mark.parametrize(
        "outcome", [TimedOut(after_s=1.0), Stalled(after_s=1.0), Signalled(signal=15), Cancelled(), Exited(code=3)]
    )
    def test_the_findings_of_a_complete_answer_are_harvested(self, outcome: Outcome) -> None:
        given = unusable_of(faulty(), outcome=outcome)
        assert [finding.message for finding in given.findings] == ["text"]
        review = verdict.of_reviewer(settings(), outcome, given)
        assert (review.verdict, len(review.findings), review.reviewed) == ("unreviewed", 1, ())

    def test_a_cut_off_answer_leaves_no_findings(self) -> None:
        given = unusable_of(faulty()[:-2], outcome=TimedOut(after_s=1.0))
        assert (given.reason, given.findings) == ("no answer within 1 s", ())

    @pytest.mark.parametrize(
        ("output", "raw"),
        [
            ("json", faulty()),
            ("sarif", sarif_log(sarif_result())),
            ("rdjson", '{"diagnostics": [{"message": "m", "location": {"path": "a.py"}}]}'),
        ],
    )
    def test_exit_status_1_goes_with_findings(self, output: Output, raw: str) -> None:
        assert len(answer_of(raw, output=output, outcome=Exited(code=1)).findings) == 1
        assert len(answer_of(raw, output=output, outcome=Exited(code=0)).findings) == 1
        unusable_of(raw, output=output, outcome=Exited(code=2))

    def test_a_command_that_is_not_there_is_told_by_its_shell(self) -> None:
        given = unusable_of("", outcome=Exited(code=127), stderr=b"sh: 1: cluade: not found\n")
        assert given.reason == 'exit status 127: no output; stderr: "sh: 1: cluade: not found"'
        assert given.empty

    def test_silence_until_the_time_is_up_is_not_worth_another_try(self) -> None:
        assert not unusable_of("", outcome=TimedOut(after_s=1.0)).empty


class TestSarif:
    def test_a_clean_log_covers_what_was_offered(self) -> None:
        given = answer_of(sarif_log(), output="sarif")
        assert (given, verdict_of(given)) == (Answer(reviewed=OFFERED, declared=True), "pass")

    def test_a_result_becomes_a_finding(self) -> None:
        fixes = [{"description": {"text": "do this"}}]
        assert only_finding(sarif_log(sarif_result(fixes=fixes)), output="sarif") == Finding(
            path="a.py",
            message="text",
            severity="blocking",
            start_line=3,
            end_line=3,
            start_column=5,
            rule="E1",
            suggestion="do this",
            reviewer="codex",
        )

    @pytest.mark.parametrize(
        ("changes", "severity"),
        [
            ({"level": "error"}, "blocking"),
            ({"level": "warning"}, "advisory"),
            ({"level": "note"}, "nit"),
            ({"level": "none"}, "nit"),
            ({}, "blocking"),
            ({"ruleId": "W1", "ruleIndex": None}, "advisory"),
            ({"ruleId": "E1", "ruleIndex": None}, "blocking"),
            ({"ruleId": "X", "ruleIndex": 99}, "advisory"),
            ({"ruleId": None, "ruleIndex": None, "rule": {"id": "E1"}}, "blocking"),
            ({"ruleId": None, "ruleIndex": None, "rule": {"index": 0, "toolComponent": {"index": 0}}}, "nit"),
            ({"kind": "review"}, "nit"),
        ],
    )
    def test_levels(self, changes: dict[str, Any], severity: str) -> None:
        log = json.loads(sarif_log(sarif_result(**changes)))
        log["runs"][0]["tool"]["extensions"] = [{"rules": [{"id": "N", "defaultConfiguration": {"level": "note"}}]}]
        assert only_finding(json.dumps(log), output="sarif").severity == severity

    @pytest.mark.parametrize(
        "uri",
        [
            "src/b%20c.py",
            "./src/b%20c.py",
            "src/./x/../b%20c.py",
            "src/b c.py",
            "/trees/1/tree/src/b%20c.py",
            "file:///trees/1/tree/./src/b%20c.py",
            "file:///trees/1/tree/src/b%20c.py",
            "file:/trees/1/tree/src/b%20c.py",
            "file://localhost/trees/1/tree/src/b%20c.py",
        ],
    )
    def test_uris_name_paths_of_the_tree(self, uri: str) -> None:
        finding = only_finding(sarif_log(sarif_result(uri)), output="sarif")
        assert (finding.path, finding.severity) == ("src/b c.py", "blocking")

    @pytest.mark.parametrize(
        ("uri", "path"),
        [
            ("caf%E9.py", "caf\udce9.py"),
            ("caf%C3%A9.py", "café.py"),
            ("100%.py", "100%.py"),
            ("100%+1.py", "100%+1.py"),
            ("file:///elsewhere/a.py", "/elsewhere/a.py"),
            ("../a.py", "../a.py"),
            ("/trees/1/tree2/a.py", "/trees/1/tree2/a.py"),
        ],
    )
    def test_other_uris(self, uri: str, path: str) -> None:
        finding = only_finding(sarif_log(sarif_result(uri)), output="sarif")
        assert (finding.path, finding.severity) == (path, "advisory")

    def test_uri_bases_and_artifacts_by_index(self) -> None:
        bases = {"SRC": {"uri": "src", "uriBaseId": "ROOT"}, "ROOT": {"uri": "file:///trees/1/tree/"}}
        artifacts = [{"location": {"uri": "b%20c.py", "uriBaseId": "SRC"}}]
        result = sarif_result()
        result["locations"][0]["physicalLocation"]["artifactLocation"] = {"index": 0}
        log = sarif_log(result, originalUriBaseIds=bases, artifacts=artifacts)
        assert only_finding(log, output="sarif").path == "src/b c.py"

    def test_a_base_is_not_put_in_front_of_an_absolute_uri(self) -> None:
        result = sarif_result("file:///trees/1/tree/a.py")
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uriBaseId"] = "ROOT"
        log = sarif_log(result, originalUriBaseIds={"ROOT": {"uri": "file:///trees/1/tree/"}})
        assert only_finding(log, output="sarif").path == "a.py"

    def test_a_circle_of_uri_bases_ends(self) -> None:
        bases = {"A": {"uri": "x/", "uriBaseId": "B"}, "B": {"uri": "y/", "uriBaseId": "A"}}
        result = sarif_result()
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uriBaseId"] = "A"
        assert only_finding(sarif_log(result, originalUriBaseIds=bases), output="sarif").path.endswith("x/a.py")

    @pytest.mark.parametrize(
        "changes",
        [
            {"suppressions": [{"kind": "inSource"}]},
            {"suppressions": [{"kind": "external", "status": "accepted"}]},
            {"kind": "pass"},
            {"kind": "notApplicable"},
            {"baselineState": "absent"},
        ],
    )
    def test_what_is_no_finding(self, changes: dict[str, Any]) -> None:
        assert answer_of(sarif_log(sarif_result(**changes)), output="sarif").findings == ()

    @pytest.mark.parametrize("status", ["underReview", "rejected"])
    def test_a_suppression_that_is_not_accepted_suppresses_nothing(self, status: str) -> None:
        result = sarif_result(suppressions=[{"kind": "external"}, {"kind": "external", "status": status}])
        assert only_finding(sarif_log(result), output="sarif").severity == "blocking"

    def test_messages_by_id_with_arguments(self) -> None:
        log = json.loads(sarif_log(sarif_result(message={"id": "m", "arguments": ["x", "y"]})))
        log["runs"][0]["tool"]["driver"]["rules"][0]["messageStrings"] = {"m": {"text": "{0} shadows {1}"}}
        assert only_finding(json.dumps(log), output="sarif").message == "x shadows y"

    def test_an_end_at_the_first_column_is_the_line_before(self) -> None:
        result = sarif_result()
        result["locations"][0]["physicalLocation"]["region"] = {"startLine": 3, "endLine": 5, "endColumn": 1}
        finding = only_finding(sarif_log(result), output="sarif")
        assert (finding.start_line, finding.end_line, finding.end_column) == (3, 4, 0)

    def test_analysis_targets_are_the_coverage(self) -> None:
        artifacts = [
            {"location": {"uri": "a.py"}, "roles": ["analysisTarget"]},
            {"location": {"uri": "src/b%20c.py"}, "roles": ["resultFile"]},
        ]
        given = answer_of(sarif_log(artifacts=artifacts), output="sarif")
        assert given.reviewed == ("a.py",)
        assert given.skipped[0].reason == "not among the analysis targets of lint"
        assert verdict_of(given) == "unreviewed"

    def test_artifacts_without_that_role_say_nothing_about_coverage(self) -> None:
        log = sarif_log(sarif_result(), artifacts=[{"location": {"uri": "a.py"}}])
        assert answer_of(log, output="sarif").reviewed == OFFERED

    @pytest.mark.parametrize(
        ("invocation", "reason"),
        [
            ({"executionSuccessful": False}, "its log says that it failed"),
            ({}, "its log says that it failed"),
            ({"executionSuccessful": "true"}, "its log says that it failed"),
            (
                {"executionSuccessful": False, "exitCodeDescription": "out of memory"},
                'its log says that it failed: "out of memory"',
            ),
            (
                {
                    "executionSuccessful": True,
                    "toolExecutionNotifications": [{"level": "error", "message": {"text": "cannot parse a.py"}}],
                },
                'its log says that it failed: "cannot parse a.py"',
            ),
            (
                {
                    "executionSuccessful": True,
                    "toolConfigurationNotifications": [{"level": "error", "message": {"text": "no such rule"}}],
                },
                'its log says that it failed: "no such rule"',
            ),
        ],
    )
    def test_a_run_that_failed_is_no_pass_and_its_findings_are_told(
        self, invocation: dict[str, Any], reason: str
    ) -> None:
        assert unusable_of(sarif_log(invocations=[invocation]), output="sarif").reason == reason
        log = sarif_log(sarif_result(), invocations=[{"executionSuccessful": True}, invocation])
        assert len(unusable_of(log, output="sarif").findings) == 1

    def test_warnings_of_the_tool_are_no_failure(self) -> None:
        note = {"level": "warning", "message": {"text": "slow"}}
        log = sarif_log(invocations=[{"executionSuccessful": True, "toolExecutionNotifications": [note]}])
        assert verdict_of(answer_of(log, output="sarif")) == "pass"

    @pytest.mark.parametrize(
        ("raw", "reason"),
        [
            ('{"version": "2.0.0", "runs": []}', 'version is not "2.1.0"'),
            ('{"version": "2.1.0"}', "runs is missing"),
            ('{"version": "2.1.0", "runs": []}', "runs is empty"),
            ('{"version": "2.1.0", "runs": [{}]}', "name is missing"),
            ('{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}}]}', "results is missing"),
            (
                '{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": null}]}',
                "results is missing",
            ),
            (sarif_log(sarif_result(level="fatal")), 'level is "fatal"'),
            (sarif_log(sarif_result(locations=[])), 'no file is named for "text"'),
            (sarif_log(sarif_result(message={}, ruleId=None, ruleIndex=None)), "a result has no message"),
        ],
    )
    def test_an_incomplete_log_is_unusable(self, raw: str, reason: str) -> None:
        assert unusable_of(raw, output="sarif").reason == f"malformed answer: {reason}"

    def test_one_bad_run_among_two_spoils_the_log(self) -> None:
        log = json.loads(sarif_log())
        log["runs"].append({"tool": {"driver": {"name": "other"}}})
        unusable_of(json.dumps(log), output="sarif")


class TestRdjson:
    def test_a_clean_result_passes(self) -> None:
        given = answer_of('{"source": {"name": "lint"}, "diagnostics": []}', output="rdjson")
        assert (given, verdict_of(given)) == (Answer(reviewed=OFFERED, declared=True), "pass")

    def test_a_diagnostic_becomes_a_finding(self) -> None:
        diagnostic = {
            "message": "text",
            "location": {
                "path": "/trees/1/tree/a.py",
                "range": {"start": {"line": 3, "column": 2}, "end": {"line": 4, "column": 9}},
            },
            "severity": "ERROR",
            "code": {"value": "E1", "url": "https://example.org/E1"},
            "suggestions": [{"range": {}, "text": "do this"}],
        }
        assert only_finding(json.dumps({"diagnostics": [diagnostic]}), output="rdjson") == Finding(
            path="a.py",
            message="text",
            severity="blocking",
            start_line=3,
            end_line=4,
            start_column=2,
            end_column=9,
            rule="E1",
            suggestion="do this",
            reviewer="codex",
        )

    @pytest.mark.parametrize(
        ("given", "default", "severity"),
        [
            ("ERROR", None, "blocking"),
            ("WARNING", None, "advisory"),
            ("INFO", None, "nit"),
            ("UNKNOWN_SEVERITY", None, "advisory"),
            (1, None, "blocking"),
            (3, None, "nit"),
            (None, "INFO", "nit"),
            (None, None, "advisory"),
        ],
    )
    def test_severities(self, given: object, default: object, severity: str) -> None:
        diagnostic = {"message": "m", "location": {"path": "a.py"}, "severity": given}
        raw = json.dumps({"severity": default, "diagnostics": [diagnostic]})
        assert only_finding(raw, output="rdjson").severity == severity

    @pytest.mark.parametrize(
        ("raw", "reason"),
        [
            ("{}", "diagnostics is missing"),
            ('{"source": {"name": "lint"}}', "diagnostics is missing"),
            ('{"diagnostics": {}}', "diagnostics is no list"),
            ('{"diagnostics": [{"message": "m"}]}', "path is missing"),
            ('{"diagnostics": [{"location": {"path": "a.py"}}]}', "message is missing"),
            (
                '{"diagnostics": [{"message": "m", "location": {"path": "a.py"}, "severity": true}]}',
                "severity is none of ERROR, WARNING and INFO",
            ),
            ('{"severity": "BAD", "diagnostics": []}', "severity is none of ERROR, WARNING and INFO"),
        ],
    )
    def test_a_wrong_shape_is_unusable(self, raw: str, reason: str) -> None:
        assert unusable_of(raw, output="rdjson").reason == f"malformed answer: {reason}"

    def test_one_diagnostic_a_line_is_another_format(self) -> None:
        line = '{"message": "m", "location": {"path": "a.py"}}\n'
        assert unusable_of(line * 2, output="rdjson").reason == "more than one JSON value"
