"""NC218 route-asymmetric."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Interface, Route
from ncclcheck.model.snapshot import Probe, Snapshot
from tests.builders import cluster, node, with_choice, with_facts, with_interfaces
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import interface, some

Way = Callable[[int], tuple[str, str]]  # number of the node -> (source address, interface)


def second_network(
    snapshot: Snapshot, way: Way, subnet: Callable[[int], str] = lambda _: "10.1.0", prefix: int = 24
) -> Snapshot:
    """The snapshot with eth1 on every node, reached by all, to which each node sends by its `way`."""
    count = len(snapshot.nodes)
    probes: list[Probe] = []
    for number, one in enumerate(snapshot.nodes):
        own = (
            interface("eth0", f"10.0.0.{number + 1}/24"),
            interface("eth1", f"{subnet(number)}.{number + 1}/{prefix}", index=3),
        )
        routes = some(node(snapshot, one.host).facts.routes)
        for peer in range(count):
            if peer != number:
                address, host = f"{subnet(peer)}.{peer + 1}", snapshot.nodes[peer].host
                routes = (*routes, Route(address, host, *way(number)))
                probes.append(Probe("tcp", one.host, host, "eth1", address, 40000, "ok"))
        snapshot = with_facts(with_interfaces(snapshot, one.host, *own), one.host, routes=routes)
    return replace(snapshot, probes=(*some(snapshot.probes), *probes))


def straight(number: int) -> tuple[str, str]:
    return f"10.1.0.{number + 1}", "eth1"


def through_eth0(number: int) -> tuple[str, str]:
    return f"10.0.0.{number + 1}", "eth0"


def test_two_networks_with_a_route_each_are_silent() -> None:
    assert is_silent("route-asymmetric", second_network(cluster(4), straight))


def test_a_node_that_sends_through_the_other_interface_is_named_with_both_routes() -> None:
    snapshot = second_network(cluster(3), lambda number: (through_eth0 if number == 1 else straight)(number))
    found = finding("route-asymmetric", snapshot)
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "node02 sends to eth1 of node01 and node03 through eth0 and not through eth1" in found.summary
    assert "node02 reaches 10.1.0.1 from 10.0.0.2" in found.summary
    assert {evidence.hosts for evidence in found.evidence} == {("node02",), ("node01",), ("node03",)}


def test_routed_rails_that_leave_by_the_default_gateway_are_named() -> None:
    """Each node's eth1 is in a subnet of its own, and only eth0 has a way out."""
    snapshot = second_network(cluster(2), through_eth0, lambda number: f"10.{number + 1}.0")
    found = finding("route-asymmetric", snapshot)
    assert found.hosts == ("node01", "node02")
    assert "its counterpart" in found.summary


def test_different_subnets_joined_by_a_router_are_fine() -> None:
    snapshot = second_network(
        cluster(3),
        lambda number: (f"10.{number + 1}.0.{number + 1}", "eth1"),
        lambda number: f"10.{number + 1}.0",
    )
    assert is_silent("route-asymmetric", snapshot)


def test_what_nccl_uses_beyond_a_router_is_to_leave_through_what_it_uses_here() -> None:
    snapshot = second_network(cluster(2), through_eth0, lambda number: f"10.{number + 1}.0", prefix=32)
    for number, host in enumerate(("node01", "node02")):
        snapshot = with_choice(snapshot, host, "eth1", f"10.{number + 1}.0.{number + 1}")
    assert "which NCCL uses" in finding("route-asymmetric", snapshot).summary


def test_one_interface_with_a_host_route_is_fine() -> None:
    snapshot = cluster(2)
    for number, host in enumerate(("node01", "node02")):
        snapshot = with_interfaces(snapshot, host, interface("eth0", f"10.0.0.{number + 1}/32"))
    assert is_silent("route-asymmetric", snapshot)


def test_two_interfaces_in_one_subnet_are_both_right() -> None:
    snapshot = second_network(cluster(2), through_eth0, lambda _: "10.0.0", prefix=24)
    assert is_silent("route-asymmetric", snapshot)


def _with_master(one: Interface, master: str) -> Interface:
    return replace(one, master=master)


def test_a_bond_and_its_parts_are_one_link() -> None:
    snapshot = second_network(cluster(2), lambda number: (f"10.0.0.{number + 1}", "bond0"))
    for number, host in enumerate(("node01", "node02")):
        own = (
            interface("eth0", f"10.0.0.{number + 1}/24"),
            _with_master(interface("eth1", f"10.1.0.{number + 1}/24", index=3), "bond0"),
            interface("bond0", index=4, kind="bond"),
        )
        snapshot = with_interfaces(snapshot, host, *own)
    assert is_silent("route-asymmetric", snapshot)


def test_an_address_that_is_also_ours_says_nothing() -> None:
    """Every docker0 has 172.17.0.1."""
    snapshot = cluster(2)
    for number, host in enumerate(("node01", "node02")):
        own = (
            interface("eth0", f"10.0.0.{number + 1}/24"),
            interface("docker0", "172.17.0.1/16", kind="bridge"),
        )
        peer = ("node02", "node01")[number]
        routes = (*some(node(snapshot, host).facts.routes), Route("172.17.0.1", peer, "172.17.0.1", "lo"))
        snapshot = with_facts(with_interfaces(snapshot, host, *own), host, routes=routes)
    assert is_silent("route-asymmetric", snapshot)


def test_a_source_on_the_loopback_is_how_routed_hosts_are_built() -> None:
    snapshot = cluster(2)
    for number, host in enumerate(("node01", "node02")):
        routes = (Route(f"10.0.0.{2 - number}", ("node02", "node01")[number], "127.0.0.1", "lo"),)
        snapshot = with_facts(snapshot, host, routes=routes)
    assert is_silent("route-asymmetric", snapshot)


def test_a_route_that_the_kernel_does_not_know_is_not_passed() -> None:
    gone = Missing("absent", "no route to 10.0.0.2")
    snapshot = with_facts(cluster(2), "node01", routes=(Route("10.0.0.2", "node02", gone, gone),))
    result = run("route-asymmetric", snapshot)
    assert (result.outcome, result.reason) == (
        "unknown",
        "node01: route to node02: absent: no route to 10.0.0.2",
    )


def test_routes_that_were_not_asked_are_not_passed() -> None:
    result = run("route-asymmetric", with_facts(cluster(3), "node02", routes=()))
    assert (result.outcome, result.reason) == (
        "unknown",
        "node02: its routes to the other nodes were not read",
    )
