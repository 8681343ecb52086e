"""NC204 interface-virtual."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.builders import (
    address_of,
    cluster,
    docker0,
    interface,
    into,
    with_choice,
    with_interfaces,
    with_outcome,
    without,
)
from tests.checks.running import finding, is_silent, run


def of_veths() -> Snapshot:
    """Containers: eth0 is a veth everywhere."""
    containers = cluster(4)
    for node in containers.nodes:
        veth = interface("eth0", f"{address_of(node.node_rank)}/24", kind="virtual", tunnel="veth")
        containers = with_interfaces(containers, node.host, veth)
    return containers


def test_hardware_is_silent() -> None:
    assert is_silent("interface-virtual", cluster(4))


def test_a_bridge_on_one_node_is_a_warning() -> None:
    broken = with_interfaces(cluster(4), "node03", docker0())
    found = finding("interface-virtual", with_choice(broken, "node03", "docker0", "172.17.0.1"))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "docker0 (bridge)" in found.summary


def test_veths_over_which_all_reach_each_other_are_worth_knowing_only() -> None:
    found = finding("interface-virtual", of_veths())
    assert found.severity == "info"
    assert "eth0 (veth) on node[01-04]" in found.summary


def test_veths_with_a_blocked_direction_are_a_warning() -> None:
    blocked = with_outcome(of_veths(), "filtered", into(of_veths(), "node03"))
    assert finding("interface-virtual", blocked).severity == "warning"


def test_veths_that_nobody_probed_are_a_warning() -> None:
    unprobed = replace(of_veths(), probes=Missing("timeout", "no time left"))
    assert finding("interface-virtual", unprobed).severity == "warning"


def test_without_interfaces_nothing_is_known() -> None:
    assert run("interface-virtual", without(cluster(4), "node03", "interfaces")).outcome == "unknown"
