"""Slow paths between two sound members: bad in each of their tests, though both ends are good with others."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from ncclcheck.measure.isolation.evidence import CLEARED, FALSE_NAMES, Standing, chance_of_all_bad
from ncclcheck.measure.isolation.pair_tests import FEW_MEMBERS, Pair, PairTest

LINK_TESTS = 3  # of the pair, at least
FEWER_OF_FEW = 2  # tests less where there are so few members that one test of both ends takes two rounds
# Of the good and bad tests that end so: the first bad one may come in the first round or later
ORDERS = 4
# So many such pairs are expected by chance: of one that was bad in as many tests as a link more is learnt. Ending there
# would call it sound, going on costs rounds.
OPEN = 0.05
HALF = 0.5  # of the tests of a member that is bad at times: then any order of bad and good ones is least unlikely


class BadPair(Struct, frozen=True):
    """Two sound members whose tests with each other were all bad: so many, and as many good ones with others."""

    pair: Pair
    bad: int
    good: int
    needed: int

    @property
    def is_link(self) -> bool:
        """Return whether it is the path: neither a member that is bad at times explains it, nor disturbances."""
        return self.bad >= LINK_TESTS and self.bad + self.good >= self.needed

    @property
    def needs_others(self) -> bool:
        """Return whether its ends have to meet others next, rather than each other."""
        return self.good < self.bad


def bad_pairs(tests: Sequence[PairTest], standing: Standing) -> list[BadPair]:
    """Return all such pairs. One bad test of each is more likely a disturbance."""
    tests = [test for test in standing.informative(tests) if are_sound(test.pair, standing)]
    times: dict[Pair, int] = {}
    for test in tests:
        if standing.is_bad(test):
            times[test.pair] = times.get(test.pair, 0) + 1
    good = {test.pair for test in tests if not standing.is_bad(test)}
    repeated = sum(bad > 1 for bad in times.values())
    needed = least_tests(len(standing.evidence), repeated)
    return [
        BadPair(pair, bad, min(len(standing.own_good.get(end, ())) for end in pair), needed)
        for pair, bad in times.items()
        if pair not in good
    ]


def least_tests(members: int, candidates: int) -> int:
    """Return how many tests of an end, with the other one and with others, tell a path from a member bad at times.

    Such a member shows any given order of n bad and good tests with a chance of 0.5 ** n at most (about); of several
    candidates all count.
    """
    needed = math.ceil(math.log(ORDERS * max(1, candidates) / FALSE_NAMES) / math.log(1 / HALF))
    return needed - FEWER_OF_FEW if members <= FEW_MEMBERS else needed


def open_links(found: Sequence[BadPair]) -> list[BadPair]:
    """Return the pairs of which more has to be known."""
    return [entry for entry in found if not entry.is_link]


def serious_links(found: Sequence[BadPair], standing: Standing) -> list[BadPair]:
    """Return the open pairs that disturbances do not explain: they are not sound, whatever else they are."""
    bad, tests = standing.between
    serious = []
    for entry in open_links(found):
        without = (max(0, bad - entry.bad), max(0, tests - entry.bad))
        candidates = max(len(found), 1 + without[0])  # also those that were good when repeated
        most = OPEN if entry.bad >= LINK_TESTS else FALSE_NAMES
        if candidates * chance_of_all_bad(entry.bad - 1, *without) <= most:
            serious.append(entry)
    return serious


def are_sound(pair: Pair, standing: Standing) -> bool:
    """Return whether both ends were good with somebody, and nothing speaks against them."""
    return all(standing.evidence[end] <= CLEARED and standing.own_good.get(end) for end in pair)
