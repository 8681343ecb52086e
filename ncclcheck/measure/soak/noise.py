"""How far a few blocks of a series go by chance, where neighbouring blocks are alike: noise taken for an AR(1) process.

Of few blocks that are alike nobody knows the level, nor how far they scatter: all of them may lie on one side of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt

from msgspec import Struct

_MOST_CORRELATION = 0.95
_MARGIN = 2.0  # standard errors of the correlation
_MOST_UNKNOWN = 0.95  # of the variance
_FEW = 8  # of so many values the deviation may be twice what is seen


class Noise(Struct, frozen=True):
    """`deviation` of a block, as seen, and the `widest`; the correlation of neighbours, from `least` to `most`.

    `unknown`: the variance of the level that was found, as a part of that of a block.
    """

    deviation: float
    widest: float
    least: float = 0.0
    most: float = 0.0
    unknown: float = 0.0

    def level_error(self, count: int) -> float:
        """Return the standard error of the distance of so many blocks from the usual level."""
        alike = (1 + self.most) / (1 - self.most)  # so many in a row tell as much as one
        return self.widest * sqrt(min(1.0, alike / count) + self.unknown)

    def step_error(self, count: int) -> float:
        """Return the standard error of the distance of so many blocks from as many before them."""
        return self.deviation * sqrt(max(step_variance(count, self.least), step_variance(count, self.most)))


def noise_of(values: Sequence[float], deviation: float, spike: float) -> Noise:
    """Return the noise of values around their median that scatter so far. What is further away than `spike` is none."""
    count = len(values)
    found = _correlation(values, spike)
    likely = min(_MOST_CORRELATION, found + (1 + 4 * found) / count)  # Kendall 1954: what few values hide
    margin = _MARGIN * sqrt((1 - likely * likely) / count)
    least, most = max(0.0, likely - margin), min(_MOST_CORRELATION, likely + margin)
    unknown = min(_MOST_UNKNOWN, mean_variance(count, most))
    alone = count * (1 - likely**2) / (1 + likely**2)  # independent values that tell as much of the spread
    widest = deviation * (1 + _FEW / alone) / sqrt(1 - unknown)
    # Steps between neighbours are seen in all values, however far the level wanders.
    return Noise(deviation * (1 + _FEW / count), widest, least, most, unknown)


def mean_variance(count: int, correlation: float) -> float:
    """Return the variance of the mean of so many neighbours."""
    rest = 1 - correlation
    tail = 2 * correlation * (1 - correlation**count) / (count * rest * rest)
    return ((1 + correlation) / rest - tail) / count


def step_variance(count: int, correlation: float) -> float:
    """Return the variance of the difference of two neighbouring means of so many blocks."""
    across = correlation * ((1 - correlation**count) / (1 - correlation) / count) ** 2
    return 2 * (mean_variance(count, correlation) - across)


def _correlation(values: Sequence[float], spike: float) -> float:
    """Return how alike neighbours are, 0 to 0.95, without spikes: they would hide it."""
    pairs = [(first, second) for first, second in pairwise(values) if max(abs(first), abs(second)) <= spike]
    square = sum(first * first + second * second for first, second in pairs) / 2
    if square <= 0:
        return 0.0
    return max(0.0, min(_MOST_CORRELATION, sum(first * second for first, second in pairs) / square))
