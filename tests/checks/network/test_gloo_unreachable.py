"""NC222 gloo-unreachable."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.facts import Names
from ncclcheck.model.snapshot import Probe, ProbeOutcome, Snapshot
from tests.builders import cluster, with_facts, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import interface, loopback, some

SLUG = "gloo-unreachable"


def second_addresses(outcome: ProbeOutcome | None = "ok") -> Snapshot:
    """Three nodes whose names mean a second address of eth0, with the outcome of the probes to node02's."""
    snapshot = cluster(3)
    for number, node in enumerate(snapshot.nodes, 1):
        names = Names(node.host, node.host, (f"10.67.0.{number}",))
        eth0 = interface("eth0", f"10.0.0.{number}/24", f"10.67.0.{number}/24")
        snapshot = with_facts(snapshot, node.host, names=names, interfaces=(loopback(), eth0))
    if outcome is None:
        return snapshot
    hosts = [node.host for node in snapshot.nodes]
    more = tuple(
        Probe(
            "tcp", source, target, "eth0", f"10.67.0.{place}", 40000, outcome if target == hosts[1] else "ok"
        )
        for place, target in enumerate(hosts, 1)
        for source in hosts
        if source != target
    )
    return replace(snapshot, probes=(*some(snapshot.probes), *more))


def test_where_gloo_binds_what_nccl_uses_there_is_nothing_to_add() -> None:
    assert is_silent(SLUG, cluster(3))


def test_ipv4_and_ipv6_do_not_go_together() -> None:
    snapshot = cluster(3)
    eth0 = interface("eth0", "10.0.0.3/24", "fd66::3/64")
    names = Names("node03", "node03", ("fd66::3",))
    found = finding(SLUG, with_facts(snapshot, "node03", names=names, interfaces=(loopback(), eth0)))
    assert found.hosts == ("node03",)
    assert "IPv6 on node03" in found.summary


def test_a_second_address_that_is_reached_is_silent() -> None:
    assert is_silent(SLUG, second_addresses())


def test_one_that_is_not_reached_is_named_with_its_node() -> None:
    found = finding(SLUG, second_addresses("filtered"))
    assert found.hosts == ("node02",)
    assert "10.67.0.2 on node02" in found.summary
    assert found.fixes[0].env == {"GLOO_SOCKET_IFNAME": "eth0"}


def test_what_was_not_probed_is_unknown() -> None:
    assert run(SLUG, second_addresses(None)).outcome == "unknown"
    assert run(SLUG, second_addresses("error")).outcome == "unknown"


def test_without_the_facts_nothing_is_known() -> None:
    for section in ("names", "environment", "interfaces"):
        assert run(SLUG, without(second_addresses(), "node03", section)).outcome == "unknown"
