"""Each real client as a reviewer: a pass, findings, and everything that is neither."""

from __future__ import annotations

import pytest

from tests.acceptance.agents.conftest import Scene

pytestmark = pytest.mark.real_client

FAULT = {
    "path": "a.py",
    "start_line": 2,
    "end_line": 2,
    "severity": "blocking",
    "rule": "planted",
    "message": "two is wrong",
    "fails_when": "it is three",
    "suggestion": None,
}


def test_a_pass_is_a_pass(scene: Scene) -> None:
    told = scene.review(code=0)
    assert told["verdict"] == "pass"
    judged = scene.judged()
    assert judged["verdict"] == "pass"
    assert judged["session_id"]
    assert judged["usage"]["tokens"] > 0
    assert judged["adjusted"] == []
    assert len(scene.provider.reviews) == 1
