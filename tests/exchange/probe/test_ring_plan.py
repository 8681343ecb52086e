"""Who measures with whom: what failed to connect is left out, and the rest is measured."""

from __future__ import annotations

from ncclcheck.exchange.probe.reachability import Target
from ncclcheck.exchange.probe.ring_plan import plan_ring
from ncclcheck.exchange.roster import Member
from tests.fact_builders import address_of, host_of, launch
from tests.probe_builders import probe

AGENTS = tuple(Member(number + 1, launch(number, 3), host_of(number)) for number in range(3))
TARGETS = {number + 1: (Target("eth0", address_of(number), 5000),) for number in range(3)}
NETWORK = {host_of(number): ("eth0", address_of(number)) for number in range(3)}


def test_a_way_that_failed_is_left_out_for_sender_and_receiver() -> None:
    ring = plan_ring(
        AGENTS, TARGETS, [NETWORK], [probe("tcp", 0, 1, "filtered"), probe("mtu", 2, 0, "stalled")]
    )
    assert ring is not None
    assert set(ring.blocked) == {(0, 0, 1), (0, 2, 0)}
    assert {(source, target) for *_, source, target in ring.transfers()} == {(0, 2), (1, 0), (1, 2), (2, 1)}
    assert [peer.host for *_, peer in ring.rounds_of(0, sends=True)] == [host_of(2)]
    assert [peer.host for *_, peer in ring.rounds_of(1, sends=False)] == [host_of(2)]


def test_without_a_network_or_a_connection_there_is_nothing_to_measure() -> None:
    ways = [(source, target) for source in range(3) for target in range(3) if source != target]
    assert plan_ring(AGENTS, TARGETS, [], []) is None
    assert plan_ring(AGENTS, TARGETS, [NETWORK], [probe("tcp", *way, "refused") for way in ways]) is None
