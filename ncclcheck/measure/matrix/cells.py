"""What a test of a pair says against the rate that pairs behind one switch reach."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean, median

from msgspec import Struct

from ncclcheck.measure.isolation.pair_tests import LEAST_SPREAD, Pair, PairTest, noise_between

LEAST_GAP = 0.15  # a smaller loss is no structure that a job could feel
GAP_SPREADS = 4.0
TOP_VALUES, TOP_SHARE = (
    4,
    1000,
)  # the search for the usual rate starts at so many of the highest, or one of so many
FEW_NODES = 4
_PASSES = 20


class CellScale(Struct, frozen=True):
    """What a pair behind one switch reaches, in 1e9 bit/s, and the spread of it, as a part."""

    reference_gbit_s: float
    spread: float

    @property
    def gap(self) -> float:
        """The least loss that counts, as a part."""
        return min(0.6, max(LEAST_GAP, GAP_SPREADS * self.spread))

    @property
    def cut_gbit_s(self) -> float:
        """The rate below which a cell is slow."""
        return self.reference_gbit_s * (1 - self.gap)

    def is_slow(self, test: PairTest) -> bool:
        """Return whether one of both ways is slow, or the test did not finish."""
        rates = test.rates_gbit_s
        return rates is None or min(rates) < self.cut_gbit_s


def is_few(members: Collection[int]) -> bool:
    """Return whether so few nodes have too few cells to tell the spread of their rates."""
    return len(members) <= FEW_NODES


def rates_by_path(tests: Sequence[PairTest]) -> Mapping[Pair, list[float | None]]:
    """Return the rates of each path, from one node to another; None where a test did not finish."""
    paths: defaultdict[Pair, list[float | None]] = defaultdict(list)
    for test in tests:
        rates = test.rates_gbit_s or (None, None)
        paths[test.first, test.second].append(rates[0])
        paths[test.second, test.first].append(rates[1])
    return paths


def spread_of_repeats(paths: Iterable[Sequence[float]]) -> float:
    """Return the standard deviation of a test by the distances from the mean of its path (natural logarithms)."""
    repeated = [values for values in paths if len(values) > 1]
    if not repeated:
        return LEAST_SPREAD
    squares = sum((value - fmean(values)) ** 2 for values in repeated for value in values)
    return max(LEAST_SPREAD, math.sqrt(squares / sum(len(values) - 1 for values in repeated)))


def cell_scale(tests: Sequence[PairTest]) -> CellScale | None:
    """Return the scale of these tests; None where none finished.

    Most pairs may cross a slow trunk. So the search starts near the highest rates and takes the median of what lies
    around it, again and again, until it stays. Of few nodes, which are seldom measured at the same time, the repeats of
    each path tell the spread as well.
    """
    rates = sorted(rate for test in tests for rate in test.rates_gbit_s or ())
    if not rates:
        return None
    spread = max(LEAST_SPREAD, noise_between(tests, min(test.transfers for test in tests)) or 0.0)
    if is_few({end for test in tests for end in test.pair}):
        logs = ([math.log(rate) for rate in repeats if rate] for repeats in rates_by_path(tests).values())
        spread = max(spread, spread_of_repeats(logs))
    window = max(LEAST_GAP, GAP_SPREADS * spread)
    middle = rates[max(0, len(rates) - max(TOP_VALUES, len(rates) // TOP_SHARE))]
    for _ in range(_PASSES):
        within = [rate for rate in rates if abs(rate / middle - 1) <= window]
        before, middle = middle, median(within)
        if middle == before:
            break
    return CellScale(middle, spread)
