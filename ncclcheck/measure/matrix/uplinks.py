"""Which leaf has a slower uplink than the others: its nodes reach less across leaves while all nodes send."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from statistics import median
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.leaves import Leaves
from ncclcheck.model.benchmarks.isolation import Direction

LEAST_LEAVES = 3  # of two, nobody can tell whose uplink it is
LEAST_REPEATS = 2
SLOW_PART = 0.75  # of what is usual: at most so much of it is slow
_Rates: TypeAlias = Mapping[tuple[int, int], Sequence[float]]  # by leaf that sends and leaf that receives


class Uplink(Struct, frozen=True):
    """What the nodes of leaf number `leaf` reach across leaves, and what is usual between the others, in 1e9 bit/s.

    `slow`: the direction in which it is slow, seen from the leaf; None: in none.
    """

    leaf: int
    across_gbit_s: float
    usual_gbit_s: float
    slow: Direction | None


def leaf_uplinks(
    leaves: Leaves, tests: Sequence[PairTest], kinds: Mapping[int, str], ignored: Set[int]
) -> tuple[Uplink, ...]:
    """Return the uplink of each leaf of three or more, from the rounds across leaves; without these `ignored` nodes."""
    if len(leaves.groups) < LEAST_LEAVES:
        return ()
    repeats = _by_leaves(leaves, [test for test in tests if not ignored & {test.first, test.second}], kinds)
    carried = [_carried(leaf, repeats) for leaf in range(len(leaves.groups))]
    found = []
    for leaf, own in enumerate(carried):
        compared = [result for rates in repeats if (result := _compared(leaf, rates)) is not None]
        if len(compared) < LEAST_REPEATS:
            continue
        rest = [*carried[:leaf], *carried[leaf + 1 :]]
        sends = all(result.sends_slowly for result in compared) and _is_less(
            own.sent_gbit_s, [far.sent_gbit_s for far in rest]
        )
        receives = all(result.receives_slowly for result in compared) and _is_less(
            own.received_gbit_s, [far.received_gbit_s for far in rest]
        )
        found.append(
            Uplink(
                leaf,
                median(result.across_gbit_s for result in compared),
                median(result.usual_gbit_s for result in compared),
                "both" if sends and receives else "send" if sends else "receive" if receives else None,
            )
        )
    return tuple(found)


class _Compared(Struct, frozen=True):
    """The nodes of a leaf and those of the others in one repeat."""

    across_gbit_s: float
    usual_gbit_s: float
    sends_slowly: bool
    receives_slowly: bool


class _Carried(Struct, frozen=True):
    """The most that all nodes of a leaf together sent and received across leaves in any repeat, in 1e9 bit/s."""

    sent_gbit_s: float
    received_gbit_s: float


def _carried(leaf: int, repeats: Sequence[_Rates]) -> _Carried:
    return _Carried(
        max((sum(_sent(leaf, rates)) for rates in repeats), default=0.0),
        max((sum(_received(leaf, rates)) for rates in repeats), default=0.0),
    )


def _is_less(own_gbit_s: float, others_gbit_s: Sequence[float]) -> bool:
    """Return whether the leaf moved less than others did: a large leaf behind a usual uplink is only slow by node."""
    return own_gbit_s <= SLOW_PART * median(others_gbit_s)


def _sent(leaf: int, rates: _Rates) -> list[float]:
    return [rate for (source, _), of in rates.items() if source == leaf for rate in of]


def _received(leaf: int, rates: _Rates) -> list[float]:
    return [rate for (_, target), of in rates.items() if target == leaf for rate in of]


def _by_leaves(leaves: Leaves, tests: Sequence[PairTest], kinds: Mapping[int, str]) -> list[_Rates]:
    """Return the rates of each round across leaves, by the leaves of both ends."""
    number_of = leaves.number_of()
    rounds: defaultdict[int, defaultdict[tuple[int, int], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for test in tests:
        if kinds.get(test.round) != "across" or test.rates_gbit_s is None:
            continue
        first, second = number_of.get(test.first), number_of.get(test.second)
        if first is None or second is None or first == second:
            continue
        forth, back = test.rates_gbit_s
        rounds[test.round][first, second].append(forth)
        rounds[test.round][second, first].append(back)
    return list(rounds.values())


def _compared(leaf: int, rates: _Rates) -> _Compared | None:
    """Return the leaf against the others; None where it, or no pair of others, was measured."""
    usual = [rate for ends, of in rates.items() if leaf not in ends for rate in of]
    sent, received = _sent(leaf, rates), _received(leaf, rates)
    if not usual or not sent or not received:
        return None
    bar_gbit_s = SLOW_PART * median(usual)
    return _Compared(
        median([*sent, *received]),
        median(usual),
        sends_slowly=median(sent) <= bar_gbit_s,
        receives_slowly=median(received) <= bar_gbit_s,
    )
