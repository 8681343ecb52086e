"""What the nodes count beside the series: by how much in all, when, and what moved while something was slow."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.model.benchmarks.soak import NodeCounts, SoakBlock, SoakCount, SoakGpus

STOLEN = 0.05  # of the CPU time of a block, from which on it is reported
WITHOUT_CORE = "blocks with a fifth of the time spent waiting for a core"
WAITED = 0.2  # of a block: threads of one rank wait for each other, too
UNREAD = 0.1  # of the blocks: so often a carrier may have been unreadable, since it is counted on
_MOMENTS = 64  # of a counter that are kept
_MOST = 1024  # counters of all nodes
_TIMES, _ENOUGH = (
    3.0,
    3,
)  # a counter moved with a drop if it grew so many times faster than before, and so far
_USUAL = ("tcp sent",)  # grows in every block
CARRIER = "carrier_changes"
LOW_CLOCK = "blocks with a GPU clock below 95 % of the usual one"
_LOW_CLOCK = 0.95
_CLOCKS = 256  # of a node: its usual one is their median
_LEARNED = 8
_TOLD = 8
Key = tuple[str, str]


class _Gpus(Struct, frozen=True):
    """The lowest clock of a node, when that was, and its highest temperature."""

    least_mhz: float
    least_at_s: float
    hottest_c: int = 0


def grown(node: NodeCounts) -> dict[Key, int]:
    """Return what grew on a node; stolen CPU time in per cent, and whether it waited for cores."""
    found = {(node.host, name): count for name, count in node.counts.items() if name not in _USUAL and count}
    if node.steal >= STOLEN:
        found[node.host, "cpu steal, per cent"] = round(100 * node.steal)
    if node.waited >= WAITED:
        found[node.host, WITHOUT_CORE] = 1
    return found


class CounterBook:
    """All counters so far. A class because each block adds to them."""

    def __init__(self) -> None:
        self._grown: Counter[Key] = Counter()
        self._at_s: dict[Key, deque[float]] = {}
        self._blocks = 0
        self._carriers: Counter[str] = Counter()  # blocks in which those of a host were read
        self._clocks: dict[str, deque[float]] = {}
        self._gpus: dict[str, _Gpus] = {}

    def add(self, block: SoakBlock, began: float) -> None:
        """Add what grew in a block."""
        self._blocks += 1
        for node in block.nodes:
            self._add_gpus(node, round(block.at_s - began, 1))
            self._carriers[node.host] += node.carriers > 0
            for key, count in self.grown(node).items():
                if key not in self._at_s and len(self._at_s) >= _MOST:
                    continue
                self._grown[key] += count
                self._at_s.setdefault(key, deque(maxlen=_MOMENTS)).append(round(block.at_s - began, 1))

    def _add_gpus(self, node: NodeCounts, at_s: float) -> None:
        if node.clock_mhz <= 0 or (node.host not in self._clocks and len(self._clocks) >= _MOST):
            return
        self._clocks.setdefault(node.host, deque(maxlen=_CLOCKS)).append(node.clock_mhz)
        known = self._gpus.setdefault(node.host, _Gpus(node.clock_mhz, at_s))
        if node.clock_mhz < known.least_mhz:
            known = replace(known, least_mhz=node.clock_mhz, least_at_s=at_s)
        self._gpus[node.host] = replace(known, hottest_c=max(known.hottest_c, node.temperature_c))

    def grown(self, node: NodeCounts) -> dict[Key, int]:
        """Return what grew on a node, and whether its clock is lower than usual."""
        clocks = self._clocks.get(node.host, ())
        is_low = len(clocks) > _LEARNED and 0 < node.clock_mhz < _LOW_CLOCK * median(clocks)
        return {**grown(node), **({(node.host, LOW_CLOCK): 1} if is_low else {})}

    def gpus(self) -> tuple[SoakGpus, ...]:
        """Return the clocks of all nodes with GPUs."""
        return tuple(
            SoakGpus(
                host,
                round(median(self._clocks[host]), 1),
                round(known.least_mhz, 1),
                known.least_at_s,
                known.hottest_c,
            )
            for host, known in sorted(self._gpus.items())
        )

    def growth_of(self, nodes: Iterable[NodeCounts]) -> Counter[Key]:
        """Return what grew on these nodes in a block that was added."""
        total: Counter[Key] = Counter()
        for node in nodes:
            total.update(self.grown(node))
        return total

    def of_heat(self) -> tuple[str, ...]:
        """Return the signs of lower clocks and heat in the whole series, the most frequent first."""
        found = [
            (self._grown[key], key)
            for key in self._at_s
            if key[1].startswith("GPU ") or key[1] in (LOW_CLOCK, "cpu throttled")
        ]
        return tuple(
            f"{host}: {name} +{count}" for count, (host, name) in sorted(found, reverse=True)[:_TOLD]
        )

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
        return tuple(
            f"{host}: {name} +{count}" for count, (host, name) in sorted(found, reverse=True)[:_TOLD]
        )
