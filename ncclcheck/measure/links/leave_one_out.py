"""The values of all others, for each of many: their median and their spread, without looking at all of them each time.

Sorted once, the median of all values but one is known at once. There are at most three such medians, so the distances
from them are sorted three times at most, whatever the number of values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

MAD_TO_SIGMA = 1.4826  # of a normal distribution


class LeaveOneOut:
    """Values to be compared with the rest of them. A class because what was sorted is used again."""

    def __init__(self, values: Iterable[float]) -> None:
        """Sort them."""
        self._ordered = sorted(values)
        self._distances: dict[float, list[float]] = {}

    def __len__(self) -> int:
        """Return how many others each value has."""
        return max(0, len(self._ordered) - 1)

    def median(self, value: float) -> float:
        """Return the median of all values but `value`, which is one of them; 0.0 where there are no others."""
        return _median_without(self._ordered, value)

    def spread(self, own_value: float, least: float) -> float:
        """Return a robust standard deviation (1.4826 MAD) of all values but `own_value`, and at least `least`."""
        middle = self.median(own_value)
        if middle not in self._distances:
            self._distances[middle] = sorted(abs(value - middle) for value in self._ordered)
        return max(MAD_TO_SIGMA * _median_without(self._distances[middle], abs(own_value - middle)), least)


def _median_without(ordered: Sequence[float], value: float) -> float:
    """Return the median of the sorted values without one that equals `value`."""
    count = len(ordered) - 1
    if count < 1:
        return 0.0
    place = bisect_left(ordered, value)
    low, high = (ordered[at + (at >= place)] for at in ((count - 1) // 2, count // 2))
    return (low + high) / 2
