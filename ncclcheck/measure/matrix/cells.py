"""What a test of a pair says against the rate that pairs behind one switch reach."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from ncclcheck.measure.isolation.pair_tests import LEAST_SPREAD, PairTest, noise_between

LEAST_GAP = 0.15  # a smaller loss is no structure that a job could feel
GAP_SPREADS = 4.0
TOP_VALUES, TOP_SHARE = (
    4,
    1000,
)  # the search for the usual rate starts at so many of the highest, or one of so many
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


def cell_scale(tests: Sequence[PairTest]) -> CellScale | None:
    """Return the scale of these tests; None where none finished.

    Most pairs may cross a slow trunk. So the search starts near the highest rates and takes the median of what lies
    around it, again and again, until it stays.
    """
    rates = sorted(rate for test in tests for rate in test.rates_gbit_s or ())
    if not rates:
        return None
    spread = max(LEAST_SPREAD, noise_between(tests, min(test.transfers for test in tests)) or 0.0)
    window = max(LEAST_GAP, GAP_SPREADS * spread)
    middle = rates[max(0, len(rates) - max(TOP_VALUES, len(rates) // TOP_SHARE))]
    for _ in range(_PASSES):
        within = [rate for rate in rates if abs(rate / middle - 1) <= window]
        before, middle = middle, median(within)
        if middle == before:
            break
    return CellScale(middle, spread)
