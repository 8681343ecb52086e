"""The rounds of matrix in fabrics with noise and disturbances: leaves, flat, the ratio, slow paths and nodes."""

from __future__ import annotations

import pytest

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.matrix_plan import conclude_matrix, matrix_plan, next_matrix_round
from tests.measure.matrix.fabric import Fabric, play, true_leaves

pytestmark = pytest.mark.slow
SEEDS = range(5)


@pytest.mark.parametrize(
    "fabric",
    [
        Fabric((4, 4), 4),
        Fabric((4, 4), 2),
        Fabric((8, 8), 4, shuffled=True),
        Fabric((8, 8), 2, noise=0.04),
        Fabric((5, 3, 8), 4),
        Fabric((8, 8, 8, 8), 4),
        Fabric((16,) * 8, 2),
        Fabric((16,) * 8, 4, disturbed=0.02),
    ],
)
def test_leaves_are_right_and_the_ratio_is_within_a_tenth(fabric: Fabric) -> None:
    for seed in SEEDS:
        played = play(fabric, seed)
        assert played.leaves() == true_leaves(fabric, seed)
        bisection = played.found.bisection
        assert bisection is not None
        assert bisection.ratio == pytest.approx(fabric.oversubscribed, rel=0.1)
        assert not played.found.rows
        assert not played.found.cells


@pytest.mark.parametrize("fabric", [Fabric((8,), noise=0.04), Fabric((15,)), Fabric((16,)), Fabric((128,))])
def test_a_flat_network_is_flat(fabric: Fabric) -> None:
    for seed in SEEDS:
        played = play(fabric, seed)
        assert played.found.leaves.is_flat
        assert played.found.leaves.apart == ()
        assert played.found.bisection is not None
        assert played.found.bisection.ratio == pytest.approx(1.0, rel=0.1)
        assert not played.found.cells


@pytest.mark.parametrize("leaves", [(16,), (8, 8)])
def test_one_slow_path_of_120_pairs_is_named_with_its_direction(leaves: tuple[int, ...]) -> None:
    for seed in SEEDS:
        played = play(Fabric(leaves, 4, slow={(5, 3): 0.6}), seed)
        assert [(cell.source, cell.target) for cell in played.found.cells] == [(5, 3)]
        assert played.rounds <= 30


def test_a_slow_path_of_few_nodes_is_no_leaf_however_often_it_was_slow() -> None:
    for seed in range(20):
        played = play(Fabric((8,), slow={(5, 1): 0.5}), seed)
        assert played.found.leaves.is_flat
        assert [(cell.source, cell.target) for cell in played.found.cells] == [(5, 1)]


def test_a_node_that_sends_slowly_is_named_instead_of_its_paths() -> None:
    for seed in SEEDS:
        found = play(Fabric((16,), sends={6: 0.6}), seed).found
        assert [(row.member, row.sends, row.receives) for row in found.rows] == [(6, True, False)]
        assert found.leaves.is_flat
        assert found.cells == ()


def test_a_node_that_is_gone_is_asked_no_more_and_two_nodes_end() -> None:
    plan = matrix_plan(range(6))
    tests = [PairTest(1, *pair, 10.0, 10.0) for pair in next_matrix_round(plan, range(6), []).pairs]
    later = next_matrix_round(plan, (0, 1, 2, 4, 5), tests)
    assert later.number == 2
    assert all(3 not in pair for pair in later.pairs)
    assert next_matrix_round(plan, (2,), tests).pairs == ()
    assert conclude_matrix(plan, range(6), []) is None
    two = matrix_plan(range(2))
    assert next_matrix_round(two, range(2), []).pairs == ((0, 1),)
    assert next_matrix_round(two, range(2), [PairTest(1, 0, 1, 10.0, 10.0)]).pairs == ()
