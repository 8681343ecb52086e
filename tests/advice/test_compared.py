"""What is compared is what would be advised, between the places of now and then."""

from __future__ import annotations

from ncclcheck.advice.block import advise
from ncclcheck.advice.compared import AsIsAndAdvised, as_is_and_advised
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.advice.clusters import asked, two_networks, with_bandwidth, with_rdma
from tests.builders import cluster, with_choice
from tests.fact_builders import some
from tests.nccl.hardware import port

ETH0 = {"node01": ("eth0", "10.0.0.1"), "node02": ("eth0", "10.0.0.2")}
ETH1 = {"node01": ("eth1", "10.0.1.1"), "node02": ("eth1", "10.0.1.2")}


def two(snapshot: Snapshot) -> AsIsAndAdvised:
    return some(as_is_and_advised(snapshot))


def test_a_healthy_cluster_has_nothing_to_compare_and_says_why() -> None:
    nothing = as_is_and_advised(cluster())
    assert isinstance(nothing, Missing)
    assert "nothing is advised, so there is nothing to compare: NCCL: its own choice, eth0" in nothing.detail


def test_the_slow_network_is_compared_with_the_fast_one() -> None:
    found = two(with_bandwidth(two_networks(2), eth0=1.0, eth1=9.0))
    assert (found.chooser, found.as_is, found.advised) == ("NCCL", ETH0, ETH1)
    assert found.changes == {host: {"NCCL_SOCKET_IFNAME": "eth1"} for host in ETH0}


def test_a_host_where_nccl_fails_has_no_place_as_it_is() -> None:
    found = two(two_networks(2, NCCL_SOCKET_IFNAME="nosuch"))
    assert (found.as_is, found.advised) == ({}, ETH0)


def test_the_changes_are_all_that_is_printed() -> None:
    snapshot = two_networks(2, NCCL_SOCKET_IFNAME="lo", GLOO_SOCKET_IFNAME="eth")
    printed = {setting.name: setting.value for setting in advise(snapshot).env}
    assert two(snapshot).changes == dict.fromkeys(("node01", "node02"), printed)


def test_gloo_alone_has_places_of_its_own() -> None:
    found = two(two_networks(2, GLOO_SOCKET_IFNAME="lo"))
    assert (found.chooser, found.advised) == ("Gloo", ETH0)
    assert found.as_is == dict.fromkeys(ETH0, ("lo", "127.0.0.1"))
    assert two(two_networks(2, GLOO_SOCKET_IFNAME="eth")).as_is == {}


def test_a_network_is_compared_on_the_same_interfaces() -> None:
    found = two(with_rdma(2, port(), NCCL_NET="Socket"))
    assert (found.as_is, found.advised) == (ETH0, ETH0)
    assert found.changes["node01"] == {"NCCL_NET": None}


def test_what_the_library_contradicts_is_not_compared() -> None:
    snapshot = cluster(2)
    for host in ETH0:
        snapshot = with_choice(snapshot, host, "lo", "127.0.0.1")
    environment = {"NCCL_SOCKET_IFNAME": "lo"}
    from tests.builders import everywhere

    snapshot = everywhere(snapshot, environment=environment)
    assert two(asked(snapshot)).advised == ETH0
    assert isinstance(as_is_and_advised(asked(snapshot, {"node02": ("lo", "127.0.0.1")})), Missing)
