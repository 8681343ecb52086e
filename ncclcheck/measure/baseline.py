"""Is a point slower than in an earlier run, beyond what chance explains? One test per size, honest over all of them.

The bandwidths of the two runs in their typical (median) iterations are compared, as the logarithm of their ratio.
Chance has two parts: how well each median is known from its own iterations, and how much sound runs differ, which the
scatter of the ratios over all points tells. A loss must exceed both the tolerance and chance; the level of one test is
chosen such that all points of a sound run together raise a false alarm in less than one run of a hundred.

Where cores or links are shared with others, iterations come in two kinds, disturbed and undisturbed, and the median is
now of the one and now of the other. So of a point that is called unstable even the fastest iterations must be slower
than the typical ones were.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import NormalDist, fmean, median, stdev
from typing import Literal, TypeAlias

from msgspec import UNSET, Struct

from ncclcheck.measure.statistics import PRECISION, median_interval, nearest_rank
from ncclcheck.model.bench import Backend, Point, TimeUs
from ncclcheck.model.bench_demands import BaselinePoint

FALSE_ALARMS = 0.005  # per run, over all its points
# Two sound runs differ by so much (standard deviation) even where their iterations do not tell: a part of the time, and
# an absolute part, since where threads and buffers come to lie changes a call by about as much whatever its size.
BETWEEN_RUNS = 0.02
BETWEEN_RUNS_US: dict[Backend, float] = {"gloo": 15.0, "nccl": 0.5}
_LEAST_POINTS = 4  # with fewer their scatter says nothing of how much runs differ
_FASTEST_PERCENT = 10
_Z95, _Z90 = 1.959964, 1.644854
_OF_A_MEDIAN = math.sqrt(math.pi / 2)  # its standard error, in those of a mean of normal values
_MAD_TO_SIGMA = 1.482602
_RANGE_TO_SIGMA = {3: 1.693, 4: 2.059, 5: 2.326}  # Shewhart's d2: the mean range of n normal values
_LEAST_ITERATIONS = 3
_BLIND = 1 / 3  # a test that would overlook the loss of a third of the bandwidth is none
_MOST_BLOCKS, _LEAST_BLOCKS, _LEAST_BLOCK = 12, 6, 5
Verdict: TypeAlias = Literal["loss", "same", "faster", "not-known"]


class Compared(Struct, frozen=True):
    """One point beside its counterpart of the earlier run.

    `lost` is the part of the bandwidth that is gone (negative: it gained), `noise` the greatest part that chance
    explains. `why` says why no comparison is possible.
    """

    now: Point
    before: BaselinePoint
    verdict: Verdict
    lost: float
    noise: float
    why: str = ""


class _Centre(Struct, frozen=True):
    """The logarithm of the time per byte of the typical and of the fastest iteration.

    `error` is the standard error of the typical one, estimated from so many `values`.
    """

    log_typical: float
    log_least: float
    error: float
    values: int


def baseline_point(point: Point) -> BaselinePoint:
    """Return the point as later runs are compared with it, with its iteration times where it has them."""
    return BaselinePoint(
        op=point.op,
        size_bytes=point.size_bytes,
        dtype=point.dtype,
        iters=point.iters,
        busbw_gb_s=point.busbw_gb_s,
        time_us=point.time_us,
        unstable=point.unstable,
        samples_us=() if point.samples_us is UNSET else point.samples_us,
    )


def compare(
    pairs: Iterable[tuple[Point, BaselinePoint]], tolerance: float, backend: Backend = "gloo"
) -> tuple[Compared, ...]:
    """Judge every pair. `tolerance` is the part of the bandwidth that may be gone."""
    compared_pairs = tuple(pairs)
    centres = [(_centre_of_point(now), _centre_of_baseline(before)) for now, before in compared_pairs]
    known = [(now, before) for now, before in centres if now is not None and before is not None]
    between = _between_runs(known)
    return tuple(
        _judged(pair, centre, math.hypot(between, _jitter(pair, backend)), len(known), tolerance)
        for pair, centre in zip(compared_pairs, centres, strict=True)
    )


def _jitter(pair: tuple[Point, BaselinePoint], backend: Backend) -> float:
    shortest_us = min(pair[0].time_us.p50, pair[1].time_us.p50)
    return BETWEEN_RUNS_US[backend] / shortest_us if shortest_us > 0 else 0.0


def _judged(
    pair: tuple[Point, BaselinePoint],
    centres: tuple[_Centre | None, _Centre | None],
    between: float,
    points: int,
    tolerance: float,
) -> Compared:
    (now, before), (centre, baseline) = pair, centres
    if centre is None or baseline is None:
        which = "this run" if centre is None else "the baseline"
        return Compared(
            now, before, "not-known", 0.0, 0.0, f"{which} has too few iterations to tell a loss from chance"
        )
    ratio = centre.log_typical - baseline.log_typical
    error = math.sqrt(centre.error**2 + baseline.error**2 + between**2)
    reach = _quantile(1 - FALSE_ALARMS / max(points, 1), min(centre.values, baseline.values) - 1) * error
    lost, noise = -math.expm1(-ratio), -math.expm1(-reach)
    if ratio > reach and lost > tolerance:
        if now.unstable is None or centre.log_least > baseline.log_typical:
            return Compared(now, before, "loss", lost, noise)
        why = f"it looks slower by {lost:.0%}, but its times vary so much that this may be chance"
        return Compared(now, before, "not-known", lost, noise, why)
    if noise > max(_BLIND, tolerance):  # a larger tolerance needs no finer measurement
        why = f"its times vary so much that only a loss of more than {noise:.0%} would show"
        return Compared(now, before, "not-known", lost, noise, why)
    gained = ratio < -reach and math.expm1(-ratio) > tolerance
    return Compared(now, before, "faster" if gained else "same", lost, noise)


def _centre_of_point(point: Point) -> _Centre | None:
    samples_us = () if point.samples_us is UNSET else point.samples_us
    return _centre(point.busbw_gb_s, point.time_us, point.iters, samples_us, is_stable=point.unstable is None)


def _centre_of_baseline(point: BaselinePoint) -> _Centre | None:
    return _centre(
        point.busbw_gb_s, point.time_us, point.iters, point.samples_us, is_stable=point.unstable is None
    )


def _centre(
    busbw_gb_s: float, times: TimeUs, iters: int, samples_us: Sequence[float], *, is_stable: bool
) -> _Centre | None:
    """Return the typical iteration of a point; None where it has too few to tell how sure that is.

    The bandwidth is that of the mean iteration; the times tell how much faster the typical and the fastest were. A
    point is called stable when its median is known to 2 %, which is all that a report tells of its iterations.
    """
    if iters < _LEAST_ITERATIONS or min(times.p50, times.min, times.mean, busbw_gb_s) <= 0:
        return None
    of_mean = -math.log(busbw_gb_s) - math.log(times.mean)
    typical = of_mean + math.log(times.p50)
    if len(samples_us) > max(_RANGE_TO_SIGMA) and min(samples_us) > 0:
        logs = [math.log(us) for us in samples_us]
        fastest = of_mean + nearest_rank(sorted(logs), _FASTEST_PERCENT)
        by_order, (by_blocks, blocks) = _by_order(logs), _by_blocks(logs)
        error, values = (by_order, len(logs)) if by_order >= by_blocks else (by_blocks, blocks)
        return _Centre(typical, fastest, error, values)
    error = PRECISION / _Z95 if is_stable and iters not in _RANGE_TO_SIGMA else _by_summary(times, iters)
    return _Centre(typical, of_mean + math.log(times.min), error, iters)


def _by_order(logs: Sequence[float]) -> float:
    """Return the error from the order statistics that enclose the median with 95 %: right for any distribution."""
    interval = median_interval(logs)
    return (
        0.0
        if interval is None
        else max(interval.high - interval.middle, interval.middle - interval.low) / _Z95
    )


def _by_blocks(logs: Sequence[float]) -> tuple[float, int]:
    """Return the error from the medians of consecutive blocks: iterations in a row may resemble each other."""
    blocks = min(_MOST_BLOCKS, len(logs) // _LEAST_BLOCK)
    if blocks < _LEAST_BLOCKS:
        return 0.0, 0
    bounds = [len(logs) * number // blocks for number in range(blocks + 1)]
    medians = [median(logs[start:end]) for start, end in pairwise(bounds)]
    return stdev(medians) / math.sqrt(blocks), blocks


def _by_summary(times: TimeUs, iters: int) -> float:
    """Return the error from median and 95th percentile alone; of few iterations from their range."""
    if iters in _RANGE_TO_SIGMA:
        sigma = math.log(times.max / times.min) / _RANGE_TO_SIGMA[iters]
    else:
        sigma = math.log(times.p95 / times.p50) / _Z90
    return _OF_A_MEDIAN * sigma / math.sqrt(iters)


def _between_runs(pairs: Sequence[tuple[_Centre, _Centre]]) -> float:
    """Return how much sound runs differ beyond their iterations' own spread: the scatter of the points' ratios.

    From medians, so that losses at less than half of the points do not hide themselves in it.
    """
    if len(pairs) < _LEAST_POINTS:
        return BETWEEN_RUNS
    ratios = [now.log_typical - before.log_typical for now, before in pairs]
    middle = median(ratios)
    scatter = _MAD_TO_SIGMA * median(abs(ratio - middle) for ratio in ratios)
    explained = fmean(now.error**2 + before.error**2 for now, before in pairs)
    return max(BETWEEN_RUNS, math.sqrt(max(0.0, scatter**2 - explained)))


def _quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t: errors estimated from few values are often too small.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5; within 4 % from three degrees on.
    """
    z = NormalDist().inv_cdf(probability)
    v = max(degrees, 1)
    terms: tuple[float, ...] = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / float(v) ** power for power, term in enumerate(terms, 1))
