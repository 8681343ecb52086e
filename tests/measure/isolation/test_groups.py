"""Groups: bad tests across, good ones inside."""

from __future__ import annotations

from itertools import combinations

from ncclcheck.measure.isolation.evidence import standing_of
from ncclcheck.measure.isolation.groups import components, is_split, two_sides
from ncclcheck.measure.isolation.pair_tests import PairTest

LEFT, RIGHT = range(4), range(4, 8)


def both_sides_tested() -> list[PairTest]:
    return [
        PairTest(1, first, second, *((100.0, 100.0) if (first in LEFT) == (second in LEFT) else (40.0, 40.0)))
        for first, second in combinations(range(8), 2)
    ]


def test_components_are_connected_and_the_largest_comes_first() -> None:
    assert components(range(6), [(0, 1), (1, 2), (4, 5)]) == [[0, 1, 2], [4, 5], [3]]


def test_two_sides_are_found_from_their_tests() -> None:
    tests = both_sides_tested()
    standing = standing_of(range(8), tests, 0.1)
    assert is_split(tests, standing)
    sides = two_sides(range(8), tests, standing)
    assert sides is not None
    assert {frozenset(side) for side in sides} == {frozenset(LEFT), frozenset(RIGHT)}


def test_a_bad_node_is_no_side() -> None:
    tests = [
        PairTest(1, first, second, *((40.0, 40.0) if 0 in (first, second) else (100.0, 100.0)))
        for first, second in combinations(range(8), 2)
    ]
    standing = standing_of(range(8), tests, 0.1)
    assert not is_split(tests, standing)
    assert two_sides(range(8), tests, standing) is None
