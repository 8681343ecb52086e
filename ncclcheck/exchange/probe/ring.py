"""One node's part in measuring links: its round trips, or its transfers, in step with its partners only."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.bandwidth import Received, Sent, Window, receive, send
from ncclcheck.exchange.probe.channels import Channels
from ncclcheck.exchange.probe.greeting import ProbeGreeting
from ncclcheck.exchange.probe.latency import CHANNEL, Callee, echo, measure_latency
from ncclcheck.exchange.probe.loss import CHANNEL as LOSS
from ncclcheck.exchange.probe.loss import Exchanged, echo_and_count, exchange
from ncclcheck.exchange.probe.reachability import Peer
from ncclcheck.exchange.probe.time_offset import CHANNEL as CLOCK
from ncclcheck.exchange.probe.time_offset import measure_clock, tell_time
from ncclcheck.measure.links.repeats import RetryRound
from ncclcheck.measure.links.rounds import RoundPlan
from ncclcheck.model.snapshot import Probe

Quantity = Literal["latency", "bandwidth", "loss"]
_MOST_PARTNERS = 16  # of one node, to look for lost packets: more than any plan has


class Ring(Struct, frozen=True, forbid_unknown_fields=True):
    """The nodes in the order of the rounds; each peer's targets are its listeners, one per network, in one order.

    `blocked`: what is not measured, (network, from, to) by positions, since that connection failed before.
    `places`: a node is given only those that it needs, at these positions in a ring of `size`; empty: all of them.
    """

    peers: tuple[Peer, ...]
    plan: RoundPlan
    blocked: tuple[tuple[int, int, int], ...] = ()
    places: tuple[int, ...] = ()
    size: int = 0

    @property
    def count(self) -> int:
        """Return how many nodes are in the ring."""
        return self.size if self.places else len(self.peers)

    def at(self, place: int) -> Peer:
        """Return the node at that position. Raises ValueError where it is not among those that are given."""
        return self.peers[self.places.index(place) if self.places else place]

    def place_of(self, ticket: int) -> int | None:
        """Return the position of that node; None where it takes no part."""
        found = next((number for number, peer in enumerate(self.peers) if peer.ticket == ticket), None)
        return self.places[found] if self.places and found is not None else found

    def rounds(self) -> Iterator[tuple[int, int, int]]:
        """Yield (number, network, shift) of each round, all of one network before the next."""
        shifts = [(network, shift) for network in range(self.plan.networks) for shift in self.plan.shifts]
        yield from ((number, network, shift) for number, (network, shift) in enumerate(shifts))

    def transfers(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (number, network, from, to) of each transfer, the nodes by their positions."""
        blocked = frozenset(self.blocked)
        for number, network, shift in self.rounds():
            for place in range(len(self.peers)):
                partner = (place + shift) % len(self.peers)
                if (network, place, partner) not in blocked:
                    yield number, network, place, partner

    def networks(self) -> tuple[dict[str, tuple[str, str]], ...]:
        """Return the (interface, address) of each host in each network that is measured."""
        return tuple(
            {peer.host: (peer.targets[number].interface, peer.targets[number].address) for peer in self.peers}
            for number in range(self.plan.networks)
        )

    def rounds_of(self, place: int, *, sends: bool) -> Iterator[tuple[int, int, Peer]]:
        """Yield (number, network, partner) of each transfer that this node sends, or receives."""
        blocked = frozenset(self.blocked)
        for number, network, shift in self.rounds():
            partner = (place + (shift if sends else -shift)) % self.count
            direction = (place, partner) if sends else (partner, place)
            if (network, *direction) not in blocked:
                yield number, network, self.at(partner)


class RepeatedRounds(Struct, frozen=True, forbid_unknown_fields=True):
    """Rounds after those of the ring, whose numbers go on from `first`."""

    first: int
    rounds: tuple[RetryRound, ...]

    def transfers(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (number, network, from, to) of each transfer, the nodes by their positions."""
        for number, repeated in enumerate(self.rounds, self.first):
            yield from ((number, repeated.network, source, target) for source, target in repeated.pairs)


class RingMember(Struct, frozen=True):
    """This node in a ring: its name, its greeting with the run's nonce, its position, its incoming connections."""

    host: str
    greeting: ProbeGreeting
    place: int
    channels: Channels


class RingMeasurements(Struct, frozen=True, forbid_unknown_fields=True):
    """What one node measured in a ring: the round trips to its partners, or its side of its transfers."""

    latencies: tuple[Probe, ...] = ()
    sent: tuple[Sent, ...] = ()
    received: tuple[Received, ...] = ()
    exchanged: tuple[Exchanged, ...] = ()


def measure(quantity: Quantity, ring: Ring, again: RepeatedRounds | None, me: RingMember) -> RingMeasurements:
    """Return this node's part in measuring that quantity; where `again` is given, of these transfers only."""
    if quantity == "latency":
        times = latencies(ring, me) if again is None else latencies_again(ring, again, me)
        return RingMeasurements(latencies=times)
    if quantity == "loss":
        return RingMeasurements(exchanged=() if again is None else exchanges(ring, again, me))
    sent, received = transfers(ring, me) if again is None else transfers_again(ring, again, me)
    return RingMeasurements(sent=sent, received=received)


def answer_latency(channels: Channels) -> None:
    """Send messages back to peers that measure their latency to this node, and tell them the time."""
    channels.serve(CHANNEL, echo)
    channels.serve(CLOCK, tell_time)
    channels.serve(LOSS, echo_and_count)


def latencies(ring: Ring, me: RingMember) -> tuple[Probe, ...]:
    """Measure the round trips from this node to its partners, one after the other; then their clock offsets."""
    deadline = Deadline(ring.plan.latency_s)
    found: dict[tuple[str, str], Probe] = {}
    for _, network, peer in ring.rounds_of(me.place, sends=True):
        callee = Callee(peer.ticket, peer.host, peer.targets[network])
        if (peer.host, callee.target.address) not in found:
            probe = measure_latency(
                me.host, me.greeting.nonce, me.greeting.ticket, callee, ring.plan.pings_s, deadline
            )
            found[peer.host, callee.target.address] = probe
    return (*found.values(), *_clocks(ring, me, deadline))


def latencies_again(ring: Ring, again: RepeatedRounds, me: RingMember) -> tuple[Probe, ...]:
    """Measure this node's round trips again where asked, one after the other, each with more time than at first."""
    mine = [(network, target) for _, network, source, target in again.transfers() if source == me.place]
    deadline = Deadline(latency_again_s(again))
    found = []
    for network, target in mine:
        peer = ring.at(target)
        callee = Callee(peer.ticket, peer.host, peer.targets[network])
        own_greeting = me.greeting
        found.append(
            measure_latency(
                me.host,
                own_greeting.nonce,
                own_greeting.ticket,
                callee,
                timeouts.LINKS_PINGS_AGAIN_S,
                deadline,
            )
        )
    return tuple(found)


def latency_again_s(again: RepeatedRounds) -> float:
    """Return the longest that this takes, with a partner that never answers."""
    callers = Counter(source for _, _, source, _ in again.transfers())
    return timeouts.LINKS_PARTNER_S + timeouts.LINKS_PINGS_AGAIN_S * max(callers.values(), default=0)


def exchanges(ring: Ring, again: RepeatedRounds, me: RingMember) -> tuple[Exchanged, ...]:
    """Return this node's many small round trips with the partners that it is asked to call, all at the same time."""
    partners = [
        (number, Callee(peer.ticket, peer.host, peer.targets[network]))
        for number, network, source, target in again.transfers()
        if source == me.place
        for peer in (ring.at(target),)
    ]
    calls = Deadline(timeouts.LINKS_PARTNER_S)
    return exchange(partners[:_MOST_PARTNERS], me.greeting, timeouts.LINKS_LOSS_S, calls)


def exchanges_s() -> float:
    """Return the longest that these take."""
    return timeouts.LINKS_PARTNER_S + timeouts.LINKS_LOSS_S + timeouts.LINKS_LOSS_MORE_S


def _clocks(ring: Ring, me: RingMember, deadline: Deadline) -> Iterator[Probe]:
    """Return one clock probe per partner, on the first network where it is reached: a clock is the same on all."""
    partners = {
        peer.ticket: (network, peer)
        for _, network, peer in reversed(tuple(ring.rounds_of(me.place, sends=True)))
    }
    for network, peer in sorted(partners.values(), key=lambda found: found[1].ticket):
        callee = Callee(peer.ticket, peer.host, peer.targets[network])
        yield measure_clock(me.host, me.greeting, callee, deadline)


def transfers(ring: Ring, me: RingMember) -> tuple[tuple[Sent, ...], tuple[Received, ...]]:
    """Return this node's side of all its transfers, as sender and as receiver, after at most the plan's time.

    A round starts when both its ends have finished the round before.
    """
    window = Window(ring.plan.warm_up_s, ring.plan.window_s)
    began = time.monotonic()
    sent: list[Sent] = []

    def latest_start(number: int) -> Deadline:
        return Deadline(began + ring.plan.latest_start_s(number) - time.monotonic())

    def send_all() -> None:
        for number, network, peer in ring.rounds_of(me.place, sends=True):
            start = latest_start(number)
            sent.append(send(number, peer.targets[network], me.greeting, peer.ticket, window, start))

    sender = threading.Thread(target=send_all, name="send-rounds", daemon=True)
    sender.start()
    received = tuple(
        receive(number, me.channels, peer.ticket, window, latest_start(number))
        for number, _, peer in ring.rounds_of(me.place, sends=False)
    )
    sender.join(began + ring.plan.bandwidth_s + timeouts.LINKS_SENDER_S - time.monotonic())
    return tuple(sent), received


def transfers_again(
    ring: Ring, again: RepeatedRounds, me: RingMember
) -> tuple[tuple[Sent, ...], tuple[Received, ...]]:
    """Return this node's side of the transfers that are measured again, one at a time, in the order of all nodes."""
    window = Window(ring.plan.warm_up_s, ring.plan.window_s)
    began = time.monotonic()
    sent: list[Sent] = []
    received: list[Received] = []
    for number, network, source, target in again.transfers():
        latest_s = ring.plan.latest_start_s(number - again.first)
        start = Deadline(began + latest_s - time.monotonic())
        if me.place == source:
            peer = ring.at(target)
            sent.append(send(number, peer.targets[network], me.greeting, peer.ticket, window, start))
        elif me.place == target:
            received.append(receive(number, me.channels, ring.at(source).ticket, window, start))
    return tuple(sent), tuple(received)
