"""The listener of the real NCCL library, reached from the other nodes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab import faults
from tests.lab.launched import Told, run, start, told
from tests.lab.nodes import Lab, Node
from tests.lab.process import Running

VARIABLE = "NCCLCHECK_TEST_NCCL_LIBRARIES"
pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get(VARIABLE), reason=f"no libnccl.so.2: set {VARIABLE}, as scripts/test does"
    ),
]
LabOf = Callable[..., Lab]


def nccl_process(node: Node) -> int:
    """The process on that node that holds NCCL's listener, waited for."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        for pid, line in node.processes().items():
            if "nccl_child" in line and line.endswith(" hold") and nccl_ports(node, pid):
                return pid
        time.sleep(0.02)
    raise AssertionError(f"NCCL does not listen on {node.name}: {node.processes()}")


def wait_until_told(first: Running) -> None:
    """Node 0 has told where it listens, and waits for the others."""
    deadline = time.monotonic() + 90
    while "waiting for node rank" not in first.stderr:
        assert time.monotonic() < deadline, first.stderr
        time.sleep(0.02)


def nccl_ports(node: Node, pid: int) -> list[int]:
    """The ports on which that process listens."""
    lines = [line.split() for line in node.listeners() if f"pid={pid}," in line]
    return [int(words[3].rpartition(":")[2]) for words in lines]


def of_nccl(one: Told) -> dict[tuple[str, str], dict[str, Any]]:
    """The probes of NCCL's own listeners, by from and to."""
    assert one.report is not None, str(one.finished)
    return {
        (probe["from"], probe["to"]): probe for probe in one.report["probes"] if probe["listener"] == "nccl"
    }


def test_every_node_calls_the_listener_of_every_other_and_nothing_is_left(lab: LabOf) -> None:
    three = lab(3)
    outcomes = run(three, "preflight")
    assert [outcome.code for outcome in outcomes.values()] == [0] * 3, str(outcomes["node1"].finished)
    probes = of_nccl(outcomes["node1"])
    assert len(probes) == 6
    assert {(probe["kind"], probe["outcome"]) for probe in probes.values()} == {("tcp", "ok")}
    report = outcomes["node1"].report
    assert report is not None
    for node in report["nodes"]:
        asked = node["facts"]["nccl"]["asked"]
        dialled = {
            (probe["address"], probe["port"]) for ends, probe in probes.items() if ends[1] == node["host"]
        }
        assert dialled == {(asked["address"], asked["port"])}
    assert three.leftovers() == ()


def test_a_port_that_only_nccl_has_is_seen_to_be_filtered(lab: LabOf) -> None:
    two = lab(2)
    first = start(two, "preflight", nodes=[two["node1"]])
    pid = nccl_process(two["node1"])
    (port,) = nccl_ports(two["node1"], pid)
    faults.drop(two["node1"], port)
    outcomes = told(two, {**first, **start(two, "preflight", nodes=[two["node2"]])})
    probe = of_nccl(outcomes["node1"])["node2", "node1"]
    assert (probe["port"], probe["outcome"]) == (port, "filtered")
    found = outcomes["node1"].findings("peer-one-way") + outcomes["node1"].findings("peer-filtered")
    assert len(found) == 1
    assert "the listener that NCCL itself opened" in str(found)
    assert [outcome.code for outcome in outcomes.values()] == [1, 1]
    assert two.leftovers() == ()


def test_a_listener_that_died_is_no_refusal(lab: LabOf) -> None:
    two = lab(2)
    first = start(two, "preflight", nodes=[two["node1"]])
    pid = nccl_process(two["node1"])
    wait_until_told(first["node1"])
    os.kill(pid, signal.SIGKILL)
    outcomes = told(two, {**first, **start(two, "preflight", nodes=[two["node2"]])})
    probe = of_nccl(outcomes["node1"])["node2", "node1"]
    assert (probe["outcome"], outcomes["node1"].findings("peer-refused")) == ("error", [])
    assert "does not have it any more" in probe["detail"]
    assert two.leftovers() == ()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_it_however_the_run_ends(lab: LabOf, how: signal.Signals) -> None:
    two = lab(2)
    running = start(two, "preflight", nodes=[two["node1"]])["node1"]
    nccl_process(two["node1"])
    os.kill(running.pid, how)
    running.wait(30)
    assert two.leftovers() == ()


def test_with_a_comm_id_nccl_opens_no_listener_and_nobody_calls_one(lab: LabOf) -> None:
    two = lab(2)
    outcomes = run(two, "preflight", env={"NCCL_COMM_ID": f"{two['node1'].address}:41234"})
    assert of_nccl(outcomes["node1"]) == {}
    assert outcomes["node1"].outcome("peer-filtered") == "passed"
    assert two.leftovers() == ()
