"""Nodes that are killed or stopped in the middle of a run: these are named, and what the others had done by then."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.lab.launched import Told, start, told
from tests.lab.nodes import Lab, Node
from tests.lab.test_bench_on_nodes import LONG, measuring

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]


def signal_all(node: Node, number: signal.Signals) -> None:
    """Send the signal to every process of the node."""
    for pid in node.processes():
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def accused(outcome: Told) -> set[str]:
    """The hosts of all errors."""
    assert outcome.report is not None, str(outcome.finished)
    errors = [finding for finding in outcome.report["findings"] if finding["severity"] == "error"]
    return {host for finding in errors for host in finding["hosts"]}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_two_of_three_nodes_are_lost_and_node_0_is_not_accused(lab: LabOf, number: signal.Signals) -> None:
    three = lab(3)
    running = start(three, *LONG)
    measuring(three, running)
    for name in ("node2", "node3"):
        signal_all(three[name], number)
    outcome = told(three, {"node1": running["node1"]}, 90)["node1"]
    assert accused(outcome) == {"node2", "node3"}
    assert all("kernel answers" in finding["summary"] for finding in outcome.findings("bench-hang"))
    assert outcome.code == 4


@pytest.mark.further
def test_node_0_whose_cable_is_pulled_is_named_and_not_the_others(lab: LabOf) -> None:
    three = lab(3)
    running = start(three, *LONG)
    measuring(three, running)
    three.switch.ip("link set eth0-1 down")
    outcome = told(three, {"node1": running["node1"]}, 90)["node1"]
    assert accused(outcome) == {"node1"}
    assert "its own network" in outcome.finding("bench-hang")["summary"]
