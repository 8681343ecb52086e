"""What a measurement round the ring gave, put together from what the nodes say of it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.probe.bandwidth import Received, Sent
from ncclcheck.exchange.probe.reachability import Peer, Target
from ncclcheck.exchange.probe.ring import RepeatedRounds, Ring
from ncclcheck.measure.links.rounds import STREAMS
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Measured, Probe

_BYTES_TO_GBIT = 8 / 1e9


def round_trips(ring: Ring, latencies: Mapping[int, tuple[Probe, ...]]) -> tuple[Probe, ...]:
    """Return what the nodes say of their partners; nothing else that they say is taken."""
    asked = {(peer.host, target.address) for peer in ring.peers for target in peer.targets}
    return tuple(
        replace(probe, kind="clock" if probe.kind == "clock" else "latency", from_host=peer.host)
        for peer in ring.peers
        for probe in latencies.get(peer.ticket, ())
        if (probe.to_host, probe.address) in asked
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
        ),
    )


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
