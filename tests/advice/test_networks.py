"""The networks that all nodes could use: by name, by subnet, by who reaches whom; the reachable and best first."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.advice.networks import Network, Rank, find_networks, rank_of
from ncclcheck.advice.reach import read_reach
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Interface
from ncclcheck.model.snapshot import Snapshot
from tests.advice.clusters import of_nodes, two_networks, unasked, with_bandwidth, with_probes
from tests.builders import with_facts
from tests.fact_builders import docker0, interface, some


def networks(snapshot: Snapshot) -> tuple[Network, ...]:
    return find_networks(snapshot, some(read_reach(snapshot)))


def usable(snapshot: Snapshot) -> list[str]:
    return [network.name for network in networks(snapshot) if network.failure is None]


def at(speed_mbps: int, name: str, address: str, **changes: Any) -> Interface:
    return replace(interface(name, address, **changes), speed_mbps=speed_mbps)


def test_a_name_on_all_nodes_is_a_network_once() -> None:
    found = networks(two_networks(2))
    assert [network.name for network in found] == ["eth0", "eth1"]
    assert found[0].places == {"node01": ("eth0", "10.0.0.1"), "node02": ("eth0", "10.0.0.2")}
    assert found[0].failure is None


def test_what_does_not_connect_comes_last_and_says_why() -> None:
    found = networks(with_probes(two_networks(2), "filtered", interface="eth0"))
    assert [network.name for network in found] == ["eth1", "eth0"]
    assert found[1].failure == "node01 to node02 on eth0 (10.0.0.2): filtered"


def test_other_names_in_one_subnet_are_one_network() -> None:
    snapshot = of_nodes(
        unasked(interface("eth5", "10.1.0.1/24")),
        unasked(interface("ens3", "10.2.0.2/24"), interface("ens4", "10.1.0.2/24", index=3)),
    )
    snapshot = with_probes(snapshot, "filtered", interface="ens3")
    (network,) = [one for one in networks(snapshot) if one.failure is None]
    assert network.places == {"node01": ("eth5", "10.1.0.1"), "node02": ("ens4", "10.1.0.2")}
    assert network.name == "eth5/ens4"


def test_other_names_in_other_subnets_are_one_where_they_reach_each_other() -> None:
    snapshot = of_nodes(
        unasked(interface("eth5", "10.1.0.1/31")),
        unasked(interface("ens3", "10.2.0.1/31"), at(400_000, "ens4", "10.3.0.1/31", index=3)),
    )
    assert usable(snapshot) == ["eth5/ens4"]  # the fastest that all the others reached
    assert usable(with_probes(snapshot, "refused", interface="ens4")) == ["eth5/ens3"]
    assert usable(with_probes(snapshot, "refused", to_host="node02")) == []


def test_a_node_without_any_candidate_leaves_no_network() -> None:
    snapshot = two_networks(2)
    assert networks(with_facts(snapshot, "node02", interfaces=())) == ()
    assert networks(with_facts(snapshot, "node01", interfaces=Missing("denied", "no"))) == ()


def test_a_network_is_as_fast_as_its_slowest_node() -> None:
    snapshot = of_nodes(
        unasked(at(1_000, "eth0", "10.0.0.1/24"), at(25_000, "eth1", "10.0.1.1/24", index=3)),
        unasked(at(400_000, "eth0", "10.0.0.2/24"), at(25_000, "eth1", "10.0.1.2/24", index=3)),
    )
    assert usable(snapshot)[0] == "eth1"
    assert usable(snapshot)[-1] == "eth0"


def test_hardware_comes_before_what_software_made_and_the_unknown_speed_is_the_last() -> None:
    def ranked(one: Interface) -> Rank:
        snapshot = of_nodes(unasked(one))
        return rank_of(snapshot, {"node01": (one.name, "10.0.0.1")})

    unknown = replace(interface("eth0", "10.0.0.1/24"), speed_mbps=Missing("error", "-1"))
    bond, plain = (at(25_000, "x", "10.0.0.1/24", kind=kind) for kind in ("bond", "physical"))
    bridge = at(400_000, "x", "10.0.0.1/24", kind="bridge")
    assert ranked(bond) == ranked(plain)
    assert ranked(at(100_000, "x", "10.0.0.1/24")) < ranked(plain) < ranked(unknown) < ranked(bridge)
    assert rank_of(two_networks(2), {"node01": ("eth0", ""), "node02": ("gone", "")}).is_virtual


def test_of_equals_the_kernels_first_on_the_first_node_wins() -> None:
    snapshot = of_nodes(
        *(
            unasked(interface("b", f"10.0.0.{n}/24"), interface("a", f"10.0.1.{n}/24", index=3))
            for n in (1, 2)
        )
    )
    assert usable(snapshot) == ["b", "a"]


def test_dockers_own_bridge_is_a_name_on_all_nodes_that_leads_nowhere() -> None:
    snapshot = of_nodes(*(unasked(docker0(), interface("eth0", f"10.0.0.{n}/24", index=4)) for n in (1, 2)))
    snapshot = with_probes(snapshot, "self", interface="docker0")
    assert [(network.name, network.failure is None) for network in networks(snapshot)] == [
        ("eth0", True),
        ("docker0", False),
    ]


def test_a_mixture_of_networks_is_none_where_one_that_works_is_none() -> None:
    snapshot = with_bandwidth(two_networks(4), eth0=1.0, eth1=1.0)
    probes = tuple(
        replace(probe, value=0.1)
        if (probe.kind, probe.interface, probe.to_host) == ("bandwidth", "eth0", "node03")
        else probe
        for probe in some(snapshot.probes)
    )
    assert usable(replace(snapshot, probes=probes)) == ["eth0", "eth1"]


def test_a_mixture_is_what_is_left_where_no_network_works() -> None:
    snapshot = with_probes(two_networks(2), "filtered", interface="eth0", to_host="node01")
    snapshot = with_probes(snapshot, "filtered", interface="eth1", to_host="node02")
    (network,) = [one for one in networks(snapshot) if one.failure is None]
    assert network.places == {"node01": ("eth1", "10.0.1.1"), "node02": ("eth0", "10.0.0.2")}


def test_names_that_one_node_has_the_other_way_round_are_the_subnets_they_are_in() -> None:
    def node(number: int, first: str, second: str) -> dict[str, Any]:
        return unasked(
            interface("eth0", f"10.0.{first}.{number}/24"),
            interface("eth1", f"10.0.{second}.{number}/24", index=3),
        )

    snapshot = of_nodes(node(1, "0", "1"), node(2, "1", "0"), node(3, "0", "1"))
    subnets = [
        {address.split(".")[2] for _, address in network.places.values()}
        for network in networks(snapshot)
        if network.failure is None
    ]
    assert sorted(map(str, subnets)) == ["{'0'}", "{'1'}"]


def test_routed_subnets_of_one_name_are_one_network() -> None:
    def node(number: int) -> dict[str, Any]:
        return unasked(
            interface("eth0", f"10.0.{number}.1/24"), interface("eth1", f"10.1.{number}.1/24", index=3)
        )

    assert usable(with_bandwidth(of_nodes(*map(node, (1, 2, 3))), eth0=1.0, eth1=1.1)) == ["eth0", "eth1"]


def test_a_fast_fabric_of_other_names_beside_a_common_network_is_one_too() -> None:
    def node(number: int, name: str) -> dict[str, Any]:
        return unasked(
            interface("eth0", f"10.0.0.{number}/24"), at(400_000, name, f"10.1.{number}.1/31", index=3)
        )

    assert usable(of_nodes(node(1, "ens5"), node(2, "p1p1")))[0] == "ens5/p1p1"


def test_where_nobody_answered_there_is_no_network() -> None:
    whole = of_nodes({}, {}, {})
    assert find_networks(replace(whole, nodes=()), some(read_reach(whole))) == ()
