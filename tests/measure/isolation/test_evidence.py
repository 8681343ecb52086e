"""Evidence: a bad test speaks against both ends until one of them is known to be bad."""

from __future__ import annotations

from ncclcheck.measure.isolation.evidence import CLEARED, standing_of
from ncclcheck.measure.isolation.pair_tests import PairTest

SOUND = [PairTest(1, first, first + 1, 100.0, 100.0) for first in range(2, 14, 2)]


def test_both_ends_of_a_bad_test_are_suspects_and_all_others_are_cleared() -> None:
    standing = standing_of(range(14), [PairTest(1, 0, 1, 50.0, 50.0), *SOUND], 0.1)
    assert standing.evidence[0] == standing.evidence[1] > 0
    assert all(standing.evidence[member] <= CLEARED for member in range(2, 14))
    assert standing.ever_suspect == 2


def test_a_second_bad_test_with_a_sound_node_clears_the_first_partner() -> None:
    tests = [
        PairTest(1, 0, 1, 50.0, 50.0),
        *SOUND,
        PairTest(2, 0, 2, 50.0, 50.0),
        PairTest(2, 1, 4, 100.0, 100.0),
    ]
    standing = standing_of(range(14), tests, 0.1)
    assert standing.evidence[0] > 4
    assert standing.evidence[1] <= CLEARED
    assert standing.own_bad[0] == (1, 2)
    assert standing.against[0] == {1, 2}


def test_a_test_that_did_not_finish_is_bad() -> None:
    standing = standing_of(range(14), [PairTest(1, 0, 1, outcome="hang"), *SOUND], 0.1)
    assert standing.evidence[0] > 0
    assert standing.is_bad(PairTest(1, 0, 1, outcome="died"))


def test_many_disturbed_tests_weaken_each_single_one() -> None:
    quiet = standing_of(range(14), [PairTest(1, 0, 1, 50.0, 50.0), *SOUND], 0.1)
    again = [PairTest(2, first, first + 1, 60.0, 60.0) for first in range(2, 14, 2)]
    good = [PairTest(3, first, first + 1, 100.0, 100.0) for first in range(2, 14, 2)]
    noisy = standing_of(range(14), [PairTest(1, 0, 1, 50.0, 50.0), *SOUND, *again, *good], 0.1)
    assert noisy.disturbed > quiet.disturbed
    assert noisy.evidence[0] < quiet.evidence[0]
