"""Leaves of many nodes: neighbours first, then unit against unit, always with the trunks loaded."""

from __future__ import annotations

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.cells import CellScale
from ncclcheck.measure.matrix.units import (
    NEIGHBOUR_ROUNDS,
    leaves_of_units,
    neighbour_round,
    unit_round,
    units_of,
)

SCALE = CellScale(100.0, 0.01)


def test_every_pair_of_neighbours_is_tested_twice_while_three_quarters_of_the_nodes_load_the_trunks() -> None:
    order = range(100)
    rounds = [neighbour_round(order, number) for number in range(NEIGHBOUR_ROUNDS)]
    for pairs in rounds:
        assert len({end for pair in pairs for end in pair}) == 100
        assert sum(abs(second - first) > 1 for first, second in pairs) >= 36
    probes = [pair for pairs in rounds for pair in pairs if pair[1] == pair[0] + 1]
    assert sorted(set(probes)) == [(member, member + 1) for member in range(99)]
    assert min(probes.count(pair) for pair in set(probes)) == 2


def test_two_fast_tests_make_one_unit_and_one_does_not() -> None:
    fast = PairTest(1, 0, 1, 100.0, 100.0)
    assert units_of(range(3), [fast], SCALE) == [[0], [1], [2]]
    assert units_of(range(3), [fast, fast], SCALE) == [[0, 1], [2]]
    slow = PairTest(1, 1, 2, 30.0, 30.0)
    leaves = leaves_of_units(range(4), [fast, fast, slow, PairTest(1, 2, 3, 100.0, 100.0)] * 2, SCALE)
    assert leaves.groups == ((0, 1), (2, 3))
    assert leaves.crossing_slow == 1.0


def test_disturbed_tests_are_repeated_and_three_slow_ones_decide() -> None:
    pair = [PairTest(1, 0, 1, 100.0, 100.0)] * 2 + [PairTest(1, 2, 3, 100.0, 100.0)] * 2
    slow, fast = PairTest(1, 1, 2, 30.0, 30.0), PairTest(1, 1, 2, 100.0, 100.0)
    assert unit_round(range(4), [*pair, slow, fast], SCALE)
    assert unit_round(range(4), [*pair, slow, slow], SCALE)
    assert not unit_round(range(4), [*pair, slow, slow, slow], SCALE)


def test_slow_pairs_are_kept_as_load_and_the_others_are_paired_anew() -> None:
    slow = [PairTest(1, first, 79 - first, 60.0, 60.0) for first in range(20)]
    fast = [PairTest(1, first, 79 - first, 100.0, 100.0) for first in range(20, 40)]
    pairs = neighbour_round(range(80), 0, [*slow, *fast])
    busy = {end for pair in neighbour_round(range(80), 0)[:10] for end in pair}
    kept = [test.pair for test in slow if busy.isdisjoint(test.pair)]
    assert 0 < sum(pair in pairs for pair in kept) <= 10  # a quarter of the nodes
    assert not any(test.pair in pairs for test in fast)


def test_a_node_in_the_wrong_unit_is_moved_by_all_of_its_tests() -> None:
    near = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)]
    tests = [PairTest(1, *pair, 100.0, 100.0) for pair in near] * 2
    tests += [PairTest(1, first, second, 40.0, 40.0) for first in range(3) for second in range(3, 6)]
    tests += [PairTest(1, 2, 3, 100.0, 100.0)] * 2
    assert {frozenset(group) for group in leaves_of_units(range(6), tests, SCALE).groups} == {
        frozenset({0, 1, 2}),
        frozenset({3, 4, 5}),
    }
