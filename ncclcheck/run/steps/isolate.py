"""Isolate: rounds of disjoint pairs of nodes, until it is clear which nodes or links are bad."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.advice.bench_network import bench_network
from ncclcheck.bench.pairs.matrix_result import plan_for, with_rounds
from ncclcheck.bench.pairs.pair_node import PairPlace, run_pairs
from ncclcheck.bench.pairs.pair_orders import PairsOrder, pairs_faults, pairs_order
from ncclcheck.bench.pairs.pair_rounds import Rounds, lead_rounds
from ncclcheck.bench.pairs.round_answers import REFUSED, RoundContext
from ncclcheck.bench.pairs.standstill import Standstill
from ncclcheck.model.benchmarks.isolation import IsolateRequest
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.bench_report import is_named_by_bench
from ncclcheck.run.session import Session, broadcast_order
from ncclcheck.run.steps.base import Participant, Step
from ncclcheck.run.steps.bench import wish_of
from ncclcheck.timeouts import UNTIL_THE_END_S

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
    with Standstill() as standstill:
        lead = RoundContext(session.store, session.deadline, session.context.say, standstill.total_s)
        rounds = lead_rounds(lead, list(host_of), plan, keep)
    keep(rounds)
    hung = [lost for lost in rounds.lost if lost.outcome == "hang"]
    session.state.gone = frozenset(gone.ticket for gone in (*hung, *rounds.unheard))
    unread = [lost for lost in rounds.lost if lost.detail.startswith(REFUSED)]
    if unread:  # no node is bad because its message is malformed
        why = f"{host_of[unread[0].ticket]}: {unread[0].detail}; another program may write into the store of this run"
        return replace(snapshot, **{result: Missing("error", why)})
    return session.state.snapshot


# A participant


def _follow(participant: Participant, order: PairsOrder) -> Missing | None:
    context = participant.context
    place = PairPlace(
        participant.store, participant.ticket, participant.master_addr, context.prefix, context.deadline
    )
    return run_pairs(place, order)


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
