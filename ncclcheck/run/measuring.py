"""The step after reach: how fast the networks are that all nodes reach each other on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.advice.networks import find_networks
from ncclcheck.advice.reach import read_reach
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.gather import gather_answers
from ncclcheck.exchange.messages import FACTS_LIMIT_BYTES, SCHEMA, Measure, Timed, read_message
from ncclcheck.exchange.probe.bandwidth import Received, Sent
from ncclcheck.exchange.probe.reachability import Listeners, Peer, ProbeGreeting, Target
from ncclcheck.exchange.probe.ring import (
    RepeatedRounds,
    Ring,
    RingMember,
    latencies,
    latencies_again,
    latency_again_s,
    transfers,
    transfers_again,
)
from ncclcheck.exchange.store.base import Store
from ncclcheck.measure.links.again import (
    MOST_PASSES,
    MOST_ROUNDS,
    late_again,
    rounds_again,
    suspicious,
    with_the_best,
)
from ncclcheck.measure.links.rounds import STREAMS, plan_rounds
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Measured, Probe, Silent, Snapshot
from ncclcheck.nccl.prediction import chosen_interface
from ncclcheck.run.context import TOOL_VERSION
from ncclcheck.run.lead import Member, Orders, without_the_silent

_ANSWERS_S = 1.0  # for the answers to arrive, beyond the longest that the measuring itself takes
_SPARE_S = 5.0  # left for the steps after this one; else nothing is measured
_BYTES_TO_GBIT = 8 / 1e9

Places = Mapping[str, tuple[str, str]]
Found: TypeAlias = tuple[tuple[Probe, ...], tuple[Silent, ...]]  # what was measured, and who did not answer
Ask: TypeAlias = Callable[[Measure, float], Found]  # the order, and the longest that it takes


def measure(
    orders: Orders,
    store: Store,
    agents: tuple[Member, ...],
    targets: dict[int, tuple[Target, ...]],
    snapshot: Snapshot,
    deadline: Deadline,
) -> Snapshot:
    """The snapshot with the latency and the bandwidth of every network that all nodes reach each other on.

    First all round trips, on networks that are idle, then all transfers, then again those that look slow. Where a node
    does not answer any more it is silent, and what was measured with it says nothing.
    """
    ring = ring_of(snapshot, agents, targets)
    if ring is None or deadline.left() < ring.plan.latency_s + ring.plan.bandwidth_s + _SPARE_S:
        return snapshot
    ask: Ask = partial(_ask, orders, store, agents, deadline)
    snapshot = _added(snapshot, ask(Measure("latency", ring), ring.plan.latency_s))
    snapshot = _late_again(ask, ring, snapshot, deadline)
    if not snapshot.silent:
        snapshot = _added(snapshot, ask(Measure("bandwidth", ring), ring.plan.bandwidth_s))
    return _slow_again(ask, ring, snapshot, deadline)


def _late_again(ask: Ask, ring: Ring, snapshot: Snapshot, deadline: Deadline) -> Snapshot:
    """The snapshot in which the round trips that looked late have the best value of up to three measurements."""
    for _ in range(MOST_PASSES):
        late = () if snapshot.silent else late_again(_probes(snapshot), ring.networks())
        again = RepeatedRounds(0, rounds_again(late, len(late)))
        seconds = latency_again_s(again)
        if not late or deadline.left() < seconds + ring.plan.bandwidth_s + _SPARE_S:
            break
        snapshot = _improved(snapshot, ask(Measure("latency", ring, again), seconds))
    return snapshot


def _slow_again(ask: Ask, ring: Ring, snapshot: Snapshot, deadline: Deadline) -> Snapshot:
    """The snapshot in which the transfers that looked slow have the best value of up to three.

    All nodes wait for each other in each pass; all passes together take two seconds, and of healthy nodes none.
    """
    first, left = ring.plan.rounds, MOST_ROUNDS
    for _ in range(MOST_PASSES):
        slow = () if snapshot.silent else suspicious(_probes(snapshot), ring.networks())
        again = RepeatedRounds(first, rounds_again(slow, left))
        seconds = ring.plan.latest_start_s(len(again.rounds))
        if not again.rounds or deadline.left() < seconds + _SPARE_S:
            break
        snapshot = _improved(snapshot, ask(Measure("bandwidth", ring, again), seconds))
        first, left = first + len(again.rounds), left - len(again.rounds)
    return snapshot


def _probes(snapshot: Snapshot) -> tuple[Probe, ...]:
    return () if isinstance(snapshot.probes, Missing) else snapshot.probes


def _added(snapshot: Snapshot, found: Found) -> Snapshot:
    probes, silent = found
    return replace(snapshot, probes=(*_probes(snapshot), *probes), silent=(*snapshot.silent, *silent))


def _improved(snapshot: Snapshot, found: Found) -> Snapshot:
    probes, silent = found
    better = with_the_best(_probes(snapshot), probes)
    return replace(snapshot, probes=better, silent=(*snapshot.silent, *silent))


def ring_of(
    snapshot: Snapshot, agents: tuple[Member, ...], targets: Mapping[int, tuple[Target, ...]]
) -> Ring | None:
    """The nodes by rank, with their listeners in every network that is to be measured; None where there is none."""
    listening = {
        one.host: {
            (target.interface, target.address): target
            for target in targets.get(one.ticket, ())
            if target.kind == "ours"
        }
        for one in agents
    }
    networks = [
        places
        for places in networks_of(snapshot)
        if all(places.get(host) in found for host, found in listening.items())
    ]
    if not networks:
        return None
    plan = plan_rounds(len(agents), len(networks))
    peers = tuple(
        Peer(
            one.ticket,
            one.host,
            tuple(listening[one.host][places[one.host]] for places in networks[: plan.networks]),
        )
        for one in agents
    )
    return Ring(peers, plan)


def networks_of(snapshot: Snapshot) -> Iterator[Places]:
    """The networks without a failed connection, NCCL's choice first, without those that add no place to the others."""
    reach = read_reach(snapshot)
    if isinstance(reach, Missing):
        return
    found = [one.places for one in find_networks(snapshot, reach) if one.failure is None]
    chosen = chosen_places(snapshot)
    if len(chosen) == len(snapshot.nodes) and reach.failure(chosen) is None and reach.stall(chosen) is None:
        found.insert(0, chosen)
    known: set[tuple[str, tuple[str, str]]] = set()
    for places in found:
        if not known.issuperset(places.items()):
            known.update(places.items())
            yield places


def chosen_places(snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """Where NCCL would listen on each host of which that is known."""
    choices = ((node.host, chosen_interface(node.facts)) for node in snapshot.nodes)
    return {host: choice for host, choice in choices if not isinstance(choice, Missing)}


def _ask(
    orders: Orders,
    store: Store,
    agents: tuple[Member, ...],
    until: Deadline,
    order: Measure,
    seconds: float,
) -> Found:
    """What the nodes measured, and those of which no answer came."""
    started = time.monotonic()
    key = orders.give(order)
    deadline = until.within(seconds + _ANSWERS_S)
    found = gather_answers(store, [one.ticket for one in agents], key, deadline)
    answers: dict[int, Timed] = {}
    for ticket, data in found.items():
        try:
            answers[ticket] = read_message(data, Timed, FACTS_LIMIT_BYTES)
        except DecodeError:
            continue  # it counts as silent: what it says cannot be used
    waited_s = round(time.monotonic() - started, 1)
    late = tuple(
        Silent(one.host, one.launch.node_rank, "probes", waited_s)
        for one in agents
        if one.ticket not in answers
    )
    if order.quantity == "latency":
        probes = round_trips(order.ring, answers)
    else:
        probes = bandwidths(order.ring, answers, order.again or order.ring)
    return without_the_silent(probes, frozenset(one.host for one in late)), late


def round_trips(ring: Ring, answers: Mapping[int, Timed]) -> tuple[Probe, ...]:
    """What the nodes say of their partners; nothing else that they may say is taken."""
    asked = {(peer.host, target.address) for peer in ring.peers for target in peer.targets}
    return tuple(
        replace(probe, kind="clock" if probe.kind == "clock" else "latency", from_host=peer.host)
        for peer in ring.peers
        if peer.ticket in answers
        for probe in answers[peer.ticket].latencies
        if (probe.to_host, probe.address) in asked
    )


class _Transfer(Struct, frozen=True):
    source: Peer
    peer: Peer
    target: Target
    sent: Sent | None
    received: Received | None


def bandwidths(ring: Ring, answers: Mapping[int, Timed], which: Ring | RepeatedRounds) -> tuple[Probe, ...]:
    """One probe per transfer, of what both its ends say: the receiver counted, the sender knows the way it took."""
    sent = {(ticket, one.number): one for ticket, answer in answers.items() for one in answer.sent}
    received = {(ticket, one.number): one for ticket, answer in answers.items() for one in answer.received}
    probes = []
    for number, network, place, partner in which.transfers():
        source, peer = ring.peers[place], ring.peers[partner]
        ends = sent.get((source.ticket, number)), received.get((peer.ticket, number))
        probes.append(_probe(_Transfer(source, peer, peer.targets[network], *ends)))
    return tuple(probes)


def _probe(one: _Transfer) -> Probe:
    target = one.target
    place = target.interface, target.address, target.port
    failed = Probe("bandwidth", one.source.host, one.peer.host, *place, "error")
    for end, host in ((one.sent, one.source.host), (one.received, one.peer.host)):
        if end is None:
            return replace(failed, detail=f"{host} did not tell how it went")
        if end.outcome != "ok":
            return replace(failed, outcome=end.outcome, detail=f"{host}: {end.detail}")
    sent, received = one.sent, one.received
    if sent is None or received is None:
        return failed
    return replace(
        failed,
        outcome="ok",
        value=round(received.bytes_per_s * _BYTES_TO_GBIT, 4),
        unit="Gbit/s",
        detail=f"{STREAMS} streams, counted by the receiver for {received.seconds:.3f} s",
        measured=Measured(
            STREAMS,
            received.seconds,
            sent.source_address,
            cpu_share=together(sent.cpu_share, received.cpu_share),
            core_share=busier(sent.core_share, received.core_share),
        ),
    )


def together(sender: Fact[float], receiver: Fact[float]) -> Fact[float]:
    """The part of the time in which one end or the other was busy: while a CPU-bound one is, the other waits for it."""
    if isinstance(sender, Missing) or isinstance(receiver, Missing):
        return sender if isinstance(sender, Missing) else receiver
    return round(min(sender + receiver, 1.0), 2)


def busier(sender: Fact[float], receiver: Fact[float]) -> Fact[float]:
    """The larger of the two, or the one that is known."""
    if isinstance(sender, Missing) or isinstance(receiver, Missing):
        return receiver if isinstance(sender, Missing) else sender
    return max(sender, receiver)


def measure_here(order: Measure, host: str, own: ProbeGreeting, listeners: Listeners) -> bytes:
    """This node's part, as the answer to node 0."""
    listeners.quiet()
    ring = order.ring
    place = ring.place_of(own.ticket)
    if place is None:
        return encode(Timed(SCHEMA, TOOL_VERSION))
    me = RingMember(host, own, place, listeners.channels)
    again = order.again
    if order.quantity == "latency":
        times = latencies(ring, me) if again is None else latencies_again(ring, again, me)
        return encode(Timed(SCHEMA, TOOL_VERSION, latencies=times))
    sent, received = transfers(ring, me) if again is None else transfers_again(ring, again, me)
    return encode(Timed(SCHEMA, TOOL_VERSION, sent=sent, received=received))
