"""Two members: the slow direction is named, beyond chance, and neither of them is blamed."""

from __future__ import annotations

import pytest

from ncclcheck.measure.isolation.conclusion import conclude
from ncclcheck.measure.isolation.next_round import Plan
from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.isolation.two_members import two_members
from tests.measure.isolation.scripted_world import World, play

RUNS = 300


def repeated(forth: float, back: float, times: int) -> list[PairTest]:
    return [PairTest(number, 4, 7, forth, back) for number in range(1, times + 1)]


@pytest.mark.parametrize(("way", "slow"), [("send", (0, 1, False)), ("receive", (1, 0, False))])
def test_a_slow_direction_is_named_and_no_node(way: str, slow: tuple[int, int, bool]) -> None:
    runs = [play(World(2, {0: 0.8}, way=way, noise=0.02), seed) for seed in range(50)]
    assert {run.found.links for run in runs} == {(slow,)}
    assert {run.named == set() and not run.found.undecided for run in runs} == {True}
    assert max(run.rounds for run in runs) <= 6


def test_two_nodes_that_are_both_slow_both_ways_cannot_be_told_from_sound_ones() -> None:
    found = play(World(2, {0: 0.8}, noise=0.01, disturbed=0.0), 1).found
    assert (found.named, found.links, found.undecided) == ((), (), ())


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.06, 0.1])
def test_chance_is_no_direction(noise: float) -> None:
    runs = [play(World(2, noise=noise, disturbed=0.02), seed) for seed in range(RUNS)]
    assert sum(bool(run.found.links) for run in runs) <= 0.01 * RUNS
    assert {run.named == set() for run in runs} == {True}


def test_a_pair_that_never_finishes_is_a_blocked_path_after_three_tests() -> None:
    hung = [PairTest(number, 4, 7, outcome="hang") for number in (1, 2, 3)]
    assert not two_members((4, 7), hung[:2], 0.1).is_decided
    assert conclude(Plan(1), (4, 7), hung).links == ((4, 7, True), (7, 4, True))


def test_a_pair_that_finishes_only_at_times_is_undecided() -> None:
    tests = [*repeated(100.0, 100.0, 5), PairTest(6, 4, 7, outcome="hang")]
    assert conclude(Plan(1), (4, 7), tests).undecided == (4, 7)


def test_the_direction_needs_three_tests() -> None:
    assert not two_members((4, 7), repeated(80.0, 100.0, 2), 0.1).is_decided
    assert two_members((4, 7), repeated(80.0, 100.0, 3), 0.1).slow == ((4, 7, False),)
    assert two_members((4, 7), repeated(98.0, 100.0, 2), 0.1).is_decided
