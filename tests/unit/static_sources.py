"""Sources for the tests of `static`, made without a file system, and keys that are put together here.

No key stands in a test as a whole: a scanner of this repository would be right to stop it.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterable

from git_orch.model import Finding
from git_orch.reviewers.static.patch import Change
from git_orch.reviewers.static.source import Source

FILE = 0o100644
PROGRAM = 0o100755
ALPHANUMERIC = string.ascii_letters + string.digits
HEX = string.digits + "abcdef"


def new(path: str, content: str | bytes, mode: int = FILE) -> Source:
    """A file that the difference adds."""
    return changed(path, content, [(1, 1 << 30)], is_new=True, mode=mode)


def changed(
    path: str,
    content: str | bytes,
    added: Iterable[tuple[int, int]] = (),
    *,
    is_new: bool = False,
    mode: int = FILE,
    removed: bytes = b"",
) -> Source:
    """A file of which the difference adds these lines."""
    raw = content.encode() if isinstance(content, str) else content
    change = Change(added=tuple(added), is_new=is_new, removed=removed)
    return Source(path.encode(), change, mode=mode, size=len(raw), content=raw)


def told(findings: Iterable[Finding]) -> list[tuple[str, str, int]]:
    """Rule, severity and first line of each finding."""
    return [(finding.rule, finding.severity, finding.start_line) for finding in findings]


def mixed(length: int, alphabet: str = ALPHANUMERIC, seed: int = 7) -> str:
    """Characters as a provider's generator gives them, the same in every run."""
    return "".join(random.Random(seed).choices(alphabet, k=length))


def pem(label: str = "RSA PRIVATE KEY", lines: int = 4) -> str:
    """A private key in PEM's form."""
    body = "\n".join(mixed(64, ALPHANUMERIC + "+/", seed) for seed in range(lines))
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"
