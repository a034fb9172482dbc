"""`scripts/chaos`: whatever is killed, wiped or copied, one sweep later nothing is left, lost or touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).parents[2] / "scripts" / "chaos.py"


def chaos(*words: str, timeout_s: float) -> None:
    done = subprocess.run(
        [sys.executable, str(CHAOS), *words], capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing left, nothing lost, nobody else touched" in done.stdout


@pytest.mark.timeout(300)
def test_in_short() -> None:
    chaos("--short", "--seed", "1", timeout_s=280)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_in_full() -> None:
    chaos("--seed", "2", timeout_s=1400)
