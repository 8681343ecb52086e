"""Packets that get lost between real nodes, and links that go down while a run looks at them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.lab import faults
from tests.lab.launched import run
from tests.lab.nodes import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]


def test_a_node_that_loses_what_it_receives_is_named_with_the_direction(lab: LabOf) -> None:
    four = lab(4)
    faults.lose(four["node3"], 0.02)
    outcome = run(four, "preflight")["node1"]
    finding = outcome.finding("packet-loss")
    assert (outcome.code, finding["severity"], finding["hosts"]) == (1, "error", ["node3"]), str(
        outcome.finished
    )
    assert "% of the packets that it receives" in finding["summary"]
    assert "sends" not in finding["summary"]
    assert any("counters of eth0" in evidence["subject"] for evidence in finding["evidence"])


def test_of_two_nodes_the_direction_is_named(lab: LabOf) -> None:
    two = lab(2)
    faults.lose(two["node2"], 0.02)
    outcome = run(two, "preflight")["node1"]
    finding = outcome.finding("packet-loss")
    assert (outcome.code, finding["hosts"]) == (1, ["node1", "node2"]), str(outcome.finished)
    assert "from node1 to node2" in finding["summary"]


def test_a_shaped_network_loses_nothing(lab: LabOf) -> None:
    three = lab(3)
    for node in three.nodes:
        faults.shape(node, "100mbit")
    outcome = run(three, "preflight")["node1"]
    assert outcome.outcome("packet-loss") == "passed", str(outcome.finished)
    assert outcome.outcome("link-flapped") == "passed", str(outcome.finished)


def test_a_link_that_flaps_during_the_run_is_named(lab: LabOf) -> None:
    three = lab(3)
    is_over = threading.Event()

    def flap() -> None:
        while not is_over.wait(0.4):
            three.switch.ip("link set eth0-2 down", "link set eth0-2 up")

    flapping = threading.Thread(target=flap, daemon=True)
    flapping.start()
    try:
        outcome = run(three, "preflight")["node1"]
    finally:
        is_over.set()
        flapping.join(10)
    finding = outcome.finding("link-flapped")
    assert (outcome.code, finding["severity"], finding["hosts"]) == (1, "error", ["node2"]), str(
        outcome.finished
    )


@pytest.mark.further
def test_a_pair_that_cannot_connect_does_not_hide_a_slow_node_elsewhere(lab: LabOf) -> None:
    four = lab(4)
    faults.drop(
        four["node2"], source=four["node3"], ports=faults.ephemeral_ports(four["node2"]), syn_only=True
    )
    faults.shape(four["node4"], "50mbit")
    outcome = run(four, "preflight")["node1"]
    assert outcome.report is not None
    slow = outcome.finding("interface-slow")
    assert slow["hosts"] == ["node4"], str(outcome.finished)
    assert {"peer-one-way"} <= outcome.slugs
    measured = {
        (probe["from"], probe["to"], probe["kind"]) for probe in outcome.report["probes"] if probe["value"]
    }
    assert ("node3", "node2", "bandwidth") not in measured
    assert {
        ("node2", "node3", "bandwidth"),
        ("node3", "node4", "latency"),
        ("node1", "node2", "clock"),
    } <= measured


@pytest.mark.further
def test_a_node_that_never_came_does_not_hide_a_slow_one(lab: LabOf) -> None:
    four = lab(4)
    faults.shape(four["node2"], "50mbit")
    there = [node for node in four.nodes if node.name != "node4"]
    outcome = run(four, "preflight", "--join-timeout", "6", nodes=there)["node1"]
    assert outcome.finding("interface-slow")["hosts"] == ["node2"], str(outcome.finished)
    assert "node-silent" in outcome.slugs
