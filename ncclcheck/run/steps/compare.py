"""Compare: the same collective as it is and as advised, in alternating rounds of two sets of workers.

NCCL and Gloo read their environment once per process, so each side has processes of its own. Both are there all the
time; the side whose turn it is not sleeps in the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.advice.bench_network import compared_networks
from ncclcheck.advice.compared import as_is_and_advised
from ncclcheck.bench.nodes.ab_benchmark import SIZES, AbBenchmark, WorkerSet
from ncclcheck.bench.nodes.ab_result import result_of
from ncclcheck.bench.nodes.bench_order import BenchOrder, order_faults
from ncclcheck.bench.nodes.bench_watch import BenchWatch, quick_deadlines
from ncclcheck.bench.nodes.node_workers import run_workers
from ncclcheck.bench.nodes.plan_memory import too_large_for
from ncclcheck.bench.nodes.starting import order_of
from ncclcheck.bench.nodes.turn_relay import relay_turns
from ncclcheck.model.bench import BenchPlan, Comparison, Variant
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.run.session import Session, broadcast_order
from ncclcheck.run.steps.base import Bounds, Participant, Step
from ncclcheck.run.steps.bench import (
    cannot_measure,
    starting_of,
    stop_workers,
    watched,
    wish_of,
    worker_node,
)
from ncclcheck.timeouts import AFTER_COMPARE_S, COMPARE_ROUNDS_S, COMPARE_S, LEAST_COMPARE_S

NAMES: tuple[Literal["as-is"], Literal["advised"]] = ("as-is", "advised")


class CompareOrder(Struct, frozen=True, forbid_unknown_fields=True, tag="compare"):
    """Start several sets of workers, which take turns."""

    sets: tuple[BenchOrder, ...]


# The coordinator


def lead_comparison(session: Session) -> Fact[Comparison]:
    """Return both sides' times, or why one has none; Missing where there is nothing to compare, or no time for it.

    Where it is interrupted, what there is stands in the session's snapshot.
    """
    snapshot, deadline = session.snapshot, session.deadline
    two = cannot_measure(session) or as_is_and_advised(snapshot)
    if isinstance(two, Missing):
        return two
    networks = compared_networks(wish_of(session), snapshot, two)
    if isinstance(networks, Missing):
        return networks
    seconds = min(COMPARE_S, deadline.left() - AFTER_COMPARE_S)
    if seconds < LEAST_COMPARE_S:
        needed_s = LEAST_COMPARE_S + AFTER_COMPARE_S
        spare = f"{deadline.left():.0f} s were left of --timeout, {needed_s:.0f} s are needed"
        return Missing("timeout", spare)
    sides = _sides(session, networks, seconds)
    if isinstance(sides, Missing):
        return sides
    session.context.say("comparing the unchanged environment with the advised one, in turn")
    ab_benchmark = AbBenchmark(sides, deadline.within(seconds))

    def result() -> Comparison:
        return result_of(ab_benchmark, Variant({}, two.as_is), Variant(two.changes, two.advised))

    try:
        broadcast_order(session, CompareOrder(tuple(side.order for side in sides if side.started)))
        ab_benchmark.measure()
        return result()
    except KeyboardInterrupt:
        ab_benchmark.give_up("interrupted")
        session.state.snapshot = replace(snapshot, comparison=result())
        raise
    finally:
        stop_workers(session, [side.watch for side in sides if side.started])


def _sides(
    session: Session, networks: tuple[BenchNetwork, BenchNetwork], seconds: float
) -> Fact[list[WorkerSet]]:
    sides: list[WorkerSet] = []
    for name, network in zip(NAMES, networks, strict=True):
        plan = BenchPlan(
            network.backend, ("all_reduce",), SIZES, "float32", 1, None, COMPARE_ROUNDS_S, verify=False
        )
        order = replace(
            order_of(starting_of(session, network), network, plan, seconds), name=name, turns=True
        )
        if (too_large := too_large_for(order, network, session.snapshot)) is not None:
            return too_large
        watch = BenchWatch(watched(session, order, network), deadlines=quick_deadlines(order))
        cannot_start = "; ".join(f"{host}: {why}" for host, why in network.fault.items())
        sides.append(WorkerSet(session.store, watch, order, cannot_start))
    return sides


# A participant


def _follow(participant: Participant, order: CompareOrder) -> Missing | None:
    if participant.ranks_store is not None:
        names = [bench.name for bench in order.sets]
        relay_turns(names, participant.store, participant.ranks_store, participant.context.deadline)
    return run_workers(worker_node(participant), order.sets)


def _faults(order: CompareOrder, bounds: Bounds) -> Iterator[str]:
    names = [bench.name for bench in order.sets]
    if len(set(names)) != len(names) or "bench" in names:
        yield "its sets of workers are not one as-is and one advised"
    for bench in order.sets:
        yield from order_faults(bench, bounds.ticket, bounds.most_ranks)


COMPARE: Step[CompareOrder, None] = Step(
    "compare",
    COMPARE_S,
    applies=lambda session: session.context.options.command == "run",
    lead=lambda session: replace(session.snapshot, comparison=lead_comparison(session)),
    order=CompareOrder,
    follow=_follow,
    doing="the comparison of settings",
    faults=_faults,
    by_ranks=lambda order: {ticket for bench in order.sets for ticket in bench.count},
)
