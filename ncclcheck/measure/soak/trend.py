"""Whether a series becomes slower all the time, though never fast enough for a drop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from math import exp, log
from statistics import median

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.model.benchmarks.soak import SoakSample

_POINTS = 24  # that the series is thinned out to
_DAY_H, _OF_DAY_H = (
    24,
    2,
)  # in less than a day, `drop` is to be lost in two hours: a daily load changes more slowly
_SURE = 0.7  # Kendall's tau: 23 of 24 points in order give 0.9, noise 0.3


class Trend(Struct, frozen=True):
    """The speed that is lost per hour, and in all, as parts."""

    per_hour: float
    part: float


def trend(samples: Sequence[SoakSample], drop: float) -> Trend | None:
    """Return the loss over the whole series by Theil and Sen; None where it is less than `drop`, or not steady.

    A series of less than a day may have seen the rise of a daily load alone, so it has to lose faster than that.
    """
    if len(samples) < _POINTS or samples[-1].at_s - samples[0].at_s < timeouts.SOAK_TREND_S:
        return None
    edges = [number * len(samples) // _POINTS for number in range(_POINTS + 1)]
    points = [
        (
            median(sample.at_s for sample in samples[first:last]),
            median(log(sample.median_us) for sample in samples[first:last]),
        )
        for first, last in pairwise(edges)
    ]
    pairs = list(combinations(points, 2))
    order = sum((later > earlier) - (later < earlier) for (_, earlier), (_, later) in pairs)
    slope = median((later - earlier) / (end - begin) for (begin, earlier), (end, later) in pairs)
    lost = slope * (points[-1][0] - points[0][0])
    steps = [after - before for (_, before), (_, after) in pairwise(points)]
    is_step = max(steps) > lost / 2  # that is a drop, or was one
    per_hour = slope * timeouts.HOUR_S
    is_of_day = samples[-1].at_s - samples[0].at_s < _DAY_H * timeouts.HOUR_S
    if is_of_day and 1 - exp(-per_hour * _OF_DAY_H) < drop:
        return None
    if order < _SURE * len(pairs) or 1 - exp(-lost) < drop or is_step:
        return None
    return Trend(1 - exp(-per_hour), 1 - exp(-lost))
