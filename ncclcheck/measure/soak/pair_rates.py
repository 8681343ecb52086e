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
_AS_SLOW = 0.75  # of what the slowest node lost
_LEAST_RUNNING = 0.05  # of the time, by which a rate is divided
_FEWEST = 2  # pairs of a node that tell it from its partners


class DropSource(Struct, frozen=True):
    """Where a drop comes from: nodes and their direction, or both ends of one path; `part`: lost by the slowest.

    A path that is slow one way has no direction, from the first host to the second.
    """

    hosts: tuple[str, ...]
    direction: Direction | None
    part: float
    is_path: bool = False


class PairHistory:
    """The rates of all pairs while nothing was wrong. A class because each round adds to it."""

    def __init__(self) -> None:
        self._rates: dict[tuple[str, str], deque[float]] = {}
        self._waited: dict[tuple[str, str], deque[float]] = {}

    def add(self, pairs: Iterable[SoakPair]) -> None:
        """Remember these rates as usual ones."""
        for pair in pairs:
            if pair.gbit_s > 0:
                self._rates.setdefault(_host_pair(pair), deque(maxlen=KEPT)).append(pair.gbit_s)
                self._waited.setdefault(_host_pair(pair), deque(maxlen=KEPT)).append(pair.waited)

    def parts(self, pairs: Sequence[SoakPair]) -> dict[tuple[str, str], float]:
        """Return which part of its usual rate each pair reaches; one without an earlier measurement is left out.

        An end that waited for a core, longer than usual, may have lost all that time by it: a pair counts as fast as
        it would have been without, so that what other programs do on the cores is not said of the network.
        """
        usual: dict[tuple[str, str], float] = {}
        found: dict[tuple[str, str], list[float]] = {}
        for pair in pairs:
            direction = _host_pair(pair)
            if direction not in self._rates:
                continue
            if direction not in usual:
                usual[direction] = median_high(self._rates[direction])
            running = (1 - pair.waited) / max(_LEAST_RUNNING, 1 - median(self._waited[direction]))
            running = min(1.0, max(_LEAST_RUNNING, running))
            found.setdefault(direction, []).append(pair.gbit_s / usual[direction] / running)
        return {direction: median(parts) for direction, parts in found.items()}


def drop_source(parts: dict[tuple[str, str], float], drop: float) -> DropSource | None:
    """Return where a drop of that part of the speed comes from; None where the pairs do not tell.

    A node is named in a direction if most of its pairs in it are slow, with two partners or more, and others that are
    as slow with it. Such nodes have to explain most of the slow pairs: what is shared by many paths is no node's. A
    single slow path is named by its ends. Where all pairs are slow alike, nobody is named.
    """
    limit = 1 - max(_LEAST_LOSS, _SHARE * drop)
    slow = {one_direction for one_direction, part in parts.items() if part <= limit}
    if not slow or len(slow) == len(parts) > _FEWEST:
        return None
    if len({frozenset(one_direction) for one_direction in slow}) == 1:
        one_direction = min(slow, key=lambda pair: parts[pair])
        return DropSource(
            one_direction, "both" if len(slow) > 1 else None, 1 - parts[one_direction], is_path=True
        )
    bad = [_bad_ends(parts, slow, end) for end in (0, 1)]
    named = [_slowest(ends) for ends in bad]
    explained = [
        sum(
            one_direction[end] in named[end]
            or (one_direction[1 - end] in named[end] and one_direction[1 - end] in bad[1 - end])
            for one_direction in slow
        )
        for end in (0, 1)
    ]
    end = 0 if explained[0] >= explained[1] else 1
    if explained[end] <= len(slow) / 2:
        return None
    hosts = named[end]
    both = all(host in bad[1 - end] for host in hosts)
    direction: Direction = "both" if both else "receive" if end else "send"
    return DropSource(tuple(sorted(hosts)), direction, 1 - min(bad[end][host] for host in hosts))


def _bad_ends(parts: dict[tuple[str, str], float], slow: set[tuple[str, str]], end: int) -> dict[str, float]:
    """Return the nodes most of whose pairs are slow with them at that end, and which part they reach."""
    directions_of: dict[str, list[tuple[str, str]]] = {}
    for direction in parts:
        directions_of.setdefault(direction[end], []).append(direction)
    return {
        host: median(parts[direction] for direction in directions)
        for host, directions in directions_of.items()
        if len(directions) >= _FEWEST
        and sum(direction in slow for direction in directions) >= _MOST * len(directions)
    }


def _slowest(ends: dict[str, float]) -> list[str]:
    """Return the slowest node, and those that are as slow."""
    lost = 1 - min(ends.values(), default=1.0)
    return [host for host, part in ends.items() if 1 - part >= _AS_SLOW * lost]


def _host_pair(pair: SoakPair) -> tuple[str, str]:
    return pair.from_host, pair.to_host
