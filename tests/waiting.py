"""The one place where a test waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PAUSE_S = 0.01


def wait_until(condition: Callable[[], T], timeout_s: float, *, what: str = "") -> T:
    """The first true value that the condition returns; it is asked at once, then every 10 ms.

    Raises:
        AssertionError: it was still false when the time was up; the message ends with its last value.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            name = what or getattr(condition, "__name__", repr(condition))
            raise AssertionError(f"not within {timeout_s:g} s: {name} (last value: {value!r})")
        time.sleep(PAUSE_S)  # noqa: TID251 - everything else waits through this function
