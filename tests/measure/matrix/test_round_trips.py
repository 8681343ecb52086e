"""Round trips: their medians, and groups of near nodes only where they are clear."""

from __future__ import annotations

from itertools import combinations

import pytest

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.leaves import Leaves
from ncclcheck.measure.matrix.round_trips import near_groups, round_trips


def trips(members: int, near: float, far: float, leaf: int) -> dict[tuple[int, int], float]:
    """Recorded-like round trips: nodes of a leaf are near, with a few per cent of noise."""
    return {
        (first, second): (near if first // leaf == second // leaf else far)
        * (1 + 0.02 * ((7 * first + 3 * second) % 5 - 2))
        for first, second in combinations(range(members), 2)
    }


def test_two_classes_that_agree_are_groups() -> None:
    assert near_groups(range(8), trips(8, 5.0, 8.0, 4)) == ((0, 1, 2, 3), (4, 5, 6, 7))


@pytest.mark.parametrize(
    "found",
    [trips(8, 5.0, 5.0, 4), trips(8, 5.0, 5.3, 4), trips(3, 5.0, 9.0, 2), {}],
    ids=["one class", "within the noise", "too few", "none"],
)
def test_without_two_clear_classes_there_is_no_group(found: dict[tuple[int, int], float]) -> None:
    assert near_groups(range(8), found) == ()


def test_a_slow_node_or_pairs_that_were_not_measured_are_no_groups() -> None:
    of_one = {pair: 50.0 if 3 in pair else 5.0 + 0.01 * sum(pair) for pair in combinations(range(8), 2)}
    found = near_groups(range(8), of_one)
    assert found in (((0, 1, 2, 4, 5, 6, 7), (3,)), ())
    few = dict(list(trips(8, 5.0, 8.0, 4).items())[:20])
    assert near_groups(range(8), few) == ()


def test_the_shortest_of_each_pair_counts_within_and_across_leaves() -> None:
    tests = [PairTest(1, 0, 1, 9.0, 9.0, round_trip_us=7.0), PairTest(2, 1, 0, 9.0, 9.0, round_trip_us=5.0)]
    tests += [PairTest(1, 2, 0, 9.0, 9.0, round_trip_us=11.0), PairTest(3, 1, 2, 9.0, 9.0)]
    found = round_trips(Leaves(((0, 1), (2,))), tests)
    assert found is not None
    assert (found.median_us, found.within_us, found.across_us) == (8.0, 5.0, 11.0)
    assert round_trips(Leaves(((0, 1),)), [PairTest(1, 0, 1, 9.0, 9.0)]) is None
