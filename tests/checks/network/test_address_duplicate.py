"""NC207 address-duplicate."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Probe, Snapshot
from tests.builders import cluster, with_choice, with_interfaces, with_outcome, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import address_of, docker0, interface, some


def with_docker() -> Snapshot:
    """docker0 has 172.17.0.1 everywhere; probes to it end at the prober itself."""
    snapshot = cluster(4)
    for node in snapshot.nodes:
        eth0 = interface("eth0", f"{address_of(node.node_rank)}/24")
        snapshot = with_interfaces(snapshot, node.host, eth0, docker0())
    extra = Probe("tcp", "node01", "node02", "docker0", "172.17.0.1", 40000, "self")
    return replace(snapshot, probes=(*some(snapshot.probes), extra))


def test_addresses_of_their_own_are_silent() -> None:
    assert is_silent("address-duplicate", cluster(4))


def test_docker0_that_nobody_uses_is_worth_knowing_only() -> None:
    found = finding("address-duplicate", with_docker())
    assert found.severity == "info"
    assert "172.17.0.1 (docker0)" in found.summary


def test_docker0_that_nccl_uses_is_an_error() -> None:
    broken = with_docker()
    for node in broken.nodes:
        broken = with_choice(broken, node.host, "docker0", "172.17.0.1")
    found = finding("address-duplicate", broken)
    assert (found.severity, found.hosts) == ("error", ("node01", "node02", "node03", "node04"))


def test_two_nodes_with_the_address_that_nccl_uses_are_named_once() -> None:
    broken = with_interfaces(cluster(4), "node03", interface("eth0", "10.0.0.2/24"))
    broken = with_choice(broken, "node03", "eth0", "10.0.0.2")
    broken = with_outcome(broken, "self", [("node03", "node02")])
    found = finding("address-duplicate", broken)
    assert (found.severity, found.hosts) == ("error", ("node02", "node03"))
    assert "10.0.0.2 on eth0" in found.summary


def test_a_stranger_who_answers_at_the_address_of_a_node_is_found_by_probes() -> None:
    found = finding("address-duplicate", with_outcome(cluster(4), "wrong-peer", [("node01", "node03")]))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "something else answers at 10.0.0.3" in found.summary


def test_link_local_addresses_mean_nothing() -> None:
    fine = cluster(2)
    for node in fine.nodes:
        eth0 = interface("eth0", f"{address_of(node.node_rank)}/24", "fe80::1/64")
        fine = with_interfaces(fine, node.host, eth0)
    assert is_silent("address-duplicate", fine)


def test_without_interfaces_or_probes_nothing_is_known() -> None:
    assert run("address-duplicate", without(cluster(4), "node03", "interfaces")).outcome == "unknown"
    assert run("address-duplicate", replace(cluster(4), probes=Missing("timeout"))).outcome == "unknown"
