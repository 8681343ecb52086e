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
