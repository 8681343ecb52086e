"""The scale: what a sound pair reaches, whatever the slow ones do."""

from __future__ import annotations

import pytest

from ncclcheck.measure.isolation.pair_tests import PairTest, log_part, scale_of


@pytest.mark.parametrize("slow", [0, 4, 11])
def test_slow_pairs_do_not_shift_the_reference(slow: int) -> None:
    sound = [100.0 + place / 10 for place in range(-8, 8)]
    scale = scale_of([*sound, *[50.0] * slow], 0.1)
    assert scale is not None
    assert 99 <= scale.reference_gbit_s <= 101
    assert log_part(50.0, scale) < scale.cut < log_part(97.0, scale)


def test_without_a_rate_there_is_no_scale() -> None:
    assert scale_of([], 0.1) is None


def test_a_test_knows_its_ends_and_their_rates() -> None:
    test = PairTest(1, 7, 3, 90.0, 80.0)
    assert test.pair == (3, 7)
    assert test.rates_of(7) == (90.0, 80.0)
    assert test.rates_of(3) == (80.0, 90.0)
    assert PairTest(1, 7, 3, 90.0, 80.0, "hang").rates_gbit_s is None
