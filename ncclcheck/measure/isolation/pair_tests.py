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
HIDING_VALUES = 6  # the spread of so many values may be 1.4 times what they show
START_PERCENT = 75  # of all tests: up to so many per cent of the tests may be slow
TRIM_SPREADS, CUT_SPREADS = 3.0, 3.5
SHARE_OF_LONGEST = 4  # every fourth test at least has to be long to set the scale
LEAST_BOTH_WAYS = 8  # pairs whose differences between both ways tell the noise
_MOST_PASSES = 20


FEW_TRANSFERS, MANY_TRANSFERS = 3, 9  # of a test; many where the rates vary


class PairTest(Struct, frozen=True):
    """What one round found between `first` and `second`: the rates in both directions, in 1e9 bit/s.

    A rate is None where it was not measured; then `outcome` says why. `lone`: nothing else was measured
    meanwhile. `detail`: what an end said, where it failed. `rails`: the rates forth and back of each GPU, where
    several measured at once; the rates are then those of the slowest. `transfers`: a rate is the median of so many.
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
    transfers: int = FEW_TRANSFERS

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

    The deviation is that of tests of so many `transfers`; of shorter tests it is larger.
    A test is slow if one way is below `cut` (a natural logarithm of its part of the reference).
    """

    reference_gbit_s: float
    spread: float
    cut: float
    transfers: int = FEW_TRANSFERS

    def spread_of(self, transfers: int) -> float:
        """Return the standard deviation of tests of so many transfers."""
        return self.spread * math.sqrt(max(1.0, self.transfers / transfers))

    @property
    def least_gbit_s(self) -> float:
        """The rate below which a test is slow."""
        return self.reference_gbit_s * math.exp(self.cut)


def scale_of(values_gbit_s: Sequence[float], effect: float, noise: float | None = None) -> Scale | None:
    """Return the scale of these rates (of all tests, both ways); None without any.

    `noise`: the spread of the rates as the difference between both ways of a pair shows it, which faults of whole nodes
    do not raise; without it the rates themselves tell.

    The slow ones must not shift it: it starts at a value that up to three quarters of the tests may lie below, and
    drops what lies further below the median of the rest than half of `effect`, or three spreads. The spread of all
    tests would grow with the faults and hide them.
    """
    if not values_gbit_s:
        return None
    ordered = sorted(values_gbit_s)
    middle = ordered[min(len(ordered) - 1, math.ceil(START_PERCENT / 100 * len(ordered)) - 1)]
    spread = LEAST_SPREAD if noise is None else max(LEAST_SPREAD, noise)
    for _ in range(_MOST_PASSES):
        limit = middle * (1 - max(effect / 2, TRIM_SPREADS * spread))
        kept = [value for value in ordered if value >= limit]
        before, middle = middle, median(kept)
        seen = MAD_TO_SIGMA * median(abs(value / middle - 1) for value in kept) if noise is None else noise
        spread = max(LEAST_SPREAD, _with_usual(seen, len(kept)))
        if middle == before:
            break
    return _scale(middle, spread, effect)


def scale_of_sound(tests: Sequence[PairTest], telling: Sequence[PairTest], effect: float) -> Scale:
    """Return the scale of tests between members that are held for sound; `telling`: those that show the spread."""
    middle = median(rate for test in tests for rate in test.rates_gbit_s or ())
    parts = [rate / middle - 1 for test in telling for rate in test.rates_gbit_s or ()]
    seen = MAD_TO_SIGMA * median(map(abs, parts))
    return _scale(middle, max(LEAST_SPREAD, _with_usual(seen, len(parts))), effect)


def most_telling(tests: Sequence[PairTest]) -> tuple[Sequence[PairTest], int]:
    """Return the tests with the most transfers, if there are enough of them, else all; and their transfers."""
    finished = [test for test in tests if test.rates_gbit_s is not None]
    most = max((test.transfers for test in finished), default=FEW_TRANSFERS)
    longest = [test for test in finished if test.transfers == most]
    if len(longest) * SHARE_OF_LONGEST >= len(finished) and len(longest) >= LEAST_BOTH_WAYS:
        return longest, most
    return finished, min((test.transfers for test in finished), default=FEW_TRANSFERS)


def noise_of(tests: Sequence[PairTest]) -> float | None:
    """Return the spread of one rate, as a part, by the differences between both ways of each pair; None: too few."""
    both = [test.rates_gbit_s for test in tests if test.rates_gbit_s is not None]
    if len(both) < LEAST_BOTH_WAYS:
        return None
    differences = [math.log(max(forth, 1e-12) / max(back, 1e-12)) for forth, back in both]
    return MAD_TO_SIGMA * median(map(abs, differences)) / math.sqrt(2)


def _scale(middle: float, spread: float, effect: float) -> Scale:
    return Scale(middle, spread, math.log(1 - min(0.95, max(effect / 2, CUT_SPREADS * spread))))


def _with_usual(spread: float, values: int) -> float:
    """Return the spread with what is usual, which counts as much as four values: two values tell little.

    It is raised by what so few values may hide.
    """
    seen = math.sqrt((USUAL_VALUES * USUAL_SPREAD**2 + values * spread**2) / (USUAL_VALUES + values))
    return seen * math.sqrt(1 + HIDING_VALUES / values)


def log_part(rate_gbit_s: float, scale: Scale) -> float:
    """Return the natural logarithm of the rate's part of the reference: 0 for a usual one, -0.1 for 10 % less."""
    return math.log(max(rate_gbit_s, 1e-12) / scale.reference_gbit_s)
