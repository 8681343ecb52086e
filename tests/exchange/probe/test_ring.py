"""Nodes of a ring on loopback: every transfer has two ends that agree, and a dead node costs bounded time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.probe.bandwidth import Received, Sent
from ncclcheck.exchange.probe.greeting import ProbeGreeting
from ncclcheck.exchange.probe.reachability import Listeners, Peer, Target
from ncclcheck.exchange.probe.ring import (
    RepeatedRounds,
    Ring,
    RingMember,
    answer_latency,
    latencies,
    latencies_again,
    latency_again_s,
    transfers,
    transfers_again,
)
from ncclcheck.measure.links.repeats import RetryRound
from ncclcheck.measure.links.rounds import RoundPlan, plan_rounds

pytestmark = pytest.mark.alone

NONCE = "n"
PLAN = RoundPlan((1, 2), 1, 0.02, 0.05, 0.02)


class RingOnLoopback:
    """So many nodes, each with its own listeners on an address of its own."""

    def __init__(self, nodes: int, plan: RoundPlan) -> None:
        self.listeners = [Listeners() for _ in range(nodes)]
        peers = []
        for number, listener in enumerate(self.listeners):
            answer_latency(listener.channels)
            targets = listener.open([("lo", f"127.0.{number // 250}.{number % 250 + 1}")] * plan.networks)
            listener.admit(NONCE, number + 1)
            peers.append(Peer(number + 1, f"node{number + 1}", targets))
        self.ring = Ring(tuple(peers), plan)

    def me(self, place: int) -> RingMember:
        peer = self.ring.peers[place]
        return RingMember(peer.host, ProbeGreeting(NONCE, peer.ticket), place, self.listeners[place].channels)

    def transfers(self, places: range) -> dict[int, tuple[tuple[Sent, ...], tuple[Received, ...]]]:
        """What the nodes at these places say, all at once."""
        found: dict[int, tuple[tuple[Sent, ...], tuple[Received, ...]]] = {}
        threads = [
            threading.Thread(
                target=lambda place=place: found.update({place: transfers(self.ring, self.me(place))})
            )
            for place in places
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def again(self, again: RepeatedRounds) -> dict[int, tuple[tuple[Sent, ...], tuple[Received, ...]]]:
        """What all nodes say when these rounds are measured again."""
        with ThreadPoolExecutor() as pool:
            places = range(len(self.ring.peers))
            return dict(
                zip(
                    places,
                    pool.map(lambda place: transfers_again(self.ring, again, self.me(place)), places),
                    strict=True,
                )
            )

    def close(self) -> None:
        for listener in self.listeners:
            listener.close()


@pytest.fixture
def three() -> Iterator[RingOnLoopback]:
    ring = RingOnLoopback(3, PLAN)
    yield ring
    ring.close()


def test_every_transfer_is_told_by_both_its_ends(three: RingOnLoopback) -> None:
    found = three.transfers(range(3))
    for sent, received in found.values():
        assert [one.outcome for one in sent] == ["ok", "ok"], sent
        assert [one.outcome for one in received] == ["ok", "ok"], received
        assert [one.number for one in sent] == [one.number for one in received] == [0, 1]
        assert all(one.bytes_per_s > 0 and one.seconds > 0 for one in received)
        assert all(one.source_address.startswith("127.") for one in sent)


@pytest.mark.slow
def test_a_cpu_that_is_the_limit_is_told() -> None:
    """On loopback nothing else is. All three nodes are one process here, so the look takes longer than usual."""
    three = RingOnLoopback(3, RoundPlan((1, 2), 1, 0.02, 0.5, 0.02))
    found = three.transfers(range(3))
    three.close()
    shares = [one.cpu_share for ends in found.values() for side in ends for one in side]
    assert all(isinstance(share, float) and 0 < share <= 1 for share in shares), shares


def test_round_trips_go_to_every_partner_once(three: RingOnLoopback) -> None:
    probes = latencies(three.ring, three.me(0))
    assert [(probe.kind, probe.to_host, probe.outcome, probe.unit) for probe in probes] == [
        ("latency", "node2", "ok", "us"),
        ("latency", "node3", "ok", "us"),
        ("clock", "node2", "ok", "us"),
        ("clock", "node3", "ok", "us"),
    ]
    for probe in probes:
        assert probe.measured is not None
        assert probe.value is not None
        assert probe.measured.least is not None
        assert probe.measured.least > 0
        assert (
            probe.measured.least <= probe.value
            if probe.kind == "latency"
            else abs(probe.value) <= probe.measured.least
        )


@pytest.mark.slow
def test_a_node_that_takes_no_part_costs_the_others_bounded_time(three: RingOnLoopback) -> None:
    started = time.monotonic()
    found = three.transfers(range(2))
    assert time.monotonic() - started < PLAN.bandwidth_s + 1.0
    words = {place: [received.outcome for received in side] for place, (_, side) in found.items()}
    assert words == {0: ["error", "ok"], 1: ["ok", "error"]}
    assert {
        received.detail for _, side in found.values() for received in side if received.outcome == "error"
    } == {"the sender never called"}
    for sent, _ in found.values():
        assert sorted(one.outcome for one in sent) == ["ok", "stalled"]


def test_a_node_that_is_gone_is_told_at_once(three: RingOnLoopback) -> None:
    three.listeners[2].close()
    probes = latencies(three.ring, three.me(0))
    assert [(probe.to_host, probe.outcome) for probe in probes] == [("node2", "ok"), ("node3", "refused")] * 2


@pytest.mark.slow
def test_a_stranger_who_holds_the_address_is_not_our_peer(three: RingOnLoopback) -> None:
    plan = replace(PLAN, networks=1)
    with socket.create_server(("127.0.9.9", 0)) as mute:
        foreign = Peer(3, "node3", (Target("lo", "127.0.9.9", mute.getsockname()[1]),))
        ring = Ring((*three.ring.peers[:2], foreign), plan)
        started = time.monotonic()
        probes = latencies(ring, three.me(0))
        assert time.monotonic() - started < timeouts.LINKS_PARTNER_S + 1
    assert [probe.outcome for probe in probes if probe.kind == "latency"] == ["ok", "stalled"]
    assert [probe.outcome for probe in probes if probe.kind == "clock"][1] != "ok"


def test_a_ring_that_i_am_not_in_has_no_place_for_me(three: RingOnLoopback) -> None:
    assert three.ring.place_of(2) == 1
    assert three.ring.place_of(9) is None


def test_the_rounds_of_one_network_come_before_those_of_the_next() -> None:
    ring = Ring((), plan_rounds(4, 2))
    assert [network for _, network, _ in ring.rounds()] == [0, 0, 0, 1, 1, 1]
    assert [number for number, _, _ in ring.rounds()] == list(range(6))


def test_only_the_transfers_that_are_asked_for_are_measured_again(three: RingOnLoopback) -> None:
    rounds = RepeatedRounds(7, (RetryRound(0, ((0, 2),)), RetryRound(0, ((2, 0),)), RetryRound(0, ((1, 2),))))
    assert list(rounds.transfers()) == [(7, 0, 0, 2), (8, 0, 2, 0), (9, 0, 1, 2)]
    found = three.again(rounds)
    sent = {place: [(one.number, one.outcome) for one in side] for place, (side, _) in found.items()}
    received = {place: [(one.number, one.outcome) for one in side] for place, (_, side) in found.items()}
    assert sent == {0: [(7, "ok")], 1: [(9, "ok")], 2: [(8, "ok")]}
    assert received == {0: [(8, "ok")], 1: [], 2: [(7, "ok"), (9, "ok")]}


@pytest.mark.slow
def test_a_node_that_is_gone_when_it_is_measured_again_costs_bounded_time(three: RingOnLoopback) -> None:
    again = RepeatedRounds(2, (RetryRound(0, ((0, 1),)), RetryRound(0, ((0, 2),))))
    started = time.monotonic()
    _, received = transfers_again(three.ring, again, three.me(2))
    assert time.monotonic() - started <= PLAN.latest_start_s(1) + 0.5
    assert [(one.number, one.outcome) for one in received] == [(3, "error")]


def test_round_trips_are_measured_again_by_their_callers_only(three: RingOnLoopback) -> None:
    again = RepeatedRounds(0, (RetryRound(0, ((0, 2), (1, 0))), RetryRound(0, ((0, 1),))))
    assert [probe.to_host for probe in latencies_again(three.ring, again, three.me(0))] == ["node3", "node2"]
    assert [probe.to_host for probe in latencies_again(three.ring, again, three.me(1))] == ["node1"]
    assert latencies_again(three.ring, again, three.me(2)) == ()
    assert latency_again_s(again) == pytest.approx(timeouts.LINKS_PARTNER_S + 0.2)


def test_a_ring_says_its_transfers_and_its_networks(three: RingOnLoopback) -> None:
    assert list(three.ring.transfers()) == [
        (0, 0, 0, 1), (0, 0, 1, 2), (0, 0, 2, 0), (1, 0, 0, 2), (1, 0, 1, 0), (1, 0, 2, 1),
    ]  # fmt: skip
    assert three.ring.networks() == (
        {"node1": ("lo", "127.0.0.1"), "node2": ("lo", "127.0.0.2"), "node3": ("lo", "127.0.0.3")},
    )
