"""Reach is proven by a probe in each direction between all nodes, and by nothing less."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.advice.reach import Failure, Reach, read_reach
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Coverage, Probe, ProbeOutcome, Snapshot
from tests.advice.clusters import two_networks, with_probes
from tests.builders import seen_alone, with_outcome, with_silent
from tests.fact_builders import some

ETH0 = {f"node0{number}": ("eth0", f"10.0.0.{number}") for number in (1, 2, 3)}
ETH1 = {f"node0{number}": ("eth1", f"10.0.1.{number}") for number in (1, 2, 3)}


def reach(snapshot: Snapshot) -> Reach:
    return some(read_reach(snapshot))


def test_all_pairs_in_both_directions_are_no_failure() -> None:
    found = reach(two_networks(3))
    assert len(found.pairs) == 6
    assert found.failure(ETH0) is None
    assert found.evidence(ETH0) == "all 6 connections between the 3 nodes on eth0 succeeded"


def test_a_failure_concerns_its_own_network_only() -> None:
    found = reach(with_probes(two_networks(3), "filtered", interface="eth0", from_host="node02"))
    assert found.failure(ETH0) == Failure("node02 to node01 on eth0 (10.0.0.1): filtered", tested=True)
    assert found.failure(ETH1) is None


def nccl_probe(outcome: ProbeOutcome) -> Probe:
    """What node01 met at NCCL's own listener on eth0 of node02."""
    return Probe("tcp", "node01", "node02", "eth0", "10.0.0.2", 41001, outcome, listener="nccl")


@pytest.mark.parametrize("outcome", ["filtered", "refused", "no-route"])
def test_a_way_that_nccls_own_listener_does_not_have_is_a_failure(outcome: ProbeOutcome) -> None:
    snapshot = two_networks(3)
    snapshot = replace(snapshot, probes=(*some(snapshot.probes), nccl_probe(outcome)))
    where = f"node01 to node02 on eth0 (10.0.0.2): {outcome}"
    assert reach(snapshot).failure(ETH0) == Failure(where, tested=True)
    assert reach(snapshot).failure(ETH1) is None


@pytest.mark.parametrize("outcome", ["ok", "error", "self"])
def test_nccls_own_listener_takes_nothing_away_where_it_was_not_tried(outcome: ProbeOutcome) -> None:
    snapshot = two_networks(3)
    for probes in (
        (*some(snapshot.probes), nccl_probe(outcome)),
        (nccl_probe(outcome), *some(snapshot.probes)),
    ):
        assert reach(replace(snapshot, probes=probes)).failure(ETH0) is None


def test_what_failed_is_named_before_what_was_not_tried() -> None:
    snapshot = with_outcome(two_networks(3), "refused", [("node03", "node02")])
    kept = tuple(probe for probe in some(snapshot.probes) if probe.from_host != "node01")
    failure = reach(replace(snapshot, probes=kept)).failure(ETH0)
    assert failure == Failure("node03 to node02 on eth0 (10.0.0.2): refused", tested=True)
    kept = tuple(probe for probe in kept if probe.outcome == "ok")
    untried = reach(replace(snapshot, probes=kept)).failure(ETH0)
    assert untried == Failure("node01 to node02 on eth0 (10.0.0.2): not tested", tested=False)


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_attempts_the_one_that_failed_counts(order: int) -> None:
    snapshot = two_networks(2)
    again = Probe("tcp", "node01", "node02", "eth0", "10.0.0.2", 1, "filtered")
    probes = (*some(snapshot.probes), again)[::order]
    assert reach(replace(snapshot, probes=probes)).failure({h: ETH0[h] for h in ("node01", "node02")})


def test_large_messages_that_vanish_are_a_stall_and_no_failed_connection() -> None:
    snapshot = two_networks(3)
    probe = Probe("mtu", "node03", "node01", "eth1", "10.0.1.1", 1, "stalled")
    found = reach(replace(snapshot, probes=(*some(snapshot.probes), probe)))
    assert found.failure(ETH1) is None
    assert found.stall(ETH1) == "node03 to node01 on eth1 (10.0.1.1): large messages do not arrive"
    assert found.stall(ETH0) is None


def test_without_the_others_or_without_probes_nothing_is_proven() -> None:
    snapshot = two_networks(3)
    for less in (
        seen_alone(snapshot, "node01"),
        with_silent(snapshot, "node03"),
        replace(snapshot, probes=Missing("timeout", "cut short")),
    ):
        assert isinstance(read_reach(less), Missing)


def ring(snapshot: Snapshot, *directions: tuple[str, str]) -> Snapshot:
    """The snapshot of a run that planned a probe from each node to the next alone."""
    probes = tuple(probe for probe in some(snapshot.probes) if (probe.from_host, probe.to_host) in directions)
    return replace(snapshot, probes=probes, coverage=Coverage(3, 6, "a ring"))


def test_of_a_sample_both_directions_have_to_succeed() -> None:
    """One direction that works says nothing about the other: a firewall may drop it."""
    sample = ring(two_networks(3), ("node01", "node02"), ("node02", "node03"), ("node03", "node01"))
    failure = reach(sample).failure(ETH0)
    assert failure is not None
    assert not failure.tested


def test_a_sample_that_left_a_node_out_proves_nothing() -> None:
    sample = ring(two_networks(3), ("node01", "node02"), ("node02", "node01"), ("node03", "node01"))
    assert isinstance(read_reach(sample), Missing)
    sample = ring(two_networks(3), ("node01", "node02"), ("node02", "node01"))
    assert read_reach(sample) == Missing("absent", "2 of 3 planned pairs were tried")
