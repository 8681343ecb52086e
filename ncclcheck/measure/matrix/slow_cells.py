"""Paths that are slow in one direction although both nodes and their trunks are not: measured again, then named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from msgspec import Struct

from ncclcheck.measure.isolation.pair_tests import Pair, PairTest
from ncclcheck.measure.matrix.cells import CellScale, is_few, rates_by_path
from ncclcheck.measure.matrix.few_cells import levels_of, turn_again
from ncclcheck.measure.matrix.leaves import Leaves

AGAIN = 2  # further tests, all slow in the same direction, name a cell
MOST_AGAIN_ROUNDS = 6
ROW_SLOW = 0.8  # of its tests a slow node spoils at least so many


class SlowCell(Struct, frozen=True):
    """A path from one node to another: the median of its rates when measured again, as a part of what is usual.

    None: nothing got through. `usual_gbit_s`: what the other paths of its kind reach. `slow`: in how many of its tests
    it was slow.
    """

    source: int
    target: int
    part: float | None
    usual_gbit_s: float
    tests: int
    slow: int


class OpenCell(Struct, frozen=True):
    """A path that was slow at first, and neither in all tests after that nor in none: in how many of how many."""

    source: int
    target: int
    slow: int
    tests: int


class SlowRow(Struct, frozen=True):
    """A node that is slow with all others: whether it sends slowly, and receives slowly."""

    member: int
    sends: bool
    receives: bool


class Kinds(Struct, frozen=True):
    """All tests, what each round was for, the leaves and the scale that they are judged by."""

    tests: Sequence[PairTest]
    of_round: Mapping[int, str]
    leaves: Leaves
    scale: CellScale

    def of(self, *kinds: str) -> list[PairTest]:
        """Return the tests of rounds of these kinds."""
        return [test for test in self.tests if self.of_round.get(test.round) in kinds]


def pairs_again(known: Kinds) -> tuple[Pair, ...]:
    """Return the suspect pairs to be measured again now, the slowest first; none where nothing is open."""
    again = {number for number, kind in known.of_round.items() if kind == "again"}
    if is_few(known.leaves.order):
        return turn_again(known.leaves.order, levels_of(known.tests, known.leaves), len(again))
    if len(again) >= MOST_AGAIN_ROUNDS:
        return ()
    usual = _Usual(known)
    tests = rates_by_path(known.of("again"))
    busy: set[int] = set()
    pairs: list[Pair] = []
    for path in _suspects(known, usual):
        path_rates = tests.get(path, ())
        if (
            len(path_rates) < AGAIN
            and all(usual.is_slow(path, rate) for rate in path_rates)
            and busy.isdisjoint(path)
        ):
            busy.update(path)
            pairs.append(path)
    return tuple(pairs)


def slow_cells(known: Kinds) -> tuple[SlowCell, ...]:
    """Return the paths that were slow whenever they were measured again."""
    if is_few(known.leaves.order):
        return _slow_of_few(known)
    usual = _Usual(known)
    tests = rates_by_path(known.of("again"))
    found = []
    for path in _suspects(known, usual):
        path_rates = tests.get(path, ())
        if len(path_rates) >= AGAIN and all(usual.is_slow(path, rate) for rate in path_rates):
            rates = [rate for rate in path_rates if rate is not None]
            part = median(rates) / usual.of(path) if rates else None
            found.append(SlowCell(*path, part, usual.of(path), len(path_rates) + 1, len(path_rates) + 1))
    return tuple(found)


def open_cells(known: Kinds) -> tuple[OpenCell, ...]:
    """Return the suspect paths that are neither named nor cleared, the slowest first.

    A path is cleared when it was slow in no repeat. Where the rounds were over before its repeats, or it was slow in
    some of them, nobody can tell a path that is slow at times from a disturbance.
    """
    if is_few(known.leaves.order):
        return _open_of_few(known)
    usual = _Usual(known)
    tests = rates_by_path(known.of("again"))
    found = []
    for path in _suspects(known, usual):
        path_rates = tests.get(path, ())
        slow = sum(usual.is_slow(path, rate) for rate in path_rates)
        is_named = slow == len(path_rates) >= AGAIN
        if not is_named and (slow or not path_rates):
            found.append(OpenCell(*path, slow + 1, len(path_rates) + 1))
    return tuple(found)


def _slow_of_few(known: Kinds) -> tuple[SlowCell, ...]:
    """Return the paths of few nodes that are far below the others in all their tests, or came through in no repeat."""
    again = rates_by_path(known.of("again"))
    found = []
    for path, level in levels_of(known.tests, known.leaves).items():
        repeats = again.get(path, ())
        if len(repeats) < AGAIN:
            continue
        if level is not None and level.is_slow:
            part = level.gbit_s / level.usual_gbit_s
            found.append(SlowCell(*path, part, level.usual_gbit_s, level.tests, level.slow))
        elif level is None and not any(repeats):
            found.append(SlowCell(*path, None, _Usual(known).of(path), len(repeats) + 1, len(repeats) + 1))
    return tuple(found)


def _open_of_few(known: Kinds) -> tuple[OpenCell, ...]:
    """Return the paths of few nodes that are slow by the middle of their tests, which vary too much to name them."""
    named = {(cell.source, cell.target) for cell in _slow_of_few(known)}
    paths = rates_by_path(known.tests)
    found = []
    for path, level in levels_of(known.tests, known.leaves).items():
        if path in named:
            continue
        if level is None:
            found.append(OpenCell(*path, sum(rate is None for rate in paths[path]), len(paths[path])))
        elif level.is_low:
            found.append(OpenCell(*path, level.slow, level.tests))
    return tuple(found)


def slow_rows(known: Kinds) -> tuple[SlowRow, ...]:
    """Return the nodes that are apart, with the direction in which nearly all of their paths are slow."""
    paths = rates_by_path(known.tests)
    cut = known.scale.cut_gbit_s
    rows = []
    for member in known.leaves.apart:
        slow_ends = []
        for end in (0, 1):
            row_rates = [rate for path, rates in paths.items() if path[end] == member for rate in rates]
            slow = sum(rate is None or rate < cut for rate in row_rates)
            slow_ends.append(bool(row_rates) and slow >= ROW_SLOW * len(row_rates))
        if any(slow_ends):
            rows.append(SlowRow(member, slow_ends[0], slow_ends[1]))
    return tuple(rows)


class _Usual:
    """What a path of its kind reaches: the reference within a leaf, across leaves what all at once reach there."""

    def __init__(self, known: Kinds) -> None:
        self._leaves, self._scale = known.leaves, known.scale
        self._number_of = known.leaves.number_of()
        rates = [rate for test in known.of("across") for rate in test.rates_gbit_s or ()]
        self._across_gbit_s = median(rates) if rates else 0.0

    def of(self, path: Pair) -> float:
        """Return the rate; 0 where nobody knows it."""
        number_of = self._number_of
        is_within = self._leaves.is_flat or number_of.get(path[0]) == number_of.get(path[1])
        return self._scale.reference_gbit_s if is_within else self._across_gbit_s

    def is_slow(self, path: Pair, rate_gbit_s: float | None) -> bool:
        """Return whether that is slow. Shares of a trunk differ more than rates within a leaf."""
        if rate_gbit_s is None:
            return True
        usual_gbit_s = self.of(path)
        is_shared = usual_gbit_s < self._scale.cut_gbit_s
        return rate_gbit_s < usual_gbit_s * (1 - min(0.8, self._scale.gap * (2 if is_shared else 1)))


def _suspects(known: Kinds, usual: _Usual) -> list[Pair]:
    """Return the paths that were slow in any round of all nodes, the slowest first."""
    apart = frozenset(known.leaves.apart)
    worst: dict[Pair, float] = {}
    for path, rates in rates_by_path(known.of("all", "within")).items():
        if apart.isdisjoint(path):
            slow = [rate or 0.0 for rate in rates if usual.is_slow(path, rate)]
            if slow:
                worst[path] = min(slow) / max(usual.of(path), 1e-9)
    return sorted(worst, key=lambda path: worst[path])
