"""Members that are sound among each other and slow toward others: a common path, not many bad nodes."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import TypeAlias

from ncclcheck.measure.isolation.evidence import CLEARED, Standing, is_weak, threshold
from ncclcheck.measure.isolation.pair_tests import EXACT, Pair, PairTest

SPLIT_SHARE = 0.2  # from such a share of bad tests on, of members that were good as well
LEAST_SPLIT_TESTS = 6
MOST_WRONG = 0.15  # of the tests: those that the two groups do not explain
MARGIN = 3  # explained tests less, or one that contradicts: then other sides are as likely
TESTS_OF_CHANGES = (
    100_000  # members times tests: of more the tests of each member are too many to ask one by one
)
TIES = 2  # more tests of a member agree with its side than do not
BY_CHANCE = 0.01  # that tests without any structure leave so few that no two groups explain
FEWEST_STARTS, MOST_STARTS = 4, 32
TESTS_OF_STARTS = 20_000  # that all tries look at together: of thousands of nodes each try takes a while
MOST_CHANGES, SORTINGS = 20, 4
SIDE = 3  # members of a group, at least
Sides: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
Judged: TypeAlias = Sequence[tuple[PairTest, bool]]  # a test, and whether it was bad
Side: TypeAlias = dict[int, bool]  # member -> on which side it is
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
    """Return the members that the evidence nearly calls bad, and that were good with each other.

    That good test speaks for both of them, so the evidence is weaker than for a member with sound partners only.
    """
    limit = threshold(len(standing.evidence)) / 2
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
    informative, scale = standing.informative(tests), standing.scale
    lost = [
        1 - min(test.rates_gbit_s) / scale.reference_gbit_s
        for test in informative
        if scale is not None and test.rates_gbit_s is not None and standing.is_bad(test)
    ]
    if scale is None or not lost or len(informative) == len(tests):
        return informative
    usual = median(lost)
    return [
        test
        for test in tests
        if EXACT * scale.spread_of(test.transfers) <= usual or not is_weak(test, scale, standing.effect)
    ]


def two_sides(members: Sequence[int], tests: Sequence[PairTest], standing: Standing) -> Sides | None:
    """Return the two groups between which the bad tests lie; None where no two groups explain them.

    Few tests may contradict. A member that few tests tie to its side belongs to none.
    """
    tests = _telling(tests, standing)
    judged = [(test, standing.is_bad(test)) for test in tests]
    starts = max(FEWEST_STARTS, min(MOST_STARTS, TESTS_OF_STARTS // max(1, len(judged))))
    found = [_sides_from(start, members, judged) for start in range(starts)]
    side = max(found, key=lambda entry: _explained(judged, entry))
    counted = _sharing(judged, side)
    if not _is_no_chance(_wrong(counted, side), len(counted), len(members)):
        return None
    sure = set(_tied(side, counted)) - _ambiguous(judged, side, found)
    sides = [tuple(sorted(member for member in sure if side[member] is which)) for which in (True, False)]
    larger, smaller = sorted(sides, key=len, reverse=True)
    return (larger, smaller) if len(smaller) >= SIDE else None


def _wrong(counted: Judged, side: Side) -> int:
    return sum((side[test.first] != side[test.second]) != bad for test, bad in counted)


def _explained(judged: Judged, side: Side) -> int:
    """Return how many more tests these sides explain than they contradict."""
    counted = _sharing(judged, side)
    return len(counted) - 2 * _wrong(counted, side)


def _ambiguous(judged: Judged, side: Side, found: Sequence[Side]) -> set[int]:
    """Return the members that are on the other side where nearly as much is explained: of all tries, and alone."""
    least = _explained(judged, side) - MARGIN
    members: set[int] = set()
    for tried in found:
        if _explained(judged, tried) > least:
            differing = {member for member in side if side[member] != tried[member]}
            members |= differing if 2 * len(differing) <= len(side) else set(side) - differing
    if len(side) * len(judged) <= TESTS_OF_CHANGES:
        members |= {
            member for member in side if _explained(judged, {**side, member: not side[member]}) > least
        }
    return members


def _sides_from(start: int, members: Sequence[int], judged: Judged) -> Side:
    """Return a side of each member, by the try of that number."""
    draw = random.Random(start)  # noqa: S311 (no secret)
    counted, side = judged, dict[int, bool]()
    for _ in range(SORTINGS):
        of = _neighbours(counted)
        side = _settled(_spread(members, counted, draw), of)
        before, counted = counted, _sharing(judged, side)
        if len(counted) == len(before):
            break
    return side


def _sharing(judged: Judged, side: dict[int, bool]) -> Judged:
    """Return the tests but for pairs across that had the common path for themselves, in their direction.

    The pairs of a round measure one direction after the other, all at the same time: those that begin on the same side
    use the path together. The path of one pair may be sound or slow, and that says nothing about the sides. Which tests
    these are follows from the sides alone, so leaving them out favours no outcome.
    """
    sides = [(test.round, side[test.first], side[test.second]) for test, _ in judged]
    times = Counter(sides)
    return [
        entry
        for entry, sides_of_test in zip(judged, sides, strict=True)
        if sides_of_test[1] == sides_of_test[2] or times[sides_of_test] > 1
    ]


def _neighbours(judged: Judged) -> Neighbours:
    of: Neighbours = defaultdict(list)
    for test, bad in judged:
        of[test.first].append((test.second, bad))
        of[test.second].append((test.first, bad))
    return of


def _tied(side: dict[int, bool], counted: Judged) -> list[int]:
    """Return the members whose tests speak for their side by `TIES` at least, and that tests join to most others.

    Two tests at least that agree with the sides join them by different ways: with one alone a whole part of the members
    would change sides if that one was disturbed.
    """
    agreeing = [test.pair for test, bad in counted if (side[test.first] != side[test.second]) == bad]
    ties = Counter(end for pair in agreeing for end in pair)
    ties.subtract(end for test, _ in counted for end in test.pair)
    ties.update(end for pair in agreeing for end in pair)
    joined = max(joined_twice(side, agreeing), key=len)
    return [member for member in joined if ties[member] >= TIES]


def joined_twice(members: Iterable[int], edges: Sequence[Pair]) -> list[list[int]]:
    """Return the parts of a graph that stay connected whichever edge is taken away (Tarjan's bridges, 1974)."""
    of: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, (first, second) in enumerate(edges):
        of[first].append((second, number))
        of[second].append((first, number))
    entered: dict[int, int] = {}
    lowest: dict[int, int] = {}
    bridges: set[int] = set()
    members = list(members)
    for root in members:
        if root in entered:
            continue
        entered[root] = lowest[root] = len(entered)
        path = [(root, -1, iter(of[root]))]
        while path:
            member, through, rest = path[-1]
            following = next(rest, None)
            if following is None:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[member])
                    if lowest[member] > entered[above]:
                        bridges.add(through)
                continue
            partner, number = following
            if number == through:
                continue
            if partner in entered:
                lowest[member] = min(lowest[member], entered[partner])
            else:
                entered[partner] = lowest[partner] = len(entered)
                path.append((partner, number, iter(of[partner])))
    return components(members, [edge for number, edge in enumerate(edges) if number not in bridges])


def _is_no_chance(wrong: int, tests: int, members: int) -> bool:
    """Return whether two groups that leave so many tests unexplained are more than chance.

    There are 2 ** (members - 1) ways of parting the members, and each explains all but `wrong` of tests that are good
    or bad at random with the share of the outcomes that differ from it in so few places (binomial tail, bounded by a
    geometric series).
    """
    if wrong > MOST_WRONG * tests:
        return False
    log_choices = math.lgamma(tests + 1) - math.lgamma(wrong + 1) - math.lgamma(tests - wrong + 1)
    tail = log_choices + math.log((tests - wrong + 1) / (tests - 2 * wrong + 1))
    return tail + (members - 1 - tests) * math.log(2) <= math.log(BY_CHANCE)


def _spread(members: Sequence[int], judged: Judged, draw: random.Random) -> dict[int, bool]:
    """Return a side of each member: the other one than that of a partner with a bad test, the same after a good one.

    Bad tests come first: a pair across may be good where it has the path for itself. In which order the others come is
    drawn, so that not every try follows the same misleading test.
    """
    above = {member: (member, False) for member in members}

    def root_of(member: int) -> tuple[int, bool]:
        differs = False
        while above[member][0] != member:
            parent, edge = above[member]
            top, further = above[parent]
            above[member] = (top, edge != further)  # halves the way for the next one
            member, step = above[member]
            differs = differs != step
        return member, differs

    for test, bad in sorted(judged, key=lambda entry: (not entry[1], draw.random())):
        (first, first_differs), (second, second_differs) = root_of(test.first), root_of(test.second)
        if first != second:
            above[first] = (second, (first_differs != second_differs) != bad)
    return {member: root_of(member)[1] for member in members}


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
