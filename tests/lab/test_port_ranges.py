"""preflight behind firewalls that open only a part of the ports that the kernel picks for NCCL and Gloo."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab import faults
from tests.lab.launched import run
from tests.lab.nodes import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]


@pytest.mark.parametrize(
    "closed",
    [
        (40001, 65535),
        pytest.param((1024, 50000), marks=pytest.mark.further),
        pytest.param((60500, 65535), marks=pytest.mark.further),
    ],
)
def test_a_firewall_that_opens_only_a_part_of_the_ports_is_found_each_time(
    lab: LabOf, closed: tuple[int, int]
) -> None:
    three = lab(3)
    faults.drop(three["node3"], closed, syn_only=True)
    for _ in range(2):
        first = run(three, "preflight")["node1"]
        assert first.code == 1, str(first.finished)
        assert first.outcome("peer-filtered") != "passed"
        (found,) = [*first.findings("peer-one-way"), *first.findings("peer-filtered")]
        assert found["hosts"] == ["node3"]
    assert three.leftovers() == ()


def test_one_that_closes_the_upper_ports_of_a_pair_in_both_directions_says_which(lab: LabOf) -> None:
    two = lab(2)
    for node in two.nodes:
        faults.drop(node, (40001, 65535), syn_only=True)
    first = run(two, "preflight")["node1"]
    found = first.finding("peer-filtered")
    assert " on some ports: " in found["summary"], str(first.finished)


def test_a_second_address_that_gloo_binds_and_nobody_reaches_is_an_error(lab: LabOf) -> None:
    three = lab(3)
    for node in three.nodes:
        node.ip(f"addr add 10.67.0.{node.number}/24 dev eth0")
    names = {node.name: f"10.67.0.{node.number}" for node in three.nodes}
    for node in three.nodes:
        node.set_hosts(names)
        rule = ["-d", "10.67.0.0/24", "-p", "tcp", "--dport", "30000:65535", "-j", "DROP"]
        node.run(["iptables", "-A", "INPUT", *rule])
    first = run(three, "preflight", master="10.78.0.1")["node1"]
    assert first.code == 1, str(first.finished)
    assert sorted(first.finding("gloo-unreachable")["hosts"]) == ["node1", "node2", "node3"]
    assert first.slugs == {"gloo-unreachable"}


def test_a_node_without_a_route_to_another_is_the_only_finding(lab: LabOf) -> None:
    three = lab(3)
    three["node3"].ip(
        "addr flush dev eth0", "addr add 10.78.0.3/32 dev eth0", "route add 10.78.0.1/32 dev eth0"
    )
    first = run(three, "preflight")["node1"]
    assert first.code == 1, str(first.finished)
    assert first.finding("peer-no-route")["hosts"] == ["node3"]
    assert not first.findings("peer-filtered")
    assert not first.findings("peer-one-way")


def test_a_limit_on_the_number_of_connections_is_found(lab: LabOf) -> None:
    three = lab(3)
    limit = "INPUT -p tcp --syn -m connlimit --connlimit-above 2 -j REJECT --reject-with tcp-reset"
    three["node1"].run(["iptables", "-A", *limit.split()])
    first = run(three, "preflight")["node1"]
    assert first.code == 1, str(first.finished)
    found = [*first.findings("peer-refused"), *first.findings("peer-one-way")]
    assert {host for finding in found for host in finding["hosts"]} >= {"node1"}


def test_ipv6_that_gloo_binds_and_a_firewall_drops_is_an_error(lab: LabOf) -> None:
    three = lab(3, ipv6=True)
    rule = ["-i", "eth0", "-p", "tcp", "--syn", "--dport", "30000:65535", "-j", "DROP"]
    for node in three.nodes:
        node.set_hosts({peer.name: f"fd78::{peer.number}" for peer in three.nodes})
        node.run(["ip6tables", "-A", "INPUT", *rule])
    first = run(three, "preflight", master="10.78.0.1")["node1"]
    assert first.code == 1, str(first.finished)
    assert "fd78::1" in first.finding("gloo-unreachable")["summary"]
