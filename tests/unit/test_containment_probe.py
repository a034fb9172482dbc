"""What the probe remembers, and when it asks anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from git_orch.containment import Containment, probe

TIER_1 = Containment(tier=1, overlay=True)
WITHOUT_OVERLAY = Containment(tier=1)
TIER_2 = Containment(tier=2, degraded_reason="no more namespaces may be made here")


class Attempts:
    """Stands in for the attempt itself: gives the answers that it was told, and counts."""

    def __init__(self, *answers: Containment) -> None:
        self.answers = list(answers)
        self.made = 0

    def __call__(self, _: str) -> Containment:
        self.made += 1
        return self.answers.pop(0)


@pytest.fixture
def circumstances(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The boot and the circumstances that the probe believes in; to be changed by the test."""
    facts = ["boot-1", "0 outside"]
    monkeypatch.setattr(probe, "_circumstances", lambda _: tuple(facts))
    return facts


def test_the_answer_is_remembered(circumstances: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(TIER_1)
    monkeypatch.setattr(probe, "_try_all", attempts)
    cache = tmp_path / "cache"
    assert [probe.probe(str(tmp_path), str(cache)) for _ in range(3)] == [TIER_1] * 3
    assert attempts.made == 1
    assert cache.stat().st_mode & 0o777 == 0o600
    assert circumstances


def test_a_lesser_answer_is_not_remembered(
    circumstances: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_try_all", Attempts(TIER_2, TIER_1))
    cache = str(tmp_path / "cache")
    assert [probe.probe(str(tmp_path), cache) for _ in range(3)] == [TIER_2, TIER_1, TIER_1]
    assert circumstances


@pytest.mark.parametrize("which", [0, 1])
def test_another_boot_or_other_rights_are_asked_anew(
    which: int, circumstances: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_try_all", Attempts(TIER_1, TIER_2))
    cache = str(tmp_path / "cache")
    assert probe.probe(str(tmp_path), cache) == TIER_1
    circumstances[which] = "another"
    assert probe.probe(str(tmp_path), cache) == TIER_2


def test_inside_and_outside_of_a_sandbox_do_not_forget_each_other(
    circumstances: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(TIER_1, WITHOUT_OVERLAY)
    monkeypatch.setattr(probe, "_try_all", attempts)
    cache = str(tmp_path / "cache")
    for place, answer in [("outside", TIER_1), ("inside", WITHOUT_OVERLAY)] * 2:
        circumstances[1] = place
        assert probe.probe(str(tmp_path), cache) == answer
    assert attempts.made == 2


def test_refresh_asks_anew(circumstances: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_try_all", Attempts(TIER_1, WITHOUT_OVERLAY))
    cache = str(tmp_path / "cache")
    assert probe.probe(str(tmp_path), cache) == TIER_1
    assert probe.probe(str(tmp_path), cache, refresh=True) == WITHOUT_OVERLAY
    assert probe.probe(str(tmp_path), cache) == WITHOUT_OVERLAY
    assert circumstances


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"version":2,"boot":"boot-1","overlay":{"0 outside":false}}',
        b'{"version":1,"boot":"boot-1","overlay":{"0 outside":3}}',
        b'{"version":1,"boot":"boot-1","overlay":[]}',
        b"\xff\xfe",
    ],
)
def test_a_cache_that_makes_no_sense_is_replaced(
    content: bytes, circumstances: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(TIER_1)
    monkeypatch.setattr(probe, "_try_all", attempts)
    cache = tmp_path / "cache"
    cache.write_bytes(content)
    assert probe.probe(str(tmp_path), str(cache)) == TIER_1
    assert probe.probe(str(tmp_path), str(cache)) == TIER_1
    assert attempts.made == 1
    assert circumstances


def test_a_cache_that_cannot_be_written_costs_the_attempt_only(
    circumstances: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(TIER_1, TIER_1)
    monkeypatch.setattr(probe, "_try_all", attempts)
    cache = str(tmp_path / "no" / "folder")
    assert [probe.probe(str(tmp_path), cache) for _ in range(2)] == [TIER_1, TIER_1]
    assert attempts.made == 2
    assert circumstances


def test_a_few_circumstances_are_kept(
    circumstances: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = probe.MOST_REMEMBERED + 4
    monkeypatch.setattr(probe, "_try_all", Attempts(*[TIER_1] * many))
    cache = tmp_path / "cache"
    for number in range(many):
        circumstances[1] = f"{number} outside"
        probe.probe(str(tmp_path), str(cache))
    assert cache.read_text().count("outside") == probe.MOST_REMEMBERED
