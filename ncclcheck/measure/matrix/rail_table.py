"""The rails of the nodes: GPU i with GPU i of the other nodes, and where GPUs are on each other's rails.

In the rounds of all pairs GPU i meets GPU i. Where that is slow on several rails of a node, GPU i meets GPU i + 1,
i + 2 and so on: cables that were swapped are fast there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from ncclcheck.measure.isolation.pair_tests import Pair, PairTest
from ncclcheck.measure.matrix.cells import LEAST_GAP

FEWEST_PARTNERS = 2  # with one it is not known which end is slow
SWAPPED_RAILS = 2  # slow ones on a node may be swapped
SHIFT_ROUNDS = 2  # of each shift


class Rail(Struct, frozen=True):
    """The rail of GPU `number` of all nodes: the median rate, in 1e9 bit/s, and the members that are slow on it."""

    number: int
    rate_gbit_s: float
    slow: tuple[int, ...]


class SwappedRails(Struct, frozen=True):
    """GPU `gpu` of a node is fast with GPU `rail` of the others and slow with GPU `gpu`."""

    member: int
    gpu: int
    rail: int


class RailTable(Struct, frozen=True):
    """All rails; `cross_gbit_s`: the median rate of a GPU with one of another rail.

    None: it was not measured; 0: no such test finished.
    """

    rails: tuple[Rail, ...]
    cross_gbit_s: float | None = None
    swapped: tuple[SwappedRails, ...] = ()


def rail_table(tests: Sequence[PairTest]) -> RailTable | None:
    """Return what the tests say of the rails; None where no node has several."""
    straight = [test for test in tests if len(test.rails) > 1 and not test.rail_shift]
    if not straight:
        return None
    count = min(len(test.rails) for test in straight)
    of_end: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for test in straight:
        for rail in range(count):
            for end in test.pair:
                of_end[end, rail].append(min(test.rails[rail]))
    usual = median(rate for rates in of_end.values() for rate in rates)
    slow = {
        end
        for end, rates in of_end.items()
        if len(rates) >= FEWEST_PARTNERS and median(rates) < (1 - LEAST_GAP) * usual
    }
    rails = tuple(
        Rail(
            rail,
            median(rate for (_, number), rates in of_end.items() if number == rail for rate in rates),
            tuple(sorted(member for member, number in slow if number == rail)),
        )
        for rail in range(count)
    )
    shifted = [test for test in tests if test.rail_shift]
    cross = [min(rates) for test in shifted for rates in test.rails]
    cross_gbit_s = median(cross) if cross else 0.0 if shifted else None
    return RailTable(rails, cross_gbit_s, _swapped(shifted, slow, (1 - LEAST_GAP) * usual))


def shift_round(tests: Sequence[PairTest], order: Sequence[int]) -> tuple[int, tuple[Pair, ...]]:
    """Return the next shift of the rails and its pairs; no pairs: nothing is open.

    Shift 1 shows how fast GPUs of different rails are; the others are only of use where a node may have swapped ones.
    """
    table = rail_table(tests)
    if table is None or len(order) < 2:  # noqa: PLR2004 (a pair)
        return 0, ()
    slow = [member for rail in table.rails for member in rail.slow]
    is_swap = any(slow.count(member) >= SWAPPED_RAILS for member in slow)
    for shift in range(1, len(table.rails) if is_swap else 2):
        done = {test.round for test in tests if test.rail_shift == shift}
        if len(done) < (SHIFT_ROUNDS if is_swap else 1):
            turned = [*order[len(done) :], *order[: len(done)]]
            return shift, tuple(zip(turned[0::2], turned[1::2], strict=False))
    return 0, ()


def _swapped(
    shifted: Sequence[PairTest], slow: set[tuple[int, int]], cut_gbit_s: float
) -> tuple[SwappedRails, ...]:
    """Return the slow GPUs that were always fast with GPUs of one other rail, and that rail."""
    rates_by_partner: defaultdict[tuple[int, int, int], list[float]] = defaultdict(list)
    for test in shifted:
        for gpu, rates in enumerate(test.rails):
            partner = (gpu + test.rail_shift) % len(test.rails)
            rates_by_partner[test.first, gpu, partner].append(min(rates))
            rates_by_partner[test.second, partner, gpu].append(min(rates))
    found = []
    for member, gpu in sorted(slow):
        fast = [
            rail
            for (node, number, rail), rates in sorted(rates_by_partner.items())
            if (node, number) == (member, gpu) and min(rates) >= cut_gbit_s
        ]
        if len(fast) == 1:
            found.append(SwappedRails(member, gpu, fast[0]))
    return tuple(found)
