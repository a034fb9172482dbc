"""The shapes of keys that providers hand out, by detect-secrets' detectors where it has one.

Which of its detectors, and why not the others: entropy, keyword and basic-auth ones gave 1,445 hits in 3,973 files of
ten good public repositories; Cloudant, IBM and SoftLayer match any assignment with the right word in it; Artifactory's
matches capitals that begin with AP; an IP address is no secret. Only their regular expressions are used, by way of
`denylist`: `analyze_line` may go on to verify, and nine of the detectors then call the provider (`verify`); besides,
`analyze_string` gives the text of a group, "ghp" for a GitHub token.

Importing detect-secrets brings in `requests`, which only `verify` needs. That takes 0.1 of 0.15 s, and opens a socket:
urllib3 binds one to ::1 to see whether there is IPv6. So a stand-in without any function takes its place, which also
leaves nothing that could verify; and the library is imported only when a file has what a key cannot be without.
"""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from types import ModuleType

from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from git_orch.model import Severity


class Detector(Record):
    """How the keys of one provider look.

    `plugin` is a class below `detect_secrets.plugins`, `pattern` our own expression where the library has none.
    `exact` is what has to match at the same place besides: it sees the whole line, so that a piece of a longer word, a
    hash or an identifier is not taken for a key. `needles` are literals of which each key contains one: finding none
    in a file takes a tenth of the time that the expressions take.
    """

    rule: str
    what: str
    plugin: str = ""
    pattern: str = ""
    needles: tuple[str, ...] = ()
    exact: str = ""
    severity: Severity = "blocking"

    def may_match(self, text: str) -> bool:
        """False if the text holds no such key; found out without the library."""
        if self.needles and not any(needle in text for needle in self.needles):
            return False
        return self._exact.search(text) is not None

    def matches(self, line: str) -> Iterator[re.Match[str]]:
        """Where such a key stands in the line."""
        for expression in self.expressions:
            for match in expression.finditer(line):
                if self._exact.match(line, match.start()) and self._is_valid(match[0]):
                    yield match

    @cached_property
    def expressions(self) -> tuple[re.Pattern[str], ...]:
        """The library's expressions, or our own."""
        if not self.plugin:
            return (re.compile(self.pattern),)
        return tuple(self._library.denylist)

    @cached_property
    def _exact(self) -> re.Pattern[str]:
        return re.compile(self.exact)

    @cached_property
    def _library(self) -> Any:
        module, _, name = self.plugin.rpartition(".")
        with _no_requests():
            return getattr(import_module(f"detect_secrets.plugins.{module}"), name)

    def _is_valid(self, token: str) -> bool:
        """Whether the library's own test of the token, where it has one, agrees (only JWT's has)."""
        test = getattr(self._library, "is_formally_valid", None) if self.plugin else None
        return test is None or bool(test(token))


@contextmanager
def _no_requests() -> Iterator[None]:
    """What is imported meanwhile gets a `requests` that can do nothing; whoever imports it later gets the real one."""
    kept = sys.modules.get("requests")
    sys.modules["requests"] = ModuleType("requests")
    try:
        yield
    finally:
        del sys.modules["requests"]
        if kept is not None:
            sys.modules["requests"] = kept


# base64 of the digits of an account's number, as a Discord bot's token begins with it.
# The look behind comes second, which lets the search skip to the capital.
_BASE64_DIGITS = r"[MNO](?<![\w-]\w)[DTjz][AEIMQUYcgk][w-z0-5](?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){4}"
_UNPREFIXED = r"(?<![A-Za-z0-9])"

DETECTORS = (
    Detector(
        rule="secret-aws",
        what="AWS access key",
        plugin="aws.AWSKeyDetector",
        needles=("A3T", "ABIA", "ACCA", "AKIA", "ASIA", "aws", "AWS", "Aws"),
        # The id is a word of its own; a secret of 40 hexadecimal digits is a commit's hash.
        exact=r"A(?<![A-Za-z0-9]A)(?:3T[A-Z0-9]|BIA|CCA|KIA|SIA)[0-9A-Z]{16}(?![A-Za-z0-9])|(?:aws|AWS|Aws)"
        r"(?i:.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?['\"])(?![0-9a-f]{40}['\"])[0-9a-zA-Z/+]{40}['\"]",
    ),
    Detector(
        rule="secret-azure",
        what="Azure storage account key",
        plugin="azure_storage_key.AzureStorageKeyDetector",
        needles=("AccountKey=",),
    ),
    Detector(
        rule="secret-discord",
        what="Discord bot token",
        plugin="discord.DiscordBotTokenDetector",
        exact=_BASE64_DIGITS,
    ),
    Detector(
        rule="secret-github",
        what="GitHub token",
        plugin="github_token.GitHubTokenDetector",
        needles=("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        exact=_UNPREFIXED,
    ),
    Detector(
        rule="secret-github",
        what="GitHub token",
        pattern=r"github_pat_[A-Za-z0-9_]{82}",
        needles=("github_pat_",),
        exact=_UNPREFIXED,
    ),
    Detector(
        rule="secret-gitlab",
        what="GitLab token",
        plugin="gitlab_token.GitLabTokenDetector",
        needles=(
            *("glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "GR1348941"),
            *("glcbt-", "glimt-", "glptt-", "glagent-", "gloas-"),
        ),
        # A name in kebab case, as of a style sheet, has neither capitals nor digits.
        exact=_UNPREFIXED + r"(?=[a-z]+-[a-z_-]*[A-Z0-9]|GR1348941)",
    ),
    Detector(
        rule="secret-jwt",
        what="signed JSON web token",
        plugin="jwt.JwtTokenDetector",
        needles=(".eyJ",),
        exact=_UNPREFIXED + r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]{20}",
        # Most expire within the hour, and some are made to be published; no expression tells which.
        severity="advisory",
    ),
    Detector(
        rule="secret-mailchimp",
        what="Mailchimp key",
        plugin="mailchimp.MailchimpDetector",
        needles=("-us",),
        exact=r"(?<!\w)[0-9a-f]{32}-us[0-9]{1,2}(?!\w)",
    ),
    Detector(rule="secret-npm", what="npm token", plugin="npm.NpmDetector", needles=("/:_authToken=",)),
    Detector(
        rule="secret-npm",
        what="npm token",
        pattern=r"npm_[A-Za-z0-9]{36}(?!\w)",
        needles=("npm_",),
        exact=_UNPREFIXED,
    ),
    Detector(
        rule="secret-openai",
        what="OpenAI key",
        plugin="openai.OpenAIDetector",
        needles=("T3BlbkFJ",),
        exact=_UNPREFIXED,
    ),
    Detector(
        rule="secret-pypi",
        what="PyPI token",
        plugin="pypi_token.PypiTokenDetector",
        needles=("pypi-AgEIcHlwaS5vcmc", "pypi-AgENdGVzdC5weXBpLm9yZw"),
    ),
    Detector(
        rule="secret-sendgrid",
        what="SendGrid key",
        plugin="sendgrid.SendGridDetector",
        needles=("SG.",),
        exact=_UNPREFIXED,
    ),
    Detector(
        rule="secret-slack",
        what="Slack token",
        plugin="slack.SlackDetector",
        needles=("xox", "hooks.slack.com"),
        exact=_UNPREFIXED + r"(?:xox[abpors]-[0-9A-Za-z-]{27}|https://hooks\.slack\.com/services/T\w+/B)",
    ),
    Detector(
        rule="secret-square",
        what="Square OAuth secret",
        plugin="square_oauth.SquareOAuthDetector",
        needles=("sq0csp-",),
        exact=_UNPREFIXED,
    ),
    Detector(
        rule="secret-stripe",
        what="Stripe key",
        plugin="stripe.StripeDetector",
        needles=("k_live_",),
        exact=_UNPREFIXED,
    ),
    Detector(
        rule="secret-telegram",
        what="Telegram bot token",
        plugin="telegram_token.TelegramBotTokenDetector",
        needles=(":AA",),
        exact=r"(?<!\w)\d{8,10}:AA[\w-]{33}(?![\w-])",
    ),
    Detector(
        rule="secret-twilio",
        what="Twilio key",
        plugin="twilio.TwilioKeyDetector",
        # Of the library's two only the key: AC and 32 digits are an account's public name.
        needles=("SK",),
        exact=r"SK(?<!\wSK)[0-9a-f]{32}(?!\w)",
    ),
    # What detect-secrets 1.5 has no detector for.
    Detector(
        rule="secret-age",
        what="age secret key",
        pattern=r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}",
        needles=("AGE-SECRET-KEY-1",),
    ),
    Detector(
        rule="secret-anthropic",
        what="Anthropic key",
        pattern=r"sk-ant-[a-z]{3,6}\d\d-[\w-]{80,}",
        needles=("sk-ant-",),
        exact=_UNPREFIXED,
    ),
    Detector(
        rule="secret-digitalocean",
        what="DigitalOcean token",
        pattern=r"do[opr]_v1_[a-f0-9]{64}",
        needles=("_v1_",),
        exact=_UNPREFIXED,
    ),
    Detector(
        rule="secret-google",
        what="Google OAuth client secret",
        pattern=r"GOCSPX-[\w-]{28}",
        needles=("GOCSPX-",),
        exact=_UNPREFIXED,
    ),
    Detector(
        rule="secret-google",
        what="Google API key",
        pattern=r"AIza[\w-]{35}(?![\w-])",
        needles=("AIza",),
        exact=_UNPREFIXED,
        # A key for a web page is published by being used; whether it is one, its shape does not tell.
        severity="advisory",
    ),
    Detector(
        rule="secret-huggingface",
        what="Hugging Face token",
        pattern=r"hf_[A-Za-z0-9]{34}(?!\w)",
        needles=("hf_",),
        exact=_UNPREFIXED,
    ),
    Detector(
        rule="secret-shopify",
        what="Shopify access token",
        pattern=r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}(?!\w)",
        needles=("shpat_", "shpca_", "shppa_", "shpss_"),
        exact=_UNPREFIXED,
    ),
)
