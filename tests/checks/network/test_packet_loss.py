"""NC219 packet-loss."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.hardware import LinkCounters
from ncclcheck.model.snapshot import Probe, Snapshot
from tests.builders import cluster, with_facts, with_outcome
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import host_of, some
from tests.probe_builders import loss_probe


def losing(snapshot: Snapshot, *probes: Probe) -> Snapshot:
    return replace(snapshot, probes=(*some(snapshot.probes), *probes))


def receiver(lost: int, nodes: int = 4) -> Snapshot:
    """node03 loses so many of 600 packets from each partner."""
    others = [number for number in range(nodes) if number != 2]
    back = (loss_probe(2, other, 0) for other in others)
    return losing(cluster(nodes), *(loss_probe(other, 2, lost) for other in others), *back)


@pytest.mark.parametrize("nodes", [2, 4, 9])
def test_a_healthy_cluster_passes(nodes: int) -> None:
    assert is_silent("packet-loss", cluster(nodes))


def test_the_node_its_direction_and_share_are_named_with_the_counters_of_its_card() -> None:
    counters = (LinkCounters("eth0", {"rx_crc_errors": 7}, {"rx_crc_errors": 25}),)
    found = finding("packet-loss", with_facts(receiver(6), "node03", link_counters=counters))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert found.summary.startswith("node03 loses 1 % of the packets that it receives on eth0")
    assert any("rx_crc_errors +18" in evidence.observed for evidence in found.evidence)


def test_a_small_share_is_a_warning() -> None:
    found = finding("packet-loss", losing(cluster(4), *(loss_probe(n, 2, 3, 1800) for n in (0, 1, 3))))
    assert (found.severity, found.hosts) == ("warning", ("node03",))


def test_a_pair_is_named_with_its_direction() -> None:
    found = finding("packet-loss", losing(cluster(4), loss_probe(0, 2, 30), loss_probe(2, 0, 0)))
    assert found.hosts == ("node01", "node03")
    assert found.summary.startswith("5 % of the packets from node01 to node03 get lost on eth0")


def test_where_all_nodes_lose_packets_no_single_one_is_blamed() -> None:
    everywhere = [loss_probe(a, b, 9) for a in range(4) for b in range(4) if a != b]
    found = finding("packet-loss", losing(cluster(4), *everywhere))
    assert found.hosts == tuple(host_of(number) for number in range(4))


def test_what_was_not_counted_is_not_passed() -> None:
    snapshot = cluster(3)
    without = tuple(probe for probe in some(snapshot.probes) if probe.kind not in ("bandwidth", "latency"))
    assert run("packet-loss", replace(snapshot, probes=without)).outcome == "unknown"


def test_a_pair_that_does_not_connect_is_not_passed() -> None:
    blocked = with_outcome(cluster(4), "filtered", [("node01", "node02")])
    assert run("packet-loss", blocked).outcome == "unknown"
