"""Groups: bad tests across, good ones inside."""

from __future__ import annotations

from itertools import combinations

import pytest

from ncclcheck.measure.isolation.common_paths import components, is_split, joined_twice, two_sides
from ncclcheck.measure.isolation.evidence import standing_of
from ncclcheck.measure.isolation.pair_tests import PairTest
from tests.measure.isolation.scripted_world import Outcome, World, judged

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


def test_a_part_that_one_test_alone_joins_is_apart() -> None:
    two_rings = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
    assert sorted(joined_twice(range(7), two_rings)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert [0, 1, 2, 3, 4, 5] in joined_twice(range(7), [*two_rings, (0, 5)])


def test_a_pair_that_has_the_shared_path_for_itself_does_not_tell_sides_apart() -> None:
    """In each round one pair crosses the other way, alone, and is good."""
    tests = []
    for number in range(4):
        near, far = (tuple((member + number) % 4 + first for member in range(4)) for first in (0, 4))
        across = [(near[0], far[1]), (near[1], far[3])]
        tests += [PairTest(2 * number, *pair, 50.0, 50.0) for pair in across]
        tests += [PairTest(2 * number, far[0], near[2], 100.0, 100.0)]
        inside = [(near[0], near[1]), (near[2], near[3]), (far[0], far[1]), (far[2], far[3])]
        tests += [PairTest(2 * number + 1, *pair, 100.0, 100.0) for pair in inside]
    sides = two_sides(range(8), tests, standing_of(range(8), tests, 0.1))
    assert sides is not None
    assert {frozenset(side) for side in sides} == {frozenset(LEFT), frozenset(RIGHT)}


@pytest.mark.parametrize("is_scattered", [False, True])
def test_halves_behind_a_path_that_pairs_share_by_direction_are_told_apart(is_scattered: bool) -> None:
    """Before, a node in 60 was in the wrong half, and in the lab three runs of six told nothing."""
    world = World(16, trunk=8, is_scattered=is_scattered, noise=0.03, disturbed=0.01)
    runs: list[Outcome] = [judged(world, seed) for seed in range(50)]
    assert [run for run in runs if run.false] == []
    assert sum(run.found for run in runs) >= 48  # in the others no two pairs used it at the same time
    assert sorted(run.rounds for run in runs)[len(runs) // 2] <= 5
