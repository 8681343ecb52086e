"""Matchings within and across leaves, and the ratio of their rates with its interval."""

from __future__ import annotations

import pytest

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.bisection import Bisection, across, bisection_of, within
from ncclcheck.measure.matrix.leaves import Leaves

LEAVES = Leaves(((0, 1, 2), (3, 4, 5)))
FLAT = Leaves((tuple(range(6)),))


@pytest.mark.parametrize("repeat", range(4))
def test_pairs_are_disjoint_and_of_their_kind(repeat: int) -> None:
    number_of = LEAVES.number_of()
    for pairs, is_within in ((within(LEAVES, repeat), True), (across(LEAVES, repeat), False)):
        assert len({end for pair in pairs for end in pair}) == 2 * len(pairs) > 0
        assert all((number_of[first] == number_of[second]) is is_within for first, second in pairs)
    assert len(across(LEAVES, repeat)) == 3
    assert all(first < 3 <= second for first, second in across(FLAT, repeat))


def test_of_unequal_leaves_only_crossing_pairs_are_across() -> None:
    assert {second for _, second in across(Leaves(((0, 1, 2, 3), (4, 5))), 0)} == {4, 5}


def test_the_ratio_lies_in_its_interval_and_needs_repeats_of_both_kinds() -> None:
    kinds = {1: "within", 2: "across", 3: "across", 4: "across", 5: "all"}
    tests = [PairTest(1, 0, 1, 100.0, 100.0), PairTest(5, 0, 3, 1.0, 1.0)]
    tests += [PairTest(number, 0, 3, 25.0 + number / 10, 25.0) for number in (2, 3, 4)]
    found = bisection_of(LEAVES, tests, kinds)
    assert found is not None
    assert found.ratio == pytest.approx(4.0, rel=0.02)
    assert found.low < found.ratio < found.high < 4.2
    assert found.repeats == 3
    assert bisection_of(LEAVES, tests[1:], kinds) is None
    assert bisection_of(LEAVES, tests[:2], kinds) is None


def test_a_repeat_that_does_not_fit_the_leaves_does_not_count() -> None:
    kinds = {1: "within", 2: "across", 3: "across", 4: "across"}
    tests = [PairTest(1, 0, 1, 100.0, 100.0), PairTest(2, 0, 1, 100.0, 100.0)]
    tests += [PairTest(number, 0, 3, 50.0, 50.0) for number in (3, 4)]
    found = bisection_of(LEAVES, tests, kinds)
    assert found is not None
    assert found.repeats == 2
    assert found.ratio == pytest.approx(2.0)


def test_a_trunk_that_is_slow_in_one_direction_has_the_ratio_of_that_direction() -> None:
    kinds = {1: "within", 2: "across", 3: "across", 4: "across"}
    tests = [PairTest(1, 0, 1, 100.0, 100.0)]
    for number in (2, 3, 4):
        tests += [PairTest(number, 0, 3, 37.5 + number / 10, 100.0), PairTest(number, 4, 1, 99.0, 37.5)]
    found = bisection_of(LEAVES, tests, kinds)
    assert found is not None
    assert found.slow_from == 0
    assert found.ratio == pytest.approx(2.67, rel=0.02)
    assert found.across_gbit_s == pytest.approx(37.6, rel=0.02)
    assert found.back_gbit_s == pytest.approx(99.5, rel=0.01)
    turned = bisection_of(Leaves(LEAVES.groups[::-1]), tests, kinds)
    assert turned is not None
    assert turned.slow_from == 1


def test_ways_that_differ_little_are_one_figure() -> None:
    kinds = {1: "within", 2: "across", 3: "across", 4: "across"}
    tests = [PairTest(1, 0, 1, 100.0, 100.0)]
    tests += [PairTest(number, 0, 3, 45.0, 50.0 + number / 10) for number in (2, 3, 4)]
    found = bisection_of(LEAVES, tests, kinds)
    assert found is not None
    assert found.slow_from is None
    assert found.ratio == pytest.approx(2.1, rel=0.02)


def test_few_repeats_are_enough_where_the_interval_is_narrow() -> None:
    kinds = {1: "within", 2: "across", 3: "across", 4: "across"}
    within_leaves = PairTest(1, 0, 1, 100.0, 100.0)

    def measured(*across_gbit_s: float) -> Bisection:
        rates = enumerate(across_gbit_s, start=2)
        tests = [within_leaves, *(PairTest(number, 0, 3, rate, rate) for number, rate in rates)]
        found = bisection_of(LEAVES, tests, kinds)
        assert found is not None
        return found

    assert measured(50.0, 50.1, 49.9).is_enough
    assert not measured(50.0, 50.0).is_enough, "two repeats may agree by chance"
    assert not measured(50.0, 53.0, 47.0).is_enough


def test_the_interval_holds_what_the_repeats_within_vary_too() -> None:
    kinds = {1: "within", 2: "across", 3: "across", 4: "across", 5: "within"}
    tests = [PairTest(number, 0, 3, 60.0, 60.0) for number in (2, 3, 4)]
    tests += [PairTest(1, 0, 1, 100.0, 100.0), PairTest(5, 1, 2, 60.0, 60.0)]
    found = bisection_of(LEAVES, tests, kinds)
    assert found is not None
    assert found.low < 1 < found.ratio < found.high
    assert not found.is_enough
