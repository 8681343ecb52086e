"""Bench: the nodes start workers that measure collectives, and node 0 watches them until they end or fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ncclcheck.advice.bench_network import BenchWish, bench_network, no_group
from ncclcheck.bench.culprits import DEADLINES
from ncclcheck.bench.nodes.bench_order import BenchOrder, order_faults
from ncclcheck.bench.nodes.bench_watch import BenchWatch, Watched, quick_deadlines
from ncclcheck.bench.nodes.ending import end_sets
from ncclcheck.bench.nodes.node_workers import WorkerNode, run_workers
from ncclcheck.bench.nodes.plan_memory import too_large_for, too_large_here
from ncclcheck.bench.nodes.planned import planned
from ncclcheck.bench.nodes.starting import Starting, order_of, starting_processes
from ncclcheck.bench.soak.soak_watch import watch_of
from ncclcheck.bench.task import NO_TORCH
from ncclcheck.bench.trials.lead_trials import SetRun, TrialLead, lead_trials
from ncclcheck.bench.trials.trial_set import MOST_SETS, TrialSet
from ncclcheck.model.bench import BenchResult, RankFailure
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.run.session import Session, broadcast_order
from ncclcheck.run.steps.base import Bounds, Participant, Step
from ncclcheck.timeouts import LEAST_BENCH_S, UNTIL_THE_END_S, VERDICT_S

# The coordinator


def lead_bench(session: Session) -> Fact[BenchResult]:
    """Return the result, whatever became of it; Missing where it could not be started.

    Each partial result is in the session's snapshot.
    """
    context, snapshot, deadline = session.context, session.snapshot, session.deadline
    network = cannot_measure(session) or bench_network(wish_of(session), snapshot)
    if isinstance(network, Missing):
        return network
    plan = planned(context.options.bench, network, snapshot, deadline.left())
    if isinstance(plan, Missing):
        return plan

    def keep(partial: BenchResult) -> None:
        session.state.snapshot = replace(snapshot, bench=partial)

    if context.options.bench.tries is None:
        return _measured(session, TrialSet(network, plan, keep=keep))
    run = SetRun(lambda trial: cannot_measure(session) or _measured(session, trial), context.say, keep)
    return lead_trials(TrialLead(context.options.bench, plan, network, deadline, run))


def _measured(session: Session, trial: TrialSet) -> Fact[BenchResult]:
    context, snapshot, network = session.context, session.snapshot, trial.network
    order = trial.order(order_of(starting_of(session, network), network, trial.plan, session.deadline.left()))
    too_large = too_large_for(order, network, snapshot)
    if too_large is None and context.options.head is None:  # else node 0 is another machine
        too_large = too_large_here(order, network, snapshot)
    if too_large is not None:
        return too_large
    is_quick = trial.is_trial or context.options.bench.under == "as-is"
    deadlines = quick_deadlines(order) if is_quick else DEADLINES
    seen = trial.watched(watched(session, order, network))
    watch = watch_of(context.options.bench.soak, seen, trial.keep, deadlines)
    if network.fault:
        return watch.result((_never_started(order, network),))
    trial.tell(context.say, f"measuring with {order.world_size} ranks over {network.transport}")
    broadcast_order(session, order)
    try:
        result = watch.until(session.deadline)
    except KeyboardInterrupt:
        trial.keep(watch.result((), "interrupted"))
        raise
    finally:
        stop_workers(session, [watch])
    return _without_torch(result) or watch.with_logs(result)


def wish_of(session: Session) -> BenchWish:
    """Return what the user asked for that decides on the network."""
    options = session.context.options
    return BenchWish(options.bench, options.flags.nproc_per_node)


def starting_of(session: Session, network: BenchNetwork) -> tuple[Starting, ...]:
    """Return which processes start the ranks: over ssh only agents are there, since they were started by this run."""
    return starting_processes(session.agents, session.state.further, network)


def watched(session: Session, order: BenchOrder, network: BenchNetwork) -> Watched:
    """Return the benchmark as node 0 watches it."""
    members = [process.member for process in starting_of(session, network)]
    hosts, context = {member.ticket: member.host for member in members}, session.context
    known = session.snapshot
    return Watched(session.store, hosts, order, network, context.say, context.show, known)


def _without_torch(result: BenchResult) -> Missing | None:
    """Return why nothing could be measured, where torch is broken: a fault of the installation, and no rank's."""
    broken = [failure.detail for failure in result.failures if failure.detail.startswith(NO_TORCH)]
    return Missing("error", broken[0]) if broken and not result.started else None


def cannot_measure(session: Session) -> Missing | None:
    """Return why nothing can be measured at all; None where it may be."""
    if session.state.held:
        return Missing("error", f"GPUs may still be held: {session.state.held}")
    left_s = session.deadline.left()
    late = Missing("timeout", f"{left_s:.0f} s were left of --timeout") if left_s < LEAST_BENCH_S else None
    return no_group(session.snapshot) or late


def stop_workers(session: Session, watches: Sequence[BenchWatch]) -> None:
    """Tell the nodes to end these workers, wait a moment, and remember what of them is left."""
    session.state.held = end_sets(watches, session.context.deadline.left() - VERDICT_S)


def _never_started(order: BenchOrder, network: BenchNetwork) -> RankFailure:
    host, fault = next(iter(network.fault.items()))
    rank = order.hosts.index(host)
    more = f"; likewise on {len(network.fault) - 1} more nodes" if len(network.fault) > 1 else ""
    return RankFailure(rank, host, "error", "choosing a network interface", fault + more, 0.0)


# A participant


def _follow(participant: Participant, order: BenchOrder) -> Missing | None:
    return run_workers(worker_node(participant), [order])


def worker_node(participant: Participant) -> WorkerNode:
    """Return this node as its workers have to know it."""
    context = participant.context
    place = (
        participant.store, participant.ticket, participant.master_addr, context.prefix, context.deadline
    )  # fmt: skip
    return WorkerNode(*place, context.launch.local_rank)


def _faults(order: BenchOrder, bounds: Bounds) -> Iterator[str]:
    yield from order_faults(order, bounds.ticket, bounds.most_ranks)


BENCH: Step[BenchOrder, None] = Step(
    "bench",
    UNTIL_THE_END_S,
    applies=lambda session: session.context.options.command in ("bench", "run", "soak"),
    lead=lambda session: replace(session.snapshot, bench=lead_bench(session)),
    order=BenchOrder,
    follow=_follow,
    doing="the benchmark",
    faults=_faults,
    most_given=lambda options: 1 if options.bench.tries is None else MOST_SETS,
    by_ranks=lambda order: order.count,
)
