"""Members that are bad at times, told from disturbances, from their partners and from paths."""

from __future__ import annotations

from ncclcheck.measure.isolation.evidence import standing_of
from ncclcheck.measure.isolation.intermittent import Intermittent, intermittent_members
from ncclcheck.measure.isolation.pair_tests import PairTest
from tests.measure.isolation.scripted_world import World, judged, with_slow

MEMBERS = range(16)
RUNS = 60


def found_in(bad: set[tuple[int, int]]) -> list[Intermittent]:
    """Five rounds in which each meets another partner, with these bad tests (round, first)."""
    tests = []
    for number in range(1, 6):
        for first in range(8):
            rate = 50.0 if (number, first) in bad else 100.0
            tests.append(PairTest(number, first, 8 + (first + number) % 8, rate, rate))
    return intermittent_members(tests, standing_of(MEMBERS, tests, 0.1), ())


def named(found: list[Intermittent]) -> list[int]:
    return [entry.member for entry in found if entry.is_named]


def test_three_bad_tests_of_five_are_no_disturbances_and_speak_against_no_partner() -> None:
    assert named(found_in({(1, 3), (3, 3), (4, 3)})) == [3]


def test_two_such_members_do_not_hide_each_other() -> None:
    """Before, the bad tests of both counted as disturbances, and neither was named."""
    assert sorted(named(found_in({(1, 3), (3, 3), (4, 3), (1, 6), (2, 6), (5, 6)}))) == [3, 6]


def test_two_bad_tests_of_five_are_not_enough() -> None:
    assert named(found_in({(1, 3), (3, 3)})) == []


def test_a_pair_that_was_bad_again_and_again_names_neither_end() -> None:
    tests = [PairTest(number, 0, 1, 50.0, 50.0) for number in (1, 2, 3)]
    tests += [PairTest(number, 0, 1, 100.0, 100.0) for number in (4, 5)]
    tests += [PairTest(1, first, first + 1, 100.0, 100.0) for first in range(2, 16, 2)]
    assert named(intermittent_members(tests, standing_of(MEMBERS, tests, 0.1), ())) == []


def test_flaky_nodes_of_sixteen_are_named_far_more_often_and_nobody_else_is() -> None:
    worlds = [World(16, with_slow(16, 2, 0.5, seed), flaky=0.6, noise=0.01) for seed in range(RUNS)]
    runs = [judged(world, seed) for seed, world in enumerate(worlds)]
    assert sum(run.found for run in runs) >= 0.45 * 2 * RUNS
    assert sum(bool(run.false) for run in runs) <= 1
