"""Isolate: rounds of disjoint pairs of nodes, until it is clear which nodes or links are bad."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from msgspec.structs import replace

from ncclcheck.advice.bench_network import bench_network
from ncclcheck.bench.pairs.pair_node import PairPlace, run_pairs
from ncclcheck.bench.pairs.pair_orders import PairsOrder, pairs_faults
from ncclcheck.bench.pairs.pair_result import pair_isolation
from ncclcheck.bench.pairs.pair_rounds import Rounds, lead_rounds
from ncclcheck.bench.pairs.round_answers import Lead
from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.measure.isolation.next_round import Plan
from ncclcheck.model.benchmarks.isolation import IsolateRequest
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.session import Session, broadcast_order
from ncclcheck.run.steps.base import Bounds, Participant, Step
from ncclcheck.run.steps.bench import wish_of
from ncclcheck.timeouts import UNTIL_THE_END_S

# What a benchmark has to find before pairs are tested
NAMED_BY_BENCH = (
    "bench-hang", "bench-slow-rank", "bench-wrong-data", "bench-below-floor", "bench-below-baseline",
)  # fmt: skip

# The coordinator


def _lead(session: Session) -> Snapshot:
    """Lead the rounds; what is known after each of them is in the session's snapshot."""
    snapshot, request = session.snapshot, session.context.options.isolate or IsolateRequest()
    network = bench_network(wish_of(session), snapshot)
    if isinstance(network, Missing):
        return replace(snapshot, isolation=network)
    host_of = {agent.ticket: agent.host for agent in session.agents}
    plan = Plan(request.seed, request.effect, request.most_rounds, request.screen, request.rings)

    def keep(rounds: Rounds) -> None:
        session.state.snapshot = replace(snapshot, isolation=pair_isolation(host_of, plan, rounds))

    session.context.say(f"measuring pairs over {network.transport}")
    environments = {str(agent.ticket): network.environment_of.get(agent.host, {}) for agent in session.agents}
    # of several processes on a node each may see its own GPU only
    rails = min(network.ranks_of.values()) if network.backend == "nccl" and not session.state.further else 1
    broadcast_order(
        session, PairsOrder(network.backend, request.most_bytes, secrets.token_hex(8), environments, rails)
    )
    keep(lead_rounds(Lead(session.store, session.deadline, session.context.say), list(host_of), plan, keep))
    return session.state.snapshot


# A participant


def _follow(participant: Participant, order: PairsOrder) -> Missing | None:
    context = participant.context
    address = context.launch.master_addr or "127.0.0.1"
    place = PairPlace(participant.store, participant.ticket, address, context.prefix, context.deadline)
    return run_pairs(place, order)


def _faults(order: PairsOrder, bounds: Bounds) -> Iterator[str]:
    yield from pairs_faults(order, bounds.ticket)


def _applies(session: Session) -> bool:
    """Return whether pairs are wanted: after a benchmark only where a check of it found something."""
    options = session.context.options
    if options.isolate is None or len(session.agents) < 2:  # noqa: PLR2004
        return False
    of_bench = Selection(select=NAMED_BY_BENCH, ignore=options.selection.ignore)
    judged = replace(session.snapshot, bench_demands=options.demands)
    return options.command == "isolate" or any(run.findings for run in run_checks(judged, of_bench))


ISOLATE: Step[PairsOrder, None] = Step(
    "isolate",
    UNTIL_THE_END_S,
    applies=_applies,
    lead=_lead,
    order=PairsOrder,
    follow=_follow,
    faults=_faults,
)
