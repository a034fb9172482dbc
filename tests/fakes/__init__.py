"""Stand-ins that behave as told: fakes, not mocks."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

FAKE_REVIEWER = Path(__file__).with_name("fake_reviewer.py")


def fake_reviewer(*steps: str | Path) -> str:
    """The command line (for `orch.reviewer.NAME.command`) of a reviewer that takes these steps, in this order."""
    return shlex.join([sys.executable, str(FAKE_REVIEWER), *map(str, steps)])
