"""A secret that was found is never printed, whichever finding shows its line."""

from __future__ import annotations

import pytest

from git_orch.formats.masking import masked
from git_orch.model import Finding

LINES = ["a = 1", 'key = "AKIA0000EXAMPLE0000"; b = 2', "c = 3"]


def source(path: str, first: int, last: int) -> list[str] | None:
    return LINES[first - 1 : last] if path == "a.py" else None


def secret(start_line: int, end_line: int = 0, start_column: int = 0, end_column: int = 0) -> Finding:
    place = Finding(path="a.py", message="m", rule="secret-aws", start_line=start_line, end_line=end_line)
    return place.replace(start_column=start_column, end_column=end_column)


@pytest.mark.parametrize(
    ("finding", "shown"),
    [
        (secret(start_line=2, start_column=8, end_column=27), 'key = "*******************"; b = 2'),
        (secret(start_line=2, start_column=8), 'key = "' + "*" * 27),
        (secret(start_line=2), "*" * 34),
        (secret(start_line=1, end_line=3, start_column=5), "*" * 34),
    ],
    ids=["both columns", "start only", "line only", "several lines"],
)
def test_what_is_a_secret_is_stars(finding: Finding, shown: str) -> None:
    assert masked([finding], source)("a.py", 1, 3) is not None
    assert (masked([finding], source)("a.py", 2, 2) or []) == [shown]


def test_the_rest_is_as_it_is() -> None:
    other = Finding(path="a.py", message="m", rule="F401", start_line=2)
    assert masked([other], source) is source
    seen = masked([secret(start_line=2)], source)
    assert seen("a.py", 1, 1) == ["a = 1"]
    assert seen("b.py", 1, 1) is None
