"""Whom a drop comes from: which node sends or receives less than it did, by pairs measured before and meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from statistics import median, median_high

from msgspec import Struct

from ncclcheck.model.benchmarks.soak import Direction, SoakPair

KEPT = 16  # rates of a pair
_SHARE = 0.6  # of the drop: so much less a pair must reach to have its part in it
_LEAST_LOSS = 0.03
_MOST = 0.75  # of a node's pairs in that direction
_FEWEST = 2  # pairs of a node that tell it from its partners


class Whom(Struct, frozen=True):
    """Where a drop comes from: a node and its direction, or the two ends of one path (no direction); `part`: lost."""

    hosts: tuple[str, ...]
    direction: Direction | None
    part: float


class PairHistory:
    """The rates of all pairs while nothing was wrong. A class because each round adds to it."""

    def __init__(self) -> None:
        self._rates: dict[tuple[str, str], deque[float]] = {}

    def add(self, pairs: Iterable[SoakPair]) -> None:
        """Remember these rates as usual ones."""
        for pair in pairs:
            if pair.gbit_s > 0:
                self._rates.setdefault(_way(pair), deque(maxlen=KEPT)).append(pair.gbit_s)

    def parts(self, pairs: Sequence[SoakPair]) -> dict[tuple[str, str], float]:
        """Return which part of its usual rate each pair reaches; one that was never measured is compared with all."""
        everywhere = [median(rates) for rates in self._rates.values()]
        found: dict[tuple[str, str], list[float]] = {}
        for pair in pairs:
            own = self._rates.get(_way(pair))
            usual = median_high(own) if own else median(everywhere) if everywhere else 0.0
            if usual > 0:
                found.setdefault(_way(pair), []).append(pair.gbit_s / usual)
        return {way: median(parts) for way, parts in found.items()}


def whom(parts: dict[tuple[str, str], float], drop: float) -> Whom | None:
    """Return where a drop of that part of the speed comes from; None where the pairs do not tell.

    A node is named in a direction if most of its pairs in it are slow, with two partners or more; among several such
    ends the slowest one, and others that are as slow. A pair that no such end explains is named by itself. Where all
    pairs are slow alike, no node is.
    """
    limit = 1 - max(_LEAST_LOSS, _SHARE * drop)
    slow = {way for way, part in parts.items() if part <= limit}
    if not slow or len(slow) == len(parts) > _FEWEST:
        return None
    ends = {
        (host, end): [way for way in parts if way[end] == host]
        for end in (0, 1)
        for host in {way[end] for way in parts}
    }
    bad = {
        key: median(parts[way] for way in ways)
        for key, ways in ends.items()
        if len(ways) >= _FEWEST and sum(way in slow for way in ways) >= _MOST * len(ways)
    }
    if not bad:
        way = min(slow, key=lambda pair: parts[pair])
        return Whom(way, None, 1 - parts[way])
    (host, end), part = min(bad.items(), key=lambda item: item[1])
    both = bad.get((host, 1 - end)) is not None
    direction: Direction = "both" if both else "receive" if end else "send"
    return Whom((host,), direction, 1 - part)


def _way(pair: SoakPair) -> tuple[str, str]:
    return pair.from_host, pair.to_host
