"""Paths of a few nodes: a slow one is named, and the noise of busy machines names nobody."""

from __future__ import annotations

import pytest

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.few_cells import LEAST_TURNS, MOST_TURNS, Level, levels_of, turn_again
from ncclcheck.measure.matrix.leaves import Leaves
from tests.measure.matrix.fabric import Fabric, play

THREE = Leaves(((0, 1, 2),))
SEEDS = range(12)
TIMES = (1.0, 0.4, 0.9, 0.3)  # what busy cores leave in the rounds


def _tests(*slow: tuple[int, int], times: tuple[float, ...] = TIMES) -> list[PairTest]:
    pairs = ((0, 1), (0, 2), (1, 2))
    return [
        PairTest(
            3 * number + place + 1,
            *pair,
            left * (40.0 if pair in slow else 100.0),
            left * (40.0 if pair[::-1] in slow else 100.0),
        )
        for number, left in enumerate(times)
        for place, pair in enumerate(pairs)
    ]


@pytest.mark.parametrize("nodes", [2, 3, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_slow_path_is_named_with_its_direction(nodes: int, seed: int) -> None:
    found = play(Fabric((nodes,), slow={(1, 0): 0.5}), seed).found
    assert [(cell.source, cell.target) for cell in found.cells] == [(1, 0)]
    assert found.cells[0].part == pytest.approx(0.5, rel=0.1)


@pytest.mark.parametrize("nodes", [2, 3, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_busy_machines_name_no_path_and_no_node(nodes: int, seed: int) -> None:
    found = play(Fabric((nodes,), noise=0.1, busy=0.3), seed).found
    assert (found.cells, found.rows) == ((), ())


def test_of_three_healthy_nodes_nothing_is_measured_again() -> None:
    assert sum(play(Fabric((3,), disturbed=0.0), seed).rounds for seed in SEEDS) == 3 * len(SEEDS)


def test_the_spread_of_the_repeats_says_what_is_no_chance() -> None:
    level = levels_of(_tests((0, 2)), THREE)[0, 2]
    assert level is not None
    assert level.is_low
    assert not level.is_slow, "machines that lose up to 70 % themselves"
    level = levels_of(_tests((0, 2), times=(1.0, 0.99, 0.98, 1.0)), THREE)[0, 2]
    assert level is not None
    assert level.is_slow
    assert level.slow == level.tests == 4


def test_what_did_not_finish_has_no_level() -> None:
    levels = levels_of([*_tests(), PairTest(99, 1, 2, outcome="hang")], THREE)
    assert levels[1, 2] is levels[2, 1] is None
    assert levels[0, 1] is not None


def test_turns_are_ended_and_end_when_nothing_is_doubtful() -> None:
    order = (0, 1, 2)
    usual, doubtful, slow = (
        Level(100.0, 100.0, 0.2, 0, 4),
        Level(50.0, 100.0, 0.9, 4, 4),
        Level(50.0, 100.0, 0.2, 4, 4),
    )
    assert turn_again(order, {(0, 1): usual}, 0) == ()
    assert len(turn_again(order, {(0, 1): usual}, 1)) == 1, "the turn is ended"
    assert turn_again(order, {(0, 1): slow}, 3 * LEAST_TURNS - 3)
    assert turn_again(order, {(0, 1): slow}, 3 * LEAST_TURNS) == ()
    assert turn_again(order, {(0, 1): doubtful}, 3 * LEAST_TURNS)
    assert turn_again(order, {(0, 1): doubtful}, 3 * MOST_TURNS) == ()
