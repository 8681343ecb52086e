"""The conclusion: nodes, links, groups, those bad at times, and those of whom the tests do not tell."""

from __future__ import annotations

from ncclcheck.measure.isolation.conclusion import conclude
from ncclcheck.measure.isolation.next_round import Plan
from ncclcheck.measure.isolation.pair_tests import PairTest
from tests.measure.isolation.scripted_world import World, play


def test_without_faults_it_is_clean() -> None:
    found = play(World(16), 1).found
    assert [*found.named, *found.links, *found.groups, *found.undecided] == []


def test_a_named_node_comes_with_its_rates_and_the_chance_of_being_wrong() -> None:
    (entry,) = play(World(16, {5: 0.5}, way="send", noise=0.01, disturbed=0.0), 2).found.named
    assert (entry.member, entry.verdict, entry.direction) == (5, "slow", "send")
    assert entry.sends is not None
    assert entry.receives is not None
    assert entry.sends < 0.6
    assert entry.receives > 0.9
    assert entry.chance <= 0.01


def test_a_node_that_is_often_bad_and_also_good_is_intermittent() -> None:
    good = [
        PairTest(number, first, first + 1, 100.0, 100.0) for number in (1, 2, 3) for first in range(2, 16, 2)
    ]
    own = [PairTest(4, 0, 2, 50.0, 50.0), PairTest(5, 0, 4, 50.0, 50.0), PairTest(6, 0, 6, 50.0, 50.0)]
    own += [
        PairTest(7, 0, 8, 100.0, 100.0),
        PairTest(8, 0, 10, 100.0, 100.0),
        PairTest(8, 1, 3, 100.0, 100.0),
    ]
    found = conclude(Plan(1), range(16), [*good, *own])
    assert [(entry.member, entry.verdict) for entry in found.named] == [(0, "intermittent")]


def test_a_node_with_one_bad_test_that_was_never_repeated_is_undecided() -> None:
    tests = [
        PairTest(1, 0, 1, 50.0, 50.0),
        *[PairTest(1, first, first + 1, 100.0, 100.0) for first in range(2, 16, 2)],
    ]
    found = conclude(Plan(1), range(16), tests)
    assert found.named == ()
    assert found.undecided == (0, 1)
