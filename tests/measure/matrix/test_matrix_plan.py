"""The rounds of matrix in fabrics with noise and disturbances: leaves, flat, the ratio, slow paths and nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import pytest

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.matrix_plan import (
    MOST_UNIT_ROUNDS,
    conclude_matrix,
    matrix_plan,
    next_matrix_round,
)
from ncclcheck.measure.matrix.slow_cells import OpenCell
from ncclcheck.measure.matrix.tournament import tournament_rounds
from tests.further import mostly_further
from tests.measure.matrix.fabric import Fabric, play, true_leaves

pytestmark = pytest.mark.slow
SEEDS = range(5)


@pytest.mark.parametrize(
    "fabric",
    mostly_further(
        [
            Fabric((4, 4), 4),
            Fabric((4, 4), 2),
            Fabric((8, 8), 4, shuffled=True),
            Fabric((8, 8), 2, noise=0.04),
            Fabric((5, 3, 8), 4),
            Fabric((8, 8, 8, 8), 4),
            Fabric((16,) * 8, 4, disturbed=0.02),
            Fabric((16,) * 8, 2),
        ],
        4,
    ),  # mark.further
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


@pytest.mark.parametrize("fabric", [Fabric((32,) * 4, 4, shuffled=True), Fabric((64,) * 2, 4, shuffled=True)])
def test_names_that_say_nothing_of_the_switches_hide_no_leaves(fabric: Fabric) -> None:
    for seed in range(2):
        played = play(fabric, seed)
        assert played.leaves() == true_leaves(fabric, seed)
        assert played.found.bisection is not None
        assert played.found.bisection.ratio == pytest.approx(4.0, rel=0.1)


@pytest.mark.parametrize(
    "fabric", mostly_further([Fabric((8,), noise=0.04), Fabric((128,)), Fabric((15,)), Fabric((16,))], 2)
)
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


def test_a_path_that_is_slow_in_one_of_its_repeats_stays_open() -> None:
    plan, tests = matrix_plan(range(6)), list[PairTest]()
    while (planned := next_matrix_round(plan, range(6), tests)).pairs:
        repeats = sum(test.pair == (2, 4) and plan.kinds[test.round] == "again" for test in tests)
        tests += [
            PairTest(planned.number, *pair, 50.0 if pair == (2, 4) and repeats == 0 else 100.0, 100.0)
            for pair in planned.pairs
        ]
    found = conclude_matrix(plan, range(6), tests)
    assert found is not None
    assert found.cells == ()
    assert found.open_cells == (OpenCell(2, 4, 2, 3),)


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


def met(nodes: int, members_of: Callable[[int], Sequence[int]]) -> tuple[set[tuple[int, int]], int]:
    """The pairs that meet in rounds of all pairs, and how many rounds that takes; `members_of` a round."""
    plan, tests = matrix_plan(range(nodes)), list[PairTest]()
    for number in range(1, 100):
        planned = next_matrix_round(plan, members_of(number), tests)
        if not planned.pairs:
            break
        tests += [PairTest(planned.number, *pair, 10.0, 10.0) for pair in planned.pairs]
    rounds = {number for number, kind in plan.kinds.items() if kind == "all"}
    return {test.pair for test in tests if test.round in rounds}, len(rounds)


@pytest.mark.parametrize("nodes", range(2, 9))
def test_all_pairs_of_the_nodes_that_are_left_meet_whoever_was_lost_at_the_start(nodes: int) -> None:
    for left in range(2, nodes + 1):
        for members in combinations(range(nodes), left):
            pairs, rounds = met(nodes, lambda _, members=members: members)  # type: ignore[misc]
            assert pairs == set(combinations(members, 2))
            assert rounds <= tournament_rounds(nodes)


def test_what_a_node_missed_while_it_was_silent_is_made_up() -> None:
    pairs, rounds = met(8, lambda number: [0, 1, 3, 4, 5, 6, 7] if number in (2, 3) else range(8))
    assert pairs == set(combinations(range(8), 2))
    assert rounds == 9


def test_a_node_that_is_often_silent_does_not_keep_the_rounds_going() -> None:
    _, rounds = met(6, lambda number: range(6) if number % 2 else range(5))
    assert rounds <= 2 * tournament_rounds(6)


def test_rounds_that_ran_out_before_the_leaves_were_known_are_not_decided() -> None:
    plan = matrix_plan(range(70))
    tests = [PairTest(1, *pair, 10.0, 10.0) for pair in next_matrix_round(plan, range(70), []).pairs]
    found = conclude_matrix(plan, range(70), tests)
    assert found is not None
    assert found.is_decided
    plan.kinds.update(dict.fromkeys(range(1, MOST_UNIT_ROUNDS + 1), "units"))
    exhausted = conclude_matrix(plan, range(70), tests)
    assert exhausted is not None
    assert not exhausted.is_decided
