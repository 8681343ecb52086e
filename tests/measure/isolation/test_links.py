"""Slow paths between sound members, told from members that are bad at times and from disturbances."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.measure.isolation.evidence import standing_of
from ncclcheck.measure.isolation.links import BadPair, are_sound, bad_pairs, least_tests, serious_links
from ncclcheck.measure.isolation.pair_tests import PairTest
from tests.measure.isolation.scripted_world import World, judged

RUNS = 100
MEMBERS = range(8)


def rounds(times: int) -> list[PairTest]:
    """0 and 1 are slow with each other, so many times, and good with all others in between."""
    tests = []
    for number in range(times):
        tests.append(PairTest(2 * number + 1, 0, 1, 50.0, 50.0))
        tests += [PairTest(2 * number + 1, first, first + 1, 100.0, 100.0) for first in (2, 4, 6)]
        partners = (2 + number % 6, 2 + (number + 1) % 6)
        rest = [member for member in range(2, 8) if member not in partners]
        pairs = [(0, partners[0]), (1, partners[1]), (rest[0], rest[1]), (rest[2], rest[3])]
        tests += [PairTest(2 * number + 2, first, second, 100.0, 100.0) for first, second in pairs]
    return tests


def test_a_pair_is_a_link_once_no_member_bad_at_times_explains_it() -> None:
    found = [bad_pairs(tests, standing_of(MEMBERS, tests, 0.1)) for tests in map(rounds, (4, 5))]
    assert [[(entry.pair, entry.bad, entry.is_link) for entry in pairs] for pairs in found] == [
        [((0, 1), 4, False)],
        [((0, 1), 5, True)],
    ]


def test_one_good_test_of_the_pair_ends_the_suspicion() -> None:
    tests = [*rounds(4), PairTest(11, 0, 1, 100.0, 100.0)]
    assert bad_pairs(tests, standing_of(MEMBERS, tests, 0.1)) == []


def test_an_open_pair_that_disturbances_do_not_explain_is_serious() -> None:
    standing = replace(standing_of(MEMBERS, rounds(2), 0.1), between=(4, 40))
    entries = [BadPair((0, 1), bad, bad, 9) for bad in (1, 2, 3)]
    assert [bool(serious_links([entry], standing)) for entry in entries] == [False, False, True]
    assert serious_links([BadPair((0, 1), 5, 4, 9)], standing) == []


def test_a_pair_that_was_bad_three_times_stays_open_beside_a_few_disturbances() -> None:
    """Two tests of 45 were disturbed: before, the rounds ended, and nothing was said of the path."""
    standing = replace(standing_of(MEMBERS, rounds(2), 0.1), between=(5, 48))
    assert serious_links([BadPair((0, 1), 3, 3, 9)], standing) != []
    assert serious_links([BadPair((0, 1), 2, 3, 9)], standing) == []


def test_a_pair_whose_transfers_twice_did_not_finish_is_serious() -> None:
    standing = replace(standing_of(MEMBERS, rounds(2), 0.1), between=(2, 12))
    assert serious_links([BadPair((0, 1), 2, 2, 9)], standing) == []
    assert serious_links([BadPair((0, 1), 2, 2, 9, failed=1)], standing) == []
    assert serious_links([BadPair((0, 1), 2, 2, 9, failed=2)], standing) != []


def test_more_candidates_need_more_tests_and_few_members_fewer() -> None:
    assert least_tests(16, 1) == 9
    assert least_tests(16, 8) == 12
    assert least_tests(3, 1) == 7


def test_members_without_a_good_test_are_not_sound() -> None:
    standing = standing_of(MEMBERS, [PairTest(1, 0, 1, outcome="hang")], 0.1)
    assert not are_sound((0, 1), standing)


def test_a_node_that_is_bad_at_times_gives_no_link() -> None:
    runs = [judged(World(16, {5: 0.8}, flaky=0.5, disturbed=0.03), seed) for seed in range(RUNS)]
    assert sum(bool(run.false) for run in runs) <= 2
