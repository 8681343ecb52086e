"""Who measures with whom: what failed to connect is left out, and the rest is measured."""

from __future__ import annotations

from ncclcheck.exchange.probe.reachability import Peer, Target
from ncclcheck.exchange.probe.ring import RepeatedRounds, Ring
from ncclcheck.exchange.probe.ring_plan import plan_ring, ring_of_each
from ncclcheck.exchange.roster import Member
from ncclcheck.measure.links.repeats import RetryRound
from ncclcheck.measure.links.rounds import plan_rounds
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


def test_a_node_is_given_its_partners_and_measures_what_it_would_in_the_whole_ring() -> None:
    peers = tuple(
        Peer(ticket, f"node{ticket}", (Target("eth0", f"10.0.0.{ticket}", 40000),))
        for ticket in range(1, 101)
    )
    ring = Ring(peers, plan_rounds(100, 1), blocked=((0, 4, 5), (0, 70, 71)))
    again = RepeatedRounds(3, (RetryRound(0, ((4, 60), (7, 8))), RetryRound(0, ((60, 4),))))
    first, second = ring_of_each(ring, None), ring_of_each(ring, again)
    assert first.keys() == second.keys() == {peer.ticket for peer in peers}
    for place, peer in enumerate(peers):
        part, rounds = second[peer.ticket]
        assert first[peer.ticket][1] is None
        assert part.place_of(peer.ticket) == place
        assert len(first[peer.ticket][0].peers) <= 1 + 2 * len(ring.plan.shifts)
        for found in (part, first[peer.ticket][0]):
            for sends in (True, False):
                whole = list(ring.rounds_of(place, sends=sends))
                assert list(found.rounds_of(place, sends=sends)) == whole
        assert rounds is not None
        own = [transfer for transfer in again.transfers() if place in transfer[2:]]
        assert list(rounds.transfers()) == own
        assert all(part.at(end) == peers[end] for transfer in own for end in transfer[2:])
    assert len(first[5][0].blocked) == 1
