"""The rate of received data, from the times at which portions of it arrived."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

_POINTS = 100


def rate_in(arrivals: Sequence[tuple[float, int]], start: float, end: float) -> float:
    """Return bytes per second between `start` and `end`, of (moment, bytes) by moment; 0.0 where nothing arrived.

    The slope of the straight line (least squares) through the bytes counted so far at 100 moments of the window. Data
    comes in portions of up to 64 KiB, of several streams at once: which of them fall just inside the ends of a short
    window is chance, and hardly counts here. A time without data does.
    """
    moments = [moment for moment, _ in arrivals]
    sums = [0, *accumulate(count for _, count in arrivals)]
    if end <= start or sums[bisect_right(moments, end)] == sums[bisect_right(moments, start)]:
        return 0.0
    step = (end - start) / _POINTS
    counted = [sums[bisect_right(moments, start + (number + 0.5) * step)] for number in range(_POINTS)]
    middle = (_POINTS - 1) / 2
    spread = sum((number - middle) ** 2 for number in range(_POINTS))
    slope = sum((number - middle) * count for number, count in enumerate(counted)) / spread
    return max(slope / step, 0.0)
