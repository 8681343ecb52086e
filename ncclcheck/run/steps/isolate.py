"""Isolate: rounds of disjoint pairs of nodes, until it is clear which nodes or links are bad."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from ncclcheck.advice.bench_network import bench_network
from ncclcheck.bench.pairs.matrix_result import plan_for, with_rounds
from ncclcheck.bench.pairs.pair_node import PairPlace, run_pairs
from ncclcheck.bench.pairs.pair_orders import PairsOrder, pairs_faults, pairs_order
from ncclcheck.bench.pairs.pair_rounds import Rounds, lead_rounds
from ncclcheck.bench.pairs.round_answers import REFUSED, RoundContext
from ncclcheck.exchange.announcements import peers_faults
from ncclcheck.exchange.awake import standstill_s
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.dial import dial
from ncclcheck.exchange.probe.reachability import Peer, Target, probe_peers
from ncclcheck.facts.network.interfaces import addresses_of
from ncclcheck.model.benchmarks.isolation import IsolateRequest
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Probe, ProbeOutcome, Snapshot
from ncclcheck.report.bench_report import is_named_by_bench
from ncclcheck.run.session import Session, broadcast_order
from ncclcheck.run.steps.base import Participant, Step
from ncclcheck.run.steps.bench import wish_of
from ncclcheck.timeouts import KERNEL_CONNECTS_S, PAIRS_CALL_S, PAIRS_CALLED_S, UNTIL_THE_END_S

_BEST_FIRST: tuple[ProbeOutcome, ...] = (
    "ok", "refused", "wrong-peer", "stalled", "answer-lost", "filtered", "no-route", "self", "error"
)  # fmt: skip

# The coordinator


def _lead(session: Session) -> Snapshot:
    """Lead the rounds; what is known after each of them is in the session's snapshot."""
    snapshot, request = session.snapshot, session.context.options.isolate or IsolateRequest()
    result = "matrix" if request.matrix else "isolation"
    network = bench_network(wish_of(session), snapshot)
    if isinstance(network, Missing):
        return replace(snapshot, **{result: network})
    host_of = {agent.ticket: agent.host for agent in session.agents}
    plan = plan_for(request, host_of)

    def keep(rounds: Rounds) -> None:
        session.state.snapshot = with_rounds(snapshot, host_of, plan, rounds)

    session.context.say(f"measuring pairs over {network.transport}")
    one_process = not session.state.further
    broadcast_order(session, pairs_order(network, request.most_bytes, host_of, one_process=one_process))
    rounds = lead_rounds(_context(session), list(host_of), plan, keep)
    keep(rounds)
    lost = (*rounds.lost, *rounds.unheard, *rounds.cut)
    session.state.gone = frozenset(gone.ticket for gone in lost if gone.outcome == "hang")
    unread = [lost for lost in rounds.lost if lost.detail.startswith(REFUSED)]
    if unread:  # no node is bad because its message is malformed
        why = f"{host_of[unread[0].ticket]}: {unread[0].detail}; another program may write into the store of this run"
        return replace(snapshot, **{result: Missing("error", why)})
    return session.state.snapshot


def _context(session: Session) -> RoundContext:
    first = next((agent.ticket for agent in session.agents if agent.launch.node_rank == 0), None)
    targets = {
        agent.ticket: _answering(session.state.targets.get(agent.ticket, ())) for agent in session.agents
    }
    peers = [Peer(agent.ticket, agent.host, targets[agent.ticket]) for agent in session.agents]
    return RoundContext(
        session.store,
        session.deadline,
        session.context.say,
        standstill_s,
        {peer.ticket: peer for peer in peers if peer.targets},
        session.state.own_ticket,
        first,
    )


def _answering(targets: Sequence[Target]) -> tuple[Target, ...]:
    """Return the listeners of ncclcheck itself, which answer."""
    return tuple(replace(target, further=()) for target in targets if target.kind == "ours")


# A participant


def _follow(participant: Participant, order: PairsOrder) -> Missing | None:
    context = participant.context
    address, call = participant.master_addr, partial(_call, participant)
    place = PairPlace(participant.store, participant.ticket, address, context.prefix, context.deadline, call)
    lost = run_pairs(place, order)
    if (
        lost is not None and lost.missing == "timeout"
    ):  # node 0 is silent: it may ask others whether this node lives
        time.sleep(context.deadline.left(PAIRS_CALLED_S))
    return lost


def _call(participant: Participant, peers: Sequence[Peer]) -> dict[str, ProbeOutcome]:
    """Call nodes that node 0 does not hear; return the best that their listeners gave, by ticket."""
    if next(peers_faults(peers, participant.bounds), None) is not None:
        return {}
    host, addresses = participant.context.host, addresses_of(participant.node.facts.interfaces)
    probes = probe_peers(host, addresses, participant.nonce, participant.ticket, peers, PAIRS_CALL_S)
    ticket_of = {(target.address, target.port): peer.ticket for peer in peers for target in peer.targets}
    outcomes: dict[str, ProbeOutcome] = {}
    for probe in probes:
        ticket = str(ticket_of[probe.address, probe.port])
        if probe.kind == "tcp":
            outcome = _of_kernel(probe) if probe.outcome == "error" else probe.outcome
            outcomes[ticket] = min(outcomes.get(ticket, outcome), outcome, key=_BEST_FIRST.index)
    return outcomes


def _of_kernel(probe: Probe) -> ProbeOutcome:
    """Return what a call met that was not answered in time: whether the kernel there takes a connection at least."""
    outcome, _ = dial([probe.address], probe.port, Deadline(KERNEL_CONNECTS_S))
    return "wrong-peer" if outcome == "connected" else outcome


def _applies(session: Session) -> bool:
    options = session.context.options
    judged = replace(session.snapshot, bench_demands=options.demands)
    is_wanted = options.isolate is not None and len(session.agents) > 1
    return is_wanted and (options.command != "bench" or is_named_by_bench(judged, options.selection))


ISOLATE: Step[PairsOrder, None] = Step(
    "isolate",
    UNTIL_THE_END_S,
    applies=_applies,
    lead=_lead,
    order=PairsOrder,
    follow=_follow,
    doing="the tests of pairs",
    faults=lambda order, bounds: pairs_faults(order, bounds.ticket),
)
