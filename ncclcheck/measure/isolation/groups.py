"""Members that are sound among each other and slow toward others: a common path, not many bad nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ncclcheck.measure.isolation.evidence import CLEARED, Standing
from ncclcheck.measure.isolation.pair_tests import Pair, PairTest

SPLIT_SHARE = 0.2  # from such a share of bad tests on, of members that were good as well
LEAST_SPLIT_TESTS = 6
TESTS_OF_A_MEMBER = 2.0  # times the members: with fewer tests many ways of parting them explain everything
MOST_WRONG = 0.15  # of the tests: those that the two groups do not explain
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
    """Return whether many tests are bad of members that were good with others: a bad node is bad with all."""
    good = {
        member
        for test, ratio in zip(tests, standing.ratios, strict=True)
        if ratio <= CLEARED and not standing.is_bad(test)
        for member in test.pair
    }
    tests = standing.told_by(tests)
    if len(tests) < LEAST_SPLIT_TESTS:
        return False
    across = sum(standing.is_bad(test) and good.issuperset(test.pair) for test in tests)
    return across >= SPLIT_SHARE * len(tests)


def two_sides(members: Sequence[int], tests: Sequence[PairTest], standing: Standing) -> Sides | None:
    """Return the two groups between which the bad tests lie; None where no two groups explain them.

    Few tests may contradict: one pair across has the common path for itself.
    """
    tests = standing.told_by(tests)
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
    if best is None or best[0] > MOST_WRONG * len(tests) or len(tests) < TESTS_OF_A_MEMBER * len(members):
        return None
    sides = [
        tuple(sorted(member for member in members if best[1][member] is which)) for which in (True, False)
    ]
    larger, smaller = sorted(sides, key=len, reverse=True)
    return (larger, smaller) if len(smaller) >= SIDE else None


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
