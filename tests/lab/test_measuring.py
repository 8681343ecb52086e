"""How fast the networks between real nodes are: the shaped one, the shaped node, and a node that stops meanwhile."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest

from tests.lab import faults
from tests.lab.launched import Told, run, start, told
from tests.lab.namespaces import call, inside
from tests.lab.nodes import Lab, Node

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.alone]
LabOf = Callable[..., Lab]


def probes(outcome: Told, kind: str, interface: str = "eth0") -> list[dict[str, Any]]:
    assert outcome.report is not None, str(outcome.finished)
    return [
        probe
        for probe in outcome.report["probes"]
        if (probe["kind"], probe["interface"]) == (kind, interface)
    ]


def gbit_s(outcome: Told, interface: str) -> list[float]:
    found = probes(outcome, "bandwidth", interface)
    assert {one["outcome"] for one in found} == {"ok"}, found
    return [float(one["value"]) for one in found]


def shape_egress(node: Node, rate: str) -> None:
    """What the node sends is limited, what it receives is not."""
    bucket = ["root", "tbf", "rate", rate, "burst", "256kb", "latency", "50ms"]
    call(inside(node.namespace, ["tc", "qdisc", "replace", "dev", "eth0", *bucket]))


@pytest.mark.further
def test_a_shaped_network_is_told_from_a_fast_one_and_named_if_nccl_uses_it(lab: LabOf) -> None:
    three = lab(3)
    three.add_network("eth1", "10.79.0")
    for node in three.nodes:
        faults.shape(node, "100mbit", interface="eth0")
    outcomes = run(three, "preflight")
    first = outcomes["node1"]
    slow, fast = gbit_s(first, "eth0"), gbit_s(first, "eth1")
    assert len(slow) == len(fast) == 6
    assert 0.094 <= median(slow) <= 0.1, slow
    assert all(0.04 <= value <= 0.15 for value in slow), (
        slow
    )  # other programs of this machine take their part
    assert min(fast) > 10 * max(slow), (slow, fast)
    limited = [probe["measured"]["cpu_share"] for probe in probes(first, "bandwidth")]
    assert all(share < 0.5 for share in limited), limited
    for name, subnet in (("eth0", "10.78.0"), ("eth1", "10.79.0")):
        trips = probes(first, "latency", name)
        assert len(trips) == 6
        assert {trip["outcome"] for trip in trips} == {"ok"}
        assert all(trip["measured"]["source_address"].startswith(subnet) for trip in trips)
    found = first.finding("interface-slow")
    assert found["severity"] == "warning"
    assert "eth0, which carries 0.09" in found["summary"]
    assert "Mbit/s" not in str(found)  # one unit, that of the faster network
    assert first.slugs == {"interface-slow"}
    assert first.code == 0
    assert three.leftovers() == ()


def test_a_node_that_sends_slowly_is_named_and_its_partners_are_not(lab: LabOf) -> None:
    three = lab(3)
    shape_egress(three["node2"], "100mbit")
    outcomes = run(three, "preflight")
    (found,) = outcomes["node1"].findings("interface-slow")
    assert found["hosts"] == ["node2"]
    assert "node2 sends with" in found["summary"]
    assert {probe["outcome"] for probe in probes(outcomes["node1"], "latency")} == {"ok"}


def test_a_node_whose_link_of_nccls_network_is_slow_is_named_and_all_nodes_get_the_other_network(
    lab: LabOf,
) -> None:
    three = lab(3)
    three.add_network("eth1", "10.79.0")
    for node in three.nodes:
        faults.shape(node, "500mbit")
        faults.shape(node, "500mbit", interface="eth1")
    faults.shape(three["node3"], "50mbit")
    first = run(three, "preflight")["node1"]
    (found,) = [finding for finding in first.findings("interface-slow") if finding["severity"] == "warning"]
    assert found["hosts"] == ["node3"]
    assert "both directions" in found["summary"]
    assert "best of 2 transfers" in str(found["evidence"])
    measured = [probe for probe in probes(first, "bandwidth") if "node3" in (probe["from"], probe["to"])]
    assert 0.04 <= median(one["value"] for one in measured) <= 0.06, measured
    # a bucket of tbf fills while the machine stands still
    assert all(one["value"] <= 0.1 for one in measured), measured
    assert first.report is not None
    advised = {one["name"]: one for one in first.report["advice"]["env"]}
    assert advised["NCCL_SOCKET_IFNAME"]["value"] == "eth1"
    assert {tuple(one["hosts"]) for one in advised.values()} == {()}, advised
    assert "node3, while 0.4" in advised["NCCL_SOCKET_IFNAME"]["why"]
    assert "all nodes must use the same network" in advised["NCCL_SOCKET_IFNAME"]["why"]


@pytest.mark.further
def test_a_node_that_stops_while_it_is_measured_is_silent_and_costs_bounded_time(lab: LabOf) -> None:
    three = lab(3)
    for node in three.nodes:
        faults.shape(node, "100mbit")
    running = start(three, "preflight")
    sockets = inside(three["node3"].namespace, ["ss", "-Htn", "state", "established", "src", "10.78.0.3"])
    deadline = time.monotonic() + 30
    while len(call(sockets).splitlines()) < 8:  # the streams of a round, beside the store
        assert time.monotonic() < deadline, str(running["node1"].stderr)
    running["node3"].signal(signal.SIGSTOP, group=True)
    stopped = time.monotonic()
    try:
        outcomes = told(three, {name: running[name] for name in ("node1", "node2")}, 40)
        took_s = time.monotonic() - stopped
    finally:
        running["node3"].signal(signal.SIGKILL, group=True)
    assert took_s <= 15, took_s
    first = outcomes["node1"]
    assert first.code == 3, str(first.finished)
    assert first.finding("node-silent")["hosts"] == ["node3"]
    with_it = [probe for probe in probes(first, "bandwidth") if "node3" in (probe["from"], probe["to"])]
    assert len(with_it) == 4
    assert all(one["value"] is None and "node3" in one["detail"] for one in with_it), with_it
    assert first.findings("interface-slow") == []


@pytest.mark.further
def test_traffic_that_leaves_through_the_wrong_network_is_named_with_both_routes(lab: LabOf) -> None:
    two = lab(2)
    two.add_network("eth1", "10.79.0")
    two["node1"].ip("route add 10.79.0.2/32 dev eth0 src 10.78.0.1")
    two["node2"].ip("route add 10.79.0.1/32 dev eth1")
    # node2 answers for its eth1 address on eth0 too (arp_ignore 0), so that node1 does reach it
    outcomes = run(two, "preflight")
    found = outcomes["node1"].finding("route-asymmetric")
    assert (found["severity"], found["hosts"]) == ("warning", ["node1"])
    assert "through eth0 and not through eth1" in found["summary"]
    assert len(found["evidence"]) >= 2
