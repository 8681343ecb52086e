"""Which paths of a few nodes are slow: too few cells to tell how far rates vary by chance, so all are repeated.

Pairs of few nodes are seldom measured at the same time, so they differ by whatever else the machines did meanwhile.
All pairs are measured again in turn, and the spread of the repeats says how far a path has to be below the others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from msgspec import Struct

from ncclcheck.measure.isolation.pair_tests import Pair, PairTest, middle_mean
from ncclcheck.measure.matrix.cells import LEAST_GAP, rates_by_path, spread_of_repeats
from ncclcheck.measure.matrix.leaves import Leaves
from ncclcheck.measure.matrix.tournament import tournament_round, tournament_rounds

LEAST_TURNS, MOST_TURNS = 3, 4  # of all pairs again, before a path is named, and in all
SURE = 6.0  # standard errors of a path below the usual one; the spread is known of few tests
_LEAST_RATE = 1e-12
_SHARED = 2.0  # shares of a trunk differ more than rates within a leaf


class Level(Struct, frozen=True):
    """The middle of a path's rates and what the others of its kind reach, in 1e9 bit/s, over so many tests.

    `slow`: how many of them were slow. `doubt`: the least loss that is no chance (natural logarithm).
    """

    gbit_s: float
    usual_gbit_s: float
    doubt: float
    slow: int
    tests: int

    @property
    def is_low(self) -> bool:
        """Return whether it lost so much that a job feels it, by chance or not."""
        return self.gbit_s < self.usual_gbit_s * (1 - LEAST_GAP)

    @property
    def is_slow(self) -> bool:
        """Return whether that is no chance."""
        return self.is_low and self.gbit_s <= self.usual_gbit_s * math.exp(-self.doubt)


def turn_again(order: Sequence[int], levels: Mapping[Pair, Level | None], rounds: int) -> tuple[Pair, ...]:
    """Return the next pairs after so many `rounds` of repeats: all in turn, until no path is doubtful; none at the end.

    A turn is ended first: the others show what the same time did to paths that are not slow.
    """
    of_turn = tournament_rounds(len(order))
    turns, place = divmod(rounds, of_turn) if of_turn else (0, 0)
    low = [level for level in levels.values() if level is None or level.is_low]
    is_named = turns >= LEAST_TURNS and all(level is None or level.is_slow for level in low)
    if not place and (not low or is_named or turns >= MOST_TURNS):
        return ()
    return tournament_round(order, place)


def levels_of(tests: Sequence[PairTest], leaves: Leaves) -> dict[Pair, Level | None]:
    """Return the level of each path, None where a test did not finish; without nodes that are slow with all."""
    apart = frozenset(leaves.apart)
    rates = {path: values for path, values in rates_by_path(tests).items() if apart.isdisjoint(path)}
    whole = {
        path: [math.log(max(rate, _LEAST_RATE)) for rate in values if rate is not None]
        for path, values in rates.items()
        if None not in values
    }
    spread = spread_of_repeats(whole.values())
    number_of = leaves.number_of()
    kinds: defaultdict[bool, list[Pair]] = defaultdict(list)
    for path in whole:
        kinds[not leaves.is_flat and number_of.get(path[0]) != number_of.get(path[1])].append(path)
    levels: dict[Pair, Level | None] = dict.fromkeys(path for path in rates if path not in whole)
    for is_across, paths in kinds.items():
        levels |= _of_kind({path: whole[path] for path in paths}, spread, shared=is_across)
    return levels


def _of_kind(rates: Mapping[Pair, list[float]], spread: float, *, shared: bool) -> dict[Pair, Level]:
    middles = {path: middle_mean(values) for path, values in rates.items()}
    upper = sorted(middles.values())[len(middles) // 2 :]  # up to half of the paths may be slow
    usual = median(upper)
    least = -math.log(1 - LEAST_GAP) * (_SHARED if shared else 1)
    return {
        path: Level(
            math.exp(middles[path]),
            math.exp(usual),
            max(least, SURE * spread / math.sqrt(len(values))),
            sum(value < usual - least for value in values),
            len(values),
        )
        for path, values in rates.items()
    }
