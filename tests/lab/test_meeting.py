"""--meet-in on real nodes: a shared folder where TCP is blocked, and a folder that each node has for itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab import faults
from tests.lab.launched import Told, run
from tests.lab.nodes import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]


def meet(lab: Lab, *words: str, shared: bool = True) -> dict[str, Told]:
    """preflight on all nodes, in one folder, or each in its own."""

    def folder(name: str) -> str:
        path = lab.folder / ("shared" if shared else name) / "meet"
        path.mkdir(parents=True, exist_ok=True)
        return str(path)

    own_words = {node: ["--meet-in", folder(node.name)] for node in lab.nodes}
    return run(lab, "preflight", *words, own_words=own_words)


def test_who_is_blocked_is_named_though_nobody_can_connect(lab: LabOf) -> None:
    two = lab(2)
    for node in two.nodes:
        for other in two.nodes:
            if node is not other:
                faults.reject(node, (1024, 65535), source=other, syn_only=True)
    outcomes = meet(two)
    for name, outcome in outcomes.items():
        assert outcome.code == 1, str(outcome.finished)
        assert outcome.report == outcomes["node1"].report, name
        assert outcome.finished.seconds < 30
    first = outcomes["node1"]
    assert first.report is not None
    assert {node["status"] for node in first.report["nodes"]} == {"reported"}
    assert first.finding("master-refused")["hosts"] == ["node2"]
    assert first.finding("peer-refused")["hosts"] == ["node1", "node2"]
    assert first.outcome("meeting-place") == "passed"
    assert first.report["authentication"]["by"] == "--meet-in"
    assert list((two.folder / "shared" / "meet").iterdir()) == []
    assert two.leftovers() == ()


def test_a_folder_that_is_not_shared_is_the_cause_and_not_a_silence(lab: LabOf) -> None:
    two = lab(2)
    outcomes = meet(two, shared=False)
    for outcome in outcomes.values():
        assert outcome.code == 1, str(outcome.finished)
        assert outcome.finding("meeting-place")["hosts"] == ["node2"]
        assert "is not shared" in outcome.finding("meeting-place")["summary"]
        assert outcome.findings("node-silent") == []
        assert outcome.finished.seconds < 30
    assert not [file for name in outcomes for file in (two.folder / name / "meet").iterdir()]
