"""The clients' own outputs taken apart, and their command lines for every version."""

from __future__ import annotations

import json

import pytest

from git_orch.config import AGENTS
from git_orch.model import Cancelled, Exited, ReviewerSettings, Signalled, Stalled, TimedOut
from git_orch.reviewers import agents
from git_orch.reviewers.client import Call, Flag, Output, TooOld, spelled
from git_orch.reviewers.reading import Answer, Request, Unusable
from tests.unit import client_samples as samples

NONCE = "0123456789abcdef0123456789abcdef"
TOKENS = {"a.py": "t0ken-a", "src/b c.py": "t0ken-b", "caf\udce9.txt": "t0ken-c"}
REQUEST = Request(nonce=NONCE, offered=tuple(TOKENS), tokens=TOKENS, root="/t/tree")
CALL = Call(tree="/t/tree", folder="/t/request", schema="{}", model="fast", timeout_s=90, budget_usd=1.0)
IN_TEXT = [name for name in AGENTS if agents.answers_in_text(name)]


def passing(**changes: object) -> dict[str, object]:
    files = [{"path": path.replace("\udce9", "\ufffd"), "token": token} for path, token in TOKENS.items()]
    head = {"schema_version": "1", "nonce": NONCE, "status": "no_findings", "reason": None}
    return {**head, "files": files, "findings": [], **changes}


def read(
    name: str, stdout: bytes, stderr: bytes = b"", outcome: object = Exited(code=0), usage: bytes = b""
) -> agents.Reply:
    settings = ReviewerSettings(name=name)
    output = Output(stdout=stdout, stderr=stderr, usage=usage)
    return agents.read(agents.client(name), settings, output, outcome, REQUEST)  # type: ignore[arg-type]


# -- answers


@pytest.mark.parametrize("name", AGENTS)
def test_an_answer_in_the_clients_own_form_is_understood(name: str) -> None:
    answer = read(name, samples.answering(name, passing())).answer
    assert answer == Answer(reviewed=tuple(TOKENS))


@pytest.mark.parametrize("name", AGENTS)
def test_findings_are_understood(name: str) -> None:
    found = {"path": "src/b c.py", "start_line": 3, "end_line": 3, "severity": "blocking", "rule": "r", "message": "m"}
    given = passing(status="findings", findings=[{**found, "fails_when": "x", "suggestion": None}])
    answer = read(name, samples.answering(name, given)).answer
    assert isinstance(answer, Answer)
    (finding,) = answer.findings
    assert (finding.path, finding.start_line, finding.reviewer) == ("src/b c.py", 3, name)


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("code", [1, 2, 130])
def test_the_exit_status_is_no_judgement(name: str, code: int) -> None:
    stdout = samples.answering(name, passing())
    assert isinstance(read(name, stdout, outcome=Exited(code=code)).answer, Answer)


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize(
    "outcome", [TimedOut(after_s=600.0), Stalled(after_s=180.0), Signalled(signal=9), Cancelled(reason="cancelled")]
)
def test_a_client_that_was_ended_gives_no_pass(name: str, outcome: object) -> None:
    assert isinstance(read(name, samples.answering(name, passing()), outcome=outcome).answer, Unusable)


@pytest.mark.parametrize("name", AGENTS)
def test_a_file_without_its_token_was_not_reviewed(name: str) -> None:
    files = [{"path": "a.py", "token": "t0ken-a"}, {"path": "src/b c.py", "token": "t0ken-a"}]
    answer = read(name, samples.answering(name, passing(files=files))).answer
    assert isinstance(answer, Answer)
    assert answer.reviewed == ("a.py",)
    assert [skip.path for skip in answer.skipped] == ["src/b c.py", "caf\udce9.txt"]


@pytest.mark.parametrize("name", AGENTS)
def test_another_requests_nonce_is_no_answer(name: str) -> None:
    assert isinstance(read(name, samples.answering(name, passing(nonce="f" * 32))).answer, Unusable)


@pytest.mark.parametrize(("name", "stdout", "stderr", "fault"), samples.NO_ANSWERS)
def test_what_a_client_writes_in_place_of_an_answer(name: str, stdout: bytes, stderr: bytes, fault: str) -> None:
    reply = read(name, stdout, stderr, outcome=Exited(code=0))
    assert isinstance(reply.answer, Unusable)
    assert reply.answer.reason
    assert reply.heard.said is not None
    assert reply.heard.said.fault == fault


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize(
    "stdout", [b"", b" \n", b"null", b"{}", b"[]", b"[{}]", b"1", b'"x"', b"\xff", b"No issues found."]
)
def test_odd_outputs_are_no_answers(name: str, stdout: bytes) -> None:
    for stderr in (b"", b"\xffsomething\n"):
        assert isinstance(read(name, stdout, stderr).answer, Unusable)


@pytest.mark.parametrize("name", AGENTS)
def test_nothing_at_all_is_worth_one_more_try(name: str) -> None:
    answer = read(name, b"").answer
    assert isinstance(answer, Unusable)
    assert answer.empty


@pytest.mark.parametrize("name", IN_TEXT)
@pytest.mark.parametrize(
    "wrapped",
    [
        "Here is my review:\n{}",
        "{}\nLet me know if you need more.",
        "```json\n{}\n```\nDone.",
        "{}{}",
        "[{}]",
        "I am unable to read the diff.",
        "no issues beyond the two above",
    ],
)
def test_prose_around_an_answer_is_none(name: str, wrapped: str) -> None:
    text = wrapped.replace("{}", json.dumps(passing()))
    stdout = getattr(samples, name)(text)
    reply = read(name, stdout)
    assert isinstance(reply.answer, Unusable)
    assert reply.answer.note  # kept for a person, never dropped silently


@pytest.mark.parametrize("name", IN_TEXT)
@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```\n", "\n```json\n{}\n```"])
def test_a_fence_around_all_of_it_is_no_prose(name: str, fence: str) -> None:
    text = fence.replace("{}", json.dumps(passing()))
    assert isinstance(read(name, getattr(samples, name)(text)).answer, Answer)


def test_a_rate_limit_in_an_ordinary_answer_is_none() -> None:
    found = {"path": "a.py", "start_line": 1, "end_line": 1, "severity": "nit", "rule": "r"}
    given = passing(status="findings", findings=[{**found, "message": "429 rate limit, resets 3:20am"}])
    for name in AGENTS:
        reply = read(name, samples.answering(name, given), b"")
        assert isinstance(reply.answer, Answer)
        assert reply.heard.said is None


def test_a_client_that_was_ended_while_it_retried_a_limit_has_told_of_it() -> None:
    stderr = b"Retrying in 60s (attempt 1/10): [API Error: 429 Rate limit exceeded, try again in 20 minutes]"
    reply = read("qwen", b"", stderr, outcome=TimedOut(after_s=600.0))
    assert isinstance(reply.answer, Unusable)
    assert reply.answer.reason.startswith("rate limited until ")
    assert reply.answer.reason.endswith("; no answer within 600 s")


# -- what it cost


@pytest.mark.parametrize(
    ("name", "tokens", "cached", "cost"),
    [
        ("claude", 41, 100, 0.09),
        ("codex", 36, 100, 0.0),
        ("gemini", 36, 100, 0.0),
        ("qwen", 36, 100, 0.0),
        ("copilot", 36, 100, 0.0),
        ("opencode", 36, 100, 0.09),
    ],
)
def test_tokens_and_cost_are_counted_without_what_came_from_a_cache(
    name: str, tokens: int, cached: int, cost: float
) -> None:
    heard = read(name, samples.answering(name, passing()), usage=samples.COPILOT_USAGE).heard
    assert (heard.tokens, heard.cached_tokens) == (tokens, cached)
    assert heard.cost_usd == pytest.approx(cost)
    assert heard.session_id == samples.SESSION


@pytest.mark.parametrize("value", [-1, True, "12", None, 1e30, [], {}])
def test_a_count_that_is_none_counts_nothing(value: object) -> None:
    usage = {"input_tokens": value, "output_tokens": 3}
    heard = read("claude", samples.claude(passing(), usage=usage, total_cost_usd=value)).heard
    assert (heard.tokens, heard.cost_usd) == (3, 0.0)


# -- command lines


@pytest.mark.parametrize("name", AGENTS)
def test_a_client_with_all_its_options_is_called_with_all_of_them(name: str) -> None:
    flags = agents.client(name).flags(CALL)
    known = frozenset(flag.words[0].partition("=")[0] for flag in flags)
    words, adjusted = spelled(flags, known)
    assert words == tuple(word for flag in flags for word in flag.words)
    assert adjusted == ()
    assert spelled(flags, None) == (words, ())
    assert "fast" in words


@pytest.mark.parametrize("name", AGENTS)
def test_no_prompt_and_no_path_of_the_checkout_is_on_the_command_line(name: str) -> None:
    words, _ = spelled(agents.client(name).flags(CALL.replace(model="")), None)
    assert all(not word.startswith("/") or word.startswith("/t/request") for word in words)
    assert "--model" not in words


@pytest.mark.parametrize("name", AGENTS)
def test_without_an_option_that_keeps_it_safe_it_is_not_called(name: str) -> None:
    flags = agents.client(name).flags(CALL)
    everything = frozenset(word for flag in flags for word in (flag.words[0].partition("=")[0], *flag.instead[:1]))
    needed = [flag for flag in flags if flag.needed]
    assert needed
    for flag in needed:
        lacks = everything - {flag.words[0].partition("=")[0], *flag.instead[:1]}
        with pytest.raises(TooOld):
            spelled(flags, lacks)


def test_a_missing_option_is_left_out_and_told() -> None:
    flags = (Flag(words=("--safe",), needed=True), Flag(words=("--nice", "3"), lost="so it is not nice"))
    words, adjusted = spelled(flags, frozenset(("--safe",)))
    assert words == ("--safe",)
    assert adjusted == ("--nice: not known to this version, so it is not nice",)


def test_a_missing_option_is_said_otherwise_and_told() -> None:
    flags = (Flag(words=("--safe-mode",), instead=("--bare",), needed=True),)
    assert spelled(flags, frozenset(("--bare",))) == (("--bare",), ("--safe-mode: said as --bare",))


@pytest.mark.parametrize("name", AGENTS)
def test_a_client_of_a_session_is_no_part_of_a_module_that_a_name_cannot_reach(name: str) -> None:
    module = agents.client(name)
    assert name == module.NAME
    assert module.PROGRAMS
    assert module.TITLE
    assert all(raw is None or json.loads(raw) is not None for raw in module.planted().values())
