"""Two ways of doing the same, measured in alternating rounds: how much faster the one is, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from statistics import median
from typing import Literal, TypeAlias

from msgspec import Struct

LEAST_ROUNDS = 6  # with fewer no two order statistics enclose a median with 95 %: 1 - 2 * 0.5**5 < 0.95
LEAST_EFFECT = 0.03  # a smaller gain is not worth a change of the environment
Effect: TypeAlias = Literal["faster", "slower", "no effect"]
Side: TypeAlias = Literal[0, 1]


class Speedup(Struct, frozen=True):
    """How many times as fast the second way is: the median over the rounds, and the 95 % interval of that median."""

    median: float
    low: float
    high: float

    @property
    def effect(self) -> Effect:
        """None where the interval holds 1, or where the median is less than 3 % away from it."""
        if self.low <= 1.0 <= self.high or 1 - LEAST_EFFECT < self.median < 1 + LEAST_EFFECT:
            return "no effect"
        return "faster" if self.median > 1.0 else "slower"


def paired_speedup(before_us: Sequence[float], after_us: Sequence[float]) -> Speedup | None:
    """Return the speedup over rounds that were measured one beside the other; None below 6 rounds.

    Each round gives one ratio of its two times, so what disturbs both of a round cancels. The interval is of two order
    statistics of the ratios, by the exact binomial distribution (Conover, Practical Nonparametric Statistics, 3.2): it
    covers the true median with at least 95 % for any distribution.
    """
    ratios = sorted(before / after for before, after in zip(before_us, after_us, strict=False))
    if len(ratios) < LEAST_ROUNDS:
        return None
    cut = _outside(len(ratios))
    return Speedup(median(ratios), ratios[cut], ratios[-1 - cut])


def _outside(rounds: int) -> int:
    """Return how many of the sorted ratios may lie outside the interval on either side."""
    cut, below = 0, 1  # `below`: ways in which at most `cut` of the rounds fall on one side of the median
    while 2 * (below + comb(rounds, cut + 1)) <= 0.05 * 2**rounds:
        cut += 1
        below += comb(rounds, cut)
    return cut


def side_of_turn(turn: int) -> Side:
    """Return whose turn it is, A B B A A B B A ...: a drift over the turns favours neither."""
    return 1 if turn % 4 in (1, 2) else 0
