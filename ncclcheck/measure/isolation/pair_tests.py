"""One test of a pair of nodes, and the scale on which all tests of a run are judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.model.benchmarks.isolation import PairOutcome

Pair: TypeAlias = tuple[int, int]  # two members, by number
MAD_TO_SIGMA = 1.4826  # of a normal distribution
LEAST_SPREAD = 0.005  # of the reference; fewer transfers than this can resolve
USUAL_SPREAD, USUAL_VALUES = 0.01, 4
START_PERCENT = 75  # of all tests: up to so many per cent of the tests may be slow
TRIM_SPREADS, CUT_SPREADS = 3.0, 3.5
_MOST_PASSES = 20


class PairTest(Struct, frozen=True):
    """What one round found between `first` and `second`: the rates in both directions, in 1e9 bit/s.

    A rate is None where it was not measured; then `outcome` says why. `lone`: nothing else was measured
    meanwhile. `detail`: what an end said, where it failed. `rails`: the rates forth and back of each GPU, where
    several measured at once; the rates are then those of the slowest.
    """

    round: int
    first: int
    second: int
    forth_gbit_s: float | None = None
    back_gbit_s: float | None = None
    outcome: PairOutcome = "ok"
    lone: bool = False
    detail: str = ""
    rails: tuple[tuple[float, float], ...] = ()

    @property
    def pair(self) -> Pair:
        """The two members, the smaller number first."""
        return (min(self.first, self.second), max(self.first, self.second))

    @property
    def rates_gbit_s(self) -> tuple[float, float] | None:
        """The rates forth and back; None where it did not finish."""
        if self.outcome != "ok" or self.forth_gbit_s is None or self.back_gbit_s is None:
            return None
        return self.forth_gbit_s, self.back_gbit_s

    def rates_of(self, member: int) -> tuple[float | None, float | None]:
        """Return at what rate `member`, one of the two, sent and received."""
        rates = (self.forth_gbit_s, self.back_gbit_s)
        return rates if member == self.first else (rates[1], rates[0])


class Scale(Struct, frozen=True):
    """What a sound pair reaches one way, in 1e9 bit/s, and the standard deviation of it, as a part of the reference.

    A test is slow if one way is below `cut` (a natural logarithm of its part of the reference).
    """

    reference_gbit_s: float
    spread: float
    cut: float


def scale_of(values_gbit_s: Sequence[float], effect: float) -> Scale | None:
    """Return the scale of these rates (of all tests, both ways); None without any.

    The slow ones must not shift it: it starts at a value that up to three quarters of the tests may lie below, and
    drops what lies further below the median of the rest than half of `effect`, or three spreads. The spread of all
    tests would grow with the faults and hide them.
    """
    if not values_gbit_s:
        return None
    ordered = sorted(values_gbit_s)
    middle = ordered[min(len(ordered) - 1, math.ceil(START_PERCENT / 100 * len(ordered)) - 1)]
    spread = LEAST_SPREAD
    for _ in range(_MOST_PASSES):
        limit = middle * (1 - max(effect / 2, TRIM_SPREADS * spread))
        kept = [value for value in ordered if value >= limit]
        before, middle = middle, median(kept)
        seen = MAD_TO_SIGMA * median(abs(value / middle - 1) for value in kept)
        spread = max(LEAST_SPREAD, _with_usual(seen, len(kept)))
        if middle == before:
            break
    cut = math.log(1 - min(0.95, max(effect / 2, CUT_SPREADS * spread)))
    return Scale(middle, spread, cut)


def _with_usual(spread: float, values: int) -> float:
    """Return the spread with what is usual, which counts as much as four values: two values tell little."""
    return math.sqrt((USUAL_VALUES * USUAL_SPREAD**2 + values * spread**2) / (USUAL_VALUES + values))


def log_part(rate_gbit_s: float, scale: Scale) -> float:
    """Return the natural logarithm of the rate's part of the reference: 0 for a usual one, -0.1 for 10 % less."""
    return math.log(max(rate_gbit_s, 1e-12) / scale.reference_gbit_s)
