"""Which node or pair is slower than the others: a slow sender and a slow receiver are distinguished from their victims.

A transfer is as fast as the slower of its ends and the way between them. So an end is known by its best transfer, and
the usual speed is the median of that over the nodes (as senders, as receivers, the lower one), however many transfers
one slow node spoils.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal, TypeAlias

from msgspec import Struct

Pair: TypeAlias = tuple[str, str]  # from, to
End: TypeAlias = Literal["sender", "receiver"]

FEWEST_NODES = 3  # of two nodes it is not known which one is slow
NODE_LOSS = 0.30  # of all transfers of a node in one direction
PAIR_LOSS = 0.50  # of the single transfer of a pair: it could have met other traffic
_NO_SCATTER = 0.25  # of the usual speed
LATENCY_FACTOR, LATENCY_MORE_US = 3.0, 100.0
_OUTLIER = 3.5  # robust standard deviations (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993)
_MAD_TO_SIGMA = 1.4826  # of a normal distribution
_LEAST_SPREAD = 0.03  # of the usual value
_FEWEST_TRANSFERS = 2  # of a node in one direction, to call it the slow end of them


class SlowEnd(Struct, frozen=True):
    """A node all of whose transfers in one direction are slow: their median, and what is usual."""

    host: str
    end: End
    median: float
    usual: float
    pairs: tuple[Pair, ...]


class SlowPair(Struct, frozen=True):
    """A transfer that is slow though both its ends are fast with others."""

    pair: Pair
    value: float
    usual: float


def slow_ends(
    values: Mapping[Pair, float], unusable: frozenset[Pair] = frozenset()
) -> tuple[tuple[SlowEnd, ...], tuple[SlowPair, ...]]:
    """Return the slow senders and receivers, and the slow pairs that they do not explain.

    `values` is a speed per transfer.

    Slow: below the usual speed by 30 % (a pair: by half) and by more than 3.5 robust standard deviations (1.4826 MAD
    of the transfers between the two), or to a quarter of it, which no scatter explains. The opposite direction of a
    slow end is not called a slow pair: its acknowledgements wait behind the data that the slow end moves at the same
    time. What is in `unusable` counts for what is usual, but is never called slow; where it was fast, it clears its
    ends. A pair is blamed only where each of its ends was fast with another node, or had no other partner.
    """
    hosts = {host for pair in values for host in pair}
    if len(hosts) < FEWEST_NODES:
        return (), ()
    usual = min(_usual(values, 0), _usual(values, 1))
    ordinary = [value for value in values.values() if (1 - NODE_LOSS) * usual <= value <= usual]
    limit = max(usual - _OUTLIER * _deviation(ordinary, usual), _NO_SCATTER * usual)
    below = {pair for pair, value in values.items() if value < min((1 - NODE_LOSS) * usual, limit)}
    low = below - unusable
    ends: list[SlowEnd] = []
    unexplained = set(low)
    all_of_ends = _by_end(values, low)
    while (worst := _worst_end((values, all_of_ends), below, low, unexplained)) is not None:
        host, end, pairs = worst
        ends.append(SlowEnd(host, end, median(values[pair] for pair in pairs), usual, pairs))
        unexplained -= set(pairs)
    touched = {(slow_end.host, slow_end.end) for slow_end in ends}
    pairs_left = sorted(
        pair
        for pair in unexplained
        if values[pair] < (1 - PAIR_LOSS) * usual
        and all(_is_fast_elsewhere(values, below, pair, position) for position in (0, 1))
        and not {(pair[1], "sender"), (pair[0], "receiver")}
        & touched  # its acknowledgements wait in that queue
    )
    return tuple(ends), tuple(SlowPair(pair, values[pair], usual) for pair in pairs_left)


def slow_way_of_two(
    values: Mapping[Pair, float], unusable: frozenset[Pair] = frozenset()
) -> tuple[SlowPair, ...]:
    """Return the slow direction between two nodes, below half of the other; which node is slow is unknown.

    What is in `unusable` is never called slow.
    """
    return tuple(
        SlowPair(pair, value, values[pair[::-1]])
        for pair, value in sorted(values.items())
        if pair not in unusable and value < (1 - PAIR_LOSS) * values.get(pair[::-1], 0.0)
    )


def _usual(values: Mapping[Pair, float], position: int) -> float:
    """Return the median over the nodes of the best that each sends (0) or receives (1) with."""
    best: dict[str, float] = {}
    for pair, value in values.items():
        best[pair[position]] = max(value, best.get(pair[position], 0.0))
    return median(best.values())


def _is_fast_elsewhere(values: Mapping[Pair, float], below: set[Pair], pair: Pair, position: int) -> bool:
    """Return whether the sender (0) or receiver (1) of a pair was fast with another node, or had no other."""
    elsewhere = [found for found in values if found[position] == pair[position] and found != pair]
    return not elsewhere or not below.issuperset(elsewhere)


def _by_end(values: Mapping[Pair, float], low: set[Pair]) -> dict[tuple[str, End], list[Pair]]:
    """Return all transfers of each end of the slow ones."""
    found: dict[tuple[str, End], list[Pair]] = {}
    hosts = {host for pair in low for host in pair}
    for pair in values:
        if pair[0] in hosts:
            found.setdefault((pair[0], "sender"), []).append(pair)
        if pair[1] in hosts:
            found.setdefault((pair[1], "receiver"), []).append(pair)
    return found


def _worst_end(
    known: tuple[Mapping[Pair, float], Mapping[tuple[str, End], list[Pair]]],
    below: set[Pair],
    low: set[Pair],
    unexplained: set[Pair],
) -> tuple[str, End, tuple[Pair, ...]] | None:
    """Return the end of which all transfers are slow, and which explains most of those that nothing explains yet.

    `low`: those of the slow ones (`below`) that count.
    """
    explains: list[tuple[int, float, str, End, tuple[Pair, ...]]] = []
    values, all_of_ends = known
    ends: tuple[End, End] = ("sender", "receiver")
    for host in {host for pair in unexplained for host in pair}:
        for end in ends:
            all_of_end = all_of_ends.get((host, end), [])
            mine = tuple(sorted(low.intersection(all_of_end)))
            new = len(unexplained.intersection(mine))
            if len(mine) >= _FEWEST_TRANSFERS and below.issuperset(all_of_end) and new:
                explains.append((-new, median(values[pair] for pair in mine), host, end, mine))
    if not explains:
        return None
    _, _, host, end, mine = min(explains)
    return host, end, mine


def _deviation(values: Sequence[float], middle: float) -> float:
    """Return a robust standard deviation around `middle`, and at least 3 % of it."""
    spread = _MAD_TO_SIGMA * median(abs(value - middle) for value in values) if values else 0.0
    return max(spread, _LEAST_SPREAD * middle)


class LatePairs(Struct, frozen=True):
    """Round trips far above the usual one: the node that is in all of them (None: no single one), and the pairs."""

    host: str | None
    median_us: float
    usual_us: float
    pairs: tuple[Pair, ...]


def late_pairs(medians_us: Mapping[Pair, float], least_us: Mapping[Pair, float]) -> tuple[LatePairs, ...]:
    """Return the pairs whose round trip is far above the others', grouped by the node they have in common.

    Far above: three times the usual one and 100 us more, and more than 3.5 robust standard deviations (1.4826 MAD);
    and so is the pair's quickest round trip, since a median can be a busy CPU. A node all of whose pairs are late is
    the one in common; without such a node, the pairs are named.
    """
    hosts = {host for pair in medians_us for host in pair}
    if len(hosts) < FEWEST_NODES:
        return ()
    of_host: dict[str, list[Pair]] = {host: [] for host in hosts}
    for pair in medians_us:
        for host in set(pair):
            of_host[host].append(pair)
    usual = median(min(medians_us[pair] for pair in pairs) for pairs in of_host.values())
    quick = [value for value in medians_us.values() if not _is_late(value, usual)]
    limit = usual + _OUTLIER * _deviation(quick, usual)
    late = {
        pair
        for pair, value in medians_us.items()
        if value > limit and _is_late(value, usual) and _is_late(least_us.get(pair, value), usual)
    }
    found = []
    for host in sorted(hosts):
        mine = tuple(sorted(of_host[host]))
        if len(mine) >= _FEWEST_TRANSFERS and late.issuperset(mine):
            found.append(LatePairs(host, median(medians_us[pair] for pair in mine), usual, mine))
    left = late - {pair for pairs in found for pair in pairs.pairs}
    if left:
        rest = tuple(sorted(left))
        found.append(LatePairs(_common(rest), median(medians_us[pair] for pair in rest), usual, rest))
    return tuple(found)


def _is_late(value_us: float, usual_us: float) -> bool:
    return value_us > LATENCY_FACTOR * usual_us and value_us > usual_us + LATENCY_MORE_US


def _common(pairs: Sequence[Pair]) -> str | None:
    """Return the one node that is in all of several pairs of nodes."""
    shared = set(pairs[0]).intersection(*pairs)
    return next(iter(shared)) if len(shared) == 1 else None
