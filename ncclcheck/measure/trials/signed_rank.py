"""The median of paired differences with an exact interval (Wilcoxon's signed ranks).

Where two ways of measuring do not differ, the difference of a round is as likely to be d as -d: the interval then holds
0 with exactly the confidence that is stated, whatever the distribution of the noise (Conover, Practical Nonparametric
Statistics, 5.7; the estimate is Hodges and Lehmann's).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from statistics import median

from msgspec import Struct


class Shift(Struct, frozen=True):
    """How far the differences are from 0: the estimate, and an interval that holds the truth."""

    middle: float
    low: float
    high: float


def shift_of(differences: Sequence[float], error: float) -> Shift | None:
    """Return the shift; `error` is the chance that the interval misses it. None: too few differences for that."""
    cut = _cut(len(differences), error / 2)
    if cut == 0:
        return None
    averages = sorted(
        (first + second) / 2 for number, first in enumerate(differences) for second in differences[number:]
    )
    return Shift(median(averages), averages[cut - 1], averages[-cut])


def estimate(differences: Sequence[float]) -> float:
    """Return the estimate alone; `differences` is not empty."""
    return median(
        (first + second) / 2 for number, first in enumerate(differences) for second in differences[number:]
    )


def least_rounds(error: float) -> int:
    """Return with how many differences there is an interval at all."""
    count = 1
    while 2.0 * 0.5**count > error:
        count += 1
    return count


@lru_cache(maxsize=512)
def _cut(count: int, tail: float) -> int:
    """Return how many sums of ranks have together at most `tail` of the probability."""
    sums = [1]
    for rank in range(1, count + 1):
        longer = [*sums, *[0] * rank]
        for total, number in enumerate(sums):
            longer[total + rank] += number
        sums = longer
    return sum(number <= tail * 2**count for number in accumulate(sums))
