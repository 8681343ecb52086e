"""bench --mesh on real nodes: groups that share a link, a group with a slow one, and nodes that do not agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.lab import faults
from tests.lab.launched import Told, run
from tests.lab.nodes import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]
WORDS = ("bench", "--ops", "all_reduce", "--sizes", "1M", "--budget", "12", "--timeout", "150")


def shaped(lab: LabOf, nodes: int) -> Lab:
    built = lab(nodes)
    for node in built.nodes:
        faults.shape(node, "100mbit")
    return built


def points(outcome: Told) -> dict[str, dict[str, Any]]:
    """The point of each dimension."""
    assert outcome.report is not None, str(outcome.finished)
    assert outcome.report["bench"] is not None, str(outcome.finished)
    mesh = outcome.report["bench"]["mesh"]
    assert mesh is not None, str(outcome.finished)
    return {point["dimension"]: point for point in mesh["points"]}


def findings(outcome: Told, slug: str) -> list[dict[str, Any]]:
    assert outcome.report is not None, str(outcome.finished)
    return [finding for finding in outcome.report["findings"] if finding["slug"] == slug]


@pytest.mark.alone
@pytest.mark.further
def test_two_groups_over_the_same_links_halve_each_other(lab: LabOf) -> None:
    """tp inside the nodes, dp across: nobody is slow, and the two groups of dp share every link."""
    two = shaped(lab, 2)
    outcome = run(two, *WORDS, "--nproc-per-node", "2", "--mesh", "dp=2,tp=2", "--mix")["node1"]
    found = points(outcome)
    across = found["dp"]
    assert {tuple(group["ranks"]) for group in across["groups"]} == {(0, 2), (1, 3)}
    assert {tuple(group["hosts"]) for group in found["tp"]["groups"]} == {("node1",), ("node2",)}
    assert 1.5 < across["contention"] < 2.6, across
    assert not findings(outcome, "group-slow-in-mesh")
    assert all(group["wrong"] == 0 for point in found.values() for group in point["groups"])
    mix = outcome.report["bench"]["mesh"]["mix"]  # type: ignore[index]
    assert mix["wrong"] == 0
    assert mix["shares"][0]["dimension"] == "dp"
    assert mix["shares"][0]["share"] > 0.5
    assert two.leftovers() == ()


@pytest.mark.alone
@pytest.mark.further
def test_the_group_with_a_slow_link_is_named_and_no_other(lab: LabOf) -> None:
    four = shaped(lab, 4)
    faults.shape(four["node4"], "50mbit")
    outcome = run(four, *WORDS, "--mesh", "pp=2,dp=2", "--min-busbw", "dp:all_reduce@1M=0.009")["node1"]
    named = findings(outcome, "group-slow-in-mesh")
    assert [finding["hosts"] for finding in named if "of dp" in finding["summary"]] == [["node3", "node4"]]
    assert all("node4" in finding["hosts"] for finding in named)
    assert "alone it is as slow" in next(
        finding["summary"] for finding in named if "of dp" in finding["summary"]
    )
    (floor,) = findings(outcome, "bench-below-floor")
    assert floor["hosts"] == ["node3", "node4"]
    assert outcome.code == 4


def test_a_node_with_another_order_is_named_before_anything_is_measured(lab: LabOf) -> None:
    two = lab(2)
    outcome = run(
        two,
        *WORDS,
        "--nproc-per-node",
        "2",
        "--mesh",
        "dp=2,tp=2",
        own_words={two["node2"]: ("--mesh", "tp=2,dp=2")},
    )["node1"]
    assert outcome.report is not None
    assert outcome.report["bench"] is None
    assert any(
        "the parallel groups differ between nodes" in reason
        for reason in outcome.report["verdict"]["reasons"]
    )
    assert findings(outcome, "mesh-mismatch")


@pytest.mark.further
def test_tensor_parallelism_across_nodes_is_named_with_the_right_order(lab: LabOf) -> None:
    outcome = run(lab(2), *WORDS, "--nproc-per-node", "2", "--mesh", "tp=2,dp=2")["node1"]
    (found,) = findings(outcome, "mesh-placement")
    assert "with the order dp=2,tp=2 they span fewer" in found["summary"]
    assert {len(group["hosts"]) for group in points(outcome)["tp"]["groups"]} == {2}
