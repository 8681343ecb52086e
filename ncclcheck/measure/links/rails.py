"""The links of GPUs: each one's rail (GPU i of a node with GPU i of the others), and its links inside the node.

A rail is a GPU with its network card; all rails of a node send at the same time, as they do in a job. Ranks are the
ends of the transfers here, so a slow rail of a node is distinguished from its fast ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from statistics import median
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.measure.links.leave_one_out import LeaveOneOut
from ncclcheck.measure.links.outliers import FEWEST_NODES, NODE_LOSS, Pair, slow_ends
from ncclcheck.measure.links.pairing import rounds_of_pairs
from ncclcheck.model.bench import LinkSpeed

# PCIe between two sockets, or no NVLink bridge, is as fast as the machine is built: only what is far below is a fault
# (docs/measurements.md, "When a GPU counts as slow").
INSIDE_LOSS = 0.45
_OUTLIER = 3.5  # robust standard deviations
_LEAST_SPREAD = 0.03  # of the usual value
_FEWEST_OTHERS = 2
RankPair: TypeAlias = tuple[int, int]  # from, to: ranks
Place: TypeAlias = Literal["rail", "inside"]


class SlowRail(Struct, frozen=True):
    """A rank whose transfers in one direction, or in both, are slow; in 1e9 B/s.

    `peers`: the partners. `is_sure`: its partners are fast with others; else one of the two ends is slow, or the way
    between them.
    """

    rank: int
    host: str
    place: Place
    sends_gb_s: float | None
    receives_gb_s: float | None
    usual_gb_s: float
    peers: tuple[int, ...]
    is_sure: bool = True


def rail_rounds(hosts: Sequence[str]) -> tuple[tuple[RankPair, ...], ...]:
    """Return rounds of transfers between nodes, every rank at most once in each. `hosts` are the hosts of the ranks."""
    ranks = list(_by_host(hosts).values())
    rails = [
        [ranks_of_node[number] for ranks_of_node in ranks if number < len(ranks_of_node)]
        for number in range(max(map(len, ranks), default=0))
    ]
    return _together([rail for rail in rails if len(rail) > 1])


def inside_rounds(hosts: Sequence[str]) -> tuple[tuple[RankPair, ...], ...]:
    """Return rounds of transfers within each node, every rank at most once in each."""
    return _together([ranks for ranks in _by_host(hosts).values() if len(ranks) > 1])


def slow_rails(links: Sequence[LinkSpeed]) -> tuple[SlowRail, ...]:
    """Return the ranks whose rail, or whose links inside the node, are slow; nothing where nodes have one rank each.

    A rail as `outliers.slow_ends` decides, from three nodes on. Of two nodes each rail has one partner: those that are
    30 % slower than the median of the other rails, and outside their spread; which end it is, is not known then.
    """
    between = [link for link in links if link.from_host != link.to_host]
    inside = [link for link in links if link.from_host == link.to_host]
    found = []
    if has_rails(between):
        nodes = {host for link in between for host in (link.from_host, link.to_host)}
        found += _ends(between, "rail") if len(nodes) >= FEWEST_NODES else _of_two_nodes(between)
    within = _ends(inside, "inside")
    return (*found, *(rail for rail in within if _worst(rail) < (1 - INSIDE_LOSS) * rail.usual_gb_s))


def has_rails(links: Sequence[LinkSpeed]) -> bool:
    """Return whether some node has several ranks with links to other nodes."""
    ranks = {(link.from_host, link.from_rank) for link in links}
    return len(ranks) > len({host for host, _ in ranks})


def _ends(links: Sequence[LinkSpeed], place: Place) -> list[SlowRail]:
    values: Mapping[Pair, float] = {(str(link.from_rank), str(link.to_rank)): link.gb_s for link in links}
    host_of = {str(link.from_rank): link.from_host for link in links}
    ends, pairs = slow_ends(values)
    found = []
    for name in dict.fromkeys(end.host for end in ends):
        ends_of_place = {end.end: end for end in ends if end.host == name}
        peers = sorted(
            {
                int(peer)
                for end in ends_of_place.values()
                for pair in end.pairs
                for peer in pair
                if peer != name
            }
        )
        sends, receives = ends_of_place.get("sender"), ends_of_place.get("receiver")
        found.append(
            SlowRail(
                int(name),
                host_of[name],
                place,
                None if sends is None else sends.median,
                None if receives is None else receives.median,
                ends[0].usual,
                tuple(peers),
            )
        )
    if place == "rail":
        found += [
            SlowRail(int(pair.pair[0]), host_of[pair.pair[0]], place, pair.value, None, pair.usual,
                     (int(pair.pair[1]),), is_sure=False)
            for pair in pairs
        ]  # fmt: skip
    return found


def _of_two_nodes(links: Sequence[LinkSpeed]) -> list[SlowRail]:
    """Return the slow rails between two nodes, each once, with the rank of the first node and its only partner."""
    speeds: dict[RankPair, dict[RankPair, float]] = {}
    for link in links:
        ends = (link.from_rank, link.to_rank)
        speeds.setdefault((min(ends), max(ends)), {})[ends] = link.gb_s
    worst = {rail: min(speed.values()) for rail, speed in speeds.items()}
    host_of = {link.from_rank: link.from_host for link in links}
    others = LeaveOneOut(worst.values())
    found = []
    for rail, value in worst.items():
        usual = others.median(value)
        spread = others.spread(value, _LEAST_SPREAD * usual)
        if (
            len(others) < _FEWEST_OTHERS
            or value >= (1 - NODE_LOSS) * usual
            or usual - value <= _OUTLIER * spread
        ):
            continue
        first, second = rail
        sends, receives = speeds[rail].get(rail), speeds[rail].get((second, first))
        limit = (1 - NODE_LOSS) * usual
        found.append(
            SlowRail(
                first,
                host_of[first],
                "rail",
                sends if sends is not None and sends < limit else None,
                receives if receives is not None and receives < limit else None,
                usual,
                (second,),
                is_sure=False,
            )
        )
    return found


def _worst(rail: SlowRail) -> float:
    return median([value for value in (rail.sends_gb_s, rail.receives_gb_s) if value is not None])


def _by_host(hosts: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        found.setdefault(host, []).append(rank)
    return found


def _together(groups: Sequence[Sequence[int]]) -> tuple[tuple[RankPair, ...], ...]:
    """Return the rounds of all groups at the same time; no rank is in two groups."""
    of_each = [
        [[(group[first], group[second]) for first, second in pairs] for pairs in rounds_of_pairs(len(group))]
        for group in groups
    ]
    return tuple(
        tuple(pair for pairs in rounds for pair in pairs) for rounds in zip_longest(*of_each, fillvalue=[])
    )
