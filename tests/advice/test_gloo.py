"""What Gloo binds on a node, and why that cannot work; `test_interface_gloo.py` has what is advised then."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.advice.gloo import Binding, advise_gloo, gloo_binding
from ncclcheck.advice.networks import find_networks
from ncclcheck.advice.reach import read_reach
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.snapshot import Snapshot
from tests.advice.clusters import two_networks, with_probes
from tests.builders import with_facts
from tests.fact_builders import interface, loopback, node_facts, some

UNREAD = Missing("timeout", "no answer in 5 s")


def facts(*addresses: str, names: Fact[tuple[str, ...]] | None = None, **environment: str) -> NodeFacts:
    """node01 with lo and eth0; its host name means `addresses`, or what `names` says."""
    healthy = node_facts(0, 2)
    own = replace(some(healthy.names), addresses=addresses if names is None else names)
    interfaces = (loopback(), interface("eth0", "10.0.0.1/24", "fe80::1/64"))
    return replace(healthy, names=own, interfaces=interfaces, environment=environment)


def bound(one: NodeFacts, value: str | None = None) -> Binding:
    return some(gloo_binding(one, value))


def test_unset_it_is_the_first_own_address_of_the_host_name() -> None:
    assert bound(facts("10.0.0.1")) == Binding((("eth0", "10.0.0.1"),))
    assert bound(facts("192.0.2.1", "fe80::1%eth0", "10.0.0.1")) == Binding((("eth0", "fe80::1"),))


def test_a_value_is_the_first_address_of_each_name_exactly() -> None:
    one = facts("127.0.1.1", GLOO_SOCKET_IFNAME="eth0")
    assert bound(one) == Binding((("eth0", "10.0.0.1"),))
    assert bound(facts("10.0.0.1"), "eth0,eth0").places == (("eth0", "10.0.0.1"),) * 2
    assert "no interface with an address is named 'eth'" in bound(one, "eth").fault
    assert "named '^lo'" in bound(one, "^lo").fault


def test_an_alias_has_a_name_of_its_own() -> None:
    alias = replace(some(facts().interfaces)[1].addresses[0], address="10.0.9.1", label="eth0:1")
    eth0 = some(facts().interfaces)[1]
    one = replace(facts(), interfaces=(loopback(), replace(eth0, addresses=(*eth0.addresses, alias))))
    assert bound(one, "eth0:1") == Binding((("eth0", "10.0.9.1"),))
    assert bound(one, "eth0") == Binding((("eth0", "10.0.0.1"),))


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.1.1", "::1"])
def test_a_loopback_address_is_bound_and_reached_by_nobody(address: str) -> None:
    found = bound(facts(address))
    assert found.places == (("lo", address),)
    assert f"makes Gloo bind {address}, which no other node can reach" in found.fault


def test_a_name_that_means_other_machines_is_a_fault_that_lists_them() -> None:
    assert bound(facts("192.0.2.1", "192.0.2.2")) == Binding(
        fault="the host name node01 means 192.0.2.1, 192.0.2.2, which is not an address of this node"
    )


def test_an_unknown_name_is_a_fault_and_an_unanswered_question_is_not() -> None:
    assert "does not resolve, so Gloo falls" in bound(facts(names=Missing("absent", "node01: unknown"))).fault
    failed = bound(facts(names=Missing("error", "node01: Temporary failure in name resolution")))
    assert "does not resolve (node01: Temporary failure in name resolution), so" in failed.fault
    assert gloo_binding(facts(names=UNREAD)) == UNREAD


@pytest.mark.parametrize("section", ["environment", "interfaces", "names"])
def test_what_was_not_read_is_not_guessed(section: str) -> None:
    assert gloo_binding(replace(facts("10.0.0.1"), **{section: UNREAD})) == UNREAD


def test_names_are_not_asked_where_a_value_decides() -> None:
    assert bound(replace(facts(), names=UNREAD), "eth0") == Binding((("eth0", "10.0.0.1"),))


def advised(snapshot: Snapshot, preferred: str | None = None) -> tuple[dict[str, str], str]:
    reach = some(read_reach(snapshot))
    usable = [network for network in find_networks(snapshot, reach) if network.failure is None]
    wanted = next((one.places for one in usable if one.name == preferred), None)
    found = advise_gloo(snapshot, reach, usable, wanted)
    return found.values, " ".join((found.why, *found.notes))


def test_the_network_of_nccl_is_preferred_to_the_first() -> None:
    snapshot = two_networks(2, GLOO_SOCKET_IFNAME="lo")
    assert set(advised(snapshot)[0].values()) == {"eth0"}
    assert set(advised(snapshot, "eth1")[0].values()) == {"eth1"}


def test_different_numbers_of_interfaces_and_families_cannot_connect() -> None:
    snapshot = two_networks(2, GLOO_SOCKET_IFNAME="eth0")
    two = with_facts(snapshot, "node02", environment={"GLOO_SOCKET_IFNAME": "eth0,eth1"})
    assert "different numbers of interfaces" in advised(two)[1]
    both = interface("eth0", "fd00::2/64", "10.0.0.2/24")
    six = with_facts(snapshot, "node02", interfaces=(loopback(), both))
    assert "IPv4 on some nodes and IPv6 on others" in advised(six)[1]


def test_a_failed_connection_is_a_reason_and_an_untried_one_is_none() -> None:
    snapshot = two_networks(2, GLOO_SOCKET_IFNAME="eth0")
    values, text = advised(with_probes(snapshot, "filtered", interface="eth0"))
    assert set(values.values()) == {"eth1"}
    assert "Gloo would bind 10.0.0.1, 10.0.0.2; node01 to node02 on eth0 (10.0.0.2): filtered" in text
    untried = tuple(probe for probe in some(snapshot.probes) if probe.interface != "eth0")
    values, text = advised(replace(snapshot, probes=untried))
    assert not values
    assert "not tested, so nothing is advised" in text


def test_the_fault_of_many_nodes_is_told_with_the_first_of_them() -> None:
    snapshot = two_networks(4, GLOO_SOCKET_IFNAME="eth")
    snapshot = with_facts(snapshot, "node04", environment={"GLOO_SOCKET_IFNAME": "nic"})
    _, text = advised(snapshot)
    assert "on node01, node02, node03: GLOO_SOCKET_IFNAME=eth" in text
    assert "(and 1 more nodes)" in text
