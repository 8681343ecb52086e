"""The interface that NCCL uses on every node."""

from __future__ import annotations

from ncclcheck.checks.chosen import chosen, not_chosen, owner_of
from tests.builders import cluster, with_choice, without
from tests.fact_builders import docker0, interface, loopback


def test_it_is_found_among_the_nodes_interfaces() -> None:
    first = chosen(cluster(2))[0]
    assert (first.host, first.name, first.address, first.prefix_length) == ("node01", "eth0", "10.0.0.1", 24)


def test_a_node_where_nccl_fails_or_is_not_known_is_named() -> None:
    broken = without(with_choice(cluster(3), "node02", None, None), "node03", "interfaces")
    assert [one.host for one in chosen(broken)] == ["node01"]
    assert [known.hosts for known in not_chosen(broken)] == [("node02",), ("node03",)]


def test_of_several_with_the_address_the_named_one_is_meant() -> None:
    twins = (loopback(), interface("eth0", "10.0.0.1/24"), interface("eth1", "10.0.0.1/24"), docker0())
    found = owner_of(twins, "10.0.0.1", "eth1")
    assert found is not None
    assert found.name == "eth1"
    assert owner_of(twins, "10.9.9.9", "nosuch") is None
