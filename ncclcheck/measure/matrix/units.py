"""Leaves of many nodes without all pairs: neighbours in the order of the nodes first, then unit against unit.

That two nodes are behind one switch is an equivalence, so nodes that were fast together are one unit from then on. A
trunk shows only while it is loaded, so all nodes send and receive at the same time (docs/matrix.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from ncclcheck.measure.isolation.pair_tests import Pair, PairTest
from ncclcheck.measure.matrix.cells import CellScale, cell_scale
from ncclcheck.measure.matrix.leaves import Leaves, improved_leaves
from ncclcheck.measure.matrix.trunk_load import Loads, loading_pairs, loads_of

STRIDE = 8  # every so many nodes a probe of two neighbours: a quarter of the nodes
NEIGHBOUR_ROUNDS = 2 * STRIDE  # each pair of neighbours twice
FAST, SLOW = 2.0, -3.0  # evidence of a test that two units are one
SAME, DIFFERENT = 4.0, -8.0  # two fast tests merge, three slow ones keep apart: fewer may be disturbances
PROBES = 2  # of two units in one round that may be one
TURN = 7  # places per round
MOST_UNITS = 2048  # more are not compared: the order of the nodes says nothing about their switches

Evidence = Mapping[Pair, float]
Units = list[list[int]]


def neighbour_round(order: Sequence[int], number: int, tests: Sequence[PairTest] = ()) -> tuple[Pair, ...]:
    """Return round `number` of neighbours, from 0, with all other nodes as load."""
    starts = range(number % STRIDE, len(order) - 1, STRIDE)
    probes = [(order[start], order[start + 1]) for start in starts]
    busy = {end for pair in probes for end in pair}
    scale = cell_scale(tests)
    loading = loading_pairs(loads_of(tests, scale)) if scale is not None else ()
    free = [pair for pair in loading if busy.isdisjoint(pair)]
    return _filled(order, [*probes, *free], number)


def unit_round(order: Sequence[int], tests: Sequence[PairTest], scale: CellScale) -> tuple[Pair, ...]:
    """Return probes between units that may be one, with all other nodes as load; none where all are decided."""
    loads = loads_of(tests, scale)
    evidence = _evidence(order, loads)
    units = _merged(order, evidence)
    if len(units) > MOST_UNITS:
        return ()
    between = _between(units, evidence)
    number = max((test.round for test in tests), default=0)
    by_unit = [member for unit in units for member in unit]
    for loading in (loading_pairs(loads), ()):
        busy = {end for pair in loading for end in pair}
        free = [[member for member in unit if member not in busy] for unit in units]
        probes = list(_probes(units, between, free))
        if probes:
            return _filled(by_unit, [*probes, *loading], number)
    return ()


def units_of(order: Sequence[int], tests: Sequence[PairTest], scale: CellScale) -> Units:
    """Return the nodes that are fast together, in the order of their first ones."""
    return _merged(order, _evidence(order, loads_of(tests, scale)))


def _merged(order: Sequence[int], evidence: Evidence) -> Units:
    units = [[member] for member in order]
    while True:
        between = _between(units, evidence)
        merged: set[int] = set()
        for (first, second), sum_ in sorted(between.items(), key=lambda item: -item[1]):
            if sum_ < SAME:
                break
            if first in merged or second in merged:
                continue
            units[first] += units[second]
            units[second] = []
            merged |= {first, second}
        units = [unit for unit in units if unit]
        if not merged:
            return units


def leaves_of_units(order: Sequence[int], tests: Sequence[PairTest], scale: CellScale) -> Leaves:
    """Return the leaves that the units are; single ones are apart."""
    loads = loads_of(tests, scale)
    informative = list(loads.telling())
    units = _merged(order, _evidence(order, loads))
    units = improved_leaves(units, order, [test for test, _ in informative], scale)
    place = {member: number for number, member in enumerate(order)}
    groups = sorted(
        (sorted(unit, key=place.__getitem__) for unit in units if len(unit) > 1),
        key=lambda unit: (-len(unit), place[unit[0]]),
    )
    apart = tuple(unit[0] for unit in units if len(unit) == 1)
    number_of = {member: number for number, unit in enumerate(groups) for member in unit}
    crossing = [
        is_slow
        for test, is_slow in informative
        if test.first in number_of
        and test.second in number_of
        and number_of[test.first] != number_of[test.second]
    ]
    return Leaves(tuple(map(tuple, groups)), apart, sum(crossing) / len(crossing) if crossing else 0.0)


def _filled(order: Sequence[int], pairs: Sequence[Pair], number: int) -> tuple[Pair, ...]:
    """Return the pairs, and pairs of all other nodes: each of the first half with one of the second.

    Nodes that are near in this order are likely behind one switch. The second half turns, so that other nodes meet.
    """
    busy = {end for pair in pairs for end in pair}
    rest = [member for member in order if member not in busy]
    half = len(rest) // 2
    second = rest[len(rest) - half :]
    turn = number * TURN % max(1, half)
    return (*pairs, *zip(rest[:half], [*second[turn:], *second[:turn]], strict=True))


def _probes(units: Units, between: Evidence, free: Units) -> Iterator[Pair]:
    """Yield pairs of free nodes of units that may be one: those that look so, then new ones, then doubtful ones.

    The largest units come first: what is learnt of them holds for the most nodes.
    """
    likely = sorted((item for item in between.items() if 0 <= item[1] < SAME), key=lambda item: -item[1])
    for (first, second), _ in likely:
        yield from islice(_taken(free[first], free[second]), PROBES)
    ranked = sorted(range(len(units)), key=lambda number: -len(units[number]))
    for at, first in enumerate(ranked):
        for second in ranked[at + 1 :] if free[first] else ():
            if (min(first, second), max(first, second)) not in between:
                yield from islice(_taken(free[first], free[second]), 1)
                if not free[first]:
                    break
    doubtful = sorted(
        (item for item in between.items() if DIFFERENT < item[1] < 0), key=lambda item: -item[1]
    )
    for (first, second), _ in doubtful:
        yield from islice(_taken(free[first], free[second]), 1)


def _taken(first: list[int], second: list[int]) -> Iterator[Pair]:
    """Yield pairs of both, which are free no more."""
    while first and second:
        yield first.pop(), second.pop()


def _evidence(order: Sequence[int], loads: Loads) -> Evidence:
    """Return by pair of nodes how its tests speak for one switch."""
    present, evidence = frozenset(order), defaultdict[Pair, float](float)
    for test, is_slow in loads.telling():
        if test.first in present and test.second in present and test.outcome == "ok":
            evidence[test.pair] += SLOW if is_slow else FAST
    return evidence


def _between(units: Units, evidence: Evidence) -> dict[Pair, float]:
    """Return the evidence between units, by their numbers."""
    number_of = {member: number for number, unit in enumerate(units) for member in unit}
    between = defaultdict[Pair, float](float)
    for (first, second), value in evidence.items():
        units_met = (number_of[first], number_of[second])
        if units_met[0] != units_met[1]:
            between[min(units_met), max(units_met)] += value
    return between
