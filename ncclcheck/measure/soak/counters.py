"""What the nodes count beside the series: by how much in all, when, and what moved while something was slow."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence

from ncclcheck.model.benchmarks.soak import NodeCounts, SoakBlock, SoakCount

STOLEN = 0.05  # of the CPU time of a block, from which on it is told
UNREAD = 0.1  # of the blocks: so often a carrier may have been unreadable, since it is counted on
_MOMENTS = 64  # of a counter that are kept
_MOST = 1024  # counters of all nodes
_TIMES, _ENOUGH = (
    3.0,
    3,
)  # a counter moved with a drop if it grew so many times faster than before, and so far
_USUAL = ("tcp sent",)  # grows in every block
CARRIER = "carrier_changes"
Key = tuple[str, str]


def grown(node: NodeCounts) -> dict[Key, int]:
    """Return what grew on a node; stolen CPU time in per cent."""
    found = {(node.host, name): count for name, count in node.counts.items() if name not in _USUAL and count}
    if node.steal >= STOLEN:
        found[node.host, "cpu steal, per cent"] = round(100 * node.steal)
    return found


class CounterBook:
    """All counters so far. A class because each block adds to them."""

    def __init__(self) -> None:
        self._grown: Counter[Key] = Counter()
        self._at_s: dict[Key, deque[float]] = {}
        self._blocks = 0
        self._carriers: Counter[str] = Counter()  # blocks in which those of a host were read

    def add(self, block: SoakBlock, began: float) -> None:
        """Add what grew in a block."""
        self._blocks += 1
        for node in block.nodes:
            self._carriers[node.host] += node.carriers > 0
            for key, count in grown(node).items():
                if key not in self._at_s and len(self._at_s) >= _MOST:
                    continue
                self._grown[key] += count
                self._at_s.setdefault(key, deque(maxlen=_MOMENTS)).append(round(block.at_s - began, 1))

    def rows(self) -> tuple[SoakCount, ...]:
        """Return all counters that moved."""
        return tuple(
            SoakCount(host, name, self._grown[host, name], tuple(moments))
            for (host, name), moments in sorted(self._at_s.items())
        )

    def carriers_unread(self, hosts: Iterable[str]) -> tuple[str, ...]:
        """Return the hosts whose carriers were not read in too many blocks for a link to be called steady."""
        least = (1 - UNREAD) * self._blocks
        return tuple(host for host in dict.fromkeys(hosts) if self._carriers[host] < least)

    def moved(self, meanwhile: Counter[Key], blocks: int) -> tuple[str, ...]:
        """Return the counters that grew much faster in so many blocks than in the others, the fastest first."""
        others = max(1, self._blocks - blocks)
        found = []
        for key, count in meanwhile.items():
            before = (self._grown[key] - count) / others
            if count >= _ENOUGH and count / max(1, blocks) > _TIMES * before:
                found.append((count, key))
        return tuple(f"{host}: {name} +{count}" for count, (host, name) in sorted(found, reverse=True)[:8])


def growth_of(blocks: Iterable[Sequence[NodeCounts]]) -> Counter[Key]:
    """Return what grew in these blocks together."""
    total: Counter[Key] = Counter()
    for nodes in blocks:
        for node in nodes:
            total.update(grown(node))
    return total
