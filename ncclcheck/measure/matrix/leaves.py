"""Which nodes are behind the same switch: a partition of the nodes that explains which tests were slow.

A slow test says that its ends are behind different switches, or that an end or the path is bad; a fast one says that
they are behind the same, or that the trunk was idle. How often a pair of different switches is slow is learnt in the
same run. The partition with the highest likelihood is found by moving nodes (correlation clustering).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.cells import CellScale

DISTURBED = 0.02  # of the tests behind one switch that look slow
FIRST_SLOW, LEAST_SLOW, MOST_SLOW = 0.6, 0.15, 0.98  # of the tests between switches
ROW_SLOW, GROUP_SLOW = 0.8, 0.6  # of its tests a slow node spoils at least so many: with all, with any group
CLEAR_GAIN = (
    8.0  # of the logarithm of the likelihood: leaves explain the tests so much better than one switch
)
_FITS, _PASSES = 3, 50

Weights = Mapping[int, Mapping[int, float]]
Groups = list[list[int]]


class Leaves(Struct, frozen=True):
    """The groups of nodes that are fast with each other, the largest first; `apart`: nodes slow with all others.

    One group: the network is flat. `crossing_slow`: the share of tests between groups that were slow.
    """

    groups: tuple[tuple[int, ...], ...]
    apart: tuple[int, ...] = ()
    crossing_slow: float = 0.0

    @property
    def is_flat(self) -> bool:
        """Return whether no structure was found that a job could feel."""
        return len(self.groups) < 2  # noqa: PLR2004 (two leaves)

    @property
    def order(self) -> tuple[int, ...]:
        """All nodes, leaf by leaf, and at last those that are apart."""
        return tuple(member for group in (*self.groups, self.apart) for member in group)

    def number_of(self) -> dict[int, int]:
        """Return the number of each node's leaf; nodes that are apart have none."""
        return {member: number for number, group in enumerate(self.groups) for member in group}


def leaves_of(members: Sequence[int], tests: Sequence[PairTest], scale: CellScale) -> Leaves:
    """Return the leaves of these members, in their order."""
    counts = _counts(members, tests, scale)
    crossing = FIRST_SLOW
    groups: Groups = [list(members)]
    for _ in range(_FITS):
        weights = _weights(counts, crossing)
        groups = _partition(members, weights)
        seen = _crossing_slow(groups, counts)
        if seen is None or abs(seen - crossing) < DISTURBED:
            break
        crossing = min(MOST_SLOW, max(LEAST_SLOW, seen))
    apart = [group[0] for group in groups if len(group) == 1 and _is_apart(group[0], groups, counts)]
    groups = _without_singles([group for group in groups if group[0] not in apart], weights)
    if len(groups) > 1 and not _explains(groups, weights):
        groups = [[member for member in members if member not in apart]]
    place = {member: number for number, member in enumerate(members)}
    groups = [sorted(group, key=place.__getitem__) for group in groups if group]
    groups.sort(key=lambda group: (-len(group), place[group[0]]))
    return Leaves(tuple(map(tuple, groups)), tuple(apart), _crossing_slow(groups, counts) or 0.0)


def improved_leaves(
    start: Sequence[Sequence[int]], order: Sequence[int], tests: Sequence[PairTest], scale: CellScale
) -> Groups:
    """Return these groups after the moves and merges that make all tests likelier; single nodes stay in them."""
    counts = _counts(order, tests, scale)
    groups = [list(group) for group in start]
    seen = _crossing_slow(groups, counts)
    if seen is None:
        return groups
    return _improved(groups, _weights(counts, min(MOST_SLOW, max(LEAST_SLOW, seen))))


def _counts(
    members: Sequence[int], tests: Sequence[PairTest], scale: CellScale
) -> dict[tuple[int, int], list[int]]:
    """Return by pair how many of its tests were fast, and slow."""
    present = frozenset(members)
    counts: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for test in tests:
        if test.rates_gbit_s is not None and present.issuperset(test.pair):
            counts[test.pair][scale.is_slow(test)] += 1
    return counts


def _weights(counts: Mapping[tuple[int, int], Sequence[int]], crossing: float) -> Weights:
    """Return by pair how much more likely its tests are if both are behind one switch (logarithm).

    A pair counts as one test, and as two if it was fast: a path that is slow in ten tests is one slow path.
    """
    fast, slow = math.log((1 - DISTURBED) / (1 - crossing)), math.log(DISTURBED / crossing)
    weights: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for (first, second), (fast_tests, slow_tests) in counts.items():
        likelihood = min(2 * fast, max(slow, fast_tests * fast + slow_tests * slow))
        weights[first][second] = weights[second][first] = likelihood
    return weights


def _partition(members: Sequence[int], weights: Weights) -> Groups:
    """Return the best partition that moves from two starts reach: all together, and each node alone."""
    found = [_improved(start, weights) for start in ([list(members)], [[member] for member in members])]
    return max(found, key=lambda groups: _score(groups, weights))


def _improved(start: Groups, weights: Weights) -> Groups:
    """Return the partition after moves of nodes and merges of groups, as long as they raise the score."""
    number_of = {member: number for number, group in enumerate(start) for member in group}
    fresh = len(start)
    for _ in range(_PASSES):
        moved = False
        for member, own_group in number_of.items():
            toward: defaultdict[int, float] = defaultdict(float)
            for partner, weight in weights.get(member, {}).items():
                toward[number_of[partner]] += weight
            best = max(toward, key=lambda number: toward[number], default=own_group)
            gain = max(0.0, toward[best]) - toward[own_group]
            if gain > 1e-9:  # noqa: PLR2004 (not the rounding of a sum)
                number_of[member], fresh = (best, fresh) if toward[best] > 0 else (fresh, fresh + 1)
                moved = True
        moved = _merge(number_of, weights) or moved
        if not moved:
            break
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for member, number in number_of.items():
        groups[number].append(member)
    return list(groups.values())


def _merge(number_of: dict[int, int], weights: Weights) -> bool:
    """Merge the two groups that gain most by it; return whether there were such."""
    between: defaultdict[tuple[int, int], float] = defaultdict(float)
    for member, partners in weights.items():
        for partner, weight in partners.items():
            pair = (number_of[member], number_of[partner])
            if pair[0] < pair[1]:
                between[pair] += weight
    best = max(between, key=lambda pair: between[pair], default=None)
    if best is None or between[best] <= 0:
        return False
    for member, number in number_of.items():
        if number == best[1]:
            number_of[member] = best[0]
    return True


def _score(groups: Groups, weights: Weights) -> float:
    """Return the sum of the weights within the groups."""
    total = 0.0
    for group in groups:
        inside = frozenset(group)
        total += sum(
            weight
            for member in group
            for partner, weight in weights.get(member, {}).items()
            if partner in inside
        )
    return total / 2


def _explains(groups: Groups, weights: Weights) -> bool:
    """Return whether the groups explain the tests far better than one group of all of them."""
    together = [member for group in groups for member in group]
    return _score(groups, weights) - _score([together], weights) >= CLEAR_GAIN


def _crossing_slow(groups: Groups, counts: Mapping[tuple[int, int], Sequence[int]]) -> float | None:
    number_of = {member: number for number, group in enumerate(groups) for member in group}
    fast = slow = 0
    for (first, second), (fast_tests, slow_tests) in counts.items():
        if number_of.get(first) != number_of.get(second) and first in number_of and second in number_of:
            fast, slow = fast + fast_tests, slow + slow_tests
    return slow / (fast + slow) if fast + slow else None


def _is_apart(member: int, groups: Groups, counts: Mapping[tuple[int, int], Sequence[int]]) -> bool:
    """Return whether the member is slow with nearly all others, and with most of each group."""
    rows = [_slow_with(member, group, counts) for group in groups if member not in group]
    slow, tested = sum(row[0] for row in rows), sum(row[1] for row in rows)
    return slow >= ROW_SLOW * max(1, tested) and all(part >= GROUP_SLOW * of for part, of in rows)


def _slow_with(
    member: int, group: Sequence[int], counts: Mapping[tuple[int, int], Sequence[int]]
) -> tuple[int, int]:
    """Return with how many members of the group the member was slow, and with how many it was tested."""
    rates = [
        counts[pair] for partner in group if (pair := (min(member, partner), max(member, partner))) in counts
    ]
    return sum(slow > fast for fast, slow in rates), len(rates)


def _without_singles(groups: Groups, weights: Weights) -> Groups:
    """Return the groups with each single node in the group that it fits best: one node is no leaf."""
    large = [list(group) for group in groups if len(group) > 1]
    singles = [group[0] for group in groups if len(group) == 1]
    if not large:
        return [singles] if singles else []
    for single in singles:
        own_weights = weights.get(single, {})
        max(large, key=lambda group: sum(own_weights.get(member, 0.0) for member in group)).append(single)
    return large
