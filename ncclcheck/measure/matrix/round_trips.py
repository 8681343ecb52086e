"""How long a byte takes there and back between the nodes, and which groups of nodes that shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import median

from msgspec import Struct

from ncclcheck.measure.isolation.pair_tests import MAD_TO_SIGMA, Pair, PairTest
from ncclcheck.measure.matrix.leaves import Leaves

GAP_SPREADS = 4.0  # between the medians of two classes, in spreads of the wider one
LEAST_SHARE = 0.05  # of the pairs are in each class
LEAST_SPREAD = 0.01  # of a logarithm
FITTING = 0.95  # of the pairs have to agree with the groups
FEWEST_PAIRS = 6  # of four nodes


class RoundTrips(Struct, frozen=True):
    """The medians of the shortest round trips in microseconds: of all pairs, within leaves, and across them.

    None: no such pair. `groups`: nodes that are near to each other and further from all others, the largest group
    first; none where the round trips are of one class.
    """

    median_us: float
    within_us: float | None
    across_us: float | None
    groups: tuple[tuple[int, ...], ...] = ()


def round_trips_of(tests: Sequence[PairTest]) -> dict[Pair, float]:
    """Return the shortest round trip of each pair that has one, in microseconds."""
    found: dict[Pair, float] = {}
    for test in tests:
        if test.round_trip_us > 0 and test.outcome == "ok":
            found[test.pair] = min(test.round_trip_us, found.get(test.pair, math.inf))
    return found


def round_trips(leaves: Leaves, tests: Sequence[PairTest]) -> RoundTrips | None:
    """Return what the round trips say; None where none was measured."""
    trips = round_trips_of(tests)
    if not trips:
        return None
    number_of = leaves.number_of()
    within, across = list[float](), list[float]()
    for (first, second), trip_us in trips.items():
        if first in number_of and second in number_of:
            (within if number_of[first] == number_of[second] else across).append(trip_us)
    return RoundTrips(
        median(trips.values()),
        median(within) if within else None,
        median(across) if across else None,
        near_groups(leaves.order, trips),
    )


def near_groups(members: Sequence[int], trips: Mapping[Pair, float]) -> tuple[tuple[int, ...], ...]:
    """Return the groups, if nearly all pairs were measured, fall into two classes, and agree with the groups."""
    pairs = [(min(pair), max(pair)) for pair in combinations(members, 2)]
    known = [pair for pair in pairs if pair in trips]
    cut_us = _cut_us([trips[pair] for pair in known])
    if cut_us is None or len(known) < FITTING * len(pairs):
        return ()
    group_of = {member: member for member in members}
    for pair in known:
        if trips[pair] < cut_us:
            first, second = (group_of[end] for end in pair)
            for member, group in group_of.items():
                if group == second:
                    group_of[member] = first
    groups = [
        tuple(member for member in members if group_of[member] == group) for group in set(group_of.values())
    ]
    agree = sum((trips[pair] < cut_us) == (group_of[pair[0]] == group_of[pair[1]]) for pair in known)
    is_clear = len(groups) > 1 and max(map(len, groups)) > 1 and agree >= FITTING * len(known)
    return tuple(sorted(groups, key=lambda group: (-len(group), members.index(group[0])))) if is_clear else ()


def _cut_us(values: Sequence[float]) -> float | None:
    """Return where two classes part: the split with the least variance within both; None where it is not clear."""
    logs = sorted(math.log(value) for value in values)
    least = max(1, math.ceil(LEAST_SHARE * len(logs)))
    if len(logs) < max(FEWEST_PAIRS, 2 * least):
        return None
    sums = [0.0]
    for value in logs:
        sums.append(sums[-1] + value)
    whole = sums[-1]

    def between(at: int) -> float:
        low, high = sums[at] / at, (whole - sums[at]) / (len(logs) - at)
        return at * (len(logs) - at) * (high - low) ** 2

    at = max(range(least, len(logs) - least + 1), key=between)
    low, high = logs[:at], logs[at:]
    spread = max(LEAST_SPREAD, _spread(low), _spread(high))
    is_clear = median(high) - median(low) >= GAP_SPREADS * spread and high[0] > low[-1]
    return math.exp((low[-1] + high[0]) / 2) if is_clear else None


def _spread(values: Sequence[float]) -> float:
    middle = median(values)
    return MAD_TO_SIGMA * median(abs(value - middle) for value in values)
