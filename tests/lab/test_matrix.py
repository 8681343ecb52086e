"""matrix on real nodes: two bridges with a shaped trunk are two leaves, one bridge is flat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.lab import faults
from tests.lab.launched import Told, run
from tests.lab.nodes import Lab
from tests.lab.topologies import two_bridges

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.alone]
LabOf = Callable[..., Lab]


def found_by(outcome: Told) -> dict[str, Any]:
    assert outcome.report is not None, str(outcome.finished)
    assert outcome.report["matrix"] is not None, str(outcome.finished)
    found: dict[str, Any] = outcome.report["matrix"]
    return found


def shaped(lab: LabOf, nodes: int) -> Lab:
    built = lab(nodes)
    for node in built.nodes:
        faults.shape(node, "100mbit")
    return built


@pytest.mark.further
def test_two_bridges_with_a_slow_trunk_are_two_leaves(lab: LabOf) -> None:
    six = shaped(lab, 6)
    two_bridges(six, six.nodes[3:], "75mbit")
    outcomes = run(six, "matrix")
    found = found_by(outcomes["node1"])
    assert found["leaves"] == [
        ["node1", "node2", "node3"],
        ["node4", "node5", "node6"],
    ], str(outcomes["node1"].finished)
    assert found["oversubscription"]["ratio"] == pytest.approx(4.0, rel=0.25)  # on loaded cores
    assert found["is_finished"]
    assert {outcome.code for outcome in outcomes.values()} == {0}
    assert "oversubscribed" in outcomes["node1"].finished.stdout
    assert six.leftovers() == ()


@pytest.mark.further
def test_one_bridge_is_flat(lab: LabOf) -> None:
    four = shaped(lab, 4)
    outcomes = run(four, "matrix")
    found = found_by(outcomes["node1"])
    assert found["flat"], str(outcomes["node1"].finished)
    assert found["paths"] == found["nodes"] == []
    assert {outcome.code for outcome in outcomes.values()} == {0}
