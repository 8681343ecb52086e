"""NC204 interface-virtual."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, into, with_choice, with_interfaces, with_outcome, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import address_of, docker0, interface


def of_veths() -> Snapshot:
    """Containers: eth0 is a veth everywhere."""
    containers = cluster(4)
    for node in containers.nodes:
        veth = interface("eth0", f"{address_of(node.node_rank)}/24", kind="virtual", tunnel="veth")
        containers = with_interfaces(containers, node.host, veth)
    return containers


def test_hardware_is_silent() -> None:
    assert is_silent("interface-virtual", cluster(4))


def test_a_bridge_that_nobody_reaches_is_a_warning() -> None:
    both = interface("eth0", "10.0.0.3/24"), docker0()
    broken = with_choice(with_interfaces(cluster(4), "node03", *both), "node03", "docker0", "172.17.0.1")
    assert not isinstance(broken.probes, Missing)
    to_bridge = [
        replace(probe, interface="docker0", address="172.17.0.1", outcome="refused")
        for probe in broken.probes
        if probe.to_host == "node03"
    ]
    found = finding("interface-virtual", replace(broken, probes=(*broken.probes, *to_bridge)))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "docker0 (bridge)" in found.summary


def test_veths_that_are_the_only_way_out_and_lead_to_the_others_are_silent() -> None:
    assert is_silent("interface-virtual", of_veths())


def test_the_only_interface_is_nothing_to_choose_another_for() -> None:
    cut_off = with_outcome(of_veths(), "filtered", into(of_veths(), "node03"))
    assert is_silent("interface-virtual", cut_off)


def test_a_virtual_interface_beside_hardware_is_worth_knowing() -> None:
    both = of_veths()
    veth = interface("eth0", f"{address_of(0)}/24", kind="virtual", tunnel="veth")
    both = with_interfaces(both, "node01", veth, interface("eth1", "10.9.0.1/24", index=4))
    found = finding("interface-virtual", both)
    assert (found.severity, found.hosts) == ("info", ("node01",))
    assert "eth0 (veth)" in found.summary


def test_a_blocked_direction_is_not_the_fault_of_a_veth() -> None:
    pair = with_outcome(of_veths(), "filtered", [("node01", "node03")])
    assert is_silent("interface-virtual", pair)


def test_veths_that_nobody_probed_are_not_known() -> None:
    unprobed = replace(of_veths(), probes=Missing("timeout", "no time left"))
    assert run("interface-virtual", unprobed).outcome == "unknown"


def test_without_interfaces_nothing_is_known() -> None:
    assert run("interface-virtual", without(cluster(4), "node03", "interfaces")).outcome == "unknown"
