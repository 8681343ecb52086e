"""The same collective as-is and advised, in alternating rounds of two sets of workers, as node 0 leads it.

NCCL and Gloo read their environment once per process, so each side has processes of its own. Both are there all the
time; the side whose turn it is not sleeps in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Literal

from msgspec.structs import replace

from ncclcheck.advice.compared import AsIsAndAdvised, as_is_and_advised
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import Compare
from ncclcheck.exchange.store.base import Store
from ncclcheck.measure.busbw import algbw_gb_s
from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.measure.paired import Speedup, paired_speedup
from ncclcheck.model.bench import BenchPlan, Comparison, ComparisonVerdict, Variant
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.bench_network import Network, compared_networks
from ncclcheck.run.bench_watch import Watch
from ncclcheck.run.benching import cannot_measure, order_of, quick_deadlines, stop_workers, too_large_for
from ncclcheck.run.contest import MEASURING_S, SIZES, Contest, Side
from ncclcheck.run.context import Context
from ncclcheck.run.lead import Member, Orders

MOST_S = 40.0  # for all of it, of which starting torch on a busy node may take most
LEAST_S = 12.0  # less time than this does not suffice to start, form a group and measure
KEPT_S = 15.0  # of --timeout, for the benchmark that follows
NAMES: tuple[Literal["as-is"], Literal["advised"]] = ("as-is", "advised")


def lead_comparison(
    context: Context,
    orders: Orders,
    store: Store,
    agents: tuple[Member, ...],
    snapshot: Snapshot,
    deadline: Deadline,
    keep: Callable[[Comparison], None],
) -> Fact[Comparison]:
    """Both sides' times, or why one has none; Missing where there is nothing to compare, or no time for it.

    `keep` gets what there is when it is interrupted.
    """
    two = cannot_measure(snapshot, deadline) or as_is_and_advised(snapshot)
    if isinstance(two, Missing):
        return two
    networks = compared_networks(context.options, snapshot, two)
    if isinstance(networks, Missing):
        return networks
    seconds = min(MOST_S, deadline.left() - KEPT_S)
    if seconds < LEAST_S:
        spare = f"{deadline.left():.0f} s were left of --timeout, {LEAST_S + KEPT_S:.0f} s are needed"
        return Missing("timeout", spare)
    sides = _sides(context, store, agents, snapshot, networks, seconds)
    if isinstance(sides, Missing):
        return sides
    context.say("comparing the environment as it is with the advised one, in turns")
    contest = Contest(sides, deadline.within(seconds))
    try:
        orders.give(Compare(tuple(side.order for side in sides if side.started)))
        contest.measure()
        return outcome(contest, two)
    except KeyboardInterrupt:
        contest.give_up("interrupted")
        keep(outcome(contest, two))
        raise
    finally:
        stop_workers(context, store, [side.watch for side in sides if side.started])


def _sides(
    context: Context,
    store: Store,
    agents: tuple[Member, ...],
    snapshot: Snapshot,
    networks: tuple[Network, Network],
    seconds: float,
) -> Fact[list[Side]]:
    sides: list[Side] = []
    for name, network in zip(NAMES, networks, strict=True):
        plan = BenchPlan(
            network.backend, ("all_reduce",), SIZES, "float32", 1, None, MEASURING_S, verify=False
        )
        order = replace(order_of(agents, network, plan, seconds), name=name, turns=True)
        if (too_large := too_large_for(order, network, snapshot)) is not None:
            return too_large
        watch = Watch(context, store, agents, order, network, deadlines=quick_deadlines(order))
        cannot_start = "; ".join(f"{host}: {why}" for host, why in network.fault.items())
        sides.append(Side(store, watch, order, cannot_start))
    return sides


def outcome(contest: Contest, two: AsIsAndAdvised) -> Comparison:
    """What the contest has shown up to now."""
    as_is, advised = contest.sides
    speedup = None
    if not (_has_failed(as_is) or _has_failed(advised)):
        speedup = paired_speedup(as_is.times_us, advised.times_us)
    order = advised.order
    return Comparison(
        backend=order.plan.backend,
        op="all_reduce",
        size_bytes=contest.size_bytes,
        world_size=order.world_size,
        rounds=_rounds(contest.sides),
        as_is=_variant(contest, as_is, Variant({}, two.as_is)),
        advised=_variant(contest, advised, Variant(two.changes, two.advised)),
        speedup=speedup.median if speedup else None,
        speedup_low=speedup.low if speedup else None,
        speedup_high=speedup.high if speedup else None,
        verdict=_verdict(as_is, advised, speedup),
    )


def _has_failed(side: Side) -> bool:
    """Its environment is the cause that it has no times."""
    return bool(side.failure) and not side.by_accident


def _rounds(sides: Sequence[Side]) -> int:
    return min((len(side.times_us) for side in sides if not _has_failed(side)), default=0)


def _verdict(as_is: Side, advised: Side, speedup: Speedup | None) -> ComparisonVerdict:
    failed = (_has_failed(as_is), _has_failed(advised))
    if failed == (True, True):
        return "both failed"
    if failed[0] and advised.times_us:
        return "as-is failed"
    if failed[1] and as_is.times_us:
        return "advised failed"
    return speedup.effect if speedup else "not measured"


def _variant(contest: Contest, side: Side, variant: Variant) -> Variant:
    if _has_failed(side) or not side.times_us:
        return replace(variant, failure=side.failure)
    factor = COLLECTIVES["all_reduce"].bus_factor(side.order.world_size)
    busbw_gb_s = algbw_gb_s(contest.size_bytes, median(side.times_us)) * factor
    times_us = tuple(round(time_us, 3) for time_us in side.times_us)
    return replace(variant, times_us=times_us, busbw_gb_s=busbw_gb_s, failure=side.failure)
