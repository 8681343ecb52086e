"""Members that are sound among each other and slow toward others: a common path, not many bad nodes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import TypeAlias

from ncclcheck.measure.isolation.evidence import CLEARED, Standing, is_weak, threshold
from ncclcheck.measure.isolation.pair_tests import EXACT, Pair, PairTest

SPLIT_SHARE = 0.2  # from such a share of bad tests on, of members that were good as well
LEAST_SPLIT_TESTS = 6
MOST_WRONG = 0.15  # of the tests: those that the two groups do not explain
TIES = 2  # more tests of a member agree with its side than do not
BY_CHANCE = 0.01  # that tests without any structure leave so few that no two groups explain
STARTS, MOST_CHANGES = 8, 20
SIDE = 3  # members of a group, at least
Sides: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
Neighbours: TypeAlias = dict[
    int, list[tuple[int, bool]]
]  # member -> its partners, and whether the test was bad


def components(members: Iterable[int], joined: Iterable[Pair]) -> list[list[int]]:
    """Return the members in groups connected by `joined`, the largest first."""
    root = {member: member for member in members}

    def find(member: int) -> int:
        while root[member] != member:
            root[member] = root[root[member]]
            member = root[member]
        return member

    for first, second in joined:
        if first in root and second in root:
            root[find(first)] = find(second)
    found: defaultdict[int, list[int]] = defaultdict(list)
    for member in root:
        found[find(member)].append(member)
    return sorted(found.values(), key=len, reverse=True)


def is_split(tests: Sequence[PairTest], standing: Standing) -> bool:
    """Return whether many tests are bad of members that were good with others, or bad members are so with each other.

    A bad node is bad with all.
    """
    good = {
        member
        for test, ratio in zip(tests, standing.ratios, strict=True)
        if ratio <= CLEARED and not standing.is_bad(test)
        for member in test.pair
    }
    if good_among_bad(tests, standing):
        return True
    tests = _telling(tests, standing)
    if len(tests) < LEAST_SPLIT_TESTS:
        return False
    across = sum(standing.is_bad(test) and good.issuperset(test.pair) for test in tests)
    return across >= SPLIT_SHARE * len(tests)


def good_among_bad(tests: Sequence[PairTest], standing: Standing) -> set[int]:
    """Return the members that the evidence calls bad, and that were good with each other."""
    limit = threshold(len(standing.evidence))
    return {
        member
        for test, ratio in zip(tests, standing.ratios, strict=True)
        if ratio <= CLEARED and min(standing.evidence[end] for end in test.pair) >= limit
        for member in test.pair
    }


def _telling(tests: Sequence[PairTest], standing: Standing) -> list[PairTest]:
    """Return the tests that say something: also short ones, where the bad ones lose far more than their spread.

    One pair alone has a shared path for itself, so it says nothing about groups.
    """
    tests = [test for test in tests if not test.lone]
    told, scale = standing.told_by(tests), standing.scale
    lost = [
        1 - min(test.rates_gbit_s) / scale.reference_gbit_s
        for test in told
        if scale is not None and test.rates_gbit_s is not None and standing.is_bad(test)
    ]
    if scale is None or not lost or len(told) == len(tests):
        return told
    usual = median(lost)
    return [
        test
        for test in tests
        if EXACT * scale.spread_of(test.transfers) <= usual or not is_weak(test, scale, standing.effect)
    ]


def two_sides(members: Sequence[int], tests: Sequence[PairTest], standing: Standing) -> Sides | None:
    """Return the two groups between which the bad tests lie; None where no two groups explain them.

    Few tests may contradict: one pair across has the common path for itself. A member that few tests tie to its side
    belongs to none.
    """
    tests = _telling(tests, standing)
    of: defaultdict[int, list[tuple[int, bool]]] = defaultdict(list)
    bad_of = [standing.is_bad(test) for test in tests]
    for test, bad in zip(tests, bad_of, strict=True):
        of[test.first].append((test.second, bad))
        of[test.second].append((test.first, bad))
    best: tuple[int, dict[int, bool]] | None = None
    for start in members[:STARTS]:
        side = _settled(_spread_from(start, members, of), of)
        wrong = sum(
            (side[test.first] != side[test.second]) != bad for test, bad in zip(tests, bad_of, strict=True)
        )
        if best is None or wrong < best[0]:
            best = (wrong, side)
    if best is None or not _is_no_chance(best[0], len(tests), len(members)):
        return None
    tied = _tied(best[1], of)
    sides = [tuple(sorted(member for member in tied if best[1][member] is which)) for which in (True, False)]
    larger, smaller = sorted(sides, key=len, reverse=True)
    return (larger, smaller) if len(smaller) >= SIDE else None


def _tied(side: dict[int, bool], of: Neighbours) -> list[int]:
    """Return the members whose tests speak for their side by `TIES` at least, and that tests join to most others."""
    pairs = [(member, partner) for member, partners in of.items() for partner, _ in partners]
    joined = components(of, pairs)

    def ties(member: int) -> int:
        return sum(1 if (side[member] != side[partner]) == bad else -1 for partner, bad in of[member])

    return [member for member in joined[0] if ties(member) >= TIES]


def _is_no_chance(wrong: int, tests: int, members: int) -> bool:
    """Return whether two groups that leave so many tests unexplained are more than chance.

    There are 2 ** (members - 1) ways of parting the members, and each explains all but `wrong` of tests that are good
    or bad at random with the share of the outcomes that differ from it in so few places (binomial tail, bounded by a
    geometric series).
    """
    if wrong > MOST_WRONG * tests:
        return False
    ways = math.lgamma(tests + 1) - math.lgamma(wrong + 1) - math.lgamma(tests - wrong + 1)
    tail = ways + math.log((tests - wrong + 1) / (tests - 2 * wrong + 1))
    return tail + (members - 1 - tests) * math.log(2) <= math.log(BY_CHANCE)


def _spread_from(start: int, members: Sequence[int], of: Neighbours) -> dict[int, bool]:
    """Return a side of each member: the same as that of a partner with a good test, the other one after a bad test."""
    side: dict[int, bool] = {}
    for root in (start, *members):
        if root in side:
            continue
        side[root], waiting = True, [root]
        while waiting:
            member = waiting.pop()
            for partner, bad in of.get(member, ()):
                if partner not in side:
                    side[partner] = side[member] != bad
                    waiting.append(partner)
    return side


def _settled(side: dict[int, bool], of: Neighbours) -> dict[int, bool]:
    """Return the sides after members changed theirs as long as that contradicts fewer of their tests."""
    for _ in range(MOST_CHANGES):
        changed = False
        for member, partners in of.items():
            wrong = sum((side[member] != side[partner]) != bad for partner, bad in partners)
            if 2 * wrong > len(partners):
                side[member] = not side[member]
                changed = True
        if not changed:
            break
    return side
