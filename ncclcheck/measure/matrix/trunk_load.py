"""How much the trunks were loaded in each round, and which pairs load them again.

Nobody knows at first which nodes are behind one switch. Of all nodes in random pairs, in both directions, half cross
the trunk between two leaves: at 2:1 that fills it, and chance makes it a little more in one round and less in another.
The slowest pairs of such a round cross it. They are kept and the others are paired anew, of which half cross it as
well, so the load grows until pairs that cross are clearly slow. A fast pair is evidence only then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set

from msgspec import Struct

from ncclcheck.measure.isolation.pair_tests import Pair, PairTest
from ncclcheck.measure.matrix.cells import CellScale

LEAST_LOADED = 0.05  # of the pairs of a loaded round are slow
OF_HIGHEST = 0.5  # and such a part of the highest share of all rounds
FEW_SLOW, MANY_SLOW = 0.65, 0.85  # of the pairs: more load is wanted, less is enough
KEPT_STEP = 0.25  # of the nodes: so many more, or fewer, are in pairs that are kept
MOST_KEPT = 0.5  # as long as no round was loaded: the others have to be paired anew
MOST_LOADING = 0.75  # later


class Loads(Struct, frozen=True):
    """The tests, whether each was slow, the share of slow ones of each round, and which rounds loaded the trunks."""

    tests: Sequence[PairTest]
    slow: Sequence[bool]
    shares: Mapping[int, float]
    loaded: Set[int]

    def telling(self) -> Iterator[tuple[PairTest, bool]]:
        """Yield the slow tests, and the fast ones of rounds that loaded the trunks; all where no round did."""
        for test, is_slow in zip(self.tests, self.slow, strict=True):
            if is_slow or not self.loaded or test.round in self.loaded:
                yield test, is_slow


def loads_of(tests: Sequence[PairTest], scale: CellScale) -> Loads:
    """Return how much these tests loaded the trunks."""
    slow = [scale.is_slow(test) for test in tests]
    of_round: defaultdict[int, list[bool]] = defaultdict(list)
    for test, is_slow in zip(tests, slow, strict=True):
        of_round[test.round].append(is_slow)
    shares = {number: sum(of_round[number]) / len(of_round[number]) for number in sorted(of_round)}
    highest = max(shares.values(), default=0.0)
    loaded = {number for number, share in shares.items() if share >= OF_HIGHEST * highest}
    return Loads(tests, slow, shares, loaded if highest >= LEAST_LOADED else frozenset())


def loading_pairs(loads: Loads) -> tuple[Pair, ...]:
    """Return so many pairs as the next round needs to load the trunks.

    They are those that were slow in the latest loaded rounds; where no round was loaded, the slowest of the last.
    """
    if not loads.tests:
        return ()
    last = max(loads.shares)
    in_last = sum(test.round == last for test in loads.tests)
    most_pairs = round(_loading_share(loads.shares, MOST_LOADING if loads.loaded else MOST_KEPT) * in_last)
    busy: set[int] = set()
    pairs: list[Pair] = []
    for test in _by_load(loads, last):
        if len(pairs) == most_pairs:
            break
        if busy.isdisjoint(test.pair):
            busy.update(test.pair)
            pairs.append((test.first, test.second))
    return tuple(pairs)


def _by_load(loads: Loads, last: int) -> Iterator[PairTest]:
    """Yield the slow tests of loaded rounds, the latest first; without any, those of the last, the slowest first."""
    if loads.loaded:
        for at in range(len(loads.tests) - 1, -1, -1):
            if loads.slow[at] and loads.tests[at].round in loads.loaded:
                yield loads.tests[at]
        return
    rated = [
        (min(test.rates_gbit_s), test) for test in loads.tests if test.round == last and test.rates_gbit_s
    ]
    yield from (test for _, test in sorted(rated, key=lambda entry: entry[0]))


def _loading_share(shares: Mapping[int, float], most: float) -> float:
    """Return of which part of the nodes the pairs are kept: more after rounds with few slow pairs."""
    part = 0.0
    for share in shares.values():
        step = KEPT_STEP if share < FEW_SLOW else -KEPT_STEP if share > MANY_SLOW else 0.0
        part = min(most, max(0.0, part + step))
    return part
