"""What a measurement round the ring gave, put together from what the nodes say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.probe.bandwidth import Received, Sent
from ncclcheck.exchange.probe.loss import Exchanged
from ncclcheck.exchange.probe.reachability import Peer, Target
from ncclcheck.exchange.probe.ring import Quantity, RepeatedRounds, Ring, RingMeasurements
from ncclcheck.exchange.probe.tcp_info import Segments
from ncclcheck.measure.links.rounds import STREAMS
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Measured, Probe

_BYTES_TO_GBIT = 8 / 1e9


def probes_of(
    quantity: Quantity, ring: Ring, again: RepeatedRounds | None, answers: Mapping[int, RingMeasurements]
) -> tuple[Probe, ...]:
    """Return the probes of what the nodes say, by their tickets."""
    if quantity == "latency":
        return round_trips(ring, {ticket: answer.latencies for ticket, answer in answers.items()})
    if quantity == "loss":
        tried = {ticket: answer.exchanged for ticket, answer in answers.items()}
        return () if again is None else losses(ring, again, tried)
    sent = {(ticket, end.number): end for ticket, answer in answers.items() for end in answer.sent}
    received = {(ticket, end.number): end for ticket, answer in answers.items() for end in answer.received}
    return bandwidths(ring, Ends(sent, received), again or ring)


def round_trips(ring: Ring, latencies: Mapping[int, tuple[Probe, ...]]) -> tuple[Probe, ...]:
    """Return what the nodes say of their partners; nothing else that they say is taken."""
    asked = {(peer.host, target.address) for peer in ring.peers for target in peer.targets}
    return tuple(
        replace(probe, kind="clock" if probe.kind == "clock" else "latency", from_host=peer.host)
        for peer in ring.peers
        for probe in latencies.get(peer.ticket, ())
        if (probe.to_host, probe.address) in asked
    )


def losses(
    ring: Ring, again: RepeatedRounds, exchanged_by_ticket: Mapping[int, Sequence[Exchanged]]
) -> tuple[Probe, ...]:
    """Return a probe per direction of each pair that was tried: the share of the small packets that got lost."""
    by_pair = {
        (ticket, tried.number): tried for ticket, answer in exchanged_by_ticket.items() for tried in answer
    }
    return tuple(
        probe
        for number, network, place, partner in again.transfers()
        if (tried := by_pair.get((ring.peers[place].ticket, number))) is not None
        for probe in _both_directions(ring, network, (place, partner), tried)
    )


def _both_directions(ring: Ring, network: int, pair: tuple[int, int], tried: Exchanged) -> Iterator[Probe]:
    caller, called = pair
    for source, to, counted in ((caller, called, tried.out), (called, caller, tried.back)):
        own_target, target = ring.peers[source].targets[network], ring.peers[to].targets[network]
        failed = Probe(
            "loss",
            ring.peers[source].host,
            ring.peers[to].host,
            target.interface,
            target.address,
            target.port,
            tried.outcome,
            detail=tried.detail,
        )
        if isinstance(counted, Missing) or not counted.sent:
            yield failed if tried.outcome != "ok" else replace(failed, outcome="error", detail=str(counted))
            continue
        yield replace(
            failed,
            outcome="ok",
            value=round(100 * min(counted.lost / counted.sent, 1.0), 3),
            unit="%",
            measured=Measured(
                tried.trips,
                tried.seconds,
                own_target.address,
                segments=counted.sent,
                resent=min(counted.lost, counted.sent),
            ),
        )


class Ends(Struct, frozen=True):
    """What both ends say of the transfers: by ticket and number."""

    sent: Mapping[tuple[int, int], Sent]
    received: Mapping[tuple[int, int], Received]


class _Transfer(Struct, frozen=True):
    source: Peer
    peer: Peer
    target: Target
    sent: Sent | None
    received: Received | None


def bandwidths(ring: Ring, ends: Ends, which: Ring | RepeatedRounds) -> tuple[Probe, ...]:
    """Return a probe per transfer, of what both its ends say: the receiver counted, the sender knows the route."""
    probes = []
    for number, network, place, partner in which.transfers():
        source, peer = ring.peers[place], ring.peers[partner]
        sent, received = ends.sent.get((source.ticket, number)), ends.received.get((peer.ticket, number))
        probes.append(_probe(_Transfer(source, peer, peer.targets[network], sent, received)))
    return tuple(probes)


def _probe(transfer: _Transfer) -> Probe:
    target = transfer.target
    place = target.interface, target.address, target.port
    failed = Probe("bandwidth", transfer.source.host, transfer.peer.host, *place, "error")
    for end, host in ((transfer.sent, transfer.source.host), (transfer.received, transfer.peer.host)):
        if end is None:
            return replace(failed, detail=f"{host} did not tell how it went")
        if end.outcome != "ok":
            return replace(failed, outcome=end.outcome, detail=f"{host}: {end.detail}")
    sent, received = transfer.sent, transfer.received
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
            segments=_count(sent.segments, "sent"),
            resent=_count(sent.segments, "resent"),
        ),
    )


def _count(counted: Fact[Segments], what: Literal["sent", "resent", "lost"]) -> Fact[int]:
    return counted if isinstance(counted, Missing) else getattr(counted, what)


def together(sender: Fact[float], receiver: Fact[float]) -> Fact[float]:
    """Return the part of the time in which either end was busy: while a CPU-bound end is, its partner waits for it."""
    if isinstance(sender, Missing) or isinstance(receiver, Missing):
        return sender if isinstance(sender, Missing) else receiver
    return round(min(sender + receiver, 1.0), 2)


def busier(sender: Fact[float], receiver: Fact[float]) -> Fact[float]:
    """Return the larger of the two, or the one that is known."""
    if isinstance(sender, Missing) or isinstance(receiver, Missing):
        return receiver if isinstance(sender, Missing) else sender
    return max(sender, receiver)
