"""Relates the clocks of all nodes to each other from the offsets of some pairs, each with the bound of its error."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from statistics import median

from msgspec import Struct

_PAIR = 2
Offsets = Mapping[
    tuple[str, str], tuple[float, float]
]  # (from, to) -> how far `to` is ahead, and the bound, in us


class Deviation(Struct, frozen=True):
    """How far a node's clock is ahead of the usual one, in us, and the bound of the error of that."""

    host: str
    ahead_us: float
    bound_us: float

    def is_beyond(self, limit_us: float) -> bool:
        """Return whether it is certain: also at the near end of what is possible."""
        return abs(self.ahead_us) - self.bound_us > limit_us


def deviations(offsets: Offsets) -> tuple[Deviation, ...]:
    """Return each node's clock against the median of those it can be compared with; bounds add up along the path.

    The usual clock is the median of the largest group of nodes that measurements connect; nodes outside it are not in
    the result. Of two nodes neither is the usual one: the first is taken as zero.
    """
    around = _around(offsets)
    groups: list[dict[str, tuple[float, float]]] = []
    for host in around:
        if not any(host in group for group in groups):
            groups.append(_from(host, around))
    if not groups:
        return ()
    largest = max(groups, key=len)
    usual = median(sorted(ahead for ahead, _ in largest.values())) if len(largest) > _PAIR else 0.0
    middle = min(largest, key=lambda host: abs(largest[host][0] - usual))
    against = _from(middle, around)
    return tuple(Deviation(host, *against[host]) for host in sorted(against))


def _around(offsets: Offsets) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the neighbours of each node with the offset and bound; of a pair measured twice the closer one."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for (source, target), (ahead, bound) in offsets.items():
        for host, peer, value in ((source, target, ahead), (target, source, -ahead)):
            known = found.setdefault(host, {}).get(peer)
            if known is None or bound < known[1]:
                found[host][peer] = value, bound
    return found


def _from(
    start: str, around: Mapping[str, Mapping[str, tuple[float, float]]]
) -> dict[str, tuple[float, float]]:
    """Return how far each reachable node is ahead of `start`, by the path with the least sum of bounds."""
    reached: dict[str, tuple[float, float]] = {}
    queue: list[tuple[float, str, float]] = [(0.0, start, 0.0)]
    while queue:
        bound, host, ahead = heapq.heappop(queue)
        if host in reached:
            continue
        reached[host] = ahead, bound
        for peer, (more, further) in around[host].items():
            if peer not in reached:
                heapq.heappush(queue, (bound + further, peer, ahead + more))
    return reached
