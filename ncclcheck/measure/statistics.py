"""Statistics of iteration times: their spread, the interval of the median, and when a point has enough of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median, stdev

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.model.bench import TimeUs

PRECISION = 0.02  # a point is done when the 95 % interval of its median lies within this part of the median
P99_SAMPLES = 100  # with fewer the 99th percentile is just the maximum
MAX_ITERATIONS = 10_000
BETWEEN_RUNS = 0.01  # standard deviation between sound runs beyond what their iterations tell
_Z95 = 1.959964
_TOO_FEW_FACTOR = 2  # so many times its share a point may take to get the samples that it needs at least
_STUDENT95 = (2.571, 2.447, 2.365, 2.306, 2.262)  # two-sided 95 % for 5 to 9 degrees of freedom
_INTERVAL_SAMPLES = (
    6  # with fewer no two order statistics enclose the median with 95 %: 1 - 2 * 0.5**5 < 0.95
)


class Interval(Struct, frozen=True):
    """A 95 % confidence interval round its middle."""

    low: float
    middle: float
    high: float

    @property
    def half_width(self) -> float:
        """The larger distance of an end from the median, as a part of the median."""
        return max(self.high - self.middle, self.middle - self.low) / self.middle if self.middle else math.inf


class StopDecision(Struct, frozen=True):
    """Whether a point needs more iterations; if not, why its figure is not to be trusted (None: it is)."""

    go_on: bool
    unstable: str | None = None


def nearest_rank(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest value such that `percent` of all are not above it. `ordered` is sorted and not empty."""
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def time_us(samples_us: Sequence[float]) -> TimeUs:
    """Return the spread of the samples. p99 is None below 100 samples: it would be the maximum under another name."""
    ordered = sorted(samples_us)
    return TimeUs(
        mean=fmean(ordered),
        min=ordered[0],
        p50=median(ordered),
        p95=nearest_rank(ordered, 95),
        p99=nearest_rank(ordered, 99) if len(ordered) >= P99_SAMPLES else None,
        max=ordered[-1],
    )


def median_interval(samples: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of the median from order statistics, whatever the distribution; None below 6 samples.

    Conover, Practical Nonparametric Statistics, 3.2: ranks n/2 -+ z*sqrt(n)/2 of the sorted samples.
    """
    count = len(samples)
    if count < _INTERVAL_SAMPLES:
        return None
    ordered = sorted(samples)
    reach = _Z95 * math.sqrt(count) / 2
    low = max(1, math.floor(count / 2 - reach))
    high = min(count, math.ceil(count / 2 + reach) + 1)
    return Interval(ordered[low - 1], median(ordered), ordered[high - 1])


def mean_interval(samples: Sequence[float]) -> Interval | None:
    """Return where a repeat of the run should find its mean, with 95 %; None below 6 samples.

    A prediction interval: both means scatter, so it is the square root of 2 wider than that of the true mean. Two
    parts, added as errors are: Student's interval from the means of up to ten blocks of neighbouring samples (samples
    that follow each other are alike, blocks hardly), and BETWEEN_RUNS.
    """
    if len(samples) < _INTERVAL_SAMPLES:
        return None
    blocks = min(len(_STUDENT95) + _INTERVAL_SAMPLES - 1, len(samples))
    edges = [number * len(samples) // blocks for number in range(blocks + 1)]
    means = [fmean(samples[start:end]) for start, end in pairwise(edges)]
    middle = fmean(samples)
    chance = _STUDENT95[blocks - _INTERVAL_SAMPLES] * stdev(means) / math.sqrt(blocks)
    factor = 1 + math.sqrt(2) * math.hypot(chance / middle, _Z95 * BETWEEN_RUNS)
    return Interval(middle / factor, middle, middle * factor)


def decide(samples_us: Sequence[float], *, iters: int | None, spent_s: float, share_s: float) -> StopDecision:
    """Decide whether the point goes on: until `iters` if given, else until it is precise or has spent its share.

    Precise in a moment is not enough: for a quarter of a second, or of its share, it meets what else the machine does.
    """
    if iters is not None and len(samples_us) < iters:
        return StopDecision(go_on=True)
    interval = median_interval(samples_us)
    precise = interval is not None and interval.half_width <= PRECISION
    if iters is not None:
        return StopDecision(go_on=False, unstable=None if precise else _imprecise(interval, samples_us))
    if precise and spent_s >= min(timeouts.POINT_LEAST_S, share_s / 4):
        return StopDecision(go_on=False)
    allowed_s = share_s if interval is not None else _TOO_FEW_FACTOR * share_s
    if spent_s < allowed_s and len(samples_us) < MAX_ITERATIONS:
        return StopDecision(go_on=True)
    spent = f"after {spent_s:.1f} s of the {share_s:.1f} s that this point may take"
    return StopDecision(go_on=False, unstable=f"{_imprecise(interval, samples_us)}, {spent}")


def _imprecise(interval: Interval | None, samples: Sequence[float]) -> str:
    if interval is None:
        return f"too few iterations ({len(samples)}) to tell how precise the median is"
    below = (interval.middle - interval.low) / interval.middle
    above = (interval.high - interval.middle) / interval.middle
    return (
        f"the 95 % interval of the median of {len(samples)} iterations is "
        f"-{_rounded_up(below)} to +{_rounded_up(above)}; {PRECISION * 100:g} % is required"
    )


def _rounded_up(share: float) -> str:
    """Return tenths of a percent, rounded up: what is above a limit is never printed as the limit."""
    return f"{math.ceil(share * 1000) / 10:.1f}%"
