"""Whatever is done to the bytes of a passing answer, they pass only while they still say so.

What the bytes say is told by an oracle that shares nothing with the readers: it knows only the standard `json`.
"""

from __future__ import annotations

import json
import posixpath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from git_orch import verdict
from git_orch.model import Coverage, Exited, ReviewerSettings, Signalled, TimedOut
from git_orch.reviewers import answers
from git_orch.reviewers.answers import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from git_orch.model import Outcome

ROOT = "/trees/1/tree"
NONCE = "9f3a61c2"
TOKENS = {"a.py": "t0ken-a", "src/b c.py": "t0ken-b", "caf\udce9.txt": "t0ken-c"}
OFFERED = tuple(TOKENS)
QUICK, THOROUGH = 300, 2000


class Sample(NamedTuple):
    """An answer that passes, the request that it answers, and the oracle of its format."""

    name: str
    output: Literal["json", "sarif", "rdjson"]
    document: dict[str, Any]
    request: Request

    @property
    def raw(self) -> bytes:
        return json.dumps(self.document, ensure_ascii=True).encode()


def own(files: list[Any], **more: Any) -> dict[str, Any]:
    return {"schema_version": "1", "nonce": NONCE, "status": "no_findings", "files": files, "findings": [], **more}


def sarif(**run: Any) -> dict[str, Any]:
    return {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "lint"}}, "results": [], **run}]}


PLAIN = Request(nonce=NONCE, offered=OFFERED, root=ROOT)
PROVEN = PLAIN.replace(tokens=TOKENS)
TARGETS = [{"location": {"uri": uri}, "roles": ["analysisTarget"]} for uri in ("a.py", "src/b%20c.py", "caf%E9.txt")]
SAMPLES = [
    Sample("plain paths", "json", own(list(OFFERED)), PLAIN),
    Sample(
        "with a reason",
        "json",
        own(list(OFFERED), reason="read all", skipped=[{"path": "elsewhere.py", "reason": "large"}]),
        PLAIN,
    ),
    Sample("tokens", "json", own([{"path": path, "token": token} for path, token in TOKENS.items()]), PROVEN),
    Sample("sarif", "sarif", sarif(), PLAIN),
    Sample("sarif invocations", "sarif", sarif(invocations=[{"executionSuccessful": True}]), PLAIN),
    Sample("sarif targets", "sarif", sarif(artifacts=TARGETS), PLAIN),
    Sample("rdjson", "rdjson", {"source": {"name": "lint"}, "severity": "WARNING", "diagnostics": []}, PLAIN),
]
WRAPPERS = [
    (b"Here is my review:\n", b""),
    (b"", b"\nLet me know if you need more."),
    (b"```json\n", b"\n```"),
    (b"[", b"]"),
    (b"\xef\xbb\xbf", b"\r\n"),
    (b" \t", b"\n\n"),
    (b'{"result":', b"}"),
    (b"null\n", b""),
]


def oracle(raw: bytes, sample: Sample) -> bool:
    """Whether the bytes are one object that says: nothing found, and all that was offered was read."""
    try:
        document = json.loads(raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8"), parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError, RecursionError):
        return False
    if not isinstance(document, dict):
        return False
    return {"json": own_says_so, "sarif": sarif_says_so, "rdjson": rdjson_says_so}[sample.output](
        document, sample.request
    )


def own_says_so(document: dict[str, Any], request: Request) -> bool:
    head = (document.get("schema_version"), document.get("nonce"), document.get("status"))
    if head != ("1", NONCE, "no_findings") or document.get("findings"):
        return False
    files, skipped = document.get("files"), document.get("skipped") or []
    if not isinstance(files, list) or not isinstance(skipped, list):
        return False
    entries = [{"path": entry} if isinstance(entry, str) else entry for entry in files]
    read = {
        plain(entry["path"])
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("path"), str)
        if not request.tokens or entry.get("token") == TOKENS.get(plain(entry["path"]))
    }
    return read.issuperset(OFFERED) and not any(plain(str(entry.get("path"))) in OFFERED for entry in skipped)


def sarif_says_so(document: dict[str, Any], _: Request) -> bool:
    runs = document.get("runs")
    return (
        document.get("version") == "2.1.0"
        and isinstance(runs, list)
        and len(runs) > 0
        and all(isinstance(run, dict) and sarif_run_is_clean(run) for run in runs)
    )


def sarif_run_is_clean(run: dict[str, Any]) -> bool:
    succeeded = all(invocation.get("executionSuccessful") is True for invocation in run.get("invocations") or [])
    targets = [entry for entry in run.get("artifacts") or [] if "analysisTarget" in (entry.get("roles") or [])]
    uris = {posixpath.normpath((entry.get("location") or {}).get("uri") or "") for entry in targets}
    covered = not uris - {"."} or len(uris & {"a.py", "src/b%20c.py", "src/b c.py", "caf%E9.txt", "caf%e9.txt"}) >= 3
    return run.get("results") == [] and succeeded and covered


def rdjson_says_so(document: dict[str, Any], _: Request) -> bool:
    return document.get("diagnostics") == [] and isinstance(document["diagnostics"], list)


def plain(path: str) -> str:
    return posixpath.normpath(path).removeprefix(ROOT + "/")


def passes(raw: bytes, sample: Sample, outcome: Outcome, result: bytes | None = None) -> bool:
    reviewer = ReviewerSettings(name="codex", output=sample.output)
    answer = answers.read(
        reviewer, raw_result=result, raw_stdout=raw, outcome=outcome, request=sample.request, raw_stderr=b"warning\n"
    )
    review = verdict.of_reviewer(reviewer, outcome, answer)
    of_run, _ = verdict.of_run([review], Coverage(offered=OFFERED, reviewed=review.reviewed), "nit")
    assert (of_run == "pass") == (review.verdict == "pass")
    return review.verdict == "pass"


# Changes to the bytes: each strategy gives a function from bytes to bytes.
positions = st.integers(0, 2000)


def cut_out(start: int, length: int) -> Callable[[bytes], bytes]:
    return lambda raw: raw[: start % (len(raw) + 1)] + raw[start % (len(raw) + 1) + length :]


def put_in(start: int, what: bytes) -> Callable[[bytes], bytes]:
    return lambda raw: raw[: start % (len(raw) + 1)] + what + raw[start % (len(raw) + 1) :]


def overwrite(start: int, what: bytes) -> Callable[[bytes], bytes]:
    return lambda raw: raw[: start % (len(raw) + 1)] + what + raw[start % (len(raw) + 1) + len(what) :]


def double(start: int, length: int) -> Callable[[bytes], bytes]:
    return lambda raw: put_in(start, raw[start % (len(raw) + 1) :][:length])(raw)


def swap(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda raw: raw.replace(old, new, 1)


def wrap(around: tuple[bytes, bytes]) -> Callable[[bytes], bytes]:
    return lambda raw: around[0] + raw + around[1]


fragments = st.one_of(
    st.binary(min_size=1, max_size=4),
    st.sampled_from([b'"', b"{", b"}", b"[", b"]", b",", b":", b"null", b"true", b"1", b" ", b"\\", b"\x00", b"\xff"]),
    st.sampled_from([b'"findings":[{}],', b'"status":"findings",', b'"results":[{}],', b'"diagnostics":null,']),
)
WORDS = [b"no_findings", b"findings", b"unable_to_review", NONCE.encode(), b'"1"', b"1", b"a.py", b"t0ken-a", b"2.1.0"]
WORDS += [
    b"true",
    b"false",
    b"[]",
    b"{}",
    b'"files"',
    b'"nonce"',
    b'"results"',
    b'"diagnostics"',
    b'"path"',
    b'"roles"',
]
changes_of_bytes = st.one_of(
    st.builds(cut_out, positions, st.integers(1, 40)),
    st.builds(cut_out, positions, st.just(5000)),
    st.builds(put_in, positions, fragments),
    st.builds(overwrite, positions, fragments),
    st.builds(double, positions, st.integers(1, 200)),
    st.builds(swap, st.sampled_from(WORDS), st.sampled_from([*WORDS, b""])),
    st.builds(wrap, st.sampled_from(WRAPPERS)),
    st.just(lambda raw: raw + raw),
    st.just(lambda raw: raw + b"\n" + raw[: len(raw) // 2]),
)
samples = st.sampled_from(SAMPLES)
fine: Outcome = Exited(code=0)
outcomes = st.sampled_from(
    [fine, fine, fine, Exited(code=1), Exited(code=2), Signalled(signal=9), TimedOut(after_s=1.0)]
)

# Changes to the document: a value anywhere in it is replaced, dropped, or joined by another.
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.floats(allow_nan=False),
    st.sampled_from(
        ["", "1", NONCE, NONCE[:-1], "findings", "no_findings", "a.py", "./a.py", f"{ROOT}/a.py", "t0ken-a"]
    ),
    st.text(max_size=5),
)
values = (
    scalars
    | st.lists(scalars, max_size=2)
    | st.dictionaries(st.sampled_from(["path", "token", "x"]), scalars, max_size=2)
)


class Edit(NamedTuple):
    """Where in the document, counted over all its places, and what happens there."""

    place: int
    kind: Literal["replace", "drop", "insert"]
    value: Any


edits = st.builds(Edit, st.integers(0, 60), st.sampled_from(["replace", "drop", "insert"]), values)


def edited(document: Any, edit: Edit) -> Any:
    document = json.loads(json.dumps(document))
    places = list(places_in(document))
    parent, key = places[edit.place % len(places)]
    match edit.kind:
        case "replace":
            parent[key] = edit.value
        case "drop":
            del parent[key]
        case "insert" if isinstance(parent, list):
            parent.insert(key, edit.value)
        case "insert":
            parent[f"{key}_"] = edit.value
    return document


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Each container of the value with each of its keys or indices."""
    if not isinstance(value, dict | list):
        return []
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    return [(value, key) for key, _ in items] + [place for _, inner in items for place in places_in(inner)]


def check_bytes(sample: Sample, changes: list[Callable[[bytes], bytes]], outcome: Outcome) -> None:
    raw = sample.raw
    for change in changes:
        raw = change(raw)
    if passes(raw, sample, outcome):
        assert oracle(raw, sample)
        assert outcome == fine
    if raw.strip():  # in the result file the same bytes mean the same, whatever stands on standard output
        assert passes(sample.raw, sample, outcome, result=raw) == passes(raw, sample, outcome)


def check_document(sample: Sample, some_edits: list[Edit]) -> None:
    document = sample.document
    for edit in some_edits:
        if not places_in(document):
            break
        document = edited(document, edit)
    raw = json.dumps(document).encode()
    if passes(raw, sample, fine):
        assert oracle(raw, sample)


bounded = settings(max_examples=QUICK, suppress_health_check=[HealthCheck.too_slow])
thorough = settings(bounded, max_examples=THOROUGH)
some_changes = st.lists(changes_of_bytes, min_size=1, max_size=4)
some_edits = st.lists(edits, min_size=1, max_size=3)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_the_samples_pass_and_the_oracle_agrees(sample: Sample) -> None:
    assert passes(sample.raw, sample, fine)
    assert oracle(sample.raw, sample)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_each_single_cut_and_each_missing_byte_is_judged_as_the_oracle_does(sample: Sample) -> None:
    for at in range(len(sample.raw)):
        for raw in (sample.raw[:at], sample.raw[:at] + sample.raw[at + 1 :]):
            assert not passes(raw, sample, fine) or oracle(raw, sample)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_harmless_changes_still_pass(sample: Sample) -> None:
    """Else the properties below would hold for a reader that never lets anything pass."""
    spread = json.dumps({**sample.document, "extra": {"status": "findings"}}, indent=2).encode()
    for raw in (
        spread,
        b"\xef\xbb\xbf" + sample.raw + b"\n",
        json.dumps(dict(reversed(sample.document.items()))).encode(),
    ):
        assert oracle(raw, sample)
        assert passes(raw, sample, fine)


@example(sample=SAMPLES[0], changes=[swap(b'"findings": []', b'"findings": [{}]')], outcome=fine)
@example(sample=SAMPLES[1], changes=[swap(b"elsewhere.py", b"a.py")], outcome=fine)
@example(sample=SAMPLES[1], changes=[swap(b"read all", b"read \xff all")], outcome=fine)
@example(sample=SAMPLES[2], changes=[swap(b"t0ken-a", b"t0ken-b")], outcome=fine)
@example(sample=SAMPLES[4], changes=[swap(b"true", b"false")], outcome=fine)
@bounded
@given(sample=samples, changes=some_changes, outcome=outcomes)
def test_changed_bytes_never_pass_unless_they_say_so(
    sample: Sample, changes: list[Callable[[bytes], bytes]], outcome: Outcome
) -> None:
    check_bytes(sample, changes, outcome)


@bounded
@given(sample=samples, changes=some_edits)
def test_a_changed_document_never_passes_unless_it_says_so(sample: Sample, changes: list[Edit]) -> None:
    check_document(sample, changes)


@pytest.mark.slow
@thorough
@given(sample=samples, changes=some_changes, outcome=outcomes)
def test_changed_bytes_at_length(sample: Sample, changes: list[Callable[[bytes], bytes]], outcome: Outcome) -> None:
    check_bytes(sample, changes, outcome)


@pytest.mark.slow
@thorough
@given(sample=samples, changes=some_edits)
def test_a_changed_document_at_length(sample: Sample, changes: list[Edit]) -> None:
    check_document(sample, changes)


@bounded
@given(raw=st.binary(max_size=200), output=st.sampled_from(["json", "sarif", "rdjson"]))
def test_arbitrary_bytes_are_judged_and_never_pass(raw: bytes, output: Literal["json", "sarif", "rdjson"]) -> None:
    reviewer = ReviewerSettings(name="codex", output=output)
    answer = answers.read(reviewer, raw_result=None, raw_stdout=raw, outcome=fine, request=PLAIN)
    review = verdict.of_reviewer(reviewer, fine, answer)
    assert review.verdict == "unreviewed"
    assert review.reason.isprintable()
