"""The shift of paired differences and its exact interval."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from ncclcheck.measure.trials.signed_rank import estimate, least_rounds, shift_of


def test_the_interval_is_of_wilcoxons_table() -> None:
    """n = 10, 95 %: the 9th smallest and largest of the 55 averages (Conover, table A12: w(0.025) = 9)."""
    differences = [float(number) for number in range(1, 11)]
    averages = sorted((a + b) / 2 for i, a in enumerate(differences) for b in differences[i:])
    found = shift_of(differences, 0.05)
    assert found is not None
    assert (found.low, found.middle, found.high) == (averages[8], 5.5, averages[-9])


def test_too_few_differences_have_no_interval() -> None:
    assert shift_of([1.0] * 5, 0.05) is None
    assert shift_of([1.0] * 6, 0.05) is not None
    assert least_rounds(0.05) == 6
    assert least_rounds(0.001) == 11
    assert shift_of([], 0.05) is None


def test_the_interval_misses_0_exactly_as_often_as_is_said() -> None:
    """Of all signs of eight sizes: each is as likely where nothing differs."""
    sizes = [1.0, 2.5, 3.1, 4.9, 5.2, 6.7, 8.3, 9.8]
    missed = 0
    for signs in product((1, -1), repeat=8):
        found = shift_of([sign * size for sign, size in zip(signs, sizes, strict=True)], 0.05)
        missed += found is not None and not found.low <= 0 <= found.high
    assert 0.02 < missed / 2**8 <= 0.05


@pytest.mark.parametrize("count", [6, 9, 24])
def test_the_estimate_lies_in_the_interval_and_is_the_same_alone(count: int) -> None:
    random = Random(count)  # noqa: S311 (a sample, no secret)
    differences = [random.gauss(0.1, 0.03) for _ in range(count)]
    found = shift_of(differences, 0.05)
    assert found is not None
    assert found.low <= found.middle <= found.high
    assert found.middle == estimate(differences)
