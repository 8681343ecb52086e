"""The scale of the cells: the rate behind one switch, also where most pairs cross a slow trunk."""

from __future__ import annotations

import pytest

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.cells import LEAST_GAP, cell_scale


def test_the_usual_rate_is_that_of_the_fast_pairs_though_they_are_few() -> None:
    tests = [PairTest(1, 0, number, 25.0, 25.5) for number in range(1, 40)]
    tests += [PairTest(2, 1, number, 100.0 + number / 10, 99.0) for number in range(2, 6)]
    scale = cell_scale(tests)
    assert scale is not None
    assert scale.reference_gbit_s == pytest.approx(100.0, rel=0.02)
    assert scale.is_slow(tests[0])
    assert not scale.is_slow(tests[-1])
    assert scale.is_slow(PairTest(3, 0, 1, 100.0, 80.0))


def test_a_test_that_did_not_finish_is_slow_and_none_gives_no_scale() -> None:
    hung = PairTest(1, 0, 1, outcome="hang")
    assert cell_scale([hung]) is None
    scale = cell_scale([hung, PairTest(1, 2, 3, 10.0, 10.0)])
    assert scale is not None
    assert scale.is_slow(hung)
    assert scale.gap == LEAST_GAP
