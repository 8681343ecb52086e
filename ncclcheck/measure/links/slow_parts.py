"""The slow parts of one network: nodes that send or receive slowly there, and slow ways between nodes that do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from msgspec import Struct

from ncclcheck.measure.links.network_rates import Throughput, is_cpu_limited, summed_up
from ncclcheck.measure.links.outliers import FEWEST_NODES, Pair, SlowEnd, SlowPair, slow_ends, slow_way_of_two
from ncclcheck.model.snapshot import Probe


class SlowParts(Struct, frozen=True):
    """The slow ends, and the slow pairs that they do not explain. `values`: what was measured of each pair."""

    ends: tuple[SlowEnd, ...]
    pairs: tuple[SlowPair, ...]
    values: dict[Pair, float]

    def transfers(self) -> tuple[Pair, ...]:
        """Return every (from, to) that is called slow."""
        of_ends = (pair for end in self.ends for pair in end.pairs)
        return tuple(dict.fromkeys((*of_ends, *(slow_pair.pair for slow_pair in self.pairs))))


class SlowestPart(Struct, frozen=True):
    """The slowest of them: `where` in words ("from node3"), what it carries, and what is usual, in Gbit/s."""

    where: str
    throughput: Throughput
    usual: float


def slow_parts(transfers: Iterable[Probe]) -> SlowParts:
    """Return what `outliers.slow_ends` says of the bandwidth probes of one network; of two nodes, `slow_way_of_two`.

    Transfers that the CPU limited, or that failed, are never called slow.
    """
    found = _by_pair(transfers)
    values = {pair: median(probe.value or 0.0 for probe in probes) for pair, probes in found.items()}
    limited = frozenset(pair for pair, probes in found.items() if any(map(is_cpu_limited, probes)))
    if len({host for pair in values for host in pair}) >= FEWEST_NODES:
        return SlowParts(*slow_ends(values, limited), values)
    return SlowParts((), slow_way_of_two(values, limited), values)


def slowest_part(transfers: Sequence[Probe]) -> SlowestPart | None:
    """Return what a collective over these nodes has to wait for; None where no part of the network is called slow."""
    slow = slow_parts(transfers)
    if not (slow.ends or slow.pairs):
        return None
    found = _by_pair(transfers)
    ends = [
        (end.median, f"{'from' if end.end == 'sender' else 'to'} {end.host}", end.usual, end.pairs)
        for end in slow.ends
    ]
    pair_parts = [
        (
            slow_pair.value,
            f"from {slow_pair.pair[0]} to {slow_pair.pair[1]}",
            slow_pair.usual,
            (slow_pair.pair,),
        )
        for slow_pair in slow.pairs
    ]
    _, where, usual, pairs = min((*ends, *pair_parts))
    return SlowestPart(
        where, summed_up([(probe, probe.value or 0.0) for pair in pairs for probe in found[pair]]), usual
    )


def _by_pair(transfers: Iterable[Probe]) -> Mapping[Pair, Sequence[Probe]]:
    found: dict[Pair, list[Probe]] = {}
    for probe in transfers:
        if probe.value is not None:
            found.setdefault((probe.from_host, probe.to_host), []).append(probe)
    return found
