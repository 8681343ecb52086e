"""Measure: how fast the networks are on which all nodes reach each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.advice.measured_networks import networks_of
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.probe.bandwidth import Received, Sent
from ncclcheck.exchange.probe.both_ends import without_the_silent
from ncclcheck.exchange.probe.reachability import Peer, ProbeGreeting, Target
from ncclcheck.exchange.probe.ring import (
    Quantity,
    RepeatedRounds,
    Ring,
    RingMember,
    latencies,
    latencies_again,
    latency_again_s,
    transfers,
    transfers_again,
)
from ncclcheck.exchange.probe.ring_faults import ring_faults
from ncclcheck.exchange.probe.ring_results import Ends, bandwidths, round_trips
from ncclcheck.exchange.roster import Member
from ncclcheck.measure.links.again import (
    MOST_PASSES,
    MOST_ROUNDS,
    late_again,
    rounds_again,
    suspicious,
    with_the_best,
)
from ncclcheck.measure.links.rounds import plan_rounds
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Probe, Silent, Snapshot
from ncclcheck.run.session import Session, ask, with_silent
from ncclcheck.run.steps.base import Bounds, Participant, Step
from ncclcheck.timeouts import AFTER_MEASURE_S, SHORT_ANSWER_S, UNTIL_THE_END_S

Found: TypeAlias = tuple[tuple[Probe, ...], tuple[Silent, ...]]  # what was measured, and who did not answer


class MeasureOrder(Struct, frozen=True, forbid_unknown_fields=True, tag="measure"):
    """Measure the latency or the bandwidth to the partners in the ring; or only some transfers again."""

    quantity: Quantity
    ring: Ring
    again: RepeatedRounds | None = None


class Timed(Struct, frozen=True, forbid_unknown_fields=True):
    """The round trips to the partners, or this node's side of its transfers."""

    schema_version: str
    tool_version: str
    latencies: tuple[Probe, ...] = ()
    sent: tuple[Sent, ...] = ()
    received: tuple[Received, ...] = ()


# The coordinator


def _lead(session: Session) -> Snapshot:
    """Measure all round trips, on networks that are idle, then all transfers, then again those that look slow.

    A node that does not answer any more is silent from then on, and what was measured with it says nothing.
    """
    snapshot = session.snapshot
    ring = ring_of(snapshot, session.state.reached, session.state.targets)
    if ring is None or _is_late(session, ring.plan.latency_s + ring.plan.bandwidth_s):
        return snapshot
    snapshot = _added(snapshot, _ask(session, MeasureOrder("latency", ring), ring.plan.latency_s))
    snapshot = _late_again(session, ring, snapshot)
    if not snapshot.silent:
        snapshot = _added(snapshot, _ask(session, MeasureOrder("bandwidth", ring), ring.plan.bandwidth_s))
    return _slow_again(session, ring, snapshot)


def _is_late(session: Session, seconds: float) -> bool:
    """Return whether the steps after this one would have too little time after so many seconds."""
    return session.deadline.left() < seconds + AFTER_MEASURE_S


def _late_again(session: Session, ring: Ring, snapshot: Snapshot) -> Snapshot:
    """Measure again the round trips that looked late; the best value of up to three measurements counts."""
    for _ in range(MOST_PASSES):
        late = () if snapshot.silent else late_again(_probes(snapshot), ring.networks())
        again = RepeatedRounds(0, rounds_again(late, len(late)))
        seconds = latency_again_s(again)
        if not late or _is_late(session, seconds + ring.plan.bandwidth_s):
            break
        snapshot = _improved(snapshot, _ask(session, MeasureOrder("latency", ring, again), seconds))
    return snapshot


def _slow_again(session: Session, ring: Ring, snapshot: Snapshot) -> Snapshot:
    """Measure again the transfers that looked slow; the best value of up to three measurements counts.

    All nodes wait for each other in each pass; all passes together take two seconds, and of healthy nodes none.
    """
    first, left = ring.plan.rounds, MOST_ROUNDS
    for _ in range(MOST_PASSES):
        slow = () if snapshot.silent else suspicious(_probes(snapshot), ring.networks())
        again = RepeatedRounds(first, rounds_again(slow, left))
        seconds = ring.plan.latest_start_s(len(again.rounds))
        if not again.rounds or _is_late(session, seconds):
            break
        snapshot = _improved(snapshot, _ask(session, MeasureOrder("bandwidth", ring, again), seconds))
        first, left = first + len(again.rounds), left - len(again.rounds)
    return snapshot


def _ask(session: Session, order: MeasureOrder, seconds: float) -> Found:
    """Return what the nodes measured, and those of which no answer came."""
    agents, ring = session.state.reached, order.ring
    timed = replace(session, deadline=session.deadline.within(seconds + SHORT_ANSWER_S))
    answers = ask(timed, MEASURE, order, agents)
    silent = answers.silent(agents, "probes")
    told = answers.accepted.items()
    if order.quantity == "latency":
        probes = round_trips(ring, {ticket: answer.latencies for ticket, answer in told})
    else:
        sent = {(ticket, end.number): end for ticket, answer in told for end in answer.sent}
        received = {(ticket, end.number): end for ticket, answer in told for end in answer.received}
        probes = bandwidths(ring, Ends(sent, received), order.again or ring)
    return without_the_silent(probes, frozenset(node.host for node in silent)), silent


def _probes(snapshot: Snapshot) -> tuple[Probe, ...]:
    return () if isinstance(snapshot.probes, Missing) else snapshot.probes


def _added(snapshot: Snapshot, found: Found) -> Snapshot:
    probes, silent = found
    return with_silent(replace(snapshot, probes=(*_probes(snapshot), *probes)), silent)


def _improved(snapshot: Snapshot, found: Found) -> Snapshot:
    probes, silent = found
    return with_silent(replace(snapshot, probes=with_the_best(_probes(snapshot), probes)), silent)


def ring_of(
    snapshot: Snapshot, agents: tuple[Member, ...], targets: Mapping[int, tuple[Target, ...]]
) -> Ring | None:
    """Return the nodes by rank, with their listeners in every network to be measured; None where there is none."""
    listening = {
        agent.host: {
            (target.interface, target.address): target
            for target in targets.get(agent.ticket, ())
            if target.kind == "ours"
        }
        for agent in agents
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
            agent.ticket,
            agent.host,
            tuple(listening[agent.host][places[agent.host]] for places in networks[: plan.networks]),
        )
        for agent in agents
    )
    return Ring(peers, plan)


# A participant


def _follow(participant: Participant, order: MeasureOrder) -> Timed:
    listeners, ring, again = participant.node.listeners, order.ring, order.again
    listeners.quiet()
    place = ring.place_of(participant.ticket)
    if place is None:
        return Timed(SCHEMA, TOOL_VERSION)
    greeting = ProbeGreeting(participant.nonce, participant.ticket)
    me = RingMember(participant.context.host, greeting, place, listeners.channels)
    if order.quantity == "latency":
        times = latencies(ring, me) if again is None else latencies_again(ring, again, me)
        return Timed(SCHEMA, TOOL_VERSION, latencies=times)
    sent, received = transfers(ring, me) if again is None else transfers_again(ring, again, me)
    return Timed(SCHEMA, TOOL_VERSION, sent=sent, received=received)


def _faults(order: MeasureOrder, bounds: Bounds) -> Iterator[str]:
    if bounds.most_ranks:  # a further rank calls nobody
        yield from ring_faults(order.ring, order.again, bounds)


MEASURE = Step(
    "measure",
    UNTIL_THE_END_S,  # what is measured decides
    applies=lambda session: session.probes_network,
    lead=_lead,
    order=MeasureOrder,
    answer=Timed,
    follow=_follow,
    faults=_faults,
    most_given=2 * (1 + MOST_PASSES),  # the further measurements are those of what looked slow or late
)
