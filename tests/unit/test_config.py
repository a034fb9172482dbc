from __future__ import annotations

from typing import Any

import pytest

from git_orch import config
from git_orch.config import Settings, parse, seconds, size, threshold
from git_orch.errors import UsageError
from git_orch.model import ReviewerSettings


def items(*lines: str) -> list[bytes]:
    """`key=value` as `git config -z` gives it; a key without `=` has no value."""
    return [line.replace("=", "\n", 1).encode("utf-8", "surrogateescape") for line in lines]


def settings(*lines: str, **env: str) -> Settings:
    return parse(items(*lines), env)


def test_nothing_set() -> None:
    assert settings() == Settings()
    assert Settings().reviewers == ("static",)
    assert not Settings().enabled


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("orch.enabled", "enabled", True),
        ("orch.enabled=true", "enabled", True),
        ("orch.enabled=Yes", "enabled", True),
        ("orch.enabled=off", "enabled", False),
        ("orch.enabled=", "enabled", False),
        ("orch.review.timeout=90", "review_timeout_s", 90.0),
        ("orch.review.failon=Advisory", "fail_on", "advisory"),
        ("orch.review.sandbox=false", "sandbox", False),
        ("orch.hookbudget=500ms", "hook_budget_s", 0.5),
        ("orch.settle=1m", "settle_s", 60.0),
        ("orch.maxreviews=4", "max_reviews", 4),
        ("orch.maxuntrackedbytes=1m", "max_untracked_bytes", 1 << 20),
        ("orch.dir=.git-orch", "directory", ".git-orch"),
        ("orch.keepruns=0", "keep_runs", 0),
        ("orch.keepdays=7", "keep_days", 7),
        ("orch.keepbytes=2g", "keep_bytes", 2 << 30),
        ("ORCH.MaxReviews=3", "max_reviews", 3),
        ("orch.review.provide=node_modules .venv", "provide", ("node_modules", ".venv")),
    ],
)
def test_a_setting(line: str, field: str, value: Any) -> None:
    assert settings(line) == Settings(**{field: value})


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("orch.enabled=maybe", "orch.enabled: `maybe` is neither true nor false"),
        ("orch.review.timeout=soon", "orch.review.timeout: `soon` is not a duration"),
        ("orch.review.timeout=0", "orch.review.timeout: `0` is not a duration"),
        ("orch.review.timeout", "orch.review.timeout: `true` is not a duration"),
        ("orch.review.failon=high", "orch.review.failon: `high` is none of blocking, advisory, nit, never"),
        ("orch.maxreviews=0", "orch.maxreviews: `0` would let nothing run"),
        ("orch.maxreviews=-1", "orch.maxreviews: `-1` is not a whole number"),
        ("orch.keepdays=1.5", "orch.keepdays: `1.5` is not a whole number"),
        ("orch.keepruns=99999999999999999999", "orch.keepruns: `99999999999999999999` is not a whole number"),
        ("orch.keepbytes=lots", "orch.keepbytes: `lots` is not a size"),
        ("orch.dir=../x", "orch.dir: `../x` is not a plain folder name"),
        ("orch.dir=.git", "orch.dir: `.git` is not a plain folder name"),
        ("orch.dir=", "orch.dir: `` is not a plain folder name"),
        ("orch.reviewer.a b.command=x", "orch.reviewer.a b.command: a reviewer's name is made of a-z, 0-9 and -"),
        ("orch.reviewer.x.output=xml", "orch.reviewer.x.output: `xml` is none of json, sarif, rdjson"),
    ],
)
def test_a_bad_value_names_its_key(line: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        settings(line)
    assert refused.value.message == says
    assert refused.value.exit_code == 2


def test_the_last_value_of_a_single_setting_holds() -> None:
    assert settings("orch.maxreviews=1", "orch.maxreviews=5").max_reviews == 5


def test_lists_add_up_until_an_empty_value_takes_them_back() -> None:
    assert settings("orch.reviewers=static", "orch.reviewers=claude, codex").reviewers == ("static", "claude", "codex")
    assert settings("orch.reviewers=static", "orch.reviewers=static").reviewers == ("static",)
    assert settings("orch.reviewers=claude", "orch.reviewers=", "orch.reviewers=codex").reviewers == ("codex",)
    assert settings("orch.reviewers=claude", "orch.reviewers=").reviewers == ("static",)


def test_unknown_keys_are_told() -> None:
    read = settings("orch.colour=red", "orch.review.depth=3", "orch.reviewer.x.modell=y", "orch.gate.mach=exact")
    assert read.unknown == ("orch.colour", "orch.review.depth", "orch.reviewer.x.modell", "orch.gate.mach")
    assert read == Settings(unknown=read.unknown)


def test_bases_of_branches() -> None:
    read = settings("branch.topic.orchbase=main", "branch.a.b/c.orchbase=v1.0", "branch.topic.orchbase=origin/main")
    assert dict(read.branch_bases) == {"topic": "origin/main", "a.b/c": "v1.0"}


def test_a_reviewer() -> None:
    read = settings(
        "orch.reviewer.lint.command=sh -c 'a=b\nc'",
        "orch.reviewer.lint.output=SARIF",
        "orch.reviewer.lint.timeout=5m",
        "orch.reviewer.Lint.stall=10",
        "orch.reviewer.lint.required=no",
        "orch.reviewer.lint.network",
        "orch.review.timeout=20m",
        "orch.reviewer.other.command=x",
    )
    assert read.reviewer("lint") == ReviewerSettings(
        name="lint",
        command="sh -c 'a=b\nc'",
        output="sarif",
        timeout_s=300.0,
        stall_s=10.0,
        required=False,
        network=True,
    )
    assert read.reviewer("other") == ReviewerSettings(name="other", command="x", timeout_s=1200.0)


def test_static_has_its_own_time() -> None:
    assert settings("orch.review.timeout=20m").reviewer("static").timeout_s == 60.0
    assert settings("orch.reviewer.static.required=false").reviewer("static").timeout_s == 60.0
    assert settings("orch.reviewer.static.timeout=5").reviewer("static").timeout_s == 5.0


def test_a_reviewer_that_is_none() -> None:
    with pytest.raises(UsageError) as refused:
        settings("orch.reviewer.claude.command=x").reviewer("cluade")
    known = "(claude codex copilot cursor gemini opencode qwen static)"
    assert refused.value.message == f"no reviewer `cluade` here; did you mean claude? {known}"
    with pytest.raises(UsageError) as refused:
        settings().reviewer("zzz")
    assert refused.value.message == f"no reviewer `zzz` here {known}"


def test_the_environment_overrides() -> None:
    assert settings("orch.review.timeout=1h", ORCH_TIMEOUT="30").review_timeout_s == 30.0
    assert settings("orch.hookbudget=5", ORCH_HOOK_BUDGET="2s").hook_budget_s == 2.0
    assert settings(ORCH_TIMEOUT="").review_timeout_s == 600.0
    with pytest.raises(UsageError) as refused:
        settings(ORCH_TIMEOUT="later")
    assert refused.value.message == "ORCH_TIMEOUT: `later` is not a duration"


def test_bytes_that_are_no_utf_8_come_back_as_they_were() -> None:
    read = settings("orch.reviewer.x.command=\udcff")
    assert read.reviewer("x").command.encode("utf-8", "surrogateescape") == b"\xff"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("90", 90.0),
        ("90s", 90.0),
        ("10m", 600.0),
        ("10min", 600.0),
        ("2h", 7200.0),
        ("1d", 86_400.0),
        ("1.5s", 1.5),
        (" 3 ", 3.0),
        ("10M", 600.0),
    ],
)
def test_durations(text: str, value: float) -> None:
    assert seconds("k", text) == value


@pytest.mark.parametrize("text", ["", "s", "-1", "0", "1x", "nan", "inf", "1e99", "ten", "1 2", "0x10"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError):
        seconds("k", text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("500", 500), ("64k", 65_536), ("10M", 10 << 20), ("1g", 1 << 30), ("10MiB", 10 << 20), ("5kb", 5120)],
)
def test_sizes(text: str, value: int) -> None:
    assert size("k", text) == value


@pytest.mark.parametrize("text", ["", "k", "-1", "1.5m", "1t", "1mk", "\u0663", "b"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError):
        size("k", text)


def test_thresholds() -> None:
    assert [threshold("k", word) for word in ("blocking", "ADVISORY", "nit", "never")] == [
        "blocking",
        "advisory",
        "nit",
        "never",
    ]
    assert config.BUILT_IN == "static"
