"""What an A/B benchmark has shown: the times of both sides, and whether the advised settings are faster."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec.structs import replace

from ncclcheck.bench.nodes.ab_benchmark import AbBenchmark, WorkerSet
from ncclcheck.measure.busbw import algbw_gb_s
from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.measure.paired import Speedup, paired_speedup
from ncclcheck.model.bench import Comparison, ComparisonVerdict, Variant


def result_of(ab_benchmark: AbBenchmark, as_is_variant: Variant, advised_variant: Variant) -> Comparison:
    """Return what the benchmark of these two variants has shown up to now."""
    as_is, advised = ab_benchmark.sides
    speedup = None
    if not (_has_failed(as_is) or _has_failed(advised)):
        speedup = paired_speedup(as_is.times_us, advised.times_us)
    order = advised.order
    return Comparison(
        backend=order.plan.backend,
        op="all_reduce",
        size_bytes=ab_benchmark.size_bytes,
        world_size=order.world_size,
        rounds=_rounds(ab_benchmark.sides),
        as_is=_variant(ab_benchmark, as_is, as_is_variant),
        advised=_variant(ab_benchmark, advised, advised_variant),
        speedup=speedup.median if speedup else None,
        speedup_low=speedup.low if speedup else None,
        speedup_high=speedup.high if speedup else None,
        verdict=_verdict(as_is, advised, speedup),
    )


def _has_failed(side: WorkerSet) -> bool:
    """Return whether its environment is the cause that it has no times."""
    return bool(side.failure) and not side.by_accident


def _rounds(sides: Sequence[WorkerSet]) -> int:
    return min((len(side.times_us) for side in sides if not _has_failed(side)), default=0)


def _verdict(as_is: WorkerSet, advised: WorkerSet, speedup: Speedup | None) -> ComparisonVerdict:
    failed = (_has_failed(as_is), _has_failed(advised))
    if failed == (True, True):
        return "both failed"
    if failed[0] and advised.times_us:
        return "as-is failed"
    if failed[1] and as_is.times_us:
        return "advised failed"
    return speedup.effect if speedup else "not measured"


def _variant(ab_benchmark: AbBenchmark, side: WorkerSet, variant: Variant) -> Variant:
    if _has_failed(side) or not side.times_us:
        return replace(variant, failure=side.failure)
    factor = COLLECTIVES["all_reduce"].bus_factor(side.order.world_size)
    busbw_gb_s = algbw_gb_s(ab_benchmark.size_bytes, median(side.times_us)) * factor
    times_us = tuple(round(time_us, 3) for time_us in side.times_us)
    return replace(variant, times_us=times_us, busbw_gb_s=busbw_gb_s, failure=side.failure)
