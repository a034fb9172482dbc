"""No key stands in here as a whole; each is put together when the test runs."""

from __future__ import annotations

import pkgutil
import re
import socket
import sys
from base64 import b64encode, urlsafe_b64encode
from importlib import import_module
from types import ModuleType
from typing import Any

import detect_secrets.plugins
import pytest
from detect_secrets.plugins.private_key import PrivateKeyDetector
from hypothesis import given
from hypothesis import strategies as st
from pre_commit_hooks import detect_private_key

from git_orch.reviewers.static import detectors, key_blocks, secrets
from git_orch.reviewers.static.detectors import DETECTORS, Detector
from tests.unit.static_sources import ALPHANUMERIC, HEX, changed, mixed, new, pem, told

UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def b64(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


JWT = ".".join((b64('{"alg":"HS256","typ":"JWT"}'), b64('{"sub":"8812","name":"Jo"}'), mixed(43)))
KEYS = {
    "secret-aws": [
        'AWS_ACCESS_KEY_ID = "' + "AKIA" + mixed(16, UPPER) + '"',
        "key=" + "ASIA" + mixed(16, UPPER),
        "aws_secret_access_key = '" + mixed(40, ALPHANUMERIC + "/+") + "'",
    ],
    "secret-azure": ["DefaultEndpointsProtocol=https;AccountKey=" + mixed(86, ALPHANUMERIC + "+/") + "==;x=y"],
    "secret-discord": ["token: " + b64("123456789012345678") + "." + mixed(6, seed=2) + "." + mixed(27)],
    "secret-github": ["ghp_" + mixed(36), "x=gho_" + mixed(36), "github_pat_" + mixed(82)],
    "secret-gitlab": ["glpat-" + mixed(20), "GR1348941" + mixed(20), "glrt-" + mixed(20)],
    "secret-jwt": ["Authorization: Bearer " + JWT],
    "secret-mailchimp": ["mc = '" + mixed(32, HEX) + "-us12'"],
    "secret-npm": ["//registry.npmjs.org/:_authToken=npm_" + mixed(36), "NPM_TOKEN=npm_" + mixed(36)],
    "secret-openai": ["sk-" + mixed(20) + "T3BlbkFJ" + mixed(20), "sk-proj-" + mixed(30) + "T3BlbkFJ" + mixed(20)],
    "secret-pypi": ["password = pypi-AgEIcHlwaS5vcmc" + mixed(80)],
    "secret-sendgrid": ["SG." + mixed(22) + "." + mixed(43)],
    "secret-slack": [
        "xoxb-" + mixed(12, "123456789") + "-" + mixed(12, "123456789", 3) + "-" + mixed(24),
        "https://hooks.slack.com/services/T" + mixed(8, UPPER) + "/B" + mixed(8, UPPER) + "/" + mixed(24),
    ],
    "secret-square": ["sq0csp-" + mixed(43)],
    "secret-stripe": ["sk_live_" + mixed(24), "rk_live_" + mixed(24)],
    "secret-telegram": ["bot" + " " + mixed(9, "123456789") + ":AA" + mixed(33)],
    "secret-twilio": ["SK" + mixed(32, HEX)],
    "secret-age": ["AGE-SECRET-KEY-1" + mixed(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L")],
    "secret-anthropic": ["sk-ant-api03-" + mixed(93)],
    "secret-digitalocean": ["dop_v1_" + mixed(64, HEX)],
    "secret-google": ["GOCSPX-" + mixed(28), "AIza" + mixed(35)],
    "secret-huggingface": ["hf_" + mixed(34)],
    "secret-shopify": ["shpat_" + mixed(32, HEX)],
}
ALL_KEYS = [(rule, line) for rule, lines in KEYS.items() for line in lines]
ALL_LINES = [line for _, line in ALL_KEYS]
ADVISORY = {"secret-jwt"}


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever opens a socket or asks for a name fails the test."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a check opened a socket")

    for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname", "socketpair"):
        monkeypatch.setattr(socket, name, refuse)


@pytest.mark.parametrize(("rule", "line"), ALL_KEYS)
def test_a_key_of_each_provider_is_found_where_it_stands(rule: str, line: str) -> None:
    (finding,) = secrets.check(new("config.txt", f"first\n  {line}  \nlast\n"))
    severity = "advisory" if rule in ADVISORY or "AIza" in line else "blocking"
    assert (finding.rule, finding.severity, finding.start_line) == (rule, severity, 2)
    assert 3 <= finding.start_column < finding.end_column <= len(line) + 3


def test_every_detector_has_its_example() -> None:
    assert {detector.rule for detector in DETECTORS} == set(KEYS)


@pytest.mark.parametrize("line", ALL_LINES)
def test_a_message_never_holds_the_key(line: str) -> None:
    (finding,) = secrets.check(new("config.txt", line + "\n"))
    told = finding.message + finding.suggestion + finding.fails_when
    key = max(re.findall(r"[\w+/.-]+", line), key=len)
    assert not [key[at : at + 5] for at in range(len(key) - 4) if key[at : at + 5] in told]
    assert re.search(r"`.{4}…` \(\d+ characters\)", finding.message)


@pytest.mark.parametrize("line", ALL_LINES)
def test_a_key_that_was_there_is_not_told(line: str) -> None:
    assert not list(secrets.check(changed("config.txt", f"{line}\nnew\n", [(2, 2)])))


@pytest.mark.parametrize(
    "line",
    [
        "AKIA" + "IOSFODNN7EXAMPLE",
        "aws_secret_access_key = '" + "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY'",
        "AKIA" + "X" * 16,
        "AKIA" + "1234567890ABCDEF",
        "AccountKey=" + "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
        "AccountKey=" + "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==",
        "ghp_" + "x" * 36,
        "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
        "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
        "glpat-" + "xxxxxxxxxxxxxxxxxxxx",
        "sk_live_" + "0" * 24,
        "https://hooks.slack.com/services/" + "T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
        "xoxb-not-a-token",
        "xoxb-1-a",
        "//registry.npmjs.org/:_authToken=${NPM_TOKEN}",
        "Bearer " + ".".join((b64('{"alg":"HS256"}'), b64('{"sub":"1234567890","name":"John Doe"}'), mixed(43))),
        "SG." + "your-sendgrid-api-key-" + "." + "y" * 43,
        "hf_" + "your_token_here_your_token_here_yo",
    ],
)
def test_a_published_or_made_up_key_is_no_secret(line: str) -> None:
    assert not list(secrets.check(new("docs/setup.md", line + "\n")))


@pytest.mark.parametrize(
    "line",
    [
        "    rev: " + mixed(40, HEX),
        "aws_key_sha1 = '" + mixed(40, HEX) + "'",
        "uses: actions/checkout@" + mixed(40, HEX),
        '"integrity": "sha512-' + b64encode(mixed(64).encode()).decode() + '"',
        "image: registry/x@sha256:" + mixed(64, HEX),
        "data:image/png;base64," + b64encode(mixed(9000).encode()).decode(),
        "const Thing = MyVeryLongClassNameThatGoesOn.method.andAnotherVeryLongNameOfIt()",
        ".glrt-some-very-long-css-class-name { }",
        "1700000000:" + mixed(64, HEX),
        "see https://example.org/contact-us1",
        "AC" + mixed(32, HEX),
        "TASK" + mixed(32, HEX),
        "password = 'hunter2'",
        "postgres://user:password@localhost/db",
        "api_key = '" + mixed(32) + "'",
        "10.0.0.1 and 8.8.8.8",
        "uuid: 123e4567-e89b-12d3-a456-426614174000",
        "x" + "AKIA" + mixed(16, UPPER),
        "AKIA" + mixed(30, UPPER),
    ],
)
def test_what_only_looks_random_is_no_secret(line: str) -> None:
    assert not list(secrets.check(new(".pre-commit-config.yaml", line + "\n")))


def test_a_suppression_does_not_suppress() -> None:
    line = "KEY = 'AKIA" + mixed(16, UPPER) + "'  # pragma: allowlist secret\n"
    assert told(secrets.check(new("a.py", line))) == [("secret-aws", "blocking", 1)]


@pytest.mark.parametrize("before", [0, 4090, 5000, 140_000])
def test_a_key_in_a_long_line_is_found_once(before: int) -> None:
    content = "x " * (before // 2) + "ghp_" + mixed(36) + " x" * 70_000 + "\n"
    (finding,) = secrets.check(new("min.js", content))
    assert finding.start_column == before + 1


def test_columns_count_characters() -> None:
    (finding,) = secrets.check(new("a.txt", "ü→ ghp_" + mixed(36) + "\n"))
    assert (finding.start_column, finding.end_column) == (4, 44)


@pytest.mark.parametrize("detector", [one for one in DETECTORS if one.plugin and one.needles], ids=lambda one: one.rule)
def test_no_needle_hides_what_the_library_would_find(detector: Detector) -> None:
    expressions = [st.from_regex(expression) for expression in detector.expressions]

    @given(st.one_of(expressions))
    def holds(line: str) -> None:
        assert detector.may_match(line) or not list(detector.matches(line))

    holds()


def test_every_detector_of_the_library_is_used_or_left_out_on_purpose() -> None:
    used = {one.plugin.partition(".")[0] for one in DETECTORS} - {""}
    left_out = {"artifactory", "basic_auth", "cloudant", "high_entropy_strings", "ibm_cloud_iam", "ibm_cos_hmac"}
    left_out |= {"ip_public", "keyword", "softlayer"}
    elsewhere = {"base", "private_key"}
    there = {module.name for module in pkgutil.iter_modules(detect_secrets.plugins.__path__)}
    assert there == used | left_out | elsewhere


def test_the_library_is_given_nothing_to_verify_with(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ModuleType("requests")
    for before in (None, real):
        monkeypatch.delitem(sys.modules, "requests", raising=False)
        if before is not None:
            monkeypatch.setitem(sys.modules, "requests", before)
        with detectors._no_requests():
            stand_in = import_module("requests")
        assert [name for name in vars(stand_in) if not name.startswith("__")] == []
        assert stand_in is not real
        assert sys.modules.get("requests") is before


def test_nothing_is_ever_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    def verify(*_: Any, **__: Any) -> None:
        raise AssertionError("a detector verified")

    for module in pkgutil.iter_modules(detect_secrets.plugins.__path__):
        for value in vars(import_module(f"detect_secrets.plugins.{module.name}")).values():
            if isinstance(value, type) and hasattr(value, "verify"):
                monkeypatch.setattr(value, "verify", verify)
    lines = "".join(line + "\n" for line in ALL_LINES)
    assert len(list(secrets.check(new("all.txt", lines)))) == len(ALL_KEYS)


class TestPrivateKeys:
    LABELS = ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY")

    @pytest.mark.parametrize("label", [*LABELS, "DSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
    def test_a_block_is_told_from_its_header_to_its_end(self, label: str) -> None:
        (finding,) = secrets.check(new("server.pem", "\n" + pem(label)))
        assert (finding.rule, finding.severity) == ("secret-private-key", "blocking")
        assert (finding.start_line, finding.end_line) == (2, 7)

    @pytest.mark.parametrize(
        "content",
        [
            '{"private_key": "' + pem().replace("\n", "\\n") + '"}\n',
            "KEY = (\n" + "".join(f'    "{line}\\n"\n' for line in pem().splitlines()) + ")\n",
            pem().replace("\n", "\r\n"),
            pem().replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n", 1),
            "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 2\n" + mixed(64) + "\n",
            "-----BEGIN OpenVPN Static key V1-----\n" + mixed(32, HEX) + "\n-----END OpenVPN Static key V1-----\n",
        ],
    )
    def test_it_is_found_in_any_wrapping(self, content: str) -> None:
        assert [one.severity for one in secrets.check(new("x", content))] == ["blocking"]

    def test_a_new_body_below_an_old_header_is_a_new_key(self) -> None:
        assert told(secrets.check(changed("k.pem", pem(), [(3, 3)]))) == [("secret-private-key", "blocking", 1)]
        assert not list(secrets.check(changed("k.pem", pem() + "x\n", [(7, 7)])))

    @pytest.mark.parametrize(
        "content",
        [
            'if "-----BEGIN RSA PRIVATE KEY-----" in text:\n    return True\n',
            "-----BEGIN RSA PUBLIC KEY-----\n" + mixed(64) + "\n",
            "-----BEGIN CERTIFICATE-----\n" + mixed(64) + "\n",
            "Paste the part from `-----BEGIN PRIVATE KEY-----` to the end.\n",
            "BEGIN PRIVATE KEY is how it starts\n",
            '"-----BEGIN RSA PRIVATE KEY-----\\n' + mixed(60) + "..." + mixed(40) + '"\n',
            "key: |\n  -----BEGIN PRIVATE KEY----- " + "x" * 64 + "\n",
            "-----BEGIN RSA PRIVATE KEY-----\n" + key_blocks._PUBLISHED[0] + "\n-----END RSA PRIVATE KEY-----\n",
        ],
    )
    def test_text_about_keys_is_no_key(self, content: str) -> None:
        assert not list(secrets.check(new("a.py", content)))

    def test_a_bare_header_without_a_body_is_an_advice(self) -> None:
        content = "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----\n"
        assert told(secrets.check(new("example.pem", content))) == [("secret-private-key", "advisory", 1)]

    def test_two_keys_are_two_findings(self) -> None:
        assert [one.start_line for one in secrets.check(new("k.pem", pem() + pem()))] == [1, 7]

    def test_the_headers_of_both_libraries_are_known(self) -> None:
        known = [expression.pattern for expression in PrivateKeyDetector.denylist]
        known += [line.decode() for line in detect_private_key.BLACKLIST]
        for header in known:
            wrapped = (f"-----{header}-----", f"---- {header} ----", header)
            assert any(key_blocks.HEADER.fullmatch(text) for text in wrapped), header
