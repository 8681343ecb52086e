"""One test of a pair of nodes, and the scale on which all tests of a run are judged."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median, stdev
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.model.benchmarks.isolation import PairOutcome

Pair: TypeAlias = tuple[int, int]  # two members, by number
MAD_TO_SIGMA = 1.4826  # of a normal distribution
LEAST_SPREAD = 0.005  # of the reference; fewer transfers than this can resolve
USUAL_SPREAD, USUAL_VALUES = 0.01, 4
HIDING_VALUES = 6  # the spread of so many values may be 1.4 times what they show
START_PERCENT = 75  # of all tests: up to so many per cent of the tests may be slow
TRIM_SPREADS, CUT_SPREADS, MOST_LOSS = 3.0, 3.5, 0.95
FEW_MEMBERS = 4
EXACT = 7.0  # spreads of a test in an effect: half of it is then 3.5 spreads from both sides
MOST_OF_ALL = 0.75  # of the nodes: a round that tests so many is one of all
LEAST_BOTH_WAYS = 8  # pairs whose differences between both ways tell the noise
FASTEST, LEAST_FASTEST = 0.25, 4  # of the rates, a part and so many at least: no shared path made these vary
_MOST_PASSES = 20


FEW_TRANSFERS, MOST_TRANSFERS = 3, 31  # of a test; more where the rates vary
MOST_ROUND_TRIPS = 1000  # of a test
FIRST_TRANSFERS = 9  # of a test as long as the spread of the rates is unknown: also at 6 % of noise it counts
OF_THE_MEAN = 1.1  # the deviation of the middle mean, times that of a transfer over the root of their number
SEEN_OF_FEW = 2.0  # standard errors by which a deviation is raised that few transfers show


class PairTest(Struct, frozen=True):
    """What one round found between `first` and `second`: the rates in both directions, in 1e9 bit/s.

    A rate is None where it was not measured; then `outcome` says why. `lone`: nothing else was measured
    meanwhile. `detail`: what an end said, where it failed. `rails`: the rates forth and back of each GPU, where
    several measured at once; the rates are then those of the slowest. `transfers`: a rate is the middle mean of so
    many, and `deviations` are the standard deviations of one of them, forth and back, as a part; 0: not known.
    `rail_shift`: GPU i of the first used GPU i + rail_shift of the second. `round_trip_us`: the shortest; 0: not known.
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
    deviations: tuple[float, float] = (0.0, 0.0)
    rail_shift: int = 0
    round_trip_us: float = 0.0

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
    A test is slow if one way is below `cut` (a natural logarithm of its part of the reference), or a lower value where
    it is shorter. `least_loss`: what counts at all, as a part.
    """

    reference_gbit_s: float
    spread: float
    cut: float
    transfers: int = FEW_TRANSFERS
    least_loss: float = 0.05

    def spread_of(self, transfers: int) -> float:
        """Return the standard deviation of tests of so many transfers."""
        return self.spread * math.sqrt(max(1.0, self.transfers / transfers))

    def least_gbit_s(self, transfers: int) -> float:
        """Return the rate below which a test of so many transfers is slow."""
        loss = min(MOST_LOSS, max(self.least_loss, CUT_SPREADS * self.spread_of(transfers)))
        return self.reference_gbit_s * (1 - loss)


def scale_of(
    values_gbit_s: Sequence[float], effect: float, noise: float | None = None, floor: float = LEAST_SPREAD
) -> Scale | None:
    """Return the scale of these rates (of all tests, both ways); None without any.

    `noise`: the spread of the rates as the difference between both ways of a pair shows it, which faults of whole nodes
    do not raise; without it the rates themselves tell. `floor`: the spread is that at least.

    The slow ones must not shift it: it starts at a value that up to three quarters of the tests may lie below, and
    drops what lies further below the median of the rest than half of `effect`, or three spreads. The spread of all
    tests would grow with the faults and hide them.
    """
    if not values_gbit_s:
        return None
    ordered = sorted(values_gbit_s)
    middle = ordered[min(len(ordered) - 1, math.ceil(START_PERCENT / 100 * len(ordered)) - 1)]
    spread = max(floor, noise or 0.0)
    for _ in range(_MOST_PASSES):
        limit = middle * (1 - max(effect / 2, TRIM_SPREADS * spread))
        within = [value for value in ordered if value >= limit]
        before, middle = middle, median(within)
        seen = MAD_TO_SIGMA * median(abs(value / middle - 1) for value in within) if noise is None else noise
        spread = max(floor, _with_usual(seen, len(within)))
        if middle == before:
            break
    return _scale(middle, spread, effect)


def most_telling(tests: Sequence[PairTest]) -> tuple[Sequence[PairTest], int]:
    """Return the longest tests of rounds of all nodes, and the median of their transfers.

    The tests of other rounds are those of the suspects.
    """
    finished = [test for test in tests if test.rates_gbit_s is not None]
    if not finished:
        return finished, FEW_TRANSFERS
    ends = {end for test in finished for end in test.pair}
    pairs = Counter(test.round for test in finished)
    of_all = [test for test in finished if pairs[test.round] >= MOST_OF_ALL * (len(ends) // 2)] or finished
    most = max(test.transfers for test in of_all)
    longest = [test for test in of_all if 2 * test.transfers > most]
    return longest, int(median(test.transfers for test in longest))


def middle_mean(values: Sequence[float]) -> float:
    """Return the mean of the middle half: nearly as exact as the mean, and no single disturbed value shifts it."""
    ordered = sorted(values)
    outside = max(1, len(ordered) // 4) if len(ordered) > 2 else 0  # noqa: PLR2004 (of two none is in the middle)
    return fmean(ordered[outside : len(ordered) - outside])


def deviation_of(seconds: Sequence[float]) -> float:
    """Return the standard deviation of one of these times, as a part; 0 where there is only one."""
    return stdev(math.log(max(value, 1e-12)) for value in seconds) if len(seconds) > 1 else 0.0


def transfers_for(effect: float, members: int, tests: Sequence[PairTest]) -> int:
    """Return of how many transfers a test has to be, so that its spread is small against the effect."""
    telling, transfers = most_telling(tests)
    noise = noise_of(telling, transfers)
    if noise is None:
        return FIRST_TRANSFERS
    values = 2 * len(telling)
    upper = noise * math.sqrt(1 + SEEN_OF_FEW * math.sqrt(2 / values))
    needed = math.ceil(transfers * (upper * EXACT / effect) ** 2)
    before = max(test.transfers for test in tests) if members <= FEW_MEMBERS else FEW_TRANSFERS
    return max(FEW_TRANSFERS, before, min(MOST_TRANSFERS, needed))


def noise_of(tests: Sequence[PairTest], transfers: int) -> float | None:
    """Return the spread of one rate, as a part, if tests have so many transfers.

    It is that of the transfers of each test: more of them help against nothing else. Where that was not measured it is
    the one between both ways of each pair, which nodes that are slow one way raise; None: not known.
    """
    return noise_within(tests, transfers) or noise_between(tests, transfers)


def noise_between(tests: Sequence[PairTest], transfers: int) -> float | None:
    """Return that spread by the differences between both ways of each pair; None of too few."""
    both = [(test.rates_gbit_s, test.transfers) for test in tests if test.rates_gbit_s is not None]
    if len(both) < LEAST_BOTH_WAYS:
        return None
    differences = [
        abs(math.log(max(rates[0], 1e-12) / max(rates[1], 1e-12))) * math.sqrt(transfers_of_test / transfers)
        for rates, transfers_of_test in both
    ]
    return MAD_TO_SIGMA * median(differences) / math.sqrt(2)


def noise_within(tests: Sequence[PairTest], transfers: int) -> float | None:
    """Return that spread by the deviations of the transfers: the median, which a disturbance does not raise.

    Only the fastest rates count: where many pairs share a path, their rates vary because they do. Of so few
    values the median of variances is below the mean: a chi-squared distribution is not symmetric (Wilson and Hilferty,
    1931).
    """
    spreads = [
        (rate, deviation**2 / (1 - 2 / (9 * (test.transfers - 1))) ** 3)
        for test in tests
        for rate, deviation in zip(test.rates_gbit_s or (), test.deviations, strict=False)
        if deviation and test.transfers > 1
    ]
    fastest = sorted(spreads, reverse=True)[: max(LEAST_FASTEST, math.ceil(len(spreads) * FASTEST))]
    return (
        OF_THE_MEAN * math.sqrt(median(variance for _, variance in fastest) / transfers) if fastest else None
    )


def _scale(middle: float, spread: float, effect: float) -> Scale:
    loss = min(MOST_LOSS, max(effect / 2, CUT_SPREADS * spread))
    return Scale(middle, spread, math.log(1 - loss), least_loss=effect / 2)


def _with_usual(spread: float, values: int) -> float:
    """Return the spread with what is usual, which counts as much as four values: two values tell little.

    It is raised by what so few values may hide.
    """
    seen = math.sqrt((USUAL_VALUES * USUAL_SPREAD**2 + values * spread**2) / (USUAL_VALUES + values))
    return seen * math.sqrt(1 + HIDING_VALUES / values)


def log_part(rate_gbit_s: float, scale: Scale) -> float:
    """Return the natural logarithm of the rate's part of the reference: 0 for a usual one, -0.1 for 10 % less."""
    return math.log(max(rate_gbit_s, 1e-12) / scale.reference_gbit_s)
