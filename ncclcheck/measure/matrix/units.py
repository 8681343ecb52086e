"""Leaves of many nodes without all pairs: neighbours in the order of the nodes first, then unit against unit.

That two nodes are behind one switch is an equivalence, so nodes that were fast together are one unit from then on.
A trunk shows only while it is loaded: a quarter of the nodes at most are probes, and all others send from the front of
the order to its end at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ncclcheck.measure.isolation.pair_tests import Pair, PairTest
from ncclcheck.measure.matrix.cells import CellScale, cell_scale
from ncclcheck.measure.matrix.leaves import Leaves, improved_leaves

STRIDE = 8  # every so many nodes a probe of two neighbours: a quarter of the nodes
NEIGHBOUR_ROUNDS = 2 * STRIDE  # each pair of neighbours twice
FAST, SLOW = 2.0, -3.0  # evidence of a test that two units are one
SAME, DIFFERENT = 4.0, -8.0  # two fast tests merge, three slow ones keep apart: fewer may be disturbances
PROBES = 2  # of two units in one round
LEAST_LEAN, LEAN_SPREADS = 0.04, 3.0  # a loss that is no structure yet may show which trunks are loaded
TURN = 7  # places per round
MOST_UNITS = 2048  # more are not compared: the order of the nodes says nothing about their switches

Evidence = Mapping[Pair, float]
Units = list[list[int]]


def neighbour_round(order: Sequence[int], number: int, tests: Sequence[PairTest] = ()) -> tuple[Pair, ...]:
    """Return round `number` of neighbours, from 0, with all other nodes as load."""
    starts = range(number % STRIDE, len(order) - 1, STRIDE)
    return _loaded(order, [(order[start], order[start + 1]) for start in starts], tests)


def unit_round(order: Sequence[int], tests: Sequence[PairTest], scale: CellScale) -> tuple[Pair, ...]:
    """Return probes between units that may be one, with all other nodes as load; none where all are decided."""
    units = units_of(order, tests, scale)
    if len(units) > MOST_UNITS:
        return ()
    between = _between(units, _evidence(order, tests, scale))
    free = [list(unit[: max(1, len(unit) // 4)]) for unit in units]
    probes: list[Pair] = []
    for first, second in _by_distance(len(units)):
        if not free[first] or not free[second]:
            continue
        if DIFFERENT < between.get((first, second), 0.0) < SAME:
            for _ in range(min(PROBES, len(free[first]), len(free[second]))):
                probes.append((free[first].pop(), free[second].pop()))
    return _loaded(order, probes, tests) if probes else ()


def units_of(order: Sequence[int], tests: Sequence[PairTest], scale: CellScale) -> Units:
    """Return the nodes that are fast together, in the order of their first ones."""
    evidence = _evidence(order, tests, scale)
    units = [[member] for member in order]
    while True:
        between = _between(units, evidence)
        merged: set[int] = set()
        for (first, second), sum_ in sorted(between.items(), key=lambda item: -item[1]):
            if sum_ < SAME or first in merged or second in merged:
                continue
            units[first] += units[second]
            units[second] = []
            merged |= {first, second}
        units = [unit for unit in units if unit]
        if not merged:
            return units


def leaves_of_units(order: Sequence[int], tests: Sequence[PairTest], scale: CellScale) -> Leaves:
    """Return the leaves that the units are; single ones are apart."""
    units = improved_leaves(units_of(order, tests, scale), order, tests, scale)
    place = {member: number for number, member in enumerate(order)}
    groups = sorted(
        (sorted(unit, key=place.__getitem__) for unit in units if len(unit) > 1),
        key=lambda unit: (-len(unit), place[unit[0]]),
    )
    apart = tuple(unit[0] for unit in units if len(unit) == 1)
    number_of = {member: number for number, unit in enumerate(groups) for member in unit}
    crossing = [
        scale.is_slow(test)
        for test in tests
        if test.first in number_of
        and test.second in number_of
        and number_of[test.first] != number_of[test.second]
    ]
    return Leaves(tuple(map(tuple, groups)), apart, sum(crossing) / len(crossing) if crossing else 0.0)


def _loaded(order: Sequence[int], probes: Sequence[Pair], tests: Sequence[PairTest]) -> tuple[Pair, ...]:
    """Return the probes, and pairs of all other nodes: each of the first half with one of the second.

    Half of the nodes send at a time, which loads a trunk only if most nodes behind it send. The order of the names may
    not say which: so the nodes are sorted by their lean first. The second half turns, so that other nodes meet.
    """
    busy = {end for pair in probes for end in pair}
    lean = _lean(tests)
    rest = sorted((member for member in order if member not in busy), key=lambda member: -lean[member])
    half = len(rest) // 2
    receivers = rest[len(rest) - half :]
    turn = len(tests) * TURN // max(1, len(order)) % max(1, half)
    return (*probes, *zip(rest[:half], [*receivers[turn:], *receivers[:turn]], strict=True))


def _lean(tests: Sequence[PairTest]) -> Mapping[int, int]:
    """Return how often each node was the first of a slow pair, less how often it was the second.

    A slow pair says that many nodes behind the switch of its first node send at the same time, or that many behind that
    of its second receive. Who sends together again loads these trunks more, so that the next pairs show it.
    """
    lean = defaultdict[int, int](int)
    scale = cell_scale(tests)
    if scale is None:
        return lean
    cut_gbit_s = scale.reference_gbit_s * (1 - max(LEAST_LEAN, LEAN_SPREADS * scale.spread))
    for test in tests:
        rates = test.rates_gbit_s
        if rates is not None and min(rates) < cut_gbit_s:
            lean[test.first] += 1
            lean[test.second] -= 1
    return lean


def _evidence(order: Sequence[int], tests: Sequence[PairTest], scale: CellScale) -> Evidence:
    """Return by pair of nodes how its tests speak for one switch."""
    present, evidence = frozenset(order), defaultdict[Pair, float](float)
    for test in tests:
        if test.first in present and test.second in present and test.rates_gbit_s is not None:
            evidence[test.pair] += SLOW if scale.is_slow(test) else FAST
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


def _by_distance(units: int) -> Iterator[Pair]:
    """Yield all pairs of units, near ones first."""
    for distance in range(1, units):
        for first in range(units - distance):
            yield first, first + distance
