"""What a healthy node answers to the orders of node 0, at once and without calling anybody but node 0."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.probe.bandwidth import Received, Sent, Window, receive, send
from ncclcheck.exchange.probe.channels import Channels
from ncclcheck.exchange.probe.greeting import ProbeGreeting
from ncclcheck.exchange.probe.reachability import Peer
from ncclcheck.exchange.probe.ring import RingMeasurements
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Measured, Probe, ProbeKind
from ncclcheck.run.steps.base import Participant
from ncclcheck.run.steps.confirm import Confirmed, ConfirmOrder
from ncclcheck.run.steps.measure import MeasureOrder, Timed
from ncclcheck.run.steps.reach import Probed, ReachOrder, _peers_of
from ncclcheck.run.steps.recount import Recounted, RecountOrder
from scripts.scaling.network import FIRST

_CLOSE_TO_ALL = Measured(30, 0.03, "", 40.0)
_BYTES_S = 1e9


def answer_to(order: Any, participant: Participant, channels: Callable[[], Channels]) -> Any:
    """Return the answer of a healthy node."""
    if isinstance(order, ReachOrder):
        return _reached(order, participant)
    if isinstance(order, MeasureOrder):
        return _measured(order, participant, channels)
    if isinstance(order, ConfirmOrder):
        nccl = participant.node.facts.nccl
        asked = nccl if isinstance(nccl, Missing) else nccl.asked
        return Confirmed(
            SCHEMA, TOOL_VERSION, (asked,) * len(order.environments.get(str(participant.ticket), ()))
        )
    if isinstance(order, RecountOrder):
        counters = participant.node.facts.rdma_counters
        return Recounted(SCHEMA, TOOL_VERSION, counters if isinstance(counters, Missing) else counters.ports)
    raise NotImplementedError(f"no answer to {type(order).__name__}")


def _reached(order: ReachOrder, participant: Participant) -> Probed:
    probes = []
    for peer in _peers_of(order, participant.ticket):
        for target in peer.targets:
            place = participant.context.host, peer.host, target.interface, target.address, target.port
            kinds: tuple[tuple[ProbeKind, float, str], ...] = (("tcp", 80.0, "us"), ("mtu", 1500.0, "B"))
            if target.kind == "nccl":
                probes.append(Probe("tcp", *place, "ok", 80.0, "us", listener="nccl"))
            else:
                probes += [Probe(kind, *place, "ok", value, unit) for kind, value, unit in kinds]
    return Probed(SCHEMA, TOOL_VERSION, tuple(probes), (), ())


def _measured(order: MeasureOrder, participant: Participant, channels: Callable[[], Channels]) -> Timed:
    ring, ticket = order.ring, participant.ticket
    place = ring.place_of(ticket)
    if place is None or order.quantity == "loss":
        return Timed(SCHEMA, TOOL_VERSION)
    measured = (
        _timed(order, participant, place)
        if order.quantity == "latency"
        else _moved(order, participant, channels)
    )
    return Timed(SCHEMA, TOOL_VERSION, measured)


def _timed(order: MeasureOrder, participant: Participant, place: int) -> RingMeasurements:
    found: dict[tuple[str, str], Probe] = {}
    for _, network, peer in order.ring.rounds_of(place, sends=True) if order.again is None else ():
        target = peer.targets[network]
        where = participant.context.host, peer.host, target.interface, target.address, target.port
        found["latency", peer.host] = Probe("latency", *where, "ok", 50.0, "us", measured=_CLOSE_TO_ALL)
        found["clock", peer.host] = Probe("clock", *where, "ok", 3.0, "us", measured=_CLOSE_TO_ALL)
    return RingMeasurements(latencies=tuple(found.values()))


def _moved(
    order: MeasureOrder, participant: Participant, channels: Callable[[], Channels]
) -> RingMeasurements:
    ring, place = order.ring, order.ring.place_of(participant.ticket)
    assert place is not None  # noqa: S101
    window = Window(ring.plan.warm_up_s, ring.plan.window_s)
    greeting = ProbeGreeting(participant.nonce, participant.ticket)
    sent, received = [], []
    began = time.monotonic()
    for number, network, peer, sends in _transfers(order, place):
        before = order.again.first if order.again else 0
        start = Deadline(began + ring.plan.latest_start_s(number - before) - time.monotonic())
        is_first = any(target.address == str(FIRST) for target in peer.targets)
        if sends:
            end = (
                send(number, peer.targets[network], greeting, peer.ticket, window, start)
                if is_first
                else None
            )
            sent.append(end or Sent(number, "ok", "", "", 0.1, 0.2))
        else:
            got = receive(number, channels(), peer.ticket, window, start) if is_first else None
            received.append(got or Received(number, "ok", "", _BYTES_S, 0.1, 0.1, 0.2))
    return RingMeasurements(sent=tuple(sent), received=tuple(received))


def _transfers(order: MeasureOrder, place: int) -> list[tuple[int, int, Peer, bool]]:
    """Return the transfers of this node: number, network, partner, and whether it sends."""
    if order.again is None:
        directions = ((sends, order.ring.rounds_of(place, sends=sends)) for sends in (True, False))
        return sorted(
            ((*found, sends) for sends, rounds in directions for found in rounds), key=lambda found: found[0]
        )
    return [
        (number, network, order.ring.at(target if source == place else source), source == place)
        for number, network, source, target in order.again.transfers()
        if place in (source, target)
    ]
