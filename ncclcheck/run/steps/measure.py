"""Measure: how fast the networks are on which all nodes reach each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.advice.measured_networks import networks_of, reached_only
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.probe.both_ends import without_the_silent
from ncclcheck.exchange.probe.greeting import ProbeGreeting
from ncclcheck.exchange.probe.ring import (
    Quantity,
    RepeatedRounds,
    Ring,
    RingMeasurements,
    RingMember,
    exchanges_s,
    latency_again_s,
    measure,
)
from ncclcheck.exchange.probe.ring_faults import ring_faults
from ncclcheck.exchange.probe.ring_plan import plan_ring, ring_of_each
from ncclcheck.exchange.probe.ring_results import probes_of
from ncclcheck.measure.links.losses import MOST_PASSES as LOSS_PASSES
from ncclcheck.measure.links.losses import added_up, to_try, without_lossy
from ncclcheck.measure.links.repeats import (
    MOST_PASSES,
    MOST_ROUNDS,
    late_again,
    rounds_again,
    suspicious,
    with_the_best,
)
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Probe, Silent, Snapshot
from ncclcheck.run.session import Session, ask, with_silent
from ncclcheck.run.steps.base import Bounds, Participant, Step
from ncclcheck.timeouts import AFTER_MEASURE_S, ANSWER_OF_EACH_S, SHORT_ANSWER_S, UNTIL_THE_END_S

Found: TypeAlias = tuple[
    tuple[Probe, ...], tuple[Silent, ...]
]  # what was measured, and the nodes that did not answer


class MeasureOrder(Struct, frozen=True, forbid_unknown_fields=True, tag="measure"):
    """Measure the latency or the bandwidth to the partners in the ring; or only some transfers again."""

    quantity: Quantity
    ring: Ring
    again: RepeatedRounds | None = None


class Timed(Struct, frozen=True, forbid_unknown_fields=True):
    """What this node measured."""

    schema_version: str
    tool_version: str
    measured: RingMeasurements = RingMeasurements()


# The coordinator


def _lead(session: Session) -> Snapshot:
    """Measure all round trips, on networks that are idle, then all transfers, then again what looks wrong.

    Losses come first: they make a pair late and slow, and to measure that again takes long and tells nothing.
    A node that does not answer any more is silent from then on, and what was measured with it says nothing.
    """
    whole = session.snapshot
    snapshot = reached_only(whole, {agent.host for agent in session.state.reached})
    networks = networks_of(snapshot)
    ring = plan_ring(session.state.reached, session.state.targets, networks, _probes(snapshot))
    if ring is None or _is_late(session, ring.plan.latency_s + ring.plan.bandwidth_s):
        return whole
    reach = len(_probes(snapshot))
    snapshot = _added(snapshot, _ask(session, MeasureOrder("latency", ring), ring.plan.latency_s))
    if not snapshot.silent:
        snapshot = _added(snapshot, _ask(session, MeasureOrder("bandwidth", ring), ring.plan.bandwidth_s))
    snapshot = _late_again(session, ring, _look_for_losses(session, ring, snapshot))
    snapshot = _slow_again(session, ring, snapshot)
    return replace(
        whole,
        probes=(*_probes(whole), *_probes(snapshot)[reach:]),
        silent=(*whole.silent, *snapshot.silent),
    )


def _look_for_losses(session: Session, ring: Ring, snapshot: Snapshot) -> Snapshot:
    """Try the pairs that had packets sent again; up to three times, until it is clear whether packets get lost."""
    for _ in range(LOSS_PASSES):
        pairs = () if snapshot.silent else to_try(_probes(snapshot), ring.networks()[0])
        again = RepeatedRounds(0, rounds_again(pairs, len(pairs)))
        if not pairs or _is_late(session, exchanges_s()):
            break
        probes, silent = _ask(session, MeasureOrder("loss", ring, again), exchanges_s())
        snapshot = with_silent(replace(snapshot, probes=added_up(_probes(snapshot), probes)), silent)
    return snapshot


def _is_late(session: Session, seconds: float) -> bool:
    """Return whether the steps after this one would have too little time after so many seconds."""
    return session.deadline.left() < seconds + AFTER_MEASURE_S


def _late_again(session: Session, ring: Ring, snapshot: Snapshot) -> Snapshot:
    """Measure again the round trips that looked late; the best value of up to three measurements counts."""
    for _ in range(MOST_PASSES):
        late = () if snapshot.silent else late_again(_probes(snapshot), ring.networks())
        late = without_lossy(late, _probes(snapshot), ring.networks()[0])
        again = RepeatedRounds(0, rounds_again(late, len(late)))
        seconds = latency_again_s(again)
        if not late or _is_late(session, seconds):
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
        slow = without_lossy(slow, _probes(snapshot), ring.networks()[0])
        again = RepeatedRounds(first, rounds_again(slow, left))
        seconds = ring.plan.latest_start_s(len(again.rounds))
        if not again.rounds or _is_late(session, seconds):
            break
        snapshot = _improved(snapshot, _ask(session, MeasureOrder("bandwidth", ring, again), seconds))
        first, left = first + len(again.rounds), left - len(again.rounds)
    return snapshot


def _ask(session: Session, order: MeasureOrder, seconds: float) -> Found:
    """Return what the nodes measured, and the nodes that did not answer."""
    agents, ring = session.state.reached, order.ring
    answer_s = SHORT_ANSWER_S + ANSWER_OF_EACH_S * len(agents)
    timed = replace(session, deadline=session.deadline.within(seconds + answer_s))
    parts = ring_of_each(ring, order.again)
    orders = {ticket: MeasureOrder(order.quantity, *part) for ticket, part in parts.items()}
    answers = ask(timed, MEASURE, orders, agents)
    silent = answers.silent(agents, "probes")
    measured = {ticket: answer.measured for ticket, answer in answers.accepted.items()}
    probes = probes_of(order.quantity, ring, order.again, measured)
    return without_the_silent(probes, frozenset(node.host for node in silent)), silent


def _probes(snapshot: Snapshot) -> tuple[Probe, ...]:
    return () if isinstance(snapshot.probes, Missing) else snapshot.probes


def _added(snapshot: Snapshot, found: Found) -> Snapshot:
    probes, silent = found
    return with_silent(replace(snapshot, probes=(*_probes(snapshot), *probes)), silent)


def _improved(snapshot: Snapshot, found: Found) -> Snapshot:
    probes, silent = found
    return with_silent(replace(snapshot, probes=with_the_best(_probes(snapshot), probes)), silent)


# A participant


def _follow(participant: Participant, order: MeasureOrder) -> Timed:
    listeners, ring = participant.node.listeners, order.ring
    place = ring.place_of(participant.ticket)
    if place is None:
        return Timed(SCHEMA, TOOL_VERSION)
    greeting = ProbeGreeting(participant.nonce, participant.ticket)
    me = RingMember(participant.context.host, greeting, place, listeners.channels)
    measured = measure(order.quantity, ring, order.again, me)
    return Timed(SCHEMA, TOOL_VERSION, measured)


def _faults(order: MeasureOrder, bounds: Bounds) -> Iterator[str]:
    if bounds.most_ranks:  # a further rank probes no peers
        yield from ring_faults(order.ring, order.again, bounds)


MEASURE = Step(
    "measure",
    UNTIL_THE_END_S,  # what is measured decides
    applies=lambda session: session.measures_network,
    lead=_lead,
    order=MeasureOrder,
    answer=Timed,
    follow=_follow,
    doing="the measurements of the network",
    faults=_faults,
    # the further measurements are those of what looked slow, late or lossy
    most_given=lambda _: 2 * (1 + MOST_PASSES) + LOSS_PASSES,
)
