"""The partition of the nodes that explains which tests were slow."""

from __future__ import annotations

from itertools import combinations

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.cells import CellScale
from ncclcheck.measure.matrix.leaves import leaves_of

SCALE = CellScale(100.0, 0.01)


def all_pairs(leaf_of: dict[int, int], *slow: tuple[int, int]) -> list[PairTest]:
    crossing = [pair for pair in combinations(leaf_of, 2) if leaf_of[pair[0]] != leaf_of[pair[1]]]
    rates = {pair: 40.0 if pair in crossing or pair in slow else 100.0 for pair in combinations(leaf_of, 2)}
    return [PairTest(1, *pair, rate, rate) for pair, rate in rates.items()]


def test_leaves_of_any_size_and_order_are_found() -> None:
    leaf_of = {member: (0, 1, 0, 2, 2, 1, 0, 0, 2)[member] for member in range(9)}
    found = leaves_of(tuple(leaf_of), all_pairs(leaf_of), SCALE)
    assert found.groups == ((0, 2, 6, 7), (3, 4, 8), (1, 5))
    assert (found.apart, found.crossing_slow, found.is_flat) == ((), 1.0, False)
    assert found.order == (0, 2, 6, 7, 3, 4, 8, 1, 5)
    assert found.number_of()[4] == 1


def test_one_slow_path_is_no_leaf() -> None:
    flat = dict.fromkeys(range(8), 0)
    found = leaves_of(tuple(flat), all_pairs(flat, (2, 5)), SCALE)
    assert found.groups == (tuple(range(8)),)
    assert found.is_flat


def test_a_node_that_is_slow_with_all_is_apart_and_no_leaf() -> None:
    found = leaves_of(tuple(range(8)), all_pairs({**dict.fromkeys(range(8), 0), 3: 1}), SCALE)
    assert (found.groups, found.apart) == (((0, 1, 2, 4, 5, 6, 7),), (3,))
    assert found.is_flat
