"""Gloo gets an interface where the one it would bind is not reachable, and nothing where all is well."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.advice.interface import decide
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.advice.clusters import (
    of_nodes,
    two_networks,
    unasked,
    with_bandwidth,
)
from tests.builders import everywhere, with_facts, with_outcome
from tests.fact_builders import interface, some
from tests.probe_builders import both_ways


def gloo_values(snapshot: Snapshot) -> dict[str, str]:
    return decide(snapshot).gloo.values


def named(snapshot: Snapshot, host: str, *addresses: str) -> Snapshot:
    names = next(node.facts.names for node in snapshot.nodes if node.host == host)
    return with_facts(snapshot, host, names=replace(some(names), addresses=addresses))


def test_gloo_needs_nothing_where_the_host_names_lead_to_reachable_addresses() -> None:
    decision = decide(two_networks())
    assert not decision.gloo.values
    assert "Gloo: eth0 is reachable between all nodes: nothing to set" in decision.notes


@pytest.mark.parametrize("address", ["127.0.1.1", "127.0.0.1", "::1", "10.99.0.1"])
def test_a_host_name_that_leads_nowhere_is_replaced_by_the_network_nccl_uses(address: str) -> None:
    snapshot = named(two_networks(NCCL_SOCKET_IFNAME="eth1"), "node02", address)
    assert gloo_values(snapshot) == dict.fromkeys(("node01", "node02", "node03", "node04"), "eth1")


def test_the_first_local_address_of_the_host_name_counts() -> None:
    assert not gloo_values(named(two_networks(), "node02", "10.99.0.1", "10.0.0.2"))


def test_a_host_name_that_does_not_resolve_makes_gloo_fall_back_to_loopback() -> None:
    snapshot = two_networks()
    names = replace(some(snapshot.nodes[1].facts.names), addresses=Missing("absent", "node02: not known"))
    decision = decide(with_facts(snapshot, "node02", names=names))
    assert decision.gloo.values["node02"] == "eth0"
    assert "falls back to 127.0.0.1" in decision.gloo.why


def test_a_resolver_that_did_not_answer_leaves_gloo_unknown() -> None:
    snapshot = two_networks()
    names = replace(some(snapshot.nodes[1].facts.names), addresses=Missing("timeout", "no answer in 5 s"))
    decision = decide(with_facts(snapshot, "node02", names=names))
    assert not decision.gloo.values
    assert any("what it binds on node02 is not known" in note for note in decision.notes)


@pytest.mark.parametrize("value", ["eth", "^lo", "=eth0", "eth0,eth9", " eth0", "lo"])
def test_a_present_value_that_is_no_exact_name_of_a_network_is_replaced(value: str) -> None:
    assert set(gloo_values(two_networks(GLOO_SOCKET_IFNAME=value)).values()) == {"eth0"}


def test_an_exact_name_that_works_is_left_alone() -> None:
    assert not gloo_values(two_networks(GLOO_SOCKET_IFNAME="eth1"))


def test_gloo_gets_a_name_per_host_where_they_differ() -> None:
    first, second = unasked(interface("eth0", "10.0.0.1/24")), unasked(interface("ens3", "10.0.0.2/24"))
    snapshot = named(of_nodes(first, second), "node01", "127.0.1.1")
    assert gloo_values(snapshot) == {"node01": "eth0"}  # on node02 its host name leads there
    both = named(snapshot, "node02", "127.0.1.1")
    assert gloo_values(both) == {"node01": "eth0", "node02": "ens3"}


def test_gloo_gets_nothing_where_no_network_is_reachable() -> None:
    snapshot = with_outcome(
        named(two_networks(2), "node01", "127.0.1.1"), "filtered", both_ways("node01", "node02")
    )
    decision = decide(snapshot)
    assert not decision.gloo.values
    assert any(note.startswith("Gloo:") and "nothing is advised" in note for note in decision.notes)


def test_gloo_gets_the_faster_network_where_it_carries_the_data() -> None:
    snapshot = with_bandwidth(two_networks(2), eth0=0.94, eth1=9.4)
    assert not gloo_values(snapshot)
    assert any("carries little traffic next to NCCL" in note for note in decide(snapshot).notes)
    none = Missing("absent", "no NVML")
    without_gpus = everywhere(snapshot, gpus=none, torch_gpus=none)
    assert gloo_values(without_gpus) == {"node01": "eth1", "node02": "eth1"}
    assert not gloo_values(with_bandwidth(everywhere(two_networks(2), gpus=()), eth0=1.0, eth1=1.1))
